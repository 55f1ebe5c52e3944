/*
 * The machine's ids, and the identity of a file on it (machine.h).
 * Tests: tests/unit/store/machine.c.
 */
#include "store/machine.h"
#include "id/fnv.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One line of printable characters; "" where there is no such file, or another content. */
static void read_line(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, cap - 1) : 0;
    if (fd >= 0)
        close(fd);
    size_t len = 0;
    while (n > 0 && len < (size_t)n && (isalnum((unsigned char)out[len]) || out[len] == '-'))
        len++;
    out[len] = '\0';
}

void machine_id(char out[MACHINE_ID_BUF])
{
    read_line("/etc/machine-id", out, MACHINE_ID_BUF);
    if (strlen(out) < 32) /* empty, or "uninitialized" in an image that has not booted */
        read_line("/var/lib/dbus/machine-id", out, MACHINE_ID_BUF);
    if (strlen(out) < 32)
        out[0] = '\0';
}

void machine_boot(char out[BOOT_ID_BUF])
{
    read_line("/proc/sys/kernel/random/boot_id", out, BOOT_ID_BUF);
}

void file_identity_text(const struct file_identity *f, char *out, size_t cap)
{
    int n = snprintf(out, cap, "sqlite:%llu:%lld.%09u", (unsigned long long)f->inode,
                     (long long)f->born_s, f->born_ns);
    if (f->machine[0] && n > 0 &&
        (size_t)n < cap) /* hashed: the id itself is not to be published */
        snprintf(out + n, cap - (size_t)n, ":%08x",
                 (unsigned)fnv(FNV_BEGIN, f->machine, strlen(f->machine)));
}

bool file_identity_same(const char *kept, const char *now)
{
    size_t len = strlen(kept), colons = 0;
    for (const char *p = kept; (p = strchr(p, ':')); p++)
        colons++;
    bool no_machine = strncmp(kept, "sqlite:", 7) == 0 && colons == 2;
    return strcmp(kept, now) == 0 ||
           (no_machine && strncmp(kept, now, len) == 0 && now[len] == ':');
}
