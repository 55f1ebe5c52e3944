/*
 * memory_folder.h - a folder in memory that knows what is synced, for tests of the disk.
 * Any call can be made to fail, or to be the last one before a power cut. After it the folder has
 * what was synced, and of the rest any sectors of files and any names, as a kernel may have written
 * them by itself. A file whose sync has failed must not be used again; that is checked.
 */
#ifndef MEMORY_FOLDER_H
#define MEMORY_FOLDER_H

#include "raft/folder.h"
#include "t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MEM_FILES_MAX = 4096, MEM_NAMES_MAX = 64, MEM_OPS_MAX = 4096, MEM_NAME_MAX = 64 };

struct mem_file {
    char *now, *synced;
    size_t len, synced_len;
    size_t from, to; /* written since the last sync */
    bool broken;     /* a sync has failed */
};

struct mem_name {
    char name[MEM_NAME_MAX];
    int file; /* -1: none (unlinked) */
};

struct mem_folder {
    struct mem_file file[MEM_FILES_MAX];
    int files;
    struct mem_name now[MEM_NAMES_MAX], synced[MEM_NAMES_MAX];
    struct mem_name op[MEM_OPS_MAX]; /* since the last sync of the folder: a name gets a file */
    int nows, synceds, ops;
    _Atomic uint64_t calls;              /* atomic, as what follows: the disk's thread calls */
    _Atomic uint64_t fail_from, fail_to; /* these calls fail with `error`; the first call is 1 */
    _Atomic uint64_t stop_at;            /* this call and all later ones have no effect; 0: never */
    _Atomic int error;
    bool abused; /* a file was used after its sync had failed */
    struct folder folder;
};

static inline struct mem_name *mem_find(struct mem_name *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static inline void mem_set(struct mem_name *list, int *n, const char *name, int file)
{
    struct mem_name *e = mem_find(list, *n, name);
    if (!e && file >= 0) {
        T_OK(*n < MEM_NAMES_MAX);
        e = &list[(*n)++];
        snprintf(e->name, sizeof e->name, "%s", name);
    }
    if (e && file >= 0)
        e->file = file;
    else if (e)
        *e = list[--*n];
}

static inline void mem_op(struct mem_folder *m, const char *name, int file)
{
    T_OK(m->ops < MEM_OPS_MAX);
    struct mem_name *o = &m->op[m->ops++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->file = file;
    mem_set(m->now, &m->nows, name, file);
}

/* Counts the call. Below 0: it fails. */
static inline int mem_call(struct mem_folder *m)
{
    m->calls++;
    if (m->stop_at && m->calls >= m->stop_at)
        return -EIO;
    return m->calls >= m->fail_from && m->calls < m->fail_to ? -m->error : 0;
}

static inline int mem_create(void *at, const char *name)
{
    struct mem_folder *m = at;
    int e = mem_call(m);
    if (e < 0)
        return e;
    T_OK(m->files < MEM_FILES_MAX);
    m->file[m->files] = (struct mem_file){ 0 };
    mem_op(m, name, m->files);
    return m->files++;
}

static inline void mem_put(struct mem_file *f, const char *p, size_t len, size_t offset)
{
    if (offset + len > f->len) {
        f->now = realloc(f->now, offset + len);
        memset(f->now + f->len, 0, offset + len - f->len);
        f->len = offset + len;
    }
    if (len > 0) {
        memcpy(f->now + offset, p, len);
        f->from = f->to && f->from < offset ? f->from : offset;
        f->to = f->to > offset + len ? f->to : offset + len;
    }
}

static inline int mem_write(void *at, int file, const char *p, size_t len, uint64_t offset)
{
    struct mem_folder *m = at;
    int e = mem_call(m);
    m->abused |= m->file[file].broken;
    if (e == 0)
        mem_put(&m->file[file], p, len, (size_t)offset);
    else if (!m->stop_at) /* a part of it */
        mem_put(&m->file[file], p, (size_t)t_random_below(len + 1), (size_t)offset);
    return e;
}

static inline int mem_sync(void *at, int file)
{
    struct mem_folder *m = at;
    struct mem_file *f = &m->file[file];
    int e = mem_call(m);
    m->abused |= f->broken;
    f->broken |= e < 0;
    if (e == 0) {
        if (f->len > f->synced_len)
            f->synced = realloc(f->synced, f->len);
        if (f->to > 0)
            memcpy(f->synced + f->from, f->now + f->from, f->to - f->from);
        f->synced_len = f->len;
        f->from = f->to = 0;
    }
    return e;
}

static inline void mem_close(void *at, int file)
{
    (void)at;
    (void)file;
}

static inline int mem_rename(void *at, const char *from, const char *to)
{
    struct mem_folder *m = at;
    int e = mem_call(m);
    const struct mem_name *f = mem_find(m->now, m->nows, from);
    if (e < 0 || !f)
        return e < 0 ? e : -ENOENT;
    mem_op(m, to, f->file);
    mem_op(m, from, -1);
    return 0;
}

static inline int mem_unlink(void *at, const char *name)
{
    struct mem_folder *m = at;
    int e = mem_call(m);
    if (e < 0 || !mem_find(m->now, m->nows, name))
        return e < 0 ? e : -ENOENT;
    mem_op(m, name, -1);
    return 0;
}

static inline int mem_sync_folder(void *at)
{
    struct mem_folder *m = at;
    int e = mem_call(m);
    if (e == 0) {
        memcpy(m->synced, m->now, sizeof m->now);
        m->synceds = m->nows;
        m->ops = 0;
    }
    return e;
}

static inline int mem_read(void *at, const char *name, struct buf *out)
{
    struct mem_folder *m = at;
    const struct mem_name *n = mem_find(m->now, m->nows, name);
    if (!n)
        return -ENOENT;
    out->len = 0;
    buf_add(out, m->file[n->file].now, m->file[n->file].len);
    return out->failed ? -ENOMEM : 0;
}

static inline int mem_list(void *at, void (*each)(void *user, const char *name), void *user)
{
    struct mem_folder *m = at;
    struct mem_name names[MEM_NAMES_MAX]; /* `each` may unlink */
    int n = m->nows;
    memcpy(names, m->now, sizeof names);
    for (int i = 0; i < n; i++)
        each(user, names[i].name);
    return 0;
}

static inline uint64_t mem_random(void *at)
{
    (void)at;
    return t_random();
}

static const struct folder_calls mem_calls = {
    mem_create, mem_write,       mem_sync, mem_close, mem_rename,
    mem_unlink, mem_sync_folder, mem_read, mem_list,  mem_random,
};

static inline struct mem_folder *mem_new(void)
{
    struct mem_folder *m = calloc(1, sizeof *m);
    T_OK(m);
    m->folder = (struct folder){ &mem_calls, m };
    return m;
}

static inline void mem_free(struct mem_folder *m)
{
    for (int i = 0; i < m->files; i++) {
        free(m->file[i].now);
        free(m->file[i].synced);
    }
    free(m);
}

/* What a start after a power cut finds. */
static inline struct mem_folder *mem_power_cut(const struct mem_folder *m)
{
    struct mem_folder *c = mem_new();
    memcpy(c->synced, m->synced, sizeof c->synced);
    c->synceds = m->synceds;
    uint64_t all = t_random_below(4); /* sometimes all or nothing */
    for (int i = 0; i < m->ops; i++)
        if (all == 0 || (all > 1 && t_random_below(2)))
            mem_set(c->synced, &c->synceds, m->op[i].name, m->op[i].file);
    memcpy(c->now, c->synced, sizeof c->now);
    c->nows = c->synceds;
    c->files = c->nows;
    for (int i = 0; i < c->files; i++) {
        const struct mem_file *f = &m->file[c->now[i].file];
        c->now[i].file = c->synced[i].file = i;
        size_t grown = f->len > f->synced_len ? f->len - f->synced_len : 0;
        static const size_t most[] = { 0, 4096, SIZE_MAX }; /* sizes are lost, too */
        size_t more = most[t_random_below(3)];
        size_t len = f->synced_len + (more < grown ? (size_t)t_random_below(more + 1) : grown);
        char *p = calloc(1, len + 1);
        if (f->synced_len > 0)
            memcpy(p, f->synced, f->synced_len);
        all = t_random_below(4);
        for (size_t s = 0; s < len; s += 512) {
            size_t n = len - s < 512 ? len - s : 512;
            if (all == 0 || (all > 1 && t_random_below(2)))
                memcpy(p + s, f->now + s, n);
        }
        c->file[i] = (struct mem_file){ .now = p, .len = len, .synced_len = len };
        c->file[i].synced = malloc(len + 1);
        memcpy(c->file[i].synced, p, len);
    }
    return c;
}

#endif
