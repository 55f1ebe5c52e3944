/* verify_follow.h - `firn verify --follow`: checks a log of IDs while it grows. One thread. */
#ifndef FIRN_CLI_VERIFY_VERIFY_FOLLOW_H
#define FIRN_CLI_VERIFY_VERIFY_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

struct verify_follow {
    const char *path; /* "-": standard input */
    bool unique, sorted, json;
    uint64_t memory_bytes;
    uint64_t idle_ms; /* end when nothing came for so long; 0: never */
};

/* Until a signal, the end of standard input, or silence. An exit status. */
int verify_follow(const struct verify_follow *v);

#endif
