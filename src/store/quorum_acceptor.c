/*
 * The thread of one acceptor of a quorum. A message is applied as a compare-and-swap of the whole
 * record: read it (or take it from memory: the swap compares), step, write. A swap that lost is
 * done again on the record that is there now. So is one whose outcome is unknown: if it landed, the
 * record is the one that we tried to write; if it lands later, it lands on the very record that it
 * was made from, as a late message does.
 *
 * All waiting messages are taken at once and written in one transaction where the engine has one.
 *
 * Which store may vote. The store's px-member names the quorum and the store's own identity.
 * Without px-member, with another quorum's, or with another store's identity (a copy, a restored
 * backup) the store does not know its promises: it is refused until it is admitted again. Its floor
 * replaces the ballots of its earlier life and also holds for registers that have no record yet.
 * Such a record may be created while another process raises the floor, and be missed by that
 * process. So the floor is read again after the write of a record that was absent or had accepted
 * nothing, and where it rose above the ballot no answer is given. The record stays; the next
 * acceptor that finds it, with an old floor in memory, does the same.
 *
 * A write compares the store's identity, a read does not: its answer may come from a store that
 * took the place of ours, or was emptied. So a read is answered only after the store was asked for
 * its identity, and where there was no record, whether px-member is still there. An engine may
 * notice that it lost data and keep its identity (etcd, PostgreSQL): then px-member is rewritten so
 * that every handle sees it.
 *
 * Tested by tests/store/quorum.py and the simulator (sim/).
 */
#include "store/quorum_acceptor.h"
#include "store/machine.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    BATCH_MAX = 64,   /* messages in one transaction; the least that an engine takes is 128 */
    QUEUE_MAX = 2048, /* eight full calls: beyond it the store is too slow to be of use */
    TRIES_MAX = 20,   /* swaps that lose against other writers of the register */
    REOPEN_MS = 500,  /* between two looks at a store that is away or refused */
    SEEN = 512,       /* records that are remembered */
};

struct seen { /* a record as it was last seen */
    bool used, present;
    size_t key_len, len;
    char key[STORE_KEY_MAX], text[PAXOS_TEXT_MAX];
};

struct acceptor_own {
    struct firn_store *store; /* NULL: not open */
    int64_t look_ms;          /* when to look at it again; 0: at once */
    uint64_t floor;
    bool forgot;       /* the store reported that it lost acknowledged writes, */
    struct nonce self; /* as the member that it was then */
    struct seen seen[SEEN];
};

void job_free(struct job *j)
{
    if (j && j->kind == JOB_SCAN)
        free(j->scanned.bytes);
    free(j);
}

/* ---- membership ---- */

static void set_state(struct acceptor *a, enum acceptor_state state, const struct quorum_member *m,
                      const char *text, size_t len, const struct firn_diag *why)
{
    pthread_mutex_lock(&a->inbox->lock);
    firn_assert(len <= MEMBER_TEXT_MAX, "len=%zu", len);
    a->state = state;
    a->member = *m;
    a->member_len = len;
    if (len > 0)
        memcpy(a->member_text, text, len);
    a->why = *why;
    pthread_cond_broadcast(&a->inbox->news);
    pthread_mutex_unlock(&a->inbox->lock);
}

static const char *const cause[] = {
    [REFUSED_EMPTY] = "it has no record of its promises, it is empty or was wiped",
    [REFUSED_BROKEN] = "its record px-member cannot be read",
    [REFUSED_FOREIGN] = "it belongs to another quorum",
    [REFUSED_COUNT] = "its quorum has another number of stores",
    [REFUSED_CHANGED] = "it is not the store that was admitted, but a copy, restored or restarted",
};

/* `found` and the text of px-member, if there is one: for an admission. `what`: NULL, or more
 * than the cause. */
static void refuse(struct acceptor *a, enum acceptor_refusal refusal, const char *what,
                   const struct quorum_member *found, const char *text, size_t len)
{
    static const struct quorum_member none;
    struct firn_diag why = { 0 };
    pthread_mutex_lock(&a->inbox->lock);
    a->found = *found;
    a->refusal = refusal;
    pthread_mutex_unlock(&a->inbox->lock);
    firn__diag(&why, FIRN_ESTORE, 0, "%s", what ? what : cause[refusal]);
    set_state(a, ACCEPTOR_REFUSED, &none, text, len, &why);
}

static bool look(struct acceptor *a, struct firn_diag *d);

/* Replaces px-member, and reads the record that stands there afterwards. */
static bool rewrite(struct acceptor *a, const struct quorum_member *m,
                    const struct firn_record *rec, struct firn_diag *d)
{
    char text[MEMBER_TEXT_MAX];
    struct firn_cas cas = { { QUORUM_MEMBER_KEY, strlen(QUORUM_MEMBER_KEY) },
                            { rec->value, rec->len },
                            { text, quorum_member_encode(m, text) } };
    int r = firn_store_cas(a->own->store, &cas, d);
    return (r == 0 || r == FIRN_ECONFLICT) && look(a, d);
}

/* Read px-member and judge. false: it cannot be read now. */
static bool look(struct acceptor *a, struct firn_diag *d)
{
    struct acceptor_own *o = a->own;
    struct firn_record rec;
    struct quorum_member m = { 0 };
    char identity[STORE_ID_TEXT_BUF];
    int r = firn_store_identity(o->store, identity, d);
    if (r == 0) {
        pthread_mutex_lock(&a->inbox->lock);
        memcpy(a->identity, identity, sizeof identity);
        pthread_mutex_unlock(&a->inbox->lock);
        r = firn_store_read(o->store, firn_slice(QUORUM_MEMBER_KEY, strlen(QUORUM_MEMBER_KEY)),
                            true, &rec, d);
    }
    if (r == FIRN_ENOENT) {
        memcpy(m.store, identity, sizeof m.store);
        pthread_mutex_lock(&a->inbox->lock);
        bool had = a->named || a->formed;
        pthread_mutex_unlock(&a->inbox->lock);
        if (had)
            refuse(a, REFUSED_EMPTY, NULL, &m, NULL, 0);
        else
            set_state(a, ACCEPTOR_BLANK, &m, NULL, 0, &(struct firn_diag){ 0 });
        return true;
    }
    if (r != 0)
        return false;
    if (rec.len > MEMBER_TEXT_MAX)
        rec.len = 0; /* of another program */
    struct quorum_member found = { 0 };
    r = quorum_member_parse(rec.value, rec.len, &m, d);
    if (r == 0)
        found = m;
    memcpy(found.store, identity, sizeof found.store);
    if (r != 0) {
        refuse(a, REFUSED_BROKEN, NULL, &found, rec.value, rec.len);
        return true;
    }
    pthread_mutex_lock(&a->inbox->lock);
    bool named = a->named, other = named && !nonce_eq(&a->quorum, &m.quorum);
    pthread_mutex_unlock(&a->inbox->lock);
    if (other || m.acceptors != a->acceptors) {
        refuse(a, other ? REFUSED_FOREIGN : REFUSED_COUNT, NULL, &found, rec.value, rec.len);
    } else if (!file_identity_same(m.store, identity) && !a->restart_ok) {
        refuse(a, REFUSED_CHANGED, NULL, &found, rec.value, rec.len);
    } else if (o->forgot && nonce_eq(&m.self, &o->self) && !a->restart_ok) {
        /* Its identity does not tell that it forgot something: its record shall. It fits no
         * store. */
        memcpy(m.store, "forgot", sizeof "forgot");
        return rewrite(a, &m, &rec, d);
    } else {
        if (named && m.state == MEMBER_FORMING) {
            m.state =
                MEMBER_FORMED; /* the quorum is; this store was not told that all others are */
            return rewrite(a, &m, &rec, d);
        }
        o->floor = m.floor;
        set_state(a, ACCEPTOR_MEMBER, &m, rec.value, rec.len, &(struct firn_diag){ 0 });
    }
    return true;
}

/* Until it can be opened again; `error` is what opening it said, if that was tried. */
static void leave(struct acceptor *a, int error, const struct firn_diag *why)
{
    static const struct quorum_member none;
    struct acceptor_own *o = a->own;
    bool unfit = error == FIRN_ENOTSUP || error == FIRN_EFORMAT;
    firn_store_close(o->store);
    o->store = NULL;
    o->look_ms = mono_now_ms() + REOPEN_MS;
    pthread_mutex_lock(&a->inbox->lock);
    a->error = error;
    pthread_mutex_unlock(&a->inbox->lock);
    set_state(a, unfit ? ACCEPTOR_UNFIT : ACCEPTOR_AWAY, &none, NULL, 0, why);
}

static void replaced(struct acceptor *a, const struct firn_diag *why);

/* A store that says itself that it forgot confirmed writes (a file without its log): its record
 * shall say so from now on, as look() has it written for one that was seen to forget. */
static int remember_loss(struct acceptor *a, struct firn_diag *d)
{
    struct firn_slice key = firn_slice(QUORUM_MEMBER_KEY, strlen(QUORUM_MEMBER_KEY));
    struct acceptor_own *o = a->own;
    char text[MEMBER_TEXT_MAX];
    struct firn_record rec;
    struct quorum_member m;
    int r = firn_store_accept(o->store, false, d);
    if (r == 0)
        r = firn_store_read(o->store, key, true, &rec, d);
    if (r == 0 && quorum_member_parse(rec.value, rec.len, &m, NULL) == 0) {
        memcpy(m.store, "forgot", sizeof "forgot");
        struct firn_cas cas = { key, firn_slice(rec.value, rec.len),
                                firn_slice(text, quorum_member_encode(&m, text)) };
        r = firn_store_cas(o->store, &cas, d);
    }
    return r == 0 || r == FIRN_ENOENT ? firn_store_accept(o->store, true, d) : r;
}

/* Open the store if it is not, and see whether it is a member. */
static void attend(struct acceptor *a)
{
    struct acceptor_own *o = a->own;
    struct firn_diag d = { 0 };
    if (o->store && firn_store_check(o->store, &d) == FIRN_ESTORE) {
        replaced(a, &d);
        return;
    }
    o->look_ms = mono_now_ms() + REOPEN_MS;
    for (size_t i = 0; i < SEEN; i++)
        o->seen[i].used = false;
    int r = o->store ? 0 : a->open(a->url, a->timeout_ms, &o->store, &d);
    if (r != 0)
        o->store = NULL;
    else if (firn_store_check(o->store, &d) == FIRN_ESTORE)
        r = remember_loss(a, &d);
    if (r != 0 || !look(a, &d))
        leave(a, r, &d);
}

/* The engine says that it is another one: what it promised may be lost. */
static void replaced(struct acceptor *a, const struct firn_diag *why)
{
    pthread_mutex_lock(&a->inbox->lock);
    a->own->forgot = a->state == ACCEPTOR_MEMBER;
    a->own->self = a->member.self;
    pthread_mutex_unlock(&a->inbox->lock);
    leave(a, 0, why);
    if (a->restart_ok)
        attend(a);
    else
        refuse(a, REFUSED_CHANGED, why->text[0] ? why->text : "it is not the store that was opened",
               &(struct quorum_member){ 0 }, NULL, 0);
}

static bool may_vote(struct acceptor *a)
{
    pthread_mutex_lock(&a->inbox->lock);
    bool yes = a->state == ACCEPTOR_MEMBER && a->member.state == MEMBER_FORMED && a->named &&
               nonce_eq(&a->quorum, &a->member.quorum);
    pthread_mutex_unlock(&a->inbox->lock);
    return yes && a->own->store;
}

/* ---- records ---- */

static struct seen *seen_of(struct acceptor_own *o, const struct job *j)
{
    return &o->seen[record_name_hash(j->key, j->key_len) % SEEN];
}

static bool is_seen(const struct seen *s, const struct job *j)
{
    return s->used && s->key_len == j->key_len && memcmp(s->key, j->key, j->key_len) == 0;
}

static void keep(struct seen *s, const struct job *j, bool present, const char *text, size_t len)
{
    firn_assert(j->key_len <= sizeof s->key && len <= sizeof s->text, "key_len=%zu len=%zu",
                j->key_len, len);
    s->used = true;
    s->present = present;
    s->key_len = j->key_len;
    memcpy(s->key, j->key, j->key_len);
    s->len = len;
    if (len > 0)
        memcpy(s->text, text, len);
}

struct step { /* one message on its way into the store */
    struct job *job;
    struct seen before; /* the record that it is made from */
    size_t len;         /* of what is to be written; 0: nothing */
    char text[PAXOS_TEXT_MAX];
    int tries;
    bool done, doubt; /* doubt: an earlier write of this message may have landed */
    bool bare;        /* the record was absent, or had accepted nothing */
};

static void end(struct step *s, int result)
{
    s->done = true;
    s->job->result = result;
}

/* Read the record unless it is remembered, and make the step. */
static void prepare(struct acceptor *a, struct step *s, struct firn_diag *d)
{
    struct acceptor_own *o = a->own;
    struct seen *seen = seen_of(o, s->job);
    const struct paxos_message *m = &s->job->message;
    struct paxos_acceptor memory = { 0 };
    bool looks = s->job->kind == JOB_PAXOS && m->ask == PAXOS_LOOK;
    if (s->tries++ == TRIES_MAX) {
        firn__diag(d, FIRN_EAGAIN, 0, "too many concurrent writes of the same register: try again");
        end(s, FIRN_EAGAIN);
        return;
    }
    if (!is_seen(seen, s->job) || looks) {
        struct firn_record rec;
        int r = firn_store_read(o->store, firn_slice(s->job->key, s->job->key_len), true, &rec, d);
        if (r != 0 && r != FIRN_ENOENT) {
            end(s, r);
            return;
        }
        if (r == 0 && rec.len > PAXOS_TEXT_MAX) {
            end(s, firn__diag(d, FIRN_EFORMAT, 0, "a record that is too long"));
            return;
        }
        keep(seen, s->job, r == 0, rec.value, r == 0 ? rec.len : 0);
    }
    if (s->doubt && seen->present && seen->len == s->len &&
        memcmp(seen->text, s->text, s->len) == 0) {
        end(s, 0); /* it had landed; the answer is there already */
        return;
    }
    s->before = *seen;
    if (seen->present) {
        int r = paxos_parse(seen->text, seen->len, &memory, d);
        if (r != 0) {
            seen->used = false;
            end(s, r);
            return;
        }
    }
    if (s->job->kind == JOB_WRITE) {
        s->len = paxos_encode(&s->job->memory, s->text);
        firn_assert(s->len > 0 && s->len <= PAXOS_TEXT_MAX, "len=%zu", s->len);
        return;
    }
    s->bare = memory.accepted.round == 0;
    paxos_acceptor_raise(&memory, o->floor);
    s->job->answer.firm = !s->doubt;
    struct ballot promised = memory.promised;
    bool changed = paxos_acceptor_step(&memory, m, &s->job->answer);
    firn_assert(ballot_cmp(memory.promised, promised) >= 0); /* a promise is never taken back */
    firn_assert(ballot_cmp(memory.accepted, memory.promised) <= 0);
    if (changed)
        s->len = paxos_encode(&memory, s->text);
    else
        end(s, 0);
    firn_assert(!changed || (s->len > 0 && s->len <= PAXOS_TEXT_MAX), "len=%zu", s->len);
}

/* What the store said to the write. */
static void written(struct acceptor *a, struct step *s, int result)
{
    struct seen *seen = seen_of(a->own, s->job);
    if (result == 0) {
        keep(seen, s->job, true, s->text, s->len);
        end(s, 0);
        return;
    }
    seen->used = false;
    if (result == FIRN_EUNKNOWN)
        s->doubt = true;
    else if (result != FIRN_ECONFLICT)
        end(s, result);
}

static struct firn_cas cas_of(const struct step *s)
{
    struct firn_slice old = { NULL, 0 };
    if (s->before.present)
        old = firn_slice(s->before.text, s->before.len);
    return (struct firn_cas){ firn_slice(s->job->key, s->job->key_len), old,
                              firn_slice(s->text, s->len) };
}

/* Write all steps that are prepared. false: the engine is another one. */
static bool write_steps(struct acceptor *a, struct step *s, size_t n, struct firn_diag *d)
{
    struct firn_store *store = a->own->store;
    struct firn_cas cas[BATCH_MAX];
    struct step *which[BATCH_MAX];
    int result[BATCH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (!s[i].done) {
            which[count] = &s[i];
            cas[count++] = cas_of(&s[i]);
        }
    firn_assert(count > 0 && count <= BATCH_MAX, "count=%zu", count);
    if (count > 1 && store->ops->cas_many) {
        int r = firn_store_cas_many(store, cas, count, result, d);
        for (size_t i = 0; r != 0 && i < count; i++)
            result[i] = r;
    } else {
        for (size_t i = 0; i < count; i++)
            result[i] = firn_store_cas(store, &cas[i], d);
    }
    bool same = true;
    for (size_t i = 0; i < count; i++) {
        same &= result[i] != FIRN_ESTORE;
        written(a, which[i], result[i]);
    }
    return same;
}

static bool is_bare_vote(const struct step *s)
{
    return s->job->kind == JOB_PAXOS && s->bare && s->len > 0 && s->job->result == 0;
}

/* Votes on records that had accepted nothing only count if the floor is still where it was. */
static void check_bare(struct acceptor *a, struct step *s, size_t n, struct firn_diag *d)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= is_bare_vote(&s[i]);
    if (!any)
        return;
    bool looked = look(a, d) && may_vote(a);
    for (size_t i = 0; i < n; i++)
        if (is_bare_vote(&s[i]) && (!looked || s[i].job->message.ballot.round < a->own->floor))
            s[i].job->result = FIRN_EAGAIN;
}

/* What was read came from the member that we believe it is. 0: it did. */
static int still_member(struct acceptor *a, bool absent, struct firn_diag *d)
{
    struct firn_record rec;
    int r = firn_store_check(a->own->store, d);
    if (r != 0 || !absent)
        return r;
    r = firn_store_read(a->own->store, firn_slice(QUORUM_MEMBER_KEY, strlen(QUORUM_MEMBER_KEY)),
                        true, &rec, d);
    if (r == 0 && rec.len == a->member_len && memcmp(rec.value, a->member_text, rec.len) == 0)
        return 0;
    if (r != 0 && r != FIRN_ENOENT)
        return r;
    return look(a, d) && may_vote(a) ? 0 : FIRN_EIO;
}

static bool is_look(const struct step *s)
{
    return s->job->kind == JOB_PAXOS && s->job->message.ask == PAXOS_LOOK && s->job->result == 0;
}

static void check_looks(struct acceptor *a, struct step *s, size_t n, struct firn_diag *d)
{
    bool any = false, absent = false;
    for (size_t i = 0; i < n; i++) {
        any |= is_look(&s[i]);
        absent |= is_look(&s[i]) && !s[i].before.present;
    }
    int r = any ? still_member(a, absent, d) : 0;
    for (size_t i = 0; i < n; i++)
        if (is_look(&s[i]))
            s[i].job->result = r;
    if (r == FIRN_ESTORE)
        replaced(a, d);
}

static void run_steps(struct acceptor *a, struct step *s, size_t n, struct firn_diag *d)
{
    bool same = true, open = true;
    while (same && open) {
        open = false;
        for (size_t i = 0; i < n; i++)
            if (!s[i].done)
                prepare(a, &s[i], d);
        for (size_t i = 0; i < n; i++)
            open |= !s[i].done;
        if (open)
            same = write_steps(a, s, n, d);
    }
    firn_assert(!same || !open); /* every step has ended, or the store became another one */
    for (size_t i = 0; i < n; i++)
        if (!s[i].done)
            end(&s[i], FIRN_ESTORE);
    if (same) {
        check_bare(a, s, n, d);
        check_looks(a, s, n, d);
    } else {
        replaced(a, d);
    }
}

/* ---- the other jobs ---- */

static int pack(struct scanned *f, struct firn_slice s)
{
    size_t need = f->len + sizeof s.len + s.len;
    if (need > f->room) {
        char *bytes = realloc(f->bytes, need * 2);
        if (!bytes)
            return FIRN_ENOMEM;
        f->bytes = bytes;
        f->room = need * 2;
    }
    memcpy(f->bytes + f->len, &s.len, sizeof s.len);
    if (s.len > 0)
        memcpy(f->bytes + f->len + sizeof s.len, s.p, s.len);
    f->len = need;
    return 0;
}

struct firn_slice scanned_next(const struct scanned *f, size_t *at)
{
    size_t len;
    firn_assert(*at + sizeof len <= f->len, "at=%zu len=%zu", *at, f->len);
    memcpy(&len, f->bytes + *at, sizeof len);
    struct firn_slice s = { f->bytes + *at + sizeof len, len };
    *at += sizeof len + len;
    firn_assert(*at <= f->len, "at=%zu len=%zu", *at, f->len);
    return s;
}

static int pack_record(void *user, struct firn_slice key, struct firn_slice value)
{
    struct scanned *f = user;
    firn_assert(key.len >= QUORUM_PREFIX_LEN, "key_len=%zu", key.len);
    f->more = f->max > 0 && f->count == f->max;
    if (f->more)
        return FIRN_EAGAIN;
    f->count++;
    int r = pack(user, firn_slice(key.p + QUORUM_PREFIX_LEN, key.len - QUORUM_PREFIX_LEN));
    return r ? r : pack(user, value);
}

static void run_scan(struct acceptor *a, struct job *j, struct firn_diag *d)
{
    if (!may_vote(a)) {
        j->result = FIRN_EIO;
        return;
    }
    struct firn_slice after = { j->scan.after_len ? j->scan.after : NULL, j->scan.after_len };
    j->result = firn_store_scan_after(a->own->store, firn_slice(j->key, j->key_len), after,
                                      pack_record, &j->scanned, d);
    if (j->scanned.more && j->result == FIRN_EAGAIN)
        j->result = 0;
    if (j->result == 0)
        j->result = still_member(a, true, d);
    if (j->result == FIRN_ESTORE)
        replaced(a, d);
}

static void run_member(struct acceptor *a, struct job *j, struct firn_diag *d)
{
    struct firn_cas cas = { { QUORUM_MEMBER_KEY, strlen(QUORUM_MEMBER_KEY) },
                            { j->member.old_len ? j->member.old : NULL, j->member.old_len },
                            { j->member.text, j->member.text_len } };
    j->result = firn_store_cas(a->own->store, &cas, d);
    attend(a); /* whatever it said: what is there now counts */
}

/* ---- the thread ---- */

static void give_back(struct acceptor *a, struct job *first, const struct firn_diag *d)
{
    pthread_mutex_lock(&a->inbox->lock);
    for (struct job *j = first, *next; j; j = next) {
        next = j->next;
        j->next = NULL;
        if (j->result != 0 && d->text[0])
            a->why = *d;
        *a->inbox->last = j;
        a->inbox->last = &j->next;
    }
    pthread_cond_broadcast(&a->inbox->news);
    pthread_mutex_unlock(&a->inbox->lock);
}

static void run_one(struct acceptor *a, struct job *j, struct firn_diag *d)
{
    switch (j->kind) {
    case JOB_SCAN:
        run_scan(a, j, d);
        break;
    case JOB_MEMBER:
        j->result = FIRN_EIO;
        if (a->own->store)
            run_member(a, j, d);
        break;
    case JOB_PAXOS:
    case JOB_WRITE:
        break;
    }
}

/* Jobs of one kind, of different registers. */
static void run_jobs(struct acceptor *a, struct job *first)
{
    static const struct firn_diag none;
    struct firn_diag d = none;
    if (first->kind == JOB_SCAN || first->kind == JOB_MEMBER) {
        run_one(a, first, &d);
        give_back(a, first, &d);
        return;
    }
    size_t n = 0;
    for (const struct job *j = first; j; j = j->next)
        n++;
    firn_assert(n <= BATCH_MAX, "n=%zu", n);
    struct step *s = calloc(n, sizeof *s);
    bool ready = s && (may_vote(a) || (first->kind == JOB_WRITE && a->own->store));
    n = 0;
    for (struct job *j = first; j; j = j->next) {
        j->result = FIRN_EIO;
        if (ready)
            s[n++].job = j;
    }
    if (ready)
        run_steps(a, s, n, &d);
    free(s);
    give_back(a, first, &d);
}

static bool same_register(const struct job *first, const struct job *k)
{
    for (const struct job *j = first; j; j = j->next)
        if (j->key_len == k->key_len && memcmp(j->key, k->key, k->key_len) == 0)
            return true;
    return false;
}

/* Under the lock: the jobs that can be done together. Jobs of calls that are over are
 * dropped, except that an accepted value may still reach an acceptor that was slow. */
static struct job *take(struct acceptor *a)
{
    struct job *first = NULL, **last = &first;
    int64_t now = mono_now_ms();
    for (size_t n = 0; a->first && n < BATCH_MAX;) {
        struct job *j = a->first;
        bool single = j->kind == JOB_SCAN || j->kind == JOB_MEMBER;
        bool over = j->call != a->inbox->call &&
                    (single || j->kind == JOB_WRITE || j->message.ask != PAXOS_ACCEPT);
        if (!over && j->until_ms >= now &&
            (first && (single || first->kind != j->kind || same_register(first, j))))
            break;
        firn_assert(a->queued > 0);
        a->first = j->next;
        a->queued--;
        j->next = NULL;
        if (over || j->until_ms < now) {
            job_free(j);
            continue;
        }
        *last = j;
        last = &j->next;
        n++;
        if (single)
            break;
    }
    if (!a->first)
        a->last = &a->first;
    return first;
}

static void sleep_until(struct acceptor *a, int64_t ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    pthread_cond_timedwait(&a->wake, &a->inbox->lock, &t);
}

static void *run(void *user)
{
    struct acceptor *a = user;
    attend(a);
    pthread_mutex_lock(&a->inbox->lock);
    while (!a->closing) {
        bool well = a->state == ACCEPTOR_MEMBER || a->state == ACCEPTOR_BLANK;
        if (a->look || (!well && mono_now_ms() >= a->own->look_ms)) {
            a->look = false;
            pthread_mutex_unlock(&a->inbox->lock);
            attend(a);
            pthread_mutex_lock(&a->inbox->lock);
            continue;
        }
        struct job *jobs = take(a);
        if (jobs) {
            pthread_mutex_unlock(&a->inbox->lock);
            run_jobs(a, jobs);
            pthread_mutex_lock(&a->inbox->lock);
        } else if (well) {
            pthread_cond_wait(&a->wake, &a->inbox->lock);
        } else {
            sleep_until(a, a->own->look_ms);
        }
    }
    pthread_mutex_unlock(&a->inbox->lock);
    firn_store_close(a->own->store);
    a->own->store = NULL;
    return NULL;
}

int acceptor_start(struct acceptor *a, struct firn_diag *d)
{
    a->last = &a->first;
    a->own = calloc(1, sizeof *a->own);
    if (!a->own)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    mono_cond_init(&a->wake);
    a->running = pthread_create(&a->thread, NULL, run, a) == 0;
    return a->running ? 0 : firn__diag(d, FIRN_ENOMEM, 0, "cannot start a thread");
}

void acceptor_send(struct acceptor *a, struct job *j)
{
    j->next = NULL;
    j->acceptor = a->index;
    firn_assert(a->queued <= QUEUE_MAX, "queued=%zu", a->queued);
    if (a->queued == QUEUE_MAX) { /* it does not keep up: as if it had not heard */
        j->result = FIRN_EIO;
        *a->inbox->last = j;
        a->inbox->last = &j->next;
        return;
    }
    *a->last = j;
    a->last = &j->next;
    a->queued++;
    pthread_cond_signal(&a->wake);
}

void acceptor_look(struct acceptor *a)
{
    a->look = true;
    pthread_cond_signal(&a->wake);
}

void acceptor_stop(struct acceptor *a)
{
    if (!a->running)
        return;
    pthread_mutex_lock(&a->inbox->lock);
    a->closing = true;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->inbox->lock);
}

void acceptor_join(struct acceptor *a)
{
    if (a->running)
        pthread_join(a->thread, NULL);
    if (a->own)
        pthread_cond_destroy(&a->wake);
    while (a->first) {
        struct job *j = a->first;
        a->first = j->next;
        job_free(j);
    }
    free(a->own);
    a->own = NULL;
    a->running = false;
}
