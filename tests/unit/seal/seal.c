#include "t.h"

#include <stdlib.h>

#include "firn/seal.h"

static const char alphabet[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const uint8_t zero_key[FIRN_SEAL_KEY_BYTES];

static struct firn_seal *with_keys(unsigned count)
{
    struct firn_seal *s = firn_seal_new();
    T_OK(s);
    for (unsigned i = 0; i < count; i++) {
        uint8_t key[FIRN_SEAL_KEY_BYTES];
        t_random_bytes(key, sizeof key);
        T_EQ(firn_seal_add_key(s, i, key), 0);
    }
    return s;
}

/* The 22 digits after the key's; false if they are 2^128 or more. */
static bool value_of(const char *text, unsigned __int128 *out)
{
    *out = 0;
    for (int at = 1; at < FIRN_SEAL_TEXT_LEN; at++) {
        unsigned __int128 digit = (unsigned)(strchr(alphabet, text[at]) - alphabet);
        if (__builtin_mul_overflow(*out, (unsigned __int128)58, out) ||
            __builtin_add_overflow(*out, digit, out))
            return false;
    }
    return true;
}

/* Plain blocks whose second half is zero are in NIST's AESAVS: VarTxt128 (zero key) has 8000.. and
 * c000.., VarKey128 (key 8000..) has the zero block. Their base58 was computed with other code. */
T_TEST(seal_known_answers)
{
    static const uint8_t high_bit_key[FIRN_SEAL_KEY_BYTES] = { 0x80 };
    char text[FIRN_SEAL_TEXT_BUF];
    struct firn_seal *s = firn_seal_new();
    T_EQ(firn_seal_add_key(s, 0, zero_key), 0);
    T_EQ(firn_seal_text(s, UINT64_C(0x8000000000000000), text), 0);
    T_STR(text, "18GS37dnNhDLfNeySm7jVxX"); /* 3ad78e726c1ec02b7ebfe92b23d9ec34 */
    T_EQ(firn_seal_text(s, UINT64_C(0xc000000000000000), text), 0);
    T_STR(text, "1N6yhuiGqVZGpXUAFFCP1J9"); /* aae5939c8efdf2f04e60b9fe7117b2c2 */
    T_EQ(firn_seal_add_key(s, 57, high_bit_key), 0);
    T_EQ(firn_seal_text(s, 0, text), 0);
    T_STR(text, "z2qTYydU88nAJtkVFV2Hb2w"); /* 0edd33d3c621e546455bd8ba1418bec8 */
    firn_seal_free(s);
}

T_TEST(seal_round_trip)
{
    struct firn_seal *s = with_keys(5);
    for (uint64_t i = 0, n = t_scale(50000); i < n; i++) {
        uint64_t id = i < 64 ? UINT64_C(1) << i : t_random() >> t_random_below(64), back = ~id;
        char text[FIRN_SEAL_TEXT_BUF];
        T_EQ(firn_seal_use_key(s, (unsigned)t_random_below(5)), 0);
        T_EQ(firn_seal_text(s, id, text), 0);
        T_EQ(strlen(text), FIRN_SEAL_TEXT_LEN);
        T_EQ(strspn(text, alphabet), FIRN_SEAL_TEXT_LEN, "text '%s'", text);
        T_EQ(firn_seal_open(s, text, FIRN_SEAL_TEXT_LEN, &back, NULL), 0, "text '%s'", text);
        T_OK(back == id, "%" PRIu64 " came back as %" PRIu64, id, back);
    }
    firn_seal_free(s);
}

/* Every byte at every place; all keys are present, so that the key's character is tried, too. */
T_TEST(seal_refuses_every_change)
{
    struct firn_seal *s = with_keys(FIRN_SEAL_KEY_ID_MAX + 1);
    for (uint64_t i = 0, n = t_scale(50); i < n; i++) {
        char text[FIRN_SEAL_TEXT_BUF];
        uint64_t id = t_random(), back = 77;
        T_EQ(firn_seal_use_key(s, (unsigned)t_random_below(FIRN_SEAL_KEY_ID_MAX + 1)), 0);
        T_EQ(firn_seal_text(s, id, text), 0);
        for (int at = 0; at < FIRN_SEAL_TEXT_LEN; at++) {
            char was = text[at];
            for (int c = 0; c < 256; c++) {
                text[at] = (char)c;
                if (text[at] == was)
                    continue;
                int r = firn_seal_open(s, text, FIRN_SEAL_TEXT_LEN, &back, NULL);
                unsigned __int128 v;
                bool well_formed = c != 0 && strchr(alphabet, c) && value_of(text, &v);
                T_EQ(r, well_formed ? FIRN_EAUTH : FIRN_EFORMAT, "'%s'", text);
                T_EQ(back, 77);
            }
            text[at] = was;
        }
        T_EQ(firn_seal_open(s, text, FIRN_SEAL_TEXT_LEN, &back, NULL), 0);
        T_OK(back == id);
    }
    firn_seal_free(s);
}

/* The block itself, bit by bit: 2^k more or less in the value. */
T_TEST(seal_refuses_every_bit)
{
    struct firn_seal *s = with_keys(1);
    for (uint64_t i = 0, n = t_scale(200); i < n; i++) {
        char text[FIRN_SEAL_TEXT_BUF];
        uint64_t back = 77;
        T_EQ(firn_seal_text(s, t_random(), text), 0);
        unsigned __int128 value;
        T_OK(value_of(text, &value));
        for (int bit = 0; bit < 128; bit++) {
            unsigned __int128 v = value ^ (unsigned __int128)1 << bit;
            for (int at = FIRN_SEAL_TEXT_LEN - 1; at > 0; at--, v /= 58)
                text[at] = alphabet[v % 58];
            T_EQ(firn_seal_open(s, text, FIRN_SEAL_TEXT_LEN, &back, NULL), FIRN_EAUTH, "bit %d",
                 bit);
            T_EQ(back, 77);
        }
    }
    firn_seal_free(s);
}

T_TEST(seal_refuses_malformed)
{
    static const struct {
        const char *text;
        size_t column;
    } bad[] = {
        { "", 0 },
        { "1", 0 },
        { "18GS37dnNhDLfNeySm7jVx", 0 },    /* short */
        { "18GS37dnNhDLfNeySm7jVxX1", 0 },  /* long */
        { " 18GS37dnNhDLfNeySm7jVx", 1 },   /* blank */
        { "18GS37dnNhDLfNeySm7jVx\n", 23 }, /* line end */
        { "18GS37dnNh0LfNeySm7jVxX", 11 },  /* 0 is no digit */
        { "l8GS37dnNhDLfNeySm7jVxX", 1 },   /* nor l, for the key */
        { "1YcVfxkQb6JRzqk5kF2tNLw", 2 },   /* 2^128 */
        { "1zzzzzzzzzzzzzzzzzzzzzz", 2 },   /* the largest text */
        { "zzzzzzzzzzzzzzzzzzzzzzz", 2 },   /* malformed comes before unknown key */
    };
    struct firn_seal *s = firn_seal_new();
    T_EQ(firn_seal_add_key(s, 0, zero_key), 0);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_diag diag = { 99, "" };
        uint64_t back = 77;
        size_t len = strlen(bad[i].text);
        char *exact = malloc(len + !len); /* sanitizers see a read past its end */
        memcpy(exact, bad[i].text, len);
        T_EQ(firn_seal_open(s, exact, len, &back, &diag), FIRN_EFORMAT, "'%s'", bad[i].text);
        free(exact);
        T_EQ(diag.column, bad[i].column, "'%s'", bad[i].text);
        T_OK(diag.text[0] != '\0');
        T_EQ(back, 77);
    }
    uint64_t back = 77;
    T_EQ(firn_seal_open(s, "1YcVfxkQb6JRzqk5kF2tNLv", 23, &back, NULL), FIRN_EAUTH, "2^128 - 1");
    T_EQ(firn_seal_open(s, "11111111111111111111111", 23, &back, NULL), FIRN_EAUTH, "0");
    T_EQ(back, 77);
    firn_seal_free(s);
}

T_TEST(seal_rotation)
{
    char old_text[FIRN_SEAL_TEXT_BUF], new_text[FIRN_SEAL_TEXT_BUF], again[FIRN_SEAL_TEXT_BUF];
    uint8_t new_key[FIRN_SEAL_KEY_BYTES] = { 1, 2, 3 };
    uint64_t id = 0;
    struct firn_diag diag;
    struct firn_seal *s = firn_seal_new();
    T_EQ(firn_seal_text(s, 42, old_text), FIRN_ENOENT, "no key yet");
    T_EQ(firn_seal_add_key(s, 3, zero_key), 0);
    T_EQ(firn_seal_text(s, 42, old_text), 0);
    T_EQ(firn_seal_add_key(s, 4, new_key), 0);
    T_EQ(firn_seal_text(s, 42, new_text), 0);
    T_EQ(old_text[0], '4');
    T_EQ(new_text[0], '5');
    T_OK(strcmp(old_text + 1, new_text + 1) != 0);
    T_EQ(firn_seal_open(s, old_text, FIRN_SEAL_TEXT_LEN, &id, NULL), 0);
    T_EQ(id, 42);
    id = 0;
    T_EQ(firn_seal_open(s, new_text, FIRN_SEAL_TEXT_LEN, &id, NULL), 0);
    T_EQ(id, 42);

    T_EQ(firn_seal_use_key(s, 5), FIRN_ENOENT);
    T_EQ(firn_seal_use_key(s, 58), FIRN_ENOENT);
    T_EQ(firn_seal_use_key(s, 3), 0);
    T_EQ(firn_seal_text(s, 42, again), 0);
    T_STR(again, old_text, "the same key gives the same text");
    firn_seal_free(s);

    s = firn_seal_new(); /* the old key is retired */
    T_EQ(firn_seal_add_key(s, 4, new_key), 0);
    id = 77;
    T_EQ(firn_seal_open(s, old_text, FIRN_SEAL_TEXT_LEN, &id, &diag), FIRN_ENOENT);
    T_STR(diag.text, "sealed with key 3, which is not here");
    old_text[0] = '5'; /* and naming another key does not help */
    T_EQ(firn_seal_open(s, old_text, FIRN_SEAL_TEXT_LEN, &id, &diag), FIRN_EAUTH);
    T_EQ(id, 77);
    firn_seal_free(s);
}

T_TEST(seal_add_key_refuses)
{
    uint8_t key[FIRN_SEAL_KEY_BYTES] = { 9 };
    char before[FIRN_SEAL_TEXT_BUF], after[FIRN_SEAL_TEXT_BUF];
    struct firn_seal *s = with_keys(2);
    T_EQ(firn_seal_text(s, 1, before), 0);
    T_EQ(firn_seal_add_key(s, 58, key), FIRN_EINVAL);
    T_EQ(firn_seal_add_key(s, 1, key), FIRN_EINVAL, "taken");
    T_EQ(firn_seal_add_key(NULL, 5, key), FIRN_EINVAL);
    T_EQ(firn_seal_add_key(s, 5, NULL), FIRN_EINVAL);
    T_EQ(firn_seal_text(s, 1, after), 0);
    T_STR(before, after);
    T_EQ(firn_seal_add_key(s, 5, key), 0);
    T_EQ(firn_seal_add_key(s, 6, key), FIRN_EINVAL, "the same key under another id");
    T_EQ(firn_seal_use_key(s, 6), FIRN_ENOENT);
    firn_seal_free(s);
    firn_seal_free(NULL);
}

T_TEST(seal_from_text_reads)
{
    static const char file[] = "# keys of the shop\n"
                               "\n"
                               "0:00000000000000000000000000000000   # 2025\r\n"
                               "\t 57:80000000000000000000000000000000 \n"
                               "   # the end\n"
                               "9:000102030405060708090A0B0C0D0e0f"; /* no line end */
    static const uint8_t nine[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    struct firn_seal *s = NULL, *other = firn_seal_new();
    struct firn_diag diag;
    char text[FIRN_SEAL_TEXT_BUF], expect[FIRN_SEAL_TEXT_BUF];
    uint64_t id = 77;
    T_EQ(firn_seal_from_text(file, sizeof file - 1, &s, &diag), 0);
    T_EQ(firn_seal_open(s, "18GS37dnNhDLfNeySm7jVxX", 23, &id, NULL), 0);
    T_OK(id == UINT64_C(0x8000000000000000));
    T_EQ(firn_seal_open(s, "z2qTYydU88nAJtkVFV2Hb2w", 23, &id, NULL), 0);
    T_EQ(id, 0);
    T_EQ(firn_seal_text(s, 5, text), 0); /* the last key is the current one */
    T_EQ(firn_seal_add_key(other, 9, nine), 0);
    T_EQ(firn_seal_text(other, 5, expect), 0);
    T_STR(text, expect);
    firn_seal_free(s);
    firn_seal_free(other);
}

#define K "00112233445566778899aabbccddeeff"

T_TEST(seal_from_text_refuses)
{
    static const struct {
        const char *text;
        size_t column;
        const char *says;
    } bad[] = {
        { "", 0, "no key" },
        { "# 1:" K "\n\n", 0, "no key" },
        { ":" K, 1, "line 1: a line begins" },
        { "\n58:" K, 1, "line 2: a line begins" },
        { "01:" K, 1, "line 1: a line begins" },
        { "-1:" K, 1, "line 1: a line begins" },
        { "100:" K, 3, "line 1: after the key id" },
        { "1" K, 3, "line 1: after the key id" },
        { "1 :" K, 2, "line 1: after the key id" },
        { "1", 2, "line 1: after the key id" },
        { "1:", 3, "line 1: a key is 32" },
        { "\n\n  1: " K, 5, "line 3: a key is 32" },
        { "1:00112233445566778899aabbccddeef", 34, "line 1: a key is 32" },
        { "1:00112233445566778899aabbccddeefg", 34, "line 1: a key is 32" },
        { "1:" K "0", 35, "line 1: something follows" },
        { "1:" K " 2:" K, 35, "line 1: something follows" },
        { "1:" K "\n1:00000000000000000000000000000000", 1, "line 2: key id 1 comes twice" },
        { "1:" K "\n 2:" K, 2, "line 2: the key of id 2 is already there" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_seal *s = NULL;
        struct firn_diag diag = { 99, "" };
        size_t len = strlen(bad[i].text);
        char *exact = malloc(len + !len);
        memcpy(exact, bad[i].text, len);
        T_EQ(firn_seal_from_text(exact, len, &s, &diag), FIRN_EFORMAT, "'%s'", bad[i].text);
        free(exact);
        T_OK(!s);
        T_OK(strstr(diag.text, bad[i].says), "'%s' says '%s'", bad[i].text, diag.text);
        T_OK(!strstr(diag.text, "0011"), "a message must not repeat a key");
        T_EQ(diag.column, bad[i].column, "'%s'", bad[i].text);
        T_EQ(firn_seal_from_text(bad[i].text, len, &s, NULL), FIRN_EFORMAT);
    }
    struct firn_seal *s;
    T_EQ(firn_seal_from_text(NULL, 0, &s, NULL), FIRN_EINVAL);
    T_EQ(firn_seal_from_text("", 0, NULL, NULL), FIRN_EINVAL);
}
