/*
 * The layout grammar, and what can be done with every layout that it accepts: the first line is the
 * layout's text; the bytes after it are numbers that serve as IDs, and as the time on a clock.
 */
#include <stdlib.h>
#include <string.h>

#include "firn/gen.h"
#include "firn/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IDS = 16 };

static void check(int ok)
{
    if (!ok)
        abort();
}

static uint64_t take_u64(const uint8_t **p, size_t *len)
{
    uint8_t b[8] = { 0 };
    size_t n = *len < sizeof b ? *len : sizeof b;
    uint64_t v = 0;
    memcpy(b, *p, n);
    *p += n;
    *len -= n;
    for (int i = 0; i < 8; i++)
        v = v << 8 | b[i];
    return v;
}

/* Not memcmp(): the struct has padding. */
static void check_same(const struct firn_layout *a, const struct firn_layout *b)
{
    check(memcmp(a->field, b->field, sizeof a->field) == 0 && a->flags == b->flags);
    check(a->tick_us == b->tick_us && a->epoch_ms == b->epoch_ms);
}

static void check_text(const struct firn_layout *l)
{
    char text[FIRN_LAYOUT_TEXT_BUF], again_text[FIRN_LAYOUT_TEXT_BUF];
    struct firn_layout again;
    size_t len = firn_layout_format(l, text);
    check(len < sizeof text && strlen(text) == len);
    check(firn_layout_parse(text, len, 0, &again, NULL) == 0);
    check_same(l, &again);
    check(firn_layout_format(&again, again_text) == len && strcmp(text, again_text) == 0);
}

static void check_id(const struct firn_layout *l, uint64_t id)
{
    struct firn_parts parts;
    uint64_t again = ~id;
    int r = firn_layout_decompose(l, id, &parts);
    check(r == 0 || r == FIRN_ERANGE);
    check((r == 0) == !(id & ~firn_layout_mask(l)));
    if (r)
        return;
    check(firn_layout_compose(l, &parts, &again, NULL) == 0 && again == id);

    /* A tick's first microsecond lies in that tick, as long as an int64_t holds it. */
    uint64_t tick = parts.field[FIRN_FIELD_TIME];
    int64_t us = firn_layout_unix_us(l, tick);
    check(us == INT64_MAX || firn_layout_ticks(l, us) == tick);
    check(us == INT64_MAX || us < firn_layout_end_us(l));
}

/* IDs of one generator say its slot and a time not before `from_tick`, and (time, seq) rises. */
static void check_ids(const struct firn_layout *l, const uint64_t *ids, size_t n, uint32_t slot,
                      uint64_t from_tick)
{
    unsigned seq_width = l->field[FIRN_FIELD_SEQ].width;
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        struct firn_parts parts;
        check(firn_layout_decompose(l, ids[i], &parts) == 0);
        check((ids[i] & firn_layout_slot_bits(l, UINT32_MAX)) == firn_layout_slot_bits(l, slot));
        check(parts.field[FIRN_FIELD_TIME] >= from_tick);
        uint64_t order = parts.field[FIRN_FIELD_TIME] << seq_width | parts.field[FIRN_FIELD_SEQ];
        check(i == 0 || order > last);
        last = order;
    }
}

/* What a generator may answer when it was set up rightly. */
static void check_error(int r)
{
    check(r == 0 || r == FIRN_EAGAIN || r == FIRN_ECLOCK || r == FIRN_EEXHAUSTED);
}

/* Both generators on a clock that shows `ns`, and moves only when they wait. */
static void check_generators(const struct firn_layout *l, uint64_t ns, uint64_t from, uint32_t slot,
                             uint32_t policy)
{
    struct firn_clock_virtual clock;
    struct firn_gen g;
    struct firn_shared s;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    opts.clock = &clock.base;
    opts.slot = slot;
    opts.policy = policy;
    opts.from = from;
    firn_clock_virtual_init(&clock, ns);
    int r = firn_gen_init(&g, l, &opts);
    check(firn_shared_init(&s, l, &opts) == r);
    if ((l->flags & FIRN_LAYOUT_DECODE_ONLY) || slot >= firn_layout_slots(l)) {
        check(r == FIRN_ENOTSUP || r == FIRN_EINVAL);
        return;
    }
    check_error(r);
    if (r)
        return;
    check((int64_t)(ns / 1000000) >= l->epoch_ms);

    uint64_t ids[IDS], from_tick = from ? from : firn_layout_ticks(l, (int64_t)(ns / 1000));
    size_t n = 0, more = 0;
    while (n < IDS / 2 && (r = firn_gen_next(&g, &ids[n])) == 0)
        n++;
    check_error(r);
    check_error(firn_gen_fill(&g, ids + n, IDS - n, &more));
    check_ids(l, ids, n + more, slot, from_tick);

    firn_clock_virtual_init(&clock, ns);
    n = more = 0;
    while (n < IDS / 2 && (r = firn_shared_next(&s, &ids[n])) == 0)
        n++;
    check_error(r);
    check_error(firn_shared_fill(&s, ids + n, IDS - n, &more));
    check_ids(l, ids, n + more, slot, from_tick);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t len = end ? (size_t)(end - data) : size;
    const uint8_t *rest = end ? end + 1 : data + size;
    size_t rest_len = size - (size_t)(rest - data);
    if (len == 0)
        return 0;

    struct firn_layout l;
    struct firn_diag diag = { 0, "" };
    l.tick_us = 0;
    int r = firn_layout_parse((const char *)data, len, 0, &l, &diag);
    if (r) {
        check(l.tick_us == 0 && (r == FIRN_EFORMAT || r == FIRN_ERANGE || r == FIRN_ENOENT));
        check(diag.text[0] && memchr(diag.text, 0, sizeof diag.text) && diag.column <= len + 1);
        return 0;
    }
    check(firn_layout_check(&l, 0, NULL) == 0);
    check_text(&l);

    uint64_t ns = take_u64(&rest, &rest_len) >> 1; /* system clocks end in 2262 */
    uint32_t slot = (uint32_t)take_u64(&rest, &rest_len);
    check_generators(&l, ns, 0, slot, slot % 3);
    if (firn_layout_slots(&l)) {
        uint64_t from = take_u64(&rest, &rest_len) >> (64 - l.field[FIRN_FIELD_TIME].width);
        check_generators(&l, ns, 0, (uint32_t)(slot % firn_layout_slots(&l)), slot % 3);
        check_generators(&l, ns, from, (uint32_t)(slot % firn_layout_slots(&l)), slot % 3);
    }

    /* Numbers of the input, and the same without the bits that the layout does not have. */
    do {
        uint64_t id = take_u64(&rest, &rest_len);
        check_id(&l, id);
        check_id(&l, id & firn_layout_mask(&l));
        check_id(&l, ~id & firn_layout_mask(&l));
    } while (rest_len > 0);
    return 0;
}
