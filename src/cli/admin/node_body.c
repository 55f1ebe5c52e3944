#include "cli/admin/node_body.h"

struct at {
    const char *p, *end;
};

static void blanks(struct at *a)
{
    while (a->p < a->end && strchr(" \t\r\n", *a->p) && *a->p)
        a->p++;
}

static bool mark(struct at *a, char c)
{
    blanks(a);
    if (a->p == a->end || *a->p != c)
        return false;
    a->p++;
    return true;
}

/* A string of printable ASCII into `out`; NULL skips it. Longer than the room: not ours. */
static bool string(struct at *a, char *out, size_t size)
{
    size_t n = 0;
    if (!mark(a, '"'))
        return false;
    for (; a->p < a->end && *a->p != '"'; a->p++) {
        char c = *a->p;
        if (c == '\\') {
            if (++a->p == a->end || !strchr("\"\\/", *a->p) || !*a->p)
                return false;
            c = *a->p;
        }
        if (c < ' ' || c > '~')
            return false;
        if (out && n + 1 >= size)
            return false;
        if (out)
            out[n] = c;
        n++;
    }
    if (out)
        out[n] = '\0';
    return mark(a, '"');
}

static bool number(struct at *a, uint64_t *out)
{
    uint64_t v = 0;
    blanks(a);
    const char *start = a->p;
    for (; a->p < a->end && *a->p >= '0' && *a->p <= '9'; a->p++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*a->p - '0'), &v))
            return false;
    *out = v;
    return a->p > start;
}

static bool skip(struct at *a)
{
    static const char *const words[] = { "true", "false", "null" };
    uint64_t unused;
    blanks(a);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(a->end - a->p) >= n && memcmp(a->p, words[i], n) == 0) {
            a->p += n;
            return true;
        }
    }
    return a->p < a->end && *a->p == '"' ? string(a, NULL, 0) : number(a, &unused);
}

static bool member(struct at *a, struct node_row *r)
{
    const struct {
        const char *name;
        char *text;
        size_t size;
        uint64_t *number;
    } known[] = {
        { "number", NULL, 0, &r->number },
        { "name", r->name, sizeof r->name, NULL },
        { "address", r->address, sizeof r->address, NULL },
        { "slots", r->slots, sizeof r->slots, NULL },
        { "version", r->version, sizeof r->version, NULL },
        { "kind", r->kind, sizeof r->kind, NULL },
        { "state", r->state, sizeof r->state, NULL },
        { "age_ms", NULL, 0, &r->age_ms },
    };
    char name[32];
    if (!string(a, name, sizeof name) || !mark(a, ':'))
        return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].text ? string(a, known[i].text, known[i].size)
                                 : number(a, known[i].number);
    return skip(a);
}

int node_body_each(const char *p, size_t len, node_row_fn *each, void *user)
{
    struct at a = { p, p + len };
    char name[8];
    if (!mark(&a, '{') || !string(&a, name, sizeof name) || strcmp(name, "nodes") != 0 ||
        !mark(&a, ':') || !mark(&a, '['))
        return FIRN_EFORMAT;
    bool more = !mark(&a, ']');
    while (more) {
        struct node_row r = { 0 };
        if (!mark(&a, '{'))
            return FIRN_EFORMAT;
        do
            if (!member(&a, &r))
                return FIRN_EFORMAT;
        while (mark(&a, ','));
        if (!mark(&a, '}'))
            return FIRN_EFORMAT;
        each(user, &r);
        more = mark(&a, ',');
        if (!more && !mark(&a, ']'))
            return FIRN_EFORMAT;
    }
    bool whole = mark(&a, '}');
    blanks(&a);
    return whole && a.p == a.end ? 0 : FIRN_EFORMAT;
}
