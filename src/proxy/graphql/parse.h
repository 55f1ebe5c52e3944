/*
 * parse.h - documents of GraphQL: operations and fragments. Every recursion is bounded by
 * GQL_DEPTH_MAX, memory by the arena of `errors`. Pure; any thread.
 */
#ifndef FIRN_PROXY_GRAPHQL_PARSE_H
#define FIRN_PROXY_GRAPHQL_PARSE_H

#include "proxy/graphql/lexer.h"

/* -1: it cannot be read; the error was added. */
FIRN_MUSTUSE int gql_parse(const char *text, size_t len, struct gql_document *out,
                           struct gql_errors *errors);

/* --- for schema_read.c: parts that both have --- */

struct gql_parser {
    struct gql_lexer lexer;
    struct gql_token at; /* the token in hand */
    struct gql_errors *errors;
    unsigned depth;
    bool failed; /* stays set; at.kind is GQL_TOKEN_END then */
};

void gql_parser_init(struct gql_parser *p, const char *text, size_t len, struct gql_errors *errors);
void gql_parser_fail(struct gql_parser *p, const char *expected);
void gql_parser_step(struct gql_parser *p); /* to the next token */
void *gql_parser_node(struct gql_parser *p, size_t size);
bool gql_parser_is(const struct gql_parser *p, char punctuation);
bool gql_parser_take(struct gql_parser *p, char punctuation);
void gql_parser_need(struct gql_parser *p, char punctuation);
bool gql_parser_word(const struct gql_parser *p, const char *word);
struct slice gql_parser_name(struct gql_parser *p);
struct gql_value *gql_parser_value(struct gql_parser *p, bool constant);
struct gql_ref *gql_parser_ref(struct gql_parser *p);
struct gql_directive *gql_parser_directives(struct gql_parser *p, bool constant);

#endif
