/*
 * firn/xid.h - XID: seconds, machine, process and counter in 12 bytes, 20 characters that sort by
 * time. As rs/xid writes and reads them. A struct firn_xid_gen belongs to one thread, and no two
 * generators that live at the same time may share machine and pid; everything else keeps no state:
 * call it from any thread.
 */
#ifndef FIRN_XID_H
#define FIRN_XID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_XID_TEXT_LEN    20
#define FIRN_XID_TEXT_BUF    21
#define FIRN_XID_COUNTER_MAX 0xffffffu

struct firn_xid {
    uint8_t b[12]; /* high byte first: 4 seconds, 3 machine, 2 pid, 3 counter */
};

struct firn_xid_gen { /* all private: complete only so that it can live in your stack or struct */
    uint32_t second_;
    uint32_t left_;    /* counters that this second still has */
    uint32_t counter_; /* the next one */
    uint16_t pid_;
    uint8_t machine_[3];
    uint8_t reserved_[7];
};

/* `counter` is the first one used; draw it at random (the low 24 bits count), so that a process
 * that gets the pid of one that died in the same second most likely begins elsewhere. */
FIRN_API void firn_xid_gen_init(struct firn_xid_gen *g, const uint8_t machine[3], uint16_t pid,
                                uint32_t counter);

/* The next XID. The counter wraps to 0 after FIRN_XID_COUNTER_MAX, so IDs of one second need not be
 * in order. When the clock goes back the last second is kept. FIRN_EAGAIN: this second's 2^24
 * counters are used up; ask again in the next. FIRN_ERANGE: the time is beyond 32 bits of seconds
 * (2106). */
FIRN_API FIRN_MUSTUSE int firn_xid_next(struct firn_xid_gen *g, uint64_t unix_ms,
                                        struct firn_xid *out);

/* 20 characters, 0-9 and a-v in lower case only. FIRN_EFORMAT: another length or character, or a
 * last character other than 0 and g: it carries one bit, and the four that are left over must be
 * 0. */
FIRN_API FIRN_MUSTUSE int firn_xid_parse(const char *p, size_t len, struct firn_xid *out);

/* The same for a text that ends with a NUL. */
static inline FIRN_MUSTUSE int firn_xid_parse_str(const char *text, struct firn_xid *out)
{
    return firn_xid_parse(text, text ? strlen(text) : 0, out);
}

/* With a NUL. */
FIRN_API void firn_xid_format(const struct firn_xid *id, char out[FIRN_XID_TEXT_BUF]);

/* When it was made: whole seconds, as Unix milliseconds. */
FIRN_API uint64_t firn_xid_unix_ms(const struct firn_xid *id);

/* The 3 machine bytes, borrowed from `id`. */
FIRN_API const uint8_t *firn_xid_machine(const struct firn_xid *id);
FIRN_API uint16_t firn_xid_pid(const struct firn_xid *id);
FIRN_API uint32_t firn_xid_counter(const struct firn_xid *id);

/* Less than, equal to or greater than 0, as a is before, the same as or after b. */
FIRN_API int firn_xid_cmp(const struct firn_xid *a, const struct firn_xid *b);

#ifdef __cplusplus
}
#endif
#endif
