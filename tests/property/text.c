#include "t.h"

#include "firn/text.h"

#include <stdio.h>

/* All sizes of numbers, not only the huge ones that uniform bits give. */
static uint64_t any_u64(void)
{
    return t_random() >> t_random_below(64);
}

T_TEST(u64_round_trip)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        char text[FIRN_U64_TEXT_BUF];
        uint64_t v = any_u64(), back;
        size_t len = firn_u64_format(v, text);
        T_EQ(firn_u64_parse(text, len, &back), 0, "'%s'", text);
        T_EQ(back, v);
        if (i % 8 == 0) {
            char expect[32];
            snprintf(expect, sizeof expect, "%" PRIu64, v);
            T_STR(text, expect);
        }
    }
}

T_TEST(codec_round_trip)
{
    size_t n;
    const struct firn_codec *list = firn_codec_list(&n);
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        const struct firn_codec *c = &list[i % n];
        char text[FIRN_CODEC_TEXT_BUF];
        size_t len;
        uint64_t v = any_u64(), back;
        struct firn_u128 w = { i & 16 ? any_u64() : 0, any_u64() }, back128;
        T_EQ(firn_codec_encode64(c, v, text, sizeof text, &len), 0);
        T_OK(c->padded ? len == c->width64 : len <= c->width64);
        T_EQ(firn_codec_decode64(c, text, len, &back), 0, "%s '%s'", c->name, text);
        T_EQ(back, v, "%s '%s'", c->name, text);
        T_EQ(firn_codec_encode128(c, w, text, sizeof text, &len), 0);
        T_OK(c->padded ? len == c->width128 : len <= c->width128);
        T_EQ(firn_codec_decode128(c, text, len, &back128), 0, "%s '%s'", c->name, text);
        T_OK(back128.hi == w.hi && back128.lo == w.lo, "%s '%s'", c->name, text);
    }
}

/* Texts of long runs of the first and the last digit: numbers just beside multiples of the powers
 * of the radix, where a quotient that is one too large or too small would show. */
T_TEST(codec_runs_of_digits)
{
    size_t n;
    const struct firn_codec *list = firn_codec_list(&n);
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        const struct firn_codec *c = &list[i % n];
        size_t last = strlen(c->alphabet) - 1, at = 0;
        char text[FIRN_CODEC_TEXT_BUF] = "", again[FIRN_CODEC_TEXT_BUF];
        if (c->checked || c->exact)
            continue;
        while (at < c->width128) {
            char digit =
                c->alphabet[t_random_below(3) ? t_random_below(2) * last : t_random_below(last)];
            for (uint64_t run = t_random_below(14); run > 0 && at < c->width128; run--)
                text[at++] = digit;
        }
        struct firn_u128 v;
        if (!c->padded && text[0] == '0')
            text[0] = '1';
        int r = firn_codec_decode128(c, text, at, &v);
        T_OK(r == 0 || r == FIRN_ERANGE, "%s '%s'", c->name, text);
        if (r != 0)
            continue;
        T_EQ(firn_codec_encode128(c, v, again, sizeof again, NULL), 0);
        T_STR(again, text, "%s", c->name);
    }
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* Where a codec promises it, text order is the order of the values, neighbours included. */
T_TEST(codec_keeps_order)
{
    size_t n;
    const struct firn_codec *list = firn_codec_list(&n);
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        const struct firn_codec *c = &list[i % n];
        if (!c->ordered)
            continue;
        char x[FIRN_CODEC_TEXT_BUF], y[FIRN_CODEC_TEXT_BUF];
        uint64_t a = any_u64(), b = i & 32 ? a + t_random_below(3) : any_u64();
        T_EQ(firn_codec_encode64(c, a, x, sizeof x, NULL), 0);
        T_EQ(firn_codec_encode64(c, b, y, sizeof y, NULL), 0);
        T_EQ(sign(strcmp(x, y)), (a > b) - (a < b), "%s: %s %s", c->name, x, y);
        struct firn_u128 v = { a, any_u64() }, w = { b, any_u64() };
        T_EQ(firn_codec_encode128(c, v, x, sizeof x, NULL), 0);
        T_EQ(firn_codec_encode128(c, w, y, sizeof y, NULL), 0);
        int expect = a != b ? (a > b) - (a < b) : (v.lo > w.lo) - (v.lo < w.lo);
        T_EQ(sign(strcmp(x, y)), expect, "%s: %s %s", c->name, x, y);
    }
}

/* One wrong character, or two neighbours exchanged: the check symbol sees both, always. */
T_TEST(crockford_check_finds_slips)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    const struct firn_codec *c = firn_codec_find("crockford-check", 15);
    for (uint64_t i = t_scale(200000); i > 0; i--) {
        char text[FIRN_CODEC_TEXT_BUF];
        size_t len;
        uint64_t v = t_random() >> 5, back;
        T_EQ(firn_codec_encode64(c, v, text, sizeof text, &len), 0);
        size_t at = (size_t)t_random_below(len - 2);
        char was = text[at], next = text[at + 1];
        text[at] = alphabet[t_random_below(32)];
        if (text[at] != was)
            T_OK(firn_codec_decode64(c, text, len, &back) != 0, "'%s'", text);
        text[at] = next;
        text[at + 1] = was;
        if (next != was)
            T_OK(firn_codec_decode64(c, text, len, &back) != 0, "'%s'", text);
    }
}
