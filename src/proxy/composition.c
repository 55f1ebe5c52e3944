/* Compositions as declared. Tested in tests/unit/proxy/composition.c. */
#include "proxy/composition.h"
#include "id/diag.h"
#include "wire/url.h"

#include <string.h>

enum { MEMORY_MAX = 256 * 1024, NAME_MAX_BYTES = 63 };

static struct slice of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static size_t part_named(const struct composition *c, const char *name, size_t len)
{
    size_t i = 0;
    while (i < c->n && !(strlen(c->part[i].name) == len && memcmp(c->part[i].name, name, len) == 0))
        i++;
    return i;
}

/* "/{user}/friends" */
static int read_rest(struct composition *c, const char *text, struct firn_diag *why)
{
    struct slice left = of(text), s;
    struct template t;
    int e = template_read(left, &t, why);
    while (e == 0 && url_path_next(&left, &s)) {
        bool var = s.len > 2 && s.p[0] == '{' && s.p[s.len - 1] == '}';
        if (!s.len || (!var && (memchr(s.p, '{', s.len) || memchr(s.p, '?', s.len))))
            return firn__diag(why, FIRN_EFORMAT, 0,
                              "a segment is a text or one name in braces, as in /{user}/orders");
        if (c->rest_n == COMPOSITION_REST_MAX)
            return firn__diag(why, FIRN_EFORMAT, 0, "there are more than %d segments",
                              COMPOSITION_REST_MAX);
        c->rest_var[c->rest_n] = var;
        c->rest[c->rest_n++] = var ? (struct slice){ s.p + 1, s.len - 2 } : s;
    }
    return e;
}

int composition_source(const struct composition *c, struct slice name,
                       struct composition_source *out)
{
    const char *dot = memchr(name.p, '.', name.len);
    const struct {
        const char *prefix;
        enum composition_value from;
    } kinds[] = { { "header:", COMPOSITION_HEADER }, { "query:", COMPOSITION_QUERY } };
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(kinds[i].prefix);
        if (name.len > n && memcmp(name.p, kinds[i].prefix, n) == 0) {
            *out = (struct composition_source){ kinds[i].from, 0, { name.p + n, name.len - n } };
            return 0;
        }
    }
    if (dot) {
        size_t part = part_named(c, name.p, (size_t)(dot - name.p));
        size_t left = name.len - (size_t)(dot + 1 - name.p);
        *out = (struct composition_source){ COMPOSITION_PART, part, { dot + 1, left } };
        return part < c->n && left > 0 ? 0 : FIRN_EFORMAT;
    }
    for (size_t i = 0, vars = 0; i < c->rest_n; i++) {
        if (!c->rest_var[i])
            continue;
        char number = (char)('1' + vars++);
        if ((name.len == 1 && name.p[0] == number) ||
            (name.len == c->rest[i].len && memcmp(name.p, c->rest[i].p, name.len) == 0)) {
            *out = (struct composition_source){ COMPOSITION_REST, i, name };
            return 0;
        }
    }
    return FIRN_EFORMAT;
}

/* "orders = orders GET /orders?user={user}" */
static int read_part(struct composition *c, const char *text, struct firn_diag *why)
{
    static const char usage[] = "write NAME = SERVICE /TARGET, as in 'user = users /users/{user}'";
    struct composition_part *p = &c->part[c->n];
    size_t name = strcspn(text, " ="), gap = strspn(text + name, " ");
    const char *service = text + name + gap + 1;
    if (!name || text[name + gap] != '=')
        return firn__diag(why, FIRN_EFORMAT, 0, "'%.60s': %s", text, usage);
    service += strspn(service, " ");
    size_t n = strcspn(service, " ");
    const char *target = service + n + strspn(service + n, " ");
    if (strncmp(target, "GET ", 4) == 0)
        target += 4 + strspn(target + 4, " ");
    if (!n || target[0] != '/')
        return firn__diag(why, FIRN_EFORMAT, 0, "'%.60s': %s", text, usage);
    if (name > NAME_MAX_BYTES || memchr(text, '.', name) || memchr(text, ':', name))
        return firn__diag(why, FIRN_EFORMAT, 0, "'%.60s': a part's name has no '.' and no ':'",
                          text);
    if (part_named(c, text, name) < c->n)
        return firn__diag(why, FIRN_EFORMAT, 0, "the part '%.*s' is there twice", (int)name, text);
    p->name = arena_copy(&c->memory, (struct slice){ text, name }).p;
    p->service = arena_copy(&c->memory, (struct slice){ service, n }).p;
    if (!p->name || !p->service)
        return firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    int e = template_read(of(target), &p->target, why);
    for (size_t i = 0; e == 0 && i < p->target.n; i++) {
        struct composition_source s;
        struct slice value = p->target.name[i];
        if (composition_source(c, value, &s) != 0)
            return firn__diag(
                why, FIRN_EFORMAT, 0,
                "part '%.40s': {%.*s} is no segment of rest:, header:NAME, query:NAME "
                "or PART.PATH of a part before it",
                p->name, (int)value.len, value.p);
        if (s.from == COMPOSITION_PART)
            p->needs |= UINT32_C(1) << s.index;
    }
    c->n++;
    return e;
}

static int read_shape(struct composition *c, struct firn_diag *why)
{
    const char *names[COMPOSITION_PARTS_MAX];
    struct firn_diag d = { 0, "" };
    for (size_t i = 0; i < c->n; i++)
        names[i] = c->part[i].name;
    if (c->conf->shape.n > SHAPE_LINES_MAX)
        return firn__diag(why, FIRN_EFORMAT, 0, "there are more than %d lines", SHAPE_LINES_MAX);
    for (size_t i = 0; i < c->conf->shape.n; i++) {
        int e = shape_add(&c->shape, c->conf->shape.v[i], names, c->n, &c->memory, &d);
        if (e)
            return firn__diag(why, e, 0, "'%.60s': %s", c->conf->shape.v[i], d.text);
    }
    for (const struct shape_node *n = c->shape.child; n; n = n->next)
        if (strcmp(n->name, "errors") == 0)
            return firn__diag(why, FIRN_EFORMAT, 0, "the member 'errors' says which parts failed");
    return 0;
}

int composition_make(const struct config_composition *conf, struct composition *out,
                     const char **key, struct firn_diag *why)
{
    int e = 0;
    *out = (struct composition){ .conf = conf, .memory = { .max = MEMORY_MAX } };
    out->shape.part = SHAPE_INNER;
    *key = "rest";
    if (conf->rest)
        e = read_rest(out, conf->rest, why);
    if (e == 0)
        *key = "parts";
    if (e == 0 && (conf->parts.n == 0 || conf->parts.n > COMPOSITION_PARTS_MAX))
        e = firn__diag(why, FIRN_EFORMAT, 0, "give 1 to %d parts", COMPOSITION_PARTS_MAX);
    for (size_t i = 0; e == 0 && i < conf->parts.n; i++)
        e = read_part(out, conf->parts.v[i], why);
    if (e == 0)
        *key = "required";
    for (size_t i = 0; e == 0 && i < conf->required.n; i++) {
        size_t part = part_named(out, conf->required.v[i], strlen(conf->required.v[i]));
        if (part == out->n)
            e = firn__diag(why, FIRN_EFORMAT, 0, "there is no part '%.40s'", conf->required.v[i]);
        else
            out->part[part].required = true;
    }
    if (e == 0)
        *key = "shape";
    if (e == 0)
        e = read_shape(out, why);
    if (e)
        composition_free(out);
    return e;
}

void composition_free(struct composition *c)
{
    arena_done(&c->memory);
}

bool composition_rest(const struct composition *c, struct slice rest,
                      struct slice out[COMPOSITION_REST_MAX])
{
    struct slice s;
    size_t n = 0;
    while (url_path_next(&rest, &s)) {
        if (s.len == 0 && rest.len == 0) /* a slash at the end */
            break;
        if (n == c->rest_n || s.len == 0)
            return false;
        if (!c->rest_var[n] && (s.len != c->rest[n].len || memcmp(s.p, c->rest[n].p, s.len) != 0))
            return false;
        out[n++] = s;
    }
    return n == c->rest_n;
}
