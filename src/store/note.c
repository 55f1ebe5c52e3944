/*
 * The page of shared memory that outlives a process (note.h). Its name is a hash of all that makes
 * the database this one, so a page is never about another file. When one is made, those whose
 * databases are gone are removed: there are at most as many as databases.
 * Tests: tests/unit/store/note.c.
 */
#include "store/note.h"
#include "id/fnv.h"
#include "store/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE "/dev/shm/firn-"
enum { NAME_BUF = 17, FRAME_BITS = 24, SWEEP_MAX = 4096 };
#define FRAMES ((UINT64_C(1) << FRAME_BITS) - 1)

/* ---- which page ---- */

/* False: the file cannot be told from one that had its inode before. */
static bool name_of(const char *path, char out[NAME_BUF], uid_t *out_owner)
{
    struct statx x;
    char boot[BOOT_ID_BUF];
    machine_boot(boot);
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME | STATX_UID, &x) != 0 ||
        !(x.stx_mask & STATX_BTIME) || boot[0] == '\0')
        return false;
    uint64_t id[] = { x.stx_dev_major, x.stx_dev_minor, x.stx_ino, (uint64_t)x.stx_btime.tv_sec,
                      x.stx_btime.tv_nsec };
    uint64_t sum = fnv(FNV_BEGIN, boot, strlen(boot));
    snprintf(out, NAME_BUF, "%016" PRIx64, fnv(sum, id, sizeof id));
    *out_owner = x.stx_uid;
    return true;
}

/* The folder of the database's owner, whoever asks: root administers the stores of a user. Every
 * user may write to /dev/shm, so what is found there counts only if it is the owner's alone. */
static int open_place(uid_t owner)
{
    char place[sizeof PLACE + 12];
    struct stat st;
    snprintf(place, sizeof place, PLACE "%u", (unsigned)owner);
    bool made = (geteuid() == owner || geteuid() == 0) && mkdir(place, 0700) == 0;
    int dir = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -1;
    if (made && geteuid() != owner && fchown(dir, owner, (gid_t)-1) != 0)
        made = false;
    if (fstat(dir, &st) == 0 && st.st_uid == owner && (st.st_mode & 0077) == 0)
        return dir;
    close(dir);
    return -1;
}

static struct note_page *map(int fd)
{
    void *p = mmap(NULL, sizeof(struct note_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- pages whose databases are gone ---- */

static bool is_gone(int dir, const char *name)
{
    struct note_page page;
    char now[NAME_BUF];
    uid_t owner;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd >= 0 ? pread(fd, &page, sizeof page, 0) : -1;
    if (fd >= 0)
        close(fd);
    if (n != (ssize_t)sizeof page || page.path[0] != '/')
        return false; /* it is just being made */
    page.path[sizeof page.path - 1] = '\0';
    return !name_of(page.path, now, &owner) || strcmp(now, name) != 0;
}

static void sweep(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *e;
    if (!d) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (int i = 0; i < SWEEP_MAX && (e = readdir(d)); i++)
        if (strlen(e->d_name) == NAME_BUF - 1 && is_gone(dir, e->d_name))
            (void)unlinkat(dir, e->d_name, 0);
    closedir(d);
}

/* ---- life ---- */

/* A new page, complete before it has its name: memory that is short is noticed here, and not when
 * the page is first written. */
static void make(int dir, const char *name, const char *path, uid_t owner)
{
    char draft[NAME_BUF + 16];
    snprintf(draft, sizeof draft, "%s.%d", name, (int)getpid());
    (void)unlinkat(dir, draft, 0);
    int fd = openat(dir, draft, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    char *full = realpath(path, NULL);
    struct note_page page = { .tick = 0 };
    size_t len = full ? strlen(full) : sizeof page.path;
    if (len < sizeof page.path)
        memcpy(page.path, full, len);
    bool made = fd >= 0 && len < sizeof page.path &&
                (geteuid() == owner || fchown(fd, owner, (gid_t)-1) == 0) &&
                pwrite(fd, &page, sizeof page, 0) == (ssize_t)sizeof page &&
                linkat(dir, draft, dir, name, 0) == 0;
    (void)made; /* if another process was faster, its page is as good */
    if (fd >= 0) {
        close(fd);
        (void)unlinkat(dir, draft, 0);
    }
    free(full);
}

struct note_page *note_open(const char *path)
{
    char name[NAME_BUF];
    uid_t owner;
    struct stat st;
    int dir = name_of(path, name, &owner) ? open_place(owner) : -1;
    if (dir < 0)
        return NULL;
    int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        sweep(dir);
        make(dir, name, path, owner);
        fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    }
    struct note_page *n = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)sizeof *n)
        n = map(fd);
    if (fd >= 0)
        close(fd);
    close(dir);
    return n;
}

void note_close(struct note_page *n)
{
    if (n)
        munmap(n, sizeof *n);
}

/* ---- the log ---- */

uint64_t note_log(const uint8_t salt[8], uint32_t frames)
{
    uint64_t n = frames < FRAMES ? frames : FRAMES;
    return (fnv(FNV_BEGIN, salt, 8) & ~FRAMES) | n;
}

void note_log_raise(_Atomic uint64_t *word, uint64_t log)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (((old ^ log) & ~FRAMES || log > old) &&
           !atomic_compare_exchange_weak_explicit(word, &old, log, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

bool note_log_lacks(uint64_t noted, uint64_t now)
{
    return ((noted ^ now) & ~FRAMES) == 0 && now < noted;
}
