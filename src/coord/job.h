/*
 * job.h - one request to the thread that owns the store, and lists of them. The steps of the group
 * commit (group.h) read and write `in`, `out` and `private`; the rest belongs to the submitter.
 */
#ifndef FIRN_COORD_JOB_H
#define FIRN_COORD_JOB_H

#include "coord/keyed.h"

enum job_what {
    JOB_TAKE,     /* `want` numbers of sequence `name`, in one piece */
    JOB_KEEP,     /* the IDs in keyed->idem, under their key */
    JOB_FETCH,    /* the next block of a range sequence, ahead of need */
    JOB_CREATE,   /* a sequence as `spec` says */
    JOB_DELETE,   /* a sequence */
    JOB_DESCRIBE, /* the record of a sequence */
    JOB_LIST,     /* up to `want` sequences behind the cursor */
    JOB_NODES,    /* all members of the store */
    JOB_SLOTS,    /* all slots of the store */
    JOB_LEASE     /* a slot for a client, as the struct lease_job in `user` says */
};

struct job_listed {
    char name[RECORD_NAME_MAX + 1];
    struct seq_record record;
};

struct node_listed; /* server/nodes.h */
struct slot_listed; /* server/slots.h */
struct outbox;      /* the jobs that go back to one loop */

struct job {
    /* in */
    enum job_what what;
    struct outbox *back;
    void (*done)(struct job *j); /* on the loop's thread */
    void *user;
    char name[RECORD_NAME_MAX + 1];
    size_t name_len;
    uint64_t want;
    bool create;  /* JOB_TAKE: make a range sequence from 1 if there is none, as Redis' INCR does */
    bool partial; /* JOB_TAKE: fewer than `want` are fine where the sequence ends */
    bool plain; /* JOB_TAKE: not from a dated sequence, whose bare numbers come again each period */
    struct seq_spec spec;
    char note[RECORD_NOTE_MAX + 1]; /* of spec */
    uint64_t scope_max; /* JOB_TAKE, _CREATE: at so many sequences below `scope` none is created */
    char scope[RECORD_NAME_MAX + 1];    /* what their names begin with; only if scope_max > 0 */
    char cursor[TICKET_CURSOR_MAX + 1]; /* JOB_LIST: where to go on; out: the same, if `more` */
    struct keyed *keyed; /* JOB_TAKE, _KEEP: the key; else NULL. The caller's; what the key stands
                          * for is in there afterwards, for JOB_TAKE also in range and period */

    /* out */
    int result; /* 0 or FIRN_E...; diag says why */
    struct firn_diag diag;
    struct seq_range range;   /* JOB_TAKE */
    bool more;                /* JOB_TAKE: fewer than `want`, but the sequence has more; JOB_LIST */
    struct seq_record record; /* JOB_TAKE, _CREATE, _DESCRIBE, _DELETE */
    uint32_t period;          /* of a dated sequence: 20261116 */
    struct job_listed *list;  /* JOB_LIST: malloc'd, the receiver frees it */
    struct node_listed *nodes; /* JOB_NODES: the same */
    struct slot_listed *slots; /* JOB_SLOTS: the same */
    size_t list_n;

    /* private */
    struct job *next;
    uint64_t began_ns;  /* when it was submitted */
    uint64_t served_ns; /* when the turn began that it ended in; 0: it was served apart */
    uint64_t deadline_ms;
    bool taken; /* it has its numbers; keyed->idem is to be kept */
    bool
        tried; /* a write for it was sent: it lost to another server's, or its outcome is unknown */
};

/* A list in the order of arrival. Its address may not change: `tail` points into it when empty. */
struct job_list {
    struct job *first, **tail;
};

static inline void job_list_init(struct job_list *l)
{
    l->first = NULL;
    l->tail = &l->first;
}

/* The list ends where its tail says. */
static inline bool job_list_ok(const struct job_list *l)
{
    return *l->tail == NULL && (l->first == NULL) == (l->tail == (struct job *const *)&l->first);
}

static inline void job_append(struct job_list *l, struct job *j)
{
    j->next = NULL;
    *l->tail = j;
    l->tail = &j->next;
}

/* A whole chain, linked by `next`, behind the others. */
static inline void job_append_all(struct job_list *l, struct job *first)
{
    *l->tail = first;
    while (*l->tail)
        l->tail = &(*l->tail)->next;
}

/* A whole chain, or NULL, in front of the others. */
static inline void job_prepend_all(struct job_list *l, struct job *first)
{
    struct job **end = &first;
    while (*end)
        end = &(*end)->next;
    if (!first)
        return;
    *end = l->first;
    if (!l->first)
        l->tail = end;
    l->first = first;
}

/* All of them; the list is empty afterwards. */
static inline struct job *job_take_all(struct job_list *l)
{
    struct job *first = l->first;
    job_list_init(l);
    return first;
}

#endif
