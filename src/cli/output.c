/* Standard output: write errors, unbuffered blocks, JSON documents. */
#include "cli/output.h"
#include "cli/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(int error)
{
    if (error == EPIPE)
        return STATUS_OK;
    return say_trouble("cannot write: %s: check where standard output goes", strerror(error));
}

static int first_error; /* errno of the first write that failed: stdio does not keep it */

static int stdout_error(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    if (first_error == 0)
        first_error = errno ? errno : EIO;
    return first_error;
}

int output_finish(int status)
{
    int error = stdout_error();
    if (error == 0 || error == EPIPE)
        return status;
    return failed(error);
}

bool output_gone(void)
{
    return stdout_error() != 0;
}

int output_block(const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(errno);
        p += n;
        len -= (size_t)n;
    }
    return -1;
}

static void need_memory(const struct buf *b)
{
    if (b->failed)
        exit(say_trouble("out of memory"));
}

static void put(const char *p, size_t len, FILE *out)
{
    if (fwrite(p, 1, len, out) != len && first_error == 0)
        first_error = errno;
}

void output_json(struct buf *b, FILE *out)
{
    buf_add(b, "\n", 1);
    need_memory(b);
    put(b->p, b->len, out);
    buf_done(b);
}

/* The last byte stays: it tells the writer whether a comma is due. */
void output_json_part(struct buf *b, FILE *out)
{
    need_memory(b);
    if (b->len > 1) {
        put(b->p, b->len - 1, out);
        buf_consume(b, b->len - 1);
    }
}
