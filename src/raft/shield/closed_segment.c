/* Repair of libraft's closed segments after a crash. */
#include "raft/shield/closed_segment.h"
#include "raft/shield/segment.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "first-last", sixteen digits or more each. */
static bool parse(const char *name, struct closed_segment *out)
{
    char *end;
    errno = 0;
    out->first = strtoull(name, &end, 10);
    if (name[0] < '0' || name[0] > '9' || *end != '-' || end[1] < '0' || end[1] > '9')
        return false;
    out->last = strtoull(end + 1, &end, 10);
    return *end == '\0' && errno == 0 && out->last >= out->first;
}

static void path_of(char *to, size_t cap, const char *dir, const struct closed_segment *c)
{
    snprintf(to, cap, "%s/%016llu-%016llu", dir, (unsigned long long)c->first,
             (unsigned long long)c->last);
}

static int compare(const void *a, const void *b)
{
    const struct closed_segment *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->last < y->last ? -1 : x->last > y->last;
}

static int is_closed(const struct dirent *e)
{
    struct closed_segment c;
    return parse(e->d_name, &c);
}

int closed_list(const char *dir, struct closed_segment **out, size_t *n, struct firn_diag *d)
{
    struct dirent **names;
    int count = scandir(dir, &names, is_closed, NULL);
    if (count < 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot read %.150s: %s", dir, strerror(errno));
    struct closed_segment *list = calloc((size_t)count + 1, sizeof *list);
    for (int i = 0; i < count; i++) {
        if (list)
            (void)parse(names[i]->d_name, &list[i]);
        free(names[i]);
    }
    free(names);
    if (!list)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    qsort(list, (size_t)count, sizeof *list, compare);
    for (int i = 1; i < count; i++)
        firn_assert(list[i - 1].first <= list[i].first && list[i].first <= list[i].last);
    *out = list;
    *n = (size_t)count;
    return 0;
}

static int remove_one(const char *dir, const struct closed_segment *c, struct firn_diag *d)
{
    char path[4400];
    path_of(path, sizeof path, dir, c);
    if (unlink(path) != 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot remove %.150s: %s", path, strerror(errno));
    return 0;
}

/* So that what is noted afterwards does not outlive the removal. */
static int sync_folder(const char *dir, struct firn_diag *d)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok ? 0 : firn__diag(d, FIRN_EIO, 0, "cannot sync %.150s: %s", dir, strerror(errno));
}

int closed_remove(const char *dir, const struct closed_segment *list, size_t n, uint64_t from,
                  uint64_t to, struct firn_diag *d)
{
    int r = 0;
    for (size_t i = n; i-- > 0 && r == 0;)
        if (list[i].first >= from && list[i].last <= to)
            r = remove_one(dir, &list[i], d);
    return r ? r : sync_folder(dir, d);
}

/* ---- after a truncation ---- */

/* Removes one of two segments with the same first entry; *out: the shorter one stays. */
static int repair_pair(const char *dir, const struct closed_segment *shorter,
                       const struct closed_segment *longer, bool *out, struct firn_diag *d)
{
    char path[4400];
    uint64_t entries = 0;
    firn_assert(shorter->first == longer->first && shorter->last <= longer->last);
    path_of(path, sizeof path, dir, shorter);
    int r = segment_entries(path, &entries, d);
    if (r != 0)
        return r;
    *out = entries == shorter->last - shorter->first + 1;
    return remove_one(dir, *out ? longer : shorter, d);
}

int closed_repair(const char *dir, struct firn_diag *d)
{
    struct closed_segment *list;
    size_t n;
    int r = closed_list(dir, &list, &n, d);
    if (r != 0)
        return r;
    for (size_t i = 1, kept = 0; i < n && r == 0; i++) {
        bool stays = false;
        if (list[kept].first == list[i].first)
            r = repair_pair(dir, &list[kept], &list[i], &stays, d);
        kept = stays ? kept : i;
    }
    free(list);
    return r ? r : sync_folder(dir, d);
}

/* ---- after a snapshot ---- */

/* "snapshot-term-index-time": not empty, and with its .meta file. */
static bool is_snapshot(const char *dir, const char *name, unsigned long long *term,
                        unsigned long long *index)
{
    char path[4400];
    struct stat st;
    int end = 0;
    unsigned long long time;
    if (sscanf(name, "snapshot-%llu-%llu-%llu%n", term, index, &time, &end) != 3 || name[end])
        return false;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (stat(path, &st) != 0 || st.st_size == 0)
        return false;
    snprintf(path, sizeof path, "%s/%s.meta", dir, name);
    return access(path, F_OK) == 0;
}

/* Index of the snapshot that libraft will load; 0: none. */
static uint64_t newest_snapshot(const char *dir)
{
    unsigned long long newest_term = 0, newest = 0, term, index;
    DIR *all = opendir(dir);
    for (const struct dirent *e; all && (e = readdir(all));)
        if (is_snapshot(dir, e->d_name, &term, &index) &&
            (term > newest_term || (term == newest_term && index > newest))) {
            newest_term = term;
            newest = index;
        }
    if (all)
        closedir(all);
    return newest;
}

int closed_drop_replaced(const char *dir, struct firn_diag *d)
{
    struct closed_segment *list;
    size_t n;
    uint64_t snapshot = newest_snapshot(dir), end = 0;
    int r = closed_list(dir, &list, &n, d);
    if (r != 0)
        return r;
    for (size_t i = 0; i < n; i++)
        end = list[i].last > end ? list[i].last : end;
    if (end < snapshot)
        r = closed_remove(dir, list, n, 0, UINT64_MAX, d);
    free(list);
    return r;
}
