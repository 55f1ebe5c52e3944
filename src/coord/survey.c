/*
 * INIT, recovery and FENCE: the decisions over all slots of a store (survey.h). Tests:
 * tests/unit/coord/survey.c, tests/unit/drive/lease_shared.c; the simulator fences with faults.
 */
#include "coord/survey.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>

int setup_spec_check(const struct setup_spec *spec, struct firn_diag *d)
{
    if (spec->slots == 0 || spec->slots > SLOTS_MAX || strlen(spec->layout) > RECORD_LAYOUT_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "a store has 1 to %d slots", SLOTS_MAX);
    if (spec->window == 0)
        return firn__diag(d, FIRN_EINVAL, 0, "the window needs at least a tick");
    return 0;
}

static void set(struct slot_survey *s, uint32_t i, const char *p, size_t len)
{
    firn_assert(i < s->n && len <= RECORD_TEXT_MAX, "slot %u of %u, %zu bytes", i, s->n, len);
    if (len > 0)
        memcpy(s->slot[i].text, p, len);
    s->slot[i].len = len;
}

int survey_set(struct slot_survey *s, uint32_t i, const char *p, size_t len, struct firn_diag *d)
{
    if (len > RECORD_TEXT_MAX)
        return firn__diag(d, FIRN_EFORMAT, 0, "slot %u cannot be read: it is too long", s->lo + i);
    set(s, i, p, len);
    return 0;
}

void survey_add(struct slot_survey *s, struct firn_slice key, struct firn_slice value)
{
    uint32_t slot;
    if (slot_key_parse(key.p, key.len, &slot) == 0 && slot >= s->lo && slot - s->lo < s->n &&
        value.len <= RECORD_TEXT_MAX)
        set(s, slot - s->lo, value.p, value.len);
}

int survey_slot(const struct slot_survey *s, uint32_t i, struct slot_record *out,
                struct firn_diag *d)
{
    struct firn_diag why = { 0 };
    firn_assert(i < s->n && s->slot[i].len <= RECORD_TEXT_MAX);
    if (slot_parse(s->slot[i].text, s->slot[i].len, out, &why) != 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "slot %u cannot be read: %s", s->lo + i, why.text);
    return 0;
}

int survey_cluster(struct slot_survey *s, bool *out_found, bool *out_used, struct firn_diag *d)
{
    *out_found = *out_used = false;
    for (uint32_t i = 0; i < s->n; i++) {
        struct slot_record r;
        if (s->slot[i].len == 0)
            continue;
        int error = survey_slot(s, i, &r, d);
        if (error != 0)
            return error;
        if (*out_found && !nonce_eq(&r.cluster, &s->cluster))
            return firn__diag(d, FIRN_ESTORE, 0,
                              "slot %u belongs to another cluster than the slots before it",
                              s->lo + i);
        s->cluster = r.cluster;
        *out_found = true;
        *out_used |= r.epoch != 0;
    }
    return 0;
}

int survey_whole(const struct slot_survey *s, struct firn_diag *d)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < s->n; i++) {
        struct slot_record record;
        if (s->slot[i].len == 0)
            r = firn__diag(d, FIRN_ENOENT, 0,
                           "slot %u has no record: stop all users of the store, then `firn admin "
                           "init --recover`",
                           s->lo + i);
        else
            r = survey_slot(s, i, &record, d);
    }
    return r;
}

bool survey_fenced(const struct slot_survey *s, const struct meta_record *m, uint64_t known_floor,
                   uint64_t reach)
{
    bool fenced = m->floor > known_floor && m->floor >= reach;
    for (uint32_t i = 0; fenced && i < s->n; i++) {
        struct slot_record r;
        fenced = s->slot[i].len != 0 && survey_slot(s, i, &r, NULL) == 0 && r.until >= m->floor;
    }
    return fenced;
}

const char *survey_word(const struct meta_record *m, const struct slot_record *r, uint64_t f,
                        uint64_t now)
{
    uint64_t reach = 2 * (m->window + m->max_drift + 2 * m->skew_max);
    if (r->state == SLOT_RETIRED)
        return "retired";
    if (r->until > (m->floor > now ? m->floor : now) + reach)
        return "poisoned";
    if (r->state == SLOT_FREE)
        return "free";
    return r->until > f ? "held" : "lapsed";
}

void survey_meta(const struct slot_survey *s, const struct setup_spec *spec,
                 const struct nonce *req, struct meta_record *out)
{
    firn_assert(spec->slots > 0 && spec->window > 0 && strlen(spec->layout) <= RECORD_LAYOUT_MAX);
    *out = (struct meta_record){
        .cluster = s->cluster,
        .slot_lo = spec->slot_lo,
        .slot_hi = spec->slot_lo + spec->slots,
        .window = spec->window,
        .max_drift = spec->max_drift,
        .skew_max = spec->skew_max,
        .floor = s->floor,
        .req = *req,
    };
    memcpy(out->layout, spec->layout, strlen(spec->layout) + 1);
}

/* ---- writing slots ---- */

void survey_batch_init(struct survey_batch *b, struct slot_survey *s, uint32_t at, uint32_t n,
                       enum survey_wish wish)
{
    firn_assert(n <= SURVEY_BATCH_MAX && at + n <= s->n, "slots %u and %u more of %u", at, n, s->n);
    b->survey = s;
    b->wish = wish;
    b->at = at;
    b->n = n;
    b->count = 0;
    memset(b->done, 0, sizeof b->done);
}

bool survey_batch_wants(const struct survey_batch *b, uint32_t i)
{
    firn_assert(i >= b->at && i - b->at < b->n);
    bool absent = b->survey->slot[i].len == 0;
    return !b->done[i - b->at] &&
           (b->wish == SURVEY_RAISE_ALL || absent == (b->wish == SURVEY_CREATE_ABSENT));
}

int survey_batch_add(struct survey_batch *b, uint32_t i, uint64_t f, const struct nonce *req,
                     struct firn_diag *d)
{
    const struct slot_survey *s = b->survey;
    const struct slot_text *t = &s->slot[i];
    struct slot_record old, next;
    int r = t->len ? survey_slot(s, i, &old, d) : 0;
    if (r != 0)
        return r;
    slot_fenced_record(&s->cluster, t->len ? &old : NULL, s->floor, f, req, &next);
    firn_assert(next.until >= s->floor && next.state != SLOT_HELD,
                "slot %u until %" PRIu64 " floor %" PRIu64, s->lo + i, next.until, s->floor);
    firn_assert(b->count < b->n);
    size_t k = b->count++;
    b->slot[k] = i;
    b->cas[k] = (struct firn_cas){ firn_slice(b->key[k], slot_key(s->lo + i, b->key[k])),
                                   t->len ? firn_slice(t->text, t->len) : firn_slice(NULL, 0),
                                   firn_slice(b->text[k], slot_encode(&next, b->text[k])) };
    return 0;
}

bool survey_batch_written(struct survey_batch *b, size_t k, int result)
{
    firn_assert(k < b->count);
    b->done[b->slot[k] - b->at] = result == 0;
    return result != 0;
}

void survey_batch_reread(struct survey_batch *b, size_t k)
{
    firn_assert(k < b->count && !b->done[b->slot[k] - b->at]);
    /* A creation that came too late is over: another process's record is there. */
    b->done[b->slot[k] - b->at] = b->wish == SURVEY_CREATE_ABSENT &&
                                  b->survey->slot[b->slot[k]].len != 0;
}
