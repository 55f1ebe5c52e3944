/*
 * gzip files through zlib. A file may have several members one after the other (cat a.gz b.gz):
 * each begins anew where the one before ends. One that ends inside a member is truncated, and that
 * is an error: IDs would be missing. Tests: tests/integration/verify.sh.
 */
#include "cli/verify/gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { IN_BYTES = 1 << 20, WINDOW_GZIP = 15 + 16 };

struct gunzip {
    z_stream z;
    int fd;
    bool eof, inside; /* inside: a member has begun and not ended */
    uint64_t bytes;
    unsigned char in[IN_BYTES];
};

struct gunzip *gunzip_new(int fd, const void *first, size_t len)
{
    struct gunzip *g = len <= IN_BYTES ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return NULL;
    if (inflateInit2(&g->z, WINDOW_GZIP) != Z_OK) {
        free(g);
        return NULL;
    }
    memcpy(g->in, first, len);
    g->z.next_in = g->in;
    g->z.avail_in = (unsigned)len;
    g->fd = fd;
    g->bytes = len;
    g->inside = true;
    return g;
}

void gunzip_free(struct gunzip *g)
{
    if (!g)
        return;
    inflateEnd(&g->z);
    free(g);
}

uint64_t gunzip_bytes(const struct gunzip *g)
{
    return g->bytes;
}

static int more(struct gunzip *g, const char **why)
{
    ssize_t n;
    do {
        n = read(g->fd, g->in, sizeof g->in);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        *why = strerror(errno);
        return -1;
    }
    g->eof = n == 0;
    g->bytes += (size_t)n;
    g->z.next_in = g->in;
    g->z.avail_in = (unsigned)n;
    return 0;
}

ssize_t gunzip_read(struct gunzip *g, void *out, size_t cap, const char **why)
{
    g->z.next_out = out;
    g->z.avail_out = (unsigned)cap;
    while (g->z.avail_out == cap) {
        if (g->z.avail_in == 0 && !g->eof && more(g, why) != 0)
            return -1;
        if (g->z.avail_in == 0 && g->eof) {
            if (!g->inside)
                return 0;
            *why = "the gzip data ends too early: the file is truncated";
            return -1;
        }
        if (!g->inside) {
            inflateReset(&g->z);
            g->inside = true;
        }
        int r = inflate(&g->z, Z_NO_FLUSH);
        if (r == Z_STREAM_END)
            g->inside = false;
        else if (r != Z_OK && r != Z_BUF_ERROR) {
            *why = g->z.msg ? g->z.msg : "the gzip data is damaged";
            return -1;
        }
    }
    return (ssize_t)(cap - g->z.avail_out);
}
