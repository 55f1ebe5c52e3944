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

/* Two numbers with a checksum, durable: in place, so that its name is there from the first start on. */
static int note(const char *path, uint64_t from, uint64_t to)
{
    return vote_write(path, &(struct vote){ .term = from, .candidate = to });
}

void cut_note(const char *path, uint64_t from, uint64_t to)
{
    int r = note(path, from, to);
    (void)r;
}

void cut_over(const char *path)
{
    int r = note(path, 0, 0);
    (void)r;
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
    struct vote cut = { 0, 0 };
    struct dirent **list;
    if (vote_read(path, &cut) != 0 || cut.term == 0) {
        cut_over(path);
        return 0;
    }
    int n = scandir(dir, &list, is_closed, alphasort), r = 0;
    if (n < 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot read %.150s: %s", dir, strerror(errno));
    if (was_cut(list, n, cut.term))
        for (int i = n - 1; i >= 0 && r == 0;
             i--) { /* from the end: what is left is a log each time */
            char file[4400];
            uint64_t first, last;
            (void)segment_closed_name(list[i]->d_name, &first, &last);
            snprintf(file, sizeof file, "%s/%s", dir, list[i]->d_name);
            if (first > cut.term && last <= cut.candidate && unlink(file) != 0)
                r = firn__diag(d, FIRN_EIO, 0, "cannot remove %.150s: %s", file, strerror(errno));
        }
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
    if (r == 0)
        cut_over(path);
    return r;
}
