/*
 * Admission of a refused store to its quorum (coord/paxos.h, safety, 5). Every step can be
 * repeated, so an admission that was interrupted is started again. The other stores keep working
 * meanwhile.
 *   1. A floor far above every round that was ever used, at a majority without the store. Rounds
 *      grow by a few with each call, so no proposer can have asked the lost memory for one as high.
 *   2. Every register that one of that majority knows is accepted again, above the floor.
 *   3. The store gets these, as accepted by itself.
 *   4. Last its px-member, with the floor: from then on it votes.
 * Tested by tests/store/quorum.py.
 */
#include "store/check.h"
#include "store/quorum_impl.h"
#include "platform/assert.h"
#include "store/quorum_say.h"
#include "store/url.h"
#include "id/diag.h"
#include "id/rng_take.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RENEW_MAX = 64, STEP_MS = 20000 }; /* registers at once; time for each step */
#define FLOOR_LEAP (UINT64_C(1) << 32)

static const char *const state_name[] = {
    [ACCEPTOR_OPENING] = "silent", [ACCEPTOR_AWAY] = "away",       [ACCEPTOR_BLANK] = "blank",
    [ACCEPTOR_MEMBER] = "member",  [ACCEPTOR_REFUSED] = "refused", [ACCEPTOR_UNFIT] = "unfit",
};

void quorum_view(struct quorum *q, int64_t until_ms, struct firn_quorum_view *out)
{
    for (unsigned i = 0; i < q->n; i++)
        quorum_settle(q, i, until_ms);
    for (unsigned i = 0; i < q->n; i++) {
        const struct acceptor *a = &q->acceptor[i];
        store_url_redact(a->url, out[i].url, sizeof out[i].url);
        out[i].state = state_name[a->state];
        out[i].floor = a->member.floor;
        out[i].server = quorum_server_of(q->acceptor, q->n, i);
        quorum_reason(q->acceptor, q->n, i, false, out[i].why);
    }
}

int firn_quorum_view(struct firn_store *s, struct firn_quorum_view *out, size_t *out_n)
{
    struct quorum *q = (struct quorum *)s;
    if (strcmp(s->ops->scheme, "quorum") != 0)
        return FIRN_ENOTSUP;
    pthread_mutex_lock(&q->inbox.lock);
    quorum_view(q, mono_now_ms() + q->timeout_ms, out);
    *out_n = q->n;
    pthread_mutex_unlock(&q->inbox.lock);
    return 0;
}

struct keys { /* of all registers, one after the other, with their lengths in front */
    struct job *scan[PAXOS_ACCEPTORS_MAX];
    unsigned scans;
    struct firn_slice *key;
    size_t n;
};

static void keys_done(struct keys *k)
{
    for (unsigned i = 0; i < k->scans; i++)
        job_free(k->scan[i]);
    free(k->key);
}

static int by_bytes(const void *x, const void *y)
{
    return store_compare(*(const struct firn_slice *)x, *(const struct firn_slice *)y);
}

/* What a majority knows, each once, and the highest round in it. Under the lock. */
static int find_keys(struct quorum *q, unsigned among, struct keys *k, uint64_t *highest)
{
    int r = quorum_scans(q, firn_slice("", 0), firn_slice(NULL, 0), 0, among,
                         mono_now_ms() + STEP_MS, k->scan, &k->scans);
    size_t room = 0, at, n = 0;
    for (unsigned i = 0; i < k->scans; i++)
        room += k->scan[i]->scanned.len / (2 * sizeof(size_t));
    k->key = r == 0 ? calloc(room + 1, sizeof *k->key) : NULL;
    if (r != 0 || !k->key)
        return r ? r : FIRN_ENOMEM;
    for (unsigned i = 0; i < k->scans; i++)
        for (at = 0; at < k->scan[i]->scanned.len;) {
            struct paxos_acceptor a;
            firn_assert(n < room, "n=%zu room=%zu", n, room);
            k->key[n++] = scanned_next(&k->scan[i]->scanned, &at);
            struct firn_slice text = scanned_next(&k->scan[i]->scanned, &at);
            r = paxos_parse(text.p, text.len, &a, NULL);
            if (r != 0)
                return r;
            if (a.promised.round > *highest)
                *highest = a.promised.round;
        }
    qsort(k->key, n, sizeof *k->key, by_bytes);
    for (size_t i = 0; i < n; i++)
        if (k->n == 0 || by_bytes(&k->key[k->n - 1], &k->key[i]) != 0)
            k->key[k->n++] = k->key[i];
    return 0;
}

/* Of all that can be reached but store x; the set of them. Under the lock. */
static unsigned raise_floors(struct quorum *q, unsigned x, uint64_t floor)
{
    unsigned raised = 0;
    for (unsigned i = 0; i < q->n; i++) {
        if (i == x || q->acceptor[i].state != ACCEPTOR_MEMBER)
            continue;
        struct quorum_member m = q->acceptor[i].member;
        m.floor = floor;
        if (quorum_write_member(q, i, &m, mono_now_ms() + q->timeout_ms) == 0)
            raised |= 1u << i;
    }
    return raised;
}

/* Give the store what was accepted. Under the lock. */
static int give(struct quorum *q, unsigned x, const struct call *c, size_t n)
{
    int64_t until_ms = mono_now_ms() + STEP_MS;
    size_t done = 0;
    int r = 0;
    q->inbox.call++;
    for (size_t i = 0; i < n; i++) {
        struct job *j = quorum_job(q, JOB_WRITE, c[i].key, until_ms);
        if (!j)
            return FIRN_ENOMEM;
        firn_assert(c[i].p.message.ballot.round > 0); /* it was accepted by a majority */
        j->memory.promised = j->memory.accepted = c[i].p.message.ballot;
        j->memory.value = c[i].p.value;
        acceptor_send(&q->acceptor[x], j);
    }
    while (done < n && r == 0) {
        struct job *j = quorum_answer(q, until_ms);
        r = j ? j->result : FIRN_EIO;
        done++;
        job_free(j);
    }
    q->inbox.call++;
    return r;
}

/* Steps 2 and 3. Under the lock. */
static int copy(struct quorum *q, unsigned x, const struct keys *k, struct call *c,
                struct firn_diag *d)
{
    for (size_t at = 0; at < k->n; at += RENEW_MAX) {
        size_t n = k->n - at < RENEW_MAX ? k->n - at : RENEW_MAX;
        for (size_t i = 0; i < n; i++) {
            c[i] = (struct call){ .key = k->key[at + i] };
            paxos_renew(&c[i].p, q->n, q->id, &q->round);
        }
        quorum_run(q, c, n, mono_now_ms() + STEP_MS);
        for (size_t i = 0; i < n; i++)
            if (c[i].p.result != 0)
                return quorum_explain(q, FIRN_EIO, d);
        int r = give(q, x, c, n);
        if (r != 0)
            return firn__diag(d, r, 0, "cannot write to the store that is to be admitted: %.100s",
                              q->acceptor[x].why.text);
    }
    return 0;
}

/* Under the lock. */
static int admit(struct quorum *q, unsigned x, struct firn_diag *d)
{
    struct keys k = { .n = 0 };
    struct call *c = calloc(RENEW_MAX, sizeof *c);
    uint64_t highest = q->round;
    int r = c ? find_keys(q, ~(1u << x), &k, &highest) : FIRN_ENOMEM;
    keys_done(&k);
    k = (struct keys){ .n = 0 };
    for (unsigned i = 0; i < q->n; i++)
        if (q->acceptor[i].member.floor > highest)
            highest = q->acceptor[i].member.floor;
    uint64_t floor = highest + FLOOR_LEAP;
    if (r == 0 && floor > MEMBER_FLOOR_MAX)
        r = firn__diag(d, FIRN_EOVERFLOW, 0,
                       "a ballot of the quorum is above %" PRIu64 ": its records are damaged",
                       MEMBER_FLOOR_MAX - FLOOR_LEAP);
    if (r == 0)
        q->round = floor;
    if (r == 0) /* again, where the floor is: what comes there from now on is above it */
        r = find_keys(q, raise_floors(q, x, floor), &k, &highest);
    if (r == 0)
        r = copy(q, x, &k, c, d);
    keys_done(&k);
    free(c);
    if (r != 0)
        return r;
    struct quorum_member m = q->acceptor[x].found;
    m.state = MEMBER_FORMED;
    m.quorum = q->nonce;
    m.acceptors = q->n;
    m.floor = floor;
    firn__entropy(m.self.b, sizeof m.self.b);
    return quorum_write_member(q, x, &m, mono_now_ms() + q->timeout_ms);
}

int firn_quorum_admit(struct firn_store *s, const char *url, struct firn_diag *d)
{
    struct quorum *q = (struct quorum *)s;
    struct firn_diag why = { 0 };
    if (strcmp(s->ops->scheme, "quorum") != 0)
        return firn__diag(d, FIRN_EINVAL, 0, "only a store of a quorum can be admitted to one");
    unsigned x = 0;
    while (x < q->n && strcmp(q->acceptor[x].url, url) != 0)
        x++;
    if (x == q->n)
        return firn__diag(d, FIRN_EINVAL, 0, "%.100s is not one of the quorum's stores", url);
    pthread_mutex_lock(&q->inbox.lock);
    const struct acceptor *a = &q->acceptor[x];
    quorum_settle(q, x, mono_now_ms() + q->timeout_ms);
    int r;
    if (a->state == ACCEPTOR_MEMBER)
        r = firn__diag(&why, FIRN_EINVAL, 0, "%.100s takes part already", url);
    else if (a->state != ACCEPTOR_REFUSED || !a->found.store[0])
        r = firn__diag(&why, FIRN_EIO, 0, "%.60s cannot be reached: %.100s", url, a->why.text);
    else
        r = admit(q, x, &why);
    pthread_mutex_unlock(&q->inbox.lock);
    if (r == 0)
        return 0;
    return firn__diag(d, r, 0, "%s", why.text[0] ? why.text : firn_error_message(r));
}

int firn_quorum_admit_as_is(const char *url, uint32_t timeout_ms, struct firn_diag *d)
{
    struct firn_slice key = { QUORUM_MEMBER_KEY, strlen(QUORUM_MEMBER_KEY) };
    char text[MEMBER_TEXT_MAX];
    struct firn_store *s;
    struct firn_record rec;
    struct quorum_member m;
    int r = firn_store_open(url, timeout_ms, &s, d);
    if (r != 0)
        return r;
    r = firn_store_read(s, key, true, &rec, d);
    if (r == FIRN_ENOENT)
        r = firn__diag(d, r, 0,
                       "%.60s is empty, so nothing is to be admitted as it is: leave --as-is out; "
                       "or, without a majority, first put its backup there",
                       url);
    if (r == 0)
        r = quorum_member_parse(rec.value, rec.len, &m, d);
    if (r == 0)
        r = firn_store_identity(s, m.store, d);
    if (r == 0) {
        firn__entropy(m.self.b, sizeof m.self.b);
        struct firn_cas cas = { key, firn_slice(rec.value, rec.len),
                                firn_slice(text, quorum_member_encode(&m, text)) };
        r = firn_store_cas(s, &cas, d);
    }
    firn_store_close(s);
    return r;
}
