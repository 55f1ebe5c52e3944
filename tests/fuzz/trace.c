/*
 * Trace context and request IDs: any bytes are read without reading past them; a traceparent that
 * is taken is written as version 00 and read again as the same; of version 00 the bytes are the
 * same, too, but for flags that were dropped. What may be echoed holds no byte that could end a
 * header line.
 */
#include "wire/trace.h"

#include <stdlib.h>

static void check(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = malloc(size ? size : 1), out[TRACE_PARENT_BUF];
    struct trace_parent t, again;
    check(exact);
    memcpy(exact, data, size); /* so that ASan sees a read past the end */
    struct slice text = { exact, size };
    if (trace_parent_read(text, &t) == 0) {
        trace_parent_write(&t, out);
        check(strlen(out) == TRACE_PARENT_BUF - 1);
        check(trace_parent_read((struct slice){ out, strlen(out) }, &again) == 0);
        check(memcmp(t.trace, again.trace, sizeof t.trace) == 0);
        check(memcmp(t.span, again.span, sizeof t.span) == 0 && t.flags == again.flags);
        check(memcmp(out + 2, exact + 2, TRACE_PARENT_BUF - 1 - 4) == 0);
    }
    bool state = trace_state_ok(text), id = request_id_ok(text);
    for (size_t i = 0; i < size; i++) {
        check(!id || (exact[i] > ' ' && exact[i] <= '~'));
        check(!state || exact[i] == '\t' || (exact[i] >= ' ' && exact[i] <= '~'));
    }
    free(exact);
    return 0;
}
