/* Open segments of libraft: a torn end is told from damage, at every byte. */
#include "t.h"

#include "raft/segment.h"

#include <stdlib.h>

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
