/* Maps keys of registers to paths of znodes and back (zookeeper_name.h).
 * Tested by tests/store/zookeeper.py. */
#include "store/zookeeper_name.h"
#include "platform/assert.h"

#include <stdio.h>
#include <string.h>

static const char empty_name[] = "%-";

/* Append a part of a key as the name of a znode; `out` has room for all of it. */
static char *escape(char *out, const char *p, size_t len, bool directory)
{
    static const char hex[] = "0123456789ABCDEF";
    if (len == 0)
        return stpcpy(out, empty_name);
    bool taken = directory && len == 1 && p[0] == ZK_NO_DIRECTORY[0];
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     c == '-' || c == ':' || (c == '_' && !taken) ||
                     (c == '.' && i > 0); /* "." and ".." are no names */
        if (plain) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = hex[c >> 4];
            *out++ = hex[c & 15];
        }
    }
    *out = '\0';
    return out;
}

int zk_unescape(const char *name, char *out, size_t size)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    if (strcmp(name, empty_name) == 0)
        return 0;
    for (const char *p = name; *p; p++) {
        char c = *p;
        if (c == '%') {
            const char *a = p[1] ? strchr(hex, p[1]) : NULL,
                       *b = a && p[2] ? strchr(hex, p[2]) : NULL;
            if (!b)
                return -1;
            c = (char)((a - hex) << 4 | (b - hex));
            p += 2;
        }
        if (n == size)
            return -1;
        out[n++] = c;
    }
    return (int)n;
}

void zk_key_path(const char *root, struct firn_slice key, char out[ZK_PATH_BUF])
{
    firn_assert(key.len <= STORE_KEY_MAX && strlen(root) < ZK_ROOT_BUF, "key_len=%zu", key.len);
    const char *slash = memchr(key.p, '/', key.len);
    size_t skip = slash ? (size_t)(slash - key.p) + 1 : 0;
    char *p = stpcpy(stpcpy(out, root), "/");
    p = slash ? escape(p, key.p, skip - 1, true) : stpcpy(p, ZK_NO_DIRECTORY);
    p = escape(stpcpy(p, "/"), key.p + skip, key.len - skip, false);
    firn_assert(p < out + ZK_PATH_BUF, "len=%td", p - out);
}

unsigned zk_guard_of(struct firn_slice key)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < key.len; i++)
        h = (h ^ (unsigned char)key.p[i]) * 16777619u;
    return (h ^ h >> 16) % ZK_GUARDS;
}

void zk_guard_path(const char *root, unsigned guard, char out[ZK_PATH_BUF])
{
    snprintf(out, ZK_PATH_BUF, "%s/%%guards/%02u", root, guard);
}
