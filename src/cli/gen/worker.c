/*
 * Worker numbers of the firn gen runs of a machine (worker.h). The file has 16 bytes for each
 * number: the note, and its complement, so that a damaged note is not taken for time. The lock is
 * an open file description lock on those bytes: it ends with the process, also by kill -9.
 * The notes are not synced to the disk: what they protect from is over before a machine has booted
 * again. Tests: tests/unit/cli/gen/worker.c, tests/integration/gen_workers.py.
 */
#include "cli/gen/worker.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "wire/text.h"
#include "store/slotlock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BUF = 4096, NAP_NS = 5000000 };

struct note {
    uint64_t used_us, check; /* check = ~used_us; both 0: never used */
};

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int worker_directory(const char *xdg, const char *home, bool root, char *out, size_t cap)
{
    struct text path = { .p = out, .cap = cap };
    if (xdg && xdg[0] == '/') /* a relative one is to be ignored, says the XDG specification */
        text_addf(&path, "%s/firn", xdg);
    else if (root)
        text_addf(&path, "/var/lib/firn");
    else if (home && home[0] == '/')
        text_addf(&path, "%s/.local/state/firn", home);
    return path.len == 0 || path.truncated ? FIRN_ENOENT : 0;
}

/* The directory and those above it, for this user alone. */
static int make_directories(char *path)
{
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char was = *p;
        *p = '\0';
        int r = mkdir(path, 0700);
        *p = was;
        if (r != 0 && errno != EEXIST)
            return -1;
        if (was == '\0')
            return 0;
    }
}

int worker_open(struct worker *w, uint64_t scope, struct firn_diag *d)
{
    char path[PATH_BUF + 16];
    *w = (struct worker){ .file = -1, .name = -1, .scope = scope };
    if (worker_directory(getenv("XDG_STATE_HOME"), getenv("HOME"), geteuid() == 0, path,
                         PATH_BUF) != 0)
        return firn__diag(d, FIRN_ENOENT, 0, "neither XDG_STATE_HOME nor HOME is set");
    size_t len = strlen(path);
    memcpy(path + len, "/workers", sizeof "/workers");
    w->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (w->file < 0 && errno == ENOENT) {
        path[len] = '\0';
        if (make_directories(path) == 0) {
            path[len] = '/';
            w->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        }
    }
    if (w->file < 0)
        return firn__diag(d, FIRN_EIO, 0, "%.120s: %s", path, strerror(errno));
    return 0;
}

void worker_close(struct worker *w)
{
    if (w->name >= 0)
        close(w->name);
    if (w->file >= 0)
        close(w->file);
    w->name = w->file = -1;
}

static off_t place(uint32_t number)
{
    return (off_t)(number % WORKERS_MAX) * (off_t)sizeof(struct note);
}

static bool set_lock(const struct worker *w, uint32_t number, short type)
{
    struct flock l = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = place(number), .l_len = sizeof(struct note)
    };
    int r;
    while ((r = fcntl(w->file, F_OFD_SETLK, &l)) != 0 && errno == EINTR)
        ;
    return r == 0;
}

static void let_go(struct worker *w, uint32_t number)
{
    if (w->name >= 0)
        close(w->name);
    w->name = -1;
    (void)set_lock(w, number, F_UNLCK); /* the worst case is a number that looks taken */
}

/* 0: locked, *out_us is its note. FIRN_ECONFLICT: in use. FIRN_EFORMAT. */
static int lock_one(struct worker *w, uint32_t number, int64_t *out_us, struct firn_diag *d)
{
    struct note n = { 0, 0 };
    if (!set_lock(w, number, F_WRLCK))
        return FIRN_ECONFLICT;
    if (slot_name_bind(w->scope, w->scope ? number : number % WORKERS_MAX, &w->name) != 0) {
        let_go(w, number);
        return FIRN_ECONFLICT;
    }
    ssize_t got = pread(w->file, &n, sizeof n, place(number));
    bool never = got == 0 || (n.used_us == 0 && n.check == 0);
    if (got < 0 ||
        (!never && (got != sizeof n || n.check != ~n.used_us || n.used_us > INT64_MAX))) {
        let_go(w, number);
        return firn__diag(d, FIRN_EFORMAT, 0, "its note on worker %" PRIu32 " is damaged", number);
    }
    *out_us = (int64_t)n.used_us;
    return 0;
}

/* One search through the numbers: the first whose note is at most `ahead_us` ahead of the clock. */
static int search(struct worker *w, uint32_t first, uint32_t count, uint32_t begin,
                  int64_t ahead_us, bool *out_ahead, struct firn_diag *d)
{
    for (uint32_t k = 0; k < count; k++) {
        uint32_t number = first + (uint32_t)(((uint64_t)begin + k) % count);
        int r = lock_one(w, number, &w->used_us, d);
        if (r == FIRN_EFORMAT)
            return r;
        if (r != 0)
            continue;
        w->number = number;
        if (w->used_us <= now_us() + ahead_us)
            return 0;
        *out_ahead = true;
        let_go(w, number);
    }
    return FIRN_ENOSLOT;
}

int worker_take(struct worker *w, uint32_t first, uint32_t count, uint32_t random,
                struct firn_diag *d)
{
    uint64_t end = mono_ms() + WORKER_WAIT_MS;
    count = count < WORKERS_MAX ? count : WORKERS_MAX;
    for (;;) {
        bool ahead = false, too_far = false;
        int r = search(w, first, count, random % count, 0, &ahead, d);
        if (r == FIRN_ENOSLOT && ahead)
            r = search(w, first, count, random % count, WORKER_AHEAD_US, &too_far, d);
        if (r != FIRN_ENOSLOT)
            return r;
        if (mono_ms() >= end)
            return too_far ? FIRN_ECLOCK : FIRN_ENOSLOT;
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    }
}

int worker_note(struct worker *w, int64_t until_us, struct firn_diag *d)
{
    if (w->file < 0 || until_us <= w->used_us)
        return 0;
    struct note n = { (uint64_t)until_us, ~(uint64_t)until_us };
    if (pwrite(w->file, &n, sizeof n, place(w->number)) != sizeof n)
        return firn__diag(d, FIRN_EIO, 0, "%s", strerror(errno));
    w->used_us = until_us;
    return 0;
}
