#include "t.h"

#include "firn/text.h"

#include <stdio.h>
#include <stdlib.h>

/* A copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static char *exact(const char *s, size_t len)
{
    char *p = malloc(len ? len : 1);
    T_OK(p != NULL);
    memcpy(p, s, len);
    return p;
}

static int parse(const char *s, size_t len, uint64_t *out)
{
    char *p = exact(s, len);
    int r = firn_u64_parse(p, len, out);
    free(p);
    return r;
}

static const struct firn_codec *codec(const char *name)
{
    const struct firn_codec *c = firn_codec_find(name, strlen(name));
    T_OK(c != NULL, "%s", name);
    return c;
}

static int decode64(const struct firn_codec *c, const char *s, size_t len, uint64_t *out)
{
    char *p = exact(s, len);
    int r = firn_codec_decode64(c, p, len, out);
    free(p);
    return r;
}

static int decode128(const struct firn_codec *c, const char *s, size_t len, struct firn_u128 *out)
{
    char *p = exact(s, len);
    int r = firn_codec_decode128(c, p, len, out);
    free(p);
    return r;
}

T_TEST(u64_around_powers_of_ten)
{
    uint64_t power = 1;
    for (size_t digits = 1; digits <= 20; digits++, power *= 10) {
        const struct {
            uint64_t v;
            size_t len;
        } row[] = { { power, digits },
                    { power + 1, digits },
                    { power - 1, digits > 1 ? digits - 1 : 1 } };
        for (size_t i = 0; i < T_LEN(row); i++) {
            char text[FIRN_U64_TEXT_BUF], expect[32];
            uint64_t back;
            snprintf(expect, sizeof expect, "%" PRIu64, row[i].v);
            T_EQ(firn_u64_format(row[i].v, text), row[i].len);
            T_STR(text, expect);
            T_EQ(parse(text, row[i].len, &back), 0, "'%s'", text);
            T_EQ(back, row[i].v);
        }
        if (digits == 20)
            break; /* 10^20 is too large */
    }
}

T_TEST(u64_every_short_number)
{
    for (uint64_t v = 0; v < 20000; v++) {
        char text[FIRN_U64_TEXT_BUF], expect[32];
        uint64_t back, wide = v * 1000000000000000u + v;
        snprintf(expect, sizeof expect, "%" PRIu64, v);
        T_EQ(firn_u64_format(v, text), strlen(expect));
        T_STR(text, expect);
        T_EQ(firn_u64_parse(text, strlen(text), &back), 0);
        T_EQ(back, v);
        if (v > 18000)
            continue;
        snprintf(expect, sizeof expect, "%" PRIu64, wide);
        T_EQ(firn_u64_format(wide, text), strlen(expect));
        T_STR(text, expect);
        T_EQ(firn_u64_parse(text, strlen(text), &back), 0);
        T_EQ(back, wide);
    }
}

T_TEST(u64_parse_refuses)
{
    static const struct {
        const char *text;
        int error;
    } bad[] = {
        { "", FIRN_EFORMAT },
        { "007", FIRN_EFORMAT },
        { "00", FIRN_EFORMAT },
        { "-1", FIRN_EFORMAT },
        { "+1", FIRN_EFORMAT },
        { " 1", FIRN_EFORMAT },
        { "1 ", FIRN_EFORMAT },
        { "1e5", FIRN_EFORMAT },
        { "0x10", FIRN_EFORMAT },
        { "18446744073709551616", FIRN_ERANGE },
        { "18446744073709551620", FIRN_ERANGE },
        { "20000000000000000000", FIRN_ERANGE },
        { "99999999999999999999", FIRN_ERANGE },
        { "184467440737095516150", FIRN_ERANGE },
        { "340282366920938463463374607431768211455", FIRN_ERANGE },
        { "1844674407370955161x", FIRN_EFORMAT },
        { "99999999999999999999x", FIRN_EFORMAT },
        { "x9999999999999999999", FIRN_EFORMAT },
        { "000000000000000000000", FIRN_EFORMAT },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        uint64_t v = 77;
        T_EQ(parse(bad[i].text, strlen(bad[i].text), &v), bad[i].error, "'%s'", bad[i].text);
        T_EQ(v, 77);
    }
    uint64_t v;
    T_EQ(firn_u64_parse(NULL, 1, &v), FIRN_EINVAL);
    T_EQ(firn_u64_parse("1", 1, NULL), FIRN_EINVAL);
}

/* Every byte that is no digit, at every place of every length, with neighbours at both ends of
 * 0..9. */
T_TEST(u64_parse_refuses_every_byte)
{
    for (size_t len = 1; len <= 21; len++)
        for (size_t at = 0; at < len; at++)
            for (int c = 0; c < 256; c++) {
                char text[21];
                uint64_t v;
                memset(text, at % 2 ? '9' : '1', sizeof text);
                text[0] = '1';
                text[at] = (char)c;
                int r = parse(text, len, &v), digit = c >= '0' && c <= '9';
                if (!digit || (c == '0' && at == 0 && len > 1))
                    T_EQ(r, FIRN_EFORMAT, "length %zu, byte %d at %zu", len, c, at);
                else if (len < 20)
                    T_EQ(r, 0, "length %zu, byte %d at %zu", len, c, at);
                else
                    T_OK(r == 0 || r == FIRN_ERANGE, "length %zu, byte %d at %zu", len, c, at);
            }
}

T_TEST(codec_table)
{
    size_t n;
    const struct firn_codec *list = firn_codec_list(&n);
    T_EQ(n, 9);
    for (size_t i = 0; i < n; i++) {
        T_OK(firn_codec_find(list[i].name, strlen(list[i].name)) == &list[i]);
        T_OK(list[i].width128 < FIRN_CODEC_TEXT_BUF);
        T_OK(!list[i].ordered || list[i].padded, "%s: order needs padding", list[i].name);
        for (const char *a = list[i].alphabet; list[i].ordered && a[1]; a++)
            T_OK(a[0] < a[1], "%s: order needs an alphabet in ASCII order", list[i].name);
    }
    T_OK(firn_codec_find("base61", 6) == NULL);
    T_OK(firn_codec_find("base6", 5) == NULL);
    T_OK(firn_codec_find("", 0) == NULL);
    T_OK(firn_codec_find(NULL, 0) == NULL);
    T_OK(firn_codec_list(NULL) == list);
    T_EQ(codec("base64url")->ordered, 0);
    T_EQ(codec("decimal")->ordered, 0);
}

T_TEST(codec_accepts)
{
    static const struct {
        const char *codec, *text;
        uint64_t v;
    } good[] = {
        { "hex", "0", 0 },
        { "hex", "DeadBeef", 0xdeadbeef },
        { "crockford", "16J", 1234 }, /* the example that his page's readers pass around */
        { "crockford", "16j", 1234 },
        { "crockford", "i6J", 1234 },
        { "crockford", "l6J", 1234 },
        { "crockford", "O16J", 1234 },
        { "crockford-check", "16JD", 1234 },
        { "crockford-check", "16jd", 1234 },
        { "crockford-check", "10*", 32 },
        { "crockford-check", "11~", 33 },
        { "crockford-check", "12$", 34 },
        { "crockford-check", "13=", 35 },
        { "crockford-check", "14U", 36 },
        { "crockford-check", "14u", 36 },
        { "crockford-check", "150", 37 },
        { "crockford-check", "15O", 37 },
        { "crockford-check", "16I", 38 },
        { "base32hex", "vvvvvvvvvvvvu", UINT64_MAX },
        { "base36", "Z", 35 },
        { "base36", "3W5E11264SGSF", UINT64_MAX },
        { "base58", "2", 1 },
        { "base62", "z", 61 },
        { "decimal", "0", 0 },
        { "decimal", "18446744073709551615", UINT64_MAX },
    };
    for (size_t i = 0; i < T_LEN(good); i++) {
        uint64_t v = 0;
        struct firn_u128 w = { 1, 1 };
        const struct firn_codec *c = codec(good[i].codec);
        T_EQ(decode64(c, good[i].text, strlen(good[i].text), &v), 0, "%s '%s'", good[i].codec,
             good[i].text);
        T_EQ(v, good[i].v, "%s '%s'", good[i].codec, good[i].text);
        if (c->exact)
            continue;
        T_EQ(decode128(c, good[i].text, strlen(good[i].text), &w), 0, "%s '%s'", good[i].codec,
             good[i].text);
        T_OK(w.hi == 0 && w.lo == good[i].v, "%s '%s'", good[i].codec, good[i].text);
    }
}

T_TEST(codec_refuses_64)
{
    static const struct {
        const char *codec, *text;
        int error;
    } bad[] = {
        { "decimal", "", FIRN_EFORMAT },
        { "decimal", "01", FIRN_EFORMAT },
        { "decimal", "18446744073709551616", FIRN_ERANGE },
        { "hex", "", FIRN_EFORMAT },
        { "hex", "g", FIRN_EFORMAT },
        { "hex", "0x1", FIRN_EFORMAT },
        { "hex", "00000000000000000", FIRN_EFORMAT }, /* 17 */
        { "crockford", "", FIRN_EFORMAT },
        { "crockford", "U", FIRN_EFORMAT },
        { "crockford", "1-6J", FIRN_EFORMAT },
        { "crockford", "G000000000000", FIRN_ERANGE },
        { "crockford", "ZZZZZZZZZZZZZ", FIRN_ERANGE },
        { "crockford", "ZZZZZZZZZZZZ!", FIRN_EFORMAT },
        { "crockford", "00000000000000", FIRN_EFORMAT },
        { "crockford-check", "", FIRN_EFORMAT },
        { "crockford-check", "0", FIRN_EFORMAT }, /* a check symbol of nothing */
        { "crockford-check", "16JE", FIRN_EFORMAT },
        { "crockford-check", "61JD", FIRN_EFORMAT },
        { "crockford-check", "16J!", FIRN_EFORMAT },
        { "crockford-check", "1*6D", FIRN_EFORMAT },
        { "crockford-check", "ZZZZZZZZZZZZZ0", FIRN_ERANGE },
        { "crockford-check", "ZZZZZZZZZZZZZ!", FIRN_EFORMAT },
        { "base32hex", "VVVVVVVVVVVVV", FIRN_EFORMAT }, /* a bit behind the last byte */
        { "base32hex", "VVVVVVVVVVVV", FIRN_EFORMAT },
        { "base32hex", "WVVVVVVVVVVVU", FIRN_EFORMAT },
        { "base32hex", "VVVVVVVVVVVVU===", FIRN_EFORMAT },
        { "base36", "3w5e11264sgsg", FIRN_ERANGE },
        { "base36", "zzzzzzzzzzzzz", FIRN_ERANGE },
        { "base36", "zzzzzzzzzzzz_", FIRN_EFORMAT },
        { "base58", "jpXCZedGfVR", FIRN_ERANGE },
        { "base58", "zzzzzzzzzzz", FIRN_ERANGE },
        { "base58", "0", FIRN_EFORMAT },
        { "base58", "I", FIRN_EFORMAT },
        { "base58", "O", FIRN_EFORMAT },
        { "base58", "l", FIRN_EFORMAT },
        { "base62", "LygHa16AHYG", FIRN_ERANGE },
        { "base62", "zzzzzzzzzzz", FIRN_ERANGE },
        { "base62", "000000000000", FIRN_EFORMAT },
        { "base62", "-", FIRN_EFORMAT },
        { "base64url", "__________9", FIRN_EFORMAT }, /* bits behind the last byte */
        { "base64url", "__________", FIRN_EFORMAT },
        { "base64url", "//////////8", FIRN_EFORMAT },
        { "base64url", "__________8=", FIRN_EFORMAT },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        uint64_t v = 77;
        T_EQ(decode64(codec(bad[i].codec), bad[i].text, strlen(bad[i].text), &v), bad[i].error,
             "%s '%s'", bad[i].codec, bad[i].text);
        T_EQ(v, 77);
    }
}

T_TEST(codec_refuses_128)
{
    static const struct {
        const char *codec, *text;
        int error;
    } bad[] = {
        { "decimal", "340282366920938463463374607431768211456", FIRN_ERANGE },
        { "decimal", "999999999999999999999999999999999999999", FIRN_ERANGE },
        { "decimal", "9999999999999999999999999999999999999999999999999999999999999", FIRN_ERANGE },
        { "decimal", "99999999999999999999999999999999999999999999999999999999999x", FIRN_EFORMAT },
        { "hex", "000000000000000000000000000000000", FIRN_EFORMAT },
        { "crockford", "80000000000000000000000000", FIRN_ERANGE },
        { "crockford-check", "800000000000000000000000000", FIRN_ERANGE },
        { "crockford-check", "01ARZ3NDEKTSV4RRFFQ69G5FAV=", FIRN_EFORMAT },
        { "base32hex", "VVVVVVVVVVVVVVVVVVVVVVVVVT", FIRN_EFORMAT },
        { "base36", "f5lxx1zz5pnorynqglhzmsp34", FIRN_ERANGE },
        { "base36", "zzzzzzzzzzzzzzzzzzzzzzzzz", FIRN_ERANGE },
        { "base58", "YcVfxkQb6JRzqk5kF2tNLw", FIRN_ERANGE },
        { "base58", "zzzzzzzzzzzzzzzzzzzzzz", FIRN_ERANGE },
        { "base62", "7n42DGM5Tflk9n8mt7Fhc8", FIRN_ERANGE },
        { "base62", "zzzzzzzzzzzzzzzzzzzzzz", FIRN_ERANGE },
        { "base64url", "_____________________x", FIRN_EFORMAT },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_u128 v = { 77, 78 };
        T_EQ(decode128(codec(bad[i].codec), bad[i].text, strlen(bad[i].text), &v), bad[i].error,
             "%s '%s'", bad[i].codec, bad[i].text);
        T_OK(v.hi == 77 && v.lo == 78);
    }
}

/* The longest text cut at every byte: a codec that pads reads what is left, one that is exact
 * refuses. */
T_TEST(codec_truncated)
{
    size_t n;
    const struct firn_codec *list = firn_codec_list(&n);
    for (size_t i = 0; i < n; i++) {
        char text[FIRN_CODEC_TEXT_BUF];
        size_t len;
        struct firn_u128 max = { UINT64_MAX, UINT64_MAX }, w;
        uint64_t v;
        T_EQ(firn_codec_encode128(&list[i], max, text, sizeof text, &len), 0);
        for (size_t cut = 0; cut < len; cut++) {
            int r = decode128(&list[i], text, cut, &w);
            if (cut == 0 || list[i].exact)
                T_EQ(r, FIRN_EFORMAT, "%s at %zu", list[i].name, cut);
            else if (!list[i].checked)
                T_EQ(r, 0, "%s at %zu", list[i].name, cut);
            (void)decode64(&list[i], text, cut, &v);
        }
    }
}

/* Only characters of the alphabet, their other case and Crockford's look-alikes are read. */
T_TEST(codec_every_byte)
{
    size_t n;
    const struct firn_codec *list = firn_codec_list(&n);
    for (size_t i = 0; i < n; i++)
        for (int b = 1; b < 256; b++) {
            char text[FIRN_CODEC_TEXT_BUF], c = (char)b;
            size_t len;
            uint64_t v;
            if (list[i].checked)
                continue;
            T_EQ(firn_codec_encode64(&list[i], 1, text, sizeof text, &len), 0);
            char *p = list[i].exact ? text + 3 : text + len - 1;
            *p = c;
            int lower = b >= 'a' && b <= 'z', upper = b >= 'A' && b <= 'Z';
            int known = strchr(list[i].alphabet, c) != NULL;
            if (list[i].any_case && (lower || upper))
                known |= strchr(list[i].alphabet, c ^ 0x20) != NULL;
            if (strcmp(list[i].name, "crockford") == 0)
                known |= strchr("iIlLoO", c) != NULL;
            T_EQ(decode64(&list[i], text, len, &v), known ? 0 : FIRN_EFORMAT, "%s byte %d",
                 list[i].name, b);
        }
}

T_TEST(codec_encode_mistakes)
{
    size_t n, len = 99;
    const struct firn_codec *list = firn_codec_list(&n);
    char text[FIRN_CODEC_TEXT_BUF];
    for (size_t i = 0; i < n; i++)
        for (size_t cap = 0; cap <= list[i].width64; cap++) {
            memset(text, 'x', sizeof text);
            T_EQ(firn_codec_encode64(&list[i], UINT64_MAX, text, cap, &len), FIRN_ENOSPC);
            T_OK(text[0] == 'x' && len == 99);
        }
    T_EQ(firn_codec_encode64(codec("decimal"), 7, text, 2, NULL), 0); /* just enough */
    T_STR(text, "7");
    T_EQ(firn_codec_encode64(codec("base62"), UINT64_MAX, text, 12, NULL), 0);
    struct firn_codec copy = list[0];
    struct firn_u128 w = { 0, 0 };
    uint64_t v;
    T_EQ(firn_codec_encode64(&copy, 1, text, sizeof text, NULL), FIRN_EINVAL);
    T_EQ(firn_codec_encode64(NULL, 1, text, sizeof text, NULL), FIRN_EINVAL);
    T_EQ(firn_codec_encode64(list, 1, NULL, 99, NULL), FIRN_EINVAL);
    T_EQ(firn_codec_encode128(NULL, w, text, sizeof text, NULL), FIRN_EINVAL);
    T_EQ(firn_codec_encode128(list, w, NULL, 99, NULL), FIRN_EINVAL);
    T_EQ(firn_codec_decode64(&copy, "1", 1, &v), FIRN_EINVAL);
    T_EQ(firn_codec_decode64(NULL, "1", 1, &v), FIRN_EINVAL);
    T_EQ(firn_codec_decode64(list + 1, NULL, 1, &v), FIRN_EINVAL);
    T_EQ(firn_codec_decode64(list, "1", 1, NULL), FIRN_EINVAL);
    T_EQ(firn_codec_decode128(NULL, "1", 1, &w), FIRN_EINVAL);
    T_EQ(firn_codec_decode128(list, "1", 1, NULL), FIRN_EINVAL);
}
