/* Laws of the generators: nothing repeats and nothing goes down, whatever clock, threads and fork
 * do. */
#include "t.h"

#include "firn/gen.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS    UINT64_C(1000000)
#define START (UINT64_C(1800000000000) * MS)

enum { THREADS = 8 };

static struct firn_layout layout_of(const char *text)
{
    struct firn_layout l;
    T_EQ(firn_layout_parse(text, strlen(text), 0, &l, NULL), 0);
    return l;
}

/* One stream of IDs that must rise; streams of several threads must have nothing in common. */
struct stream {
    uint64_t *id;
    size_t n;
    struct firn_gen *own;
    struct firn_shared *shared;
    uint64_t seed;
    int error;
};

static int draw(struct stream *s, size_t want, size_t *got)
{
    uint64_t *to = s->id + s->n;
    if (want > 1)
        return s->own ? firn_gen_fill(s->own, to, want, got)
                      : firn_shared_fill(s->shared, to, want, got);
    *got = 1;
    return s->own ? firn_gen_next(s->own, to) : firn_shared_next(s->shared, to);
}

static void *emit(void *arg)
{
    struct stream *s = arg;
    size_t goal = s->n;
    uint64_t random = s->seed;
    s->n = 0;
    while (s->n < goal && s->error == 0) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t want = random >> 60 < 12 ? 1 : (size_t)(random >> 50 & 1023) + 2, got = 0;
        s->error = draw(s, want < goal - s->n ? want : goal - s->n, &got);
        if (s->error == FIRN_EAGAIN) { /* the borrowed time is used up */
            s->error = 0;
            usleep(100);
            continue;
        }
        s->n += s->error ? 0 : got;
    }
    return NULL;
}

static void run_streams(struct stream *s, size_t each)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        s[i].id = malloc(each * sizeof *s[i].id);
        T_OK(s[i].id != NULL);
        s[i].n = each;
        s[i].seed = t_random();
        T_EQ(pthread_create(&thread[i], NULL, emit, &s[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

/* Every stream rises, and merging them meets no value twice. */
static void check_streams(struct stream *s)
{
    size_t at[THREADS] = { 0 };
    for (int i = 0; i < THREADS; i++) {
        T_EQ(s[i].error, 0);
        for (size_t k = 1; k < s[i].n; k++)
            T_OK(s[i].id[k] > s[i].id[k - 1], "thread %d, ID %zu", i, k);
    }
    uint64_t last = 0;
    for (;;) {
        int least = -1;
        for (int i = 0; i < THREADS; i++)
            if (at[i] < s[i].n && (least < 0 || s[i].id[at[i]] < s[least].id[at[least]]))
                least = i;
        if (least < 0)
            break;
        uint64_t id = s[least].id[at[least]++];
        T_OK(id > last, "%" PRIu64 " came twice", id);
        last = id;
    }
    for (int i = 0; i < THREADS; i++)
        free(s[i].id);
}

T_TEST(shared_by_8_threads_never_repeats)
{
    struct firn_layout l = layout_of("unused:1,time:41@1ms,node:2,seq:20");
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    o.policy = FIRN_POLICY_BORROW;
    struct firn_shared *g;
    T_EQ(firn_shared_new(&l, &o, &g), 0);
    struct stream s[THREADS] = { 0 };
    for (int i = 0; i < THREADS; i++)
        s[i].shared = g;
    run_streams(s, t_scale(100000000) / THREADS);
    check_streams(s);
    firn_shared_free(g);
}

/* Few sequence numbers, so that ticks run out, drift ends and numbers are given back all the
 * time. */
T_TEST(shared_under_scarcity_never_repeats)
{
    struct firn_layout l = layout_of("unused:1,time:41@1ms,node:2,seq:6");
    for (uint32_t policy = FIRN_POLICY_WAIT; policy <= FIRN_POLICY_BORROW; policy++) {
        struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
        o.policy = policy;
        o.max_drift_ms = 3;
        o.wait_max_ms = 100000;
        struct firn_shared *g;
        T_EQ(firn_shared_new(&l, &o, &g), 0);
        struct stream s[THREADS] = { 0 };
        for (int i = 0; i < THREADS; i++)
            s[i].shared = g;
        run_streams(s, 2000);
        check_streams(s);
        firn_shared_free(g);
    }
}

T_TEST(lanes_of_8_threads_never_repeat)
{
    struct firn_layout l = layout_of("unused:1,time:41@1ms,node:2,seq:20");
    struct stream s[THREADS] = { 0 };
    for (uint32_t i = 0; i < THREADS; i++) {
        struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
        o.policy = FIRN_POLICY_BORROW;
        o.lane = i;
        o.lanes = THREADS;
        T_EQ(firn_gen_new(&l, &o, &s[i].own), 0);
    }
    run_streams(s, t_scale(16000000) / THREADS);
    check_streams(s);
    for (int i = 0; i < THREADS; i++)
        firn_gen_free(s[i].own);
}

T_TEST(gen_100_million_rise)
{
    struct firn_layout l = layout_of("unused:1,time:41@1ms,node:2,seq:20");
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    struct firn_gen *g;
    T_EQ(firn_gen_new(&l, &o, &g), 0);
    uint64_t last = 0, id;
    for (uint64_t i = 0; i < t_scale(100000000); i++) {
        T_EQ(firn_gen_next(g, &id), 0);
        T_OK(id > last);
        last = id;
    }
    firn_gen_free(g);
}

/* Move the clock as badly as clocks move. */
static void disturb(struct firn_clock_virtual *c)
{
    switch (t_random_below(12)) {
    case 0:
        c->ns -= t_random_below(3600 * 1000 * MS); /* stepped back, up to an hour */
        break;
    case 1:
        c->ns += t_random_below(3600 * 1000 * MS);
        break;
    case 2:
        c->frozen = !c->frozen;
        break;
    case 3:
        c->lag_ns = t_random_below(10 * MS);
        break;
    case 4:
        c->ns -= t_random_below(25 * MS);
        break;
    default:
        c->ns += t_random_below(3 * MS);
        break;
    }
}

/* A generator under a bad clock; its window is extended, it is closed and succeeded by another
 * whose window begins where the last one's ended. All their IDs together must rise. */
static void chaos(bool shared, uint32_t policy)
{
    static const char *const texts[] = {
        "unused:1,time:41@1ms,node:4,seq:3",
        "unused:1,time:39@10ms,seq:8,node:16",
        "unused:1,time:48@10us,node:15",
        "unused:1,time:31@1s,node:10,seq:4",
    };
    struct firn_layout l = layout_of(texts[t_random_below(T_LEN(texts))]);
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    uint64_t from = firn_layout_ticks(&l, (int64_t)(START / 1000)) + 1, last = 0;
    for (int incarnation = 0; incarnation < 4; incarnation++) {
        struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
        o.clock = &c.base;
        o.policy = policy;
        o.slot = 3;
        o.from = from;
        o.until = from + 1 + t_random_below(50);
        o.max_drift_ms = (uint32_t)t_random_below(5000);
        o.wait_max_ms = 10;
        struct firn_gen own;
        struct firn_shared all;
        uint64_t until = o.until, closed_at = from - 1;
        T_EQ(shared ? firn_shared_init(&all, &l, &o) : firn_gen_init(&own, &l, &o), 0);
        for (int i = 0; i < 300; i++) {
            uint64_t ids[40];
            size_t n = 0, want = 1 + t_random_below(40);
            int r = shared ? firn_shared_fill(&all, ids, want, &n)
                           : firn_gen_fill(&own, ids, want, &n);
            if (t_random_below(2) && r == 0 && n < 40) {
                r = shared ? firn_shared_next(&all, &ids[n]) : firn_gen_next(&own, &ids[n]);
                n += r == 0;
            }
            if (r == FIRN_EWINDOW && t_random_below(2)) {
                until += 1 + t_random_below(100);
                if (shared)
                    firn_shared_extend(&all, until);
                else
                    firn_gen_extend(&own, until);
            }
            for (size_t k = 0; k < n; k++) {
                struct firn_parts p;
                T_OK(ids[k] > last);
                T_EQ(firn_layout_decompose(&l, ids[k], &p), 0);
                T_OK(p.field[FIRN_FIELD_TIME] >= from && p.field[FIRN_FIELD_TIME] < until);
                last = ids[k];
            }
            disturb(&c);
        }
        if (shared)
            firn_shared_close(&all, &closed_at);
        else
            firn_gen_close(&own, &closed_at);
        T_OK(closed_at < until || closed_at == from - 1);
        from = t_random_below(2) ? closed_at + 1 : until; /* given back, or not */
        if (c.ns < START)
            c.ns = START;
    }
}

T_TEST(bad_clocks_never_repeat_nor_go_down)
{
    for (uint64_t i = 0; i < t_scale(4000); i++)
        for (uint32_t policy = FIRN_POLICY_WAIT; policy <= FIRN_POLICY_BORROW; policy++) {
            chaos(false, policy);
            chaos(true, policy);
        }
}

/* --- fork --- */

/* In the child: the inherited generator must refuse; one of its own, on another slot, works. */
static int child(struct firn_gen *own, struct firn_shared *shared, int fd)
{
    uint64_t ids[64];
    size_t n;
    if (firn_gen_next(own, ids) != FIRN_EFORKED || firn_shared_next(shared, ids) != FIRN_EFORKED ||
        firn_gen_fill(own, ids, 64, &n) != FIRN_EFORKED ||
        firn_shared_fill(shared, ids, 64, &n) != FIRN_EFORKED ||
        firn_gen_next_shard(own, 0, ids) != FIRN_EFORKED)
        return 1;
    struct firn_layout l;
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    o.slot = 2;
    struct firn_gen *g;
    if (firn_layout_parse("firn", 4, 0, &l, NULL) != 0 || firn_gen_new(&l, &o, &g) != 0 ||
        firn_gen_fill(g, ids, 64, &n) != 0 || n != 64)
        return 2;
    return write(fd, ids, sizeof ids) == sizeof ids ? 0 : 3;
}

T_TEST(fork_in_the_middle_of_a_batch)
{
    struct firn_layout l = layout_of("firn");
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    struct firn_gen *own;
    struct firn_shared *shared;
    o.slot = 1;
    T_EQ(firn_gen_new(&l, &o, &own), 0);
    T_EQ(firn_shared_new(&l, &o, &shared), 0);
    for (int round = 0; round < 20; round++) {
        uint64_t mine[128], theirs[64];
        size_t n;
        int fd[2], status;
        T_EQ(firn_gen_fill(own, mine, 64, &n), 0);
        T_EQ(n, 64);
        T_EQ(pipe(fd), 0);
        pid_t pid = fork();
        T_OK(pid >= 0);
        if (pid == 0)
            _exit(child(own, shared, fd[1]));
        T_EQ(firn_gen_fill(own, mine + 64, 64, &n), 0); /* the parent goes on as if nothing were */
        T_EQ(waitpid(pid, &status, 0), pid);
        T_EQ(status, 0);
        T_EQ(read(fd[0], theirs, sizeof theirs), sizeof theirs);
        for (size_t i = 0; i < 128; i++)
            for (size_t k = 0; k < 64; k++)
                T_OK(mine[i] != theirs[k]);
        close(fd[0]);
        close(fd[1]);
    }
    firn_gen_free(own);
    firn_shared_free(shared);
}

/* --- close while others emit --- */

struct emitter {
    struct firn_shared *g;
    uint64_t highest;
    int error;
};

static void *emit_until_closed(void *arg)
{
    struct emitter *e = arg;
    uint64_t id, ids[8];
    size_t n;
    for (int i = 0; e->error == 0 || e->error == FIRN_EAGAIN || e->error == FIRN_EWINDOW; i++) {
        if (i % 3 == 0) {
            e->error = firn_shared_fill(e->g, ids, 8, &n);
            id = e->error ? 0 : ids[n - 1];
        } else {
            e->error = firn_shared_next(e->g, &id);
        }
        if (e->error == 0)
            e->highest = id;
    }
    return NULL;
}

T_TEST(close_is_one_step_with_emission)
{
    struct firn_layout l = layout_of("unused:1,time:41@1ms,node:2,seq:3");
    for (uint64_t round = 0; round < t_scale(400); round++) {
        struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
        o.policy = FIRN_POLICY_BORROW;
        o.max_drift_ms = 1000;
        o.clock = firn_clock_precise();
        o.from = firn_layout_ticks(&l, (int64_t)(o.clock->fine_ns(o.clock) / 1000));
        o.until = o.from + 5;
        struct firn_shared *g;
        T_EQ(firn_shared_new(&l, &o, &g), 0);
        struct emitter e[3] = { { g, 0, 0 }, { g, 0, 0 }, { g, 0, 0 } };
        pthread_t thread[3];
        for (int i = 0; i < 3; i++)
            T_EQ(pthread_create(&thread[i], NULL, emit_until_closed, &e[i]), 0);
        for (int i = 0; i < 20; i++)
            firn_shared_extend(g, o.until + (uint64_t)i * 3);
        uint64_t last = 0;
        firn_shared_close(g, &last);
        for (int i = 0; i < 3; i++) {
            pthread_join(thread[i], NULL);
            T_EQ(e[i].error, FIRN_ECLOSED);
            T_OK(e[i].highest >> 5 <= last, "an ID above the mark that was given back");
        }
        firn_shared_free(g);
    }
}
