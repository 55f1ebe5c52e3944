/*
 * Base 36 by division. A number of 512 bits is sixteen words; one pass divides it by 36^6, the
 * largest power that fits a word, and the remainder gives six digits. Passes skip words that became
 * zero. Tested in tests/golden/cuid2.c.
 */
#include "id/base36.h"
#include "id/bytes.h"

enum { WORDS = 16, GROUP = 6 };
#define GROUP_VALUE UINT64_C(2176782336) /* 36^6 */

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* Write `text` from `at` on to `out` without its leading zeros. */
static size_t trim(const char *text, size_t at, size_t len, char *out)
{
    while (at < len - 1 && text[at] == '0')
        at++;
    memcpy(out, text + at, len - at);
    return len - at;
}

size_t firn__base36_u64(uint64_t v, char out[FIRN__BASE36_U64_MAX])
{
    char text[FIRN__BASE36_U64_MAX];
    size_t at = sizeof text;
    do {
        text[--at] = digits[v % 36];
        v /= 36;
    } while (v > 0);
    return trim(text, at, sizeof text, out);
}

size_t firn__base36_512(const uint8_t bytes[64], char out[FIRN__BASE36_512_MAX])
{
    uint32_t words[WORDS];
    char text[(FIRN__BASE36_512_MAX + GROUP - 1) / GROUP * GROUP];
    size_t at = sizeof text;
    for (int i = 0; i < WORDS; i++)
        words[i] = load_be32(bytes + 4 * i);
    for (int top = 0; top < WORDS;) {
        uint64_t rest = 0;
        for (int i = top; i < WORDS; i++) {
            rest = rest << 32 | words[i];
            words[i] = (uint32_t)(rest / GROUP_VALUE);
            rest %= GROUP_VALUE;
        }
        for (int i = 0; i < GROUP; i++, rest /= 36)
            text[--at] = digits[rest % 36];
        while (top < WORDS && words[top] == 0)
            top++;
    }
    return trim(text, at, sizeof text, out);
}
