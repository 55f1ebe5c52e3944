/* Follows a file that grows: lines, truncation, rotation. */
#include "cli/verify/follow.h"
#include "id/fnv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUF_BYTES = 1 << 18, LOOK_MS = 50, FIRST_LINE_BYTES = 128 };

static bool is_stdin(const struct follow *f)
{
    return f->path[0] == '-' && f->path[1] == '\0';
}

static int failed(struct follow *f, int error)
{
    snprintf(f->why, sizeof f->why, "%s", strerror(error));
    return FIRN_EIO;
}

static int open_file(struct follow *f)
{
    struct stat st;
    f->fd = is_stdin(f) ? STDIN_FILENO : open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return failed(f, errno);
    if (fstat(f->fd, &st) != 0)
        return failed(f, errno);
    if (S_ISDIR(st.st_mode))
        return failed(f, EISDIR);
    f->inode = (uint64_t)st.st_ino;
    f->identity_ = 0;
    f->at = f->end = 0;
    f->offset = f->line = 0;
    f->eof = f->skipping = false;
    return 0;
}

int follow_open(struct follow *f, const char *path, bool grows)
{
    *f = (struct follow){ .path = path, .fd = -1, .grows = grows, .buf = malloc(BUF_BYTES) };
    if (!f->buf) {
        snprintf(f->why, sizeof f->why, "out of memory");
        return FIRN_ENOMEM;
    }
    return open_file(f);
}

void follow_close(struct follow *f)
{
    if (f->fd > STDIN_FILENO)
        close(f->fd);
    free(f->buf);
    *f = (struct follow){ .fd = -1 };
}

uint64_t follow_identity(struct follow *f)
{
    char head[FIRST_LINE_BYTES];
    if (f->identity_ != 0 || is_stdin(f))
        return f->identity_;
    ssize_t n = pread(f->fd, head, sizeof head, 0);
    const char *nl = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
    if (!nl && n < (ssize_t)sizeof head && !((f->eof || !f->grows) && n > 0))
        return 0; /* the first line may still grow */
    size_t len = nl ? (size_t)(nl - head) : (size_t)n;
    uint64_t h = fnv(fnv_word(FNV_BEGIN, f->inode), head, len) >>
                 1; /* fits databases' signed columns */
    f->identity_ = h ? h : 1;
    return f->identity_;
}

void follow_resume(struct follow *f, uint64_t identity, uint64_t offset, uint64_t line)
{
    struct stat st;
    if (is_stdin(f) || identity == 0 || identity != follow_identity(f) || fstat(f->fd, &st) != 0 ||
        (uint64_t)st.st_size < offset || lseek(f->fd, (off_t)offset, SEEK_SET) < 0)
        return;
    f->offset = offset;
    f->line = line;
    f->at = f->end = 0;
}

/* At the end of a file that grows: whether it was truncated or replaced. */
static int look_again(struct follow *f)
{
    struct stat now, named;
    if (fstat(f->fd, &now) != 0)
        return failed(f, errno);
    if ((uint64_t)now.st_size < f->offset + (f->end - f->at)) {
        if (lseek(f->fd, 0, SEEK_SET) < 0)
            return failed(f, errno);
        f->at = f->end = 0;
        f->offset = f->line = 0;
        f->skipping = false;
        f->identity_ = 0;
        return FOLLOW_AGAIN;
    }
    if (stat(f->path, &named) != 0 || (named.st_ino == now.st_ino && named.st_dev == now.st_dev))
        return FOLLOW_NOTHING; /* also while a new one is not there yet */
    if ((uint64_t)now.st_size > f->offset + (f->end - f->at))
        return FOLLOW_NOTHING; /* the old one first: it has just grown */
    int old = f->fd, r = open_file(f);
    if (r != 0) {
        f->fd = old;
        return FOLLOW_NOTHING;
    }
    close(old);
    return FOLLOW_AGAIN;
}

/* More bytes into the buffer: 1, or as follow_next(). */
static int more(struct follow *f)
{
    if (f->at > 0) {
        memmove(f->buf, f->buf + f->at, f->end - f->at);
        f->end -= f->at;
        f->at = 0;
    }
    if (is_stdin(f)) { /* a pipe may be silent for long */
        struct pollfd p = { .fd = f->fd, .events = POLLIN };
        if (poll(&p, 1, 0) == 0)
            return FOLLOW_NOTHING;
    }
    ssize_t n = read(f->fd, f->buf + f->end, BUF_BYTES - f->end);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? FOLLOW_NOTHING : failed(f, errno);
    if (n > 0) {
        f->end += (size_t)n;
        return 1;
    }
    f->eof = true;
    if (!is_stdin(f) && f->grows) {
        f->eof = false;
        return look_again(f);
    }
    return FOLLOW_END;
}

int follow_next(struct follow *f, const char **out_p, size_t *out_len)
{
    for (;;) {
        const char *p = f->buf + f->at;
        size_t have = f->end - f->at;
        const char *nl = memchr(p, '\n', have);
        /* the last line of a file that does not grow needs no newline */
        if (nl || (f->eof && have > 0)) {
            size_t len = nl ? (size_t)(nl - p) : have, used = len + (nl ? 1 : 0);
            bool skipped = f->skipping;
            f->skipping = false;
            f->at += used;
            f->offset += used;
            f->line++;
            return skipped ? FOLLOW_LONG : lines__cut(p, len, out_p, out_len);
        }
        if (have == BUF_BYTES) { /* no ID is as long as that */
            f->offset += have;
            f->at = f->end = 0;
            f->skipping = true;
        }
        if (f->eof)
            return FOLLOW_END;
        int r = more(f);
        if (r != 1 && !(r == FOLLOW_END && f->end > f->at))
            return r;
    }
}

_Static_assert((int)FOLLOW_LINE == (int)LINES_LINE && (int)FOLLOW_LONG == (int)LINES_LONG,
               "lines__cut() serves both");

void follow_wait(struct follow *f, unsigned ms)
{
    if (is_stdin(f)) {
        struct pollfd p = { .fd = f->fd, .events = POLLIN };
        poll(&p, 1, (int)ms);
        return;
    }
    unsigned part = ms < LOOK_MS ? ms : LOOK_MS;
    nanosleep(&(struct timespec){ .tv_nsec = (long)part * 1000000 }, NULL);
}

uint64_t follow_lag(const struct follow *f)
{
    struct stat st;
    if (is_stdin(f) || fstat(f->fd, &st) != 0 || (uint64_t)st.st_size < f->offset)
        return 0;
    return (uint64_t)st.st_size - f->offset;
}
