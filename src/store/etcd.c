/*
 * The store in etcd, through its JSON gateway. etcd_json.h encodes requests and decodes answers,
 * etcd_members.h sends them to a member that works.
 *
 * etcd does not notice that it was restored from a snapshot: cluster id and keys are as before, but
 * the revision falls. Among answers that are ordered after each other (all but serializable reads,
 * which a lagging member may give) the revision never falls otherwise, so a fall means another
 * store.
 *
 * Tested by tests/store/etcd.py.
 */
#include "store/check.h"
#include "store/engines.h"
#include "store/etcd_json.h"
#include "store/etcd_members.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_REGISTERS = 500,
    LOOK_MS_MIN = 250, /* what wait() takes at least to look once */
};

struct etcd {
    struct firn_store base;
    struct etcd_members *members;
    char root[ETCD_ROOT_MAX]; /* "/firn/" */
    size_t root_len;
    uint32_t timeout_ms;
    struct etcd_head seen; /* the cluster that was opened, its highest revision */
    bool changed;          /* what answers is another store */
    struct firn_diag why;  /* how that was seen */
};

static struct firn_slice root(const struct etcd *s)
{
    return firn_slice(s->root, s->root_len);
}

static int64_t deadline(const struct etcd *s)
{
    return mono_now_ms() + s->timeout_ms;
}

static int no_memory(struct firn_diag *d)
{
    return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
}

/* ---- is it still the same store? ---- */

/* What an answer tells. `ordered`: it is at least as new as every earlier ordered one; `by` 1 for a
 * write that was done, which raised the revision. */
static void notice(struct etcd *s, const struct etcd_head *head, bool ordered, uint64_t by)
{
    if (s->changed)
        return;
    if (head->cluster != s->seen.cluster) {
        s->changed = true;
        firn__diag(&s->why, 0, 0,
                   "etcd at %.60s is of the cluster %" PRIx64 ", not %" PRIx64
                   ": correct the store's URL",
                   etcd_member(s->members), head->cluster, s->seen.cluster);
    } else if (ordered && head->revision < s->seen.revision + by) {
        s->changed = true;
        firn__diag(&s->why, 0, 0,
                   "etcd went back from revision %" PRIu64 " to %" PRIu64
                   ": it was restored or wiped, so `firn fence` is due",
                   s->seen.revision, head->revision);
    } else if (ordered) {
        s->seen.revision = head->revision;
    }
}

static int another(const struct etcd *s, int error, struct firn_diag *d)
{
    return firn__diag(d, error, 0, "%s", s->why.text);
}

/* ---- reading ---- */

struct one { /* a register that is being read */
    struct firn_slice key;
    struct firn_record *out;
    bool found;
};

static int take_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct one *o = user;
    if (key.len != o->key.len || o->found)
        return FIRN_EFORMAT;
    memcpy(o->out->value, value.p, value.len);
    o->out->len = value.len;
    o->found = true;
    return 0;
}

static int look(struct etcd *s, struct firn_slice key, bool fresh, int64_t end,
                struct firn_record *out, struct etcd_head *head, struct firn_diag *d)
{
    struct one one = { key, out, false };
    struct etcd_range range = { .root = root(s), .prefix = key, .each = take_one, .user = &one };
    int r = store_check_key(key, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    if (!etcd_encode_read(etcd_request(s->members), root(s), key, fresh))
        return no_memory(d);
    r = etcd_ask(s->members, ETCD_RANGE, false, end, d);
    if (r != 0)
        return r;
    if (etcd_decode_range(etcd_answer(s->members), &range) != 0 || range.more)
        return etcd_distrust(s->members, FIRN_EIO, d);
    out->store_ms = etcd_answer_date(s->members);
    *head = range.head;
    return one.found ? 0 : FIRN_ENOENT;
}

static int look_and_notice(struct etcd *s, struct firn_slice key, bool fresh, int64_t end,
                           struct firn_record *out, struct etcd_head *head, struct firn_diag *d)
{
    int r = look(s, key, fresh, end, out, head, d);
    if (r == 0 || r == FIRN_ENOENT) {
        notice(s, head, fresh, 0);
        if (head->cluster != s->seen.cluster) /* its registers are none of ours */
            return another(s, FIRN_ESTORE, d);
    }
    return r;
}

static int etcd_read(struct firn_store *base, struct firn_slice key, bool fresh,
                     struct firn_record *out, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_head head = { 0 };
    return look_and_notice(s, key, fresh, deadline(s), out, &head, d);
}

/* Linearizable: a slot that a lagging member does not know yet would pass for a missing one. */
static int etcd_scan(struct firn_store *base, struct firn_slice prefix, struct firn_slice after,
                     firn_record_fn *each, void *user, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_range range = {
        .cluster = s->seen.cluster, .root = root(s), .prefix = prefix, .each = each, .user = user
    };
    int64_t end = deadline(s);
    int r = store_check_key(after.p ? after : prefix, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    do {
        if (!etcd_encode_scan(etcd_request(s->members), root(s), prefix, after, PAGE_REGISTERS))
            return no_memory(d);
        r = etcd_ask(s->members, ETCD_RANGE, false, end, d);
        if (r != 0)
            return r;
        r = etcd_decode_range(etcd_answer(s->members), &range);
        if (r == FIRN_EFORMAT && !range.stopped)
            return etcd_distrust(s->members, FIRN_EIO, d);
        notice(s, &range.head, true, 0);
        if (r == FIRN_ESTORE && !range.stopped)
            return another(s, FIRN_ESTORE, d);
        if (r != 0)
            return r;
        after = firn_slice(range.last, range.last_len);
    } while (range.more);
    return 0;
}

/* ---- writing ---- */

static int may_write(const struct etcd *s, const struct firn_cas *want, size_t count,
                     struct firn_diag *d)
{
    int r = store_check_writes(want, count, ETCD_MANY_MAX, d);
    return r == 0 && s->changed ? another(s, FIRN_ESTORE, d) : r;
}

static int etcd_cas(struct firn_store *base, const struct firn_cas *want, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_head head = { 0 };
    int r = may_write(s, want, 1, d);
    if (r != 0)
        return r;
    if (!etcd_encode_cas(etcd_request(s->members), root(s), want))
        return no_memory(d);
    r = etcd_ask(s->members, ETCD_TXN, true, deadline(s), d);
    if (r != 0)
        return r;
    r = etcd_decode_cas(etcd_answer(s->members), !want->value.p, &head);
    if (r == FIRN_EFORMAT)
        return etcd_distrust(s->members, FIRN_EUNKNOWN, d);
    notice(s, &head, true, r == 0);
    if (s->changed) /* what was written then was written to the other store */
        return another(s, r == 0 ? FIRN_EUNKNOWN : FIRN_ESTORE, d);
    return r;
}

static int etcd_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                         int *result, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_head head = { 0 };
    int each[ETCD_MANY_MAX];
    int r = may_write(s, want, count, d);
    if (r != 0 || count == 0)
        return r;
    if (!etcd_encode_cas_many(etcd_request(s->members), root(s), want, count))
        return no_memory(d);
    r = etcd_ask(s->members, ETCD_TXN, true, deadline(s), d);
    if (r != 0)
        return r;
    if (etcd_decode_cas_many(etcd_answer(s->members), want, count, each, &head) != 0)
        return etcd_distrust(s->members, FIRN_EUNKNOWN, d);
    bool wrote = false;
    for (size_t i = 0; i < count; i++) {
        firn_assert(each[i] == 0 || each[i] == FIRN_ECONFLICT, "each=%d", each[i]);
        wrote |= each[i] == 0;
    }
    notice(s, &head, true, wrote);
    if (s->changed)
        return another(s, wrote ? FIRN_EUNKNOWN : FIRN_ESTORE, d);
    memcpy(result, each, count * sizeof *result);
    return 0;
}

/* ---- waiting ---- */

/* The watch begins at the revision after the one that was looked at, so nothing falls in
 * between. A member that is partitioned off sees no change: so no watch is longer than the
 * time-out of a call, and then another look finds a member that has. */
static int etcd_wait(struct firn_store *base, struct firn_slice key, struct firn_slice old,
                     uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    int64_t end = mono_now_ms() + timeout_ms;
    for (bool first = true;; first = false) {
        struct etcd_head head = { 0 };
        int64_t now = mono_now_ms(), left = end - now;
        if (left <= 0 && !first)
            return FIRN_EAGAIN;
        if (first && left < LOOK_MS_MIN)
            left = LOOK_MS_MIN;
        left = left < s->timeout_ms ? left : s->timeout_ms;
        int r = look_and_notice(s, key, true, now + left, out, &head, d);
        if (r == FIRN_EIO && !first && mono_now_ms() >= end)
            return FIRN_EAGAIN;
        if (!store_unchanged(r, out, old))
            return r;
        if (!etcd_encode_watch(etcd_request(s->members), root(s), key, head.revision + 1))
            return no_memory(d);
        left = end - mono_now_ms();
        if (left > 0)
            etcd_listen(s->members, left < s->timeout_ms ? left : s->timeout_ms);
    }
}

/* ---- opening and closing ---- */

/* What answers now is the store. */
static int look_anew(struct etcd *s, int64_t end, struct firn_diag *d)
{
    struct firn_record rec;
    int r = look(s, firn_slice("", 0), true, end, &rec, &s->seen, d);
    if (r != 0 && r != FIRN_ENOENT)
        return r;
    s->changed = false;
    return 0;
}

static int etcd_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    int r = look_anew(s, deadline(s), d);
    if (r == 0)
        snprintf(out, STORE_ID_TEXT_BUF, "etcd:%016" PRIx64, s->seen.cluster);
    return r;
}

/* Every answer was looked at; those to fresh reads and scans tell. */
static int etcd_check(struct firn_store *base, struct firn_diag *d)
{
    const struct etcd *s = (const struct etcd *)base;
    return s->changed ? another(s, FIRN_ESTORE, d) : 0;
}

static void etcd_close(struct firn_store *base)
{
    struct etcd *s = (struct etcd *)base;
    etcd_members_close(s->members);
    free(s);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "etcd",
    .shared = true,
    .read = etcd_read,
    .cas = etcd_cas,
    .cas_many = etcd_cas_many,
    .scan_after = etcd_scan,
    .identity = etcd_identity,
    .close = etcd_close,
    .wait = etcd_wait,
    .check = etcd_check,
};

/* Before these versions a single member could forget writes that it had acknowledged when it
 * crashed (etcd-io/etcd#14370). */
static int check_version(struct etcd *s, int64_t end, struct firn_diag *d)
{
    unsigned v[3];
    if (!etcd_encode_status(etcd_request(s->members)))
        return no_memory(d);
    int r = etcd_ask(s->members, ETCD_STATUS, false, end, d);
    if (r != 0)
        return r;
    if (etcd_decode_status(etcd_answer(s->members), v) != 0)
        return etcd_distrust(s->members, FIRN_EIO, d);
    if (v[0] < 3 ||
        (v[0] == 3 && (v[1] < 4 || (v[1] == 4 && v[2] < 21) || (v[1] == 5 && v[2] < 5))))
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "etcd at %.60s is %u.%u.%u, which can lose writes: use 3.4.21, 3.5.5 or "
                          "later",
                          etcd_member(s->members), v[0], v[1], v[2]);
    return 0;
}

int firn_store_etcd_open(const struct store_url *u, uint32_t timeout_ms, struct firn_store **out,
                         struct firn_diag *d)
{
    size_t len = strlen(u->path);
    struct etcd *s = calloc(1, sizeof *s);
    if (!s)
        return no_memory(d);
    s->base.ops = &ops;
    s->timeout_ms = timeout_ms;
    while (len > 0 && u->path[len - 1] == '/')
        len--;
    s->root_len = (size_t)snprintf(s->root, sizeof s->root, "/%.*s/", len ? (int)len : 4,
                                   len ? u->path : "firn");
    firn_assert(s->root_len < sizeof s->root, "root_len=%zu", s->root_len);
    int64_t end = deadline(s);
    int r = etcd_members_open(u, &s->members, d);
    if (r == 0)
        r = check_version(s, end, d);
    if (r == 0)
        r = look_anew(s, end, d);
    if (r != 0) {
        etcd_close(&s->base);
        return r;
    }
    *out = &s->base;
    return 0;
}
