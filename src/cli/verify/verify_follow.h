/* verify_follow.h - `firn verify --follow`: checks a log of IDs while it grows. One thread. */
#ifndef FIRN_CLI_VERIFY_VERIFY_FOLLOW_H
#define FIRN_CLI_VERIFY_VERIFY_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

struct verify_follow {
    const char *path; /* "-": standard input */
    bool unique, sorted, json;
    uint64_t memory_bytes;
    uint64_t idle_ms; /* end when no line came for this long; 0: never */
};

/* Runs until a signal, the end of standard input, or `idle`. Returns an exit status. */
int verify_follow(const struct verify_follow *v);

#endif
