#include "t.h"

#include "coord/sequence.h"

static struct nonce fresh(void)
{
    struct nonce v;
    t_random_bytes(v.b, sizeof v.b);
    return v;
}

static struct seq_record make(struct seq_spec spec)
{
    struct seq_record r;
    struct nonce req = fresh();
    struct firn_diag d = { 0 };
    T_EQ(seq_new(&spec, &req, &r, &d), 0, "%s", d.text);
    return r;
}

T_TEST(sequence_first_number)
{
    static const struct {
        struct seq_spec spec;
        uint64_t first, second;
    } row[] = {
        { { 0 }, 1, 2 },
        { { .start = 100001 }, 100001, 100002 },
        { { .step = 2, .offset = 1 }, 1, 3 }, /* one master of two */
        { { .step = 2, .offset = 0 }, 2, 4 }, /* and the other */
        { { .start = 10, .step = 16, .offset = 3 }, 19, 35 },
        { { .start = 19, .step = 16, .offset = 3 }, 19, 35 },
        { { .start = 20, .step = 16, .offset = 3 }, 35, 51 },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct seq_record r = make(row[i].spec);
        struct seq_range got;
        struct nonce req = fresh();
        T_EQ(seq_take(&r, 1, &req, &r, &got), 0);
        T_EQ(got.first, row[i].first, "row %zu", i);
        T_EQ(got.count, 1);
        T_EQ(r.next, row[i].second, "row %zu", i);
    }
}

T_TEST(sequence_rejects)
{
    static const struct seq_spec bad[] = {
        { .step = SEQ_STEP_MAX + 1 },
        { .step = 2, .offset = 2 },
        { .offset = 1 },
        { .start = 10, .max = 9 },
        { .max = (uint64_t)SEQ_NUMBER_MAX + 1 },
        { .start = 8, .max = 9, .step = 5 }, /* no multiple of 5 in there */
        { .note = "line\nbreak" },
        { .mode = (enum seq_mode)7 },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct seq_record r;
        struct nonce req = fresh();
        struct firn_diag d = { 0 };
        T_EQ(seq_new(&bad[i], &req, &r, &d), FIRN_EINVAL, "row %zu", i);
        T_OK(d.text[0] != '\0');
    }
}

T_TEST(sequence_ends)
{
    struct seq_record r = make((struct seq_spec){ .start = 5, .max = 12, .step = 3, .offset = 2 });
    struct seq_range got;
    struct nonce req = fresh();
    T_EQ(seq_left(&r), 3); /* 5 8 11 */
    T_EQ(seq_take(&r, 0, &req, &r, &got), FIRN_EINVAL);
    T_EQ(seq_take(&r, 2, &req, &r, &got), 0);
    T_EQ(seq_range_last(&got), 8);
    T_EQ(seq_take(&r, 2, &req, &r, &got), 0);
    T_EQ(got.first, 11);
    T_EQ(got.count, 1);
    T_EQ(seq_left(&r), 0);
    T_EQ(seq_take(&r, 1, &req, &r, &got), FIRN_EOVERFLOW);
    char text[RECORD_TEXT_MAX]; /* an exhausted record is still a record */
    T_EQ(seq_parse(text, seq_encode(&r, text), &r, NULL), 0);

    r = make((struct seq_spec){ .start = SEQ_NUMBER_MAX, .step = 1 });
    T_EQ(seq_take(&r, 5, &req, &r, &got), 0);
    T_EQ(got.first, SEQ_NUMBER_MAX);
    T_EQ(got.count, 1);
    T_EQ(seq_parse(text, seq_encode(&r, text), &r, NULL), 0);
    T_EQ(seq_take(&r, 1, &req, &r, &got), FIRN_EOVERFLOW);
}

T_TEST(sequence_op_outcomes)
{
    struct seq_record r = make((struct seq_spec){ .start = 1 });
    char text[RECORD_TEXT_MAX], first[RECORD_TEXT_MAX];
    size_t len = seq_encode(&r, text), first_len;
    struct seq_op op;
    enum seq_verdict v;
    struct seq_range got;
    struct nonce req = fresh();
    seq_op_init(&op);
    T_EQ(seq_op_build(&op, 5, &req), FIRN_EAGAIN);
    T_EQ(seq_op_read(&op, "x", 1, &v, &got, NULL), FIRN_EFORMAT);
    T_EQ(seq_op_read(&op, text, len, &v, &got, NULL), 0);
    T_EQ(v, SEQ_TRY_AGAIN);

    /* OK */
    T_EQ(seq_op_build(&op, 5, &req), 0);
    T_EQ(seq_op_done(&op, 0, &got), SEQ_GRANTED);
    T_EQ(got.first, 1);
    T_EQ(got.count, 5);

    /* UNKNOWN, not landed, tried again for more; then the first one lands after all. */
    req = fresh();
    T_EQ(seq_op_build(&op, 2, &req), 0);
    T_OK(op.base.next == 6);
    len = op.base_len;
    memcpy(text, op.base_text, len);
    first_len = op.value_len;
    memcpy(first, op.value, first_len);
    T_EQ(seq_op_done(&op, FIRN_EUNKNOWN, &got), SEQ_READ_IT);
    T_EQ(seq_op_read(&op, text, len, &v, &got, NULL), 0);
    T_EQ(v, SEQ_TRY_AGAIN);
    req = fresh();
    T_EQ(seq_op_build(&op, 9, &req), 0);
    T_EQ(seq_op_done(&op, FIRN_ECONFLICT, &got), SEQ_READ_IT);
    T_EQ(seq_op_read(&op, first, first_len, &v, &got, NULL), 0);
    T_EQ(v, SEQ_GRANTED);
    T_EQ(got.first, 6);
    T_EQ(got.count, 2);

    /* Another process took numbers: go on after it. */
    T_EQ(seq_parse(first, first_len, &r, NULL), 0);
    r.next = 50;
    r.req = fresh();
    req = fresh();
    T_EQ(seq_op_build(&op, 1, &req), 0);
    T_EQ(seq_op_done(&op, FIRN_ECONFLICT, &got), SEQ_READ_IT);
    T_EQ(seq_op_read(&op, text, seq_encode(&r, text), &v, &got, NULL), 0);
    T_EQ(v, SEQ_TRY_AGAIN);
    req = fresh();
    T_EQ(seq_op_build(&op, 1, &req), 0);
    T_EQ(seq_op_done(&op, 0, &got), SEQ_GRANTED);
    T_EQ(got.first, 50);
}

/* Several servers on one record that is cut off, doubled and overtaken: no number twice. */
T_TEST(sequence_op_never_repeats)
{
    enum { SERVERS = 3, NUMBERS = 20000 };
    static uint8_t given[NUMBERS];
    for (uint64_t world = 0; world < t_scale(200); world++) {
        struct seq_op op[SERVERS];
        struct seq_record r = make((struct seq_spec){ .step = 3, .offset = 1 });
        char text[RECORD_TEXT_MAX], late_old[RECORD_TEXT_MAX], late_new[RECORD_TEXT_MAX];
        size_t len = seq_encode(&r, text), late_old_len = 0, late_new_len = 0;
        bool need_read[SERVERS];
        memset(given, 0, sizeof given);
        for (int i = 0; i < SERVERS; i++) {
            seq_op_init(&op[i]);
            need_read[i] = true;
        }
        for (int step = 0; step < 300; step++) {
            int i = (int)t_random_below(SERVERS);
            struct seq_range got = { 0, 1, 0 };
            enum seq_verdict v = SEQ_TRY_AGAIN;
            if (late_old_len && t_random_below(4) == 0) {
                if (late_old_len == len && memcmp(late_old, text, len) == 0) {
                    memcpy(text, late_new, late_new_len);
                    len = late_new_len;
                }
                late_old_len = 0;
            }
            if (need_read[i]) {
                T_EQ(seq_op_read(&op[i], text, len, &v, &got, NULL), 0);
                need_read[i] = false;
            } else {
                struct nonce req = fresh();
                T_EQ(seq_op_build(&op[i], 1 + t_random_below(5), &req), 0);
                bool match = op[i].base_len == len && memcmp(op[i].base_text, text, len) == 0;
                uint64_t fate = t_random_below(4);
                if (fate == 3) {
                    late_old_len = op[i].base_len;
                    memcpy(late_old, op[i].base_text, late_old_len);
                    late_new_len = op[i].value_len;
                    memcpy(late_new, op[i].value, late_new_len);
                }
                if (match && fate < 2) {
                    memcpy(text, op[i].value, op[i].value_len);
                    len = op[i].value_len;
                }
                int result = fate > 0 ? FIRN_EUNKNOWN : match ? 0 : FIRN_ECONFLICT;
                v = seq_op_done(&op[i], result, &got);
                need_read[i] = v == SEQ_READ_IT;
            }
            for (uint64_t k = 0; v == SEQ_GRANTED && k < got.count; k++) {
                uint64_t n = got.first + k * got.step;
                T_OK(n < NUMBERS && n % 3 == 1);
                T_EQ(given[n]++, 0, "%" PRIu64 " twice", n);
            }
        }
    }
}

T_TEST(sequence_cache_blocks)
{
    struct seq_cache c;
    struct seq_range got;
    seq_cache_init(&c);
    T_EQ(seq_cache_some(&c, 1, 0, &got), FIRN_EAGAIN);
    T_EQ(seq_cache_ask(&c), SEQ_BLOCK_MIN);
    T_EQ(seq_cache_ask(&c), 0); /* asked already */
    seq_cache_put(&c, &(struct seq_range){ 1, 1, 100 }, 0);
    T_EQ(seq_cache_ask(&c), 0);
    T_EQ(seq_cache_some(&c, 49, 5, &got), 0);
    T_EQ(seq_cache_ask(&c), 0);
    T_EQ(seq_cache_some(&c, 1, 5, &got), 0);
    T_EQ(got.first, 50);
    T_EQ(seq_cache_ask(&c), SEQ_BLOCK_MIN); /* half used */
    seq_cache_failed(&c);
    T_EQ(seq_cache_ask(&c), SEQ_BLOCK_MIN);
    seq_cache_put(&c, &(struct seq_range){ 1001, 1, 100 }, 6);
    T_EQ(seq_cache_some(&c, 80, 7, &got), 0);
    T_EQ(got.first, 51);
    T_EQ(got.count, 50); /* one piece at a time */
    T_EQ(seq_cache_some(&c, 30, 10, &got), 0);
    T_EQ(got.first, 1001);
    T_EQ(c.want, 100000); /* 100 in 10 ms is 100000 in 10 s */
    T_EQ(seq_cache_exactly(&c, 71, 11, &got), FIRN_EAGAIN);
    T_EQ(seq_cache_ask(&c), 100000);
    seq_cache_put(&c, &(struct seq_range){ 1101, 1, 100000 }, 12);
    T_EQ(seq_cache_exactly(&c, 71, 13, &got), 0); /* the blocks join */
    T_EQ(got.first, 1031);
    T_EQ(seq_range_last(&got), 1101);
    T_EQ(seq_cache_some(&c, 5, 14, &got), 0);
    T_EQ(got.first, 1102);
    T_EQ(seq_cache_exactly(&c, 0, 14, &got), FIRN_EINVAL);
}

/* Whatever is asked in whatever order: no number twice, and always rising. */
T_TEST(sequence_cache_rises)
{
    struct seq_cache c;
    uint64_t next = 1, last = 0, now = 0, count = 0;
    seq_cache_init(&c);
    for (int i = 0; i < 20000; i++) {
        struct seq_range got;
        now += t_random_below(3);
        uint64_t n = 1 + t_random_below(400);
        int r = t_random_below(2) ? seq_cache_some(&c, n, now, &got)
                                  : seq_cache_exactly(&c, n, now, &got);
        if (r == 0) {
            T_OK(got.first > last && got.count > 0);
            last = seq_range_last(&got);
            count += got.count;
        } else {
            T_EQ(r, FIRN_EAGAIN);
        }
        uint64_t ask = seq_cache_ask(&c);
        if (ask) {
            T_OK(ask >= SEQ_BLOCK_MIN && ask <= SEQ_BLOCK_MAX);
            if (t_random_below(3) == 0)
                next += t_random_below(50); /* another server's */
            seq_cache_put(&c, &(struct seq_range){ next, 1, ask }, now);
            next += ask;
        }
    }
    T_OK(count > 1000000);
}
