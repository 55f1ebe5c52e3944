/*
 * A preloaded library that makes a power cut of a process: what it did not sync is lost.
 * It remembers, below one folder, what each write replaced and what each change of a name replaced,
 * until fsync() or fdatasync() of the file, or of the folder. When told, it stops the process's
 * file calls, takes back what was not synced, all or some of it, and ends the process with SIGKILL.
 *
 *   FIRN_LOST_WRITES_DIR      the folder, an absolute path without links
 *   FIRN_LOST_WRITES_CONTROL  a file: when it exists, the power goes. It holds a number, the seed:
 *                             0 loses everything that was not synced; with another one each sector
 *                             of a file and the last changes of names may be lost or kept
 *
 * Calls that libc makes inside itself (FILE) are not seen, and count as synced. Its users are
 * tests/chaos/power.py, which cuts the power, and tests/chaos/lost_writes, which tests it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SECTOR = 512, POLL_US = 2000 };

struct file { /* one that was written to */
    struct file *next;
    dev_t dev;
    ino_t ino;
    int fd; /* own, for reading and writing */
};

struct write_undo { /* what a write or a truncation replaced; newest first */
    struct write_undo *next;
    uint64_t seq;
    struct file *file;
    off_t at, size; /* of the file, before */
    size_t len;     /* bytes that were there */
    char old[];
};

struct name_undo { /* newest first */
    struct name_undo *next;
    uint64_t seq;
    dev_t dev; /* of the folder */
    ino_t ino;
    char from[PATH_MAX];   /* the name that a rename took away; "": none */
    char to[PATH_MAX];     /* the name that was made or removed */
    char backup[PATH_MAX]; /* a link to the file that `to` was; "": none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;
static struct write_undo *writes;
static struct name_undo *names;
static uint64_t seq;
static const char *dir, *control;
static char backups[PATH_MAX];

#define REAL(name)                                      \
    ({                                                  \
        static __typeof__(&name) real_;                 \
        if (!real_)                                     \
            *(void **)&real_ = dlsym(RTLD_NEXT, #name); \
        real_;                                          \
    })

static void give_up(const char *what)
{
    fprintf(stderr, "lost_writes: %s: %s\n", what, strerror(errno));
    abort();
}

static void *memory(size_t n)
{
    void *p = calloc(1, n);
    if (!p)
        give_up("memory");
    return p;
}

static bool below(const char *path)
{
    size_t n = dir ? strlen(dir) : 0;
    return n > 0 && strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The path that a descriptor has; "": none. */
static const char *path_of(int fd, char out[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    return out;
}

static const char *path_at(int at, const char *name, char out[PATH_MAX])
{
    char base[PATH_MAX] = "";
    if (name[0] == '/') {
        snprintf(out, PATH_MAX, "%s", name);
        return out;
    }
    if (at == AT_FDCWD)
        (void)!getcwd(base, sizeof base);
    else
        path_of(at, base);
    if (snprintf(out, PATH_MAX, "%s/%s", base, name) >= PATH_MAX)
        out[0] = '\0';
    return out;
}

/* ---- data ---- */

static struct file *file_of(int fd)
{
    struct stat st;
    char path[PATH_MAX], link[64];
    if (!dir || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || !below(path_of(fd, path)))
        return NULL;
    for (struct file *f = files; f; f = f->next)
        if (f->dev == st.st_dev && f->ino == st.st_ino)
            return f;
    struct file *f = memory(sizeof *f);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    f->fd = REAL(open)(link, O_RDWR | O_CLOEXEC);
    if (f->fd < 0)
        give_up(path);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->next = files;
    files = f;
    return f;
}

/* Remembers what is at [at, at + len). */
static void note_write(struct file *f, off_t at, size_t len)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0)
        give_up("stat");
    size_t there = at < st.st_size ? (size_t)(st.st_size - at) : 0;
    there = there < len ? there : len;
    struct write_undo *u = memory(sizeof *u + there);
    if (there > 0 && pread(f->fd, u->old, there, at) != (ssize_t)there)
        give_up("read");
    u->seq = ++seq;
    u->file = f;
    u->at = at;
    u->size = st.st_size;
    u->len = there;
    u->next = writes;
    writes = u;
}

static void note_at_position(int fd, size_t len)
{
    struct file *f = file_of(fd);
    if (!f)
        return;
    struct stat st;
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (fcntl(fd, F_GETFL) & O_APPEND && fstat(fd, &st) == 0)
        at = st.st_size;
    note_write(f, at, len);
}

static size_t total(const struct iovec *v, int n)
{
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += v[i].iov_len;
    return len;
}

/* Each call is noted and made under the lock: after a power cut none happens any more. */
#define LOCKED(type, note, call)     \
    do {                             \
        pthread_mutex_lock(&lock);   \
        note;                        \
        type r_ = (call);            \
        int e_ = errno;              \
        pthread_mutex_unlock(&lock); \
        errno = e_;                  \
        return r_;                   \
    } while (0)

ssize_t write(int fd, const void *p, size_t len)
{
    if (!dir || fd <= 2)
        return REAL(write)(fd, p, len);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) /* a socket may block */
        return REAL(write)(fd, p, len);
    LOCKED(ssize_t, note_at_position(fd, len), REAL(write)(fd, p, len));
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    struct stat st;
    if (!dir || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return REAL(writev)(fd, v, n);
    LOCKED(ssize_t, note_at_position(fd, total(v, n)), REAL(writev)(fd, v, n));
}

static void note_at(int fd, size_t len, off_t at)
{
    struct file *f = file_of(fd);
    if (f)
        note_write(f, at, len);
}

ssize_t pwrite(int fd, const void *p, size_t len, off_t at)
{
    LOCKED(ssize_t, note_at(fd, len, at), REAL(pwrite)(fd, p, len, at));
}

ssize_t pwrite64(int fd, const void *p, size_t len, off_t at)
{
    LOCKED(ssize_t, note_at(fd, len, at), REAL(pwrite64)(fd, p, len, at));
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    LOCKED(ssize_t, note_at(fd, total(v, n), at), REAL(pwritev)(fd, v, n, at));
}

static void note_truncation(int fd, off_t size)
{
    struct file *f = file_of(fd);
    struct stat st;
    if (f && fstat(fd, &st) == 0)
        note_write(f, size, st.st_size > size ? (size_t)(st.st_size - size) : 0);
}

int ftruncate(int fd, off_t size)
{
    LOCKED(int, note_truncation(fd, size), REAL(ftruncate)(fd, size));
}

int ftruncate64(int fd, off_t size)
{
    LOCKED(int, note_truncation(fd, size), REAL(ftruncate64)(fd, size));
}

/* ---- names ---- */

static void note_name(const char *from, const char *to)
{
    static unsigned long made;
    struct stat st;
    struct name_undo *u = memory(sizeof *u);
    snprintf(u->to, sizeof u->to, "%s", to);
    snprintf(u->from, sizeof u->from, "%s", from);
    char *slash = strrchr(u->to, '/');
    *slash = '\0';
    if (stat(u->to, &st) != 0)
        give_up(u->to);
    *slash = '/';
    u->dev = st.st_dev;
    u->ino = st.st_ino;
    if (lstat(to, &st) == 0) {
        (void)mkdir(backups, 0700);
        snprintf(u->backup, sizeof u->backup, "%.3000s/%lu", backups, ++made);
        if (link(to, u->backup) != 0)
            give_up(u->backup);
    }
    u->seq = ++seq;
    u->next = names;
    names = u;
}

static int open_at(int at, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    if (!dir || !(flags & (O_CREAT | O_TRUNC)) || flags & O_DIRECTORY ||
        !below(path_at(at, name, path)))
        return REAL(openat)(at, name, flags, mode);
    struct stat st;
    pthread_mutex_lock(&lock);
    bool new = lstat(path, &st) != 0;
    int fd = REAL(openat)(at, name, flags & ~O_TRUNC, mode), e = errno;
    if (fd >= 0 && new) {
        note_name("", path);
        if (names->backup[0]) { /* it was not there before */
            unlink(names->backup);
            names->backup[0] = '\0';
        }
    }
    if (fd >= 0 && !new &&flags & O_TRUNC) {
        note_truncation(fd, 0);
        if (REAL(ftruncate)(fd, 0) != 0)
            give_up(path);
    }
    pthread_mutex_unlock(&lock);
    errno = e;
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(args, int) : 0;
}

#define OPEN(name, ...)                                    \
    int name(__VA_ARGS__ const char *path, int flags, ...) \
    {                                                      \
        va_list args;                                      \
        va_start(args, flags);                             \
        mode_t mode = mode_of(flags, args);                \
        va_end(args);                                      \
        return open_at(AT, path, flags, mode);             \
    }
#define AT AT_FDCWD
OPEN(open, )
OPEN(open64, )
#undef AT
#define AT    at
#define COMMA ,
OPEN(openat, int at COMMA)
OPEN(openat64, int at COMMA)
#undef AT

static int rename_at(int from_at, const char *from, int to_at, const char *to)
{
    char old[PATH_MAX], new[PATH_MAX];
    if (!dir || !below(path_at(to_at, to, new)))
        return REAL(renameat)(from_at, from, to_at, to);
    path_at(from_at, from, old);
    LOCKED(int, note_name(old, new), REAL(renameat)(from_at, from, to_at, to));
}

int rename(const char *from, const char *to)
{
    return rename_at(AT_FDCWD, from, AT_FDCWD, to);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return rename_at(from_at, from, to_at, to);
}

static int unlink_at(int at, const char *name, int flags)
{
    char path[PATH_MAX];
    struct stat st;
    if (!dir || flags & AT_REMOVEDIR || !below(path_at(at, name, path)) || lstat(path, &st) != 0)
        return REAL(unlinkat)(at, name, flags);
    LOCKED(int, note_name("", path), REAL(unlinkat)(at, name, flags));
}

int unlink(const char *name)
{
    return unlink_at(AT_FDCWD, name, 0);
}

int unlinkat(int at, const char *name, int flags)
{
    return unlink_at(at, name, flags);
}

/* ---- syncs ---- */

/* What was done before `until` to this file, or in this folder, is on the disk. */
static void forget(const struct stat *st, uint64_t until)
{
    for (struct write_undo **p = &writes; *p;) {
        struct write_undo *u = *p;
        if (u->seq <= until && u->file->dev == st->st_dev && u->file->ino == st->st_ino) {
            *p = u->next;
            free(u);
        } else
            p = &u->next;
    }
    for (struct name_undo **p = &names; *p;) {
        struct name_undo *u = *p;
        if (u->seq <= until && u->dev == st->st_dev && u->ino == st->st_ino) {
            *p = u->next;
            if (u->backup[0])
                REAL(unlink)(u->backup);
            free(u);
        } else
            p = &u->next;
    }
    for (struct file **p = &files; *p;) { /* its number may be used again once it is gone */
        struct file *f = *p;
        if (f->dev == st->st_dev && f->ino == st->st_ino) {
            bool used = false;
            for (const struct write_undo *u = writes; u && !used; u = u->next)
                used = u->file == f;
            if (!used) {
                *p = f->next;
                close(f->fd);
                free(f);
                continue;
            }
        }
        p = &f->next;
    }
}

static int sync_with(int (*real)(int), int fd)
{
    struct stat st;
    pthread_mutex_lock(&lock);
    uint64_t until = seq;
    pthread_mutex_unlock(&lock);
    int r = real(fd), e = errno;
    pthread_mutex_lock(&lock);
    if (r == 0 && dir && fstat(fd, &st) == 0)
        forget(&st, until);
    pthread_mutex_unlock(&lock);
    errno = e;
    return r;
}

int fsync(int fd)
{
    return sync_with(REAL(fsync), fd);
}

int fdatasync(int fd)
{
    return sync_with(REAL(fdatasync), fd);
}

/* ---- the power cut ---- */

static uint64_t scramble(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void take_back(const struct write_undo *u, uint64_t seed)
{
    const struct file *f = u->file;
    struct stat st;
    for (size_t done = 0; done < u->len;) {
        uint64_t sector = (uint64_t)(u->at + (off_t)done) / SECTOR;
        size_t n = (size_t)((sector + 1) * SECTOR - (uint64_t)u->at) - done;
        n = n < u->len - done ? n : u->len - done;
        if (seed == 0 || scramble(seed ^ f->ino ^ sector << 20) & 1)
            if (REAL(pwrite)(f->fd, u->old + done, n, u->at + (off_t)done) != (ssize_t)n)
                give_up("write");
        done += n;
    }
    if (seed == 0 || scramble(seed ^ f->ino) & 1)
        if (fstat(f->fd, &st) == 0 && st.st_size > u->size && REAL(ftruncate)(f->fd, u->size) != 0)
            give_up("truncate");
}

static void power_cut(uint64_t seed)
{
    size_t changes = 0;
    pthread_mutex_lock(&lock); /* for good */
    for (const struct write_undo *u = writes; u; u = u->next)
        take_back(u, seed);
    for (const struct name_undo *u = names; u; u = u->next)
        changes++;
    changes = seed ? scramble(seed) % (changes + 1) : changes; /* so many of the last ones */
    for (const struct name_undo *u = names; u; u = u->next) {
        if (changes > 0) {
            changes--;
            if (u->from[0])
                (void)REAL(rename)(u->to, u->from);
            else
                (void)REAL(unlink)(u->to);
            if (u->backup[0])
                (void)REAL(rename)(u->backup, u->to);
        } else if (u->backup[0])
            (void)REAL(unlink)(u->backup);
    }
    (void)rmdir(backups);
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void *watch(void *unused)
{
    (void)unused;
    for (;;) {
        int fd = REAL(open)(control, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            char text[32] = "";
            (void)!read(fd, text, sizeof text - 1);
            power_cut(strtoull(text, NULL, 10));
        }
        usleep(POLL_US);
    }
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    sigset_t all, old;
    pthread_t thread;
    dir = getenv("FIRN_LOST_WRITES_DIR");
    control = getenv("FIRN_LOST_WRITES_CONTROL");
    if (!dir || !control) {
        dir = NULL;
        return;
    }
    snprintf(backups, sizeof backups, "%.3000s.lost-%d", dir, (int)getpid());
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, watch, NULL) != 0)
        give_up("thread");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
