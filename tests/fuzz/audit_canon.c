/*
 * JSON is any bytes: it has one form or none. Spaces around it and another array around it do not
 * change the form of what is inside, and the output is left as it was when it is refused.
 */
#include "auditlog/canon.h"

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
    static struct canon canon;
    struct buf one = { .max = 64 * 1024 * 1024 }, two = one;
    buf_add(&one, "[", 1);
    int r = canon_json(&canon, (struct slice){ (const char *)data, size }, &one);
    check(r == 0 || (r == FIRN_EFORMAT && one.len == 1));
    char *wide = malloc(size + 4);
    check(wide != NULL);
    memcpy(wide, " [", 2);
    memcpy(wide + 2, data, size);
    memcpy(wide + 2 + size, "] ", 2);
    if (canon_json(&canon, (struct slice){ wide, size + 4 }, &two) == 0 && r == 0)
        check(two.len == one.len + 1 && two.p[0] == 'a' && two.p[two.len - 1] == 'e' &&
              memcmp(two.p + 1, one.p + 1, one.len - 1) == 0);
    free(wide);
    buf_done(&one);
    buf_done(&two);
    canon_done(&canon);
    return 0;
}
