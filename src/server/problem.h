/*
 * problem.h - the errors of firnd's HTTP API (daemon/problem.h). The detail says what is wrong and
 * what to do about it.
 */
#ifndef FIRN_SERVER_PROBLEM_H
#define FIRN_SERVER_PROBLEM_H

#include "net/service.h"

/* name, status, slug of the type, title */
#define PROBLEMS(X)                                                               \
    X(PARAMETER, 400, "bad-parameter", "A parameter is not understood")           \
    X(BODY, 400, "bad-body", "The body is not understood")                        \
    X(TOO_MANY, 400, "too-many", "More was asked for than one request may have")  \
    X(NO_TOKEN, 401, "no-token", "A token is needed")                             \
    X(BAD_TOKEN, 401, "bad-token", "The token is not known")                      \
    X(NOT_ALLOWED, 403, "not-allowed", "The token does not reach so far")         \
    X(ORIGIN, 403, "foreign-origin", "Pages of other sites may not do this")      \
    X(NOT_LOCAL, 403, "not-local", "Administration needs more than a connection") \
    X(ROUTE, 404, "no-such-route", "There is nothing at this path")               \
    X(KIND, 404, "no-such-kind", "There is no such kind of ID")                   \
    X(SEQUENCE, 404, "no-such-sequence", "There is no such sequence")             \
    X(LEASE, 404, "no-such-lease", "There is no such lease")                      \
    X(CLUSTER, 404, "no-such-cluster", "There is no such cluster or member")      \
    X(METHOD, 405, "method-not-allowed", "The path is right, the method is not")  \
    X(ACCEPT, 406, "not-acceptable", "These IDs cannot be written that way")      \
    X(DELETED, 409, "sequence-deleted", "The sequence was deleted")               \
    X(SEQUENCES, 409, "too-many-sequences", "No more sequences are allowed")      \
    X(EXISTS, 409, "sequence-exists", "The sequence exists with other settings")  \
    X(MEMBERS, 409, "members-conflict", "The members cannot change that way")     \
    X(EXHAUSTED, 409, "exhausted", "There is no number left")                     \
    X(MEDIA, 415, "unsupported-body", "A body of this type is not taken")         \
    X(HOST, 421, "wrong-host", "The server does not go by this name")             \
    X(KEY_REUSED, 422, "key-reused", "The key was used for another request")      \
    X(TOO_FAST, 429, "too-fast", "The client's requests come too fast")           \
    X(INTERNAL, 500, "internal", "The server failed")                             \
    X(NOT_READY, 503, "not-ready", "No ID can be made at the moment")             \
    X(NO_SLOT, 503, "no-slot", "No slot can be lent at the moment")               \
    X(STORE, 503, "store", "The store does not answer")                           \
    X(BUSY, 503, "busy", "The server has too much to do")

enum problem {
#define X(name, status, slug, title) PROBLEM_##name,
    PROBLEMS(X)
#undef X
        PROBLEMS_N
};

/* The whole answer. `fields` are more header lines, or "". */
__attribute__((format(printf, 4, 5))) void problem_reply(struct reply *r, enum problem p,
                                                         const char *fields, const char *fmt, ...);

#endif
