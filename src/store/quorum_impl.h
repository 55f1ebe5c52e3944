/* quorum_impl.h - what quorum.c and quorum_admit.c share. */
#ifndef FIRN_STORE_QUORUM_IMPL_H
#define FIRN_STORE_QUORUM_IMPL_H

#include "store/quorum.h"
#include "store/quorum_acceptor.h"

enum { KNOWN_MAX = 256 };

struct known { /* of one register, by the hash of its key */
    bool used;
    size_t key_len;
    char key[STORE_KEY_MAX];
    struct paxos_known k;
};

struct call {              /* one register of a call */
    struct firn_slice key; /* borrowed */
    struct paxos p;
    int64_t sent_ms; /* when the message under way was sent */
    int64_t wake_ms; /* when to go on without answers */
    unsigned rests, invalid;
};

struct quorum {
    struct firn_store base;
    unsigned n;
    uint32_t timeout_ms;
    uint64_t id, round, rng;
    struct nonce nonce; /* of the quorum */
    struct inbox inbox;
    struct acceptor acceptor[PAXOS_ACCEPTORS_MAX];
    struct known known[KNOWN_MAX];
    struct call one;
    char *urls; /* split into the acceptors' URLs */
};

/* All of these under inbox.lock. */

/* A job of the call under way, for the record of `key`; NULL: no memory. */
struct job *quorum_job(struct quorum *q, enum job_kind kind, struct firn_slice key,
                       int64_t until_ms);
struct job *quorum_answer(struct quorum *q, int64_t until_ms); /* NULL: none by then */
void quorum_run(struct quorum *q, struct call *c, size_t n, int64_t until_ms);
int quorum_said(struct quorum *q, int result, struct firn_diag *d); /* with its text */
int quorum_explain(struct quorum *q, int error, struct firn_diag *d);
void quorum_view(struct quorum *q, int64_t until_ms, struct firn_quorum_view *out);
int quorum_write_member(struct quorum *q, unsigned i, const struct quorum_member *m,
                        int64_t until_ms);
/* Wait until it is known what store i is. */
void quorum_settle(struct quorum *q, unsigned i, int64_t until_ms);
/* The scans of a majority, all of it in the set `among`: of each up to `max` records (0: all)
 * behind the key `after` (p NULL: from the first on). */
int quorum_scans(struct quorum *q, struct firn_slice prefix, struct firn_slice after, size_t max,
                 unsigned among, int64_t until_ms, struct job **scan, unsigned *out_n);

/* The method; not under the lock. */
int quorum_scan(struct firn_store *s, struct firn_slice prefix, struct firn_slice after,
                firn_record_fn *each, void *user, struct firn_diag *d);

#endif
