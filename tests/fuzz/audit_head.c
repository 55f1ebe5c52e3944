/*
 * A head is any bytes: as text or binary it is refused, or it is a head whose one form these bytes
 * are.
 */
#include "auditlog/head.h"

#include <stdlib.h>
#include <string.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head h, back;
    struct head_sig sig;
    struct firn_diag d = { 0, "" };
    uint8_t bytes[HEAD_BYTES_MAX];
    char text[HEAD_TEXT_BUF];
    int r = head_read((struct slice){ (const char *)data, size }, &h, &sig, &d);
    if (r) {
        check(r == FIRN_EFORMAT && d.text[0]);
    } else {
        check(head_write(&h, &sig, text) == size && memcmp(text, data, size) == 0);
        size_t n = head_encode(&h, bytes);
        check(head_decode(bytes, n, &back) == 0);
    }
    if (head_decode(data, size, &h) == 0) {
        check(head_encode(&h, bytes) == size && memcmp(bytes, data, size) == 0);
        size_t n = head_write(&h, NULL, text);
        check(head_read((struct slice){ text, n }, &back, &sig, &d) == 0 && !sig.there);
    }
    return 0;
}
