/*
 * PROXY protocol headers: what is read is read the same way with bytes behind it, is not whole with
 * fewer, and its addresses survive being written.
 */
#include "wire/proxy_protocol.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_header h, again;
    char out[PROXY_WRITE_MAX], *p = malloc(size ? size : 1);
    check(p != NULL);
    if (size)
        memcpy(p, data, size);
    ssize_t n = proxy_header_read(p, size, &h);
    check(n == FIRN_EAGAIN || n == FIRN_EFORMAT ||
          (n > 0 && (size_t)n <= size && n <= PROXY_READ_MAX));
    if (n > 0) {
        check(proxy_header_read(p, (size_t)n, &again) == n);
        check(memcmp(&h, &again, sizeof h) == 0);
        check(proxy_header_read(p, (size_t)n - 1, &again) == FIRN_EAGAIN);
    }
    if (n > 0 && h.told) {
        size_t len = proxy_header_write((struct sockaddr *)&h.from, (struct sockaddr *)&h.to, out);
        check(len > 16 && proxy_header_read(out, len, &again) == (ssize_t)len && again.told);
        check(memcmp(&h.from, &again.from, sizeof h.from) == 0);
    }
    free(p);
    return 0;
}
