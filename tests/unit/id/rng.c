#include "t.h"

#include "firn/random.h"

#include <sys/wait.h>
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
