/*
 * The reader takes any bytes without reading past them, and what it takes as a string is UTF-8
 * without NUL that the writer writes and the reader reads again.
 */
#include "wire/json_read.h"
#include "wire/json_write.h"

#include <stdlib.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

static void round_trip(const char *text, size_t len)
{
    struct buf b;
    struct json_reader j;
    char again[256];
    size_t n;
    check(strlen(text) == len);
    buf_init(&b, 4096);
    json_bytes(&b, NULL, text, len);
    json_start(&j, b.p, b.len, NULL);
    check(json_string(&j, again, sizeof again, &n) == 0 && n == len);
    check(memcmp(again, text, len) == 0 && json_finish(&j) == 0);
    buf_done(&b);
}

static int walk(struct json_reader *j)
{
    char name[32], text[256];
    size_t len;
    uint64_t v;
    int r = json_object(j);
    while (r == 0 && (r = json_member(j, name, sizeof name)) > 0) {
        round_trip(name, strlen(name));
        if (name[0] == 'o') {
            r = walk(j);
        } else if (name[0] == 'n') {
            r = json_u64(j, &v);
        } else {
            r = json_string(j, text, sizeof text, &len);
            if (r == 0)
                round_trip(text, len);
        }
    }
    return r;
}

static void look(void *user, const char *path, const char *value, bool string)
{
    (void)user;
    (void)string;
    check(strlen(path) <= JSON_PATH_MAX && strlen(value) <= JSON_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_reader j;
    struct firn_diag d = { 0, "" };
    json_start(&j, (const char *)data, size, &d);
    int r = walk(&j);
    if (r == 0)
        r = json_finish(&j);
    check(r <= 0);
    check(r == 0 || d.text[0]);
    /* What one way of reading takes, the others take. */
    json_start(&j, (const char *)data, size, &d);
    int skipped = json_skip(&j);
    if (skipped == 0)
        skipped = json_finish(&j);
    check(r != 0 || skipped == 0);
    check(json_each((const char *)data, size, look, NULL) != 0 || skipped == 0);
    return 0;
}
