/* Fields of the same name. Tested in tests/unit/proxy/graphql/execute.c and, beside npm graphql, in
 * tests/differential/graphql. */
#include "proxy/graphql/overlap.h"
#include "proxy/graphql/validate.h"
#include "proxy/graphql/values.h"

struct seen { /* fragments of a collection */
    const struct gql_fragment *f;
    struct seen *next;
};

/* --- collecting (October 2021, 6.3.2) --- */

static bool condition(const struct gql_collector *c, const struct gql_directive *d,
                      const char *name, bool otherwise)
{
    while (d && !slice_is(d->name, name))
        d = d->next;
    const struct gql_value *v = d ? gql_named(d->args, "if") : NULL;
    if (v)
        v = gql_fill(v, c->variables, c->errors);
    return v ? slice_is(v->text, "true") : otherwise;
}

static bool is_there(const struct gql_collector *c, const struct gql_selection *s)
{
    return c->all || (!condition(c, s->directives, "skip", false) &&
                      condition(c, s->directives, "include", true));
}

static void add(struct gql_collector *c, struct gql_group **groups, const struct gql_selection *s)
{
    struct gql_group **at = groups;
    while (*at && !gql_same((*at)->first->key, s->key))
        at = &(*at)->next;
    if (*at && c->same)
        c->same(c, (*at)->first, s);
    if (!*at) {
        *at = arena_get(c->errors->a, sizeof **at);
        if (!*at)
            return;
        (*at)->first = s;
        (*at)->last = &(*at)->children;
    }
    struct gql_uses *u = s->child ? arena_get(c->errors->a, sizeof *u) : NULL;
    if (!u)
        return;
    u->list = s->child;
    *(*at)->last = u;
    (*at)->last = &u->next;
}

static void collect(struct gql_collector *c, const struct gql_selection *s,
                    struct gql_group **groups, struct seen **seen)
{
    if (++c->depth > GQL_NEST_MAX)
        gql_blame(c->errors, s->place, "the query is nested deeper than %d", GQL_NEST_MAX);
    for (; s && c->errors->n == 0 && !c->errors->a->failed; s = s->next) {
        if (!is_there(c, s))
            continue;
        if (++c->fields > GQL_FIELDS_MAX) {
            gql_blame(c->errors, s->place, "the query has more than %d fields", GQL_FIELDS_MAX);
        } else if (s->kind == GQL_FIELD) {
            add(c, groups, s);
        } else if (s->kind == GQL_INLINE) {
            collect(c, s->child, groups, seen);
        } else {
            const struct seen *was = *seen;
            while (was && was->f != s->fragment)
                was = was->next;
            struct seen *n = was ? NULL : arena_get(c->errors->a, sizeof *n);
            if (!n)
                continue;
            *n = (struct seen){ s->fragment, *seen };
            *seen = n;
            collect(c, s->fragment->child, groups, seen);
        }
    }
    c->depth--;
}

struct gql_group *gql_collect(struct gql_collector *c, const struct gql_uses *uses)
{
    struct gql_group *groups = NULL;
    struct seen *seen = NULL;
    for (; uses; uses = uses->next)
        collect(c, uses->list, &groups, &seen);
    return c->errors->n ? NULL : groups;
}

/* --- the rule --- */

static bool same_value(struct gql_errors *e, const struct gql_value *a, const struct gql_value *b);

static bool same_named(struct gql_errors *e, const struct gql_value *a,
                       const struct gql_value *list)
{
    size_t n = 1;
    for (; list && !gql_same(list->name, a->name); list = list->next)
        n++;
    return !gql_may_compare(e, n, a->name, a->place) || (list && same_value(e, a, list));
}

static size_t count(const struct gql_value *v)
{
    size_t n = 0;
    for (; v; v = v->next)
        n++;
    return n;
}

/* Members and arguments may stand in any order. */
static bool same_members(struct gql_errors *e, const struct gql_value *a, const struct gql_value *b)
{
    if (count(a) != count(b))
        return false;
    for (const struct gql_value *o = b; a; a = a->next, o = o->next)
        if (!same_named(e, a, gql_same(a->name, o->name) ? o : b))
            return false;
    return true;
}

/* Also true when there were too many comparisons, which is an error of its own. */
static bool same_value(struct gql_errors *e, const struct gql_value *a, const struct gql_value *b)
{
    if (!gql_may_compare(e, 1, a->text, a->place))
        return true;
    if (a->kind != b->kind || !gql_same(a->text, b->text))
        return false;
    if (a->kind == GQL_OBJECT_VALUE)
        return same_members(e, a->child, b->child);
    for (a = a->child, b = b->child; a && b && same_value(e, a, b); a = a->next)
        b = b->next;
    return !a && !b;
}

static void must_be_same(struct gql_collector *c, const struct gql_selection *a,
                         const struct gql_selection *b)
{
    const int key = (int)(b->key.len > 60 ? 60 : b->key.len);
    if (!gql_same(a->name, b->name))
        gql_blame(c->errors, b->place,
                  "'%.*s' is %.*s here and %.*s in line %u; give one of them another name", key,
                  b->key.p, (int)(b->name.len > 60 ? 60 : b->name.len), b->name.p,
                  (int)(a->name.len > 60 ? 60 : a->name.len), a->name.p, a->place.line);
    else if (!same_members(c->errors, a->args, b->args))
        gql_blame(c->errors, b->place,
                  "'%.*s' has other arguments here than in line %u; give one of them another name",
                  key, b->key.p, a->place.line);
}

static void check(struct gql_collector *c, const struct gql_uses *uses)
{
    c->depth++;
    for (const struct gql_group *g = gql_collect(c, uses); g; g = g->next)
        if (g->children)
            check(c, g->children);
    c->depth--;
}

void gql_check_overlap(const struct gql_operation *op, size_t *fields, struct gql_errors *errors)
{
    struct gql_collector c = {
        .errors = errors, .fields = *fields, .all = true, .same = must_be_same
    };
    check(&c, &(struct gql_uses){ op->child, NULL });
    *fields = c.fields;
}
