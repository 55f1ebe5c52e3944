/*
 * Any bytes as a body: what is taken is JSON again, without the members that are dropped, and
 * mapping it with no rules changes nothing. What stands before the first NUL is one more name
 * to drop.
 */
#include "proxy/json_map.h"
#include "wire/json_read.h"

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
    struct json_map_rule rules[4] = { { "password", NULL }, { "id", "key" }, { "user.id", NULL } };
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    struct firn_diag why = { 0, "" };
    struct json_reader j;
    struct buf once, again;
    if (!end)
        return 0;
    rules[3].path = (const char *)data;
    size_t n = json_map_wrong(rules, 4) ? 3 : 4;
    const char *body = (const char *)end + 1;
    size_t len = size - (size_t)(end + 1 - data);
    buf_init(&once, 1 << 20);
    buf_init(&again, 1 << 20);
    int r = json_map(rules, n, body, len, &once, &why);
    check(r == 0 || (r == FIRN_EFORMAT && why.text[0]));
    if (r == 0) {
        json_start(&j, once.p, once.len, NULL);
        check(json_skip(&j) == 0 && json_finish(&j) == 0);
        json_start(&j, once.p, once.len, NULL);
        if (json_next(&j) == JSON_OBJECT)
            check(json_object(&j) == 0 && json_find(&j, "password") == 0);
        check(json_map(NULL, 0, once.p, once.len, &again, &why) == 0);
        check(again.len == once.len && memcmp(again.p, once.p, once.len) == 0);
    }
    buf_done(&once);
    buf_done(&again);
    return 0;
}
