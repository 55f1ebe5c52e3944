/* Documents of GraphQL, by recursive descent. Tested in tests/unit/proxy/graphql/parse.c. */
#include "proxy/graphql/parse.h"

void gql_parser_step(struct gql_parser *p)
{
    if (p->failed || gql_lexer_next(&p->lexer, &p->at) != 0) {
        p->failed = true;
        p->at.kind = GQL_TOKEN_END;
    }
}

void gql_parser_init(struct gql_parser *p, const char *text, size_t len, struct gql_errors *errors)
{
    *p = (struct gql_parser){ .errors = errors };
    gql_lexer_init(&p->lexer, text, len, errors);
    gql_parser_step(p);
}

void gql_parser_fail(struct gql_parser *p, const char *expected)
{
    struct slice found = p->at.kind == GQL_TOKEN_END ? (struct slice){ "the end", 7 } : p->at.text;
    if (!p->failed)
        gql_blame(p->errors, p->at.place, "%s is expected here, not %.*s", expected,
                  (int)(found.len > 40 ? 40 : found.len), found.p ? found.p : "");
    p->failed = true;
    p->at.kind = GQL_TOKEN_END;
}

void *gql_parser_node(struct gql_parser *p, size_t size)
{
    void *n = arena_get(p->errors->a, size);
    if (!n && !p->failed) {
        gql_blame(p->errors, p->at.place, "the document is too large");
        p->failed = true;
        p->at.kind = GQL_TOKEN_END;
    }
    return n;
}

bool gql_parser_is(const struct gql_parser *p, char c)
{
    return p->at.kind == GQL_TOKEN_PUNCTUATION && p->at.text.p[0] == c;
}

bool gql_parser_take(struct gql_parser *p, char c)
{
    if (!gql_parser_is(p, c))
        return false;
    gql_parser_step(p);
    return true;
}

void gql_parser_need(struct gql_parser *p, char c)
{
    if (!gql_parser_take(p, c))
        gql_parser_fail(p, (char[]){ c, '\0' });
}

bool gql_parser_word(const struct gql_parser *p, const char *word)
{
    return p->at.kind == GQL_TOKEN_NAME && slice_is(p->at.text, word);
}

struct slice gql_parser_name(struct gql_parser *p)
{
    struct slice name = p->at.text;
    if (p->at.kind != GQL_TOKEN_NAME) {
        gql_parser_fail(p, "a name");
        return (struct slice){ "", 0 };
    }
    gql_parser_step(p);
    return name;
}

static bool enter(struct gql_parser *p)
{
    if (++p->depth <= GQL_DEPTH_MAX)
        return true;
    if (!p->failed)
        gql_blame(p->errors, p->at.place, "this is nested deeper than %d", GQL_DEPTH_MAX);
    p->failed = true;
    p->at.kind = GQL_TOKEN_END;
    return false;
}

/* --- values and types --- */

/* "name: value" up to `end`. */
static struct gql_value *members(struct gql_parser *p, char end, bool constant)
{
    struct gql_value *first = NULL, **at = &first;
    while (!p->failed && !gql_parser_take(p, end)) {
        struct gql_place place = p->at.place;
        struct slice name = gql_parser_name(p);
        gql_parser_need(p, ':');
        *at = gql_parser_value(p, constant);
        if (!*at)
            break;
        (*at)->name = name;
        (*at)->place = place;
        at = &(*at)->next;
    }
    return first;
}

static void scalar(struct gql_parser *p, struct gql_value *v)
{
    static const enum gql_value_kind kinds[] = { [GQL_TOKEN_NAME] = GQL_ENUM_VALUE,
                                                 [GQL_TOKEN_INT] = GQL_INT,
                                                 [GQL_TOKEN_FLOAT] = GQL_FLOAT,
                                                 [GQL_TOKEN_STRING] = GQL_STRING };
    if (p->at.kind == GQL_TOKEN_END || p->at.kind == GQL_TOKEN_PUNCTUATION) {
        gql_parser_fail(p, "a value");
        return;
    }
    v->kind = kinds[p->at.kind];
    if (gql_parser_word(p, "true") || gql_parser_word(p, "false"))
        v->kind = GQL_BOOLEAN;
    else if (gql_parser_word(p, "null"))
        v->kind = GQL_NULL;
    v->text = p->at.text;
    gql_parser_step(p);
}

struct gql_value *gql_parser_value(struct gql_parser *p, bool constant)
{
    struct gql_value *v = gql_parser_node(p, sizeof *v);
    if (!v || !enter(p))
        return NULL;
    v->place = p->at.place;
    if (gql_parser_is(p, '$') && constant) {
        gql_parser_fail(p, "a value without variables");
    } else if (gql_parser_take(p, '$')) {
        v->kind = GQL_VARIABLE;
        v->text = gql_parser_name(p);
    } else if (gql_parser_take(p, '[')) {
        struct gql_value **at = &v->child;
        v->kind = GQL_LIST_VALUE;
        while (!p->failed && !gql_parser_take(p, ']')) {
            *at = gql_parser_value(p, constant);
            if (!*at)
                break;
            at = &(*at)->next;
        }
    } else if (gql_parser_take(p, '{')) {
        v->kind = GQL_OBJECT_VALUE;
        v->child = members(p, '}', constant);
    } else {
        scalar(p, v);
    }
    p->depth--;
    return v;
}

struct gql_ref *gql_parser_ref(struct gql_parser *p)
{
    struct gql_ref *r = gql_parser_node(p, sizeof *r);
    if (!r || !enter(p))
        return NULL;
    r->place = p->at.place;
    if (gql_parser_take(p, '[')) {
        r->kind = GQL_REF_LIST;
        r->of = gql_parser_ref(p);
        gql_parser_need(p, ']');
    } else {
        r->name = gql_parser_name(p);
    }
    p->depth--;
    if (!gql_parser_take(p, '!'))
        return r;
    struct gql_ref *non_null = gql_parser_node(p, sizeof *non_null);
    if (non_null)
        *non_null = (struct gql_ref){ GQL_REF_NON_NULL, { NULL, 0 }, r, r->place };
    return non_null;
}

static struct gql_value *arguments(struct gql_parser *p, bool constant)
{
    if (!gql_parser_take(p, '('))
        return NULL;
    struct gql_value *first = members(p, ')', constant);
    if (!first)
        gql_parser_fail(p, "an argument");
    return first;
}

struct gql_directive *gql_parser_directives(struct gql_parser *p, bool constant)
{
    struct gql_directive *first = NULL, **at = &first;
    while (!p->failed && gql_parser_is(p, '@')) {
        struct gql_directive *d = gql_parser_node(p, sizeof *d);
        if (!d)
            break;
        d->place = p->at.place;
        gql_parser_step(p);
        d->name = gql_parser_name(p);
        d->args = arguments(p, constant);
        *at = d;
        at = &d->next;
    }
    return first;
}

/* --- selections --- */

static struct gql_selection *selections(struct gql_parser *p);

static void field(struct gql_parser *p, struct gql_selection *s)
{
    s->name = s->key = gql_parser_name(p);
    if (gql_parser_take(p, ':'))
        s->name = gql_parser_name(p);
    s->args = arguments(p, false);
    s->directives = gql_parser_directives(p, false);
    if (gql_parser_is(p, '{'))
        s->child = selections(p);
}

static void fragment_use(struct gql_parser *p, struct gql_selection *s)
{
    s->kind = GQL_SPREAD;
    if (p->at.kind == GQL_TOKEN_NAME && !gql_parser_word(p, "on")) {
        s->name = gql_parser_name(p);
        s->directives = gql_parser_directives(p, false);
        return;
    }
    s->kind = GQL_INLINE;
    if (gql_parser_word(p, "on")) {
        gql_parser_step(p);
        s->name = gql_parser_name(p);
    }
    s->directives = gql_parser_directives(p, false);
    s->child = selections(p);
}

static struct gql_selection *selections(struct gql_parser *p)
{
    struct gql_selection *first = NULL, **at = &first;
    if (!enter(p))
        return NULL;
    gql_parser_need(p, '{');
    while (!p->failed && !gql_parser_take(p, '}')) {
        struct gql_selection *s = gql_parser_node(p, sizeof *s);
        if (!s)
            break;
        s->place = p->at.place;
        if (gql_parser_take(p, '.'))
            fragment_use(p, s);
        else
            field(p, s);
        *at = s;
        at = &s->next;
    }
    if (!first)
        gql_parser_fail(p, "a field");
    p->depth--;
    return first;
}

/* --- definitions --- */

static struct gql_variable *variables(struct gql_parser *p)
{
    struct gql_variable *first = NULL, **at = &first;
    if (!gql_parser_take(p, '('))
        return NULL;
    while (!p->failed && !gql_parser_take(p, ')')) {
        struct gql_variable *v = gql_parser_node(p, sizeof *v);
        if (!v)
            break;
        v->place = p->at.place;
        gql_parser_need(p, '$');
        v->name = gql_parser_name(p);
        gql_parser_need(p, ':');
        v->ref = gql_parser_ref(p);
        if (gql_parser_take(p, '='))
            v->preset = gql_parser_value(p, true);
        v->directives = gql_parser_directives(p, true);
        *at = v;
        at = &v->next;
    }
    if (!first)
        gql_parser_fail(p, "a variable");
    return first;
}

static struct gql_operation *operation(struct gql_parser *p)
{
    static const char *const kinds[] = {
        [GQL_QUERY] = "query", [GQL_MUTATION] = "mutation", [GQL_SUBSCRIPTION] = "subscription"
    };
    struct gql_operation *o = gql_parser_node(p, sizeof *o);
    if (!o)
        return NULL;
    o->place = p->at.place;
    if (!gql_parser_is(p, '{')) {
        size_t i = 0;
        while (i < 3 && !gql_parser_word(p, kinds[i]))
            i++;
        if (i == 3) {
            gql_parser_fail(p, "query, fragment or {");
            return NULL;
        }
        o->kind = (enum gql_operation_kind)i;
        gql_parser_step(p);
        if (p->at.kind == GQL_TOKEN_NAME)
            o->name = gql_parser_name(p);
        o->variables = variables(p);
        o->directives = gql_parser_directives(p, false);
    }
    o->child = selections(p);
    return o;
}

static struct gql_fragment *fragment(struct gql_parser *p)
{
    struct gql_fragment *f = gql_parser_node(p, sizeof *f);
    if (!f)
        return NULL;
    f->place = p->at.place;
    gql_parser_step(p);
    if (gql_parser_word(p, "on"))
        gql_parser_fail(p, "the name of the fragment");
    f->name = gql_parser_name(p);
    if (!gql_parser_word(p, "on"))
        gql_parser_fail(p, "on");
    gql_parser_step(p);
    f->on = gql_parser_name(p);
    f->directives = gql_parser_directives(p, false);
    f->child = selections(p);
    return f;
}

int gql_parse(const char *text, size_t len, struct gql_document *out, struct gql_errors *errors)
{
    struct gql_parser p;
    *out = (struct gql_document){ NULL, NULL };
    struct gql_operation **o = &out->operations;
    struct gql_fragment **f = &out->fragments;
    gql_parser_init(&p, text, len, errors);
    while (!p.failed && p.at.kind != GQL_TOKEN_END) {
        if (gql_parser_word(&p, "fragment")) {
            if ((*f = fragment(&p)) != NULL)
                f = &(*f)->next;
        } else if ((*o = operation(&p)) != NULL) {
            o = &(*o)->next;
        }
    }
    if (!p.failed && !out->operations && !out->fragments)
        gql_parser_fail(&p, "a query");
    return p.failed ? -1 : 0;
}
