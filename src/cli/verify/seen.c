/*
 * A bounded set of IDs. It has two halves, each an open-addressed table that doubles until it has
 * half of the memory. When the newer one is full the older one is emptied and they change places,
 * so that at least the last half is known. A slot holds 64 bits of hash; texts with the same hash
 * are compared in the arena.
 */
#include "cli/verify/seen.h"

#include <stdlib.h>
#include <string.h>

struct seen_slot {
    uint64_t hash; /* 0: empty */
    uint64_t where;
    uint64_t text; /* offset of its length byte in the arena */
};

enum { SLOTS_MIN = 1024, TEXTS_MIN = 16 * 1024 };

static uint64_t hash_of(const char *p, size_t len)
{
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15) ^ len, word;
    while (len > 0) {
        size_t n = len < sizeof word ? len : sizeof word;
        word = 0;
        memcpy(&word, p, n);
        h = (h ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
        h ^= h >> 31;
        p += n;
        len -= n;
    }
    h *= UINT64_C(0x94d049bb133111eb);
    h ^= h >> 29;
    return h ? h : 1;
}

static int part_init(struct seen_part *p)
{
    *p = (struct seen_part){ .slots = SLOTS_MIN, .texts_room = TEXTS_MIN };
    p->slot = calloc(p->slots, sizeof *p->slot);
    p->texts = malloc(p->texts_room);
    return p->slot && p->texts ? 0 : FIRN_ENOMEM;
}

static void part_done(struct seen_part *p)
{
    free(p->slot);
    free(p->texts);
    *p = (struct seen_part){ 0 };
}

/* The slot that has it, or the empty one where it belongs. */
static struct seen_slot *find(const struct seen_part *p, uint64_t hash, const char *id, size_t len)
{
    for (size_t i = hash & (p->slots - 1);; i = (i + 1) & (p->slots - 1)) {
        struct seen_slot *s = &p->slot[i];
        if (s->hash == 0)
            return s;
        const char *text = p->texts + s->text;
        if (s->hash == hash && (unsigned char)text[0] == len && memcmp(text + 1, id, len) == 0)
            return s;
    }
}

static size_t part_bytes(size_t slots, size_t texts)
{
    return slots * sizeof(struct seen_slot) + texts;
}

/* Make room for one more. False: this half has all the memory that it may use. */
static bool make_room(struct seen_part *p, size_t len, size_t bytes_max)
{
    if (p->texts_len + len + 1 > p->texts_room) {
        if (part_bytes(p->slots, 2 * p->texts_room) > bytes_max)
            return false;
        char *bigger = realloc(p->texts, 2 * p->texts_room);
        if (!bigger)
            return false;
        p->texts = bigger;
        p->texts_room *= 2;
    }
    if (p->used < p->slots / 4 * 3)
        return true;
    if (part_bytes(2 * p->slots, p->texts_room) > bytes_max)
        return false;
    struct seen_slot *old = p->slot, *bigger = calloc(2 * p->slots, sizeof *bigger);
    size_t n = p->slots;
    if (!bigger)
        return false;
    p->slot = bigger;
    p->slots = 2 * n;
    for (size_t i = 0; i < n; i++)
        if (old[i].hash) {
            size_t k = old[i].hash & (p->slots - 1);
            while (bigger[k].hash)
                k = (k + 1) & (p->slots - 1);
            bigger[k] = old[i];
        }
    free(old);
    return true;
}

int seen_init(struct seen *s, size_t bytes_max)
{
    *s = (struct seen){ .bytes_max = bytes_max / 2 };
    int r = part_init(&s->now);
    return r == 0 ? part_init(&s->before) : r;
}

void seen_done(struct seen *s)
{
    part_done(&s->now);
    part_done(&s->before);
}

int seen_add(struct seen *s, const char *id, size_t len, uint64_t where, uint64_t *out_where)
{
    uint64_t hash = hash_of(id, len);
    const struct seen_slot *old = find(&s->before, hash, id, len);
    struct seen_slot *slot = find(&s->now, hash, id, len);
    if (slot->hash || old->hash) {
        *out_where = slot->hash ? slot->where : old->where;
        return 0;
    }
    if (!make_room(&s->now, len, s->bytes_max)) {
        s->forgotten += s->before.used;
        part_done(&s->before);
        s->before = s->now;
        int r = part_init(&s->now);
        if (r != 0)
            return r;
    }
    struct seen_part *p = &s->now;
    slot = find(p, hash, id, len);
    *slot = (struct seen_slot){ .hash = hash, .where = where, .text = p->texts_len };
    p->texts[p->texts_len] = (char)len;
    memcpy(p->texts + p->texts_len + 1, id, len);
    p->texts_len += len + 1;
    p->used++;
    return 1;
}
