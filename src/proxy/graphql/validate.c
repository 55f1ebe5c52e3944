/*
 * The rules of validation, in one walk through each operation and the fragments that it has.
 * overlap.c has the one about fields of the same name. Tested in
 * tests/unit/proxy/graphql/execute.c and, beside npm graphql, in tests/differential/graphql.
 */
#include "proxy/graphql/validate.h"
#include "proxy/graphql/overlap.h"
#include "proxy/graphql/values.h"

#define SHOW(s) (int)((s).len > 60 ? 60 : (s).len), (s).p

struct check {
    const struct gql_schema *s;
    struct gql_document *d;
    struct gql_errors *e;
    struct gql_operation *op;
    unsigned number, depth; /* of the operation, from 1; of selections in selections */
    size_t visits, fields;
};

const struct gql_field *gql_field_of(const struct gql_schema *s, const struct gql_type *parent,
                                     struct slice name)
{
    const struct gql_field *own[] = { s->typename_field, s->schema_field, s->type_field };
    for (size_t i = 0; i < (parent == s->query ? 3 : 1); i++)
        if (gql_same(own[i]->name, name))
            return own[i];
    return gql_field_named(parent, name);
}

/* --- variables --- */

static bool is_subtype(const struct gql_type *v, const struct gql_type *at)
{
    if (at->kind == GQL_NON_NULL)
        return v->kind == GQL_NON_NULL && is_subtype(v->of, at->of);
    if (v->kind == GQL_NON_NULL)
        return is_subtype(v->of, at);
    if (at->kind == GQL_LIST)
        return v->kind == GQL_LIST && is_subtype(v->of, at->of);
    return v == at;
}

static bool may_stand(const struct gql_variable *v, const struct gql_type *at, bool has_preset)
{
    if (at->kind == GQL_NON_NULL && v->type->kind != GQL_NON_NULL) {
        if (!has_preset && !(v->preset && v->preset->kind != GQL_NULL))
            return false;
        at = at->of;
    }
    return is_subtype(v->type, at);
}

static void use_variable(struct check *c, const struct gql_value *use, const struct gql_type *at,
                         bool has_preset)
{
    char want[128], is[128];
    struct gql_variable *v = c->op->variables;
    size_t n = 1;
    for (; v && !gql_same(v->name, use->text); v = v->next)
        n++;
    if (!gql_may_compare(c->e, n, use->text, use->place))
        return;
    if (!v) {
        gql_blame(c->e, use->place, "the variable $%.*s is not declared", SHOW(use->text));
        return;
    }
    v->used = true;
    if (v->type && at && !may_stand(v, at, has_preset))
        gql_blame(c->e, use->place, "the variable $%.*s is %s, but %s is expected", SHOW(use->text),
                  gql_type_text(v->type, is), gql_type_text(at, want));
}

/* Variables in a value, and members of objects that are there twice. Fragments are walked for each
 * operation again, so that comparisons are counted. */
static void walk_value(struct check *c, const struct gql_value *v, const struct gql_type *at,
                       bool has_preset)
{
    if (v->kind == GQL_VARIABLE) {
        use_variable(c, v, at, has_preset);
        return;
    }
    if (at && at->kind == GQL_NON_NULL)
        at = at->of;
    if (at && v->kind == GQL_LIST_VALUE)
        at = at->kind == GQL_LIST ? at->of : NULL;
    else if (at && at->kind == GQL_LIST)
        at = gql_type_inner(at);
    if (v->kind == GQL_OBJECT_VALUE)
        at = NULL;
    size_t n = 0;
    for (const struct gql_value *m = v->child; m; m = m->next) {
        n += v->kind == GQL_OBJECT_VALUE;
        if (!gql_may_compare(c->e, n + 1, m->name, m->place))
            return;
        for (const struct gql_value *o = v->child; v->kind == GQL_OBJECT_VALUE && o != m;
             o = o->next)
            if (gql_same(o->name, m->name))
                gql_blame(c->e, m->place, "'%.*s' is there twice", SHOW(m->name));
        walk_value(c, m, at, false);
    }
}

/* --- arguments and directives --- */

static void walk_arguments(struct check *c, const struct gql_value *args,
                           const struct gql_argument *declared, struct slice of,
                           struct gql_place place)
{
    char text[128];
    size_t n = 0;
    for (const struct gql_value *v = args; v; v = v->next) {
        if (!gql_may_compare(c->e, ++n, v->name, v->place))
            return;
        const struct gql_argument *a = gql_argument_named(declared, v->name);
        for (const struct gql_value *o = args; o != v; o = o->next)
            if (gql_same(o->name, v->name))
                gql_blame(c->e, v->place, "the argument '%.*s' is there twice", SHOW(v->name));
        if (!a)
            gql_blame(c->e, v->place, "'%.*s' has no argument '%.*s'", SHOW(of), SHOW(v->name));
        else if (!gql_literal_fits(v, a->type))
            gql_blame(c->e, v->place, "the argument '%.*s' is no %s", SHOW(v->name),
                      gql_type_text(a->type, text));
        walk_value(c, v, a ? a->type : NULL, a && a->preset);
    }
    for (const struct gql_argument *a = declared; a; a = a->next) {
        const struct gql_value *v = args;
        while (v && !gql_same(v->name, a->name))
            v = v->next;
        if (!v && a->type->kind == GQL_NON_NULL && !a->preset)
            gql_blame(c->e, place, "'%.*s' needs the argument '%.*s' of type %s", SHOW(of),
                      SHOW(a->name), gql_type_text(a->type, text));
    }
}

/* `where`: NULL where no directive may stand. */
static void walk_directives(struct check *c, const struct gql_directive *list, const char *where)
{
    size_t n = 0;
    for (const struct gql_directive *d = list; d; d = d->next) {
        if (!gql_may_compare(c->e, ++n, d->name, d->place))
            return;
        const struct gql_directive_type *t = c->s->directives;
        while (t && !gql_same(t->name, d->name))
            t = t->next;
        for (const struct gql_directive *o = list; o != d; o = o->next)
            if (gql_same(o->name, d->name))
                gql_blame(c->e, d->place, "@%.*s is there twice", SHOW(d->name));
        if (!t) {
            gql_blame(c->e, d->place, "there is no directive @%.*s", SHOW(d->name));
            continue;
        }
        const struct gql_enum_value *l = t->locations;
        while (l && !(where && slice_is(l->name, where)))
            l = l->next;
        if (!l)
            gql_blame(c->e, d->place, "@%.*s cannot stand here", SHOW(d->name));
        walk_arguments(c, d->args, t->args, d->name, d->place);
    }
}

/* --- selections --- */

static void walk(struct check *c, struct gql_selection *list, const struct gql_type *parent);

static void walk_field(struct check *c, struct gql_selection *s, const struct gql_type *parent)
{
    char text[128];
    walk_directives(c, s->directives, "FIELD");
    s->parent = parent;
    s->field = parent ? gql_field_of(c->s, parent, s->name) : NULL;
    if (!s->field) {
        if (parent)
            gql_blame(c->e, s->place, "there is no field '%.*s' in %.*s", SHOW(s->name),
                      SHOW(parent->name));
        for (const struct gql_value *v = s->args; v; v = v->next)
            walk_value(c, v, NULL, false);
        walk(c, s->child, NULL);
        return;
    }
    walk_arguments(c, s->args, s->field->args, s->name, s->place);
    const bool leaf = gql_is_leaf(s->field->type);
    if (leaf && s->child)
        gql_blame(c->e, s->place, "'%.*s' is %s and has no fields", SHOW(s->name),
                  gql_type_text(s->field->type, text));
    else if (!leaf && !s->child)
        gql_blame(c->e, s->place, "'%.*s' is %s: say which of its fields, as in %.*s { ... }",
                  SHOW(s->name), gql_type_text(s->field->type, text), SHOW(s->name));
    walk(c, s->child, leaf ? NULL : gql_type_inner(s->field->type));
}

/* The type that a fragment is on; without one its parent. */
static const struct gql_type *condition(struct check *c, struct slice on, struct gql_place place,
                                        const struct gql_type *parent)
{
    const struct gql_type *t = on.p ? gql_type_named(c->s, on) : parent;
    if (on.p && !t)
        gql_blame(c->e, place, "there is no type '%.*s'", SHOW(on));
    else if (t && t->kind != GQL_OBJECT)
        gql_blame(c->e, place, "%.*s has no fields, so no fragment can be on it", SHOW(t->name));
    else if (t && parent && t != parent)
        gql_blame(c->e, place, "a fragment on %.*s can never be in %.*s", SHOW(t->name),
                  SHOW(parent->name));
    else
        return t;
    return NULL;
}

static void walk_spread(struct check *c, struct gql_selection *s, const struct gql_type *parent)
{
    struct gql_fragment *f = c->d->fragments;
    walk_directives(c, s->directives, "FRAGMENT_SPREAD");
    size_t n = 1;
    for (; f && !gql_same(f->name, s->name); f = f->next)
        n++;
    if (!gql_may_compare(c->e, n, s->name, s->place))
        return;
    s->fragment = f;
    s->parent = parent;
    if (!f) {
        gql_blame(c->e, s->place, "there is no fragment '%.*s'", SHOW(s->name));
        return;
    }
    if (f->open) {
        gql_blame(c->e, s->place, "the fragment '%.*s' has itself in it", SHOW(f->name));
        return;
    }
    const struct gql_type *t = condition(c, f->on, s->place, parent);
    if (f->seen == c->number)
        return;
    f->seen = c->number;
    f->open = true;
    walk_directives(c, f->directives, "FRAGMENT_DEFINITION");
    walk(c, f->child, t);
    f->open = false;
}

static void walk(struct check *c, struct gql_selection *s, const struct gql_type *parent)
{
    if (s && ++c->depth > GQL_NEST_MAX) {
        gql_blame(c->e, s->place, "the query is nested deeper than %d", GQL_NEST_MAX);
        c->depth--;
        return;
    }
    const struct gql_selection *first = s;
    for (; s && c->e->n < GQL_ERRORS_MAX; s = s->next) {
        if (!gql_may_compare(c->e, 1, s->name, s->place))
            break;
        if (++c->visits > GQL_VISITS_MAX) {
            gql_blame(c->e, s->place, "the document has too many operations and fragments");
            break;
        }
        if (s->kind == GQL_FIELD) {
            walk_field(c, s, parent);
        } else if (s->kind == GQL_SPREAD) {
            walk_spread(c, s, parent);
        } else {
            walk_directives(c, s->directives, "INLINE_FRAGMENT");
            s->parent = parent;
            walk(c, s->child, condition(c, s->name, s->place, parent));
        }
    }
    if (first)
        c->depth--;
}

/* --- definitions --- */

static void walk_variables(struct check *c)
{
    char text[128];
    size_t n = 0;
    for (struct gql_variable *v = c->op->variables; v; v = v->next) {
        if (!gql_may_compare(c->e, ++n, v->name, v->place))
            return;
        for (const struct gql_variable *o = c->op->variables; o != v; o = o->next)
            if (gql_same(o->name, v->name))
                gql_blame(c->e, v->place, "the variable $%.*s is there twice", SHOW(v->name));
        walk_directives(c, v->directives, "VARIABLE_DEFINITION");
        v->type = gql_type_of(c->s, v->ref, c->e->a);
        if (!v->type)
            gql_blame(c->e, v->place, "$%.*s: there is no such type", SHOW(v->name));
        else if (!gql_is_leaf(v->type)) {
            gql_blame(c->e, v->place, "$%.*s: a variable cannot be %s", SHOW(v->name),
                      gql_type_text(v->type, text));
            v->type = NULL;
        } else if (v->preset && !gql_literal_fits(v->preset, v->type))
            gql_blame(c->e, v->preset->place, "$%.*s: the default is no %s", SHOW(v->name),
                      gql_type_text(v->type, text));
    }
}

static void check_names(struct check *c)
{
    size_t n = 0;
    for (const struct gql_operation *o = c->d->operations; o; o = o->next) {
        if (!gql_may_compare(c->e, ++n, o->name, o->place))
            return;
        if (!o->name.p && (o != c->d->operations || o->next))
            gql_blame(c->e, o->place, "an operation without a name must be the only one");
        for (const struct gql_operation *b = c->d->operations; b != o; b = b->next)
            if (o->name.p && b->name.p && gql_same(b->name, o->name))
                gql_blame(c->e, o->place, "there are two operations '%.*s'", SHOW(o->name));
    }
    n = 0;
    for (const struct gql_fragment *f = c->d->fragments; f; f = f->next) {
        if (!gql_may_compare(c->e, ++n, f->name, f->place))
            return;
        for (const struct gql_fragment *b = c->d->fragments; b != f; b = b->next)
            if (gql_same(b->name, f->name))
                gql_blame(c->e, f->place, "there are two fragments '%.*s'", SHOW(f->name));
        (void)condition(c, f->on, f->place, NULL);
    }
}

int gql_validate(const struct gql_schema *s, struct gql_document *d, struct gql_errors *errors)
{
    struct check c = { .s = s, .d = d, .e = errors };
    check_names(&c);
    for (c.op = d->operations; c.op && errors->n < GQL_ERRORS_MAX; c.op = c.op->next) {
        c.number++;
        const struct gql_type *root = c.op->kind == GQL_QUERY ? s->query : NULL;
        walk_directives(&c, c.op->directives, "QUERY");
        walk_variables(&c);
        walk(&c, c.op->child, root);
        for (const struct gql_variable *v = c.op->variables; v; v = v->next)
            if (!v->used)
                gql_blame(errors, v->place, "the variable $%.*s is never used", SHOW(v->name));
        if (errors->n == 0 && root)
            gql_check_overlap(c.op, &c.fields, errors);
    }
    for (const struct gql_fragment *f = d->fragments; f; f = f->next)
        if (!f->seen)
            gql_blame(errors, f->place, "the fragment '%.*s' is never used", SHOW(f->name));
    return errors->n || errors->a->failed ? -1 : 0;
}
