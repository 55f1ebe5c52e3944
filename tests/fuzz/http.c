/* Any bytes: the parser stays inside them, agrees with llhttp on what it takes, and gives the same
 * answer however the bytes are cut. The helpers get what it found. */
#include "wire/http.h"
#include "wire/url.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void inside(struct slice s, const char *p, size_t size)
{
    check(!s.p || (s.len == 1 && *s.p == '/') || (s.p >= p && s.p + s.len <= p + size));
}

static void helpers(const struct http_request *req)
{
    char out[64];
    size_t len;
    uint64_t v;
    struct slice rest = req->path, part, value;
    while (url_path_next(&rest, &part))
        if (url_decode(part, false, out, sizeof out, &len) == 0)
            check(len < sizeof out && strlen(out) == len);
    rest = req->query;
    while (url_query_next(&rest, &part, &value))
        if (http_u64(value, 1000, &v) == 0)
            check(v <= 1000);
    http_names_type(req->accept, "text/plain");
    http_names_type(req->content_type, "application/json");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *a = malloc(size + 1), *b = malloc(size + 1);
    check(a && b);
    struct http_request req, slow;
    struct http_error err = { 0, NULL }, err_slow = { 0, NULL };
    memcpy(a, data, size);
    memcpy(b, data, size);
    char *exact = realloc(a, size ? size : 1); /* so that ASan sees a read past the end */
    check(exact != NULL);
    ssize_t used = http_parse(exact, size, &req, &err);
    check(used == http_parse_slow(b, size, &slow, &err_slow));
    check(used == FIRN_EAGAIN || used == FIRN_EFORMAT || (used > 0 && (size_t)used <= size));
    if (used == FIRN_EFORMAT)
        check(err.status >= 400 && err.reason);
    if (used > 0) {
        inside(req.path, exact, size);
        inside(req.query, exact, size);
        inside(req.body, exact, size);
        inside(req.accept, exact, size);
        inside(req.authorization, exact, size);
        check(req.body.len == slow.body.len && req.keep_alive == slow.keep_alive);
        helpers(&req);
        /* A shorter piece of it is never anything but unfinished. */
        for (size_t cut = 0; cut < (size_t)used; cut += 1 + (size_t)used / 16) {
            memcpy(b, data, cut);
            check(http_parse(b, cut, &slow, &err_slow) == FIRN_EAGAIN);
        }
    }
    free(exact);
    free(b);
    return 0;
}
