/*
 * The log in memory: entries base + 1 and on, in one array that grows and whose front is reclaimed.
 * Of the entry `base` only the term is known; everything up to it is in a snapshot.
 */
#include "raft/core/core_in.h"

#include <stdlib.h>

enum { CAP_MIN = 64 };

static struct core_entry *at(const struct log *l, uint64_t index)
{
    firn_assert(index > l->base && index <= log_last(l),
                "index=%" PRIu64 " base=%" PRIu64 " last=%" PRIu64, index, l->base, log_last(l));
    return &l->entry[l->head + (size_t)(index - l->base - 1)];
}

const struct core_entry *log_at(const struct log *l, uint64_t index)
{
    return at(l, index);
}

uint64_t log_term(const struct log *l, uint64_t index)
{
    return index == l->base ? l->base_term : at(l, index)->term;
}

bool log_has(const struct log *l, uint64_t index, uint64_t term)
{
    return index >= l->base && index <= log_last(l) && log_term(l, index) == term;
}

static bool room_for_one(struct log *l)
{
    if (l->head + l->count < l->cap)
        return true;
    if (l->head > l->cap / 2) {
        memmove(l->entry, l->entry + l->head, l->count * sizeof *l->entry);
        l->head = 0;
        return true;
    }
    size_t cap = l->cap ? l->cap * 2 : CAP_MIN;
    struct core_entry *more = reallocarray(l->entry, cap, sizeof *more);
    if (!more)
        return false;
    l->entry = more;
    l->cap = cap;
    return true;
}

int log_append(struct log *l, uint64_t term, enum core_type type, const char *bytes, size_t len)
{
    uint64_t last = log_last(l);
    firn_assert(term > 0 && term >= log_term(l, last), "term=%" PRIu64 " last=%" PRIu64, term,
                last);
    if (!room_for_one(l))
        return FIRN_ENOMEM;
    struct core_entry *e = &l->entry[l->head + l->count];
    char *copy = len > 0 ? malloc(len) : NULL;
    if (len > 0 && !copy)
        return FIRN_ENOMEM;
    if (copy)
        memcpy(copy, bytes, len);
    *e = (struct core_entry){ last + 1, term, type, NULL, len };
    e->bytes = copy;
    l->count++;
    return 0;
}

void log_truncate(struct log *l, uint64_t from)
{
    while (log_last(l) >= from) {
        free((char *)at(l, log_last(l))->bytes);
        l->count--;
    }
}

void log_trim(struct log *l, uint64_t base)
{
    firn_assert(base >= l->base && base <= log_last(l));
    uint64_t term = log_term(l, base);
    for (; l->base < base; l->base++, l->head++, l->count--)
        free((char *)l->entry[l->head].bytes);
    l->base_term = term;
}

void log_reset(struct log *l, uint64_t base, uint64_t base_term)
{
    log_truncate(l, l->base + 1);
    l->head = 0;
    l->base = base;
    l->base_term = base_term;
}

void log_done(struct log *l)
{
    log_truncate(l, l->base + 1);
    free(l->entry);
    *l = (struct log){ 0 };
}

/* A snapshot's bytes follow its struct: one free() for both. */
struct core_snapshot *snapshot_new(uint64_t index, uint64_t term, const struct core_config *config,
                                   size_t len)
{
    struct core_snapshot *s = malloc(sizeof *s + len);
    if (s)
        *s = (struct core_snapshot){ index, term, *config, (const char *)(s + 1), len };
    return s;
}
