/*
 * raft_frame.h - the frames between firnd's cluster members and their clients. Pure functions;
 * numbers are big-endian.
 *
 *   frame    u32 length of what follows, u8 type, u8 flags, u16 0, u32 budget_ms, u64 number, body
 *   text     u16 length (0xffff: absent), bytes
 *
 *   HELLO    "firn", u8 version, u8 kind, u64 member, text address    first frame of a connection;
 *            behind a member's address a space and the name of its cluster, if it knows that
 *   WELCOME  (empty)                                                    the answer to it
 *   READ     u64 seen, u8 fresh, text key
 *   CAS      u64 seen, u64 incarnation, u64 nonce, u64 nonce, u64 since, u8 again, u32 count,
 *            { text key, text old, text value }  clients send 0 between incarnation and count
 *   SCAN     u64 seen, text prefix, text behind     registers after that key; absent: all
 *   IDENTITY (empty)
 *   STATUS   u8 of frame_status
 *   CHANGE   u8 what, u64 member, text address    FORCE: text of ids with commas between them
 *   RAFT     a message of raft/core/core.h, between members
 *   REPLY    i32 result, u64 index, u64 now_ms; then where result is 0
 *     READ     text value
 *     CAS      u32 count, { u8 0, or u8 1 for a conflict and text what is there instead }
 *     SCAN     u8 more, u32 count, { text key, text value }
 *     IDENTITY u64 incarnation
 *     STATUS   the rest is text
 *            else text why
 *   RAFT     a message of raft/core/core.h; only between members
 *
 * `number` comes back with the reply. `budget_ms` is how long the sender still waits: afterwards
 * nothing of it may begin. `seen` is the highest index that the client was ever told: a cluster
 * that is behind it has forgotten something and answers a write with FIRN_ESTORE; a member that is
 * behind it asks the leader. The incarnation changes when a cluster is made or restored.
 */
#ifndef FIRN_STORE_RAFT_FRAME_H
#define FIRN_STORE_RAFT_FRAME_H

#include <sys/types.h>

#include "store/map.h"

enum {
    CAS_INCARNATION = 8, /* offsets in the body of a CAS */
    CAS_NONCE = 16,
    CAS_SINCE = 32,
    CAS_AGAIN = 40,
    CAS_COUNT = 41,
    FRAME_HEAD = 20,     /* bytes, with the length */
    FRAME_MAX = 1 << 20, /* bytes: 256 of the longest writes fit */
    FRAME_WRITES_MAX = 256 /* of one CAS */,
    FRAME_ADDRESS_MAX = 255,
    FRAME_RAFT_MAX = (1 << 20) + (128 << 10), /* bytes of a frame of type RAFT */
    FRAME_VERSION = 1,                        /* of clients */
    FRAME_MEMBER_VERSION = 2, /* of members to each other: 1 was the protocol of libraft */
    /* Flags: from another member, which believes that you lead; or which is partitioned off. A
     * member that does not lead, or is partitioned off itself, answers FIRN_EAGAIN, so that no
     * request is forwarded in a circle. */
    FRAME_FORWARDED = 1,
    FRAME_PASSED = 2,
};

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_WELCOME,
    FRAME_READ,
    FRAME_CAS,
    FRAME_SCAN,
    FRAME_IDENTITY,
    FRAME_STATUS,
    FRAME_CHANGE,
    FRAME_REPLY,
    FRAME_RAFT,
};

/* The sender of HELLO; after a member's come frames of type RAFT. */
enum frame_kind { FRAME_MEMBER = 1, FRAME_CLIENT };

enum frame_status {
    STATUS_JSON,  /* the leader's, if there is one: it alone knows the other members' progress */
    STATUS_LINES, /* the same as text */
    STATUS_OWN,   /* JSON of the member that is asked */
};

enum frame_change {
    CHANGE_JOIN = 1,
    CHANGE_ADD,
    CHANGE_REMOVE,
    CHANGE_PROMOTE,
    CHANGE_TRANSFER,
    CHANGE_FORCE, /* of this process alone: remove all others, which are lost (force.c) */
};

struct frame {
    enum frame_type type;
    uint8_t flags;
    uint32_t budget_ms;
    uint64_t number;
    const char *body; /* borrowed */
    size_t len;
};

/* Bytes of the whole frame that begins at `p`, or 0 while that cannot be said, with *out set
 * when all of it is there. FIRN_EFORMAT: no frame of ours. */
FIRN_MUSTUSE ssize_t frame_parse(const char *p, size_t len, struct frame *out);

/* ---- writing ---- */

struct frame_out { /* room is the caller's; `full` stays set once something did not fit */
    char *p;
    size_t len, cap;
    bool full;
};

void frame_begin(struct frame_out *o, enum frame_type type, uint8_t flags, uint32_t budget_ms,
                 uint64_t number);
void frame_u8(struct frame_out *o, uint8_t v);
void frame_u32(struct frame_out *o, uint32_t v);
void frame_u64(struct frame_out *o, uint64_t v);
void frame_text(struct frame_out *o, struct firn_slice s); /* p NULL: absent */
void frame_end(struct frame_out *o);                       /* fills in the length */

void frame_hello(struct frame_out *o, enum frame_kind kind, uint64_t member, const char *address);
void frame_cas(struct frame_out *o, const struct firn_cas *want, size_t count);
void frame_reply(struct frame_out *o, uint64_t number, int result, uint64_t index, uint64_t now_ms);
void frame_refuse(struct frame_out *o, uint64_t number, int result, uint64_t index,
                  const char *why); /* a whole frame */

/* ---- reading ---- */

struct frame_in { /* `bad` stays set; what was asked for then is 0 or absent */
    const char *p;
    size_t len;
    bool bad;
};

uint8_t frame_get_u8(struct frame_in *i);
uint32_t frame_get_u32(struct frame_in *i);
uint64_t frame_get_u64(struct frame_in *i);
struct firn_slice frame_get_text(struct frame_in *i, size_t max);

struct frame_greeting {
    enum frame_kind kind;
    uint64_t member;
    char address[FRAME_ADDRESS_MAX + 1];
};
FIRN_MUSTUSE int frame_get_hello(const struct frame *f, struct frame_greeting *out);

/* The writes of a CAS, behind `seen` and the incarnation; at most FRAME_WRITES_MAX. */
FIRN_MUSTUSE int frame_get_cas(struct frame_in *i, struct firn_cas *want, size_t *out_n);

struct frame_answer { /* what every reply begins with */
    int result;
    uint64_t index, now_ms;
};
FIRN_MUSTUSE int frame_get_reply(struct frame_in *i, struct frame_answer *out);

#endif
