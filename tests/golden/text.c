/*
 * Values in every codec, computed by other programs: JavaScript's BigInt for decimal, hex and
 * base36, its Buffer for base64url, npm's @scure/base and base32.js for base32hex, bs58 for base58,
 * base-x for base62. Crockford's base32 of a number is what ULID writes; the check symbol is his:
 * value mod 37.
 */
#include "t.h"

#include "firn/text.h"

enum { CODECS = 9 };

static const char *const names[CODECS] = { "decimal",         "hex",       "crockford",
                                           "crockford-check", "base32hex", "base36",
                                           "base58",          "base62",    "base64url" };

static const struct {
    uint64_t v;
    const char *text[CODECS];
} golden64[] = {
    { 0x0000000000000000,
      { "0", "0000000000000000", "0000000000000", "00000000000000", "0000000000000",
        "0000000000000", "11111111111", "00000000000", "AAAAAAAAAAA" } },
    { 0x0000000000000001,
      { "1", "0000000000000001", "0000000000001", "00000000000011", "0000000000002",
        "0000000000001", "11111111112", "00000000001", "AAAAAAAAAAE" } },
    { 0x7fffffffffffffff,
      { "9223372036854775807", "7fffffffffffffff", "7ZZZZZZZZZZZZ", "7ZZZZZZZZZZZZ5",
        "FVVVVVVVVVVVU", "1y2p0ij32e8e7", "NQm6nKp8qFC", "AzL8n0Y58m7", "f_________8" } },
    { 0xffffffffffffffff,
      { "18446744073709551615", "ffffffffffffffff", "FZZZZZZZZZZZZ", "FZZZZZZZZZZZZB",
        "VVVVVVVVVVVVU", "3w5e11264sgsf", "jpXCZedGfVQ", "LygHa16AHYF", "__________8" } },
    { 0x0123456789abcdef,
      { "81985529216486895", "0123456789abcdef", "028T5CY4TQKFF", "028T5CY4TQKFFA", "04HKAPS9LF6UU",
        "00mf9g063v08f", "1C3CPq7c8PY", "063UfDVRKBz", "ASNFZ4mrze8" } },
    { 0x1565a11f6217a000,
      { "1541815603606036480", "1565a11f6217a000", "1ASD13XH1F800", "1ASD13XH1F800B",
        "2LIQ27R22UG00", "0bppc0m3ju134", "4aaW4SzAyQK", "1ptWyK4WgZU", "FWWhH2IXoAA" } },
};

static const struct {
    struct firn_u128 v;
    const char *text[CODECS];
} golden128[] = {
    { { 0x0000000000000000, 0x0000000000000000 },
      { "0", "00000000000000000000000000000000", "00000000000000000000000000",
        "000000000000000000000000000", "00000000000000000000000000", "0000000000000000000000000",
        "1111111111111111111111", "0000000000000000000000", "AAAAAAAAAAAAAAAAAAAAAA" } },
    { { 0x0000000000000000, 0x0000000000000001 },
      { "1", "00000000000000000000000000000001", "00000000000000000000000001",
        "000000000000000000000000011", "00000000000000000000000004", "0000000000000000000000001",
        "1111111111111111111112", "0000000000000000000001", "AAAAAAAAAAAAAAAAAAAAAQ" } },
    { { 0x0000000000000000, 0xffffffffffffffff },
      { "18446744073709551615", "0000000000000000ffffffffffffffff", "0000000000000FZZZZZZZZZZZZ",
        "0000000000000FZZZZZZZZZZZZB", "0000000000001VVVVVVVVVVVVS", "0000000000003w5e11264sgsf",
        "11111111111jpXCZedGfVQ", "00000000000LygHa16AHYF", "AAAAAAAAAAD__________w" } },
    { { 0x0000000000000001, 0x0000000000000000 },
      { "18446744073709551616", "00000000000000010000000000000000", "0000000000000G000000000000",
        "0000000000000G000000000000C", "00000000000020000000000000", "0000000000003w5e11264sgsg",
        "11111111111jpXCZedGfVR", "00000000000LygHa16AHYG", "AAAAAAAAAAEAAAAAAAAAAA" } },
    { { 0x0123456789abcdef, 0xfedcba9876543210 },
      { "1512366075204170947332355369683137040", "0123456789abcdeffedcba9876543210",
        "014D2PF2DBSQQZXQ5TK1V58CGG", "014D2PF2DBSQQZXQ5TK1V58CGGA", "04HKAPS9LF6UVVMSNAC7CL1I20",
        "02fapl4n1azs9fhghwz46aryo", "199dn6s7bZpEGBoKc7YnPh", "0296tiiBb3UUmdjYQ3ySu0",
        "ASNFZ4mrze_-3LqYdlQyEA" } },
    { { 0xffffffffffffffff, 0xffffffffffffffff },
      { "340282366920938463463374607431768211455", "ffffffffffffffffffffffffffffffff",
        "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ*", "VVVVVVVVVVVVVVVVVVVVVVVVVS",
        "f5lxx1zz5pnorynqglhzmsp33", "YcVfxkQb6JRzqk5kF2tNLv", "7n42DGM5Tflk9n8mt7Fhc7",
        "_____________________w" } },
    { { 0x01563e3ab5d3d676, 0x4c61efb99302bd5b }, /* the ULID specification's example */
      { "1777027686520646174104517696511196507", "01563e3ab5d3d6764c61efb99302bd5b",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV$", "05B3SELLQFB7CJ31TUSP60LTBC",
        "02ukohbn3kw46609nd56rlkd7", "1AaLyDYFxmKZxXbNo18znE", "02WP8qFtGJTkHk10j5u4aZ",
        "AVY-OrXT1nZMYe-5kwK9Ww" } },
};

T_TEST(text_golden64)
{
    for (size_t k = 0; k < CODECS; k++) {
        const struct firn_codec *c = firn_codec_find(names[k], strlen(names[k]));
        T_OK(c != NULL, "%s", names[k]);
        for (size_t i = 0; i < T_LEN(golden64); i++) {
            char text[FIRN_CODEC_TEXT_BUF];
            size_t len;
            uint64_t back = ~golden64[i].v;
            T_EQ(firn_codec_encode64(c, golden64[i].v, text, sizeof text, &len), 0);
            T_STR(text, golden64[i].text[k], "%s", c->name);
            T_EQ(len, strlen(text));
            T_EQ(firn_codec_decode64(c, text, len, &back), 0, "%s '%s'", c->name, text);
            T_EQ(back, golden64[i].v, "%s '%s'", c->name, text);
        }
    }
}

T_TEST(text_golden128)
{
    for (size_t k = 0; k < CODECS; k++) {
        const struct firn_codec *c = firn_codec_find(names[k], strlen(names[k]));
        T_OK(c != NULL, "%s", names[k]);
        for (size_t i = 0; i < T_LEN(golden128); i++) {
            char text[FIRN_CODEC_TEXT_BUF];
            size_t len;
            struct firn_u128 back = { 7, 7 };
            T_EQ(firn_codec_encode128(c, golden128[i].v, text, sizeof text, &len), 0);
            T_STR(text, golden128[i].text[k], "%s", c->name);
            T_EQ(len, strlen(text));
            T_EQ(firn_codec_decode128(c, text, len, &back), 0, "%s '%s'", c->name, text);
            T_EQ(back.hi, golden128[i].v.hi, "%s '%s'", c->name, text);
            T_EQ(back.lo, golden128[i].v.lo, "%s '%s'", c->name, text);
        }
    }
}
