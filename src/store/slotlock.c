/* Slot locks as open file description locks on the bytes of a side file (slotlock.h). */
#include "store/slotlock.h"
#include "id/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int slot_lock_open(const char *store_path, int *out_fd, struct firn_diag *d)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s.slots", store_path);
    if (n < 0 || (size_t)n >= sizeof path)
        return firn__diag(d, FIRN_EINVAL, 0, "the path of the store is too long");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot open %.120s: %s", path, strerror(errno));
    *out_fd = fd;
    return 0;
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

int slot_lock_try(int fd, uint32_t slot)
{
    return set(fd, slot, F_WRLCK);
}

void slot_lock_release(int fd, uint32_t slot)
{
    (void)set(fd, slot, F_UNLCK); /* the worst case is a slot that looks held until we exit */
}
