/*
 * Ticket numbers: records, one write in flight, and the blocks of a range sequence. Numbers of a
 * sequence are offset modulo step, from start up to max. `next` is always the next number to give,
 * so a record says everything; once it passes max the sequence is exhausted. Nothing overflows: a
 * number is at most SEQ_NUMBER_MAX, and the one after the last is one step more. Tests:
 * tests/unit/coord/sequence.c, tests/unit/coord/batch.c.
 */
#include "coord/sequence.h"
#include "coord/mutant.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>

int seq_new(const struct seq_spec *spec, const struct nonce *req, struct seq_record *out,
            struct firn_diag *d)
{
    struct seq_record r = {
        .mode = spec->mode,
        .start = spec->start ? spec->start : 1,
        .step = spec->step ? spec->step : 1,
        .offset = spec->offset,
        .max = spec->max ? spec->max : SEQ_NUMBER_MAX,
        .req = *req,
    };
    size_t note = spec->note ? strlen(spec->note) : 0;
    if (r.mode != SEQ_GAPLESS && r.mode != SEQ_RANGE)
        return firn__diag(d, FIRN_EINVAL, 0, "the mode is gapless or range");
    if (r.step > SEQ_STEP_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "a step is at most %d", SEQ_STEP_MAX);
    if (r.offset >= r.step)
        return firn__diag(d, FIRN_EINVAL, 0, "the offset must be below the step");
    if (r.max > SEQ_NUMBER_MAX || r.start > r.max)
        return firn__diag(d, FIRN_EINVAL, 0, "start and max must be in order and at most %lld",
                          (long long)SEQ_NUMBER_MAX);
    for (size_t i = 0; i < note; i++)
        if (note > RECORD_NOTE_MAX || spec->note[i] < ' ' || spec->note[i] > '~')
            return firn__diag(d, FIRN_EINVAL, i + 1, "a note is at most %d printable characters",
                              RECORD_NOTE_MAX);
    if (note)
        memcpy(r.note, spec->note, note);
    r.next = r.start + (r.offset + r.step - r.start % r.step) % r.step;
    if (r.next > r.max)
        return firn__diag(d, FIRN_EINVAL, 0, "no number fits between start and max");
    firn_assert(r.next >= r.start && r.next % r.step == r.offset, "next %" PRIu64, r.next);
    *out = r;
    return 0;
}

uint64_t seq_left(const struct seq_record *r)
{
    return r->next > r->max ? 0 : (r->max - r->next) / r->step + 1;
}

int seq_take(const struct seq_record *old, uint64_t want, const struct nonce *req,
             struct seq_record *out_next, struct seq_range *out)
{
    if (want == 0)
        return FIRN_EINVAL;
    uint64_t left = seq_left(old);
    if (left == 0)
        return FIRN_EOVERFLOW;
    uint64_t count = min64(min64(want, SEQ_TAKE_MAX), left);
    *out = (struct seq_range){ .first = old->next, .step = old->step, .count = count };
    struct seq_record r = *old;
    r.next = seq_range_last(out) + old->step;
    r.req = *req;
    firn_assert(r.next > old->next && seq_range_last(out) <= old->max,
                "%" PRIu64 " from %" PRIu64 ", max %" PRIu64, count, old->next, old->max);
    firn_assert(r.next - old->next == count * old->step);
    *out_next = r;
    return 0;
}

bool seq_skip(struct seq_record *r, uint64_t n, const struct nonce *req)
{
    uint64_t left = seq_left(r), count = min64(n, left);
    if (count == 0)
        return false;
    r->next += count * r->step;
    firn_assert(seq_left(r) == left - count, "next %" PRIu64 " max %" PRIu64, r->next, r->max);
    r->req = *req;
    return true;
}

void seq_delete(struct seq_record *r, const struct nonce *req)
{
    r->max = 0;
    r->req = *req;
    firn_assert(seq_left(r) == 0);
}

int seq_renew(const struct seq_record *deleted, const struct seq_spec *spec,
              const struct nonce *req, struct seq_record *out, struct firn_diag *d)
{
    struct seq_record fresh;
    firn_assert(seq_deleted(deleted));
    int r = seq_new(spec, req, &fresh, d);
    if (r != 0)
        return r;
    if (fresh.mode != deleted->mode || fresh.step != deleted->step ||
        fresh.offset != deleted->offset || strcmp(fresh.note, deleted->note) != 0)
        return firn__diag(d, FIRN_ECONFLICT, 0,
                          "it was deleted: create it again with the same mode, step, offset and "
                          "dates, or choose another name");
    if (spec->resume && fresh.next < deleted->next)
        fresh.next = deleted->next;
    if (fresh.next < deleted->next)
        return firn__diag(d, FIRN_ECONFLICT, 0,
                          "it was deleted, and numbers below %" PRIu64
                          " may have been given: create it again with a start of %" PRIu64
                          " or more",
                          deleted->next, deleted->next);
    if (fresh.next > fresh.max && !spec->resume)
        return firn__diag(d, FIRN_ECONFLICT, 0, "no number fits between start and max");
    struct seq_record renewed = *deleted; /* with its writers: one may still look for its write */
    renewed.start = fresh.start;
    renewed.max = fresh.max;
    renewed.next = fresh.next;
    renewed.req = *req;
    firn_assert(renewed.next >= deleted->next && renewed.next >= renewed.start &&
                    renewed.next % renewed.step == renewed.offset,
                "next %" PRIu64 " after %" PRIu64, renewed.next, deleted->next);
    *out = renewed;
    return 0;
}

/* ---- one write in flight ---- */

void seq_op_init(struct seq_op *op)
{
    op->base_len = op->value_len = 0;
    op->mine_count = 0;
    op->keys.n = op->next_keys.n = 0;
    op->kept = op->named = false;
}

static void set_base(struct seq_op *op, const struct seq_record *r, const struct seq_keys *keys,
                     const char *p, size_t len)
{
    op->base = *r;
    op->keys = *keys;
    op->kept = false;
    firn_assert(len > 0 && len <= sizeof op->base_text, "%zu bytes", len);
    memmove(op->base_text, p, len);
    op->base_len = len;
}

static bool has_written(const struct seq_record *r, const struct nonce *req)
{
    for (uint32_t i = 0; i < r->writers && !FIRN_MUTANT(tk_writers_dropped); i++)
        if (memcmp(r->writer[i].b, req->b, sizeof r->writer[i].b) == 0)
            return true;
    return nonce_eq(&r->req, req);
}

/* The request becomes its writer's last one, and that writer the latest; the earliest may drop
 * out. */
static void note_writer(struct seq_record *r, const struct nonce *req)
{
    uint32_t i = 0;
    while (i < r->writers && memcmp(r->writer[i].b, req->b, SEQ_WRITER_NAME) != 0)
        i++;
    if (i == r->writers && i < SEQ_WRITERS)
        r->writers++;
    else if (i == r->writers)
        i--;
    firn_assert(i < SEQ_WRITERS && r->writers <= SEQ_WRITERS);
    memmove(r->writer + 1, r->writer, i * sizeof r->writer[0]);
    memcpy(r->writer[0].b, req->b, sizeof r->writer[0].b);
}

/* The nonce with the writer's name in front. */
static struct nonce signed_by(struct seq_op *op, const struct nonce *req)
{
    struct nonce own = *req;
    if (!op->named)
        memcpy(op->writer, req->b, sizeof op->writer);
    op->named = true;
    memcpy(own.b, op->writer, sizeof op->writer);
    return own;
}

int seq_op_read(struct seq_op *op, const char *p, size_t len, enum seq_verdict *out_verdict,
                struct seq_range *out, struct firn_diag *d)
{
    struct seq_record r;
    struct seq_keys keys;
    int error = seq_parse_keyed(p, len, &r, &keys, d);
    if (error != 0)
        return error;
    set_base(op, &r, &keys, p, len);
    *out_verdict = SEQ_TRY_AGAIN;
    /* Only the newest SEQ_MINE are known; an older one that lands leaves a hole. */
    for (uint32_t i = 0; i < op->mine_count && i < SEQ_MINE; i++)
        if (has_written(&r, &op->mine[i].req)) {
            *out = op->mine[i].range;
            *out_verdict = nonce_eq(&op->mine[i].req, &r.req) ? SEQ_GRANTED : SEQ_LATE;
            op->mine_count = 0; /* the rest named a text that is gone: none can land any more */
            break;
        }
    return 0;
}

static const struct seq_keyed *find_key(const struct seq_keys *keys, const struct nonce *key)
{
    for (uint32_t i = 0; i < keys->n; i++)
        if (nonce_eq(&keys->key[i].key, key))
            return &keys->key[i];
    return NULL;
}

const struct seq_keyed *seq_op_find(const struct seq_op *op, const struct nonce *key)
{
    return find_key(&op->keys, key);
}

/* List the ask in the write under way. False: the record has no room. */
static bool give(struct seq_op *op, struct seq_record *next, struct seq_ask *a)
{
    struct seq_keys *keys = &op->next_keys;
    uint64_t left = seq_left(next), count = min64(min64(a->want, left), SEQ_TAKE_MAX);
    if (count == 0 || (count < a->want && !a->partial) || find_key(keys, &a->key))
        return true;
    if (keys->n == SEQ_KEYS_MAX)
        return false;
    struct seq_record after = *next;
    keys->key[keys->n++] = (struct seq_keyed){ a->key, a->args, next->next, count };
    after.next += count * next->step;
    size_t len = seq_encode_keyed(&after, keys, op->value);
    if (len == 0) {
        keys->n--;
        return false;
    }
    firn_assert(seq_left(&after) == left - count);
    *next = after;
    a->listed = true;
    return true;
}

int seq_op_build(struct seq_op *op, uint64_t want, const struct nonce *fresh)
{
    return seq_op_build_keyed(op, want, NULL, 0, 0, fresh);
}

int seq_op_build_keyed(struct seq_op *op, uint64_t want, struct seq_ask *const *ask, size_t n,
                       uint64_t at_s, const struct nonce *fresh)
{
    if (op->base_len == 0)
        return FIRN_EAGAIN;
    struct seq_record next = op->base;
    struct nonce own = signed_by(op, fresh), *req = &own;
    struct seq_range range = { next.next, next.step, 0 };
    int r = want > 0 || n == 0 ? seq_take(&op->base, want, req, &next, &range) : 0;
    if (r != 0)
        return r;
    next.req = *req;
    note_writer(&next, req);
    op->next_keys.n = 0;
    op->next_keys.at = at_s;
    bool room = true;
    for (size_t i = 0; i < n; i++)
        ask[i]->listed = false;
    for (size_t i = 0; i < n && room; i++)
        room = give(op, &next, ask[i]);
    if (range.count == 0 && op->next_keys.n == 0)
        return FIRN_EOVERFLOW;
    uint64_t taken = range.count;
    for (uint32_t k = 0; k < op->next_keys.n; k++)
        taken += op->next_keys.key[k].count;
    firn_assert(next.next - op->base.next == taken * next.step,
                "next %" PRIu64 " to %" PRIu64 " for %" PRIu64, op->base.next, next.next, taken);
    op->next = next;
    op->value_len = seq_encode_keyed(&next, &op->next_keys, op->value);
    firn_assert(op->value_len > 0); /* give() lists only what fits */
    uint32_t i = op->mine_count++ % SEQ_MINE;
    op->mine[i].req = *req;
    op->mine[i].range = range;
    return 0;
}

enum seq_verdict seq_op_done(struct seq_op *op, int result, struct seq_range *out)
{
    firn_assert(op->mine_count > 0 && op->base_len > 0);
    if (result == 0) {
        struct seq_range range = op->mine[(op->mine_count - 1) % SEQ_MINE].range;
        set_base(op, &op->next, &op->next_keys, op->value, op->value_len);
        op->mine_count = 0;
        *out = range;
        return SEQ_GRANTED;
    }
    if (FIRN_MUTANT(tk_mine_forgotten))
        op->mine_count = 0;
    op->base_len = 0; /* whatever is there now, it has to be read */
    return SEQ_READ_IT;
}

bool seq_op_give_back(struct seq_op *op, const struct seq_range *rest, const struct nonce *fresh)
{
    const struct seq_record *base = &op->base;
    bool last = rest->count > 0 && rest->step == base->step && rest->first >= base->start &&
                rest->first + rest->count * rest->step == base->next;
    last |= FIRN_MUTANT(tk_back_over_others);
    if (op->base_len == 0 || op->mine_count > 0 || !last || seq_deleted(base) ||
        (op->keys.n > 0 && !op->kept))
        return false;
    struct nonce own = signed_by(op, fresh);
    op->next = *base;
    op->next.next = rest->first;
    if (FIRN_MUTANT(tk_back_given) && rest->first > base->start)
        op->next.next -= base->step;
    op->next.req = own;
    note_writer(&op->next, &own);
    op->next_keys.n = 0;
    op->value_len = seq_encode(&op->next, op->value);
    firn_assert(op->next.next < base->next && op->next.next >= base->start);
    return true;
}

/* ---- blocks of a range sequence ---- */

enum { DEMAND_MS = 10000 }; /* a block lasts about that long */

void seq_cache_init(struct seq_cache *c)
{
    *c = (struct seq_cache){ .want = SEQ_BLOCK_MIN };
}

/* The current block is used up: the spare takes its place, and how long it lasted says how large
 * the next should be. */
static void turn(struct seq_cache *c, uint64_t now_ms)
{
    uint64_t ms = now_ms > c->began_ms ? now_ms - c->began_ms : 1;
    if (c->block > 0) {
        uint64_t want = c->block * DEMAND_MS / ms; /* block is at most 1e6: no overflow */
        c->want = min64(max64(want, SEQ_BLOCK_MIN), SEQ_BLOCK_MAX);
    }
    c->cur = c->spare;
    c->block = c->cur.count;
    c->began_ms = now_ms;
    c->spare = (struct seq_range){ 0 };
}

static struct seq_range cut(struct seq_range *from, uint64_t count)
{
    struct seq_range piece = { from->first, from->step, count };
    firn_assert(count > 0 && count <= from->count, "%" PRIu64 " of %" PRIu64, count, from->count);
    from->first += count * from->step;
    from->count -= count;
    return piece;
}

int seq_cache_some(struct seq_cache *c, uint64_t max, uint64_t now_ms, struct seq_range *out)
{
    if (max == 0)
        return FIRN_EINVAL;
    if (c->cur.count == 0 && c->spare.count > 0)
        turn(c, now_ms);
    if (c->cur.count == 0)
        return FIRN_EAGAIN;
    *out = cut(&c->cur, min64(max, c->cur.count));
    return 0;
}

int seq_cache_exactly(struct seq_cache *c, uint64_t n, uint64_t now_ms, struct seq_range *out)
{
    if (n == 0 || n > SEQ_TAKE_MAX)
        return FIRN_EINVAL;
    bool joined = c->cur.count > 0 && c->spare.count > 0 && c->cur.step == c->spare.step &&
                  c->cur.first + c->cur.count * c->cur.step == c->spare.first;
    if (c->cur.count < n && joined && c->cur.count + c->spare.count >= n) {
        struct seq_range piece = { c->cur.first, c->cur.step, n };
        cut(&c->spare, n - c->cur.count);
        firn_assert(seq_range_last(&piece) + piece.step == c->spare.first);
        c->cur.count = 0;
        turn(c, now_ms);
        *out = piece;
        return 0;
    }
    if (c->cur.count < n && c->spare.count >= n)
        turn(c, now_ms); /* the rest of the current block is skipped */
    if (c->cur.count < n) {
        c->need = max64(n, c->need); /* the next block will hold it */
        return FIRN_EAGAIN;
    }
    *out = cut(&c->cur, n);
    return 0;
}

uint64_t seq_cache_ask(struct seq_cache *c)
{
    bool enough = c->spare.count > 0 || c->cur.count > c->block / 2;
    if (c->asked || (enough && c->need == 0))
        return 0;
    c->asked = true;
    firn_assert(c->want >= SEQ_BLOCK_MIN && c->want <= SEQ_BLOCK_MAX && c->need <= SEQ_TAKE_MAX);
    return max64(c->need, c->want);
}

void seq_cache_put(struct seq_cache *c, const struct seq_range *r, uint64_t now_ms)
{
    c->asked = false;
    c->need = 0;
    if (c->cur.count == 0)
        turn(c, now_ms); /* nothing, or the old spare, comes first */
    c->spare = *r;
    if (c->cur.count == 0)
        turn(c, now_ms);
}

void seq_cache_failed(struct seq_cache *c)
{
    c->asked = false;
}

struct seq_range seq_cache_empty(struct seq_cache *c)
{
    struct seq_range rest = c->spare.count > 0 ? c->spare : c->cur;
    if (c->spare.count > 0 && c->cur.count > 0 && c->cur.step == c->spare.step &&
        c->cur.first + c->cur.count * c->cur.step == c->spare.first) {
        rest.first = c->cur.first;
        rest.count += c->cur.count;
    }
    c->cur.count = c->spare.count = 0;
    return rest;
}
