/*
 * The store in a Raft cluster of firnd processes, seen from outside: every call is one frame and
 * its reply. The cluster decides which member answers; this file keeps the promises of store.h.
 *
 * A write carries the incarnation and the highest index that this handle has seen. A cluster that
 * was restored has another incarnation, one that lost its log a lower index: both refuse the write,
 * and the handle answers FIRN_ESTORE from then on until identity() looks anew.
 *
 * Keys are stored as space, NUL, key: no space is a prefix of another. Tested by tests/conformance.
 */
#include "store/check.h"
#include "store/engines.h"
#include "store/raft.h"
#include "platform/assert.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "wire/link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLL_MS = 50 };

struct raft_store {
    struct firn_store base;
    struct raft_channel *channel;
    uint32_t timeout_ms;
    bool changed; /* FIRN_ESTORE was noticed; until identity() */
    uint64_t incarnation, seen, number;
    size_t space_len; /* with the NUL */
    char space[RAFT_SPACE_MAX + 1];
    struct frame_out out;
    char *reply;
    size_t reply_len;
    size_t refused; /* writes of the last call, if that was one */
    uint64_t refused_ms;
    struct firn_slice instead[FRAME_WRITES_MAX]; /* in `reply` */
};

static int64_t deadline(const struct raft_store *s)
{
    return mono_now_ms() + s->timeout_ms;
}

static void begin(struct raft_store *s, enum frame_type type, int64_t until)
{
    int64_t left = until - mono_now_ms();
    left -= left / 8; /* so that a member's "no" comes before we stop listening */
    s->refused = 0;
    frame_begin(&s->out, type, 0, left > 0 ? (uint32_t)left : 1, ++s->number);
}

/* Sends what was begun; `in` is the reply behind its head. An error that the cluster answered is
 * returned with its words. FIRN_EUNKNOWN: it may have been sent, or what came back is no answer. */
static int ask(struct raft_store *s, bool again, int64_t until, struct frame_in *in,
               struct frame_answer *a, struct firn_diag *d)
{
    frame_end(&s->out);
    if (s->out.full)
        return firn__diag(d, FIRN_EINVAL, 0, "more than %d bytes in one request", FRAME_MAX);
    int r = s->channel->call(s->channel, s->out.p, s->out.len, again, until, s->reply,
                             &s->reply_len, d);
    if (r != 0)
        return r;
    struct frame f;
    ssize_t n = frame_parse(s->reply, s->reply_len, &f);
    if (n > 0 && f.type == FRAME_REPLY && f.number == s->number) {
        *in = (struct frame_in){ f.body, f.len, false };
        r = frame_get_reply(in, a);
    } else {
        r = FIRN_EFORMAT;
    }
    if (r != 0)
        return firn__diag(d, FIRN_EUNKNOWN, 0, "the cluster's answer is no answer");
    if (a->index > s->seen && a->result != FIRN_ESTORE)
        s->seen = a->index;
    if (a->result != 0 && a->result != FIRN_ENOENT) {
        struct firn_slice why = frame_get_text(in, FRAME_MAX);
        return firn__diag(d, a->result, 0, "%.*s", (int)why.len, why.p ? why.p : "");
    }
    return a->result;
}

/* A read without an answer changed nothing, so its outcome is not unknown. */
static int ask_again(struct raft_store *s, int64_t until, struct frame_in *in,
                     struct frame_answer *a, struct firn_diag *d)
{
    int r = ask(s, true, until, in, a, d);
    return r == FIRN_EUNKNOWN || r == FIRN_EAGAIN ? FIRN_EIO : r;
}

static struct firn_slice full_key(const struct raft_store *s, struct firn_slice key, char *to)
{
    firn_assert(s->space_len + key.len <= MAP_KEY_MAX, "space=%zu key=%zu", s->space_len, key.len);
    memcpy(to, s->space, s->space_len);
    if (key.len)
        memcpy(to + s->space_len, key.p, key.len);
    return firn_slice(to, s->space_len + key.len);
}

static int raft_read(struct firn_store *base, struct firn_slice key, bool fresh,
                     struct firn_record *out, struct firn_diag *d)
{
    struct raft_store *s = (struct raft_store *)base;
    int64_t until = deadline(s);
    char name[MAP_KEY_MAX];
    int r = store_check_key(key, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    begin(s, FRAME_READ, until);
    frame_u64(&s->out, s->seen);
    frame_u8(&s->out, fresh);
    frame_text(&s->out, full_key(s, key, name));
    struct frame_in in;
    struct frame_answer a;
    r = ask_again(s, until, &in, &a, d);
    if (r != 0)
        return r;
    struct firn_slice value = frame_get_text(&in, STORE_VALUE_MAX);
    if (in.bad || !value.p)
        return firn__diag(d, FIRN_EIO, 0, "the cluster's answer is no register");
    memcpy(out->value, value.p, value.len);
    out->len = value.len;
    out->store_ms = a.now_ms;
    return 0;
}

static int raft_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                         int *result, struct firn_diag *d)
{
    struct raft_store *s = (struct raft_store *)base;
    int64_t until = deadline(s);
    int r = store_check_writes(want, count, FRAME_WRITES_MAX, d);
    if (r != 0 || count == 0)
        return r;
    if (s->changed)
        return firn__diag(d, FIRN_ESTORE, 0, "the cluster is not the one that was opened");
    firn_assert(s->incarnation != 0); /* a write without one would be for any cluster */
    begin(s, FRAME_CAS, until);
    frame_u64(&s->out, s->seen);
    frame_u64(&s->out, s->incarnation);
    firn_assert(s->out.len == FRAME_HEAD + CAS_NONCE, "len=%zu", s->out.len);
    for (int i = CAS_NONCE; i < CAS_COUNT; i++) /* the first member's to fill in */
        frame_u8(&s->out, 0);
    frame_u32(&s->out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        char name[MAP_KEY_MAX];
        frame_text(&s->out, full_key(s, want[i].key, name));
        frame_text(&s->out, want[i].old);
        frame_text(&s->out, want[i].value);
    }
    struct frame_in in;
    struct frame_answer a;
    r = ask(s, false, until, &in, &a, d);
    if (r == FIRN_ESTORE)
        s->changed = true;
    if (r != 0)
        return r == FIRN_EAGAIN ? FIRN_EIO : r;
    bool lost[FRAME_WRITES_MAX];
    in.bad |= frame_get_u32(&in) != count;
    for (size_t i = 0; i < count && !in.bad; i++) {
        lost[i] = frame_get_u8(&in) != 0;
        if (lost[i])
            s->instead[i] = frame_get_text(&in, STORE_VALUE_MAX);
    }
    if (in.bad || in.len > 0)
        return firn__diag(d, FIRN_EUNKNOWN, 0, "the cluster's answer is for another write");
    for (size_t i = 0; i < count; i++)
        result[i] = lost[i] ? FIRN_ECONFLICT : 0;
    s->refused = count;
    s->refused_ms = a.now_ms;
    return 0;
}

static int raft_instead(struct firn_store *base, size_t i, struct firn_record *out)
{
    const struct raft_store *s = (struct raft_store *)base;
    if (i >= s->refused || !s->instead[i].p)
        return i < s->refused ? FIRN_ENOENT : FIRN_EINVAL;
    memcpy(out->value, s->instead[i].p, s->instead[i].len);
    out->len = s->instead[i].len;
    out->store_ms = s->refused_ms;
    return 0;
}

static int raft_scan(struct firn_store *base, struct firn_slice prefix, struct firn_slice after,
                     firn_record_fn *each, void *user, struct firn_diag *d)
{
    struct raft_store *s = (struct raft_store *)base;
    int64_t until = deadline(s);
    char name[MAP_KEY_MAX], last[MAP_KEY_MAX];
    struct firn_slice behind = { NULL, 0 };
    int r = store_check_key(after.p ? after : prefix, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    struct firn_slice full = full_key(s, prefix, name);
    if (after.p)
        behind = full_key(s, after, last);
    for (bool more = true; more;) {
        begin(s, FRAME_SCAN, until);
        frame_u64(&s->out, 0);
        frame_text(&s->out, full);
        frame_text(&s->out, behind);
        struct frame_in in;
        struct frame_answer a;
        r = ask_again(s, until, &in, &a, d);
        if (r != 0)
            return r;
        more = frame_get_u8(&in);
        for (uint32_t n = frame_get_u32(&in); n > 0; n--) {
            struct firn_slice key = frame_get_text(&in, MAP_KEY_MAX);
            struct firn_slice value = frame_get_text(&in, STORE_VALUE_MAX);
            if (in.bad || !value.p || key.len < full.len)
                return firn__diag(d, FIRN_EIO, 0, "the cluster's answer is no list");
            memcpy(last, key.p, key.len);
            behind = firn_slice(last, key.len);
            r = each(user, firn_slice(key.p + s->space_len, key.len - s->space_len), value);
            if (r != 0)
                return r;
        }
        if (in.bad || (more && !behind.p))
            return firn__diag(d, FIRN_EIO, 0, "the cluster's answer is no list");
    }
    return 0;
}

static int raft_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct raft_store *s = (struct raft_store *)base;
    int64_t until = deadline(s);
    begin(s, FRAME_IDENTITY, until);
    s->seen = 0; /* what it says now is what counts from now on */
    struct frame_in in;
    struct frame_answer a;
    int r = ask_again(s, until, &in, &a, d);
    if (r != 0)
        return r;
    uint64_t incarnation = frame_get_u64(&in);
    if (in.bad || incarnation == 0)
        return firn__diag(d, FIRN_EIO, 0, "the cluster did not tell its incarnation");
    s->incarnation = incarnation;
    s->changed = false;
    snprintf(out, STORE_ID_TEXT_BUF, "raft:%016" PRIx64, incarnation);
    return 0;
}

static int raft_check(struct firn_store *base, struct firn_diag *d)
{
    struct raft_store *s = (struct raft_store *)base;
    int64_t until = deadline(s);
    uint64_t seen = s->seen;
    struct frame_in in;
    struct frame_answer a;
    begin(s, FRAME_IDENTITY, until);
    int r = ask_again(s, until, &in, &a, d);
    if (r != 0)
        return r;
    s->changed |= frame_get_u64(&in) != s->incarnation || in.bad || a.index < seen;
    return s->changed ? firn__diag(d, FIRN_ESTORE, 0, "the cluster is not the one that was opened")
                      : 0;
}

/* A member near by may be behind: what differs there is looked at again where it is current. */
static int raft_wait(struct firn_store *base, struct firn_slice key, struct firn_slice old,
                     uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d)
{
    bool fresh = true;
    for (int64_t end = mono_now_ms() + timeout_ms;;) {
        int r = raft_read(base, key, fresh, out, d);
        bool same = store_unchanged(r, out, old);
        if (!same && (fresh || (r != 0 && r != FIRN_ENOENT)))
            return r;
        fresh = !same;
        if (fresh)
            continue;
        int64_t left = end - mono_now_ms();
        if (left <= 0)
            return FIRN_EAGAIN;
        store_sleep_ms(left < POLL_MS ? left : POLL_MS);
    }
}

static void raft_close(struct firn_store *base)
{
    struct raft_store *s = (struct raft_store *)base;
    s->channel->close(s->channel);
    free(s->out.p);
    free(s->reply);
    free(s);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "raft",
    .shared = true,
    .read = raft_read,
    .cas_many = raft_cas_many,
    .scan_after = raft_scan,
    .identity = raft_identity,
    .close = raft_close,
    .wait = raft_wait,
    .check = raft_check,
    .instead = raft_instead,
};

int raft_store_new(struct raft_channel *c, const char *space, uint32_t timeout_ms,
                   struct firn_store **out, struct firn_diag *d)
{
    struct raft_store *s = calloc(1, sizeof *s);
    char *request = malloc(FRAME_MAX), *reply = malloc(FRAME_MAX), id[STORE_ID_TEXT_BUF];
    if (!s || !request || !reply || strlen(space) > RAFT_SPACE_MAX) {
        free(s);
        free(request);
        free(reply);
        c->close(c);
        return strlen(space) > RAFT_SPACE_MAX
                   ? firn__diag(d, FIRN_EINVAL, 0, "a path has at most %d bytes", RAFT_SPACE_MAX)
                   : firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    }
    s->base.ops = &ops;
    s->channel = c;
    s->timeout_ms = timeout_ms;
    s->out = (struct frame_out){ .p = request, .cap = FRAME_MAX };
    s->reply = reply;
    s->space_len = strlen(space) + 1;
    memcpy(s->space, space, s->space_len);
    int r = raft_identity(&s->base, id, d);
    if (r != 0) {
        raft_close(&s->base);
        return r;
    }
    *out = &s->base;
    return 0;
}

int firn_store_raft_open(const struct store_url *u, uint32_t timeout_ms, struct firn_store **out,
                         struct firn_diag *d)
{
    struct raft_channel *c;
    int r = raft_link_new(u, &c, d);
    return r ? r : raft_store_new(c, u->path, timeout_ms, out, d);
}
