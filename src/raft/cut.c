#include "raft/cut.h"
#include "raft/segment.h"
#include "raft/vote.h"
#include "id/diag.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cut_note(const char *path, uint64_t index)
{
    int r = vote_write(path, &(struct vote){ .term = index }); /* a number, durable */
    (void)r;
}

/* For good, before anything else is acknowledged: an old note must never come back. */
void cut_over(const char *path)
{
    char dir[4200];
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = unlink(path) == 0 ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

static int is_closed(const struct dirent *e)
{
    uint64_t first, last;
    return segment_closed_name(e->d_name, &first, &last);
}

/* Cut in the middle: no segment has `index`, and what is before it ends there. */
static bool was_cut(struct dirent **list, int n, uint64_t index)
{
    uint64_t before = index - 1;
    for (int i = 0; i < n; i++) {
        uint64_t first, last;
        (void)segment_closed_name(list[i]->d_name, &first, &last);
        if (first <= index && index <= last)
            return false;
        if (first < index)
            before = last;
    }
    return before == index - 1;
}

int cut_finish(const char *path, const char *dir, struct firn_diag *d)
{
    struct vote note;
    struct dirent **list;
    if (vote_read(path, &note) != 0)
        return 0;
    int n = scandir(dir, &list, is_closed, alphasort), r = 0;
    if (n < 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot read %.150s: %s", dir, strerror(errno));
    if (was_cut(list, n, note.term))
        for (int i = n - 1; i >= 0 && r == 0;
             i--) { /* from the end: what is left is a log each time */
            char file[4400];
            uint64_t first, last;
            (void)segment_closed_name(list[i]->d_name, &first, &last);
            snprintf(file, sizeof file, "%s/%s", dir, list[i]->d_name);
            if (first > note.term && unlink(file) != 0)
                r = firn__diag(d, FIRN_EIO, 0, "cannot remove %.150s: %s", file, strerror(errno));
        }
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
    if (r == 0)
        cut_over(path);
    return r;
}
