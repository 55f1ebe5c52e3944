/*
 * execute.h - the answer of a plan. It has no socket: it says which requests it needs, is told
 * their answers, and writes the result when none is left. Requests with the same target are made
 * once, unless the caller says that each of them mints something new. Nothing is a tree of JSON: a
 * value is the slice of the text that holds it, so those texts live until the answer is written.
 * One thread.
 *
 *     gql_execute(&e, ...);
 *     while (!gql_execute_over(&e)) {
 *         start gql_execute_next(&e) until it is NULL; wait; gql_execute_answer(&e, fetch, ...);
 *     }
 *     gql_execute_write(&e, &out);
 */
#ifndef FIRN_PROXY_GRAPHQL_EXECUTE_H
#define FIRN_PROXY_GRAPHQL_EXECUTE_H

#include "proxy/graphql/introspect.h"

enum {
    GQL_VALUES_MAX = 100000,          /* in an answer: scalars, objects and lists */
    GQL_WORK_MAX = 128 * 1024 * 1024, /* bytes of JSON to look through: some 0.1 s */
    GQL_PATH_ERRORS_MAX = 100,        /* errors that an answer tells */
};

struct gql_result;

struct gql_fetch { /* a request that is needed */
    const struct gql_get *get;
    struct slice target;
    struct gql_result *wanted; /* where its answer goes */
    struct gql_fetch *next;
    bool done;
    struct slice json; /* its answer */
    const char *why;
    void *user; /* the caller's */
};

struct gql_execution {
    const struct gql_schema *s;
    const struct gql_limits *limits;
    struct arena *a;
    /* The value of a header for {header:NAME}. False: there is none. */
    bool (*header)(void *user, struct slice name, struct buf *out);
    /* Whether every request with this target has an answer of its own, such as a new ID. */
    bool (*mints)(void *user, const struct gql_get *get, struct slice target);
    void *user;

    struct gql_result *root;
    struct gql_fetch *fetches, **last, *next; /* all, and the first that was not started */
    size_t calls, open, values;               /* fetches; those without an answer; results */
    uint64_t work;                            /* bytes of JSON that were looked through */
};

/* -1: there is no memory. All but the last five members are set by the caller. */
FIRN_MUSTUSE int gql_execute(struct gql_execution *e, const struct gql_plan *p);

/* The next request to start, or NULL. */
struct gql_fetch *gql_execute_next(struct gql_execution *e);
bool gql_execute_over(const struct gql_execution *e);

/* The answer of a request, which may need more: JSON, borrowed until the end; absent without `why`:
 * there is nothing, which is null; with `why` (borrowed): it failed. */
void gql_execute_answer(struct gql_execution *e, struct gql_fetch *f, struct slice json,
                        const char *why);

/* {"data":...,"errors":[...]}; requests without an answer count as failed with `why`. Returns how
 * many errors there are. */
size_t gql_execute_write(struct gql_execution *e, const char *why, struct buf *out);

/* {"errors":[...]} of a document that is not executed. */
void gql_write_errors(const struct gql_errors *errors, struct buf *out);

#endif
