/*
 * The disk: what it says is saved is there after a crash at any call, with un-synced data lost, and
 * an error of any call is overcome without a restart.
 *
 * The folder's calls are real ones, with a second book: which bytes of each file and which names
 * are synced. A power cut makes a new folder from it: synced data, and of the rest any sectors and
 * any names that the kernel may have written by itself.
 */
#include "t.h"

#include "memory_folder.h"
#include "raft/disk.h"
#include "raft/log_format.h"
#include "raft/log_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
enum { STRIDE = 23 }; /* ThreadSanitizer is for the cases with a thread: of the others some */
#else
enum { STRIDE = 1 };
#endif

/* ---- a core that has a log and nothing else ---- */

enum { LOG_MAX = 4096, DATA_MAX = 3000 };

struct log_entry {
    uint64_t term;
    enum core_type type;
    size_t len;
    char bytes[DATA_MAX];
};

struct core {
    uint64_t term, vote, first, last, snapshot_index, snapshot_term, snapshot_seed;
    struct log_entry *entry; /* by index */
};

bool core_entry_at(const struct core *c, uint64_t index, struct core_entry *out)
{
    if (index < c->first || index > c->last)
        return false;
    const struct log_entry *e = &c->entry[index];
    *out = (struct core_entry){ index, e->term, e->type, e->bytes, e->len };
    return true;
}

enum { SAVES_MAX = 400 };

struct world {
    struct core core;
    uint64_t digest[SAVES_MAX + 1]; /* of what is to be found after this save */
    uint64_t number;                /* of the last save in this life; digest[0]: what was loaded */
};

static void mix(uint64_t *h, const void *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *h = (*h ^ ((const unsigned char *)p)[i]) * UINT64_C(0x100000001b3);
}

static void mix_number(uint64_t *h, uint64_t v)
{
    mix(h, &v, sizeof v);
}

static size_t snapshot_bytes(uint64_t seed, char *to)
{
    size_t len = (size_t)(seed % 5000);
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(seed >> i % 7 * 8);
    return len;
}

static uint64_t digest_of(const struct core *c)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    char bytes[5000];
    mix_number(&h, c->term);
    mix_number(&h, c->vote);
    mix_number(&h, c->snapshot_index);
    mix_number(&h, c->snapshot_term);
    if (c->snapshot_index)
        mix(&h, bytes, snapshot_bytes(c->snapshot_seed, bytes));
    mix_number(&h, c->last >= c->first ? c->first : 0);
    for (uint64_t i = c->first; i <= c->last; i++) {
        mix_number(&h, i);
        mix_number(&h, c->entry[i].term);
        mix_number(&h, c->entry[i].type);
        mix(&h, c->entry[i].bytes, c->entry[i].len);
    }
    return h;
}

static uint64_t digest_loaded(const struct disk_loaded *l)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const struct core_saved_state *s = &l->state;
    mix_number(&h, s->term);
    mix_number(&h, s->vote);
    mix_number(&h, s->snapshot ? s->snapshot->index : 0);
    mix_number(&h, s->snapshot ? s->snapshot->term : 0);
    if (s->snapshot)
        mix(&h, s->snapshot->bytes, s->snapshot->len);
    mix_number(&h, s->entries ? s->first : 0);
    for (size_t i = 0; i < s->entries; i++) {
        mix_number(&h, s->entry[i].index);
        mix_number(&h, s->entry[i].term);
        mix_number(&h, s->entry[i].type);
        mix(&h, s->entry[i].bytes, s->entry[i].len);
    }
    return h;
}

static void world_init(struct world *w)
{
    *w = (struct world){ .core.first = 1, .core.entry = calloc(LOG_MAX, sizeof *w->core.entry) };
    w->digest[0] = digest_of(&w->core);
}

static void world_done(struct world *w)
{
    free(w->core.entry);
}

/* The core goes on from what was loaded. */
static void world_load(struct world *w, const struct disk_loaded *l)
{
    struct core *c = &w->core;
    const struct core_saved_state *s = &l->state;
    *c = (struct core){ .entry = c->entry, .first = 1, .term = s->term, .vote = s->vote };
    if (s->snapshot) {
        c->snapshot_index = s->snapshot->index;
        c->snapshot_term = s->snapshot->term;
        memcpy(&c->snapshot_seed, s->snapshot->config.member[0].address + 1, 8);
        c->first = c->snapshot_index + 1;
    }
    if (s->entries)
        c->first = s->first;
    c->last = c->first - 1;
    for (size_t i = 0; i < s->entries; i++) {
        struct log_entry *e = &c->entry[++c->last];
        e->term = s->entry[i].term;
        e->type = s->entry[i].type;
        e->len = s->entry[i].len;
        memcpy(e->bytes, s->entry[i].bytes, e->len);
    }
    w->number = 0;
    w->digest[0] = digest_of(c);
}

static void append(struct core *c, uint64_t n)
{
    while (n-- > 0 && c->last + 1 < LOG_MAX) {
        struct log_entry *e = &c->entry[++c->last];
        static const size_t lens[] = { 0, 10, 60, 200, DATA_MAX };
        e->term = c->term;
        e->type = ENTRY_DATA;
        e->len = (size_t)t_random_below(lens[t_random_below(T_LEN(lens))] + 1);
        memset(e->bytes, 0, e->len); /* long runs of zeros, sometimes */
        if (t_random_below(3))
            t_random_bytes(e->bytes, e->len);
    }
}

static uint64_t some_of(uint64_t from, uint64_t to)
{
    return from + t_random_below(to - from + 1);
}

/* The core does something. `room` is where the snapshot is put. */
static struct core_save step(struct world *w, struct core_snapshot *room)
{
    static char bytes[5000];
    struct core *c = &w->core;
    struct core_save s = { .number = ++w->number };
    T_OK(w->number <= SAVES_MAX);
    uint64_t what = t_random_below(10), snapshot = 0, before = c->last;
    if (what == 0 || c->term == 0) {
        c->term += 1 + t_random_below(2);
        c->vote = t_random_below(3);
    } else if (what == 1 && c->vote == 0)
        c->vote = 1 + t_random_below(3);
    else if (what == 2 && c->last > c->snapshot_index && c->last >= c->first) {
        c->term++;
        c->vote = 0;
        s.truncate = some_of(c->snapshot_index + 1 > c->first ? c->snapshot_index + 1 : c->first,
                             c->last);
        c->last = before = s.truncate - 1;
    } else if (what == 3 && c->last > c->snapshot_index) {
        snapshot = some_of(c->snapshot_index + 1, c->last);
        s.log_first = some_of(c->first, snapshot + 1);
        c->snapshot_term = c->entry[snapshot].term;
    } else if (what == 4 && t_random_below(3) == 0 && c->last + 50 < LOG_MAX) {
        snapshot = c->last + 1 + t_random_below(5);
        s.log_first = s.truncate = snapshot + 1;
        c->snapshot_term = c->term;
        c->last = before = snapshot;
    }
    if (snapshot) {
        c->first = s.log_first;
        c->snapshot_index = snapshot;
        c->snapshot_seed = t_random();
        *room = (struct core_snapshot){ .index = snapshot, .term = c->snapshot_term };
        room->config.count = 1;
        room->config.member[0] = (struct core_member){ .id = 1, .role = CORE_VOTER };
        uint64_t seed = c->snapshot_seed; /* an address that has no NUL and tells it */
        for (int i = 0; i < 8; i++)
            seed |= UINT64_C(1) << 8 * i;
        c->snapshot_seed = seed;
        room->config.member[0].address[0] = 'a';
        memcpy(room->config.member[0].address + 1, &seed, 8);
        room->len = snapshot_bytes(seed, bytes);
        room->bytes = bytes;
        s.snapshot = room;
    }
    append(c, what > 4 ? 1 + t_random_below(4) : t_random_below(3));
    s.term = c->term;
    s.vote = c->vote;
    s.first = before + 1;
    s.entries = c->last - before;
    w->digest[w->number] = digest_of(c);
    return s;
}

/* ---- the store without a thread, on a folder that stops ---- */

static struct log_store *open_store(struct mem_folder *m, struct world *w, uint64_t from,
                                    uint64_t to, const char *when)
{
    struct log_store *s;
    struct disk_loaded l;
    struct firn_diag d = { 0 };
    int r = log_store_open(&m->folder, &s, &l, &d);
    if (r == FIRN_EIO) /* the calls fail */
        return NULL;
    T_EQ(r, 0, "%s: %s", when, d.text);
    uint64_t found = digest_loaded(&l);
    bool known = false;
    for (uint64_t i = from; i <= to && !known; i++)
        known = w->digest[i] == found;
    T_OK(known, "%s: not a state from save %" PRIu64 " to %" PRIu64, when, from, to);
    world_load(w, &l);
    disk_loaded_done(&l);
    return s;
}

/* `saves` saves, up to three at once. False: a write failed. */
static bool run(struct log_store *s, struct world *w, uint64_t saves, int tries)
{
    struct core_snapshot room;
    while (saves > 0) {
        struct firn_diag d;
        for (uint64_t n = 1 + t_random_below(3); n > 0 && saves > 0; n--, saves--) {
            struct core_save save = step(w, &room);
            log_store_take(s, log_save_copy(&w->core, &save));
        }
        int r = log_store_write(s, &d);
        for (int i = 1; r != 0 && i < tries; i++)
            r = log_store_write(s, &d);
        if (r != 0)
            return false;
        T_EQ(log_store_saved(s), w->number);
    }
    return true;
}

/* Two lives of one folder; true if no call failed for good. */
static bool two_lives(struct mem_folder *m, struct world *w, uint64_t *saved, int tries)
{
    bool ok = true;
    *saved = 0;
    for (int life = 0; life < 2 && ok; life++) {
        struct log_store *s = open_store(m, w, w->number, w->number, "second life");
        for (int i = 1; !s && i < tries; i++)
            s = open_store(m, w, w->number, w->number, "second life, again");
        if (!s)
            return false;
        *saved = 0;
        ok = run(s, w, 20, tries);
        *saved = log_store_saved(s);
        log_store_close(s);
    }
    return ok;
}

T_TEST(a_power_cut_at_every_call)
{
    bool all = false;
    for (uint64_t k = 1; !all; k += STRIDE) {
        struct mem_folder *m = mem_new();
        struct world w;
        uint64_t saved;
        world_init(&w);
        m->stop_at = k;
        all = two_lives(m, &w, &saved, 1);
        struct mem_folder *after = mem_power_cut(m);
        char when[60];
        snprintf(when, sizeof when, "cut before call %" PRIu64, k);
        struct log_store *s = open_store(after, &w, saved, w.number, when);
        T_OK(s && !m->abused);
        T_OK(run(s, &w, 10, 1));
        log_store_close(s);
        struct mem_folder *end = mem_power_cut(after); /* all of that was acknowledged */
        s = open_store(end, &w, w.number, w.number, "the end");
        T_OK(s);
        log_store_close(s);
        world_done(&w);
        mem_free(m);
        mem_free(after);
        mem_free(end);
        T_OK(k < 2000);
    }
}

/* A process that is killed leaves writes that are seen and not synced. Once they were loaded, the
 * core takes them for saved: so they are. */
T_TEST(what_was_loaded_survives_a_power_cut)
{
    bool all = false;
    for (uint64_t k = 1; !all; k += STRIDE) {
        struct mem_folder *m = mem_new();
        struct world w;
        uint64_t saved;
        world_init(&w);
        m->stop_at = k;
        all = two_lives(m, &w, &saved, 1);
        m->stop_at = 0;
        struct log_store *s = open_store(m, &w, saved, w.number, "after a kill");
        T_OK(s);
        log_store_close(s);
        struct mem_folder *after = mem_power_cut(m);
        s = open_store(after, &w, 0, 0, "after a kill and a power cut");
        T_OK(s);
        log_store_close(s);
        world_done(&w);
        mem_free(m);
        mem_free(after);
    }
}

/* Where the file grows. */
T_TEST(a_power_cut_at_the_end_of_a_chunk)
{
    uint64_t from = 0, to = 0;
    bool grown = false;
    for (uint64_t k = 0; k <= to; k = k < from ? from : k + STRIDE) {
        struct mem_folder *m = mem_new();
        struct world w;
        struct firn_diag d;
        world_init(&w);
        struct log_store *s = open_store(m, &w, 0, 0, "new");
        w.core.term = 1;
        m->stop_at = k;
        int r = 0;
        for (uint64_t i = 1; i <= LOG_CHUNK / 3072 + 4 && r == 0; i++) {
            w.core.entry[i] = (struct log_entry){ .term = 1, .type = ENTRY_DATA, .len = DATA_MAX };
            memset(w.core.entry[i].bytes, 'x', DATA_MAX);
            w.core.last = i;
            w.digest[i] = digest_of(&w.core);
            w.number = i;
            log_store_take(
                s, log_save_copy(&w.core, &(struct core_save){
                                              .number = i, .term = 1, .first = i, .entries = 1 }));
            r = log_store_write(s, &d);
            if (k == 0 && i == LOG_CHUNK / 3072 - 4)
                from = m->calls;
            to = k == 0 ? m->calls : to;
        }
        uint64_t saved = log_store_saved(s);
        grown |= m->file[0].len > LOG_CHUNK;
        log_store_close(s);
        for (int i = 0; i < 8; i++) {
            struct mem_folder *after = mem_power_cut(m);
            uint64_t number = w.number, digests[SAVES_MAX + 1];
            memcpy(digests, w.digest, sizeof digests);
            s = open_store(after, &w, saved, number, "at the end of a chunk");
            T_OK(s, "call %" PRIu64, k);
            log_store_close(s);
            memcpy(w.digest, digests, sizeof digests);
            w.number = number;
            mem_free(after);
        }
        world_done(&w);
        mem_free(m);
    }
    T_OK(to > from && from > 0 && grown);
}

/* From the k-th call on so many fail; then the disk works again, and all is saved. */
static void fail_at_every_call(int error, uint64_t calls)
{
    bool all = false;
    for (uint64_t k = 1; !all; k += STRIDE) {
        struct mem_folder *m = mem_new();
        struct world w;
        uint64_t saved;
        world_init(&w);
        m->fail_from = k;
        m->fail_to = k + calls;
        m->error = error;
        T_OK(two_lives(m, &w, &saved, 50), "call %" PRIu64, k);
        all = m->calls < k;
        struct mem_folder *after = mem_power_cut(m);
        struct log_store *s = open_store(after, &w, w.number, w.number, "after an error");
        T_OK(s);
        T_OK(!m->abused, "a file was used after its sync had failed, call %" PRIu64, k);
        log_store_close(s);
        world_done(&w);
        mem_free(m);
        mem_free(after);
        T_OK(k < 2000);
    }
}

T_TEST(an_error_at_every_call)
{
    fail_at_every_call(EIO, 1);
}

T_TEST(a_full_disk_at_every_call)
{
    fail_at_every_call(ENOSPC, 7);
}

T_TEST(many_lives_with_errors_and_power_cuts)
{
    for (uint64_t i = t_scale(60); i > 0; i--) {
        struct mem_folder *m = mem_new();
        struct world w;
        uint64_t saved = 0;
        world_init(&w);
        for (int life = 0; life < 12; life++) {
            m->stop_at = 0;
            m->fail_from = m->calls + 1 + t_random_below(100);
            m->fail_to = m->fail_from + t_random_below(6);
            m->error = t_random_below(2) ? EIO : ENOSPC;
            struct log_store *s = open_store(m, &w, saved, w.number, "a life");
            for (int k = 0; !s && k < 10; k++)
                s = open_store(m, &w, saved, w.number, "a life, again");
            T_OK(s);
            m->stop_at = m->calls + 1 + t_random_below(120);
            (void)run(s, &w, 25, 10);
            saved = log_store_saved(s);
            T_OK(!m->abused);
            log_store_close(s);
            if (t_random_below(3) == 0)
                continue; /* only the process is killed: what it wrote and did not sync is seen */
            struct mem_folder *next = mem_power_cut(m);
            mem_free(m);
            m = next;
        }
        world_done(&w);
        mem_free(m);
    }
}

T_TEST(a_large_file_is_replaced)
{
    struct mem_folder *m = mem_new();
    struct world w;
    world_init(&w);
    struct log_store *s = open_store(m, &w, 0, 0, "new");
    struct firn_diag d;
    w.core.term = 1;
    for (uint64_t i = 0; i < 40000; i++) { /* the same entry again and again: 512 bytes each */
        struct core_save save = { .number = i + 1, .term = 1, .vote = 1, .first = 1, .entries = 1 };
        w.core.last = 1;
        w.core.vote = 1;
        w.core.entry[1] = (struct log_entry){ .term = 1, .type = ENTRY_DATA, .len = 8 };
        save.truncate = i > 0 ? 1 : 0;
        log_store_take(s, log_save_copy(&w.core, &save));
        T_EQ(log_store_write(s, &d), 0);
    }
    T_OK(m->files >= 2, "files=%d", m->files);
    T_EQ(m->nows, 1);
    T_OK(m->file[m->now[0].file].len <= 18u << 20);
    log_store_close(s);
    w.digest[0] = digest_of(&w.core);
    s = open_store(m, &w, 0, 0, "again");
    T_OK(s);
    log_store_close(s);
    world_done(&w);
    mem_free(m);
}

/* ---- damage ---- */

static int open_result(struct mem_folder *m, struct firn_diag *d)
{
    struct log_store *s;
    struct disk_loaded l;
    int r = log_store_open(&m->folder, &s, &l, d);
    if (r == 0) {
        disk_loaded_done(&l);
        log_store_close(s);
    }
    return r;
}

T_TEST(damage_is_named_and_never_deleted)
{
    for (int what = 0; what < 4; what++) {
        struct mem_folder *m = mem_new();
        struct world w;
        struct core_snapshot room;
        struct firn_diag d = { 0 };
        world_init(&w);
        struct log_store *s = open_store(m, &w, 0, 0, "new");
        T_OK(run(s, &w, 30, 1));
        while (w.core.snapshot_index == 0 || w.core.last <= w.core.snapshot_index) {
            struct core_save save = step(&w, &room);
            log_store_take(s, log_save_copy(&w.core, &save));
            T_EQ(log_store_write(s, &d), 0);
        }
        log_store_close(s);
        T_EQ(m->nows, 2);
        mem_op(m, "mine", m->now[0].file); /* another's file */
        mem_op(m, "snapshot-2-15-7", m->now[0].file);
        mem_op(m, "log-0000000000000000.tmp", m->now[0].file);
        int log = strncmp(m->now[0].name, "log", 3) == 0 ? 0 : 1;
        char name[MEM_NAME_MAX];
        if (what == 0)
            m->file[m->now[log].file].now[100] ^= 1;
        else if (what == 1)
            m->file[m->now[1 - log].file].now[100] ^= 1;
        else if (what == 2)
            mem_op(m, strcpy(name, m->now[1 - log].name), -1);
        else
            mem_op(m, strcpy(name, m->now[log].name), -1);
        int names = m->nows;
        T_EQ(open_result(m, &d), FIRN_EFORMAT, "case %d", what);
        T_EQ(m->nows, names);
        T_OK(strstr(d.text, "join again") && (strstr(d.text, "log") || strstr(d.text, "snapshot")),
             "%s", d.text);
        T_OK(mem_find(m->now, m->nows, "mine"));
        world_done(&w);
        mem_free(m);
    }
}

T_TEST(a_log_of_libraft_is_refused_and_stays)
{
    static const char *const theirs[] = { "metadata1", "metadata2", "open-1", "snapshot-2-15-7" };
    struct mem_folder *m = mem_new();
    struct firn_diag d = { 0 };
    for (size_t i = 0; i < T_LEN(theirs); i++)
        T_OK(mem_create(m, theirs[i]) >= 0);
    T_EQ(open_result(m, &d), FIRN_EFORMAT);
    T_OK(strstr(d.text, "libraft") && strstr(d.text, "docs/cluster.md"), "%s", d.text);
    T_EQ(m->nows, T_LEN(theirs));
    mem_free(m);
}

T_TEST(other_files_stay)
{
    struct mem_folder *m = mem_new();
    struct world w;
    static const char *const others[] = {
        "mine", "log-1", "log-000000000000000G", "snapshot-x.tmp", "log-0000000000000001.tmp.tmp",
        "logs", "log-"
    };
    world_init(&w);
    struct log_store *s = open_store(m, &w, 0, 0, "new");
    T_OK(run(s, &w, 10, 1));
    log_store_close(s);
    for (size_t i = 0; i < T_LEN(others); i++)
        mem_op(m, others[i], m->now[0].file);
    mem_op(m, "log-0000000000000000.tmp", m->now[0].file);
    s = open_store(m, &w, w.number, w.number, "again");
    T_OK(s);
    for (size_t i = 0; i < T_LEN(others); i++)
        T_OK(mem_find(m->now, m->nows, others[i]), "%s", others[i]);
    T_OK(!mem_find(m->now, m->nows, "log-0000000000000000.tmp"));
    log_store_close(s);
    world_done(&w);
    mem_free(m);
}

/* ---- the thread ---- */

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned calls;
};

static void on_moved(void *user)
{
    struct waiting *v = user;
    pthread_mutex_lock(&v->lock);
    v->calls++;
    pthread_cond_signal(&v->moved);
    pthread_mutex_unlock(&v->lock);
}

/* Waits until `number` is saved, or (number 0) until there is a problem. */
static void wait_for(struct waiting *v, struct disk *k, uint64_t number)
{
    char why[192];
    pthread_mutex_lock(&v->lock);
    while (number ? disk_saved(k) < number : !disk_problem(k, why, sizeof why))
        pthread_cond_wait(&v->moved, &v->lock);
    pthread_mutex_unlock(&v->lock);
}

T_TEST(a_real_folder)
{
    char dir[] = "/tmp/firn-disk-XXXXXX", command[300], why[192];
    struct waiting v = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
    struct disk_opts o = { .dir = dir, .moved = on_moved, .user = &v };
    struct core_snapshot room;
    struct world w;
    struct firn_diag d = { 0 };
    T_OK(mkdtemp(dir));
    world_init(&w);
    for (int life = 0; life < 4; life++) {
        struct disk *k;
        struct disk_loaded l;
        T_EQ(disk_open(&o, &k, &l, &d), 0, "%s", d.text);
        T_EQ(l.any, life > 0);
        T_OK(digest_loaded(&l) == w.digest[w.number] || life == 0);
        if (life > 0)
            world_load(&w, &l);
        disk_loaded_done(&l);
        for (int i = 0; i < 60; i++) {
            struct core_save save = step(&w, &room);
            T_EQ(disk_save(k, &w.core, &save), 0);
            if (t_random_below(4) == 0) {
                wait_for(&v, k, save.number);
                T_EQ(disk_saved(k), save.number);
            }
        }
        T_OK(!disk_problem(k, why, sizeof why));
        disk_close(k); /* what is queued is written */
    }
    snprintf(command, sizeof command, "test $(ls %s | wc -l) -le 2 && rm -r %s", dir, dir);
    T_EQ(system(command), 0);
    world_done(&w);
}

T_TEST(files_are_private)
{
    char dir[] = "/tmp/firn-disk-XXXXXX", path[300], command[300];
    struct folder f;
    struct stat st;
    T_OK(mkdtemp(dir));
    T_EQ(folder_open(dir, &f), 0);
    int file = f.calls->create(f.at, "a");
    T_OK(file >= 0);
    f.calls->close(f.at, file);
    snprintf(path, sizeof path, "%s/a", dir);
    T_OK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    folder_close(&f);
    snprintf(command, sizeof command, "rm -r %s", dir);
    T_EQ(system(command), 0);
}

T_TEST(a_folder_that_is_not_there)
{
    struct disk *k;
    struct disk_loaded l;
    struct firn_diag d = { 0 };
    T_EQ(disk_open(&(struct disk_opts){ .dir = "/nowhere/at/all" }, &k, &l, &d), FIRN_EIO);
    T_OK(strstr(d.text, "/nowhere/at/all") && !l.any, "%s", d.text);
}

/* Full for a while: nothing is reported as saved, the reason is told, and then all is written. */
T_TEST(a_disk_that_is_full_for_a_while)
{
    struct mem_folder *m = mem_new();
    struct waiting v = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
    struct disk_opts o = { .folder = &m->folder, .moved = on_moved, .user = &v };
    struct core_snapshot room;
    struct world w;
    struct disk *k;
    struct disk_loaded l;
    struct firn_diag d;
    char why[192];
    world_init(&w);
    T_EQ(disk_open(&o, &k, &l, &d), 0);
    struct core_save save = step(&w, &room);
    T_EQ(disk_save(k, &w.core, &save), 0);
    wait_for(&v, k, 1);
    m->error = ENOSPC;
    m->fail_to = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        save = step(&w, &room);
        T_EQ(disk_save(k, &w.core, &save), 0);
    }
    wait_for(&v, k, 0);
    T_OK(disk_problem(k, why, sizeof why) && strstr(why, "No space left"), "%s", why);
    T_EQ(disk_saved(k), 1);
    m->fail_to = 0;
    wait_for(&v, k, w.number);
    T_OK(!disk_problem(k, why, sizeof why));
    disk_close(k);
    struct mem_folder *after = mem_power_cut(m);
    struct log_store *s = open_store(after, &w, w.number, w.number, "after it");
    T_OK(s);
    log_store_close(s);
    world_done(&w);
    mem_free(m);
    mem_free(after);
}

T_TEST(closing_a_broken_disk_ends)
{
    struct mem_folder *m = mem_new();
    struct disk_opts o = { .folder = &m->folder };
    struct core_snapshot room;
    struct world w;
    struct disk *k;
    struct disk_loaded l;
    struct firn_diag d;
    world_init(&w);
    T_EQ(disk_open(&o, &k, &l, &d), 0);
    m->stop_at = 1;
    struct core_save save = step(&w, &room);
    T_EQ(disk_save(k, &w.core, &save), 0);
    disk_close(k);
    world_done(&w);
    mem_free(m);
}
