/* Whatever a record parser takes is exactly what the encoder writes. */
#include "coord/record.h"

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
    struct meta_record m;
    struct slot_record s;
    struct seq_record q;
    struct seq_keys keys;
    struct idem_record i;
    if (meta_parse(p, size, &m, &d) == 0)
        same(data, size, text, meta_encode(&m, text));
    if (slot_parse(p, size, &s, &d) == 0)
        same(data, size, text, slot_encode(&s, text));
    if (seq_parse_keyed(p, size, &q, &keys, &d) == 0)
        same(data, size, text, seq_encode_keyed(&q, &keys, text));
    if (idem_parse(p, size, &i, &d) == 0)
        same(data, size, text, idem_encode(&i, text));
    return 0;
}
