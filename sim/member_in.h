/*
 * member_in.h - worlds of whole members: a cluster's world (cluster_in.h) in which each member is
 * src/raft/member.h as firnd runs it, with its requests, forwarding, joining and removal, on twins
 * of wire.h and disk.h; and the clients are src/store/raft.c in coroutines.
 */
#ifndef SIM_MEMBER_IN_H
#define SIM_MEMBER_IN_H

#include "cluster_in.h"
#include "raft/member.h"

/* member_run.c */
void whole_start(struct kmember *m, const struct core_saved_state *s, struct disk_loaded *loaded);
void whole_end(struct kmember *m, bool power);
void whole_tick(struct kmember *m);
void whole_saved(struct kmember *m, uint64_t number);
bool whole_happen(struct kevent *e); /* false: it happens later */
void whole_enter(struct kmember *m); /* before an input to the member, and after it: */
void whole_left(struct kmember *m);
const char *whole_not_healed(const struct side *of, const struct core_config *c);
void whole_address(unsigned machine, char out[32]);
enum core_apply_kind k_core_apply(struct core *c, struct core_applying *out);

/* member_wire.c */
struct wire_host {
    struct kmember *m; /* NULL: a client's */
};
bool wires_happen(struct kevent *e);
void wires_crash(struct kmember *m, bool power);
void wires_break(struct kmember *m);
void wires_clear(void);

enum { CLOCK_WRONG_US = 1400000 }; /* firnds' wall clocks, either way: less than half of skew_max */

enum { FIRNDS = 3 }; /* on the first machines; their coroutines are behind those of the clients */

/* member_firnd.c */
void firnd_main(unsigned n);
void firnd_died(unsigned n);
void firnds_reset(void);
void firnds_era(void);
bool firnd_healed(unsigned machine);

/* member_client.c */
int client_store(struct firn_store **out); /* of the coroutine that runs, for its machine */
void whole_firnd_begin(unsigned n);
void whole_firnd_end(unsigned n);
void whole_client_begin(unsigned n);
void whole_clients_stop(void); /* no call is under way any more */
void whole_clients_end(void);
void whole_clients_era(void); /* the history begins again: what is under way is no part of it */
void whole_take(struct kmember *m, const struct letter *l);
void whole_answered(const struct letter *l);
bool client_healed(unsigned machine); /* those of that machine's own process */
void client_wake(unsigned n, int64_t at);
void client_resume(unsigned n, uint64_t token);
void whole_change(struct kmember *m, const struct errand *e);

#endif
