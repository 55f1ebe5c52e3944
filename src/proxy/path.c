/* Canonical paths, prefixes and rewrites. */
#include "proxy/path.h"
#include "id/hex.h"

#include <ctype.h>
#include <string.h>

static bool unreserved(int c)
{
    return c < 0x80 && (isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~');
}

/* Drops the last segment of out[0..len), which ends with '/'; "/" has none. */
static size_t drop_segment(const char *out, size_t len)
{
    len--;
    while (len > 0 && out[len - 1] != '/')
        len--;
    return len;
}

/* "..;x" and ".;x" (also with %3B): servers that take what follows ';' as a parameter of the
 * segment, as Tomcat does, read ".." after this gateway has compared the path with its routes. */
static bool hides_dots(const char *segment, size_t n)
{
    size_t dots = 0;
    while (dots < n && dots < 3 && segment[dots] == '.')
        dots++;
    const char *rest = segment + dots;
    return (dots == 1 || dots == 2) && n > dots &&
           (*rest == ';' || (n - dots >= 3 && memcmp(rest, "%3B", 3) == 0));
}

#define ABOVE_ROOT  ((size_t)0) /* no lengths of a path */
#define HIDDEN_DOTS SIZE_MAX

/* At the end of a segment that begins at `from`: resolves "." and "..". Returns the new length, or
 * one of the above. `more`: a slash follows. */
static size_t end_segment(char *out, size_t from, size_t len, bool more)
{
    size_t n = len - from;
    if (hides_dots(out + from, n))
        return HIDDEN_DOTS;
    if (n == 1 && out[from] == '.')
        return from;
    if (n == 2 && out[from] == '.' && out[from + 1] == '.')
        return drop_segment(out, from);
    if (more && n > 0)
        out[len++] = '/';
    return len;
}

static int refused(size_t how, const char **why)
{
    *why = how == ABOVE_ROOT ? "the path leads above its root"
                             : "the path has a segment of dots with parameters behind ';'";
    return FIRN_EFORMAT;
}

int path_canonical(struct slice path, char *out, size_t cap, size_t *out_len, const char **why)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = 1, from = 1; /* of the segment in hand */
    if (path.len == 0 || path.p[0] != '/') {
        *why = "the path does not begin with '/'";
        return FIRN_EFORMAT;
    }
    if (cap < path.len)
        return FIRN_ENOSPC;
    out[0] = '/';
    for (size_t i = 1; i < path.len; i++) {
        int c = (uint8_t)path.p[i];
        if (c == '/') {
            len = from = end_segment(out, from, len, true);
            if (len == ABOVE_ROOT || len == HIDDEN_DOTS)
                return refused(len, why);
            continue;
        }
        if (c != '%') {
            out[len++] = (char)c;
            continue;
        }
        int high = i + 2 < path.len ? hex_digit(path.p[i + 1]) : -1;
        int low = i + 2 < path.len ? hex_digit(path.p[i + 2]) : -1;
        if (high < 0 || low < 0) {
            *why = "a '%' in the path is not followed by two hexadecimal digits";
            return FIRN_EFORMAT;
        }
        c = high << 4 | low;
        i += 2;
        if (c == '/' || c == '\\' || c < 0x20 || c == 0x7f) {
            *why = "the path holds an encoded slash, backslash or control character";
            return FIRN_EFORMAT;
        }
        if (unreserved(c)) {
            out[len++] = (char)c;
        } else {
            out[len++] = '%';
            out[len++] = digits[high];
            out[len++] = digits[low];
        }
    }
    len = end_segment(out, from, len, false);
    if (len == ABOVE_ROOT || len == HIDDEN_DOTS)
        return refused(len, why);
    *out_len = len;
    return 0;
}

bool path_below(struct slice path, struct slice prefix)
{
    if (path.len < prefix.len || memcmp(path.p, prefix.p, prefix.len) != 0)
        return false;
    return path.len == prefix.len || prefix.p[prefix.len - 1] == '/' || path.p[prefix.len] == '/';
}

int path_rewrite(struct slice path, struct slice prefix, struct slice to, char *out, size_t cap,
                 size_t *out_len)
{
    struct slice rest = { path.p + prefix.len, path.len - prefix.len };
    while (to.len > 0 && to.p[to.len - 1] == '/')
        to.len--;
    bool slash = rest.len == 0 ? to.len == 0 : rest.p[0] != '/';
    size_t len = to.len + slash + rest.len;
    if (len > cap)
        return FIRN_ENOSPC;
    memcpy(out, to.p, to.len);
    if (slash)
        out[to.len] = '/';
    memcpy(out + to.len + slash, rest.p, rest.len);
    *out_len = len;
    return 0;
}
