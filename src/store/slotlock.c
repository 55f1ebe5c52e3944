/*
 * Slot locks as open file description locks on the bytes of a side file, and names in the abstract
 * namespace of Unix sockets (slotlock.h). Tests: tests/unit/store/slotlock.c.
 */
#include "store/slotlock.h"
#include "id/diag.h"
#include "id/fnv.h"
#include "platform/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { NOTE_BUF = BOOT_ID_BUF + 24 }; /* "boot since\n" */

int slot_lock_open(const char *store_path, const char *layout, uint32_t slots,
                   struct slot_lock *out, struct firn_diag *d)
{
    char path[4096], note[NOTE_BUF] = "";
    int n = snprintf(path, sizeof path, "%s.slots", store_path);
    if (n < 0 || (size_t)n >= sizeof path)
        return firn__diag(d, FIRN_EINVAL, 0, "the path of the store is too long");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot open %.120s: %s", path, strerror(errno));
    *out = (struct slot_lock){ .fd = fd, .name = -1 };
    out->scope = slot_name_scope(layout, slots);
    machine_boot(out->boot);
    size_t len = strlen(out->boot);
    ssize_t got = pread(fd, note, sizeof note - 1, 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (got > 0 && len > 0 && strncmp(note, out->boot, len) != 0)
        out->since_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    else if (got > (ssize_t)len)
        out->since_ms = strtoull(note + len, NULL, 10);
    return 0;
}

void slot_lock_close(struct slot_lock *l)
{
    if (l->name >= 0)
        close(l->name);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = l->name = -1;
}

static int set(int fd, uint32_t slot, short type)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1 };
    while (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        if (errno == EINTR)
            continue;
        return errno == EAGAIN || errno == EACCES ? FIRN_ECONFLICT : FIRN_EIO;
    }
    return 0;
}

uint64_t slot_name_scope(const char *layout, uint64_t slots)
{
    return slots >= SLOT_LOCK_NAMED ? fnv(FNV_BEGIN, layout, strlen(layout)) | 1 : 0;
}

int slot_name_bind(uint64_t scope, uint32_t slot, int *out_fd)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    const char *machine = getenv("FIRN_TEST_MACHINE"); /* tests side by side are machines apart */
    int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1,
                     "firn-slot-%016" PRIx64 "-%" PRIu32 "%.60s", scope, slot,
                     machine ? machine : "");
    firn_assert(n > 0 && (size_t)n < sizeof a.sun_path - 1, "%d bytes", n);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    *out_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*out_fd < 0 || bind(*out_fd, (struct sockaddr *)&a, len) == 0)
        return 0;
    int r = errno == EADDRINUSE ? FIRN_ECONFLICT : 0;
    close(*out_fd);
    *out_fd = -1;
    return r;
}

/* Where there are no such sockets, the lock bytes are all that there is. */
static int bind_name(struct slot_lock *l, uint32_t slot)
{
    int s, r = slot_name_bind(l->scope, slot, &s);
    if (r == 0 && l->name >= 0)
        close(l->name);
    if (r == 0)
        l->name = s;
    return r;
}

int slot_lock_try(struct slot_lock *l, uint32_t slot)
{
    if (l->name >= 0 && l->slot == slot)
        return 0;
    int r = set(l->fd, slot, F_WRLCK);
    if (r == 0 && l->scope) {
        r = bind_name(l, slot);
        if (r != 0)
            slot_lock_release(l, slot);
        else
            l->slot = slot;
    }
    if (r == 0 && l->boot[0]) { /* the slot of this boot is chosen */
        char note[NOTE_BUF];
        int n = snprintf(note, sizeof note, "%s %020" PRIu64 "\n", l->boot, l->since_ms);
        if (pwrite(l->fd, note, (size_t)n, 0) != n)
            return 0; /* then the next start takes another slot once more */
    }
    return r;
}

void slot_lock_release(struct slot_lock *l, uint32_t slot)
{
    if (l->name >= 0 && l->slot == slot) {
        close(l->name);
        l->name = -1;
    }
    (void)set(l->fd, slot, F_UNLCK); /* the worst case is a slot that looks held until we exit */
}
