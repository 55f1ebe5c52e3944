/*
 * roster.h - the members: the records member/<n>, and for how long each has been unchanged. Pure.
 *
 * A process that takes part claims one register and rewrites it every third of its ttl (a beat).
 * Clocks are never compared: an observer notes on its own steady clock when it first saw a record
 * in its present form, and takes the member for dead when the record still has that form one and a
 * half ttl later. `at`, the writer's own time, is shown to people and decides nothing.
 *
 * epoch counts the claims of a register. It and the register are never reset or removed, so
 * (number, epoch) names one membership for good, in a tenth of the bytes of a nonce: the queues
 * (queue.h) are lists of such pairs.
 */
#ifndef FIRN_COORD_ROSTER_H
#define FIRN_COORD_ROSTER_H

#include "coord/record.h"

#define MEMBERS_MAX        1024         /* registers: as many as slots */
#define MEMBER_EPOCH_MAX   99999999999u /* eleven digits: queue.h counts on it */
#define MEMBER_TTL_MS_MAX  86400000u    /* a day; a longer silence is no membership */
#define MEMBER_KIND_MAX    15
#define MEMBER_ADDRESS_MAX 191
#define MEMBER_SLOTS_MAX   63
#define MEMBER_VERSION_MAX 31
#define MEMBER_PREFIX      "member/"
#define MEMBER_PREFIX_LEN  7

enum member_hold { MEMBER_FREE, MEMBER_UP };

struct member_record {
    struct nonce cluster; /* the lease's, where the writer knows it; else none */
    uint64_t epoch;       /* 1, 2, ... : how often this register was claimed */
    enum member_hold state;
    struct nonce owner;             /* the request that claimed it; none when free */
    char kind[MEMBER_KIND_MAX + 1]; /* "firnd", "elect", "lock" */
    char name[RECORD_NAME_MAX + 1];
    char address[MEMBER_ADDRESS_MAX + 1];
    char slots[MEMBER_SLOTS_MAX + 1]; /* worker slots held: "3" or "3,7" */
    char version[MEMBER_VERSION_MAX + 1];
    uint64_t beat; /* counts the writes of this membership */
    uint64_t ttl_ms;
    uint64_t at; /* the writer's Unix ms, for people */
    struct nonce req;
};

size_t member_encode(const struct member_record *r, char out[RECORD_TEXT_MAX]);
FIRN_MUSTUSE int member_parse(const char *p, size_t len, struct member_record *out,
                              struct firn_diag *d);
size_t member_key(uint32_t number, char out[RECORD_KEY_BUF]); /* "member/00012" */
FIRN_MUSTUSE int member_key_parse(const char *p, size_t len, uint32_t *out_number);

/* The record of a register that is freed: by its owner, or by an observer that found it dead. */
void member_freed(const struct member_record *old, uint64_t unix_ms, const struct nonce *req,
                  struct member_record *out);

/* How long a record must stay as it is before its member is dead. The owner gives up after one ttl,
 * counted from before its last write was sent, so between the two lies half a ttl: clocks may
 * differ in rate by half, and no member is replaced while it still believes to be one. */
static inline uint64_t member_dead_after(uint64_t ttl_ms)
{
    return ttl_ms + ttl_ms / 2;
}

/* How old a record may become before people are told that its member is silent: a ttl, and the
 * interval between two beats, of which the last one may have just been missed. */
static inline uint64_t member_silent_after(uint64_t ttl_ms)
{
    return ttl_ms + ttl_ms / 3;
}

/* `by` is a later run of the same process: same kind and name, on the same addresses. Nothing but
 * lists for people may rest on this. */
bool member_replaced(const struct member_record *old, const struct member_record *by);

enum roster_state { ROSTER_ABSENT, ROSTER_FREE, ROSTER_UP, ROSTER_UNREADABLE };

struct roster_seen {
    enum roster_state state;
    struct nonce req;  /* the form it was last seen in */
    uint64_t since_ms; /* and when that was first seen, on the observer's clock */
    uint64_t ttl_ms, epoch;
};

struct roster {
    struct roster_seen seen[MEMBERS_MAX];
};

/* A look at all registers: begin, then add each one that is there. `now_ms` is a time after the
 * store answered: a form is counted from when it was surely there. */
void roster_begin(struct roster *r);
void roster_add(struct roster *r, uint32_t number, const char *p, size_t len, uint64_t now_ms);

bool roster_dead(const struct roster *r, uint32_t number, uint64_t now_ms);

#endif
