/*
 * Reads libraft's segments. Their format (raft/uv.h): 8 bytes of version, then batches, then zeros
 * up to the size that was allocated.
 *   u32 CRC of the header, u32 CRC of the data            little-endian
 *   u64 count, { u64 term, u8 type, 3 bytes, u32 size }   the header
 *   data, each entry padded to 8 bytes
 * Disks write whole sectors. So a batch that a crash interrupted has at least one sector, or the
 * batch's part of one, that is still zeros; a batch without one was written completely.
 */
#include "raft/shield/segment.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 8, SUMS = 8, COUNT = 8, ENTRY = 16, SECTOR = 512, ENTRIES_MAX = 1 << 20 };

static uint32_t crc(const unsigned char *p, size_t len)
{
    static uint32_t table[256]; /* every thread fills in the same values */
    if (!table[1])
        for (uint32_t i = 256; i-- > 0;) {
            uint32_t c = i << 24;
            for (int k = 0; k < 8; k++)
                c = c << 1 ^ (c >> 31 ? UINT32_C(0x04c11db7) : 0);
            table[i] = c;
        }
    uint32_t c = 0;
    while (len-- > 0)
        c = c << 8 ^ table[c >> 24 ^ *p++];
    return c;
}

static uint64_t get(const unsigned char *p, size_t bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | p[bytes];
    return v;
}

static bool zeros(const unsigned char *p, size_t len)
{
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* Is the batch at `at` valid? *end: its end, as far as its header can be trusted. */
static bool batch(const unsigned char *p, size_t len, size_t at, size_t *end)
{
    firn_assert(at <= len, "at=%zu len=%zu", at, len);
    *end = at + SUMS + COUNT < len ? at + SUMS + COUNT : len;
    if (len - at < SUMS + COUNT)
        return false;
    uint64_t n = get(p + at + SUMS, COUNT);
    if (n == 0 || n > ENTRIES_MAX || COUNT + n * ENTRY > len - at - SUMS)
        return false;
    size_t header = COUNT + (size_t)n * ENTRY, data = 0;
    const unsigned char *h = p + at + SUMS;
    *end = at + SUMS + header;
    if (crc(h, header) != get(p + at, 4))
        return false;
    for (size_t i = 0; i < n; i++)
        data += (get(h + COUNT + i * ENTRY + 12, 4) + 7) / 8 * 8;
    if (data > len - *end) {
        *end = len;
        return false;
    }
    const unsigned char *d = p + *end;
    *end += data;
    firn_assert(*end > at && *end <= len, "at=%zu end=%zu len=%zu", at, *end, len);
    return crc(d, data) == get(p + at + 4, 4);
}

static bool some_sector_is_zeros(const unsigned char *p, size_t from, size_t end)
{
    while (from < end) {
        size_t next = (from / SECTOR + 1) * SECTOR;
        next = next < end ? next : end;
        if (zeros(p + from, next - from))
            return true;
        from = next;
    }
    return false;
}

enum segment_state segment_look(const unsigned char *p, size_t len, size_t *out_at)
{
    size_t at = VERSION, end = 0;
    *out_at = 0;
    if (zeros(p, len))
        return SEGMENT_WHOLE;
    if (len < VERSION || get(p, VERSION) != 1)
        return SEGMENT_DAMAGED;
    while (at < len && batch(p, len, at, &end))
        at = end;
    *out_at = at;
    if (zeros(p + at, len - at))
        return SEGMENT_WHOLE;
    if (!some_sector_is_zeros(p, at, end))
        return SEGMENT_DAMAGED;
    return zeros(p + end, len - end) || end == len ? SEGMENT_TORN : SEGMENT_DAMAGED;
}

/* *out is malloc'd. */
static int read_file(const char *path, unsigned char **out, size_t *out_len, struct firn_diag *d)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    unsigned char *p = NULL;
    size_t len = 0;
    if (f && fstat(fileno(f), &st) == 0 && st.st_size >= 0 && (p = malloc((size_t)st.st_size + 1)))
        len = fread(p, 1, (size_t)st.st_size, f);
    bool ok = p && len == (size_t)st.st_size;
    int e = errno;
    if (f)
        fclose(f);
    if (!ok) {
        free(p);
        return firn__diag(d, FIRN_EIO, 0, "cannot read %.150s: %s", path, strerror(e));
    }
    *out = p;
    *out_len = len;
    return 0;
}

static int look_file(const char *path, enum segment_state *out, bool *empty, struct firn_diag *d)
{
    unsigned char *p;
    size_t at, len;
    int r = read_file(path, &p, &len, d);
    if (r != 0)
        return r;
    *out = segment_look(p, len, &at);
    *empty = zeros(p, len);
    free(p);
    return 0;
}

/* ---- closed segments ---- */

static uint64_t entries_of(const unsigned char *p, size_t len)
{
    size_t at = VERSION, end = 0;
    uint64_t n = 0;
    if (len < VERSION || get(p, VERSION) != 1)
        return 0;
    for (; at < len && batch(p, len, at, &end); at = end)
        n += get(p + at + SUMS, COUNT);
    return at == len || zeros(p + at, len - at) ? n : 0;
}

int segment_entries(const char *path, uint64_t *out, struct firn_diag *d)
{
    unsigned char *p;
    size_t len;
    int r = read_file(path, &p, &len, d);
    if (r != 0)
        return r;
    *out = entries_of(p, len);
    free(p);
    return 0;
}

/* ---- open segments ---- */

static int is_open(const struct dirent *e)
{
    return strncmp(e->d_name, "open-", 5) == 0;
}

int segment_check(const char *dir, struct firn_diag *d)
{
    struct dirent **list;
    int n = scandir(dir, &list, is_open, versionsort), r = 0;
    bool torn = false;
    if (n < 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot read %.150s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[4400];
        enum segment_state state = SEGMENT_WHOLE;
        bool empty = true;
        snprintf(path, sizeof path, "%s/%s", dir, list[i]->d_name);
        if (r == 0)
            r = look_file(path, &state, &empty, d);
        if (r == 0 && (state == SEGMENT_DAMAGED || (torn && !empty)))
            r = firn__diag(d, FIRN_EFORMAT, 0,
                           "%.90s is damaged: remove this member, delete its folder, join again",
                           path);
        torn |= state == SEGMENT_TORN;
        free(list[i]);
    }
    free(list);
    return r;
}
