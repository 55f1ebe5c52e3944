/* config_graphql.h - the schema that graphql.schema names. */
#ifndef FIRN_PROXY_CONFIG_GRAPHQL_H
#define FIRN_PROXY_CONFIG_GRAPHQL_H

#include "proxy/config.h"
#include "proxy/graphql/schema.h"

/* Reads the file; `backend` of its fields is the place in config.services. On error `diag` has the
 * file's line and column, and there is nothing to free. */
FIRN_MUSTUSE int config_schema(const struct config *c, struct gql_schema *out,
                               struct firn_diag *diag);

#endif
