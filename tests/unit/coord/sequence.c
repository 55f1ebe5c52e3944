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

/* A deleted sequence gives no number, and begins again only above all that it gave, with what
 * servers may have kept of it unchanged. */
T_TEST(sequence_deleted_and_renewed)
{
    struct seq_spec spec = { .mode = SEQ_RANGE, .start = 1, .step = 5, .offset = 3, .note = "n" };
    struct seq_record r = make(spec), next;
    struct seq_range got;
    struct nonce req = fresh();
    struct firn_diag d = { 0 };
    char text[RECORD_TEXT_MAX];
    T_EQ(seq_take(&r, 4, &req, &r, &got), 0);
    T_EQ(r.next, 23);
    T_OK(!seq_deleted(&r));
    req = fresh();
    seq_delete(&r, &req);
    T_OK(seq_deleted(&r) && seq_left(&r) == 0 && r.next == 23);
    T_EQ(seq_take(&r, 1, &req, &next, &got), FIRN_EOVERFLOW);  /* also for who does not know */
    T_EQ(seq_parse(text, seq_encode(&r, text), &next, &d), 0); /* it is a record as any other */
    T_OK(seq_deleted(&next) && next.next == 23);
    T_EQ(seq_renew(&r, &spec, &req, &next, &d), FIRN_ECONFLICT);
    T_OK(strstr(d.text, "23 or more"), "%s", d.text);
    spec.start = 19; /* the lowest that fits is 23 */
    T_EQ(seq_renew(&r, &spec, &req, &next, &d), 0);
    T_OK(next.next == 23 && !seq_deleted(&next) && nonce_eq(&next.req, &req));
    spec.start = 1;
    spec.resume = true;
    T_EQ(seq_renew(&r, &spec, &req, &next, &d), 0);
    T_OK(next.next == 23 && next.start == 1);
    struct seq_spec other[] = { spec, spec, spec, spec };
    other[0].mode = SEQ_GAPLESS;
    other[1].step = 10;
    other[2].offset = 4;
    other[3].note = "";
    for (size_t i = 0; i < T_LEN(other); i++)
        T_EQ(seq_renew(&r, &other[i], &req, &next, &d), FIRN_ECONFLICT, "%zu", i);
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

/* UNKNOWN, landed, and then others write: the record tells as long as there are not too many of
 * them. */
T_TEST(sequence_op_overtaken)
{
    for (int others = 1; others <= SEQ_WRITERS; others++) {
        struct seq_record r = make((struct seq_spec){ .start = 1 });
        struct seq_op op, other;
        enum seq_verdict v;
        struct seq_range got;
        char text[RECORD_TEXT_MAX];
        struct nonce req = fresh();
        seq_op_init(&op);
        T_EQ(seq_op_read(&op, text, seq_encode(&r, text), &v, &got, NULL), 0);
        T_EQ(seq_op_build(&op, 3, &req), 0);
        size_t len = op.value_len;
        memcpy(text, op.value, len);
        T_EQ(seq_op_done(&op, FIRN_EUNKNOWN, &got), SEQ_READ_IT);
        for (int i = 0; i < others; i++) {
            seq_op_init(&other);
            T_EQ(seq_op_read(&other, text, len, &v, &got, NULL), 0);
            T_EQ(v, SEQ_TRY_AGAIN);
            for (int k = 0; k < 3; k++) { /* each has one place, however often it writes */
                req = fresh();
                T_EQ(seq_op_build(&other, 1, &req), 0);
                T_EQ(seq_op_done(&other, 0, &got), SEQ_GRANTED);
            }
            len = other.base_len;
            memcpy(text, other.base_text, len);
        }
        T_EQ(seq_op_read(&op, text, len, &v, &got, NULL), 0);
        T_EQ(v, others < SEQ_WRITERS ? SEQ_LATE : SEQ_TRY_AGAIN);
        T_OK(v != SEQ_LATE || (got.first == 1 && got.count == 3));
        req = fresh(); /* once: the next is a write of its own */
        T_EQ(seq_op_build(&op, 1, &req), 0);
        T_EQ(seq_op_done(&op, 0, &got), SEQ_GRANTED);
        T_EQ(got.first, 4 + 3 * (uint64_t)others);
    }
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

static struct seq_ask ask_of(uint8_t key, uint64_t want, bool partial)
{
    return (struct seq_ask){ .key = { { key } }, .args = key, .want = want, .partial = partial };
}

/* Numbers for keys come behind those without, and the record says which are whose. */
T_TEST(sequence_op_keyed)
{
    struct seq_record r = make((struct seq_spec){ .start = 1, .step = 2, .offset = 1, .max = 39 });
    char text[RECORD_TEXT_MAX];
    struct seq_op op, other;
    enum seq_verdict v;
    struct seq_range got;
    struct nonce req = fresh();
    struct seq_ask a = ask_of(1, 2, false), b = ask_of(2, 3, false), twin = ask_of(1, 2, false);
    struct seq_ask *ask[3] = { &a, &twin, &b };
    seq_op_init(&op);
    T_EQ(seq_op_build_keyed(&op, 0, ask, 3, 5, &req), FIRN_EAGAIN);
    T_EQ(seq_op_read(&op, text, seq_encode(&r, text), &v, &got, NULL), 0);
    T_EQ(seq_op_build_keyed(&op, 4, ask, 3, 5, &req), 0);
    T_OK(a.listed && b.listed && !twin.listed);
    T_OK(!seq_op_find(&op, &a.key)); /* not yet */
    T_EQ(seq_op_done(&op, 0, &got), SEQ_GRANTED);
    T_EQ(got.first, 1);
    T_EQ(got.count, 4);
    T_EQ(seq_op_find(&op, &a.key)->first, 9);
    T_EQ(seq_op_find(&op, &b.key)->first, 13);
    T_EQ(seq_op_find(&op, &b.key)->count, 3);
    T_EQ(op.base.next, 19);
    T_EQ(op.keys.at, 5);

    /* Every reader of the record knows the same. */
    seq_op_init(&other);
    T_EQ(seq_op_read(&other, op.base_text, op.base_len, &v, &got, NULL), 0);
    T_EQ(v, SEQ_TRY_AGAIN);
    T_EQ(seq_op_find(&other, &a.key)->first, 9);

    /* An answer is lost, and the record is read: the numbers without a key are found by the
     * nonce. */
    struct seq_ask c = ask_of(3, 1, false), d = ask_of(4, 100, false), e = ask_of(5, 100, true);
    struct seq_ask *more[3] = { &c, &d, &e };
    req = fresh();
    T_EQ(seq_op_build_keyed(&op, 2, more, 3, 6, &req), 0);
    T_OK(c.listed && !d.listed && e.listed); /* d wants all or nothing, e takes the rest */
    memcpy(text, op.value, op.value_len);
    size_t len = op.value_len;
    T_EQ(seq_op_done(&op, FIRN_EUNKNOWN, &got), SEQ_READ_IT);
    T_EQ(seq_op_read(&op, text, len, &v, &got, NULL), 0);
    T_EQ(v, SEQ_GRANTED);
    T_EQ(got.first, 19);
    T_EQ(got.count, 2);
    T_EQ(seq_op_find(&op, &c.key)->first, 23);
    T_EQ(seq_op_find(&op, &e.key)->first, 25);
    T_EQ(seq_op_find(&op, &e.key)->count, 8); /* up to 39 */
    T_OK(!seq_op_find(&op, &a.key));
    req = fresh();
    T_EQ(seq_op_build_keyed(&op, 0, ask, 3, 7, &req), FIRN_EOVERFLOW);
}

/* A record lists as many keys as it has room for; the others wait. */
T_TEST(sequence_op_keyed_full)
{
    struct seq_record r = make((struct seq_spec){ .start = 1 });
    char text[RECORD_TEXT_MAX];
    struct seq_op op;
    enum seq_verdict v;
    struct seq_range got;
    struct seq_ask ask[40], *list[40];
    size_t listed = 0, rounds = 0;
    for (uint8_t i = 0; i < 40; i++) {
        ask[i] = ask_of(i, 1, false);
        list[i] = &ask[i];
    }
    seq_op_init(&op);
    T_EQ(seq_op_read(&op, text, seq_encode(&r, text), &v, &got, NULL), 0);
    for (; listed < 40; rounds++) {
        struct nonce req = fresh();
        T_EQ(seq_op_build_keyed(&op, 0, list + listed, 40 - listed, 5, &req), 0);
        T_EQ(seq_op_done(&op, 0, &got), SEQ_GRANTED);
        T_EQ(got.count, 0);
        for (; listed < 40 && ask[listed].listed; listed++)
            T_EQ(seq_op_find(&op, &ask[listed].key)->first, 1 + listed); /* in order */
        T_EQ(op.base.next, 1 + listed);
    }
    T_OK(rounds >= 3 && rounds <= 4, "%zu", rounds);
}

/* The spare is fetched when half of a block is used, never sooner, and blocks are ten seconds of
 * demand. */
T_TEST(sequence_cache_follows_demand)
{
    static const struct {
        uint64_t per_s, want;
    } rows[] = { { 1, SEQ_BLOCK_MIN },
                 { 1000, 10000 },
                 { 50, 500 }, /* and down again, when the large blocks are used up */
                 { 40000, 400000 },
                 { 400000, SEQ_BLOCK_MAX } };
    struct seq_cache c;
    uint64_t next = 1, now_ms = 0;
    seq_cache_init(&c);
    for (size_t i = 0; i < T_LEN(rows); i++) {
        uint64_t last_want = 0, end_ms = now_ms + 1200000, sum = 0;
        /* A hundred numbers at a time, or one if they are asked for slowly. */
        uint64_t piece = rows[i].per_s >= 1000 ? rows[i].per_s / 100 : 1;
        for (; now_ms < end_ms; now_ms += piece * 1000 / rows[i].per_s) {
            for (uint64_t left = piece; left > 0;) {
                struct seq_range got;
                int r = seq_cache_some(&c, left, now_ms, &got);
                uint64_t half = c.block / 2, unused = c.cur.count;
                bool spare = c.spare.count > 0, waiting = r == FIRN_EAGAIN;
                uint64_t ask = seq_cache_ask(&c);
                T_EQ(ask > 0, !spare && (unused <= half || waiting), "%llu left of %llu",
                     (unsigned long long)unused, (unsigned long long)c.block);
                if (ask) {
                    T_OK(ask >= SEQ_BLOCK_MIN && ask <= SEQ_BLOCK_MAX);
                    last_want = ask;
                    seq_cache_put(&c, &(struct seq_range){ next, 1, ask }, now_ms);
                    next += ask;
                }
                if (r == 0) {
                    left -= got.count;
                    sum += got.count;
                }
            }
        }
        T_OK(sum > 300);
        T_OK(last_want * 10 >= rows[i].want * 9 && last_want * 10 <= rows[i].want * 11,
             "%llu a second: blocks of %llu, not %llu", (unsigned long long)rows[i].per_s,
             (unsigned long long)last_want, (unsigned long long)rows[i].want);
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
