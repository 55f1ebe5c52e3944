#include "t.h"

#include "coord/clock_f.h"

static const int64_t S = 1000000000;
static const int64_t DAY = 86400000000000;
static const int64_t EPOCH = 1609459200000000000;
static const int64_t T0 = 1800000000000000000; /* when these tests happen */

static struct clock_f started(int64_t highest)
{
    struct clock_f c;
    clock_f_init(&c, &(struct clock_f_params){
                         .epoch_ns = EPOCH, .skew_max_ns = 10 * S, .max_idle_ns = 30 * DAY });
    struct clock_reading r = { .real = T0, .mono = 100 * S, .boot = 100 * S };
    clock_f_update(&c, &r, highest);
    c.in_use = true;
    return c;
}

/* A reading `s` seconds after the start, with R off by `off` seconds and S by `store` (if
 * has_s). */
static struct clock_reading later(int64_t s, int64_t off)
{
    return (struct clock_reading){ .real = T0 + (s + off) * S,
                                   .mono = (100 + s) * S,
                                   .boot = (100 + s) * S };
}

T_TEST(clock_f_starts_only_when_plausible)
{
    static const struct {
        int64_t real, store, highest;
        bool accept;
        enum clock_state want;
    } row[] = {
        { T0, 0, 0, false, CLOCK_OK }, /* a fresh store has no opinion */
        { T0, 0, T0 - 86400000000000, false, CLOCK_OK },
        { T0, 0, T0 - 31 * 86400000000000, false, CLOCK_WAIT }, /* or the store slept a month */
        { T0, 0, T0 - 31 * 86400000000000, true, CLOCK_OK },
        { EPOCH - 1, 0, 0, false, CLOCK_WAIT },
        { EPOCH - 1, 0, 0, true, CLOCK_WAIT }, /* no layout can say that time */
        { T0, T0 + 9 * 1000000000ll, T0 - 90 * 86400000000000, false, CLOCK_OK },
        { T0, T0 + 11 * 1000000000ll, 0, false, CLOCK_WAIT },
        { T0, T0 - 11 * 1000000000ll, 0, false, CLOCK_WAIT },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct clock_f c;
        clock_f_init(&c, &(struct clock_f_params){ .epoch_ns = EPOCH,
                                                   .skew_max_ns = 10 * S,
                                                   .max_idle_ns = 30 * DAY,
                                                   .accept = row[i].accept });
        struct clock_reading r = {
            .real = row[i].real, .mono = 5, .boot = 5, .store = row[i].store
        };
        T_EQ(clock_f_update(&c, &r, row[i].highest), row[i].want, "row %zu", i);
        if (row[i].want == CLOCK_OK)
            T_EQ(clock_f_at(&c, 5), row[i].real, "row %zu", i);
    }
}

T_TEST(clock_f_follows)
{
    struct clock_f c = started(T0);
    for (int64_t s = 1; s < 100; s++) {
        struct clock_reading r = later(s, s % 3); /* a few seconds to and fro */
        T_EQ(clock_f_update(&c, &r, T0), s % 3 == 0 ? CLOCK_HELD : CLOCK_OK);
        T_OK(clock_f_at(&c, r.mono) >= r.real);
        T_OK(clock_f_at(&c, r.mono) <= r.real + 2 * S);
    }
}

T_TEST(clock_f_holds)
{
    struct clock_f c = started(T0);
    struct clock_reading r = later(1, -3600);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_HELD);
    int64_t stands = clock_f_at(&c, r.mono);
    T_EQ(stands, T0 + S);
    for (int64_t s = 2; s < 3590; s += 7) {
        r = later(s, -3600);
        clock_f_update(&c, &r, T0);
        T_EQ(clock_f_at(&c, r.mono), stands, "at %d s", (int)s);
    }
    r = later(3602, -3600); /* R has caught up */
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK);
    T_EQ(clock_f_at(&c, r.mono), T0 + 2 * S);
}

/* Between two updates too: F is what the generators compute, not what the coordinator last saw. */
T_TEST(clock_f_never_goes_down)
{
    struct clock_f c = started(T0);
    int64_t mono = 100 * S, boot = 100 * S, real = T0, before = 0;
    for (int i = 0; i < 100000; i++) {
        int64_t step = (int64_t)t_random_below(3 * (uint64_t)S);
        mono += step;
        boot += step;
        if (t_random_below(50) == 0)
            boot += (int64_t)t_random_below(100 * (uint64_t)S); /* suspended */
        real += step;
        if (t_random_below(10) == 0)
            real += (int64_t)t_random_below(200 * (uint64_t)S) - 100 * S;
        if (t_random_below(100) == 0)
            real += 400 * DAY;
        if (t_random_below(100) == 0)
            real = T0;
        struct clock_reading r = { .real = real, .mono = mono, .boot = boot };
        if (t_random_below(3) == 0)
            r.store = T0 + (boot - 100 * S);
        int64_t ahead = clock_f_at(&c, mono);
        T_OK(ahead >= before);
        clock_f_update(&c, &r, T0);
        T_OK(clock_f_at(&c, mono) >= ahead);
        before = clock_f_at(&c, mono);
    }
}

T_TEST(clock_f_suspects_a_leap)
{
    struct clock_f c = started(T0);
    struct clock_reading r = later(1, 366 * 86400);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_SUSPECT);
    T_EQ(clock_f_at(&c, r.mono), T0 + S); /* goes on at its own pace */
    r = later(2, 366 * 86400);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_SUSPECT);
    T_EQ(clock_f_at(&c, r.mono), T0 + 2 * S);
    r = later(3, 0);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK);
    T_EQ(clock_f_at(&c, r.mono), T0 + 3 * S);
    T_EQ(c.steps.ahead, 1);
    T_EQ(c.steps.back, 1);
}

/* A day: without the store's clock nothing can say that it is wrong. It is followed when it has
 * lasted, so that a time which is corrected within the minute poisons no slot. */
T_TEST(clock_f_follows_a_leap_that_lasts)
{
    struct clock_f c = started(T0);
    struct clock_reading r;
    for (int64_t s = 1; s <= 60; s++) {
        r = later(s, 86400);
        T_EQ(clock_f_update(&c, &r, T0), CLOCK_SUSPECT, "second %lld", (long long)s);
        T_EQ(clock_f_at(&c, r.mono), T0 + s * S);
        T_EQ(c.behind_ns, -86400 * S, "ahead of F: below 0");
    }
    r = later(61, 86400);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK);
    T_EQ(clock_f_at(&c, r.mono), r.real);
    T_EQ(c.behind_ns, 0);
    T_EQ(c.steps.ahead, 1);

    c = started(T0); /* steps again within the minute, and stands: the minute begins again */
    for (int64_t s = 1; s <= 200; s++) {
        r = later(s, s < 50 ? 86400 : s < 100 ? 2 * 86400 : 3 * 86400 - s);
        T_EQ(clock_f_update(&c, &r, T0), CLOCK_SUSPECT, "second %lld", (long long)s);
    }
    r = later(201, 0);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK, "corrected: as if nothing had been");
    T_EQ(clock_f_at(&c, r.mono), T0 + 201 * S);

    c = started(T0); /* no ID yet, as at boot: at once */
    c.in_use = false;
    r = later(1, 86400);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK);
    T_EQ(clock_f_at(&c, r.mono), r.real);

    c = started(T0); /* the store's clock confirms it: at once */
    r = later(1, 86400);
    r.store = r.real - S;
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK);
    T_EQ(clock_f_at(&c, r.mono), r.real);
}

/* What an operator sees of a clock that is set back, by how far: the state, the sign, the count. */
T_TEST(clock_f_reports_a_step_back)
{
    static const struct {
        int64_t back_ms;
        enum clock_state want;
        uint64_t steps;
    } row[] = {
        { 100, CLOCK_OK, 0 }, /* as NTP slews */
        { 499, CLOCK_OK, 0 },    { 500, CLOCK_HELD, 1 },     { 5000, CLOCK_HELD, 1 },
        { 9999, CLOCK_HELD, 1 }, { 3600000, CLOCK_HELD, 1 },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct clock_f c = started(T0);
        struct clock_reading r = later(1, 0);
        r.real -= row[i].back_ms * S / 1000;
        T_EQ(clock_f_update(&c, &r, T0), row[i].want, "row %zu", i);
        T_EQ(c.behind_ns, row[i].back_ms * S / 1000, "row %zu: behind is above 0", i);
        T_EQ(c.steps.back, row[i].steps, "row %zu", i);
        T_EQ(c.steps.ahead, 0, "row %zu", i);
        T_EQ(c.steps.last_ns, row[i].steps ? -row[i].back_ms * S / 1000 : 0, "row %zu", i);
        r.real += 2 * S;
        r.mono += 2 * S;
        r.boot += 2 * S;
        clock_f_update(&c, &r, T0);
        T_EQ(c.steps.back, row[i].steps, "row %zu: counted once", i);
    }
}

/* Small steps ahead that add up beyond the store's clock: not followed, and it shows. */
T_TEST(clock_f_suspects_a_walk_ahead_of_the_store)
{
    struct clock_f c = started(T0);
    enum clock_state state = CLOCK_OK;
    for (int64_t s = 1; s <= 4; s++) {
        struct clock_reading r = later(s, s * 9);
        r.store = T0 + s * S;
        state = clock_f_update(&c, &r, T0);
        T_EQ(state, s == 1 ? CLOCK_OK : CLOCK_SUSPECT, "second %lld", (long long)s);
    }
    T_OK(c.behind_ns < 0);
    T_EQ(strcmp(clock_state_name(state), "suspect"), 0);
}

T_TEST(clock_f_counts_sleep)
{
    struct clock_f c = started(T0);
    struct clock_reading r = later(1, 40 * 86400);
    r.boot += 40 * DAY; /* suspended for longer than max_idle: BOOTTIME vouches for R */
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK);
    T_EQ(clock_f_at(&c, r.mono), r.real);
}

/* Steps too small to need leave must not add up to a walk ahead of the store's clock. */
T_TEST(clock_f_stays_near_the_store)
{
    struct clock_f c = started(T0);
    for (int64_t s = 1; s <= 100; s++) {
        struct clock_reading r = later(s, s * 9);
        r.store = T0 + s * S;
        clock_f_update(&c, &r, T0);
        T_OK(clock_f_at(&c, r.mono) - r.store <= 10 * S, "at %d s", (int)s);
    }
    c = started(T0);
    for (int64_t s = 1; s <= 100; s++) {
        struct clock_reading r = later(s, 0);
        r.store = T0 + s * S + DAY; /* a wrong store moves no clock */
        clock_f_update(&c, &r, T0);
        T_EQ(clock_f_at(&c, r.mono), r.real, "at %d s", (int)s);
    }
}

T_TEST(clock_f_says_when_the_clock_stands)
{
    struct clock_f c = started(0);
    for (int64_t s = 1; s <= 60; s++) {
        struct clock_reading r = later(s, -s); /* R is T0 for ever */
        enum clock_state state = clock_f_update(&c, &r, 0);
        T_EQ(state, CLOCK_HELD, "second %lld", (long long)s);
        T_EQ(c.steps.back, 0, "to stand is no step");
        T_OK(clock_f_at(&c, r.mono) <= T0 + 1 * S, "F stands too");
    }
    struct clock_reading r = later(61, 0);
    T_EQ(clock_f_update(&c, &r, T0), CLOCK_OK, "it runs again");
    for (int64_t s = 245; s < 260; s++) { /* so slow between updates that only standing shows */
        r = (struct clock_reading){ .real = T0 + 61 * S,
                                    .mono = 161 * S + (s - 244) * S / 4,
                                    .boot = 161 * S + (s - 244) * S / 4 };
        T_EQ(clock_f_update(&c, &r, T0), s < 252 ? CLOCK_OK : CLOCK_HELD, "at %lld", (long long)s);
    }
}
