/* Values of GraphQL. Tested in tests/unit/proxy/graphql/values.c. */
#include "proxy/graphql/values.h"
#include "proxy/json_pick.h"
#include "wire/json_write.h"

#include <math.h>
#include <stdlib.h>

enum { NUMBER_BUF = 64 };

/* --- numbers --- */

bool gql_number(struct slice text, double *out)
{
    char copy[NUMBER_BUF], *end;
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    *out = strtod(copy, &end);
    return *end == '\0' && isfinite(*out);
}

static bool is_int32(double d)
{
    return d >= -2147483648.0 && d <= 2147483647.0 && trunc(d) == d;
}

/* Digits alone, and a sign. */
static bool is_integer(struct slice text)
{
    size_t i = text.len > 0 && text.p[0] == '-';
    if (i == text.len)
        return false;
    while (i < text.len && text.p[i] >= '0' && text.p[i] <= '9')
        i++;
    return i == text.len;
}

static bool has_value(const struct gql_type *t, struct slice name)
{
    const struct gql_enum_value *v = t->values;
    while (v && !gql_same(v->name, name))
        v = v->next;
    return v != NULL;
}

/* --- literals --- */

static bool scalar_fits(const struct gql_value *v, const struct gql_type *t)
{
    double d;
    if (t->kind == GQL_ENUM)
        return v->kind == GQL_ENUM_VALUE && has_value(t, v->text);
    switch (t->scalar) {
    case GQL_SCALAR_INT:
        return v->kind == GQL_INT && gql_number(v->text, &d) && is_int32(d);
    case GQL_SCALAR_FLOAT:
        return (v->kind == GQL_INT || v->kind == GQL_FLOAT) && gql_number(v->text, &d);
    case GQL_SCALAR_STRING:
        return v->kind == GQL_STRING;
    case GQL_SCALAR_BOOLEAN:
        return v->kind == GQL_BOOLEAN;
    case GQL_SCALAR_ID:
        return v->kind == GQL_STRING || v->kind == GQL_INT;
    case GQL_CUSTOM:
        return true;
    }
    return false;
}

bool gql_literal_fits(const struct gql_value *v, const struct gql_type *t)
{
    if (v->kind == GQL_VARIABLE)
        return true; /* validate.c compares its type */
    if (t->kind == GQL_NON_NULL)
        return v->kind != GQL_NULL && gql_literal_fits(v, t->of);
    if (v->kind == GQL_NULL)
        return true;
    if (t->kind != GQL_LIST)
        return scalar_fits(v, t);
    if (v->kind != GQL_LIST_VALUE)
        return gql_literal_fits(v, t->of);
    for (v = v->child; v; v = v->next)
        if (!gql_literal_fits(v, t->of))
            return false;
    return true;
}

const struct gql_value *gql_fill(const struct gql_value *v, const struct gql_value *variables,
                                 struct gql_errors *e)
{
    if (v->kind == GQL_VARIABLE) {
        size_t n = 1;
        for (; variables && !gql_same(variables->name, v->text); variables = variables->next)
            n++;
        return gql_may_compare(e, n, v->text, v->place) ? variables : NULL;
    }
    if (!v->child)
        return v;
    struct gql_value *out = arena_get(e->a, sizeof *out);
    if (!out)
        return NULL;
    *out = *v;
    struct gql_value **at = &out->child;
    for (const struct gql_value *c = v->child; c; c = c->next) {
        const struct gql_value *filled = gql_fill(c, variables, e);
        if (!filled && v->kind == GQL_OBJECT_VALUE)
            continue; /* as if the member were not there */
        *at = arena_get(e->a, sizeof **at);
        if (!*at)
            return NULL;
        if (filled)
            **at = *filled;
        else
            (*at)->kind = GQL_NULL;
        (*at)->name = c->name;
        (*at)->next = NULL;
        at = &(*at)->next;
    }
    *at = NULL;
    return out;
}

bool gql_null_fits(const struct gql_value *v, const struct gql_type *t)
{
    if (t->kind == GQL_NON_NULL)
        return v->kind != GQL_NULL && gql_null_fits(v, t->of);
    if (t->kind == GQL_LIST && v->kind == GQL_LIST_VALUE)
        for (const struct gql_value *c = v->child; c; c = c->next)
            if (!gql_null_fits(c, t->of))
                return false;
    return true;
}

/* --- variables --- */

static struct slice text_of(struct slice json, struct arena *a)
{
    struct buf b;
    buf_init(&b, json.len + 1);
    struct slice out = { NULL, 0 };
    if (json_as_text(json, &b))
        out = arena_copy(a, (struct slice){ b.p, b.len });
    buf_done(&b);
    return out;
}

static const char *scalar_from_json(struct slice json, const struct gql_type *t,
                                    struct gql_value *v)
{
    const enum json_type type = json_type_of(json);
    double d;
    if (t->kind == GQL_ENUM) {
        v->kind = GQL_ENUM_VALUE;
        return type == JSON_STRING && has_value(t, v->text) ? NULL : "it is no value of the enum";
    }
    switch (t->scalar) {
    case GQL_SCALAR_INT:
        v->kind = GQL_INT;
        return type == JSON_NUMBER && gql_number(json, &d) && is_int32(d)
                   ? NULL
                   : "it is no whole number of 32 bits";
    case GQL_SCALAR_FLOAT:
        v->kind = GQL_FLOAT;
        return type == JSON_NUMBER && gql_number(json, &d) ? NULL : "it is no number";
    case GQL_SCALAR_STRING:
        v->kind = GQL_STRING;
        return type == JSON_STRING ? NULL : "it is no string";
    case GQL_SCALAR_BOOLEAN:
        v->kind = GQL_BOOLEAN;
        return type == JSON_BOOL ? NULL : "it is no boolean";
    case GQL_SCALAR_ID:
        v->kind = GQL_STRING;
        return type == JSON_STRING || (type == JSON_NUMBER && is_integer(json)) ? NULL
                                                                                : "it is no ID";
    case GQL_CUSTOM:
        v->kind = type == JSON_STRING   ? GQL_STRING
                  : type == JSON_NUMBER ? GQL_FLOAT
                  : type == JSON_BOOL   ? GQL_BOOLEAN
                                        : GQL_OBJECT_VALUE;
        return NULL;
    }
    return NULL;
}

const struct gql_value *gql_from_json(struct slice json, const struct gql_type *t, struct arena *a,
                                      const char **why)
{
    if (t->kind == GQL_NON_NULL) {
        if (json_type_of(json) != JSON_NULL)
            return gql_from_json(json, t->of, a, why);
        *why = "it must not be null";
        return NULL;
    }
    struct gql_value *v = arena_get(a, sizeof *v), **at;
    *why = "there is no memory left";
    if (!v)
        return NULL;
    if (json_type_of(json) == JSON_NULL) {
        v->kind = GQL_NULL;
    } else if (t->kind == GQL_LIST) {
        const bool one = json_type_of(json) != JSON_ARRAY;
        struct slice element = json;
        size_t place = 0;
        v->kind = GQL_LIST_VALUE;
        at = &v->child;
        while (one ? at == &v->child : json_each_element(json, &place, &element)) {
            const struct gql_value *c = gql_from_json(element, t->of, a, why);
            *at = c ? arena_get(a, sizeof **at) : NULL;
            if (!*at)
                return NULL;
            **at = *c;
            at = &(*at)->next;
        }
    } else {
        enum json_type type = json_type_of(json);
        if (type == JSON_STRING || type == JSON_NUMBER || type == JSON_BOOL)
            v->text = text_of(json, a);
        const char *wrong = scalar_from_json(json, t, v);
        if (wrong) {
            *why = wrong;
            return NULL;
        }
    }
    return v;
}

bool gql_as_text(const struct gql_value *v, struct buf *out)
{
    if (!v || v->kind == GQL_NULL || v->kind == GQL_LIST_VALUE || v->kind == GQL_OBJECT_VALUE)
        return false;
    if (v->text.len > 0)
        buf_add(out, v->text.p, v->text.len);
    return true;
}

/* --- answers --- */

static struct slice quoted(struct slice text, struct arena *a)
{
    char *p = arena_get(a, text.len + 2);
    if (!p)
        return (struct slice){ NULL, 0 };
    p[0] = p[text.len + 1] = '"';
    memcpy(p + 1, text.p, text.len);
    return (struct slice){ p, text.len + 2 };
}

static struct slice constant(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

/* As the reference implementation reads a number from a string, a boolean or a number. */
static bool loose_number(struct slice json, enum json_type type, double *out)
{
    if (type == JSON_BOOL) {
        *out = slice_is(json, "true");
        return true;
    }
    if (type == JSON_STRING && json.len > 2)
        json = (struct slice){ json.p + 1, json.len - 2 };
    else if (type != JSON_NUMBER)
        return false;
    for (size_t i = 0; i < json.len; i++) /* no hexadecimal, no nan */
        if (!strchr("0123456789+-.eE", json.p[i]))
            return false;
    return gql_number(json, out);
}

static struct slice number_leaf(struct slice json, enum json_type type, bool whole, struct arena *a,
                                const char **why)
{
    char text[NUMBER_BUF];
    struct buf b = { text, 0, sizeof text, sizeof text, false };
    double d;
    *why = whole ? "the service's value is no whole number of 32 bits"
                 : "the service's value is no number";
    if (!loose_number(json, type, &d) || (whole && !is_int32(d)))
        return (struct slice){ NULL, 0 };
    if (type == JSON_NUMBER && (!whole || is_integer(json)))
        return json;
    if (whole)
        buf_add_i64(&b, (int64_t)d);
    else
        buf_addf(&b, "%.17g", d);
    return arena_copy(a, (struct slice){ b.p, b.len });
}

struct slice gql_leaf(struct slice json, const struct gql_type *t, struct arena *a,
                      const char **why)
{
    static const struct slice none = { NULL, 0 };
    const enum json_type type = json_type_of(json);
    double d;
    if (t->kind == GQL_ENUM) {
        *why = "the service's value is none of the enum";
        return type == JSON_STRING && has_value(t, (struct slice){ json.p + 1, json.len - 2 })
                   ? json
                   : none;
    }
    switch (t->scalar) {
    case GQL_SCALAR_INT:
    case GQL_SCALAR_FLOAT:
        return number_leaf(json, type, t->scalar == GQL_SCALAR_INT, a, why);
    case GQL_SCALAR_STRING:
        *why = "the service's value is no string";
        return type == JSON_STRING                        ? json
               : type == JSON_NUMBER || type == JSON_BOOL ? quoted(json, a)
                                                          : none;
    case GQL_SCALAR_BOOLEAN:
        *why = "the service's value is no boolean";
        return type == JSON_BOOL                             ? json
               : type == JSON_NUMBER && gql_number(json, &d) ? constant(d != 0 ? "true" : "false")
                                                             : none;
    case GQL_SCALAR_ID:
        *why = "the service's value is no ID";
        return type == JSON_STRING                       ? json
               : type == JSON_NUMBER && is_integer(json) ? quoted(json, a)
                                                         : none;
    case GQL_CUSTOM:
        return json;
    }
    return none;
}

/* --- printing --- */

void gql_print(const struct gql_value *v, struct buf *out)
{
    const bool object = v->kind == GQL_OBJECT_VALUE;
    if (v->kind == GQL_STRING) {
        struct buf text;
        buf_init(&text, out->max);
        json_bytes(&text, NULL, v->text.p, v->text.len);
        buf_add(out, text.p, text.len);
        buf_done(&text);
    } else if (v->kind == GQL_LIST_VALUE || object) {
        buf_add_str(out, object ? "{" : "[");
        for (const struct gql_value *c = v->child; c; c = c->next) {
            if (c != v->child)
                buf_add_str(out, ", ");
            if (object) {
                buf_add(out, c->name.p, c->name.len);
                buf_add_str(out, ": ");
            }
            gql_print(c, out);
        }
        buf_add_str(out, object ? "}" : "]");
    } else {
        buf_add(out, v->text.p, v->text.len);
    }
}
