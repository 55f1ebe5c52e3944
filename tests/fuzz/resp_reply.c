/* A Redis server's replies: read without touching what is behind them, and a shorter piece of a
 * value is never anything but unfinished. */
#include "wire/resp_reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct resp_value v, part;
    size_t at = 0;
    if (size > 128 * 1024)
        return 0;
    while (at < size) {
        char *exact = malloc(size - at);
        check(exact != NULL);
        memcpy(exact, data + at, size - at);
        ssize_t used = resp_reply(exact, size - at, &v);
        check(used == FIRN_EAGAIN || used == FIRN_EFORMAT ||
              (used > 0 && (size_t)used <= size - at));
        if (used > 0) {
            check(v.members <= 2 * RESP_REPLY_ELEMENTS_MAX); /* pairs of a map are two */
            check(!v.text.p || (v.text.p >= exact && v.text.p + v.text.len <= exact + used));
            for (size_t cut = 0; cut < (size_t)used; cut += 1 + (size_t)used / 16)
                check(resp_reply(exact, cut, &part) == FIRN_EAGAIN);
        }
        free(exact);
        if (used <= 0)
            break;
        at += (size_t)used;
    }
    return 0;
}
