/*
 * members.h - cores with disks and a network in memory, for the tests of src/raft/core.
 * Messages travel as bytes, saves are copied when they are given out and reach the disk later, a
 * crash loses those that did not. Every output is checked against what Raft promises.
 */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "raft/core/core.h"
#include "t.h"

#include <stdlib.h>

enum { MEMBERS = 5, LOG_MAX = 4096, SAVES_MAX = 256, WIRE_MAX = 512, TERMS_MAX = 4096 };

struct stored { /* an entry */
    uint64_t term;
    enum core_type type;
    char *bytes;
    size_t len;
};

struct save_copy {
    struct core_save s;
    struct core_snapshot snapshot; /* bytes are owned */
    struct stored *entry;
};

struct member {
    uint64_t id;
    struct core *c; /* NULL: down */
    /* disk */
    uint64_t term, vote, first, count;
    struct stored log[LOG_MAX]; /* log[i] is entry first + i */
    bool has_snapshot;
    struct core_snapshot snapshot;
    /* saves under way */
    struct save_copy save[SAVES_MAX];
    unsigned saves;
    /* state machine */
    uint64_t applied, sum;
    /* a read under way */
    uint64_t ask, ask_term, ask_floor, ask_commit;
};

struct on_wire {
    char *bytes;
    size_t len;
    uint64_t from, to;
};

struct cluster {
    uint64_t now, random;
    struct member m[MEMBERS + 1]; /* by id */
    struct on_wire wire[WIRE_MAX];
    unsigned wires;
    bool cut[MEMBERS + 1][MEMBERS + 1]; /* from, to */
    bool paused[MEMBERS + 1];           /* does not notice that time passes */
    uint64_t leader[TERMS_MAX];
    /* what was applied first anywhere, by index: all others must be equal */
    uint64_t term_at[LOG_MAX], sum_at[LOG_MAX], last;
    uint64_t applied_total, leaders, snapshots, changes, reads;
};

static inline uint64_t below(struct cluster *k, uint64_t n)
{
    uint64_t z = k->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % n;
}

static inline uint64_t mix(uint64_t sum, const void *p, size_t len)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ c[i]) * UINT64_C(1099511628211);
    return sum ^ sum >> 29;
}

static inline struct core_config config_of(const char *voters, const char *standbys)
{
    struct core_config c = { 0 };
    for (; *voters; voters++)
        c.member[c.count++] = (struct core_member){ (uint64_t)(*voters - '0'), CORE_VOTER, "v" };
    for (; *standbys; standbys++)
        c.member[c.count++] = (struct core_member){ (uint64_t)(*standbys - '0'), CORE_STANDBY,
                                                    "s" };
    return c;
}

/* ---- the disk ---- */

static inline void disk_truncate(struct member *m, uint64_t from)
{
    while (m->count > 0 && m->first + m->count - 1 >= from)
        free(m->log[--m->count].bytes);
}

static inline void disk_drop_before(struct member *m, uint64_t first)
{
    uint64_t n = first <= m->first ? 0 : first - m->first;
    if (n > m->count) {
        T_OK(m->has_snapshot && first <= m->snapshot.index + 1, "a hole before %d", (int)first);
        n = m->count;
    }
    for (uint64_t i = 0; i < n; i++)
        free(m->log[i].bytes);
    memmove(m->log, m->log + n, (m->count - n) * sizeof m->log[0]);
    m->count -= n;
    m->first = first > m->first ? first : m->first;
}

static inline void save_done(struct save_copy *s)
{
    for (uint64_t i = 0; i < s->s.entries; i++)
        free(s->entry[i].bytes);
    free(s->entry);
    free((char *)s->snapshot.bytes);
}

/* `half`: a crash came after the snapshot. */
static inline void disk_write(struct member *m, struct save_copy *s, bool half)
{
    if (s->s.snapshot) {
        free((char *)m->snapshot.bytes);
        m->snapshot = s->snapshot;
        m->has_snapshot = true;
        s->snapshot.bytes = NULL;
    }
    if (half)
        return;
    if (s->s.snapshot)
        disk_drop_before(m, s->s.log_first);
    T_OK(s->s.term >= m->term);
    T_OK(s->s.term > m->term || m->vote == 0 || m->vote == s->s.vote);
    m->term = s->s.term;
    m->vote = s->s.vote;
    if (s->s.truncate)
        disk_truncate(m, s->s.truncate);
    if (m->count == 0 && m->has_snapshot && s->s.first == m->snapshot.index + 1)
        m->first = s->s.first; /* an empty log goes on behind its snapshot */
    if (s->s.entries > 0)
        T_EQ(s->s.first, m->first + m->count, "member %d", (int)m->id);
    for (uint64_t i = 0; i < s->s.entries; i++) {
        T_OK(m->count < LOG_MAX);
        m->log[m->count++] = s->entry[i];
        s->entry[i].bytes = NULL;
    }
}

static inline void disk_take(struct member *m, const struct core_save *s)
{
    T_OK(m->saves < SAVES_MAX);
    struct save_copy *copy = &m->save[m->saves++];
    *copy = (struct save_copy){ .s = *s };
    if (s->snapshot) {
        char *bytes = malloc(s->snapshot->len + 1);
        T_OK(bytes);
        memcpy(bytes, s->snapshot->bytes, s->snapshot->len);
        copy->snapshot = *s->snapshot;
        copy->snapshot.bytes = bytes;
    }
    copy->entry = calloc(s->entries + 1, sizeof *copy->entry);
    T_OK(copy->entry);
    for (uint64_t i = 0; i < s->entries; i++) {
        struct core_entry e;
        T_OK(core_entry_at(m->c, s->first + i, &e));
        char *bytes = malloc(e.len + 1);
        T_OK(bytes);
        if (e.len)
            memcpy(bytes, e.bytes, e.len);
        copy->entry[i] = (struct stored){ e.term, e.type, bytes, e.len };
    }
}

/* ---- what must be true ---- */

static inline void check_leader(struct cluster *k, struct member *m)
{
    uint64_t term = core_term(m->c);
    if (core_state(m->c) != CORE_LEADER || k->leader[term] == m->id)
        return;
    T_OK(k->leader[term] == 0, "two leaders in term %d", (int)term);
    k->leader[term] = m->id;
    k->leaders++;
    for (uint64_t i = core_first(m->c); i <= k->last; i++) {
        struct core_entry e;
        T_OK(core_entry_at(m->c, i, &e) && e.term == k->term_at[i],
             "leader %d of term %d lacks committed entry %d", (int)m->id, (int)term, (int)i);
    }
}

static inline void check_applied(struct cluster *k, struct member *m, uint64_t term)
{
    T_OK(m->applied < LOG_MAX);
    if (m->applied > k->last) {
        T_EQ(m->applied, k->last + 1);
        k->last = m->applied;
        k->term_at[k->last] = term;
        k->sum_at[k->last] = m->sum;
    }
    T_EQ(k->term_at[m->applied], term, "member %d index %d", (int)m->id, (int)m->applied);
    T_EQ(k->sum_at[m->applied], m->sum, "member %d index %d", (int)m->id, (int)m->applied);
    k->applied_total++;
}

/* Entries of the same index and term are equal, and so are all before them. */
static inline void check_matching(struct cluster *k)
{
    for (unsigned a = 1; a <= MEMBERS; a++)
        for (unsigned b = a + 1; b <= MEMBERS; b++) {
            struct core *x = k->m[a].c, *y = k->m[b].c;
            if (!x || !y)
                continue;
            bool same = false;
            uint64_t last = core_last(x) < core_last(y) ? core_last(x) : core_last(y);
            struct core_entry e, f;
            for (; core_entry_at(x, last, &e) && core_entry_at(y, last, &f); last--) {
                T_OK(!same || e.term == f.term, "logs differ at %d", (int)last);
                same = same || e.term == f.term;
                T_OK(!same || (e.type == f.type && e.len == f.len &&
                               (e.len == 0 || memcmp(e.bytes, f.bytes, e.len) == 0)));
            }
        }
}

/* ---- outputs ---- */

static inline void apply_all(struct cluster *k, struct member *m)
{
    struct core_applying a;
    for (enum core_apply_kind kind; (kind = core_apply(m->c, &a)) != APPLY_NONE;) {
        if (kind == APPLY_SNAPSHOT) {
            T_OK(a.snapshot->len >= 16);
            memcpy(&m->applied, a.snapshot->bytes, 8);
            memcpy(&m->sum, a.snapshot->bytes + 8, 8);
            T_EQ(m->applied, a.snapshot->index);
            check_applied(k, m, a.snapshot->term);
        } else {
            T_EQ(a.entry.index, m->applied + 1);
            m->applied++;
            m->sum = mix(m->sum + (uint64_t)a.entry.type, a.entry.bytes, a.entry.len);
            check_applied(k, m, a.entry.term);
        }
        T_EQ(core_applied(m->c), m->applied);
    }
}

static inline void put_on_wire(struct cluster *k, const struct core_message *msg)
{
    static char bytes[CORE_MESSAGE_BYTES_MAX];
    size_t len = message_write(msg, bytes, sizeof bytes);
    T_OK(len > 0);
    T_OK(msg->to >= 1 && msg->to <= MEMBERS && msg->from >= 1 && msg->from <= MEMBERS);
    if (k->wires == WIRE_MAX || k->cut[msg->from][msg->to])
        return;
    char *copy = malloc(len);
    T_OK(copy);
    memcpy(copy, bytes, len);
    k->wire[k->wires++] = (struct on_wire){ copy, len, msg->from, msg->to };
}

static inline void read_step(struct cluster *k, struct member *m)
{
    if (m->ask && (core_term(m->c) != m->ask_term || core_state(m->c) != CORE_LEADER))
        m->ask = 0;
    if (m->ask && core_shown(m->c) >= m->ask && !m->ask_commit)
        m->ask_commit = core_committed(m->c);
    if (m->ask && m->ask_commit && core_applied(m->c) >= m->ask_commit) {
        T_OK(m->applied >= m->ask_floor, "a read in term %d misses entry %d", (int)m->ask_term,
             (int)m->ask_floor);
        m->ask = 0;
        k->reads++;
    }
}

/* Takes all output of a member. */
static inline void pump(struct cluster *k, struct member *m)
{
    struct core_save s;
    struct core_message msg;
    if (!m->c)
        return;
    while (core_save(m->c, &s))
        disk_take(m, &s);
    while (core_send(m->c, &msg))
        put_on_wire(k, &msg);
    apply_all(k, m);
    check_leader(k, m);
    read_step(k, m);
}

/* ---- steps ---- */

static inline void save_some(struct cluster *k, struct member *m, unsigned n)
{
    uint64_t number = 0;
    n = n < m->saves ? n : m->saves;
    for (unsigned i = 0; i < n; i++) {
        disk_write(m, &m->save[i], false);
        number = m->save[i].s.number;
        save_done(&m->save[i]);
    }
    m->saves -= n;
    memmove(m->save, m->save + n, m->saves * sizeof m->save[0]);
    if (m->c && n > 0) {
        core_saved(m->c, number, k->now);
        pump(k, m);
    }
}

static inline void stop(struct cluster *k, struct member *m, bool half)
{
    (void)k;
    core_free(m->c);
    m->c = NULL;
    m->ask = 0;
    if (half && m->saves > 0)
        disk_write(m, &m->save[0], true);
    for (unsigned i = 0; i < m->saves; i++)
        save_done(&m->save[i]);
    m->saves = 0;
}

static inline void start(struct cluster *k, uint64_t id)
{
    struct member *m = &k->m[id];
    struct core_entry *entry = calloc(m->count + 1, sizeof *entry);
    T_OK(entry && !m->c);
    for (uint64_t i = 0; i < m->count; i++)
        entry[i] = (struct core_entry){ m->first + i, m->log[i].term, m->log[i].type,
                                        m->log[i].bytes, m->log[i].len };
    struct core_opts o = { .id = id, .election_ms = 100, .seed = below(k, 1 << 30) };
    struct core_saved_state s = { .term = m->term,
                                  .vote = m->vote,
                                  .snapshot = m->has_snapshot ? &m->snapshot : NULL,
                                  .first = m->first,
                                  .entry = entry,
                                  .entries = m->count };
    m->id = id;
    m->applied = m->sum = 0;
    T_EQ(core_new(&o, &s, k->now, &m->c), 0);
    free(entry);
    pump(k, m);
}

static inline void drop(struct cluster *k, unsigned i)
{
    free(k->wire[i].bytes);
    k->wire[i] = k->wire[--k->wires];
}

static inline void deliver(struct cluster *k, unsigned i, bool keep)
{
    static struct core_message_room room;
    struct core_message msg;
    struct member *m = &k->m[k->wire[i].to];
    T_EQ(message_read(k->wire[i].bytes, k->wire[i].len, &msg, &room), 0);
    if (m->c) {
        core_receive(m->c, &msg, k->now);
        pump(k, m);
    }
    if (!keep)
        drop(k, i);
}

static inline void tick(struct cluster *k, uint64_t ms)
{
    k->now += ms;
    for (unsigned i = 1; i <= MEMBERS; i++)
        if (k->m[i].c && !k->paused[i]) {
            core_tick(k->m[i].c, k->now);
            pump(k, &k->m[i]);
        }
}

static inline struct member *leader_of(struct cluster *k) /* of the highest term; NULL: none */
{
    struct member *best = NULL;
    for (unsigned i = 1; i <= MEMBERS; i++) {
        struct member *m = &k->m[i];
        if (m->c && core_state(m->c) == CORE_LEADER &&
            (!best || core_term(m->c) > core_term(best->c)))
            best = m;
    }
    return best;
}

/* Everything arrives and is saved at once, for so long. */
static inline void run(struct cluster *k, uint64_t ms)
{
    for (uint64_t end = k->now + ms; k->now < end;) {
        bool more = true;
        for (unsigned guard = 0; more && guard < 10000; guard++) {
            more = false;
            for (unsigned i = 1; i <= MEMBERS; i++)
                if (k->m[i].saves) {
                    save_some(k, &k->m[i], SAVES_MAX);
                    more = true;
                }
            if (k->wires) {
                struct on_wire w = k->wire[0];
                if (k->cut[w.from][w.to])
                    drop(k, 0);
                else
                    deliver(k, 0, false);
                more = true;
            }
        }
        tick(k, 10);
    }
}

static inline struct cluster *cluster_new(uint64_t seed)
{
    struct cluster *k = calloc(1, sizeof *k);
    T_OK(k);
    k->random = seed;
    k->now = 1000;
    for (unsigned i = 1; i <= MEMBERS; i++) {
        k->m[i].id = i;
        k->m[i].first = 1;
    }
    return k;
}

/* A cluster of the voters of `voters` ("123"), without a leader yet. */
static inline struct cluster *cluster_of(const char *voters, uint64_t seed)
{
    struct cluster *k = cluster_new(seed);
    struct core_config config = config_of(voters, "");
    for (const char *v = voters; *v; v++) {
        start(k, (uint64_t)(*v - '0'));
        T_EQ(core_bootstrap(k->m[*v - '0'].c, &config), 0);
        pump(k, &k->m[*v - '0']);
        save_some(k, &k->m[*v - '0'], SAVES_MAX);
    }
    return k;
}

static inline void cluster_free(struct cluster *k)
{
    while (k->wires)
        drop(k, 0);
    for (unsigned i = 1; i <= MEMBERS; i++) {
        stop(k, &k->m[i], false);
        disk_truncate(&k->m[i], 0);
        free((char *)k->m[i].snapshot.bytes);
    }
    free(k);
}

static inline int propose(struct cluster *k, struct member *m, uint64_t value)
{
    uint64_t index;
    int r = core_propose(m->c, (const char *)&value, sizeof value, &index);
    if (r == 0)
        pump(k, m);
    return r;
}

static inline int take_snapshot(struct cluster *k, struct member *m, uint64_t keep, size_t pad)
{
    char bytes[4096] = { 0 };
    memcpy(bytes, &m->applied, 8);
    memcpy(bytes + 8, &m->sum, 8);
    int r = core_snapshot(m->c, bytes, 16 + pad, keep);
    if (r == 0) {
        k->snapshots++;
        pump(k, m);
    }
    return r;
}

#endif
