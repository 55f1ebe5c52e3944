/* The files of a real folder. tests/unit/raft/disk.c runs it. */
#include "raft/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int fd_of(void *at)
{
    return (int)(intptr_t)at;
}

static int create(void *at, const char *name)
{
    if (unlinkat(fd_of(at), name, 0) != 0 && errno != ENOENT)
        return -errno;
    int fd = openat(fd_of(at), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

static int write_all(void *at, int file, const char *p, size_t len, uint64_t offset)
{
    (void)at;
    while (len > 0) {
        ssize_t n = pwrite(file, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        len -= (size_t)n;
        offset += (size_t)n;
    }
    return 0;
}

static int sync_file(void *at, int file)
{
    (void)at;
    return fdatasync(file) != 0 ? -errno : 0;
}

static void close_file(void *at, int file)
{
    (void)at;
    close(file);
}

static int rename_file(void *at, const char *from, const char *to)
{
    return renameat(fd_of(at), from, fd_of(at), to) != 0 ? -errno : 0;
}

static int unlink_file(void *at, const char *name)
{
    return unlinkat(fd_of(at), name, 0) != 0 ? -errno : 0;
}

static int sync_folder(void *at)
{
    return fsync(fd_of(at)) != 0 ? -errno : 0;
}

static int read_file(void *at, const char *name, struct buf *out)
{
    struct stat st;
    int fd = openat(fd_of(at), name, O_RDONLY | O_CLOEXEC), e = 0;
    if (fd < 0)
        return -errno;
    out->len = 0;
    if (fstat(fd, &st) != 0)
        e = errno;
    else if (!buf_room(out, (size_t)st.st_size + 1))
        e = ENOMEM;
    while (e == 0) {
        char *to = buf_room(out, 1);
        ssize_t n = to ? read(fd, to, out->cap - out->len) : -1;
        if (n > 0)
            buf_commit(out, (size_t)n);
        else if (n == 0)
            break;
        else if (!to || errno != EINTR)
            e = to ? errno : ENOMEM;
    }
    close(fd);
    return -e;
}

static int list(void *at, void (*each)(void *user, const char *name), void *user)
{
    int fd = openat(fd_of(at), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int e = errno;
        if (fd >= 0)
            close(fd);
        return -e;
    }
    errno = 0;
    for (const struct dirent *e; (e = readdir(dir));)
        each(user, e->d_name);
    int e = errno;
    closedir(dir);
    return -e;
}

static uint64_t random_number(void *at)
{
    uint64_t v = 0;
    (void)at;
    while (v == 0) /* of so few bytes getrandom() never fails once the system has started */
        if (getrandom(&v, sizeof v, 0) < 0 && errno != EINTR)
            break;
    return v;
}

static const struct folder_calls real = {
    .create = create,
    .write = write_all,
    .sync = sync_file,
    .close = close_file,
    .rename = rename_file,
    .unlink = unlink_file,
    .sync_folder = sync_folder,
    .read = read_file,
    .list = list,
    .random = random_number,
};

int folder_open(const char *dir, struct folder *out)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *out = (struct folder){ &real, (void *)(intptr_t)fd };
    return 0;
}

void folder_close(struct folder *f)
{
    if (f->calls == &real)
        close(fd_of(f->at));
    *f = (struct folder){ 0 };
}
