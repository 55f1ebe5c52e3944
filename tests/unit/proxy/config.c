/* The gateway's configuration: lists, messages that point at the key, networks. */
#include "t.h"

#include "daemon/config_entries.h"
#include "daemon/config_in.h"
#include "proxy/config.h"
#include "proxy/network.h"
#include "proxy/route_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

static struct firn_diag diag;

static int load(struct config *c, const char *yaml)
{
    *c = (struct config){ .base = { .program = &proxy_config, .file = strdup("x.yaml") } };
    diag.text[0] = '\0';
    return config_yaml_read(&c->base, yaml, strlen(yaml), &diag);
}

#define SERVICE "services:\n  - { name: a, servers: ['127.0.0.1:80'"

T_TEST(config_services)
{
    struct config c;
    T_EQ(load(&c, "services:\n"
                  "  - name: a\n"
                  "    servers: ['10.0.0.1:80', '[::1]:81 weight=7', 'name.example:82']\n"
                  "    tls: true\n    tls_ca: /ca\n    server_name: x\n    host: h:80\n"
                  "    connect_ms: 1\n    first_byte_ms: 2\n    timeout_ms: 3\n    retries: 4\n"
                  "    balance: hash\n    hash_by: X-User\n    health_path: /h\n"
                  "  - { name: b, servers: ['1.2.3.4:5'] }\n"),
         0, "%s", diag.text);
    T_EQ(c.services.n, 2);
    const struct config_service *s = &c.services.v[0];
    T_EQ(s->servers.n, 3);
    T_STR(s->servers.v[1].address, "[::1]:81");
    T_EQ(s->servers.v[1].weight, 7);
    T_EQ(s->servers.v[2].weight, 1);
    T_OK(s->tls && s->balance == CONFIG_HASH);
    T_STR(s->hash_by, "x-user");
    T_EQ(s->timeout_ms, 3);
    T_EQ(c.services.v[1].connect_ms, 1000);
    /* What is printed reads as the same. */
    char *text = NULL, *again = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs("services: ", f);
    entries_write(&config_services_type, &c.services, f);
    fclose(f);
    struct config d;
    T_EQ(load(&d, text), 0, "%s in %s", diag.text, text);
    f = open_memstream(&again, &size);
    fputs("services: ", f);
    entries_write(&config_services_type, &d.services, f);
    fclose(f);
    T_STR(text, again);
    free(text);
    free(again);
    config_free(&c.base);
    config_free(&d.base);
}

T_TEST(config_routes)
{
    struct config c;
    T_EQ(
        load(
            &c,
            "routes:\n"
            "  - path: /a\n    service: s\n    hosts: [A.example, '*.B.example']\n    methods: [GET]\n"
            "    headers: ['X-A: 1', 'X-B:*']\n    rewrite: /b\n    timeout_ms: 5\n"
            "    request_set: ['A: b: c']\n    answer_remove: [Server]\n"
            "  - { name: n, path: /, service: s }\n"),
        0, "%s", diag.text);
    const struct config_route *r = &c.routes.v[0];
    T_STR(r->name, "route-1");
    T_STR(r->hosts.v[0], "a.example");
    T_STR(r->headers.v[1].value, "*");
    T_STR(r->request_set.v[0].name, "A");
    T_STR(r->request_set.v[0].value, "b: c");
    T_STR(r->answer_remove.v[0], "Server");
    T_STR(c.routes.v[1].name, "n");
    config_free(&c.base);
}

T_TEST(config_says_where)
{
    static const struct {
        const char *yaml, *says;
    } bad[] = {
        { "services:\n  - {}\n", "x.yaml:2: services: entry 1 needs a name" },
        { "services:\n  - { name: a }\n",
          "x.yaml:2: services: 'a': servers: give 1 to 64 addresses" },
        { "services:\n  - name: a\n    servers: [x]\n",
          "x.yaml:3: services: 'a': servers: 'x' is no address" },
        { SERVICE ", 'a:0'] }\n", "'a:0' is no address" },
        { SERVICE ", 'a\\b:1'] }\n", "'a\\b:1' is no address" },
        { SERVICE ", 'a:1 weight=0'] }\n", "behind the address comes weight=1" },
        { SERVICE "], tls: maybe }\n", "'maybe' is neither true nor false (column" },
        { SERVICE "], tls_ca: /x }\n", "tls_ca: needs tls: true" },
        { SERVICE "], tls: true, tls_key: /x }\n", "belong together" },
        { SERVICE "], retries: 11 }\n", "retries: '11' is no number from 0 to 10" },
        { SERVICE "], retries: 1x }\n", "retries: '1x' is no number" },
        { SERVICE "], balance: best }\n", "'best' is none of round_robin|least|hash" },
        { SERVICE "], balance: hash }\n", "hash_by: balance: hash needs hash_by" },
        { SERVICE "], hash_by: path }\n", "hash_by: balance: hash needs hash_by" },
        { SERVICE "], balance: hash, hash_by: 'segment:0' }\n",
          "'segment:0' is no segment; write" },
        { SERVICE "], balance: hash, hash_by: 'segment:65' }\n", "is no segment; write segment:1" },
        { SERVICE "], balance: hash, hash_by: 'segments:1' }\n", "is no name of a header, nor" },
        { SERVICE "], host: 'a b' }\n", "'a b' is no host" },
        { SERVICE "], host: '' }\n", "host: the value is empty" },
        { SERVICE "], health_path: x }\n", "'x' is no path" },
        { SERVICE "] }\n  - { name: a, servers: ['a:1'] }\n",
          "x.yaml:3: services: 'a': name: the name is there twice" },
        { "routes:\n  - { service: a }\n", "'route-1': path: it is missing" },
        { "routes:\n  - { path: /a }\n", "service: it is missing" },
        { "routes:\n  - { path: /a, service: a, split: ['b 1'] }\n", "split: it takes the place" },
        { "routes:\n  - { path: /a, split: [b] }\n", "write the service and its share" },
        { "routes:\n  - { path: /a, split: ['b 1001'] }\n", "write the service and its share" },
        { "routes:\n  - { path: /a, split: ['b 0'] }\n", "all shares are 0" },
        { "routes:\n  - { path: /a, service: a, split_by: user }\n", "split_by: needs split" },
        { "routes:\n  - { path: /a, split: ['b 1'], split_by: head }\n",
          "'head' is none of address, user" },
        { "routes:\n  - { path: a, service: a }\n", "'a' is no path; it begins with '/'" },
        { "routes:\n  - { path: /a?b, service: a }\n", "'/a?b' is no path" },
        { "routes:\n  - { path: /a//b, service: a }\n", "write /a/b" },
        { "routes:\n  - { path: /a%2fb, service: a }\n", "an encoded slash" },
        { "routes:\n  - { path: /a, service: a, rewrite: b }\n", "rewrite: 'b' is no path" },
        { "routes:\n  - { path: /a, service: a, hosts: ['a:1'] }\n", "'a:1' has a port" },
        { "routes:\n  - { path: /a, service: a, hosts: ['a*b'] }\n", "'a*b' is no host" },
        { "routes:\n  - { path: /a, service: a, methods: [get] }\n",
          "'get' is no method; write it in capitals" },
        { "routes:\n  - { path: /a, service: a, headers: [X] }\n",
          "'X' is no header; write 'Name: value'" },
        { "routes:\n  - { path: /a, service: a, request_set: ['X Y: 1'] }\n",
          "'X Y' is no name of a header" },
        { "routes:\n  - { path: /a, service: a, request_remove: [Transfer-Encoding] }\n",
          "the gateway's own" },
        { "routes:\n  - { path: /a, service: a, answer_set: [\"X: a\\nY: b\"] }\n",
          "holds a control character" },
        { "routes:\n  - { path: /a, service: a, pth: b }\n",
          "there is no 'pth'; did you mean path (column" },
        { "routes:\n  - { path: /a, service: a, zzzzzzzzz: b }\n",
          "there is no 'zzzzzzzzz'; give name" },
        { "trust: [10.0.0.0/33]\n", "'10.0.0.0/33' is no network" },
        { "trust: ['10.0.0.1/8']\n", "'10.0.0.1/8' is no network" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct config c;
        T_OK(load(&c, bad[i].yaml) < 0, "%s", bad[i].yaml);
        T_OK(strstr(diag.text, bad[i].says), "%s\nsays %s", bad[i].yaml, diag.text);
        config_free(&c.base);
    }
}

static size_t section_of(const struct setting *s)
{
    const char *dot = strchr(s->name, '.');
    return dot ? (size_t)(dot - s->name) : strlen(s->name);
}

/* What --print-config prints is YAML that can be read again: each section begins once. */
T_TEST(config_sections_stand_together)
{
    const struct setting *v = proxy_config.settings;
    for (size_t i = 1; i < proxy_config.settings_n; i++) {
        size_t n = section_of(&v[i]), k = i;
        if (section_of(&v[i - 1]) == n && memcmp(v[i - 1].name, v[i].name, n) == 0)
            continue;
        while (k-- > 0)
            T_OK(section_of(&v[k]) != n || memcmp(v[k].name, v[i].name, n) != 0, "%s", v[i].name);
    }
}

T_TEST(config_networks_of_unix_sockets)
{
    struct ip_network n, ip;
    struct sockaddr_storage sa = { .ss_family = AF_UNIX };
    T_EQ(ip_network_parse("unix", &n), 0);
    T_EQ(ip_network_parse("0.0.0.0/0", &ip), 0);
    T_OK(ip_network_has(&n, (struct sockaddr *)&sa));
    T_OK(!ip_network_has(&ip, (struct sockaddr *)&sa));
    sa.ss_family = AF_INET;
    T_OK(!ip_network_has(&n, (struct sockaddr *)&sa));
}

static bool has(const char *network, const char *address)
{
    struct ip_network n;
    struct sockaddr_in in = { .sin_family = AF_INET };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
    T_EQ(ip_network_parse(network, &n), 0, "%s", network);
    if (inet_pton(AF_INET, address, &in.sin_addr) == 1)
        return ip_network_has(&n, (struct sockaddr *)&in);
    T_EQ(inet_pton(AF_INET6, address, &in6.sin6_addr), 1);
    return ip_network_has(&n, (struct sockaddr *)&in6);
}

T_TEST(config_networks)
{
    T_OK(has("10.0.0.0/8", "10.255.1.2") && !has("10.0.0.0/8", "11.0.0.0"));
    T_OK(has("10.0.0.0/9", "10.127.0.1") && !has("10.0.0.0/9", "10.128.0.1"));
    T_OK(has("10.1.2.3", "10.1.2.3") && !has("10.1.2.3", "10.1.2.2"));
    T_OK(has("10.0.0.0/8", "::ffff:10.1.1.1"));
    T_OK(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1"));
    T_OK(has("::/0", "1.2.3.4") && has("::/0", "::1"));
    T_OK(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe00::1"));
    static const char *const bad[] = { "",           "x",          "1.2.3",
                                       "1.2.3.4/",   "1.2.3.4/-1", "1.2.3.4/33",
                                       "1.2.3.4/8x", "::/129",     "1.2.3.4/31 " };
    struct ip_network n;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(ip_network_parse(bad[i], &n), FIRN_EFORMAT, "%s", bad[i]);
}

/* What the keys about caching, JSON and faults become. */
T_TEST(config_route_rules)
{
    static const struct {
        const char *keys, *says;
    } bad[] = {
        { "path: /v1/ids/tsid", "cache: a route that hands out IDs cannot be cached" },
        { "path: /v1", "cache: a route that hands out IDs cannot be cached" },
        { "path: /x, rewrite: /generate", "cache: a route that hands out IDs cannot be cached" },
        { "path: /x, cache_public: true, cache_by_user: true", "keep one" },
        { "path: /x, cache_ignore_control: true", "cache: a route that ignores Cache-Control" },
        { "path: /x, answer_drop: [a, a]", "answer_drop: two rules have the same path" },
        { "path: /x, request_rename: ['a b']", "request_rename: write 'path.of.member: new_name'" },
        { "path: /x, fault_abort_status: 199", "fault_abort_status: the status must be" },
    };
    struct config c;
    char yaml[512];
    for (size_t i = 0; i < T_LEN(bad); i++) {
        snprintf(yaml, sizeof yaml, "routes:\n  - { service: s, cache: memory, %s }\n",
                 bad[i].keys);
        T_OK(load(&c, yaml) != 0 && strstr(diag.text, bad[i].says), "%s: %s", bad[i].keys,
             diag.text);
        config_free(&c.base);
    }
    T_EQ(load(&c, "routes:\n"
                  "  - { path: /p, service: s, name: products, cache: memory, cache_ttl_s: 300,\n"
                  "      cache_vary: [Accept-Language], cache_by_user: true,\n"
                  "      answer_rename: ['a.b: c'], answer_drop: [d], fault_abort_status: 503,\n"
                  "      fault_header: 'X-Fault: yes', fault_abort_percent: 25 }\n"),
         0, "%s", diag.text);
    struct route_rules r = { .cache_redis = true };
    const char *key, *why;
    T_EQ(route_rules_make(&c.routes.v[0], &r, &key, &why), 0);
    T_OK(r.cache.on && r.cache.plain && !r.cache_redis && r.cache.ttl_s == 300);
    T_STR(r.cache.name, "products");
    T_EQ(r.cache.vary_n, 2);
    T_STR(r.cache.vary[0], "accept-language");
    T_STR(r.cache.vary[1], "x-user-id");
    T_EQ(r.answer_json.n, 2);
    T_STR(r.answer_json.v[0].path, "a.b");
    T_STR(r.answer_json.v[0].to, "c");
    T_OK(!r.answer_json.v[1].to);
    T_STR(r.fault.header, "x-fault");
    T_STR(r.fault.value, "yes");
    T_EQ(r.fault.abort_share, 2500);
    route_rules_free(&r);
    config_free(&c.base);
    T_OK(path_mints((struct slice){ "/v1/ids/x", 9 }) &&
         !path_mints((struct slice){ "/v1/idsx", 8 }));
}
