/*
 * Any bytes as a query and as JSON through the redaction of secrets: the result is bounded, a
 * second pass changes nothing more, and a secret that is put into a member behind them is gone
 * wherever the text is cut off.
 */
#include "proxy/redact.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

typedef void pass(const struct redact *r, struct slice text, struct buf *out);

static const struct redact plain = { NULL };

static void twice(pass *f, const char *text, size_t len)
{
    struct buf one, two;
    buf_init(&one, 16 * len + 64);
    buf_init(&two, 16 * len + 64);
    f(&plain, (struct slice){ text, len }, &one);
    check(!one.failed);
    f(&plain, (struct slice){ one.p, one.len }, &two);
    check(!two.failed && one.len == two.len && (one.len == 0 || !memcmp(one.p, two.p, one.len)));
    buf_done(&one);
    buf_done(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char secret[] = "hush";
    char *text = calloc(1, size + 64);
    size_t n = 0;
    check(text != NULL);
    if (size)
        memcpy(text, data, size);
    twice(redact_query, text, size);
    twice(redact_json, text, size);

    /* {"password":"<data>hush"}, with data that closes no string */
    n = (size_t)(stpcpy(text, "{\"a\":[1],\"password\":\"") - text);
    for (size_t i = 0; i < size; i++)
        text[n++] = data[i] == '"' || data[i] == '\\' ? '.' : (char)data[i];
    memcpy(text + n, secret, sizeof secret);
    n += sizeof secret - 1;
    struct buf out;
    buf_init(&out, 16 * n + 64);
    redact_json(&plain, (struct slice){ text, n }, &out);
    check(!out.failed && !memmem(out.p, out.len, secret, sizeof secret - 1));
    buf_done(&out);
    free(text);
    return 0;
}
