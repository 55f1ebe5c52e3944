/*
 * One pass of the reader with the output written as it goes: scalars are copied as they stand, so
 * that numbers keep their digits. The reader's depth bounds the recursion.
 *
 * A rename must not hide a member: if the body already has one of the new name, services could
 * disagree about which of the two counts. It is found by looking through the object once more, only
 * for objects in which something was renamed.
 *
 * Services that bind members to fields without regard to case (Go, ASP.NET) take "Is_Admin" for
 * "is_admin", so a drop compares as they do.
 */
#include "proxy/json_map.h"
#include "id/diag.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

#include <string.h>

const char *json_map_wrong(const struct json_map_rule *rules, size_t n)
{
    if (n > JSON_MAP_RULES_MAX)
        return "at most 64 rules";
    for (size_t i = 0; i < n; i++) {
        const char *p = rules[i].path;
        size_t len = p ? strlen(p) : 0;
        if (len == 0 || len > JSON_MAP_PATH_MAX || p[0] == '.' || p[len - 1] == '.' ||
            strstr(p, ".."))
            return "a path is names with a dot between them, at most 255 bytes";
        if (rules[i].to && (!rules[i].to[0] || strlen(rules[i].to) > JSON_MAP_PATH_MAX))
            return "a new name has 1 to 255 bytes";
        for (size_t k = 0; k < i; k++)
            if (strcmp(rules[k].path, p) == 0)
                return "two rules have the same path";
    }
    return NULL;
}

struct map {
    const struct json_map_rule *rules;
    size_t n;
    struct json_reader j;
    struct buf *out;
    struct firn_diag *d;
    char path[JSON_MAP_PATH_MAX + 1];
};

/* The next letter in lower case. Go also takes the long s and the Kelvin sign for s and k. */
static char folded(const char **p)
{
    static const struct {
        char text[4], as;
    } alike[] = { { "\xc5\xbf", 's' }, { "\xe2\x84\xaa", 'k' } };
    for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++) {
        const size_t n = strlen(alike[i].text);
        if (strncmp(*p, alike[i].text, n) == 0) {
            *p += n;
            return alike[i].as;
        }
    }
    const char c = *(*p)++;
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static bool same_folded(const char *a, const char *b)
{
    while (*a && *b)
        if (folded(&a) != folded(&b))
            return false;
    return *a == *b;
}

/* A rename compares exactly, and comes before a drop of the same name in other case. */
static const struct json_map_rule *rule_of(const struct map *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->rules[i].path, m->path) == 0)
            return &m->rules[i];
    for (size_t i = 0; i < m->n; i++)
        if (!m->rules[i].to && same_folded(m->rules[i].path, m->path))
            return &m->rules[i];
    return NULL;
}

/* The names that members of the object at `at` get: one that comes from a rename may be there once
 * only. `prefix` is the path to the object, with a dot at its end unless it is empty. */
static int check_rename(struct map *m, struct json_reader at, const char *to, size_t prefix)
{
    char name[JSON_MAP_PATH_MAX + 1];
    int r = json_object(&at), seen = 0;
    while (r == 0 && (r = json_member(&at, name, sizeof name)) > 0) {
        const size_t len = strlen(name);
        const struct json_map_rule *rule = NULL;
        if (len > JSON_MAP_PATH_MAX - prefix)
            return FIRN_EFORMAT;
        memcpy(m->path + prefix, name, len + 1);
        if (len > 0 && !strchr(name, '.'))
            rule = rule_of(m);
        seen += rule ? rule->to && strcmp(rule->to, to) == 0 : strcmp(name, to) == 0;
        r = json_skip(&at);
    }
    if (r == 0 && seen > 1)
        r = firn__diag(m->d, FIRN_EFORMAT, 0, "the body would have the member %.100s twice", to);
    return r;
}

/* `live`: rules may hold below this path; not below a name that no path can have. */
static int value(struct map *m, size_t path_len, bool live);

static int object(struct map *m, size_t path_len, bool live)
{
    const struct json_reader begin = m->j;
    const size_t prefix = path_len + (path_len > 0);
    char name[JSON_MAP_PATH_MAX + 1];
    int r = json_object(&m->j);
    buf_add(m->out, "{", 1);
    while (r == 0 && (r = json_member(&m->j, name, sizeof name)) > 0) {
        const size_t len = strlen(name);
        if (len + prefix > JSON_MAP_PATH_MAX)
            return firn__diag(m->d, FIRN_EFORMAT, 0, "a path in the body has more than 255 bytes");
        if (path_len)
            m->path[path_len] = '.';
        memcpy(m->path + prefix, name, len + 1);
        /* A name with a dot in it is no path: {"user.password":1} is not {"user":{"password":1}}. */
        const bool named = live && len > 0 && !strchr(name, '.');
        const struct json_map_rule *rule = named ? rule_of(m) : NULL;
        if (rule && !rule->to) {
            r = json_skip(&m->j);
            continue;
        }
        r = 0;
        if (rule) {
            r = check_rename(m, begin, rule->to, prefix);
            memcpy(m->path + prefix, name, len + 1);
        }
        json_key(m->out, rule ? rule->to : name);
        if (r == 0)
            r = value(m, prefix + len, named);
    }
    buf_add(m->out, "}", 1);
    return r;
}

static int array(struct map *m, size_t path_len, bool live)
{
    int r = json_array(&m->j);
    buf_add(m->out, "[", 1);
    while (r == 0 && (r = json_element(&m->j)) > 0) {
        json_key(m->out, NULL);
        r = value(m, path_len, live);
    }
    buf_add(m->out, "]", 1);
    return r;
}

static int value(struct map *m, size_t path_len, bool live)
{
    enum json_type type = json_next(&m->j); /* stands before the value then */
    if (type == JSON_OBJECT)
        return object(m, path_len, live);
    if (type == JSON_ARRAY)
        return array(m, path_len, live);
    const char *from = m->j.p;
    int r = json_skip(&m->j);
    if (r == 0)
        buf_add(m->out, from, (size_t)(m->j.p - from));
    return r;
}

int json_map(const struct json_map_rule *rules, size_t n, const char *p, size_t len,
             struct buf *out, struct firn_diag *d)
{
    struct map m = { .rules = rules, .n = n, .out = out, .d = d };
    json_start(&m.j, p, len, d);
    int r = value(&m, 0, true);
    if (r == 0)
        r = json_finish(&m.j);
    if (r == 0 && out->failed)
        r = firn__diag(d, FIRN_ENOSPC, 0, "the body is too large");
    return r == FIRN_ENOSPC && !out->failed ? FIRN_EFORMAT : r;
}
