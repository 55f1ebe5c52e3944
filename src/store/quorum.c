/*
 * The registers of a quorum. A call begins a proposer for each register and carries messages
 * between it and the acceptors' threads (quorum_acceptor.h) until it is done or the time is over.
 * All proposers of this handle run on the caller's thread; acceptors only get and give back jobs.
 * What comes back after its call is over is dropped: for the register that is a late message.
 *
 * Opening waits for a majority of members of one quorum. Where nothing was formed yet, and all
 * stores are there, it forms one: each store gets a record "forming", the one whose URL comes first
 * before the others, because its nonce is the quorum's. When all have it, each becomes "formed",
 * and only then it votes. So a store without a record beside one that is formed was wiped, and is
 * refused.
 *
 * Tested by tests/store/quorum.py.
 */
#include "store/quorum_impl.h"
#include "store/check.h"
#include "store/quorum_say.h"
#include "store/url.h"
#include "platform/assert.h"
#include "id/diag.h"
#include "id/rng_take.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TIMEOUT_MS_DEFAULT = 2000,
    BACK_OFF_BITS_MAX = 6, /* of milliseconds */
    HURRY_MS = 4,          /* when a majority answered, the other stores have this time, */
    HURRY_MS_MAX = 250,    /* or as long as the majority took, up to this */
    SCAN_CALLS_MAX =
        64, /* registers that a scan asks for at once, beside what the scan itself shows */
};

static uint64_t draw(struct quorum *q)
{
    uint64_t z = (q->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- waiting ---- */

static void wait_news(struct quorum *q, int64_t until_ms)
{
    struct timespec t = { until_ms / 1000, until_ms % 1000 * 1000000 };
    pthread_cond_timedwait(&q->inbox.news, &q->inbox.lock, &t);
}

static struct job *take_answer(struct quorum *q)
{
    struct job *j = q->inbox.first;
    if (!j)
        return NULL;
    q->inbox.first = j->next;
    if (!j->next)
        q->inbox.last = &q->inbox.first;
    return j;
}

struct job *quorum_answer(struct quorum *q, int64_t until_ms)
{
    for (;;) {
        struct job *j = take_answer(q);
        if (j && j->call == q->inbox.call)
            return j;
        job_free(j);
        if (!j) {
            if (mono_now_ms() >= until_ms)
                return NULL;
            wait_news(q, until_ms);
        }
    }
}

void quorum_settle(struct quorum *q, unsigned i, int64_t until_ms)
{
    const struct acceptor *a = &q->acceptor[i];
    while ((a->state == ACCEPTOR_OPENING || (a->state == ACCEPTOR_REFUSED && !a->found.store[0])) &&
           mono_now_ms() < until_ms)
        wait_news(q, until_ms);
}

static unsigned members(const struct quorum *q)
{
    return quorum_together(q->acceptor, q->n);
}

int quorum_explain(struct quorum *q, int error, struct firn_diag *d)
{
    char text[sizeof d->text];
    quorum_say(q->acceptor, q->n, text, sizeof text);
    return firn__diag(d, error, 0, "%s", text);
}

static bool is_lost(const struct quorum *q)
{
    return quorum_hopeless(q->acceptor, q->n) == FIRN_ESTORE;
}

/* ---- calls ---- */

struct job *quorum_job(struct quorum *q, enum job_kind kind, struct firn_slice key,
                       int64_t until_ms)
{
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    firn_assert(key.len <= QUORUM_KEY_MAX, "key_len=%zu", key.len);
    j->kind = kind;
    j->call = q->inbox.call;
    j->until_ms = until_ms;
    j->key_len = QUORUM_PREFIX_LEN + key.len;
    memcpy(j->key, QUORUM_PREFIX, QUORUM_PREFIX_LEN);
    if (key.len > 0)
        memcpy(j->key + QUORUM_PREFIX_LEN, key.p, key.len);
    return j;
}

static bool send_all(struct quorum *q, const struct call *c, unsigned index, int64_t until_ms)
{
    for (unsigned i = 0; i < q->n; i++) {
        struct job *j = quorum_job(q, JOB_PAXOS, c->key, until_ms);
        if (!j)
            return false;
        j->index = index;
        j->attempt = c->p.attempt;
        j->message = c->p.message;
        acceptor_send(&q->acceptor[i], j);
    }
    return true;
}

/* How long to rest before the next attempt. The first time not at all, since other proposers
 * just went on; then longer and longer, so that one of them gets through. With a change in doubt
 * hardly at all: the chain must still reach back to it, or its outcome stays unknown. */
static int64_t rest_ms(struct quorum *q, struct call *c)
{
    unsigned bits = c->rests < BACK_OFF_BITS_MAX ? c->rests : BACK_OFF_BITS_MAX;
    if (c->rests++ == 0)
        return 0;
    if (c->p.proposed)
        return (int64_t)(draw(q) >> 63);
    return 1 + (int64_t)(draw(q) >> (64 - bits));
}

static void follow(struct quorum *q, struct call *c, unsigned index, enum paxos_do what,
                   int64_t until_ms)
{
    int64_t now = mono_now_ms();
    switch (what) {
    case PAXOS_WAIT:
        break;
    case PAXOS_SEND:
        c->sent_ms = now;
        c->wake_ms = INT64_MAX;
        if (!send_all(q, c, index, until_ms))
            paxos_give_up(&c->p);
        break;
    case PAXOS_BACK_OFF:
        c->wake_ms = now + rest_ms(q, c);
        break;
    case PAXOS_DONE:
        break;
    }
}

static void wake(struct quorum *q, struct call *c, unsigned index, int64_t until_ms)
{
    enum paxos_do what = PAXOS_WAIT;
    c->wake_ms = INT64_MAX;
    if (c->p.phase == PAXOS_RESTING)
        what = paxos_again(&c->p);
    else
        what = paxos_hurry(&c->p);
    follow(q, c, index, what, until_ms);
}

static void answered(struct quorum *q, struct call *c, const struct job *j, int64_t until_ms)
{
    c->invalid += j->result == FIRN_EINVAL;
    if (c->invalid > q->n / 2 && !c->p.proposed) { /* a key that the engine does not take */
        paxos_give_up(&c->p);
        c->p.result = FIRN_EINVAL;
        return;
    }
    enum paxos_do what = paxos_answered(&c->p, j->acceptor, j->attempt,
                                        j->result == 0 ? &j->answer : NULL);
    int64_t now = mono_now_ms(), took = now - c->sent_ms;
    if (what != PAXOS_WAIT)
        follow(q, c, j->index, what, until_ms);
    else if (c->p.phase == PAXOS_LOOKING || c->p.phase == PAXOS_PREPARING)
        c->wake_ms = now + (took < HURRY_MS ? HURRY_MS : took > HURRY_MS_MAX ? HURRY_MS_MAX : took);
}

/* Under the lock. Runs begun calls until each has its p.result. */
void quorum_run(struct quorum *q, struct call *c, size_t n, int64_t until_ms)
{
    for (size_t i = 0; i < n; i++)
        follow(q, &c[i], (unsigned)i, PAXOS_SEND, until_ms);
    for (;;) {
        int64_t now = mono_now_ms(), next = until_ms;
        bool open = false;
        for (size_t i = 0; i < n; i++) {
            if (c[i].p.phase != PAXOS_ENDED && c[i].wake_ms <= now)
                wake(q, &c[i], (unsigned)i, until_ms);
            if (c[i].p.phase == PAXOS_ENDED)
                continue;
            open = true;
            if (c[i].wake_ms < next)
                next = c[i].wake_ms;
        }
        if (!open || now >= until_ms || is_lost(q))
            break;
        struct job *j = quorum_answer(q, next);
        for (; j; j = quorum_answer(q, 0)) { /* all that are there */
            firn_assert(j->index < n && j->acceptor < q->n, "index=%u acceptor=%u", j->index,
                        j->acceptor);
            if (c[j->index].p.phase != PAXOS_ENDED)
                answered(q, &c[j->index], j, until_ms);
            job_free(j);
        }
    }
    for (size_t i = 0; i < n; i++)
        paxos_give_up(&c[i].p);
    q->inbox.call++; /* what still comes is late */
}

/* ---- what is known of registers that were written last ---- */

static struct known *known_of(struct quorum *q, struct firn_slice key)
{
    return &q->known[record_name_hash(key.p, key.len) % KNOWN_MAX];
}

static const struct paxos_known *take_known(struct quorum *q, struct firn_slice key)
{
    struct known *k = known_of(q, key);
    bool here = k->used && k->key_len == key.len && memcmp(k->key, key.p, key.len) == 0;
    k->used = false; /* a ballot is used once */
    return here ? &k->k : NULL;
}

static void keep_known(struct quorum *q, const struct call *c)
{
    struct known *k = known_of(q, c->key);
    if (c->p.known.next.round == 0)
        return;
    firn_assert(c->key.len <= sizeof k->key, "key_len=%zu", c->key.len);
    k->used = true;
    k->key_len = c->key.len;
    memcpy(k->key, c->key.p, c->key.len);
    k->k = c->p.known;
}

/* ---- the methods ---- */

int quorum_said(struct quorum *q, int result, struct firn_diag *d)
{
    if (result == FIRN_EIO && is_lost(q))
        return quorum_explain(q, FIRN_ESTORE, d);
    if (result == FIRN_EINVAL)
        return firn__diag(d, result, 0, "the stores of the quorum do not take this key");
    if (result == FIRN_EIO || result == FIRN_EUNKNOWN)
        return quorum_explain(q, result, d);
    return result;
}

static int quorum_read(struct firn_store *s, struct firn_slice key, bool fresh,
                       struct firn_record *out, struct firn_diag *d)
{
    (void)fresh; /* one way for both: it costs a round trip, or two, without concurrent writes */
    struct quorum *q = (struct quorum *)s;
    int r = store_check_key(key, QUORUM_KEY_MAX, d);
    if (r != 0)
        return r;
    struct call *c = &q->one;
    *c = (struct call){ .key = key };
    paxos_read(&c->p, q->n, q->id, &q->round);
    pthread_mutex_lock(&q->inbox.lock);
    quorum_run(q, c, 1, mono_now_ms() + q->timeout_ms);
    r = quorum_said(q, c->p.result, d);
    pthread_mutex_unlock(&q->inbox.lock);
    if (r != 0)
        return r;
    if (!c->p.value.present)
        return FIRN_ENOENT;
    firn_assert(c->p.value.len <= sizeof out->value, "len=%zu", (size_t)c->p.value.len);
    out->len = c->p.value.len;
    out->store_ms = 0;
    memcpy(out->value, c->p.value.bytes, out->len);
    return 0;
}

static struct paxos_text text_of(struct firn_slice s)
{
    return (struct paxos_text){ s.p, s.len };
}

static int check_cas(const struct firn_cas *want, struct firn_diag *d)
{
    if (want->key.len > QUORUM_KEY_MAX || want->value.len > PAXOS_VALUE_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "key or value too long");
    if (!want->old.p && !want->value.p)
        return firn__diag(d, FIRN_EINVAL, 0, "nothing to write");
    return 0;
}

static void begin_cas(struct quorum *q, struct call *c, const struct firn_cas *want)
{
    *c = (struct call){ .key = want->key };
    paxos_change(&c->p, q->n, q->id, &q->round, text_of(want->old), text_of(want->value),
                 take_known(q, want->key));
}

static int quorum_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    struct quorum *q = (struct quorum *)s;
    int r = check_cas(want, d);
    if (r != 0)
        return r;
    begin_cas(q, &q->one, want);
    pthread_mutex_lock(&q->inbox.lock);
    quorum_run(q, &q->one, 1, mono_now_ms() + q->timeout_ms);
    r = quorum_said(q, q->one.p.result, d);
    pthread_mutex_unlock(&q->inbox.lock);
    keep_known(q, &q->one);
    return r;
}

static int quorum_cas_each(struct firn_store *s, const struct firn_cas *want, size_t count,
                           int *result, struct firn_diag *d)
{
    struct quorum *q = (struct quorum *)s;
    for (size_t i = 0; i < count; i++) {
        int r = check_cas(&want[i], d);
        if (r != 0)
            return r;
    }
    struct call *c = calloc(count, sizeof *c);
    if (!c)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    for (size_t i = 0; i < count; i++)
        begin_cas(q, &c[i], &want[i]);
    pthread_mutex_lock(&q->inbox.lock);
    quorum_run(q, c, count, mono_now_ms() + q->timeout_ms);
    for (size_t i = 0; i < count; i++)
        result[i] = quorum_said(q, c[i].p.result, d);
    pthread_mutex_unlock(&q->inbox.lock);
    for (size_t i = 0; i < count; i++)
        keep_known(q, &c[i]);
    free(c);
    return 0;
}

/* ---- opening and closing ---- */

static int quorum_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct quorum *q = (struct quorum *)s;
    int64_t until_ms = mono_now_ms() + q->timeout_ms;
    pthread_mutex_lock(&q->inbox.lock);
    while (members(q) < q->n / 2 + 1 && mono_now_ms() < until_ms)
        wait_news(q, until_ms);
    int r = members(q) < q->n / 2 + 1 ? quorum_explain(q, FIRN_EIO, d) : 0;
    pthread_mutex_unlock(&q->inbox.lock);
    if (r == 0) {
        memcpy(out, "quorum:", 7);
        for (size_t i = 0; i < sizeof q->nonce.b; i++)
            snprintf(out + 7 + 2 * i, 3, "%02x", q->nonce.b[i]);
    }
    return r;
}

static void quorum_close(struct firn_store *s)
{
    struct quorum *q = (struct quorum *)s;
    for (unsigned i = 0; i < q->n; i++)
        acceptor_stop(&q->acceptor[i]);
    for (unsigned i = 0; i < q->n; i++)
        acceptor_join(&q->acceptor[i]);
    for (struct job *j; (j = take_answer(q));)
        job_free(j);
    pthread_mutex_destroy(&q->inbox.lock);
    pthread_cond_destroy(&q->inbox.news);
    free(q->urls);
    free(q);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "quorum",
    .shared = true,
    .read = quorum_read,
    .cas = quorum_cas,
    .scan_after = quorum_scan,
    .identity = quorum_identity,
    .close = quorum_close,
    .cas_each = quorum_cas_each,
};

/* Write px-member of one store and wait for it. Under the lock. FIRN_ECONFLICT: it is another
 * one now. */
int quorum_write_member(struct quorum *q, unsigned i, const struct quorum_member *m,
                        int64_t until_ms)
{
    struct acceptor *a = &q->acceptor[i];
    firn_assert(m->acceptors == q->n, "acceptors=%" PRIu64 " n=%u", m->acceptors, q->n);
    /* A floor that fell would let ballots of an earlier life count again. Another process may have
     * raised it since the caller looked. */
    if (a->state == ACCEPTOR_MEMBER && m->floor < a->member.floor)
        return FIRN_ECONFLICT;
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        return FIRN_ENOMEM;
    j->kind = JOB_MEMBER;
    j->call = ++q->inbox.call;
    j->until_ms = until_ms;
    j->member.old_len = a->member_len;
    memcpy(j->member.old, a->member_text, a->member_len);
    j->member.text_len = quorum_member_encode(m, j->member.text);
    acceptor_send(a, j);
    j = quorum_answer(q, until_ms);
    int r = j ? j->result : FIRN_EUNKNOWN;
    job_free(j);
    return r;
}

/* The nonce that a majority of formed members has; false: there is none. */
static bool find_quorum(struct quorum *q, struct nonce *out)
{
    for (unsigned i = 0; i < q->n; i++) {
        const struct acceptor *a = &q->acceptor[i];
        unsigned same = 0;
        for (unsigned k = 0; k < q->n; k++) {
            const struct acceptor *b = &q->acceptor[k];
            same += b->state == ACCEPTOR_MEMBER && b->member.state == MEMBER_FORMED &&
                    a->state == ACCEPTOR_MEMBER && nonce_eq(&a->member.quorum, &b->member.quorum);
        }
        firn_assert(same <= q->n, "same=%u n=%u", same, q->n);
        if (same >= q->n / 2 + 1) {
            *out = a->member.quorum;
            return true;
        }
    }
    return false;
}

/* Two names for one store would give it two votes. What each member drew for itself tells. */
static int no_twins(const struct quorum *q, struct firn_diag *d)
{
    for (unsigned i = 0; i < q->n; i++)
        for (unsigned k = i + 1; k < q->n; k++) {
            const struct acceptor *a = &q->acceptor[i], *b = &q->acceptor[k];
            char one[80], two[80];
            if (a->state != ACCEPTOR_MEMBER || b->state != ACCEPTOR_MEMBER ||
                !nonce_eq(&a->member.self, &b->member.self))
                continue;
            store_url_redact(a->url, one, sizeof one);
            store_url_redact(b->url, two, sizeof two);
            return firn__diag(d, FIRN_EFORMAT, 0, "%s and %s are the same store: name another one",
                              one, two);
        }
    return 0;
}

/* Which store is next when a quorum is formed; -1: nothing can be done. All must be there. While
 * any is blank none may be formed yet, or the blank one was wiped; and the first one's nonce
 * counts. */
static int next_to_form(const struct quorum *q)
{
    const struct acceptor *first = &q->acceptor[0];
    unsigned blank = 0, formed = 0;
    int next = -1;
    for (unsigned i = 0; i < q->n; i++) {
        const struct acceptor *a = &q->acceptor[i];
        bool member = a->state == ACCEPTOR_MEMBER;
        if ((!member && a->state != ACCEPTOR_BLANK) ||
            (member && !nonce_eq(&a->member.quorum, &first->member.quorum)))
            return -1;
        blank += !member;
        formed += member && a->member.state == MEMBER_FORMED;
    }
    for (unsigned i = q->n; i-- > 0;)
        if (blank ? q->acceptor[i].state == ACCEPTOR_BLANK
                  : q->acceptor[i].member.state == MEMBER_FORMING)
            next = (int)i;
    return blank && formed ? -1 : next;
}

/* One step of forming; the acceptors' states tell what comes next. */
static void form(struct quorum *q, unsigned i, int64_t until_ms)
{
    struct quorum_member m = q->acceptor[i].member;
    if (q->acceptor[i].state == ACCEPTOR_BLANK) {
        m.acceptors = q->n;
        m.quorum = q->acceptor[0].member.quorum;
        if (i == 0)
            firn__entropy(m.quorum.b, sizeof m.quorum.b);
        firn__entropy(m.self.b, sizeof m.self.b);
    } else {
        m.state = MEMBER_FORMED;
    }
    (void)quorum_write_member(q, i, &m, until_ms);
}

static void name(struct quorum *q, const struct nonce *quorum)
{
    q->nonce = *quorum;
    for (unsigned i = 0; i < q->n; i++) {
        struct acceptor *a = &q->acceptor[i];
        a->named = true;
        a->quorum = *quorum;
        if (a->state == ACCEPTOR_BLANK ||
            (a->state == ACCEPTOR_MEMBER && !nonce_eq(&a->member.quorum, quorum))) {
            a->refusal = a->state == ACCEPTOR_BLANK ? REFUSED_EMPTY : REFUSED_FOREIGN;
            a->state = ACCEPTOR_REFUSED; /* its thread looks again, and says why */
            firn__diag(&a->why, FIRN_ESTORE, 0, "it has no record of its promises in this quorum");
            acceptor_look(a);
        }
    }
}

/* Where one is formed, all had a record. So one that has none now was wiped; it may have got it
 * since it was looked at, so it is looked at again. */
static void doubt_blanks(struct quorum *q)
{
    if (quorum_together(q->acceptor, q->n) == 0)
        return;
    for (unsigned i = 0; i < q->n; i++) {
        struct acceptor *a = &q->acceptor[i];
        if (a->state == ACCEPTOR_BLANK && !a->formed)
            acceptor_look(a);
        a->formed = true;
    }
}

static int gather(struct quorum *q, struct firn_diag *d)
{
    int64_t until_ms = mono_now_ms() + q->timeout_ms;
    struct nonce quorum = { { 0 } };
    int r = 0;
    pthread_mutex_lock(&q->inbox.lock);
    for (;;) {
        int next = next_to_form(q);
        r = no_twins(q, d);
        if (r != 0)
            break;
        if (next < 0 && find_quorum(q, &quorum))
            break;
        doubt_blanks(q);
        int hopeless = quorum_hopeless(q->acceptor, q->n);
        if (mono_now_ms() >= until_ms) {
            r = quorum_explain(q, hopeless ? hopeless : FIRN_EIO, d);
            break;
        }
        unsigned opening = 0, blank = 0;
        for (unsigned i = 0; i < q->n; i++) {
            opening += q->acceptor[i].state == ACCEPTOR_OPENING;
            blank += q->acceptor[i].state == ACCEPTOR_BLANK;
        }
        if (next >= 0) {
            form(q, (unsigned)next, until_ms);
        } else if (opening == 0 && hopeless) {
            r = quorum_explain(q, hopeless, d);
            break;
        } else {
            wait_news(q, until_ms < mono_now_ms() + 50 ? until_ms : mono_now_ms() + 50);
            if (opening == 0 && blank > 0) /* another one may be forming it */
                for (unsigned i = 0; i < q->n; i++)
                    acceptor_look(&q->acceptor[i]);
        }
    }
    if (r == 0)
        name(q, &quorum);
    pthread_mutex_unlock(&q->inbox.lock);
    return r;
}

/* The texts lie one behind the other in the URL, so their addresses tell. */
static unsigned place_of(const char *const *url, unsigned n, unsigned i)
{
    unsigned place = 1;
    for (unsigned k = 0; k < n; k++)
        place += url[k] < url[i];
    return place;
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Split the list in place. */
static int split(char *text, const char *url[QUORUM_STORES_MAX], unsigned *out_n, bool *restart_ok,
                 struct firn_diag *d)
{
    unsigned n = 0;
    *restart_ok = false;
    for (char *p; (p = strsep(&text, "|"));) {
        if (strcmp(p, "restart_ok") == 0) {
            *restart_ok = true;
            continue;
        }
        if (n == QUORUM_STORES_MAX)
            return firn__diag(d, FIRN_EFORMAT, 0, "a quorum has at most %d stores",
                              QUORUM_STORES_MAX);
        if (strncmp(p, "quorum:", 7) == 0)
            return firn__diag(d, FIRN_EFORMAT, 0, "a quorum cannot be a store of a quorum");
        int r = firn_store_url_check(p, d);
        if (r != 0)
            return r;
        url[n++] = p;
    }
    if (n < 3 || n % 2 == 0)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "a quorum has 3, 5 or 7 stores, as in quorum:URL|URL|URL; these are %u",
                          n);
    qsort(url, n, sizeof *url, by_text); /* every process forms the same store first */
    for (unsigned i = 1; i < n; i++)
        if (strcmp(url[i - 1], url[i]) == 0 && strcmp(url[i], "memory:") != 0)
            return firn__diag(d, FIRN_EFORMAT, 0, "the quorum names %.80s twice", url[i]);
    *out_n = n;
    return 0;
}

int firn_store_quorum_check(const char *urls, struct firn_diag *d)
{
    const char *url[QUORUM_STORES_MAX];
    unsigned n;
    bool restart_ok;
    char *text = strdup(urls);
    int r = text ? split(text, url, &n, &restart_ok, d) : FIRN_ENOMEM;
    free(text);
    return r;
}

static int begin(const char *urls, uint32_t timeout_ms, bool existing, struct quorum **out,
                 struct firn_diag *d)
{
    struct quorum *q = calloc(1, sizeof *q);
    const char *url[QUORUM_STORES_MAX];
    unsigned n = 0;
    bool restart_ok = false;
    if (!q || !(q->urls = strdup(urls))) {
        free(q);
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    }
    int r = split(q->urls, url, &n, &restart_ok, d);
    if (r != 0) {
        free(q->urls);
        free(q);
        return r;
    }
    q->base.ops = &ops;
    q->timeout_ms = timeout_ms ? timeout_ms : TIMEOUT_MS_DEFAULT;
    while (q->id == 0)
        firn__entropy(&q->id, sizeof q->id);
    q->rng = q->id;
    q->inbox.last = &q->inbox.first;
    q->inbox.call = 1;
    pthread_mutex_init(&q->inbox.lock, NULL);
    mono_cond_init(&q->inbox.news);
    firn_assert(n >= 3 && n % 2 == 1 && n <= PAXOS_ACCEPTORS_MAX, "n=%u", n);
    q->n = n;
    for (unsigned i = 0; i < n && r == 0; i++) {
        struct acceptor *a = &q->acceptor[i];
        a->url = url[i];
        a->index = i;
        a->place = place_of(url, n, i);
        firn_assert(a->place >= 1 && a->place <= n, "place=%u n=%u", a->place, n);
        a->acceptors = n;
        a->open = existing ? firn_store_open_existing : firn_store_open;
        a->restart_ok = restart_ok;
        a->timeout_ms = q->timeout_ms;
        a->inbox = &q->inbox;
        r = acceptor_start(a, d);
    }
    if (r != 0) {
        quorum_close(&q->base);
        return r;
    }
    *out = q;
    return 0;
}

int firn_store_quorum_open(const char *urls, uint32_t timeout_ms, bool existing,
                           struct firn_store **out, struct firn_diag *d)
{
    struct quorum *q;
    int r = begin(urls, timeout_ms, existing, &q, d);
    if (r != 0)
        return r;
    r = gather(q, d);
    if (r != 0)
        quorum_close(&q->base);
    else
        *out = &q->base;
    return r;
}

int firn_quorum_examine(const char *urls, uint32_t timeout_ms, struct firn_quorum_view *out,
                        size_t *out_n, struct firn_diag *d)
{
    struct quorum *q;
    *out_n = 0;
    int r = begin(urls, timeout_ms, true, &q, d);
    if (r != 0)
        return r;
    r = gather(q, d);
    pthread_mutex_lock(&q->inbox.lock);
    quorum_view(q, mono_now_ms(), out);
    *out_n = q->n;
    pthread_mutex_unlock(&q->inbox.lock);
    quorum_close(&q->base);
    return r;
}
