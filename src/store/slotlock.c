/*
 * Slot locks as open file description locks on the bytes of a side file, and names in the abstract
 * namespace of Unix sockets (slotlock.h). Tests: tests/unit/store/slotlock.c.
 */
#include "store/slotlock.h"
#include "id/diag.h"
#include "id/fnv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int slot_lock_open(const char *store_path, const char *layout, uint32_t slots,
                   struct slot_lock *out, struct firn_diag *d)
{
    char path[4096], boot[BOOT_ID_BUF] = "";
    int n = snprintf(path, sizeof path, "%s.slots", store_path);
    if (n < 0 || (size_t)n >= sizeof path)
        return firn__diag(d, FIRN_EINVAL, 0, "the path of the store is too long");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot open %.120s: %s", path, strerror(errno));
    *out = (struct slot_lock){ .fd = fd, .name = -1 };
    if (slots >= SLOT_LOCK_NAMED)
        out->scope = fnv(FNV_BEGIN, layout, strlen(layout)) | 1;
    machine_boot(out->boot);
    ssize_t got = pread(fd, boot, sizeof boot - 1, 0);
    out->moved = got > 0 && out->boot[0] && strncmp(boot, out->boot, sizeof boot - 1) != 0;
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

/* FIRN_ECONFLICT: a process of this machine has the name. Where there are no such sockets, the
 * lock bytes are all that there is. */
static int bind_name(struct slot_lock *l, uint32_t slot)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "firn-slot-%016" PRIx64 "-%" PRIu32,
                     l->scope, slot);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return 0;
    if (bind(s, (struct sockaddr *)&a, len) != 0) {
        int r = errno == EADDRINUSE ? FIRN_ECONFLICT : 0;
        close(s);
        return r;
    }
    if (l->name >= 0)
        close(l->name);
    l->name = s;
    return 0;
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
    if (r == 0 && l->boot[0] && /* the slot of this boot is chosen */
        pwrite(l->fd, l->boot, strlen(l->boot), 0) < 0)
        r = 0; /* then the next start takes another slot once more */
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
