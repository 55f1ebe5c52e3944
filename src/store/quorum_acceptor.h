/*
 * quorum_acceptor.h - one underlying store of a quorum, as an acceptor: a thread of its own that
 * keeps the store open, sees that it is a member, and applies messages to the records in it. A
 * store that hangs or is away holds up its own thread only. Everything here is called by the
 * quorum's one user.
 */
#ifndef FIRN_STORE_QUORUM_ACCEPTOR_H
#define FIRN_STORE_QUORUM_ACCEPTOR_H

#include <pthread.h>

#include "coord/paxos.h"
#include "coord/record.h"
#include "store/store.h"

#define QUORUM_PREFIX     "px/" /* of every acceptor's record */
#define QUORUM_PREFIX_LEN 3
#define QUORUM_KEY_MAX    (STORE_KEY_MAX - QUORUM_PREFIX_LEN)
#define QUORUM_MEMBER_KEY "px-member"

_Static_assert(PAXOS_TEXT_MAX <= STORE_VALUE_MAX, "an acceptor's record is a value");

/* ---- membership: the register px-member of each underlying store ---- */

enum quorum_member_state { MEMBER_FORMING, MEMBER_FORMED };

struct quorum_member {
    enum quorum_member_state state;
    struct nonce quorum;           /* whose member it is */
    struct nonce self;             /* drawn anew when it is admitted again */
    uint64_t acceptors;            /* how many there are */
    uint64_t floor;                /* no ballot of a lower round counts, in any register */
    char store[STORE_ID_TEXT_BUF]; /* identity of the underlying store then */
};

#define MEMBER_TEXT_MAX 256
/* Rounds of ballots have at most 18 digits (coord/paxos_record.c); a floor stays far below. */
#define MEMBER_FLOOR_MAX UINT64_C(100000000000000000)
size_t quorum_member_encode(const struct quorum_member *m, char out[MEMBER_TEXT_MAX]);
FIRN_MUSTUSE int quorum_member_parse(const char *p, size_t len, struct quorum_member *out,
                                     struct firn_diag *d);

/* ---- jobs ---- */

enum job_kind {
    JOB_PAXOS,  /* a message to the acceptor of one register */
    JOB_SCAN,   /* the next records of a prefix */
    JOB_MEMBER, /* replace px-member: old and new text in `key` and `text`; then look at it again */
    JOB_WRITE,  /* put an acceptor's whole memory there, whatever was (quorum_admit.c) */
};

struct scanned { /* what a scan found, packed: key length, key, text length, text, and so on */
    size_t len, room;
    char *bytes;
    size_t count, max; /* records; max 0: all */
    bool more;         /* there are others behind these */
};

struct job {
    struct job *next;
    enum job_kind kind;
    unsigned acceptor; /* which one it is for */
    uint64_t call;     /* whose it is */
    unsigned index;    /* of the register in that call */
    uint32_t attempt;
    int64_t until_ms; /* after that its caller no longer waits */
    size_t key_len;   /* with QUORUM_PREFIX */
    char key[STORE_KEY_MAX];
    union {
        struct paxos_message message;
        struct {
            size_t old_len, text_len; /* old_len 0: px-member is absent */
            char old[MEMBER_TEXT_MAX], text[MEMBER_TEXT_MAX];
        } member;
        struct paxos_acceptor memory; /* JOB_WRITE */
        struct {
            size_t after_len; /* 0: from the first of the prefix on */
            char after[STORE_KEY_MAX];
        } scan; /* JOB_SCAN */
    };
    int result; /* 0, or what the store said */
    union {
        struct paxos_answer answer;
        struct scanned scanned;
    };
};

void job_free(struct job *j);

/* The next key or text of what a scan found; *at moves behind it. */
struct firn_slice scanned_next(const struct scanned *f, size_t *at);

/* ---- the acceptor ---- */

enum acceptor_state {
    ACCEPTOR_OPENING, /* not looked at yet */
    ACCEPTOR_AWAY,    /* cannot be opened now */
    ACCEPTOR_BLANK,   /* open, and member of nothing */
    ACCEPTOR_MEMBER,  /* open, with a member record that fits the store */
    ACCEPTOR_REFUSED, /* not the store that was admitted: it must not vote */
    ACCEPTOR_UNFIT,   /* not opened, because of how it, or its URL, is set up */
};

enum acceptor_refusal {
    REFUSED_EMPTY,   /* no px-member */
    REFUSED_BROKEN,  /* one that cannot be read */
    REFUSED_FOREIGN, /* another quorum's */
    REFUSED_COUNT,   /* of a quorum with another number of stores */
    REFUSED_CHANGED, /* of another store: this is a copy, was restored, or restarted */
};

struct inbox {            /* answers of all acceptors */
    pthread_mutex_t lock; /* of this and of every acceptor's shared part */
    pthread_cond_t news;  /* answers, or a state changed */
    struct job *first, **last;
    uint64_t call; /* jobs of other calls are not waited for any more */
};

struct acceptor {
    const char *url;
    unsigned place; /* in the quorum's URL, from 1, for messages */
    uint32_t timeout_ms;
    uint64_t acceptors;
    int (*open)(const char *url, uint32_t timeout_ms, struct firn_store **out,
                struct firn_diag *d); /* firn_store_open, or one that creates nothing */
    bool restart_ok;
    unsigned index;
    struct inbox *inbox;
    pthread_t thread;
    bool running;

    /* shared, under inbox->lock */
    pthread_cond_t wake;
    bool closing, look;
    bool named;  /* only members of `quorum` count */
    bool formed; /* another store is a member, so this one had a record, too */
    struct nonce quorum;
    struct job *first, **last;
    size_t queued;
    enum acceptor_state state;
    enum acceptor_refusal refusal;
    char identity[STORE_ID_TEXT_BUF]; /* as it was last looked at */
    struct quorum_member member;      /* BLANK: only the identity in it */
    size_t member_len;
    char member_text[MEMBER_TEXT_MAX];
    struct quorum_member
        found; /* REFUSED: what could be read, with its present identity; for admission */
    int error; /* UNFIT: what opening it said */
    struct firn_diag why; /* AWAY, REFUSED, UNFIT, or the last failure */

    struct acceptor_own *own; /* the thread's */
};

FIRN_MUSTUSE int acceptor_start(struct acceptor *a, struct firn_diag *d);

/* Under inbox->lock. The job is transferred; an answer always comes, unless the acceptor is
 * closed. */
void acceptor_send(struct acceptor *a, struct job *j);

/* Under inbox->lock: look at px-member again. */
void acceptor_look(struct acceptor *a);

/* Two steps, so that all can end at the same time. */
void acceptor_stop(struct acceptor *a);
void acceptor_join(struct acceptor *a);

#endif
