/*
 * The folder of a member's machine in memory: the calls of raft/folder.h, each of them a step of
 * I/O at which the machine may lose its power. Then the folder has what was synced, and of the rest
 * any sectors of files and any names, as a kernel may have written them by itself.
 *
 * A log file is mostly zeros that no batch was written over yet: only the bytes up to the last one
 * written are kept, all behind them are zeros.
 */
#include "cluster_in.h"

#include <errno.h>

enum { SECTOR = 512 };

struct kfile {
    char name[40], synced_name[40]; /* "": none */
    char *now, *synced;             /* `used` bytes each */
    size_t used, room, len, synced_len;
    size_t from, to; /* written since the last sync */
    bool open, broken;
};

struct kfolder {
    struct kfile file[FILES_MAX];
    bool stopped; /* the power is gone */
};

static struct kfolder *folder_of(struct kmember *m)
{
    return m->files;
}

/* Below 0: the call fails. */
static int step(struct kmember *m, bool writes)
{
    struct kfolder *f = folder_of(m);
    if (f->stopped || m->stops_in == 1 || !k_io(m)) {
        f->stopped = true;
        return -EIO;
    }
    m->stops_in -= m->stops_in > 0;
    return writes && m->full_until > k_now() ? -ENOSPC : 0;
}

static struct kfile *find_file(struct kfolder *f, const char *name)
{
    for (unsigned i = 0; i < FILES_MAX; i++)
        if (strcmp(f->file[i].name, name) == 0)
            return &f->file[i];
    return NULL;
}

static void file_done(struct kfile *x)
{
    free(x->now);
    free(x->synced);
    *x = (struct kfile){ .open = false };
}

static int k_create(void *at, const char *name)
{
    struct kfolder *f = folder_of(at);
    int e = step(at, true);
    if (e < 0)
        return e;
    struct kfile *old = find_file(f, name);
    if (old)
        old->name[0] = '\0';
    for (int i = 0; i < FILES_MAX; i++) {
        struct kfile *x = &f->file[i];
        if (x->open || x->name[0] || x->synced_name[0])
            continue;
        file_done(x);
        x->open = true;
        snprintf(x->name, sizeof x->name, "%s", name);
        return i;
    }
    violate(k.w, "files", "a folder has more than %d files", FILES_MAX);
    return -ENOSPC;
}

static bool all_zeros(const char *p, size_t len)
{
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static void make_room(struct kfile *x, size_t used)
{
    if (used <= x->used)
        return;
    if (used > x->room) {
        x->room = used * 2;
        x->now = realloc(x->now, x->room);
        x->synced = realloc(x->synced, x->room);
        if (!x->now || !x->synced)
            abort();
    }
    memset(x->now + x->used, 0, used - x->used);
    memset(x->synced + x->used, 0, used - x->used);
    x->used = used;
}

static int k_write(void *at, int file, const char *p, size_t len, uint64_t offset)
{
    struct kfile *x = &folder_of(at)->file[file];
    int e = step(at, true);
    if (x->broken)
        violate(k.w, "files", "a file is written after its sync has failed");
    if (e < 0)
        return e;
    if (offset + len > x->len)
        x->len = offset + len;
    if (offset >= x->used && all_zeros(p, len))
        return 0;
    make_room(x, offset + len);
    memcpy(x->now + offset, p, len);
    x->from = x->to && x->from < offset ? x->from : offset;
    x->to = x->to > offset + len ? x->to : offset + len;
    return 0;
}

static int k_sync(void *at, int file)
{
    struct kfile *x = &folder_of(at)->file[file];
    int e = step(at, true);
    x->broken |= e < 0;
    if (e < 0)
        return e;
    if (!SIM_MUTANT(rc_sync_forgotten)) {
        if (x->to > 0)
            memcpy(x->synced + x->from, x->now + x->from, x->to - x->from);
        x->from = x->to = 0;
        x->synced_len = x->len;
    }
    return 0;
}

static void k_close(void *at, int file)
{
    folder_of(at)->file[file].open = false;
}

static int k_rename(void *at, const char *from, const char *to)
{
    int e = step(at, false);
    struct kfile *x = find_file(folder_of(at), from), *old = find_file(folder_of(at), to);
    if (e < 0 || !x)
        return e < 0 ? e : -ENOENT;
    if (old)
        old->name[0] = '\0';
    snprintf(x->name, sizeof x->name, "%s", to);
    return 0;
}

static int k_unlink(void *at, const char *name)
{
    int e = step(at, false);
    struct kfile *x = find_file(folder_of(at), name);
    if (e < 0 || !x)
        return e < 0 ? e : -ENOENT;
    x->name[0] = '\0';
    return 0;
}

static int k_sync_folder(void *at)
{
    struct kfolder *f = folder_of(at);
    int e = step(at, false);
    for (unsigned i = 0; i < FILES_MAX && e == 0; i++) {
        struct kfile *x = &f->file[i];
        memcpy(x->synced_name, x->name, sizeof x->name);
        if (!x->name[0] && !x->open)
            file_done(x);
    }
    return e;
}

static int k_read(void *at, const char *name, struct buf *out)
{
    const struct kfile *x = find_file(folder_of(at), name);
    if (!x)
        return -ENOENT;
    out->len = 0;
    size_t n = x->used < x->len ? x->used : x->len;
    buf_add(out, x->now, n);
    char *zeros = buf_room(out, x->len - n);
    if (zeros)
        memset(zeros, 0, x->len - n);
    if (zeros)
        buf_commit(out, x->len - n);
    return out->failed ? -ENOMEM : 0;
}

static int k_list(void *at, void (*each)(void *user, const char *name), void *user)
{
    struct kfolder *f = folder_of(at);
    for (unsigned i = 0; i < FILES_MAX; i++) {
        char name[sizeof f->file[0].name]; /* `each` may unlink it */
        memcpy(name, f->file[i].name, sizeof name);
        if (name[0])
            each(user, name);
    }
    return 0;
}

static uint64_t k_random(void *at)
{
    (void)at;
    return rand_next(&k.rng);
}

const struct folder_calls k_folder_calls = {
    k_create, k_write, k_sync, k_close, k_rename, k_unlink, k_sync_folder, k_read, k_list, k_random,
};

/* ---- the end of a process, and of its machine's power ---- */

static bool kept(unsigned mode)
{
    return mode == 0 || (mode > 1 && rand_chance(&k.rng, 50));
}

static void cut_power(struct kfile *x)
{
    unsigned mode = (unsigned)rand_below(&k.rng, 4); /* sometimes all or nothing */
    if (strcmp(x->name, x->synced_name) != 0 && !kept(mode))
        memcpy(x->name, x->synced_name, sizeof x->name);
    mode = (unsigned)rand_below(&k.rng, 4);
    size_t lost = 0, sectors = 0;
    for (size_t at = x->to ? x->from / SECTOR * SECTOR : 0; at < x->to; at += SECTOR, sectors++)
        if (!kept(mode)) {
            size_t n = x->used - at < SECTOR ? x->used - at : SECTOR;
            memcpy(x->now + at, x->synced + at, n);
            lost++;
        }
    if (x->len > x->synced_len && !kept(mode))
        x->len = x->synced_len + (size_t)rand_below(&k.rng, x->len - x->synced_len + 1);
    sometimes.rc_torn += lost > 0 && lost < sectors;
    if (x->used > x->len) {
        memset(x->now + x->len, 0, x->used - x->len);
        x->used = x->len;
    }
}

/* What a start finds now: all of it is as good as synced only after a loss of power. */
void k_folder_crash(struct kmember *m, bool power)
{
    struct kfolder *f = folder_of(m);
    f->stopped = false;
    for (unsigned i = 0; i < FILES_MAX; i++) {
        struct kfile *x = &f->file[i];
        x->open = x->broken = false;
        if (power) {
            cut_power(x);
            memcpy(x->synced_name, x->name, sizeof x->name);
            if (x->used > 0)
                memcpy(x->synced, x->now, x->used);
            x->synced_len = x->len;
            x->from = x->to = 0;
        }
        if (!x->name[0] && !x->synced_name[0])
            file_done(x);
    }
}

void k_folder_clear(struct kmember *m)
{
    for (unsigned i = 0; m->files && i < FILES_MAX; i++)
        file_done(&m->files->file[i]);
    if (m->files)
        m->files->stopped = false;
}

void k_folder_new(struct kmember *m)
{
    m->files = calloc(1, sizeof *m->files);
    if (!m->files)
        abort();
}

void k_folder_free(struct kmember *m)
{
    k_folder_clear(m);
    free(m->files);
    m->files = NULL;
}
