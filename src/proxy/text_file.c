/* Reads a small file. Tested in tests/integration/gateway_guards.py. */
#include "proxy/text_file.h"
#include "daemon/regular_file.h"
#include "id/diag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int text_file_read(const char *path, size_t max, char **out, size_t *out_len,
                   struct firn_diag *diag)
{
    const char *why = NULL;
    FILE *f = regular_file_open(path, &why);
    char *text = f ? malloc(max + 1) : NULL;
    int e = !f      ? firn__diag(diag, FIRN_EIO, 0, "cannot read %.120s: %s", path, why)
            : !text ? firn__diag(diag, FIRN_ENOMEM, 0, "out of memory")
                    : 0;
    if (e == 0) {
        size_t n = fread(text, 1, max + 1, f);
        if (ferror(f))
            e = firn__diag(diag, FIRN_EIO, 0, "cannot read %.120s: %s", path, strerror(errno));
        else if (n > max)
            e = firn__diag(diag, FIRN_ERANGE, 0, "%.120s has more than %zu bytes", path, max);
        if (e == 0) {
            text[n] = '\0';
            *out = text;
            *out_len = n;
            text = NULL;
        }
    }
    free(text);
    if (f)
        fclose(f);
    return e;
}

struct file_look file_look_at(const char *path)
{
    struct stat st;
    if (!path || stat(path, &st) != 0)
        return (struct file_look){ .size = -1 };
    return (struct file_look){ st.st_mtim, st.st_size, st.st_ino };
}

bool file_look_same(const struct file_look *a, const struct file_look *b)
{
    return a->at.tv_sec == b->at.tv_sec && a->at.tv_nsec == b->at.tv_nsec && a->size == b->size &&
           a->inode == b->inode;
}
