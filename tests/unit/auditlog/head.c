/* Heads as bytes and as text: what is written is read, and each value has one form. */
#include "auditlog/head.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

static struct head any(struct head_sig *sig)
{
    static const char letters[] = "abcXYZ019._:-";
    struct head h = { .shard = (uint32_t)t_random() };
    size_t n = 1 + t_random_below(HEAD_WRITER_MAX);
    for (size_t i = 0; i < n; i++)
        h.writer[i] = letters[t_random_below(sizeof letters - 1)];
    h.seq = 1 + t_random_below(t_random_below(2) ? 3 : UINT64_MAX - 2);
    h.first = t_random() >> t_random_below(64);
    h.rows = 1 + (uint32_t)t_random_below(t_random_below(2) ? 3 : HEAD_ROWS_MAX);
    if (h.first > UINT64_MAX - h.rows)
        h.first -= h.rows;
    h.last = h.first + h.rows - 1 +
             t_random_below(2) * t_random_below(UINT64_MAX - h.first - h.rows + 2);
    t_random_bytes(h.root, sizeof h.root);
    t_random_bytes(h.index, sizeof h.index);
    if (h.seq > 1)
        t_random_bytes(h.previous, sizeof h.previous);
    h.time_us = (int64_t)(t_random() >> t_random_below(64));
    if (t_random_below(3) == 0)
        h.time_us = -(h.time_us >> 1);
    *sig = (struct head_sig){ .there = t_random_below(2) };
    if (sig->there) {
        t_random_bytes(sig->key, sizeof sig->key);
        t_random_bytes(sig->bytes, sizeof sig->bytes);
    }
    return h;
}

static bool same(const struct head *a, const struct head *b)
{
    uint8_t x[HEAD_BYTES_MAX], y[HEAD_BYTES_MAX];
    size_t n = head_encode(a, x), m = head_encode(b, y);
    return n == m && memcmp(x, y, n) == 0;
}

T_TEST(what_is_written_is_read)
{
    for (uint64_t i = 0; i < t_scale(20000); i++) {
        struct head_sig sig, sig_back = { .there = true };
        struct head h = any(&sig), back;
        struct firn_diag d = { 0, "" };
        uint8_t bytes[HEAD_BYTES_MAX];
        size_t n = head_encode(&h, bytes);
        T_EQ(head_decode(bytes, n, &back), 0);
        T_OK(same(&h, &back));
        char text[HEAD_TEXT_BUF];
        n = head_write(&h, &sig, text);
        T_EQ(n, strlen(text));
        T_EQ(head_read((struct slice){ text, n }, &back, &sig_back, &d), 0, "%s: %s", text, d.text);
        T_OK(same(&h, &back) && sig_back.there == sig.there, "%s", text);
        T_OK(memcmp(sig.bytes, sig_back.bytes, sizeof sig.bytes) == 0 &&
             memcmp(sig.key, sig_back.key, sizeof sig.key) == 0);
    }
}

/* One form: a text that is another is refused, or is another head. */
T_TEST(a_byte_that_is_another_is_another_head)
{
    for (uint64_t i = 0; i < t_scale(20000); i++) {
        struct head_sig sig, sig_back;
        struct head h = any(&sig), back;
        char text[HEAD_TEXT_BUF], again[HEAD_TEXT_BUF];
        size_t n = head_write(&h, &sig, text);
        text[t_random_below(n)] ^= (char)(1u << t_random_below(8));
        if (head_read((struct slice){ text, n }, &back, &sig_back, NULL) == 0) {
            T_EQ(head_write(&back, &sig_back, again), n);
            T_OK(memcmp(text, again, n) == 0, "%s", text);
        }
        size_t cut = t_random_below(n);
        char *copy = malloc(cut + 1); /* so that a sanitizer sees a step too far */
        memcpy(copy, text, cut);
        if (head_read((struct slice){ copy, cut }, &back, &sig_back, NULL) == 0)
            T_EQ(head_write(&back, &sig_back, again), cut);
        free(copy);
        uint8_t bytes[HEAD_BYTES_MAX], bytes_again[HEAD_BYTES_MAX];
        n = head_encode(&h, bytes);
        bytes[t_random_below(n)] ^= (uint8_t)(1u << t_random_below(8));
        if (head_decode(bytes, n, &back) == 0) {
            T_EQ(head_encode(&back, bytes_again), n);
            T_OK(memcmp(bytes, bytes_again, n) == 0);
        }
        T_EQ(head_decode(bytes, n - 1, &back), FIRN_EFORMAT);
    }
}

#define D64 "0000000000000000000000000000000000000000000000000000000000000000"
#define E64 "00000000000000000000000000000000000000000000000000000000000000ff"
#define M   "firn-audit-head-1"

T_TEST(heads_that_are_refused)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "begins with" },
        { "firn-audit-head-2 shard=1", "begins with" },
        { M, "shard" },
        { M " shard=", "shard" },
        { M " shard=4294967296", "shard" },
        { M " shard=01", "shard" },
        { M "  shard=1", "shard" },
        { M " shard=1 seq=1", "writer" },
        { M " shard=1 writer= seq=1", "writer" },
        { M " shard=1 writer=a\" seq=1", "writer" },
        { M " shard=1 writer=a seq=1 first=2 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=0",
          "contradicts" },
        { M " shard=1 writer=a seq=1 first=1 last=2 rows=3 root=" D64 " index=" D64 " previous=" D64
            " time_us=0",
          "contradicts" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=0 root=" D64 " index=" D64 " previous=" D64
            " time_us=0",
          "contradicts" },
        { M " shard=1 writer=a seq=0 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=0",
          "contradicts" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" E64
            " time_us=0",
          "contradicts" },
        { M " shard=1 writer=a seq=2 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=0",
          "contradicts" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1048577 root=" D64, "rows" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=FF" D64, "root" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=-0",
          "time_us" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=9223372036854775808",
          "time_us" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=0 ",
          "key" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=0 key=00112233445566FF sig=" D64 D64,
          "key" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=0 key=00112233445566ff sig=" D64,
          "sig" },
        { M " shard=1 writer=a seq=1 first=1 last=1 rows=1 root=" D64 " index=" D64 " previous=" D64
            " time_us=0 key=00112233445566ff sig=" D64 D64 " x=1",
          "end" },
    };
    struct head h;
    struct head_sig sig;
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_diag d = { 0, "" };
        T_EQ(head_read((struct slice){ bad[i].text, strlen(bad[i].text) }, &h, &sig, &d),
             FIRN_EFORMAT, "%s", bad[i].text);
        T_OK(strstr(d.text, bad[i].why), "%s: %s", bad[i].text, d.text);
    }
    T_EQ(head_decode("", 0, &h), FIRN_EFORMAT);
}

T_TEST(the_longest_head_has_its_room)
{
    struct head h = { .shard = UINT32_MAX,
                      .seq = UINT64_MAX,
                      .last = UINT64_MAX,
                      .rows = HEAD_ROWS_MAX,
                      .time_us = INT64_MIN + 1 };
    struct head_sig sig = { .there = true };
    char text[HEAD_TEXT_BUF];
    uint8_t bytes[HEAD_BYTES_MAX];
    memset(h.writer, 'w', HEAD_WRITER_MAX);
    h.previous[0] = 1;
    T_EQ(head_encode(&h, bytes), HEAD_BYTES_MAX);
    T_OK(head_write(&h, &sig, text) < HEAD_TEXT_BUF - 8, "%zu", strlen(text));
    T_OK(!head_writer_ok("", 0) && !head_writer_ok("a/b", 3) &&
         head_writer_ok(h.writer, HEAD_WRITER_MAX));
    memset(text, 'w', 64);
    T_OK(!head_writer_ok(text, 64));
}
