/* The note of a truncation that is under way, and its end after a crash. */
#include "raft/shield/truncation.h"
#include "raft/shield/closed_segment.h"
#include "raft/shield/vote.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>

/* Two numbers with a checksum, written in place: the file exists from the first start on. */
static int note(const char *path, uint64_t from, uint64_t to)
{
    return vote_write(path, &(struct vote){ .term = from, .candidate = to });
}

void truncation_note(const char *path, uint64_t from, uint64_t to)
{
    firn_assert(from > 0, "to=%" PRIu64, to);
    int r = note(path, from, to);
    (void)r;
}

void truncation_done(const char *path)
{
    int r = note(path, 0, 0);
    (void)r;
}

/* The truncation at `index` had begun: no segment has that entry, and the segments before it end
 * there. */
static bool had_begun(const struct closed_segment *list, size_t n, uint64_t index)
{
    uint64_t before = index - 1;
    for (size_t i = 0; i < n; i++) {
        if (list[i].first <= index && index <= list[i].last)
            return false;
        if (list[i].first < index)
            before = list[i].last;
    }
    return before == index - 1;
}

int truncation_finish(const char *path, const char *dir, struct firn_diag *d)
{
    struct vote noted = { 0, 0 };
    struct closed_segment *list;
    size_t n;
    if (vote_read(path, &noted) != 0 || noted.term == 0) {
        truncation_done(path);
        return 0;
    }
    int r = closed_list(dir, &list, &n, d);
    if (r != 0)
        return r;
    if (had_begun(list, n, noted.term))
        r = closed_remove(dir, list, n, noted.term + 1, noted.candidate, d);
    free(list);
    if (r == 0)
        truncation_done(path);
    return r;
}
