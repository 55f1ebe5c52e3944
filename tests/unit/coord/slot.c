/* One node against one register, by hand: every operation and every case of the outcome rule. */
#include "t.h"

#include "coord/slot.h"

#include <stdlib.h>

enum { SLOTS = 3, WINDOW = 100, MAX_DRIFT = 50, RENEW = 30 };

static const struct nonce cluster = { { 0xcc } }, none;

static struct bench {
    struct slot_node n;
    struct slot_now now;
    struct slot_action a;
    struct {
        char text[RECORD_TEXT_MAX];
        size_t len;
    } slot[SLOTS];
    bool locked_by_other[SLOTS];
    uint64_t nonces;
} b;

static struct nonce fresh(void)
{
    struct nonce v = { { 0 } };
    b.nonces++;
    memcpy(v.b + 8, &b.nonces, sizeof b.nonces);
    return v;
}

static void put(uint32_t slot, const struct slot_record *r)
{
    b.slot[slot].len = slot_encode(r, b.slot[slot].text);
}

static struct slot_record get(uint32_t slot)
{
    struct slot_record r;
    if (slot_parse(b.slot[slot].text, b.slot[slot].len, &r, NULL) != 0)
        abort();
    return r;
}

static void setup_with(bool use_lock, bool give_back)
{
    memset(&b, 0, sizeof b);
    struct slot_params p = { .cluster = cluster,
                             .slot_hi = SLOTS,
                             .window = WINDOW,
                             .max_drift = MAX_DRIFT,
                             .quarantine = use_lock ? 0 : 20,
                             .ts_end = 1 << 20,
                             .renew_every_ms = RENEW,
                             .backoff_min_ms = 4,
                             .backoff_max_ms = 64,
                             .use_lock = use_lock,
                             .give_back = give_back,
                             .name = "me" };
    struct nonce me = { { 0xaa } };
    T_EQ(slot_init(&b.n, &p, &me, NULL), 0);
    b.now = (struct slot_now){ .f = 1000, .mono_ms = 5000 };
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct nonce req = fresh();
        struct slot_record r;
        slot_fenced_record(&cluster, NULL, 500 + 10 * i, 0, &req, &r);
        put(i, &r);
    }
}

static void setup(void)
{
    setup_with(true, true);
}

/* Ask for the next action, letting time pass where the node wants to wait a little. */
static enum slot_do next(void)
{
    for (int i = 0; i < 3; i++) {
        struct nonce v = fresh();
        slot_next(&b.n, &b.now, &v, &b.a);
        if (b.a.what != SLOT_DO_WAIT || b.a.mono_ms > b.now.mono_ms + 64)
            break;
        b.now.mono_ms = b.a.mono_ms;
    }
    return b.a.what;
}

static int apply(void)
{
    uint32_t i = b.a.slot;
    if (b.a.old_len != b.slot[i].len || memcmp(b.a.old, b.slot[i].text, b.a.old_len) != 0)
        return FIRN_ECONFLICT;
    memcpy(b.slot[i].text, b.a.value, b.a.value_len);
    b.slot[i].len = b.a.value_len;
    return 0;
}

static void scan(void)
{
    slot_scan_begin(&b.n);
    for (uint32_t i = 0; i < SLOTS; i++)
        slot_scan_add(&b.n, i, b.slot[i].text, b.slot[i].len);
    slot_scan_done(&b.n, &b.now, 0);
}

static void read_now(void)
{
    slot_read_done(&b.n, &b.now, 0, b.slot[b.a.slot].text, b.slot[b.a.slot].len);
}

/* Do everything faithfully until a CAS is wanted, or nothing is. */
static enum slot_do until_cas(void)
{
    for (int i = 0; i < 30; i++) {
        switch (next()) {
        case SLOT_DO_SCAN:
            scan();
            break;
        case SLOT_DO_LOCK:
            slot_lock_done(&b.n, &b.now, b.locked_by_other[b.a.slot] ? FIRN_ECONFLICT : 0);
            break;
        case SLOT_DO_READ:
            read_now();
            break;
        case SLOT_DO_CAS:
        case SLOT_DO_WAIT:
            return b.a.what;
        }
    }
    t_fail(__FILE__, __LINE__, "until_cas", "no end");
}

static void active(void)
{
    T_EQ(until_cas(), SLOT_DO_CAS);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.state, SLOT_ACTIVE);
}

/* The EXTEND that is due, at its CAS. */
static void extending(void)
{
    b.now.mono_ms += RENEW;
    b.now.f += RENEW;
    T_EQ(until_cas(), SLOT_DO_CAS);
}

T_TEST(slot_acquires_the_oldest)
{
    setup();
    active();
    struct slot_record r = get(0);
    T_EQ(b.n.grant.gen, 1);
    T_EQ(b.n.grant.slot, 0);
    T_EQ(b.n.grant.from, 1000);
    T_EQ(b.n.grant.until, 1100);
    T_EQ(r.epoch, 1);
    T_EQ(r.state, SLOT_HELD);
    T_EQ(r.from, 1000);
    T_EQ(r.until, 1100);
    T_STR(r.name, "me");
    T_EQ(slot_left(&b.n, &b.now), 100);
}

T_TEST(slot_begins_where_the_last_one_ended)
{
    setup();
    struct slot_record r = get(1);
    memcpy(r.name, "me", 3);
    r.epoch = 1;
    r.until = 1040; /* mine, ahead of the clock but within max_drift: a quick restart */
    put(1, &r);
    active();
    T_EQ(b.n.grant.slot, 1);
    T_EQ(b.n.grant.from, 1040);
    T_EQ(b.n.grant.until, 1140);
    T_EQ(slot_left(&b.n, &b.now), 100);
}

/* How many ms pass until a CAS is wanted, by a clock that makes `f` ticks in each. */
static int until_cas_in(uint64_t f)
{
    for (int ms = 0; ms < 1000; ms++, b.now.mono_ms++, b.now.f += f)
        for (int i = 0; i < 30; i++) {
            struct nonce v = fresh();
            slot_next(&b.n, &b.now, &v, &b.a);
            if (b.a.what == SLOT_DO_CAS)
                return ms;
            if (b.a.what == SLOT_DO_WAIT)
                break;
            if (b.a.what == SLOT_DO_SCAN)
                scan();
            else if (b.a.what == SLOT_DO_READ)
                read_now();
            else
                slot_lock_done(&b.n, &b.now, b.locked_by_other[b.a.slot] ? FIRN_ECONFLICT : 0);
        }
    return -1;
}

/* What the process before this one stamped may lie ahead of the clock: only its own slot begins
 * above that. */
T_TEST(slot_sticky_beyond_the_limit_is_waited_for)
{
    setup();
    struct slot_record r = get(1);
    memcpy(r.name, "me", 3);
    r.epoch = 1;
    r.until = b.now.f + b.n.params.max_drift + 60;
    put(1, &r);
    T_EQ(until_cas_in(1), 60);
    T_EQ(b.a.slot, 1);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.grant.from, r.until);
}

/* A process that knows how far its predecessor stamped takes any slot at once, and begins above. */
T_TEST(slot_noted_needs_no_wait)
{
    setup();
    struct slot_record r = get(1);
    memcpy(r.name, "me", 3);
    r.epoch = 1;
    r.until = b.now.f + b.n.params.max_drift + 60;
    put(1, &r);
    b.now.last = b.now.f + 7;
    T_EQ(until_cas_in(0), 0);
    T_EQ(b.a.slot, 0);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.grant.from, b.now.last + 1);
    r = get(1);
    T_EQ(r.until, b.now.f + b.n.params.max_drift + 60); /* its own stays as it was */
}

/* But not for ever, not if the clock was set back far, and not if its holder lives. */
T_TEST(slot_sticky_is_left_when_the_clock_stands_still)
{
    for (int far = 0; far < 3; far++) {
        setup();
        struct slot_record r = get(1);
        memcpy(r.name, "me", 3);
        r.epoch = 1;
        r.until = b.now.f + b.n.params.max_drift + 60;
        if (far == 1)
            r.until += b.n.params.window + b.n.params.max_drift;
        b.locked_by_other[1] = far == 2;
        put(1, &r);
        T_EQ(until_cas_in(0) > 0, far == 0);
        T_EQ(b.a.slot, 0);
    }
}

/* The scan was a while ago: the limit counts when the request is built. */
T_TEST(slot_limit_is_checked_on_the_record)
{
    setup();
    T_EQ(next(), SLOT_DO_SCAN);
    scan();
    T_EQ(next(), SLOT_DO_LOCK);
    slot_lock_done(&b.n, &b.now, 0);
    T_EQ(next(), SLOT_DO_READ);
    struct slot_record r = get(0);
    r.until = 5000;
    put(0, &r);
    read_now();
    T_EQ(until_cas(), SLOT_DO_CAS);
    T_EQ(b.a.slot, 1);
}

T_TEST(slot_all_ahead_waits_for_the_nearest)
{
    setup();
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot_record r = get(i);
        r.until = 1090 + i; /* a crash loop used them up: 40 ticks beyond the limit */
        put(i, &r);
    }
    T_EQ(next(), SLOT_DO_SCAN);
    scan();
    struct nonce v = fresh();
    slot_next(&b.n, &b.now, &v, &b.a);
    T_EQ(b.a.what, SLOT_DO_WAIT);
    T_EQ(b.a.mono_ms, b.now.mono_ms + 40);
    T_EQ(b.n.state, SLOT_NO_SLOT);
    b.now.f += 40;
    b.now.mono_ms += 40;
    active();
    T_EQ(b.n.grant.slot, 0);
    T_EQ(b.n.grant.from, 1090);
}

T_TEST(slot_far_behind_every_slot_waits_for_the_clock)
{
    setup();
    b.now.f = 3; /* 1970, say */
    T_EQ(next(), SLOT_DO_SCAN);
    scan();
    T_EQ(b.n.state, SLOT_WAIT_CLOCK);
    T_EQ(b.n.grant.gen, 0);
    b.now.f = 1000;
    b.now.mono_ms += 5000;
    active();
}

T_TEST(slot_locked_and_retired_are_skipped)
{
    setup();
    struct slot_record r = get(1);
    r.state = SLOT_RETIRED;
    put(1, &r);
    b.locked_by_other[0] = true;
    active();
    T_EQ(b.n.grant.slot, 2);

    setup();
    for (uint32_t i = 0; i < SLOTS; i++)
        b.locked_by_other[i] = true;
    for (int i = 0; i < 10; i++) {
        if (next() == SLOT_DO_SCAN && i > 0)
            break;
        if (b.a.what == SLOT_DO_SCAN)
            scan();
        else if (b.a.what == SLOT_DO_LOCK)
            slot_lock_done(&b.n, &b.now, FIRN_ECONFLICT);
    }
    T_EQ(b.n.state, SLOT_NO_SLOT);
}

T_TEST(slot_quarantine_without_lock_bytes)
{
    setup_with(false, false);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot_record r = get(i);
        r.state = SLOT_HELD;
        r.owner.b[0] = 0xbb;
        r.until = 990;
        put(i, &r);
    }
    T_EQ(next(), SLOT_DO_SCAN);
    scan();
    T_EQ(b.n.state, SLOT_NO_SLOT); /* 990 + 20 is after 1000 */
    b.now.f = 1010;
    b.now.mono_ms += 10;
    active();
}

T_TEST(slot_extends)
{
    setup();
    active();
    b.now.last = 1020;
    extending();
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.grant.gen, 1);
    T_EQ(b.n.grant.from, 1000);
    T_EQ(b.n.grant.until, 1130); /* F + window: no creeping */
    T_EQ(get(0).epoch, 1);
    b.now.f = 9000; /* a long pause: no node took the slot, so the ticks between are free */
    b.now.mono_ms += 8000;
    T_EQ(slot_state_at(&b.n, &b.now), SLOT_DRY);
    T_EQ(until_cas(), SLOT_DO_CAS);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.grant.until, 9100);
    T_EQ(slot_state_at(&b.n, &b.now), SLOT_ACTIVE);
}

T_TEST(slot_extends_early_in_a_burst)
{
    setup();
    active();
    b.now.last = 1049; /* stamps run ahead of the clock */
    struct nonce v = fresh();
    slot_next(&b.n, &b.now, &v, &b.a);
    T_EQ(b.a.what, SLOT_DO_WAIT);
    b.now.last = 1050;
    slot_next(&b.n, &b.now, &v, &b.a);
    T_EQ(b.a.what, SLOT_DO_CAS);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.grant.until, 1150);
}

T_TEST(slot_held_clock_writes_nothing)
{
    setup();
    active();
    b.now.mono_ms += 1000; /* F stands */
    struct nonce v = fresh();
    slot_next(&b.n, &b.now, &v, &b.a);
    T_EQ(b.a.what, SLOT_DO_WAIT);
    T_EQ(b.a.mono_ms, b.now.mono_ms + RENEW);
}

/* ---- the outcome rule ---- */

/* Case 1: the answer was lost, the write was not. */
T_TEST(slot_unknown_but_landed)
{
    for (int extend = 0; extend < 2; extend++) {
        setup();
        if (extend) {
            active();
            extending();
        } else {
            T_EQ(until_cas(), SLOT_DO_CAS);
        }
        T_EQ(apply(), 0);
        slot_cas_done(&b.n, &b.now, FIRN_EUNKNOWN);
        T_EQ(next(), SLOT_DO_READ);
        T_OK(b.a.fresh);
        read_now();
        T_EQ(b.n.state, SLOT_ACTIVE);
        T_EQ(b.n.grant.gen, 1);
        T_EQ(b.n.grant.until, extend ? 1130 : 1100);
    }
}

/* Case 4: not applied, yet: again, with another nonce against the same text. Then the first one
 * lands after all: the second conflicts, and the first is known by its nonce, with its own
 * ticks. */
T_TEST(slot_unknown_then_lands_late)
{
    setup();
    active();
    extending();
    char old[RECORD_TEXT_MAX], first[RECORD_TEXT_MAX];
    size_t old_len = b.a.old_len, first_len = b.a.value_len;
    memcpy(old, b.a.old, old_len);
    memcpy(first, b.a.value, first_len);
    slot_cas_done(&b.n, &b.now, FIRN_EUNKNOWN);
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    b.now.f += 10;
    T_EQ(next(), SLOT_DO_CAS);
    T_OK(b.a.old_len == old_len && memcmp(b.a.old, old, old_len) == 0);
    T_OK(b.a.value_len != first_len || memcmp(b.a.value, first, first_len) != 0);
    memcpy(b.slot[0].text, first, first_len); /* now it lands */
    b.slot[0].len = first_len;
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.grant.until, 1100); /* nothing before it is known */
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    T_EQ(b.n.state, SLOT_ACTIVE);
    T_EQ(b.n.grant.until, 1130); /* of the first request, not 1140 of the second */
}

/* An ACQUIRE that was given up lands, and is found when the node comes by again: what was stamped
 * elsewhere meanwhile lies below its beginning now. */
T_TEST(slot_late_acquire_begins_above_last)
{
    setup();
    T_EQ(until_cas(), SLOT_DO_CAS); /* slot 0, [1000, 1100) */
    struct slot_record mine;
    T_EQ(slot_parse(b.a.value, b.a.value_len, &mine, NULL), 0);
    slot_cas_done(&b.n, &b.now, FIRN_EUNKNOWN);
    struct slot_record other = get(0);
    other.req = fresh();
    put(0, &other); /* somebody was there first */
    T_EQ(until_cas(), SLOT_DO_CAS);
    T_EQ(b.a.slot, 1);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.grant.slot, 1);
    b.now.last = 1060;
    /* Slot 1 is lost to another node; slot 0 shows the old request after all. */
    extending();
    struct slot_record taken = get(1);
    taken.epoch++;
    taken.owner.b[0] = 0xbb;
    taken.req = fresh();
    taken.from = taken.until;
    taken.until += 100;
    put(1, &taken);
    put(0, &mine);
    b.locked_by_other[1] = b.locked_by_other[2] = true;
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    T_EQ(b.n.state, SLOT_FENCED);
    T_EQ(b.n.grant.slot, 1); /* what is confirmed is finished */
    T_OK(!b.n.grant.closed);
    b.now.f = 1055; /* 1100 is within the limit by now */
    for (int i = 0; i < 10 && b.n.state != SLOT_ACTIVE; i++) {
        next();
        if (b.a.what == SLOT_DO_SCAN)
            scan();
        else if (b.a.what == SLOT_DO_LOCK)
            slot_lock_done(&b.n, &b.now, b.locked_by_other[b.a.slot] ? FIRN_ECONFLICT : 0);
        else if (b.a.what == SLOT_DO_READ)
            read_now();
    }
    T_EQ(b.n.grant.gen, 2);
    T_EQ(b.n.grant.slot, 0);
    T_EQ(b.n.grant.from, 1061);
    T_EQ(b.n.grant.until, 1100);
}

/* Cases 2 and 3, and the store that forgot: decided on the record found after the conflict. */
T_TEST(slot_conflict_tells_them_apart)
{
    static const struct {
        const char *what;
        bool owner_me;
        int epoch; /* relative */
        enum slot_state want;
    } row[] = {
        { "a twin extends", true, 0, SLOT_TWIN },
        { "another took it", false, 1, SLOT_FENCED },
        { "freed by a fence", false, 1, SLOT_FENCED },
        { "another owner at our epoch", false, 0, SLOT_REGRESSED },
        { "an older epoch", false, -1, SLOT_REGRESSED },
        { "ourselves at an older epoch", true, -1, SLOT_REGRESSED },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        setup();
        active();
        extending();
        struct slot_record r = get(0);
        r.epoch = (uint64_t)((int64_t)r.epoch + row[i].epoch);
        if (!row[i].owner_me)
            r.owner.b[0] = 0xbb;
        r.req = fresh();
        put(0, &r);
        slot_cas_done(&b.n, &b.now, apply());
        T_EQ(next(), SLOT_DO_READ);
        T_OK(b.a.fresh);
        read_now();
        T_EQ(b.n.state, row[i].want, "%s", row[i].what);
        T_EQ(b.n.grant.closed, row[i].want == SLOT_TWIN, "%s", row[i].what);
        T_EQ(b.n.grant.until, 1100);
    }
}

T_TEST(slot_own_older_record_is_a_regression)
{
    setup();
    active();
    struct slot_record first = get(0);
    extending();
    slot_cas_done(&b.n, &b.now, apply());
    extending();
    put(0, &first); /* a restored backup */
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    T_EQ(b.n.state, SLOT_REGRESSED);
    T_EQ(next(), SLOT_DO_WAIT);
    struct nonce me = { { 0xab } };
    slot_reborn(&b.n, &me);
    active();
    T_EQ(b.n.grant.gen, 2);
}

T_TEST(slot_twin_is_reborn)
{
    setup();
    active();
    extending();
    struct slot_record r = get(0);
    r.req = fresh();
    put(0, &r);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    T_EQ(b.n.state, SLOT_TWIN);
    b.locked_by_other[0] = true;
    struct nonce me = { { 0xab } };
    slot_reborn(&b.n, &me);
    active();
    T_OK(!b.n.grant.closed);
    T_EQ(b.n.grant.gen, 2);
    T_OK(b.n.grant.slot != 0);
}

/* The ring forgets the confirmed write after 64 failed ones; the node must not. */
T_TEST(slot_many_failures_are_no_twin)
{
    setup();
    active();
    extending();
    for (int i = 0; i < 3 * SLOT_MINE; i++) {
        slot_cas_done(&b.n, &b.now, FIRN_EUNKNOWN);
        T_EQ(next(), SLOT_DO_READ);
        slot_read_done(&b.n, &b.now, FIRN_EIO, NULL, 0);
        T_EQ(next(), SLOT_DO_READ); /* still the outcome of that write */
        T_OK(b.a.fresh);
        read_now();
        T_EQ(b.n.state, SLOT_ACTIVE);
        T_EQ(next(), SLOT_DO_CAS);
    }
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.state, SLOT_ACTIVE);
}

/* ---- the end ---- */

T_TEST(slot_release_gives_back)
{
    for (int give_back = 0; give_back < 2; give_back++) {
        setup_with(true, give_back);
        active();
        b.now.last = 1020;
        slot_release(&b.n, &b.now);
        T_OK(b.n.grant.closed);
        T_EQ(next(), SLOT_DO_CAS);
        slot_cas_done(&b.n, &b.now, apply());
        T_EQ(b.n.state, SLOT_CLOSED);
        struct slot_record r = get(0);
        T_EQ(r.state, SLOT_FREE);
        T_EQ(r.epoch, 2);
        T_OK(nonce_eq(&r.owner, &none));
        T_EQ(r.until, give_back ? 1021 : 1100);
        T_STR(r.name, "me"); /* so that it is found again */
        T_EQ(next(), SLOT_DO_WAIT);
    }
}

T_TEST(slot_release_unused)
{
    setup();
    active();
    slot_release(&b.n, &b.now);
    T_EQ(next(), SLOT_DO_CAS);
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(get(0).until, 1000);
}

/* An EXTEND is still under way when the node leaves; the RELEASE is tried until it has landed. */
T_TEST(slot_release_is_tried_again)
{
    setup();
    active();
    b.now.last = 1010;
    extending();
    char text[RECORD_TEXT_MAX];
    size_t len = b.a.value_len;
    memcpy(text, b.a.value, len);
    slot_cas_done(&b.n, &b.now, FIRN_EUNKNOWN);
    slot_release(&b.n, &b.now);
    T_EQ(next(), SLOT_DO_CAS);
    memcpy(b.slot[0].text, text, len); /* the EXTEND lands first */
    b.slot[0].len = len;
    slot_cas_done(&b.n, &b.now, apply());
    T_EQ(b.n.state, SLOT_RELEASING);
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    T_EQ(next(), SLOT_DO_CAS);
    slot_cas_done(&b.n, &b.now, FIRN_EUNKNOWN); /* lost */
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    T_EQ(b.n.state, SLOT_RELEASING);
    T_EQ(next(), SLOT_DO_CAS);
    T_EQ(apply(), 0);
    slot_cas_done(&b.n, &b.now, FIRN_EUNKNOWN); /* landed, answer lost */
    T_EQ(next(), SLOT_DO_READ);
    read_now();
    T_EQ(b.n.state, SLOT_CLOSED);
    T_EQ(get(0).until, 1011);
    T_EQ(b.n.grant.closed, true);
}

T_TEST(slot_halts)
{
    static const struct {
        const char *what;
        int how;
    } row[] = { { "absent", 0 }, { "unreadable", 1 }, { "foreign", 2 }, { "replaced", 3 } };
    for (size_t i = 0; i < T_LEN(row); i++) {
        setup();
        active();
        extending();
        struct slot_record r = get(0);
        r.cluster.b[0]++;
        if (row[i].how == 3) {
            slot_cas_done(&b.n, &b.now, FIRN_ESTORE);
        } else {
            slot_cas_done(&b.n, &b.now, FIRN_ECONFLICT);
            T_EQ(next(), SLOT_DO_READ);
            if (row[i].how == 2)
                put(0, &r);
            slot_read_done(&b.n, &b.now, row[i].how == 0 ? FIRN_ENOENT : 0,
                           row[i].how == 1 ? "rubbish" : b.slot[0].text,
                           row[i].how == 1 ? 7 : b.slot[0].len);
        }
        T_EQ(b.n.state, SLOT_HALTED, "%s", row[i].what);
        T_OK(b.n.why != 0 && b.n.diag.text[0] != '\0');
        T_OK(!b.n.grant.closed); /* what is confirmed is still good */
        T_EQ(next(), SLOT_DO_WAIT);
    }
    setup();
    T_EQ(next(), SLOT_DO_SCAN);
    slot_scan_begin(&b.n);
    slot_scan_add(&b.n, 0, b.slot[0].text, b.slot[0].len);
    slot_scan_done(&b.n, &b.now, 0);
    T_EQ(b.n.state, SLOT_HALTED); /* a missing slot is never a free one */
}

T_TEST(slot_the_end_of_time)
{
    setup();
    b.n.params.ts_end = 1060;
    active();
    T_EQ(b.n.grant.until, 1060);
    b.now.f = 1060;
    b.now.mono_ms += 100;
    T_EQ(next(), SLOT_DO_WAIT);
    T_EQ(b.n.state, SLOT_HALTED);
    T_EQ(b.n.why, FIRN_EEXHAUSTED);
}

T_TEST(slot_floor_lets_it_run_ahead)
{
    setup();
    struct meta_record m = { .cluster = cluster, .window = WINDOW, .max_drift = MAX_DRIFT };
    m.floor = slot_fence_floor(&m, b.now.f, 0);
    T_EQ(m.floor, 1150);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot_record r = get(i), f;
        struct nonce req = fresh();
        slot_fenced_record(&cluster, &r, m.floor, b.now.f, &req, &f);
        T_EQ(f.epoch, r.epoch + 1);
        put(i, &f);
    }
    T_EQ(next(), SLOT_DO_SCAN);
    slot_scan_begin(&b.n);
    slot_scan_meta(&b.n, &m);
    for (uint32_t i = 0; i < SLOTS; i++)
        slot_scan_add(&b.n, i, b.slot[i].text, b.slot[i].len);
    slot_scan_done(&b.n, &b.now, 0);
    active();
    T_EQ(b.n.grant.from, 1150);
    T_EQ(b.n.grant.until, 1250);
}

/* ---- strangers ---- */

enum { MANY = 1024, ROUNDS = 400 };
static struct slot_node stranger[2];

/* The slot that a node with these parameters chooses of MANY; slot 7 was last held under the name
 * "me", from `from` on. */
static uint32_t choice(struct slot_node *n, struct slot_params p, uint64_t floor, uint64_t from)
{
    struct nonce me = fresh(), v = fresh();
    struct meta_record m = { .cluster = cluster, .floor = floor };
    struct slot_now now = { .f = floor, .mono_ms = 5000 };
    struct slot_action a;
    v.b[0] = (uint8_t)t_random_below(256);
    v.b[1] = (uint8_t)t_random_below(256);
    p.cluster = cluster;
    p.slot_hi = MANY;
    T_EQ(slot_init(n, &p, &me, NULL), 0);
    slot_next(n, &now, &v, &a);
    T_EQ(a.what, SLOT_DO_SCAN);
    slot_scan_begin(n);
    slot_scan_meta(n, &m);
    for (uint32_t i = 0; i < MANY; i++) {
        struct slot_record r;
        char text[RECORD_TEXT_MAX];
        struct nonce req = fresh();
        slot_fenced_record(&cluster, NULL, floor, 0, &req, &r);
        if (i == 7) {
            r.epoch = 3;
            r.from = from;
            r.at = 1000;
            memcpy(r.name, "me", 3);
        }
        slot_scan_add(n, i, text, slot_encode(&r, text));
    }
    slot_scan_done(n, &now, 0);
    slot_next(n, &now, &v, &a);
    T_EQ(a.what, p.use_lock ? SLOT_DO_LOCK : SLOT_DO_READ);
    return a.slot;
}

static const struct slot_params a_file = { .window = WINDOW,
                                           .max_drift = MAX_DRIFT,
                                           .ts_end = 1 << 20,
                                           .renew_every_ms = RENEW,
                                           .backoff_min_ms = 4,
                                           .backoff_max_ms = 64,
                                           .use_lock = true,
                                           .name = "me" };

/* Two new stores, or two copies of one that were fenced: each begins on a random slot. */
T_TEST(slot_strangers_rarely_meet)
{
    uint32_t met = 0, low = MANY, high = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t x = choice(&stranger[0], a_file, 1000, 900);
        uint32_t y = choice(&stranger[1], a_file, 1000, 900);
        met += x == y;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    /* 0.4 are to be expected; more than 12 have a probability below 1e-14. */
    T_OK(met <= 12, "%u of %d", met, ROUNDS);
    T_OK(low < MANY / 8 && high > MANY - MANY / 8, "%u to %u", low, high);
}

/* Held since the last FENCE: taken again. Not since: nobody's. A clone's node takes another one. */
T_TEST(slot_of_its_name)
{
    struct slot_params cloned = a_file;
    cloned.since = 1001; /* slot 7 was written at 1000 */
    uint32_t same = 0;
    for (int i = 0; i < 100; i++) {
        T_EQ(choice(&stranger[0], a_file, 1000, 1000), 7);
        T_OK(choice(&stranger[0], cloned, 1000, 1000) != 7);
        same += choice(&stranger[0], a_file, 1000, 999) == 7;
    }
    T_OK(same < 50, "%u", same);
}

/* Another store's node has the slot: it is closed at once, and another one is taken. */
T_TEST(slot_yields_to_a_stranger)
{
    struct slot_avoid avoid = { 1, { 0 } };
    struct nonce me = fresh();
    setup();
    active();
    uint32_t first = b.n.grant.slot;
    uint64_t gen = b.n.grant.gen;
    avoid.slot[0] = first + 1;
    slot_set_avoid(&b.n, &avoid, true); /* not this one's */
    T_EQ(b.n.state, SLOT_ACTIVE);
    avoid.slot[0] = first;
    slot_set_avoid(&b.n, &avoid, false); /* told, but the other one moves */
    T_EQ(b.n.state, SLOT_ACTIVE);
    T_OK(!b.n.grant.closed);
    slot_set_avoid(&b.n, &avoid, true);
    T_EQ(b.n.state, SLOT_TWIN);
    T_OK(b.n.grant.closed);
    slot_reborn(&b.n, &me);
    active();
    T_OK(b.n.grant.slot != first && b.n.grant.gen > gen && !b.n.grant.closed);

    /* If all are taken, there is none: the same IDs as the stranger's are no help. */
    avoid.n = SLOTS;
    for (uint32_t i = 0; i < SLOTS; i++)
        avoid.slot[i] = i;
    slot_set_avoid(&b.n, &avoid, true);
    T_EQ(b.n.state, SLOT_TWIN);
    slot_reborn(&b.n, &me);
    T_EQ(next(), SLOT_DO_SCAN);
    scan();
    T_EQ(b.n.state, SLOT_NO_SLOT);
}
