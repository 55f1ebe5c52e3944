/*
 * The bytes of messages between members, big-endian. Every type has the same head, so that one
 * reader and one writer do for all.
 *   u8 1, u8 type, u8 flags, u8 0,
 *   u64 from, to, term, index, index_term, commit, round, offset, total,
 *   u32 entries, u32 config bytes, u32 bytes,
 *   { u64 term, u8 type, u32 length, bytes }     APPEND: entries index + 1 and on
 *   config, bytes                                SNAPSHOT
 */
#include "raft/core/core_in.h"

#include "id/bytes.h"

enum {
    MESSAGE_VERSION = 1,
    MESSAGE_HEAD = 4 + 9 * 8 + 3 * 4,
    ENTRY_HEAD = 13,
    FLAG_PRE = 1,
    FLAG_TRANSFER = 2,
    FLAG_OK = 4,
    FLAGS = 7,
};

_Static_assert(MESSAGE_HEAD + CORE_APPEND_ENTRIES_MAX * ENTRY_HEAD + CORE_ENTRY_BYTES_MAX <=
                   CORE_MESSAGE_BYTES_MAX,
               "every append fits");
_Static_assert(MESSAGE_HEAD + CORE_CONFIG_BYTES_MAX + CORE_CHUNK_BYTES <= CORE_MESSAGE_BYTES_MAX,
               "every chunk fits");

size_t message_write(const struct core_message *m, char *to, size_t cap)
{
    const uint64_t number[9] = { m->from,   m->to,    m->term,   m->index, m->index_term,
                                 m->commit, m->round, m->offset, m->total };
    if (cap < MESSAGE_HEAD || m->entries > CORE_APPEND_ENTRIES_MAX || m->len > CORE_CHUNK_BYTES)
        return 0;
    to[0] = MESSAGE_VERSION;
    to[1] = (char)m->type;
    to[2] = (char)((m->pre ? FLAG_PRE : 0) | (m->transfer ? FLAG_TRANSFER : 0) |
                   (m->ok ? FLAG_OK : 0));
    to[3] = 0;
    for (unsigned i = 0; i < 9; i++)
        store_be64(to + 4 + 8 * i, number[i]);
    size_t n = MESSAGE_HEAD, config = 0;
    for (size_t i = 0; i < m->entries; i++) {
        const struct core_entry *e = &m->entry[i];
        if (e->len > CORE_ENTRY_BYTES_MAX || cap - n < ENTRY_HEAD + e->len)
            return 0;
        store_be64(to + n, e->term);
        to[n + 8] = (char)e->type;
        store_be32(to + n + 9, (uint32_t)e->len);
        if (e->len > 0)
            memcpy(to + n + ENTRY_HEAD, e->bytes, e->len);
        n += ENTRY_HEAD + e->len;
    }
    if (m->config && (config = config_write(m->config, to + n, cap - n)) == 0)
        return 0;
    n += config;
    if (cap - n < m->len)
        return 0;
    if (m->len > 0)
        memcpy(to + n, m->bytes, m->len);
    store_be32(to + 76, (uint32_t)m->entries);
    store_be32(to + 80, (uint32_t)config);
    store_be32(to + 84, (uint32_t)m->len);
    return n + m->len;
}

static int read_entries(const char **p, const char *end, struct core_message *m,
                        struct core_message_room *room)
{
    for (size_t i = 0; i < m->entries; i++) {
        struct core_entry *e = &room->entry[i];
        if (end - *p < ENTRY_HEAD)
            return FIRN_EFORMAT;
        e->index = m->index + 1 + i;
        e->term = load_be64(*p);
        e->type = (enum core_type)(unsigned char)(*p)[8];
        e->len = load_be32(*p + 9);
        *p += ENTRY_HEAD;
        if ((size_t)(end - *p) < e->len)
            return FIRN_EFORMAT;
        e->bytes = *p;
        *p += e->len;
    }
    m->entry = room->entry;
    return message_valid(m) ? 0 : FIRN_EFORMAT;
}

int message_read(const char *p, size_t len, struct core_message *out,
                 struct core_message_room *room)
{
    if (len < MESSAGE_HEAD || p[0] != MESSAGE_VERSION || (p[2] & ~FLAGS) != 0 || p[3] != 0)
        return FIRN_EFORMAT;
    uint64_t number[9];
    for (unsigned i = 0; i < 9; i++)
        number[i] = load_be64(p + 4 + 8 * i);
    struct core_message m = {
        .type = (enum core_message_type)(unsigned char)p[1],
        .from = number[0],
        .to = number[1],
        .term = number[2],
        .pre = p[2] & FLAG_PRE,
        .transfer = p[2] & FLAG_TRANSFER,
        .ok = p[2] & FLAG_OK,
        .index = number[3],
        .index_term = number[4],
        .commit = number[5],
        .round = number[6],
        .offset = number[7],
        .total = number[8],
        .entries = load_be32(p + 76),
        .len = load_be32(p + 84),
    };
    size_t config = load_be32(p + 80);
    const char *end = p + len;
    p += MESSAGE_HEAD;
    if (m.entries > CORE_APPEND_ENTRIES_MAX || m.len > CORE_CHUNK_BYTES)
        return FIRN_EFORMAT;
    if (config > 0) {
        if (m.entries > 0 || (size_t)(end - p) < config || config_read(p, config, &room->config))
            return FIRN_EFORMAT;
        m.config = &room->config;
        p += config;
    }
    if (read_entries(&p, end, &m, room) != 0 || (size_t)(end - p) != m.len)
        return FIRN_EFORMAT;
    m.bytes = p;
    *out = m;
    return 0;
}

/* Terms rise along the entries, up to the leader's. */
static bool entries_valid(const struct core_message *m)
{
    uint64_t term = m->index_term;
    struct core_config config;
    for (size_t i = 0; i < m->entries; i++) {
        const struct core_entry *e = &m->entry[i];
        if (e->index != m->index + 1 + i || e->term < term || e->term > m->term || e->term == 0 ||
            e->len > CORE_ENTRY_BYTES_MAX)
            return false;
        if (e->type != ENTRY_NOTHING && e->type != ENTRY_DATA &&
            (e->type != ENTRY_CONFIG || config_read(e->bytes, e->len, &config) != 0))
            return false;
        term = e->term;
    }
    return term <= m->term;
}

bool message_valid(const struct core_message *m)
{
    if (m->from == 0 || m->to == 0 || m->from == m->to || m->term == 0 || m->term > TERM_MAX ||
        m->index > TERM_MAX || m->entries > CORE_APPEND_ENTRIES_MAX)
        return false;
    if (m->type != MESSAGE_SNAPSHOT && (m->config || m->len > 0))
        return false;
    if (m->type != MESSAGE_APPEND && m->entries > 0)
        return false;
    switch (m->type) {
    case MESSAGE_VOTE:
        return m->index_term < m->term;
    case MESSAGE_APPEND:
        return entries_valid(m) && (m->index == 0) == (m->index_term == 0);
    case MESSAGE_SNAPSHOT:
        return m->config && config_valid(m->config) && m->index > 0 && m->index_term > 0 &&
               m->index_term <= m->term && m->total <= SNAPSHOT_BYTES_MAX &&
               m->offset <= m->total && m->len <= m->total - m->offset &&
               m->len <= CORE_CHUNK_BYTES && (m->len > 0 || m->total == 0);
    case MESSAGE_SNAPSHOT_RESULT:
        return m->offset <= m->total;
    case MESSAGE_VOTE_RESULT:
    case MESSAGE_APPEND_RESULT:
    case MESSAGE_TIMEOUT_NOW:
        return true;
    }
    return false;
}
