/* A server's answer: head and body read piece by piece, cut anywhere, give what the reader of whole
 * answers gives. */
#include <stdlib.h>
#include <string.h>

#include "wire/http_body.h"
#include "wire/http_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

/* Returns bytes used when it is done, else 0 or FIRN_EFORMAT; data to `out`. */
static ssize_t by_pieces(const char *p, size_t size, size_t step, char *out, size_t *out_len)
{
    static struct http_response r;
    struct http_body b = { .done = false };
    size_t at = 0, end = 0;
    bool head = true;
    for (*out_len = 0; end < size || at < end;) {
        end = end + step < size ? end + step : size;
        ssize_t n;
        struct slice piece = { NULL, 0 };
        if (head) {
            n = http_response_next(p + at, end - at, &r);
            if (n == FIRN_EAGAIN)
                n = 0;
            if (n > 0 && r.status == 101)
                return FIRN_EFORMAT;
            if (n > 0 && r.status >= 200) {
                head = false;
                http_body_begin(&b, r.framing, r.body_len);
            }
        } else {
            n = http_body_next(&b, p + at, end - at, &piece);
        }
        if (n < 0)
            return n;
        memcpy(out + *out_len, piece.p ? piece.p : "", piece.len);
        *out_len += piece.len;
        at += (size_t)n;
        if (b.done)
            return (ssize_t)at;
        if (n == 0 && end == size)
            return 0;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_response r;
    if (size < 1 || size > 100000)
        return 0;
    size_t step = data[0] % 64 + 1u, len, len2;
    const char *text = (const char *)data + 1;
    size--;
    char *exact = malloc(size + 1), *whole = malloc(size + 1), *out = malloc(size + 1);
    char *out2 = malloc(size + 1);
    memcpy(exact, text, size);
    memcpy(whole, text, size);
    ssize_t n = by_pieces(exact, size, step, out, &len);
    ssize_t m = by_pieces(exact, size, size ? size : 1, out2, &len2);
    check((n > 0) == (m > 0) && (n <= 0 || (n == m && len == len2 && memcmp(out, out2, len) == 0)));
    ssize_t used = http_response_read(whole, size, false, &r);
    if (used > 0 && n > 0)
        check(used == n && r.body.len == len && memcmp(r.body.p, out, len) == 0);
    if (used > 0 && r.interim == 0)
        check(n > 0);
    free(exact);
    free(whole);
    free(out);
    free(out2);
    return 0;
}
