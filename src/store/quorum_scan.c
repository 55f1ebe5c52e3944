/*
 * Scans of a quorum: the records of a majority of the stores, joined by key. Where all stores that
 * know a register show one accepted ballot, and they are a majority, that is its value
 * (coord/paxos.h, safety, 3). Other registers, which are being written or which a store missed, are
 * read through the proposer, many at once. Tested by tests/store/quorum.py.
 */
#include "store/check.h"
#include "store/quorum_impl.h"
#include "platform/assert.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <stdlib.h>

enum {
    CALLS_MAX = 64,      /* registers that are read at once */
    PENDING_MAX = 256,   /* that are kept until those are there, because keys come in order */
    PAGE_RECORDS = 1000, /* of each store at a time */
};

struct entry { /* a register as one acceptor has it */
    struct firn_slice key, text;
    unsigned acceptor;
};

static int by_key(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    return store_compare(a->key, b->key);
}

int quorum_scans(struct quorum *q, struct firn_slice prefix, struct firn_slice after, size_t max,
                 unsigned among, int64_t until_ms, struct job **scan, unsigned *out_n)
{
    unsigned got = 0, failed = 0, need = q->n / 2 + 1;
    for (unsigned i = 0; i < q->n; i++) {
        if (!(among >> i & 1)) {
            failed++;
            continue;
        }
        struct job *j = quorum_job(q, JOB_SCAN, prefix, until_ms);
        if (!j)
            return FIRN_ENOMEM;
        j->scanned.max = max;
        if (after.p) {
            firn_assert(after.len <= QUORUM_KEY_MAX, "after_len=%zu", after.len);
            j->scan.after_len = QUORUM_PREFIX_LEN + after.len;
            memcpy(j->scan.after, QUORUM_PREFIX, QUORUM_PREFIX_LEN);
            memcpy(j->scan.after + QUORUM_PREFIX_LEN, after.p, after.len);
        }
        acceptor_send(&q->acceptor[i], j);
    }
    while (got < need && failed <= q->n - need) {
        struct job *j = quorum_answer(q, until_ms);
        if (!j)
            break;
        if (j->result == 0) {
            scan[got++] = j;
        } else {
            failed++;
            job_free(j);
        }
    }
    q->inbox.call++;
    firn_assert(got + failed <= q->n, "got=%u failed=%u n=%u", got, failed, q->n);
    *out_n = got;
    return got >= need ? 0 : FIRN_EIO;
}

/* The registers of all scans, by key; the caller frees them before the scans. NULL: no memory. */
static struct entry *entries_of(struct job *const *scan, unsigned n, size_t *out_n)
{
    size_t count = 0, at;
    for (unsigned i = 0; i < n; i++)
        for (at = 0; at < scan[i]->scanned.len; count++) {
            scanned_next(&scan[i]->scanned, &at);
            scanned_next(&scan[i]->scanned, &at);
        }
    struct entry *e = calloc(count + 1, sizeof *e);
    size_t k = 0;
    for (unsigned i = 0; e && i < n; i++)
        for (at = 0; at < scan[i]->scanned.len; k++) {
            e[k].key = scanned_next(&scan[i]->scanned, &at);
            e[k].text = scanned_next(&scan[i]->scanned, &at);
            e[k].acceptor = i;
        }
    firn_assert(!e || k == count, "k=%zu count=%zu", k, count);
    if (e && count > 1)
        qsort(e, count, sizeof *e, by_key);
    *out_n = count;
    return e;
}

/* The entries of one register: true if they agree, so that *out is its value. */
static bool agree(const struct quorum *q, const struct entry *e, size_t n, struct paxos_value *out)
{
    struct ballot accepted = { 0 };
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++) {
        struct paxos_acceptor a;
        if (seen >> e[i].acceptor & 1) /* a store that shows it twice must not vote twice */
            return false;
        seen |= 1u << e[i].acceptor;
        if (paxos_parse(e[i].text.p, e[i].text.len, &a, NULL) != 0)
            return false;
        if (i > 0 && ballot_cmp(a.accepted, accepted) != 0)
            return false;
        accepted = a.accepted;
        *out = a.value;
    }
    /* Those that have no record accepted nothing. */
    return accepted.round == 0 || n >= q->n / 2 + 1;
}

/* Read some registers through the proposer; found[i] then has them. */
static int read_some(struct quorum *q, struct call *c, size_t n, struct firn_diag *d)
{
    pthread_mutex_lock(&q->inbox.lock);
    for (size_t i = 0; i < n; i++)
        paxos_read(&c[i].p, q->n, q->id, &q->round);
    quorum_run(q, c, n, mono_now_ms() + q->timeout_ms);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = quorum_said(q, c[i].p.result, d);
    pthread_mutex_unlock(&q->inbox.lock);
    return r;
}

struct pending { /* registers in the order of keys, some of which must be read first */
    struct call *call;
    size_t n, asked;
    struct {
        struct firn_slice key;
        bool ask;
        size_t at; /* in call[] */
        struct paxos_value value;
    } * item;
};

static int flush(struct quorum *q, struct pending *w, firn_record_fn *each, void *user,
                 struct firn_diag *d)
{
    int r = w->asked ? read_some(q, w->call, w->asked, d) : 0;
    for (size_t i = 0; i < w->n && r == 0; i++) {
        const struct paxos_value *v = w->item[i].ask ? &w->call[w->item[i].at].p.value
                                                     : &w->item[i].value;
        if (v->present)
            r = each(user, w->item[i].key, firn_slice(v->bytes, v->len));
    }
    w->n = w->asked = 0;
    return r;
}

static int walk(struct quorum *q, const struct entry *e, size_t count, firn_record_fn *each,
                void *user, struct firn_diag *d)
{
    struct pending w = { .call = calloc(CALLS_MAX, sizeof *w.call),
                         .item = calloc(PENDING_MAX, sizeof *w.item) };
    int r = w.call && w.item ? 0 : firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    for (size_t i = 0, n; i < count && r == 0; i += n) {
        for (n = 1; i + n < count && by_key(&e[i], &e[i + n]) == 0; n++)
            ;
        firn_assert(w.n < PENDING_MAX && w.asked < CALLS_MAX, "n=%zu asked=%zu", w.n, w.asked);
        firn_assert(i == 0 || by_key(&e[i - 1], &e[i]) < 0); /* each register is handed on once */
        w.item[w.n].key = e[i].key;
        w.item[w.n].ask = !agree(q, &e[i], n, &w.item[w.n].value);
        if (w.item[w.n].ask) {
            w.item[w.n].at = w.asked;
            w.call[w.asked++] = (struct call){ .key = e[i].key };
        }
        if (++w.n == PENDING_MAX || w.asked == CALLS_MAX)
            r = flush(q, &w, each, user, d);
    }
    if (r == 0)
        r = flush(q, &w, each, user, d);
    free(w.call);
    free(w.item);
    return r;
}

/* Up to which key all of these scans show what there is: the lowest of the last keys of those that
 * have more. p NULL: to the end. */
static struct firn_slice shown_up_to(struct job *const *scan, unsigned n)
{
    struct firn_slice bound = { NULL, 0 };
    for (unsigned i = 0; i < n; i++) {
        struct firn_slice last = { NULL, 0 };
        for (size_t at = 0; scan[i]->scanned.more && at < scan[i]->scanned.len;) {
            last = scanned_next(&scan[i]->scanned, &at);
            scanned_next(&scan[i]->scanned, &at);
        }
        if (last.p && (!bound.p || store_compare(last, bound) < 0))
            bound = last;
    }
    return bound;
}

/* One page. *behind becomes its last key, in `room`; p NULL: it was the last page. */
static int scan_page(struct quorum *q, struct firn_slice prefix, struct firn_slice *behind,
                     char room[STORE_KEY_MAX], int64_t until_ms, firn_record_fn *each, void *user,
                     struct firn_diag *d)
{
    struct job *scan[PAXOS_ACCEPTORS_MAX];
    unsigned got = 0;
    size_t count = 0;
    pthread_mutex_lock(&q->inbox.lock);
    int r = quorum_scans(q, prefix, *behind, PAGE_RECORDS, ~0u, until_ms, scan, &got);
    r = quorum_said(q, r, d);
    pthread_mutex_unlock(&q->inbox.lock);
    struct entry *e = r == 0 ? entries_of(scan, got, &count) : NULL;
    struct firn_slice bound = shown_up_to(scan, got);
    while (e && bound.p && count > 0 && store_compare(e[count - 1].key, bound) > 0)
        count--;
    if (r == 0)
        r = e ? walk(q, e, count, each, user, d) : firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    *behind = firn_slice(bound.p ? room : NULL, bound.len);
    if (bound.p)
        memcpy(room, bound.p, bound.len);
    free(e);
    for (unsigned i = 0; i < got; i++)
        job_free(scan[i]);
    return r;
}

int quorum_scan(struct firn_store *s, struct firn_slice prefix, struct firn_slice after,
                firn_record_fn *each, void *user, struct firn_diag *d)
{
    struct quorum *q = (struct quorum *)s;
    int64_t until_ms = mono_now_ms() + q->timeout_ms;
    char room[STORE_KEY_MAX];
    int r = store_check_key(after.p ? after : prefix, QUORUM_KEY_MAX, d);
    do {
        if (r == 0)
            r = scan_page(q, prefix, &after, room, until_ms, each, user, d);
    } while (r == 0 && after.p);
    return r;
}
