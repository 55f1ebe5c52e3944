#include "t.h"

#include "firn/random.h"
#include "firn/uuid.h"
#include "id/rng_take.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

T_TEST(rng_seed_decides)
{
    uint8_t seed[FIRN_RNG_SEED_BYTES] = { 7 }, a[5000], b[5000];
    struct firn_rng r;
    firn_rng_init(&r, seed);
    firn_rng_bytes(&r, a, sizeof a);
    firn_rng_init(&r, seed);
    for (size_t i = 0; i < sizeof b; i++) /* the same stream, however it is cut */
        firn_rng_bytes(&r, b + i, 1);
    T_OK(memcmp(a, b, 900) == 0);
    seed[31] = 1;
    firn_rng_init(&r, seed);
    firn_rng_bytes(&r, b, sizeof b);
    T_OK(memcmp(a, b, 32) != 0);
}

/* ChaCha12 of the zero key and nonce begins 9bf49a6a 0755f953 811fce12 5f2683d5 (ECRYPT vectors).
 * The generator lays 16 blocks out word by word and keeps the first 32 bytes as the next key, so
 * words 1, 2 and 3 of block 0 come out 64 bytes apart, from byte 32 on. */
T_TEST(rng_is_chacha12)
{
    static const uint8_t expect[3][4] = { { 0x07, 0x55, 0xf9, 0x53 },
                                          { 0x81, 0x1f, 0xce, 0x12 },
                                          { 0x5f, 0x26, 0x83, 0xd5 } };
    uint8_t seed[FIRN_RNG_SEED_BYTES] = { 0 }, out[256];
    struct firn_rng r;
    firn_rng_init(&r, seed);
    firn_rng_bytes(&r, out, sizeof out);
    for (int i = 0; i < 3; i++)
        T_OK(memcmp(out + 32 + 64 * i, expect[i], 4) == 0, "word %d", i + 1);
}

T_TEST(rng_bits_are_balanced)
{
    struct firn_rng *r = firn_rng_thread();
    uint64_t ones[64] = { 0 };
    enum { DRAWS = 20000 };
    for (int i = 0; i < DRAWS; i++) {
        uint64_t v = firn_rng_u64(r);
        for (int b = 0; b < 64; b++)
            ones[b] += v >> b & 1;
    }
    for (int b = 0; b < 64; b++) /* 8 standard deviations: fails once in 10^13 runs */
        T_OK(ones[b] > DRAWS / 2 - 566 && ones[b] < DRAWS / 2 + 566, "bit %d: %" PRIu64, b,
             ones[b]);
}

T_TEST(rng_below_stays_below)
{
    struct firn_rng *r = firn_rng_thread();
    T_EQ(firn_rng_below(r, 0), 0);
    T_EQ(firn_rng_below(r, 1), 0);
    uint32_t count[6] = { 0 };
    for (int i = 0; i < 60000; i++)
        count[firn_rng_below(r, 6)]++;
    for (int i = 0; i < 6; i++)
        T_OK(count[i] > 9200 && count[i] < 10800, "%d came %u times", i, count[i]);
}

T_TEST(rng_child_of_fork_differs)
{
    struct firn_rng *r = firn_rng_thread();
    uint8_t mine[32], theirs[32];
    int pipe_fd[2];
    firn_rng_bytes(r, mine, 1); /* the pool is filled before the fork */
    T_EQ(pipe(pipe_fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        firn_rng_bytes(r, theirs, sizeof theirs);
        _exit(write(pipe_fd[1], theirs, sizeof theirs) == sizeof theirs ? 0 : 1);
    }
    T_OK(pid > 0);
    firn_rng_bytes(r, mine, sizeof mine);
    T_EQ(read(pipe_fd[0], theirs, sizeof theirs), sizeof theirs);
    int status;
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    T_OK(memcmp(mine, theirs, sizeof mine) != 0);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

static void await_next_era(void)
{
    for (uint64_t before = firn__entropy_era(); firn__entropy_era() == before;)
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* A copy of the state is what two virtual machines have that were resumed from one snapshot. */
T_TEST(rng_copies_differ_after_a_pause)
{
    struct firn_rng *r = firn_rng_thread();
    for (size_t drawn = 1; drawn < 4000; drawn = drawn * 2 + 1) {
        uint8_t a[16], b[16], some[4096];
        firn_rng_bytes(r, some, drawn);
        struct firn_rng copy = *r;
        await_next_era();
        firn_rng_bytes(r, a, sizeof a);
        firn_rng_bytes(&copy, b, sizeof b);
        for (int i = 0; i < FIRN_RNG_POOL_BYTES / 16; i++) { /* what a busy thread has in hand */
            firn_rng_bytes(r, a, sizeof a);
            firn_rng_bytes(&copy, b, sizeof b);
        }
        T_OK(memcmp(a, b, sizeof a) != 0, "after %zu bytes", drawn);
    }
}

/* A thread that draws one ID now and then repeats none of them in a copy. */
T_TEST(rng_copies_of_an_idle_thread_differ_at_once)
{
    struct firn_rng *r = firn_rng_thread();
    struct firn_uuid a, b;
    uint8_t in_hand[FIRN_RNG_POOL_BYTES];
    firn_rng_bytes(r, in_hand, r->left_); /* other tests were busy */
    for (int i = 0; i < 5; i++) {
        await_next_era();
        firn_uuid_v4(r, &a);
        struct firn_rng copy = *r;
        await_next_era();
        firn_uuid_v4(r, &a);
        firn_uuid_v4(&copy, &b);
        T_OK(firn_uuid_cmp(&a, &b) != 0);
    }
}

T_TEST(rng_seeds_by_volume)
{
    struct firn_rng *r = firn_rng_thread();
    static uint8_t much[64 * 1024];
    for (int i = 0; i < 64; i++) {
        firn_rng_bytes(r, much, sizeof much);
        T_OK(r->refills_ <= 1025);
    }
}

/* Whatever lengths are drawn, no byte comes twice and none is left behind in the pool. */
T_TEST(rng_hands_out_each_byte_once)
{
    struct firn_rng r;
    memset(&r, 0, sizeof r);
    uint64_t before = 0, v;
    for (int i = 0; i < 20000; i++) {
        uint8_t some[FIRN_RNG_POOL_BYTES];
        firn_rng_bytes(&r, some, t_random_below(4) ? t_random_below(40) : t_random_below(993));
        v = firn_rng_u64(&r);
        T_OK(v != 0 && v != before);
        before = v;
        T_OK(r.left_ <= r.end_ && r.end_ <= FIRN_RNG_POOL_BYTES);
        for (size_t at = 0; at < r.end_ - r.left_; at++)
            T_EQ(r.pool_[at], 0, "at %zu, end %u, left %u", at, r.end_, r.left_);
    }
}

/* --- draws in a signal handler, inside a draw of the same thread --- */

enum { CAUGHT_MAX = 4000, DRAWN_MAX = 4000000 };
static struct firn_rng *shared_rng;
static struct firn_uuid caught[CAUGHT_MAX];
static volatile sig_atomic_t caught_n, errno_changed;

static void on_alarm(int sig)
{
    int saved = errno;
    (void)sig;
    errno = 42;
    if (caught_n < CAUGHT_MAX) {
        firn_uuid_v4(shared_rng, &caught[caught_n]);
        caught_n++;
    }
    if (errno != 42)
        errno_changed = 1;
    errno = saved;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct firn_uuid));
}

T_TEST(rng_in_a_signal_handler)
{
    struct firn_uuid *drawn = calloc(DRAWN_MAX + CAUGHT_MAX, sizeof *drawn);
    T_OK(drawn != NULL);
    struct sigaction sa = { .sa_handler = on_alarm }, old;
    struct itimerval every = { { 0, 50 }, { 0, 50 } }, off = { { 0, 0 }, { 0, 0 } };
    size_t n = 0, want = t_scale(CAUGHT_MAX);
    shared_rng = firn_rng_thread();
    T_EQ(sigaction(SIGALRM, &sa, &old), 0);
    T_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    while ((size_t)caught_n < want && n < DRAWN_MAX)
        firn_uuid_v4(shared_rng, &drawn[n++]);
    T_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
    T_EQ(sigaction(SIGALRM, &old, NULL), 0);
    memcpy(drawn + n, caught, (size_t)caught_n * sizeof *caught);
    n += (size_t)caught_n;
    T_OK(!errno_changed);
    qsort(drawn, n, sizeof *drawn, by_bytes);
    for (size_t i = 1; i < n; i++)
        T_OK(memcmp(&drawn[i - 1], &drawn[i], sizeof *drawn) != 0, "%zu of %zu", i, n);
    free(drawn);
}

/* The same at the worst moment, without luck: the handler comes while busy_ is set. */
T_TEST(rng_inside_a_draw)
{
    struct firn_rng *r = firn_rng_thread();
    uint8_t a[16] = { 0 }, b[16] = { 0 };
    firn_rng_bytes(r, a, sizeof a);
    struct firn_rng before = *r;
    r->busy_ = before.busy_ = 1;
    firn_rng_bytes(r, a, sizeof a);
    firn_rng_bytes(r, b, sizeof b);
    T_OK(memcmp(r, &before, sizeof before) == 0); /* the interrupted draw finds all as it was */
    T_OK(memcmp(a, b, sizeof a) != 0);
    r->busy_ = 0;
}

/* A handler that forks returns, in the child, into a draw whose page was wiped. What the draw had
 * read or made of the parent's key before must not be used. */
T_TEST(rng_wiped_inside_a_draw)
{
    struct firn_rng r;
    memset(&r, 0, sizeof r);
    uint8_t *from = firn__rng_begin(&r, 16);
    T_OK(from != NULL);
    struct firn_rng parent = r;
    memset(&r, 0, sizeof r);
    memcpy(r.key_, parent.key_, sizeof r.key_); /* a refill that was under way writes it back */
    r.source_ = parent.source_;
    r.era_ = parent.era_;
    r.left_ = 16;
    T_EQ(firn__rng_end(&r, 16), 0);
    T_EQ(r.source_, 0);
    T_EQ(r.left_, 0);
    parent.busy_ = 0;
    uint64_t mine = firn_rng_u64(&r);
    T_OK(mine != 0 && memcmp(r.key_, parent.key_, sizeof r.key_) != 0);
}
