/*
 * Paths: what is canonical stays so, is no longer than what came, has no empty or dot segment, and
 * has none for a server that drops parameters either. A prefix and what replaces it (before the
 * first spaces) fit the room that the gateway gives them, and take what they should.
 */
#include "proxy/path.h"
#include "proxy/route.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

static char *copy(struct slice s) /* so that ASan sees a read past the end */
{
    char *p = malloc(s.len ? s.len : 1);
    check(p != NULL);
    if (s.len)
        memcpy(p, s.p, s.len);
    return p;
}

static struct slice word(struct slice *rest)
{
    const char *space = rest->len ? memchr(rest->p, ' ', rest->len) : NULL;
    struct slice w = { rest->p, space ? (size_t)(space - rest->p) : 0 };
    if (space)
        *rest = (struct slice){ space + 1, rest->len - w.len - 1 };
    return w;
}

static bool has_dots(struct slice path)
{
    for (size_t i = 0; i + 1 < path.len; i++) {
        size_t from = i + 1, to = from;
        if (path.p[i] != '/')
            continue;
        while (to < path.len && path.p[to] != '/')
            to++;
        size_t n = to - from;
        if ((n == 0 && to < path.len) || (n == 1 && path.p[from] == '.') ||
            (n == 2 && path.p[from] == '.' && path.p[from + 1] == '.'))
            return true;
    }
    return false;
}

/* As Java's servers do: without ";..." up to the next slash. */
static struct slice without_parameters(struct slice path, char *out)
{
    size_t len = 0;
    bool in = false;
    for (size_t i = 0; i < path.len; i++) {
        in = (in && path.p[i] != '/') || path.p[i] == ';' ||
             (path.len - i >= 3 && memcmp(path.p + i, "%3B", 3) == 0);
        if (!in)
            out[len++] = path.p[i];
    }
    return (struct slice){ out, len };
}

static bool below(struct slice path, struct slice prefix)
{
    return path.len >= prefix.len && memcmp(path.p, prefix.p, prefix.len) == 0 &&
           (path.len == prefix.len || prefix.p[prefix.len - 1] == '/' || path.p[prefix.len] == '/');
}

static void rewrite(struct slice path, struct slice prefix, struct slice to)
{
    size_t cap = path.len + to.len + 1, len;
    char *out = malloc(cap), *short_path = malloc(path.len);
    check(out && short_path);
    if (prefix.len > 0 && prefix.p[0] == '/' && to.len > 0 && to.p[0] == '/') {
        struct slice bare = without_parameters(path, short_path);
        bool is = path_below(path, prefix);
        check(!below(path, prefix) || is); /* what is below by bytes is below */
        if (!memchr(prefix.p, ';', prefix.len) &&
            !memmem(prefix.p, prefix.len, "%3B",
                    3)) /* and what is below for a server that drops them */
            check(is == below(bare, prefix));
        if (is) {
            check(path_rewrite(path, prefix, to, out, cap, &len) == 0);
            check(len > 0 && len <= cap && out[0] == '/');
        }
    }
    free(short_path);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = { (const char *)data, size }, prefix, to;
    const char *why = NULL;
    size_t len, again;
    if (size > 64 * 1024)
        return 0;
    prefix = word(&rest);
    to = word(&rest);
    char *in = copy(rest), *out = malloc(rest.len ? rest.len : 1), *second, *bare;
    check(out != NULL);
    int r = path_canonical((struct slice){ in, rest.len }, out, rest.len, &len, &why);
    check(r == 0 || (r == FIRN_EFORMAT && why));
    if (r == 0) {
        struct slice path = { out, len };
        check(len > 0 && len <= rest.len && out[0] == '/' && !has_dots(path));
        second = malloc(len);
        bare = malloc(len);
        check(second && bare);
        check(path_canonical(path, second, len, &again, &why) == 0);
        check(again == len && memcmp(out, second, len) == 0);
        struct slice b = without_parameters(path, bare);
        for (size_t i = 0; i + 1 < b.len; i++) /* empty segments may be left, dots never */
            if (b.p[i] == '/' && b.p[i + 1] == '.') {
                size_t dots = 1 + (i + 2 < b.len && b.p[i + 2] == '.');
                check(i + 1 + dots < b.len && b.p[i + 1 + dots] != '/');
            }
        rewrite(path, prefix, to);
        free(second);
        free(bare);
    }
    if (route_host_ok((struct slice){ in, rest.len }))
        for (size_t i = 0; i < rest.len; i++)
            check(http_is(in[i], HTTP_HOST));
    free(in);
    free(out);
    return 0;
}
