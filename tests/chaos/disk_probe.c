/*
 * A program that saves and says so, for tests/chaos/lost_writes: it loads a folder, prints
 * "loaded INDEX", then appends entries, takes snapshots, and prints "saved INDEX" for each entry
 * that the store has saved, until it is killed. With skip-sync or skip-folder it never syncs its
 * files, or its folder: a bug that a power cut has to show.
 */
#include "raft/log_store.h"

#include <stdio.h>
#include <stdlib.h>

enum { SNAPSHOT_EVERY = 64, KEEP = 20 };

struct core {
    uint64_t last;
};

bool core_entry_at(const struct core *c, uint64_t index, struct core_entry *out)
{
    static char bytes[3000];
    memset(bytes, (int)(index % 251), sizeof bytes);
    *out = (struct core_entry){ index, 1, ENTRY_DATA, bytes, (size_t)(index * 37 % 3000) };
    return index <= c->last;
}

static int nothing(void *at, int file)
{
    (void)at;
    (void)file;
    return 0;
}

static int nothing_of_folder(void *at)
{
    (void)at;
    return 0;
}

/* Exits if what was loaded is not what was saved. */
static uint64_t last_of(const struct disk_loaded *l)
{
    const struct core_saved_state *s = &l->state;
    uint64_t last = s->entries ? s->first + s->entries - 1 : s->snapshot ? s->snapshot->index : 0;
    struct core c = { last };
    for (size_t i = 0; i < s->entries; i++) {
        struct core_entry e;
        core_entry_at(&c, s->first + i, &e);
        if (s->entry[i].len != e.len || memcmp(s->entry[i].bytes, e.bytes, e.len) != 0)
            exit(3);
    }
    return last;
}

int main(int argc, char **argv)
{
    struct folder f;
    struct folder_calls calls;
    struct log_store *s;
    struct disk_loaded l;
    struct firn_diag d = { 0 };
    if (argc < 2 || folder_open(argv[1], &f) != 0)
        return 2;
    calls = *f.calls;
    f.calls = &calls;
    if (argc > 2 && strcmp(argv[2], "skip-sync") == 0)
        calls.sync = nothing;
    if (argc > 2 && strcmp(argv[2], "skip-folder") == 0)
        calls.sync_folder = nothing_of_folder;
    if (log_store_open(&f, &s, &l, &d) != 0) {
        fprintf(stderr, "%s\n", d.text);
        return 4;
    }
    struct core c = { last_of(&l) };
    disk_loaded_done(&l);
    printf("loaded %llu\n", (unsigned long long)c.last);
    fflush(stdout);
    for (uint64_t number = 1;; number++) {
        struct core_save save = { .number = number, .term = 1, .vote = 1 };
        struct core_snapshot snapshot = { .index = c.last, .term = 1, .bytes = "state", .len = 5 };
        if (c.last > KEEP && number % SNAPSHOT_EVERY == 0) {
            snapshot.config.count = 1;
            snapshot.config.member[0] =
                (struct core_member){ .id = 1, .role = CORE_VOTER, .address = "a:1" };
            save.snapshot = &snapshot;
            save.log_first = c.last - KEEP;
        }
        save.first = c.last + 1;
        save.entries = 1 + number % 5;
        c.last += save.entries;
        struct log_save *copy = log_save_copy(&c, &save);
        if (!copy)
            return 2;
        log_store_take(s, copy);
        if (log_store_write(s, &d) != 0) {
            fprintf(stderr, "%s\n", d.text);
            return 4;
        }
        printf("saved %llu\n", (unsigned long long)c.last);
        fflush(stdout);
    }
}
