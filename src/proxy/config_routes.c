/*
 * The setting `routes`: the table of their keys. A new key is a member of struct config_route and a
 * row. Tested in tests/unit/proxy/config.c.
 */
#include "proxy/config.h"
#include "proxy/capture.h"
#include "proxy/config_fields.h"
#include "proxy/config_split.h"
#include "proxy/route_rules.h"
#include "wire/http_line.h"

#include <ctype.h>
#include <string.h>

static int check_host(const struct entry_reader *r, const struct entry_key *k, char *h)
{
    char show[CONFIG_SHOWN_BUF];
    for (char *p = h; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    size_t star = strncmp(h, "*.", 2) == 0 ? 2 : 0;
    if (!config_all_are(h + star, HTTP_HOST) || strchr(h + star, '*'))
        return entry_blame(r, k->name, "'%s' is no host; write shop.example.org or *.example.org",
                           config_shown(h, show));
    if (strchr(h, ':') && h[0] != '[')
        return entry_blame(r, k->name, "'%s' has a port; hosts are compared without it",
                           config_shown(h, show));
    return 0;
}

static int check_method(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF];
    bool upper = true;
    for (const char *p = text; *p; p++)
        upper &= !islower((unsigned char)*p);
    return upper && config_all_are(text, HTTP_TOKEN) && strlen(text) <= CONFIG_METHOD_MAX
               ? 0
               : entry_blame(r, k->name, "'%s' is no method; write it in capitals, as in GET",
                             config_shown(text, show));
}

static int check_lower_name(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    for (char *p = text; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    char show[CONFIG_SHOWN_BUF];
    return config_all_are(text, HTTP_TOKEN)
               ? 0
               : entry_blame(r, k->name, "'%s' is no name of a header", config_shown(text, show));
}

static int check_fault_header(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF];
    size_t n = strcspn(text, ":");
    bool ok = n > 0;
    for (size_t i = 0; i < n; i++)
        ok &= http_is(text[i], HTTP_TOKEN);
    return ok ? 0
              : entry_blame(r, k->name, "'%s' is no header; write 'Name: value', or 'Name'",
                            config_shown(text, show));
}

static int check_rules(const struct entry_reader *r, void *entry)
{
    struct route_rules rules = { .request_json = { NULL, 0, 0 } };
    const char *key = "", *why = NULL;
    int e = route_rules_make(entry, &rules, &key, &why);
    if (e == FIRN_EFORMAT)
        e = entry_blame(r, key, "%s", why);
    else if (e)
        e = entry_no_memory(r);
    route_rules_free(&rules);
    return e;
}

static int check_route(const struct entry_reader *r, void *entry)
{
    const struct config_route *route = entry;
    int ways = (route->service != NULL) + (route->split.n > 0) + (route->compose != NULL) +
               route->graphql;
    if (ways == 0)
        return entry_blame(r, "service",
                           "it is missing: where should requests go? (or split, compose, graphql)");
    if (ways > 1)
        return entry_blame(r,
                           route->split.n > 0 ? "split"
                           : route->compose   ? "compose"
                                              : "graphql",
                           "it takes the place of service; give one of service, split, compose and "
                           "graphql");
    if (route->split_by && route->split.n == 0)
        return entry_blame(r, "split_by", "needs split");
    if (route->rewrite && (route->compose || route->graphql))
        return entry_blame(r, "rewrite", "it is for requests that go to a service");
    if (route->cache != CONFIG_CACHE_OFF && (route->compose || route->graphql))
        return entry_blame(r, "cache", "it is for requests that go to a service");
    return check_rules(r, entry);
}

enum { DAY = 86400000 /* ms */, MIB = 1024 * 1024 };

#define AT(field) .offset = offsetof(struct config_route, field)

static const struct entry_key keys[] = {
    { "name", &entry_text, AT(name), .check = entry_check_name },
    { "path", &entry_text, AT(path), .missing = "it is missing; '/' matches every request",
      .check = config_check_path },
    { "service", &entry_text, AT(service) },
    { "split", &config_split_type, AT(split) },
    { "split_by", &entry_text, AT(split_by), .check = config_check_split_by },
    { "compose", &entry_text, AT(compose) },
    { "graphql", &entry_bool, AT(graphql) },
    { "rewrite", &entry_text, AT(rewrite), .check = config_check_path },
    { "hosts", &entry_texts, AT(hosts), .check = check_host },
    { "methods", &entry_texts, AT(methods), .check = check_method },
    { "headers", &config_fields_type, AT(headers), .min = 1 },
    { "timeout_ms", &entry_u32, AT(timeout_ms), 0, DAY, 0 },
    { "request_set", &config_fields_type, AT(request_set) },
    { "request_add", &config_fields_type, AT(request_add) },
    { "request_remove", &entry_texts, AT(request_remove), .check = config_check_field_name },
    { "answer_set", &config_fields_type, AT(answer_set) },
    { "answer_add", &config_fields_type, AT(answer_add) },
    { "answer_remove", &entry_texts, AT(answer_remove), .check = config_check_field_name },
    { "cache", &entry_choice, AT(cache), .choices = "off|memory|redis" },
    { "cache_name", &entry_text, AT(cache_name), .check = entry_check_name },
    { "cache_ttl_s", &entry_u32, AT(cache_ttl_s), 0, CACHE_TTL_MAX_S, 0 },
    { "cache_ttl_max_s", &entry_u32, AT(cache_ttl_max_s), 0, CACHE_TTL_MAX_S, 0 },
    { "cache_public", &entry_bool, AT(cache_public) },
    { "cache_by_user", &entry_bool, AT(cache_by_user) },
    { "cache_ignore_control", &entry_bool, AT(cache_ignore_control) },
    { "cache_vary", &entry_texts, AT(cache_vary), .check = check_lower_name },
    { "request_rename", &entry_texts, AT(request_rename) },
    { "request_drop", &entry_texts, AT(request_drop) },
    { "answer_rename", &entry_texts, AT(answer_rename) },
    { "answer_drop", &entry_texts, AT(answer_drop) },
    { "json_max_bytes", &entry_u32, AT(json_max_bytes), 1, 64 * MIB, MIB },
    { "gzip", &entry_choice, AT(gzip), .choices = "setting|on|off" },
    { "fault_delay_ms", &entry_u32, AT(fault_delay_ms), 0, FAULT_DELAY_MAX_MS, 0 },
    { "fault_delay_percent", &entry_u32, AT(fault_delay_percent), 0, 100, 100 },
    { "fault_abort_status", &entry_u32, AT(fault_abort_status), 0, 599, 0 },
    { "fault_abort_percent", &entry_u32, AT(fault_abort_percent), 0, 100, 100 },
    { "fault_header", &entry_text, AT(fault_header), .check = check_fault_header },
    { "token", &entry_text, AT(token) },
    { "token_optional", &entry_bool, AT(token_optional) },
    { "rates", &entry_texts, AT(rates) },
    { "log_headers", &entry_bool, AT(log_headers) },
    { "log_body_bytes", &entry_u32, AT(log_body_bytes), 0, CAPTURE_BODY_MAX, 0 },
    { "log_redact", &entry_texts, AT(log_redact), .check = config_check_field_name },
};

const struct setting_entries config_routes_type = { keys, sizeof keys / sizeof keys[0],
                                                    sizeof(struct config_route), "route-",
                                                    check_route };
