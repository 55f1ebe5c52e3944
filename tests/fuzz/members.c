/* Whatever a parser of members, queues and config values takes is exactly what its encoder
 * writes. */
#include "coord/queue.h"
#include "drive/variable.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const uint8_t *data, size_t size, const char *text, size_t len)
{
    if (len != size || memcmp(text, data, len) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    char text[RECORD_TEXT_MAX];
    struct firn_diag d;
    struct member_record m;
    struct queue_record q;
    struct variable v;
    if (member_parse(p, size, &m, &d) == 0)
        same(data, size, text, member_encode(&m, text));
    if (queue_parse(p, size, &q, &d) == 0)
        same(data, size, text, queue_encode(&q, text));
    if (variable_parse(p, size, &v, &d) == 0)
        same(data, size, text, variable_encode(&v, text));
    return 0;
}
