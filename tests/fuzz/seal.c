/* firn_seal_open() on any text: what opens must be exactly what sealing gives. And key files. */
#include <stdlib.h>
#include <string.h>

#include "firn/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

static struct firn_seal *seal_new(void)
{
    static const uint8_t key[2][FIRN_SEAL_KEY_BYTES] = { { 0 }, { 0x80 } };
    struct firn_seal *s = firn_seal_new();
    check(s && firn_seal_add_key(s, 0, key[0]) == 0 && firn_seal_add_key(s, 57, key[1]) == 0);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct firn_seal *s; /* kept: making one costs far more than opening */
    if (!s)
        s = seal_new();
    const char *text = (const char *)data;
    uint64_t id = 77;
    struct firn_diag diag;
    int r = firn_seal_open(s, text, size, &id, &diag);
    if (r == 0) {
        char again[FIRN_SEAL_TEXT_BUF];
        check(firn_seal_use_key(s, text[0] == '1' ? 0 : 57) == 0);
        check(firn_seal_text(s, id, again) == 0);
        check(size == FIRN_SEAL_TEXT_LEN && memcmp(again, text, size) == 0);
    } else {
        check(id == 77 && (r == FIRN_EFORMAT || r == FIRN_EAUTH || r == FIRN_ENOENT));
    }

    struct firn_seal *keys = NULL;
    r = firn_seal_from_text(text, size, &keys, &diag);
    check(r == 0 ? keys != NULL : keys == NULL && r == FIRN_EFORMAT);
    firn_seal_free(keys);
    return 0;
}
