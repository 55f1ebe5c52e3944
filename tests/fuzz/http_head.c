/* A request's head: read without touching what is behind it, the same in pieces, and where firnd's
 * own reader takes the request, too, both read the same. */
#include <stdlib.h>
#include <string.h>

#include "wire/http_body.h"
#include "wire/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

static int same(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_head h, part;
    struct http_error err, other;
    struct http_request req;
    char *p = malloc(size ? size : 1), *copy = malloc(size ? size : 1);
    memcpy(p, data, size);
    memcpy(copy, data, size);
    ssize_t n = http_head_read(p, size, &h, &err);
    ssize_t used = http_parse(copy, size, &req, &other);
    check(n > 0 || n == FIRN_EAGAIN || n == FIRN_EFORMAT);
    if (n > 0) {
        check((size_t)n <= size && h.framing != FRAMED_BY_CLOSE);
        check(http_head_read(p, (size_t)n - 1, &part, &err) == FIRN_EAGAIN);
        struct http_body b;
        struct slice piece;
        size_t at = (size_t)n, sum = 0;
        http_body_begin(&b, h.framing, h.body_len);
        ssize_t step = 1;
        while (!b.done && at < size && step > 0) {
            step = http_body_next(&b, p + at, size - at, &piece);
            at += step > 0 ? (size_t)step : 0;
            sum += piece.len;
        }
        /* firnd refuses fewer methods, shorter bodies, and what llhttp doubts; nothing else. */
        if (used == FIRN_EFORMAT && b.done)
            check(other.status == 501 || other.status == 413);
        if (used > 0) { /* firnd takes it: the same request, and it ends at the same place */
            check(b.done && at == (size_t)used && sum == req.body.len);
            check(same(h.path, req.path) && same(h.query, req.query) && same(h.host, req.host));
            check(h.minor == req.minor && h.keep_alive == req.keep_alive);
        }
    } else {
        check(used <= 0); /* nothing passes firnd that is refused here */
    }
    free(p);
    free(copy);
    return 0;
}
