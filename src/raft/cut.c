#include "raft/cut.h"
#include "raft/segment.h"
#include "raft/vote.h"
#include "id/diag.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cut_note(const char *path, uint64_t index)
{
    int r = vote_write(path, &(struct vote){ .term = index }); /* a number, durable */
    (void)r;
}

void cut_over(const char *path)
{
    (void)unlink(path);
}

static int is_closed(const struct dirent *e)
{
    uint64_t first, last;
    return segment_closed_name(e->d_name, &first, &last);
}

/* Cut in the middle: the entry before `index` ends a segment, and none has `index` itself. If the note is an old
 * one, both are long in one segment or gone together. */
static bool was_cut(struct dirent **list, int n, uint64_t index)
{
    bool ends = false, has = false;
    for (int i = 0; i < n; i++) {
        uint64_t first, last;
        (void)segment_closed_name(list[i]->d_name, &first, &last);
        ends |= last + 1 == index;
        has |= first <= index && index <= last;
    }
    return ends && !has;
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
