/*
 * member.h - this process as a member: runs coord/membership.h on a store, and lists all members.
 * For one thread, the one that owns the store. member_step() makes at most one call to the store.
 *
 * firnd's coordinator: member_open() with kind "firnd", member_step() when it is due, like
 * lease_step(); member_describe() when slots or addresses change; member_list() for /v1/nodes;
 * member_leave() at the end.
 */
#ifndef FIRN_DRIVE_MEMBER_H
#define FIRN_DRIVE_MEMBER_H

#include "coord/membership.h"
#include "store/store.h"

struct member_world { /* so that tests can run one on a virtual clock */
    void *user;
    uint64_t (*now_ms)(void *user); /* steady, and counts on while the machine sleeps; never 0 */
    uint64_t (*unix_ms)(void *user);
    void (*random)(void *user, void *out, size_t len);
    void (*sleep_ms)(void *user, uint64_t ms);
};

void member_world_real(struct member_world *w);

struct member_params { /* texts are copied; NULL is "" */
    const char *kind, *name, *address, *slots, *version;
    const struct nonce *cluster; /* NULL: not known */
    uint64_t ttl_ms;             /* 0 means 45000: a beat every 15 s */
    bool keep_house;             /* for processes that stay: free the registers of dead members */
};

struct member {
    struct membership self;
    struct roster roster; /* as last scanned: by claiming, keeping house, and member_list() */
    struct member_world world;
    struct firn_store *store;
    int error; /* of the last call to the store; 0, or an error for the operator */
    struct firn_diag diag;
};

/* Nothing is asked of the store yet; it is borrowed. The struct is large (about 70 kB): keep it on
 * the heap or static. FIRN_EINVAL: texts that are too long or not printable. */
FIRN_MUSTUSE int member_open(struct member *m, struct firn_store *store,
                             const struct member_params *p, const struct member_world *w,
                             struct firn_diag *d);

/* Do what is due. Returns in how many ms to call again (0: at once; earlier does no harm). */
uint64_t member_step(struct member *m);

/* New address and slots; NULL: as it is. They are written by the next step. */
void member_describe(struct member *m, const char *address, const char *slots);

/* Free the register, trying for up to `timeout_ms`. FIRN_EAGAIN: it did not land; then the other
 * members find out by its silence. */
FIRN_MUSTUSE int member_leave(struct member *m, uint64_t timeout_ms);

static inline uint64_t member_now_ms(const struct member *m)
{
    return m->world.now_ms(m->world.user);
}

struct member_view { /* a member as the lister sees it */
    uint32_t number;
    const struct member_record *record;
    uint64_t unchanged_ms; /* for how long the lister has seen it as it is; 0: for the first time */
    bool dead;             /* for longer than a live member would leave it */
};

/* Anything but 0 ends the list, which then returns that. It must not call the store. */
typedef int member_each_fn(void *user, const struct member_view *v);

/* All registers, free ones too, by number; unreadable ones are left out. One scan. `roster` is kept
 * by the caller between calls (zeroed before the first): it holds since when each is unchanged. */
FIRN_MUSTUSE int members_list(struct firn_store *store, struct roster *roster,
                              const struct member_world *w, member_each_fn *each, void *user,
                              struct firn_diag *d);

/* The same without the members that left, and without those that were started again since: each
 * process once, by its last run. */
FIRN_MUSTUSE int members_current(struct firn_store *store, struct roster *roster,
                                 const struct member_world *w, member_each_fn *each, void *user,
                                 struct firn_diag *d);

/* "up", "silent", "dead" or "left", as people are told. `age_ms`: by the record's own time, on this
 * machine's clock. */
const char *member_state_name(const struct member_view *v, uint64_t age_ms);

/* As members_list(), with the member's own roster. */
FIRN_MUSTUSE int member_list(struct member *m, member_each_fn *each, void *user,
                             struct firn_diag *d);

#endif
