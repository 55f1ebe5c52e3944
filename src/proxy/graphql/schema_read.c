/*
 * SDL: definitions of types, fields and directives, each checked for what can be seen where it
 * stands. schema.c looks at what they say about each other. Tested in
 * tests/unit/proxy/graphql/schema.c.
 */
#include "proxy/graphql/parse.h"
#include "proxy/graphql/schema.h"

struct sdl {
    struct gql_parser p;
    struct gql_schema *s;
    bool own;
    gql_service_fn *service;
    void *user;
};

static struct slice description(struct sdl *r)
{
    struct slice text = { NULL, 0 };
    if (r->p.at.kind == GQL_TOKEN_STRING) {
        text = r->p.at.text;
        gql_parser_step(&r->p);
    }
    return text;
}

static void blame(struct sdl *r, struct gql_place at, const char *what, struct slice name)
{
    gql_blame(r->p.errors, at, "%s '%.*s'", what, (int)(name.len > 60 ? 60 : name.len), name.p);
}

static struct slice new_name(struct sdl *r)
{
    struct gql_place at = r->p.at.place;
    struct slice name = gql_parser_name(&r->p);
    if (!r->own && name.len >= 2 && memcmp(name.p, "__", 2) == 0)
        blame(r, at, "names that begin with __ are the language's own:", name);
    return name;
}

/* --- directives --- */

static struct slice text_of(struct sdl *r, const struct gql_directive *d, const char *name,
                            bool needed)
{
    const struct gql_value *v = gql_named(d->args, name);
    if (v && v->kind == GQL_STRING)
        return v->text;
    if (v || needed)
        gql_blame(r->p.errors, d->place, "@%.*s needs a string as its %s", (int)d->name.len,
                  d->name.p, name);
    return (struct slice){ NULL, 0 };
}

static void known_arguments(struct sdl *r, const struct gql_directive *d, const char *names)
{
    for (const struct gql_value *v = d->args; v; v = v->next) {
        char want[64];
        size_t n = v->name.len < sizeof want - 2 ? v->name.len : sizeof want - 3;
        want[0] = ' ';
        memcpy(want + 1, v->name.p, n);
        memcpy(want + 1 + n, " ", 2);
        if (!strstr(names, want))
            gql_blame(r->p.errors, v->place, "@%.*s has no argument '%.*s'; it has%s",
                      (int)d->name.len, d->name.p, (int)n, v->name.p, names);
    }
}

static void path(struct sdl *r, const struct gql_directive *d, struct slice text,
                 struct gql_path *out)
{
    while (text.len > 0) {
        const char *dot = memchr(text.p, '.', text.len);
        size_t n = dot ? (size_t)(dot - text.p) : text.len;
        if (n == 0 || n > 255 || out->n == GQL_PATH_MAX || (dot && n + 1 == text.len)) {
            gql_blame(r->p.errors, d->place,
                      "a path is up to %d names with dots between them, as in \"profile.name\"",
                      GQL_PATH_MAX);
            return;
        }
        out->name[out->n++] = arena_copy(r->p.errors->a, (struct slice){ text.p, n }).p;
        n += dot != NULL;
        text = (struct slice){ text.p + n, text.len - n };
    }
}

static void get(struct sdl *r, const struct gql_directive *d, struct gql_field *f)
{
    struct gql_get *g = gql_parser_node(&r->p, sizeof *g);
    struct firn_diag why = { 0, "" };
    if (!g)
        return;
    known_arguments(r, d, " service path at ");
    g->service = text_of(r, d, "service", true);
    struct slice target = text_of(r, d, "path", true);
    path(r, d, text_of(r, d, "at", false), &g->at);
    if (!g->service.p || !target.p)
        return;
    if (template_read(target, &g->target, &why) != 0)
        gql_blame(r->p.errors, d->place, "path: %s", why.text);
    int at = r->service(r->user, g->service);
    if (at < 0)
        blame(r, d->place, "there is no service", g->service);
    g->backend = (size_t)at;
    f->get = g;
    for (size_t i = 0; i < g->target.n; i++) {
        struct slice name = g->target.name[i];
        if (name.p[0] == '.' ? name.len > 1 : name.len > 7 && memcmp(name.p, "header:", 7) == 0)
            continue;
        if (!gql_argument_named(f->args, name))
            gql_blame(r->p.errors, d->place,
                      "path: {%.*s} is no argument of the field; {.%.*s} is a member of its object",
                      (int)name.len, name.p, (int)name.len, name.p);
    }
}

static struct slice deprecation(struct sdl *r, const struct gql_directive *d)
{
    struct slice reason = text_of(r, d, "reason", false);
    known_arguments(r, d, " reason ");
    return reason.p ? reason : (struct slice){ "No longer supported", 19 };
}

static void strange(struct sdl *r, const struct gql_directive *d)
{
    blame(r, d->place, "this directive has no meaning here: @", d->name);
}

static struct slice only_deprecated(struct sdl *r, const struct gql_directive *d)
{
    struct slice reason = { NULL, 0 };
    for (; d; d = d->next)
        if (slice_is(d->name, "deprecated"))
            reason = deprecation(r, d);
        else
            strange(r, d);
    return reason;
}

/* --- definitions --- */

static struct gql_argument *arguments(struct sdl *r)
{
    struct gql_argument *first = NULL, **at = &first;
    if (!gql_parser_take(&r->p, '('))
        return NULL;
    while (!r->p.failed && !gql_parser_take(&r->p, ')')) {
        struct gql_argument *a = gql_parser_node(&r->p, sizeof *a);
        if (!a)
            break;
        a->description = description(r);
        a->place = r->p.at.place;
        a->name = new_name(r);
        if (gql_argument_named(first, a->name))
            blame(r, a->place, "there are two arguments", a->name);
        gql_parser_need(&r->p, ':');
        a->ref = gql_parser_ref(&r->p);
        if (gql_parser_take(&r->p, '='))
            a->preset = gql_parser_value(&r->p, true);
        a->deprecated = only_deprecated(r, gql_parser_directives(&r->p, true));
        *at = a;
        at = &a->next;
    }
    if (!first)
        gql_parser_fail(&r->p, "an argument");
    return first;
}

static void field_directives(struct sdl *r, struct gql_field *f, const struct gql_directive *d)
{
    for (; d; d = d->next) {
        if (slice_is(d->name, "get") && !f->get) {
            get(r, d, f);
        } else if (slice_is(d->name, "from") && !f->from.n) {
            known_arguments(r, d, " path ");
            path(r, d, text_of(r, d, "path", true), &f->from);
        } else if (slice_is(d->name, "deprecated")) {
            f->deprecated = deprecation(r, d);
        } else {
            strange(r, d);
        }
    }
    if (f->get && f->from.n)
        blame(r, f->place, "either @get or @from, not both, for", f->name);
    if (!f->from.n) {
        f->from.n = 1;
        f->from.name[0] = arena_copy(r->p.errors->a, f->name).p;
    }
}

static struct gql_field *fields(struct sdl *r, const struct gql_type *t)
{
    struct gql_field *first = NULL, **at = &first;
    gql_parser_need(&r->p, '{');
    while (!r->p.failed && !gql_parser_take(&r->p, '}')) {
        struct gql_field *f = gql_parser_node(&r->p, sizeof *f);
        if (!f)
            break;
        f->description = description(r);
        f->place = r->p.at.place;
        f->name = new_name(r);
        for (const struct gql_field *o = first; o; o = o->next)
            if (gql_same(o->name, f->name))
                blame(r, f->place, "there are two fields", f->name);
        f->args = arguments(r);
        gql_parser_need(&r->p, ':');
        f->ref = gql_parser_ref(&r->p);
        field_directives(r, f, gql_parser_directives(&r->p, true));
        *at = f;
        at = &f->next;
    }
    if (!first && !r->p.failed)
        blame(r, t->place, "a type needs a field:", t->name);
    return first;
}

static struct gql_enum_value *values(struct sdl *r)
{
    struct gql_enum_value *first = NULL, **at = &first;
    gql_parser_need(&r->p, '{');
    while (!r->p.failed && !gql_parser_take(&r->p, '}')) {
        struct gql_enum_value *v = gql_parser_node(&r->p, sizeof *v);
        if (!v)
            break;
        v->description = description(r);
        struct gql_place place = r->p.at.place;
        v->name = new_name(r);
        if (slice_is(v->name, "true") || slice_is(v->name, "false") || slice_is(v->name, "null"))
            blame(r, place, "an enum cannot have the value", v->name);
        for (const struct gql_enum_value *o = first; o; o = o->next)
            if (gql_same(o->name, v->name))
                blame(r, place, "there are two values", v->name);
        v->deprecated = only_deprecated(r, gql_parser_directives(&r->p, true));
        *at = v;
        at = &v->next;
    }
    if (!first)
        gql_parser_fail(&r->p, "a value of the enum");
    return first;
}

static void type(struct sdl *r, enum gql_type_kind kind, struct slice about)
{
    struct gql_type *t = gql_parser_node(&r->p, sizeof *t), **at = &r->s->types;
    gql_parser_step(&r->p);
    if (!t)
        return;
    t->kind = kind;
    t->description = about;
    t->place = r->p.at.place;
    t->name = new_name(r);
    if (gql_type_named(r->s, t->name))
        blame(r, t->place, "there are two types", t->name);
    if (kind == GQL_OBJECT && gql_parser_word(&r->p, "implements"))
        blame(r, r->p.at.place, "interfaces are not supported; write the fields into", t->name);
    const struct gql_directive *d = r->p.failed ? NULL : gql_parser_directives(&r->p, true);
    for (; d; d = d->next)
        if (kind == GQL_SCALAR && slice_is(d->name, "specifiedBy"))
            t->specified_by = text_of(r, d, "url", true);
        else
            strange(r, d);
    while (*at)
        at = &(*at)->next;
    *at = t;
    if (kind == GQL_OBJECT)
        t->fields = fields(r, t);
    else if (kind == GQL_ENUM)
        t->values = values(r);
}

static void schema(struct sdl *r, struct slice about)
{
    r->s->description = about;
    gql_parser_step(&r->p);
    for (const struct gql_directive *d = gql_parser_directives(&r->p, true); d; d = d->next)
        strange(r, d);
    gql_parser_need(&r->p, '{');
    while (!r->p.failed && !gql_parser_take(&r->p, '}')) {
        struct gql_place place = r->p.at.place;
        struct slice what = gql_parser_name(&r->p);
        gql_parser_need(&r->p, ':');
        struct slice name = gql_parser_name(&r->p);
        if (!slice_is(what, "query"))
            blame(r, place, "this gateway's GraphQL reads only: remove", what);
        /* The type may follow: schema.c looks for it. */
        struct gql_type *t = gql_parser_node(&r->p, sizeof *t);
        if (t) {
            t->name = name;
            t->place = place;
            r->s->query = t;
        }
    }
}

static void directive(struct sdl *r, struct slice about)
{
    struct gql_directive_type *d = gql_parser_node(&r->p, sizeof *d), **at = &r->s->directives;
    gql_parser_step(&r->p);
    gql_parser_need(&r->p, '@');
    struct gql_place place = r->p.at.place;
    struct slice name = gql_parser_name(&r->p);
    struct gql_argument *args = arguments(r);
    struct gql_enum_value *first = NULL, **to = &first;
    if (gql_parser_word(&r->p, "repeatable"))
        gql_parser_step(&r->p);
    if (!gql_parser_word(&r->p, "on"))
        gql_parser_fail(&r->p, "on");
    gql_parser_step(&r->p);
    (void)gql_parser_take(&r->p, '|');
    do {
        struct gql_enum_value *v = gql_parser_node(&r->p, sizeof *v);
        if (!v)
            return;
        v->name = gql_parser_name(&r->p);
        *to = v;
        to = &v->next;
    } while (gql_parser_take(&r->p, '|'));
    /* Those of the gateway may be declared, for editors; clients do not see them. */
    if (!r->own && !slice_is(name, "get") && !slice_is(name, "from"))
        blame(r, place, "this gateway knows @get and @from, not @", name);
    if (!r->own || !d)
        return;
    *d = (struct gql_directive_type){ name, about, args, first, NULL };
    while (*at)
        at = &(*at)->next;
    *at = d;
}

static void definition(struct sdl *r)
{
    static const struct {
        const char *word, *why;
    } refused[] = {
        { "interface", "interfaces are not supported; write the fields into each type" },
        { "union", "unions are not supported; use a type with a field for each member" },
        { "input", "input types are not supported; use arguments" },
        { "extend", "extensions are not supported; write it into the definition" },
    };
    struct slice about = description(r);
    if (gql_parser_word(&r->p, "type")) {
        type(r, GQL_OBJECT, about);
    } else if (gql_parser_word(&r->p, "enum")) {
        type(r, GQL_ENUM, about);
    } else if (gql_parser_word(&r->p, "scalar")) {
        type(r, GQL_SCALAR, about);
    } else if (gql_parser_word(&r->p, "schema")) {
        schema(r, about);
    } else if (gql_parser_word(&r->p, "directive")) {
        directive(r, about);
    } else {
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
            if (gql_parser_word(&r->p, refused[i].word)) {
                gql_blame(r->p.errors, r->p.at.place, "%s", refused[i].why);
                r->p.failed = true;
                return;
            }
        gql_parser_fail(&r->p, "type, enum, scalar, schema or directive");
    }
}

int gql_schema_add(struct gql_schema *s, const char *text, size_t len, bool own,
                   gql_service_fn *service, void *user, struct gql_errors *errors)
{
    struct sdl r = { .s = s, .own = own, .service = service, .user = user };
    gql_parser_init(&r.p, text, len, errors);
    while (!r.p.failed && r.p.at.kind != GQL_TOKEN_END)
        definition(&r);
    return r.p.failed || errors->n ? -1 : 0;
}
