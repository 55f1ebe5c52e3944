/* Any bytes: the parser stays inside them, and a piece of a request is never anything but
 * unfinished. */
#include "wire/resp.h"

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
    static struct resp_request req;
    char err[RESP_ERROR_BUF] = "", *p = malloc(size ? size : 1);
    check(p != NULL);
    memcpy(p, data, size);
    size_t at = 0;
    while (at < size) { /* as a connection does: one after the other */
        ssize_t used = resp_parse(p + at, size - at, &req, err);
        check(used == FIRN_EAGAIN || used == FIRN_EFORMAT ||
              (used > 0 && (size_t)used <= size - at));
        if (used == FIRN_EFORMAT)
            check(strncmp(err, "Protocol error: ", 16) == 0);
        if (used <= 0)
            break;
        check(req.argc <= RESP_ARGS_MAX);
        for (size_t i = 0; i < req.argc; i++) {
            int64_t v;
            check(req.argv[i].p >= p + at && req.argv[i].p + req.argv[i].len <= p + at + used);
            if (resp_i64(req.argv[i], &v) == 0) {
                struct buf b;
                buf_init(&b, 64);
                buf_add_i64(&b, v);
                check(b.len == req.argv[i].len && memcmp(b.p, req.argv[i].p, b.len) == 0);
                buf_done(&b);
            }
        }
        memcpy(p, data, size); /* an inline command was unescaped in place */
        for (size_t cut = 0; cut < (size_t)used; cut += 1 + (size_t)used / 16)
            check(resp_parse(p + at, cut, &req, err) == FIRN_EAGAIN);
        at += (size_t)used;
    }
    free(p);
    return 0;
}
