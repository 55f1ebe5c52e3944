/* Reads and checks graphql.schema. Tested in tests/integration/gateway_graphql.py. */
#include "proxy/config_graphql.h"
#include "proxy/text_file.h"

#include <stdlib.h>
#include <string.h>

static int service_at(void *user, struct slice name)
{
    const struct config *c = user;
    for (size_t i = 0; i < c->services.n; i++)
        if (slice_is(name, c->services.v[i].name))
            return (int)i;
    return -1;
}

int config_schema(const struct config *c, struct gql_schema *out, struct firn_diag *diag)
{
    struct gql_errors errors;
    size_t len = 0;
    struct firn_diag why = { 0, "" };
    char *text;
    *out = (struct gql_schema){ .types = NULL };
    int e = text_file_read(c->graphql.schema, GQL_SCHEMA_BYTES_MAX, &text, &len, &why);
    if (e)
        return config_fault(&c->base, "graphql.schema", e, diag, "%s", why.text);
    e = gql_schema_read(text, len, service_at, (void *)(uintptr_t)c, out, &errors);
    free(text);
    if (e == 0)
        return 0;
    const struct gql_error *first = errors.first;
    const char *name = strrchr(c->graphql.schema, '/');
    e = first ? config_fault(&c->base, "graphql.schema", FIRN_EFORMAT, diag, "%.60s:%u:%u: %s",
                             name ? name + 1 : c->graphql.schema, first->place.line,
                             first->place.column, first->text)
              : config_fault(&c->base, "graphql.schema", FIRN_ENOMEM, diag,
                             "the schema is too large, or there is no memory");
    gql_schema_free(out);
    return e;
}

int config_check_graphql(const struct config *c, struct firn_diag *diag)
{
    struct gql_schema s;
    for (size_t i = 0; i < c->routes.n; i++)
        if (c->routes.v[i].graphql && !c->graphql.schema)
            return config_fault_at(&c->base,
                                   &(struct config_at){ "routes", &c->routes.v[i], "graphql", 0 },
                                   FIRN_EINVAL, diag, "needs graphql.schema");
    if (!c->graphql.schema)
        return 0;
    int e = config_schema(c, &s, diag);
    if (e == 0)
        gql_schema_free(&s);
    return e;
}
