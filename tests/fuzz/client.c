/* libfirn-client's readers: a URL, an answer over HTTP, an answer over RESP, and a sequence as
 * JSON. */
#include "client/http1.h"
#include "client/internal.h"
#include "client/resp2.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum request_kind whats[] = { REQUEST_NUMBERS, REQUEST_TEXT, REQUEST_GET };
    if (size == 0)
        return 0;
    struct request q = { .kind = whats[data[0] % 3], .n = data[0] & 4 ? 1000 : 1 };
    struct response a = { 0 };
    char *p = malloc(size);
    memcpy(p, data + 1, size - 1);
    p[size - 1] = '\0';
    struct client_opts *o = malloc(sizeof *o);
    struct firn_diag d;
    long used = 0;
    switch (data[0] >> 3 & 3) {
    case 0:
        if (client_url_parse(p, o, &d) == 0 && (o->servers == 0 || o->servers > SERVERS_MAX))
            abort();
        break;
    case 1:
        used = http1_read(p, size - 1, &q, &a);
        break;
    case 2:
        if (q.kind != REQUEST_GET)
            used = resp2_read(p, size - 1, data[0] & 32, &q, &a);
        break;
    default:
        sequence_read(p, size - 1);
        break;
    }
    if (used > (long)size - 1 || a.numbers.numbers > q.n)
        abort();
    runs_free(&a.numbers);
    free(o);
    free(p);
    return 0;
}
