/* Open segments of libraft: a torn end is told from damage, at every byte. */
#include "t.h"

#include "raft/shield/closed_segment.h"
#include "raft/shield/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM = 16 * 1024 };

static uint32_t crc(const unsigned char *p,
                    size_t len) /* bit by bit, another way than the code's */
{
    uint32_t c = 0;
    for (size_t i = 0; i < len; i++)
        for (int bit = 7; bit >= 0; bit--) {
            uint32_t top = c >> 31 ^ (p[i] >> bit & 1u);
            c = c << 1 ^ (top ? UINT32_C(0x04c11db7) : 0);
        }
    return c;
}

static void put(unsigned char *p, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

/* A batch of one entry with `size` bytes that are not zero. Returns where it ends. */
static size_t batch(unsigned char *p, size_t at, size_t size)
{
    unsigned char *h = p + at + 8, *d = h + 24;
    put(h, 1, 8);
    put(h + 8, 3, 8);
    h[16] = 1;
    put(h + 20, size, 4);
    for (size_t i = 0; i < size; i++)
        d[i] = (unsigned char)(1 + (at + i) % 250);
    put(p + at, crc(h, 24), 4);
    put(p + at + 4, crc(d, size), 4);
    return at + 32 + size;
}

T_TEST(whole)
{
    unsigned char *p = calloc(1, ROOM);
    size_t at;
    T_EQ(segment_look(p, ROOM, &at), SEGMENT_WHOLE);
    put(p, 1, 8);
    T_EQ(segment_look(p, ROOM, &at), SEGMENT_WHOLE);
    T_EQ(at, 8);
    size_t end = batch(p, batch(p, 8, 40), 2000);
    T_EQ(segment_look(p, ROOM, &at), SEGMENT_WHOLE);
    T_EQ(at, end);
    free(p);
}

T_TEST(every_flipped_byte_is_damage)
{
    unsigned char *p = calloc(1, ROOM);
    size_t at;
    put(p, 1, 8);
    size_t end = batch(p, batch(p, batch(p, 8, 40), 2000), 64);
    for (size_t i = 0; i < end; i++) {
        p[i] ^= 0x04;
        T_EQ(segment_look(p, ROOM, &at), SEGMENT_DAMAGED, "byte %zu of %zu", i, end);
        p[i] ^= 0x04;
    }
    T_EQ(segment_look(p, ROOM, &at), SEGMENT_WHOLE);
    free(p);
}

T_TEST(a_cut_at_a_sector_is_torn)
{
    unsigned char *p = calloc(1, ROOM), *q = malloc(ROOM);
    size_t at;
    put(p, 1, 8);
    size_t first = batch(p, 8, 40), end = batch(p, first, 4000);
    for (size_t cut = 512; cut < end; cut += 512) {
        memcpy(q, p, ROOM);
        memset(q + cut, 0, ROOM - cut);
        T_EQ(segment_look(q, ROOM, &at), SEGMENT_TORN, "cut at %zu", cut);
        T_EQ(at, first);
        memcpy(q, p, ROOM); /* sectors land in any order */
        memset(q + cut, 0, cut + 512 < end ? 512 : end - cut);
        T_EQ(segment_look(q, ROOM, &at), SEGMENT_TORN, "hole at %zu", cut);
    }
    batch(p, end, 64); /* but nothing comes behind what was cut off */
    memset(p + 1024, 0, 512);
    T_EQ(segment_look(p, ROOM, &at), SEGMENT_DAMAGED);
    free(p);
    free(q);
}

/* A closed segment of `entries` batches of one entry each; without the last `less` bytes. */
static void closed(const char *dir, uint64_t first, uint64_t entries, size_t less)
{
    char path[256];
    unsigned char *p = calloc(1, ROOM);
    size_t at = 8;
    put(p, 1, 8);
    for (uint64_t i = 0; i < entries; i++)
        at = batch(p, at, 40);
    snprintf(path, sizeof path, "%s/%016llu-%016llu", dir, (unsigned long long)first,
             (unsigned long long)(first + entries - 1));
    FILE *f = fopen(path, "wb");
    T_OK(f && fwrite(p, 1, at - less, f) == at - less && fclose(f) == 0);
    free(p);
}

static bool there(const char *dir, uint64_t first, uint64_t entries)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%016llu-%016llu", dir, (unsigned long long)first,
             (unsigned long long)(first + entries - 1));
    return access(path, F_OK) == 0;
}

T_TEST(what_taking_back_left_is_mended)
{
    char dir[] = "/tmp/firn-segment-XXXXXX", command[300];
    T_OK(mkdtemp(dir));
    closed(dir, 1, 5, 0);
    closed(dir, 6, 10, 0); /* nothing is wrong with these */
    closed(dir, 16, 3, 0); /* a whole one, and what it was to replace */
    closed(dir, 16, 9, 0);
    closed(dir, 30, 4, 1); /* one that was still being written */
    closed(dir, 30, 6, 0);
    closed(dir, 40, 2, 8); /* and three of a kind */
    closed(dir, 40, 3, 0);
    closed(dir, 40, 7, 0);
    T_EQ(closed_repair(dir, NULL), 0);
    T_OK(there(dir, 1, 5) && there(dir, 6, 10));
    T_OK(there(dir, 16, 3) && !there(dir, 16, 9));
    T_OK(!there(dir, 30, 4) && there(dir, 30, 6));
    T_OK(!there(dir, 40, 2) && there(dir, 40, 3) && !there(dir, 40, 7));
    T_EQ(closed_repair(dir, NULL), 0); /* and that is all */
    T_OK(there(dir, 16, 3) && there(dir, 30, 6) && there(dir, 40, 3));
    snprintf(command, sizeof command, "rm -r %s", dir);
    T_EQ(system(command), 0);
}

static void touch(const char *dir, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    T_OK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

T_TEST(what_a_snapshot_replaced_is_forgotten)
{
    char dir[] = "/tmp/firn-segment-XXXXXX", command[300];
    T_OK(mkdtemp(dir));
    closed(dir, 1, 5, 0);
    closed(dir, 6, 10, 0);
    T_EQ(closed_drop_replaced(dir, NULL), 0);
    touch(dir, "snapshot-2-15-7", "whole"); /* 15 is the last of the second one */
    touch(dir, "snapshot-2-15-7.meta", "whole");
    touch(dir, "snapshot-2-16-8", ""); /* not one yet: of each a half is missing */
    touch(dir, "snapshot-2-16-8.meta", "whole");
    touch(dir, "snapshot-2-17-9", "whole");
    touch(dir, "snapshot-2-18-9.meta", "whole");
    touch(dir, "tmp-snapshot-2-19-9", "whole");
    T_EQ(closed_drop_replaced(dir, NULL), 0);
    T_OK(there(dir, 1, 5) && there(dir, 6, 10));
    touch(dir, "snapshot-3-16-8", "whole");
    touch(dir, "snapshot-3-16-8.meta", "whole");
    T_EQ(closed_drop_replaced(dir, NULL), 0);
    T_OK(!there(dir, 1, 5) && !there(dir, 6, 10));
    snprintf(command, sizeof command, "rm -r %s", dir);
    T_EQ(system(command), 0);
}
