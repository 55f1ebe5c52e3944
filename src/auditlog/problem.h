/* problem.h - the errors of the audit log's HTTP API (daemon/problem.h). */
#ifndef FIRN_AUDITLOG_PROBLEM_H
#define FIRN_AUDITLOG_PROBLEM_H

#include "net/service.h"

/* name, status, slug of the type, title */
#define PROBLEMS(X)                                                               \
    X(PARAMETER, 400, "bad-parameter", "A parameter is not understood")           \
    X(BODY, 400, "bad-body", "The body is not understood")                        \
    X(KEY, 400, "bad-key", "The Idempotency-Key is not understood")               \
    X(NO_TOKEN, 401, "no-token", "A token is needed")                             \
    X(BAD_TOKEN, 401, "bad-token", "The token is not known")                      \
    X(SCOPE, 403, "not-allowed", "The token does not reach so far")               \
    X(ROUTE, 404, "no-such-route", "There is nothing at this path")               \
    X(ENTRY, 404, "no-such-entry", "There is no entry with this ID")              \
    X(METHOD, 405, "method-not-allowed", "The path is right, the method is not")  \
    X(DUPLICATE, 409, "duplicate-id", "Another entry has this ID")                \
    X(TOO_LARGE, 413, "too-large", "The request has more than one may have")      \
    X(MEDIA, 415, "unsupported-body", "A body of this type is not taken")         \
    X(REFUSED, 422, "refused", "The database does not take these values")         \
    X(KEY_REUSED, 422, "key-reused", "The key was used for another request")      \
    X(INTERNAL, 500, "internal", "The server failed")                             \
    X(BUSY, 503, "busy", "Too much waits for this shard")                         \
    X(AWAY, 503, "shard-away", "The database of this shard does not answer")      \
    X(UNKNOWN, 503, "outcome-unknown", "The entry may have been written, or not") \
    X(NO_ID, 503, "no-id", "No ID can be made at the moment")                     \
    X(NOT_READY, 503, "not-ready", "The service is not ready")

enum problem {
#define X(name, status, slug, title) PROBLEM_##name,
    PROBLEMS(X)
#undef X
        PROBLEMS_N
};

/* The whole answer. */
__attribute__((format(printf, 3, 4))) void problem_reply(struct reply *r, enum problem p,
                                                         const char *fmt, ...);

#endif
