/* Reads the key file of firn seal and firn unseal. */
#include "cli/gen/keyfile.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 16384 }; /* 58 keys, and room for comments */

static ssize_t read_all(int fd, char *buf, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, buf + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

int keyfile_open(const char *path, struct firn_seal **out)
{
    char buf[FILE_MAX + 1];
    struct firn_diag d = { 0 };
    struct stat st;
    if (!path)
        return say_trouble(
            "--key-file is required: the file with the keys; firn seal --new-key >FILE makes a "
            "first key");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return say_trouble("--key-file %s: %s: check the name and its permissions", path,
                           strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 077)
        say_warning("%s can be read by other users (mode %03o): run chmod 600 on it", path,
                    (unsigned)st.st_mode & 0777);
    ssize_t len = read_all(fd, buf, sizeof buf);
    int error = errno;
    close(fd);
    if (len < 0)
        return say_trouble("--key-file %s: %s", path, strerror(error));
    if (len > FILE_MAX) {
        explicit_bzero(buf, sizeof buf);
        return say_trouble("--key-file %s: more than %d bytes: this is not a key file", path,
                           FILE_MAX);
    }
    int r = firn_seal_from_text(buf, (size_t)len, out, &d);
    explicit_bzero(buf, sizeof buf);
    if (r == 0)
        return -1;
    return say_trouble("--key-file %s: %s", path, d.text[0] ? d.text : firn_error_message(r));
}
