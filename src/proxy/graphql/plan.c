/* Plans of operations. Tested in tests/unit/proxy/graphql/execute.c. */
#include "proxy/graphql/plan.h"
#include "proxy/graphql/overlap.h"
#include "proxy/graphql/values.h"
#include "proxy/json_pick.h"

#define SHOW(s) (int)((s).len > 60 ? 60 : (s).len), (s).p

struct planner {
    const struct gql_schema *s;
    const struct gql_limits *limits;
    struct gql_collector collector;
    struct gql_errors *e;
    uint64_t depth; /* most so far */
};

struct gql_operation *gql_choose(struct gql_document *d, struct slice name,
                                 struct gql_errors *errors)
{
    static const char *const kinds[] = {
        [GQL_MUTATION] = "mutations", [GQL_SUBSCRIPTION] = "subscriptions"
    };
    const struct gql_place begin = { 1, 1 };
    struct gql_operation *o = d->operations;
    if (!o) {
        gql_blame(errors, begin, "there is no operation, only fragments");
        return NULL;
    }
    if (!name.p && o->next) {
        gql_blame(errors, begin, "there are several operations: say which by operationName");
        return NULL;
    }
    while (name.p && o && !(o->name.p && gql_same(o->name, name)))
        o = o->next;
    if (!o) {
        gql_blame(errors, begin, "there is no operation '%.*s'", SHOW(name));
        return NULL;
    }
    if (o->kind == GQL_QUERY)
        return o;
    gql_blame(errors, o->place, "%s are not taken: this GraphQL reads only", kinds[o->kind]);
    return NULL;
}

/* --- variables --- */

static void read_variables(struct planner *p, const struct gql_operation *op, struct slice json)
{
    struct gql_value *first = NULL, **at = &first;
    char text[128];
    for (const struct gql_variable *v = op->variables; v; v = v->next) {
        if (!gql_may_compare(p->e, 1 + json.len / 16, v->name, v->place)) /* each reads all */
            return;
        struct slice name = arena_copy(p->e->a, v->name);
        struct slice given = name.p ? json_pick(json, name.p) : name;
        const struct gql_value *value = v->preset;
        const char *why = "";
        if (given.p)
            value = gql_from_json(given, v->type, p->e->a, &why);
        if (given.p && !value) {
            gql_blame(p->e, v->place, "the variable $%.*s is no %s: %s", SHOW(v->name),
                      gql_type_text(v->type, text), why);
            continue;
        }
        if (!value && v->type->kind == GQL_NON_NULL)
            gql_blame(p->e, v->place, "the variable $%.*s of type %s has no value", SHOW(v->name),
                      gql_type_text(v->type, text));
        *at = value ? arena_get(p->e->a, sizeof **at) : NULL;
        if (!*at)
            continue;
        **at = *value;
        (*at)->name = v->name;
        (*at)->next = NULL;
        at = &(*at)->next;
    }
    p->collector.variables = first;
}

/* --- fields --- */

static void fill_arguments(struct planner *p, struct gql_node *n, const struct gql_value *given)
{
    struct gql_value **at = &n->args;
    for (const struct gql_argument *a = n->field->args; a; a = a->next) {
        const struct gql_value *v = given;
        while (v && !gql_same(v->name, a->name))
            v = v->next;
        if (v)
            v = gql_fill(v, p->collector.variables, p->e);
        if (!v)
            v = a->preset;
        if ((!v && a->type->kind == GQL_NON_NULL) || (v && !gql_null_fits(v, a->type)))
            n->wrong = "an argument that must not be null is null";
        *at = v ? arena_get(p->e->a, sizeof **at) : NULL;
        if (!*at)
            continue;
        **at = *v;
        (*at)->name = a->name;
        (*at)->next = NULL;
        at = &(*at)->next;
    }
}

static struct gql_node *make(struct planner *p, const struct gql_uses *uses, uint64_t depth)
{
    struct gql_node *first = NULL, **at = &first;
    if (depth > p->depth)
        p->depth = depth;
    if (depth > p->limits->depth) {
        gql_blame(p->e, uses->list->place, "the query is nested deeper than %llu",
                  (unsigned long long)p->limits->depth);
        return NULL;
    }
    p->collector.depth++;
    for (const struct gql_group *g = gql_collect(&p->collector, uses); g; g = g->next) {
        const struct gql_field *f = g->first->field;
        const bool own = f == p->s->schema_field || f == p->s->type_field;
        struct gql_node *n = arena_get(p->e->a, sizeof *n);
        if (!n)
            break;
        if (own && !p->limits->introspection)
            gql_blame(p->e, g->first->place, "introspection is switched off");
        *n = (struct gql_node){
            .key = g->first->key, .parent = g->first->parent, .field = f, .place = g->first->place
        };
        fill_arguments(p, n, g->first->args);
        if (g->children) /* introspection is bounded by its values */
            n->child = make(p, g->children, own || depth == 0 ? 0 : depth + 1);
        *at = n;
        at = &n->next;
    }
    p->collector.depth--;
    return p->e->n ? NULL : first;
}

/* --- cost --- */

static uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t out;
    return __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t out;
    return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

/* How many elements a field is taken for: the larger of its sizes. A service may read 0, or a
 * number below, as "all". */
static uint64_t elements(const struct gql_node *n)
{
    static const char *const sizes[] = { "first", "limit" };
    const struct gql_type *t = n->field->type;
    uint64_t many = 1, most = 0;
    for (; t->kind == GQL_LIST || t->kind == GQL_NON_NULL; t = t->of)
        if (t->kind == GQL_LIST)
            many = product(many, GQL_LIST_COST);
    for (size_t i = 0; many > 1 && i < 2; i++) {
        const struct gql_value *v = gql_named(n->args, sizes[i]);
        double given;
        if (!v || (v->kind != GQL_INT && v->kind != GQL_FLOAT))
            continue;
        uint64_t size = GQL_LIST_COST;
        if (gql_number(v->text, &given) && given >= 1)
            size = given > INT32_MAX ? INT32_MAX : (uint64_t)given;
        if (size > most)
            most = size;
    }
    return most ? product(most, many / GQL_LIST_COST) : many;
}

static uint64_t cost_of(const struct gql_schema *s, const struct gql_node *n)
{
    uint64_t all = 0;
    for (; n; n = n->next) {
        if (n->field == s->schema_field || n->field == s->type_field) {
            all = sum(all, 1);
            continue;
        }
        all = sum(all, n->field->get ? GQL_GET_COST : 1);
        if (n->child)
            all = sum(all, product(elements(n), cost_of(s, n->child)));
    }
    return all;
}

int gql_plan(const struct gql_schema *s, const struct gql_operation *op, struct slice variables,
             const struct gql_limits *limits, struct gql_plan *out, struct gql_errors *errors)
{
    struct planner p = { .s = s, .limits = limits, .collector = { .errors = errors }, .e = errors };
    *out = (struct gql_plan){ NULL, 0, 0 };
    read_variables(&p, op, variables);
    if (errors->n == 0)
        out->root = make(&p, &(struct gql_uses){ op->child, NULL }, 1);
    if (errors->n || errors->a->failed)
        return -1;
    out->depth = p.depth;
    out->cost = cost_of(s, out->root);
    if (out->cost > limits->cost)
        return gql_blame(errors, op->place,
                         "the query costs %llu, more than %llu: ask for fewer lists in lists, or "
                         "smaller ones by limit",
                         (unsigned long long)out->cost, (unsigned long long)limits->cost);
    return 0;
}
