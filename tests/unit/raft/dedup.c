#include "raft/dedup.h"
#include "t.h"

/* Few different nonces, so that many share a bucket or come again; beside it a plain list. */
T_TEST(the_last_are_found_and_no_others)
{
    enum { N = 3 * DEDUP_MAX };
    static uint64_t nonces[N][2];
    struct dedup k = { 0 };
    uint64_t none[2] = { 1, 2 };
    T_OK(!dedup_find(&k, none));
    for (uint64_t i = 0; i < N; i++) {
        uint8_t result[3] = { (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16) };
        nonces[i][0] = t_random_below(4);
        nonces[i][1] = i * 8192;
        T_OK(dedup_add(&k, i, nonces[i], result, sizeof result));
        uint64_t j = t_random_below(i + 1);
        const struct dedup_row *row = dedup_find(&k, nonces[j]);
        T_EQ(row != NULL, i - j < DEDUP_MAX, "%d of %d", (int)j, (int)i);
        if (row) {
            T_EQ(row->len, 3);
            T_EQ(row->result[0] | row->result[1] << 8 | row->result[2] << 16, j);
        }
        T_OK(!dedup_find(&k, (uint64_t[]){ 4, nonces[j][1] }));
    }
    dedup_done(&k);
    T_OK(!dedup_find(&k, nonces[N - 1]));
}

T_TEST(the_same_nonce_twice)
{
    struct dedup k = { 0 };
    uint64_t nonce[2] = { 7, 7 };
    for (uint64_t i = 0; i < 2 * DEDUP_MAX; i++) {
        uint8_t result[2] = { (uint8_t)i, 0 };
        T_OK(dedup_add(&k, i, nonce, result, sizeof result));
        T_EQ(dedup_find(&k, nonce)->result[0], (uint8_t)i, "the later one");
    }
    dedup_done(&k);
}
