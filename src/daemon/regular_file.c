/* Opens regular files without waiting (regular_file.h).
 * Tested in tests/unit/daemon/regular_file.c. */
#include "daemon/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *regular_file_open(const char *path, const char **why)
{
    struct stat st;
    FILE *f = NULL;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        if (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)) {
            f = fdopen(fd, "r");
        } else {
            close(fd);
            errno = EINVAL;
            *why = "not a regular file";
            return NULL;
        }
    }
    if (!f) {
        const int e = errno;
        if (fd >= 0)
            close(fd);
        errno = e;
        *why = strerror(e);
    }
    return f;
}
