/*
 * lexer.h - tokens of GraphQL (October 2021): punctuation, names, numbers, strings and block
 * strings. Pure; any thread.
 */
#ifndef FIRN_PROXY_GRAPHQL_LEXER_H
#define FIRN_PROXY_GRAPHQL_LEXER_H

#include "proxy/graphql/ast.h"

enum gql_token_kind {
    GQL_TOKEN_END,
    GQL_TOKEN_PUNCTUATION, /* text[0]; "..." is one */
    GQL_TOKEN_NAME,
    GQL_TOKEN_INT,
    GQL_TOKEN_FLOAT,
    GQL_TOKEN_STRING, /* text is decoded */
};

struct gql_token {
    enum gql_token_kind kind;
    struct slice text;
    struct gql_place place;
};

struct gql_lexer {
    const char *p, *end, *line_start;
    unsigned line;
    size_t tokens;
    struct gql_errors *errors; /* its arena gets decoded strings */
};

void gql_lexer_init(struct gql_lexer *l, const char *p, size_t len, struct gql_errors *errors);

/* -1: no token, or too many; the error was added. */
int gql_lexer_next(struct gql_lexer *l, struct gql_token *out);

#endif
