/*
 * firn/error.h - what every firn function can answer, and how it says why.
 * 0 is success, negative an error, positive only where a count is documented. The list only grows
 * at its end, so a number never changes its meaning. All functions here may be called from any
 * thread.
 */
#ifndef FIRN_ERROR_H
#define FIRN_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_API     __attribute__((visibility("default")))
#define FIRN_MUSTUSE __attribute__((warn_unused_result))

#define FIRN_ERRORS(X)                                                               \
    X(EINVAL, -1, "invalid argument")                                                \
    X(EFORMAT, -2, "malformed text")                                                 \
    X(ERANGE, -3, "value out of range")                                              \
    X(EAGAIN, -4, "nothing left for now, ask again")                                 \
    X(ECLOCK, -5, "the clock stepped back")                                          \
    X(EWINDOW, -6, "the window of timestamps is used up")                            \
    X(ECLOSED, -7, "the generator is closed")                                        \
    X(EFORKED, -8, "the process was forked: the child needs a generator of its own") \
    X(EEXHAUSTED, -9, "the layout has no timestamps left")                           \
    X(ENOTSUP, -10, "not supported")                                                 \
    X(ENOSPC, -11, "the buffer is too small")                                        \
    X(ENOENT, -12, "not found")                                                      \
    X(ECONFLICT, -13, "another writer changed it first")                             \
    X(EUNKNOWN, -14, "the outcome is not known")                                     \
    X(EIO, -15, "input or output failed")                                            \
    X(EAUTH, -16, "refused: not genuine, or not allowed")                            \
    X(ENOMEM, -17, "out of memory")                                                  \
    X(EOVERFLOW, -18, "no larger value exists")                                      \
    X(ESTORE, -19, "the store is not the one that was opened")                       \
    X(ENOSLOT, -20, "no free slot")                                                  \
    X(EREUSED, -21, "the key was used for another request")

enum firn_error {
    FIRN_OK = 0,
#define X(name, number, message) FIRN_##name = number,
    FIRN_ERRORS(X)
#undef X
};

/* "FIRN_EAGAIN" and "nothing left for now, ask again"; never NULL, whatever `error` is. */
FIRN_API const char *firn_error_name(int error);
FIRN_API const char *firn_error_message(int error);

/* Detail for people. Functions that take one accept NULL. They write it on error only. */
struct firn_diag {
    size_t column; /* 1-based place in the input that the message is about, 0 if none */
    char text
        [192]; /* one sentence without a full stop: the cause and, where there is one, the cure */
};

#ifdef __cplusplus
}
#endif
#endif
