/*
 * The replicated state machine. Entries and snapshots come from disks and peers: everything in them
 * is checked and refused with an error. What this member builds itself is asserted.
 */
#include "raft/fsm.h"
#include "id/bytes.h"
#include "id/fnv.h"
#include "platform/assert.h"
#include "raft/core/mutant.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define WRITES      "FW2"
#define INCARNATION "FI2"
#define CHECK       "FC2"
#define SNAPSHOT    "FS1"

enum { HEAD = 16, PLACE = 8, ALIGN = 8 }; /* the head ends with the index of the entry */
enum { SNAPSHOT_HEAD = 8 };

void fsm_done(struct fsm *f)
{
    map_done(&f->map);
    free(f->result);
    dedup_done(&f->dedup);
    *f = (struct fsm){ 0 };
}

uint64_t fsm_sum(const struct fsm *f)
{
    uint64_t sum = fnv_word(fnv_word(FNV_BEGIN, f->incarnation), f->requests);
    for (size_t i = 0; i < f->map.count; i++) {
        struct firn_slice key = map_key(&f->map, i), value = map_value(&f->map, i);
        sum = fnv(fnv(sum, key.p, key.len), value.p, value.len);
    }
    for (size_t i = 0; f->dedup.row && i < DEDUP_MAX; i++)
        if (f->dedup.row[i].result) {
            sum = fnv_word(fnv_word(sum, f->dedup.row[i].nonce[0]), f->dedup.row[i].nonce[1]);
            sum = fnv(sum, f->dedup.row[i].result, f->dedup.row[i].len);
        }
    return sum;
}

/* ---- entries ---- */

static void put_head(struct frame_out *o, const char *word)
{
    for (size_t i = 0; i < 4; i++)
        frame_u8(o, (uint8_t)word[i]);
    frame_u32(o, 0);
}

static void put_entry(struct frame_out *o, const char *word)
{
    put_head(o, word);
    frame_u64(o, 0);
}

void fsm_entry_place(char *entry, uint64_t index)
{
    firn_assert(index > 0);
    store_be64(entry + PLACE, index);
}

bool fsm_entry_at(const char *p, size_t len, uint64_t index)
{
    return len >= HEAD && load_be64(p + PLACE) == index;
}

void fsm_entry_begin(struct fsm_entry *e, char *room, size_t cap)
{
    firn_assert(cap > HEAD + ALIGN, "cap=%zu", cap);
    *e = (struct fsm_entry){ .out = { .p = room, .cap = cap - ALIGN } };
    put_entry(&e->out, WRITES);
}

bool fsm_entry_add(struct fsm_entry *e, const char *body, size_t len)
{
    firn_assert(e->requests <= FSM_REQUESTS_MAX && e->out.len <= e->out.cap,
                "requests=%u len=%zu cap=%zu", e->requests, e->out.len, e->out.cap);
    if (e->requests == FSM_REQUESTS_MAX || e->out.cap - e->out.len < len)
        return false;
    memcpy(e->out.p + e->out.len, body, len);
    e->out.len += len;
    e->requests++;
    return true;
}

static size_t pad(struct frame_out *o)
{
    o->cap += ALIGN;
    while (o->len % ALIGN != 0)
        frame_u8(o, 0);
    firn_assert(!o->full && o->len <= o->cap, "len=%zu cap=%zu", o->len, o->cap);
    return o->len;
}

size_t fsm_entry_end(struct fsm_entry *e)
{
    struct frame_out count = { .p = e->out.p + 4, .cap = 4 };
    frame_u32(&count, e->requests);
    return pad(&e->out);
}

size_t fsm_entry_incarnation(char *room, size_t cap, uint64_t old, uint64_t new)
{
    struct frame_out o = { .p = room, .cap = cap };
    put_entry(&o, INCARNATION);
    frame_u64(&o, old);
    frame_u64(&o, new);
    firn_assert(o.full || o.len == FSM_NAME_BYTES, "len=%zu", o.len);
    return o.full ? 0 : o.len;
}

void fsm_entry_check(char *room, uint64_t term, const struct fsm *f)
{
    struct frame_out o = { .p = room, .cap = FSM_CHECK_BYTES };
    put_entry(&o, CHECK);
    frame_u64(&o, term);
    frame_u64(&o, f->requests);
    frame_u64(&o, fsm_sum(f));
    firn_assert(!o.full && o.len == FSM_CHECK_BYTES, "len=%zu", o.len);
}

static bool result_grow(struct fsm *f, size_t more)
{
    if (f->result_len + more <= f->result_cap)
        return true;
    size_t cap = (f->result_len + more) * 2;
    uint8_t *p = realloc(f->result, cap);
    if (!p)
        return false;
    f->result = p;
    f->result_cap = cap;
    return true;
}

/* ---- applying ---- */

/* One request of an entry; with `dry` its format is checked and nothing changes. */
static int apply_request(struct fsm *f, struct frame_in *in, bool dry)
{
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    int result[FRAME_WRITES_MAX];
    size_t n;
    uint64_t incarnation = frame_get_u64(in), nonce[2], since;
    nonce[0] = frame_get_u64(in);
    nonce[1] = frame_get_u64(in);
    since = frame_get_u64(in);
    bool again = frame_get_u8(in);
    int r = frame_get_cas(in, want, &n);
    if (r != 0 || dry)
        return r;
    if (!result_grow(f, 1 + n))
        return FIRN_ENOMEM;
    firn_assert(n > 0 && n <= FRAME_WRITES_MAX, "writes=%zu", n);
    uint8_t *out = f->result + f->result_len;
    const struct dedup_row *before = dedup_find(&f->dedup, nonce);
    memset(out, 1, 1 + n);
    f->result_len += 1 + n;
    firn_assert(f->result_len <= f->result_cap, "len=%zu cap=%zu", f->result_len, f->result_cap);
    if (before && before->len == 1 + n && !CORE_MUTANT(rc_no_dedup)) {
        memcpy(out, before->result, 1 + n);
        return 0;
    }
    if (again && f->requests - since > DEDUP_MAX && !CORE_MUTANT(rc_too_old_applied)) {
        out[0] = FSM_UNKNOWN;
        return 0;
    }
    if (incarnation != f->incarnation) {
        out[0] = FSM_OTHER;
    } else {
        r = map_cas(&f->map, want, n, result);
        out[0] = FSM_DONE;
        for (size_t i = 0; i < n && r == 0; i++)
            out[1 + i] = result[i] != 0;
    }
    if (r == 0 && !dedup_add(&f->dedup, f->requests, nonce, out, 1 + n))
        r = FIRN_ENOMEM;
    f->requests += r == 0;
    return r;
}

static int walk(struct fsm *f, const char *p, size_t len, uint32_t requests, bool dry)
{
    struct frame_in in = { p, len, false };
    uint64_t before = f->requests;
    int r = 0;
    for (uint32_t i = 0; i < requests && r == 0; i++)
        r = apply_request(f, &in, dry);
    firn_assert(f->requests - before <= (dry ? 0 : requests), "before=%" PRIu64 " now=%" PRIu64,
                before, f->requests);
    while (r == 0 && in.len > 0)
        r = in.len >= ALIGN || frame_get_u8(&in) != 0 ? FIRN_EFORMAT : 0;
    return r;
}

int fsm_apply(struct fsm *f, const char *p, size_t len)
{
    if (len < HEAD)
        return FIRN_EFORMAT;
    struct frame_in in = { p + 4, len - 4, false };
    uint32_t requests = frame_get_u32(&in);
    (void)frame_get_u64(&in); /* the index: the caller checks it */
    f->result_len = 0;
    if (memcmp(p, WRITES, 4) == 0) {
        int r = requests == 0 || requests > FSM_REQUESTS_MAX ? FIRN_EFORMAT : 0;
        if (r == 0)
            r = walk(f, in.p, in.len, requests, true);
        return r ? r : walk(f, in.p, in.len, requests, false);
    }
    if (memcmp(p, CHECK, 4) == 0) {
        if (requests != 0 || in.len != FSM_CHECK_BYTES - HEAD)
            return FIRN_EFORMAT;
        struct fsm_check c = { .term = frame_get_u64(&in), .sum = fsm_sum(f) };
        c.same = frame_get_u64(&in) == f->requests;
        c.leaders_sum = frame_get_u64(&in);
        c.same = c.same && c.leaders_sum == c.sum;
        f->check = c;
        return 0;
    }
    if (memcmp(p, INCARNATION, 4) != 0 || requests != 0 || in.len != 16)
        return FIRN_EFORMAT;
    uint64_t old = frame_get_u64(&in), new = frame_get_u64(&in);
    if (f->incarnation == old)
        f->incarnation = new;
    return 0;
}

/* ---- snapshots ---- */

size_t fsm_snapshot_size(const struct fsm *f)
{
    size_t size = SNAPSHOT_HEAD + 16 + 12 + SHA256_DIGEST_LENGTH;
    for (size_t i = 0; i < DEDUP_MAX && f->dedup.row; i++)
        size += f->dedup.row[i].result ? 18u + f->dedup.row[i].len : 0;
    for (size_t i = 0; i < f->map.count; i++)
        size += 4 + f->map.cell[i]->key_len + f->map.cell[i]->len;
    return size;
}

int fsm_snapshot(const struct fsm *f, char *to, size_t size)
{
    struct frame_out o = { .p = to, .cap = size };
    put_head(&o, SNAPSHOT);
    frame_u64(&o, f->incarnation);
    frame_u64(&o, f->map.count);
    for (size_t i = 0; i < f->map.count; i++) {
        frame_text(&o, map_key(&f->map, i));
        frame_text(&o, map_value(&f->map, i));
    }
    uint64_t rows = f->requests < DEDUP_MAX ? f->requests : DEDUP_MAX;
    frame_u64(&o, f->requests);
    frame_u32(&o, (uint32_t)rows);
    for (uint64_t i = f->requests - rows; i < f->requests; i++) {
        const struct dedup_row *k = &f->dedup.row[i % DEDUP_MAX];
        firn_assert(k->result && k->len > 0, "request=%" PRIu64 " of %" PRIu64, i, f->requests);
        frame_u64(&o, k->nonce[0]);
        frame_u64(&o, k->nonce[1]);
        frame_text(&o, firn_slice((const char *)k->result, k->len));
    }
    if (o.full || o.cap - o.len != SHA256_DIGEST_LENGTH)
        return FIRN_ENOSPC;
    SHA256((const unsigned char *)to, o.len, (unsigned char *)to + o.len);
    return 0;
}

int fsm_restore(struct fsm *f, const char *p, size_t len)
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    if (len < SNAPSHOT_HEAD + 16 + sizeof sum || memcmp(p, SNAPSHOT, 4) != 0)
        return FIRN_EFORMAT;
    len -= sizeof sum;
    SHA256((const unsigned char *)p, len, sum);
    if (memcmp(sum, p + len, sizeof sum) != 0)
        return FIRN_EFORMAT;
    struct frame_in in = { p + SNAPSHOT_HEAD, len - SNAPSHOT_HEAD, false };
    struct map map = { 0 };
    uint64_t incarnation = frame_get_u64(&in), count = frame_get_u64(&in);
    int r = 0;
    for (uint64_t i = 0; i < count && r == 0; i++) {
        int result = 0;
        struct firn_cas put = { .key = frame_get_text(&in, MAP_KEY_MAX) };
        put.value = frame_get_text(&in, STORE_VALUE_MAX);
        r = in.bad || !put.key.p || !put.value.p ? FIRN_EFORMAT : map_cas(&map, &put, 1, &result);
        if (r == 0 && result != 0) /* the same key twice */
            r = FIRN_EFORMAT;
    }
    struct dedup dedup = { 0 };
    uint64_t requests = r == 0 ? frame_get_u64(&in) : 0;
    uint32_t left = r == 0 ? frame_get_u32(&in) : 0;
    if (r == 0 && (in.bad || left != (requests < DEDUP_MAX ? requests : DEDUP_MAX)))
        r = FIRN_EFORMAT;
    for (uint64_t i = requests - left; i < requests && r == 0; i++) {
        uint64_t nonce[2];
        nonce[0] = frame_get_u64(&in);
        nonce[1] = frame_get_u64(&in);
        struct firn_slice result = frame_get_text(&in, 1 + FRAME_WRITES_MAX);
        if (in.bad || !result.p || result.len < 2)
            r = FIRN_EFORMAT;
        if (CORE_MUTANT(rc_dedup_not_kept))
            nonce[0] = ~nonce[0];
        if (r == 0 && !dedup_add(&dedup, i, nonce, (const uint8_t *)result.p, result.len))
            r = FIRN_ENOMEM;
    }
    if (r == 0 && in.len != 0)
        r = FIRN_EFORMAT;
    if (r != 0) {
        map_done(&map);
        dedup_done(&dedup);
        return r;
    }
    firn_assert(map.count == count, "registers=%zu count=%" PRIu64, map.count, count);
    map_done(&f->map);
    dedup_done(&f->dedup);
    f->dedup = dedup;
    f->requests = requests;
    f->map = map;
    f->incarnation = incarnation;
    return 0;
}
