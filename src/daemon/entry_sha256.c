/* A SHA-256 in an entry of a configuration. Tested in tests/unit/server/config.c. */
#include "daemon/entry_sha256.h"
#include "id/hex.h"

#include <string.h>

static int read_sha256(const struct entry_reader *r, const struct entry_key *k,
                       const struct config_strings *from, void *at)
{
    uint8_t *out = at;
    const char *text = from->v[0]; /* it is not missing */
    bool ok = strlen(text) == 64;
    for (size_t i = 0; ok && i < 32; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        ok = high >= 0 && low >= 0;
        out[i] = (uint8_t)(ok ? high << 4 | low : 0);
    }
    return ok ? 0
              : entry_blame(r, k->name,
                            "these are not the 64 hex digits that printf %%s TOKEN | sha256sum "
                            "prints");
}

static void write_sha256(const struct entry_key *k, const void *at, FILE *out)
{
    const uint8_t *sum = at;
    (void)k;
    fputc('"', out);
    for (size_t i = 0; i < 32; i++)
        fprintf(out, "%02x", sum[i]);
    fputc('"', out);
}

const struct entry_type entry_sha256 = { false, read_sha256, NULL, write_sha256, NULL };
