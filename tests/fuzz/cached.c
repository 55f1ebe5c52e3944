/*
 * Any bytes as a value of the cache: what reads back as an answer, written again, is the same
 * answer; and with its right checksum. As Accept-Encoding and If-None-Match they only must not
 * harm.
 */
#include "proxy/cached.h"
#include "proxy/gzip.h"

#include <stdlib.h>
#include <string.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

static int same(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cached m, again;
    struct slice text = { (const char *)data, size };
    (void)gzip_accepted(text);
    (void)cached_etag_in(text, (struct slice){ "\"a\"", 3 });
    if (cached_view(text, &m) != 0) {
        check(cached_read(text, &again) != 0);
        return 0;
    }
    struct cache_value *v = cached_write(&m);
    check(v != NULL && cached_view((struct slice){ v->p, v->len }, &again) == 0);
    check(m.status == again.status && m.stored_ms == again.stored_ms &&
          m.until_ms == again.until_ms && m.age_s == again.age_s &&
          same(m.identity, again.identity) && same(m.lines, again.lines) &&
          same(m.body, again.body));
    if (cached_read(text, &again) == 0)
        check(cached_read((struct slice){ v->p, v->len }, &again) == 0);
    cache_value_unref(v);
    return 0;
}
