/*
 * Configurations of a cluster and their bytes.
 *   u8 1, u8 count, { u64 id, u8 role, u8 length, address }      big-endian
 */
#include "raft/core/core_in.h"

#include "id/bytes.h"

enum { CONFIG_VERSION = 1, MEMBER_HEAD = 10 };

const struct core_member *config_member(const struct core_config *c, uint64_t id)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->member[i].id == id)
            return &c->member[i];
    return NULL;
}

bool config_votes(const struct core_config *c, uint64_t id)
{
    const struct core_member *m = config_member(c, id);
    return m && m->role == CORE_VOTER;
}

unsigned config_voters(const struct core_config *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->count; i++)
        n += c->member[i].role == CORE_VOTER;
    return n;
}

bool config_valid(const struct core_config *c)
{
    if (c->count > CORE_MEMBERS_MAX || config_voters(c) == 0)
        return false;
    for (unsigned i = 0; i < c->count; i++) {
        const struct core_member *m = &c->member[i];
        if (m->id == 0 || config_member(c, m->id) != m || !memchr(m->address, 0, sizeof m->address))
            return false;
    }
    return true;
}

static unsigned absent_or_other(const struct core_config *from, const struct core_config *in,
                                bool others)
{
    unsigned n = 0;
    for (unsigned i = 0; i < from->count; i++) {
        const struct core_member *a = &from->member[i], *b = config_member(in, a->id);
        n += !b || (others && (a->role != b->role || strcmp(a->address, b->address) != 0));
    }
    return n;
}

unsigned config_differences(const struct core_config *a, const struct core_config *b)
{
    return absent_or_other(a, b, true) + absent_or_other(b, a, false);
}

size_t config_write(const struct core_config *c, char *to, size_t cap)
{
    size_t n = 2;
    if (cap < n || !config_valid(c))
        return 0;
    to[0] = CONFIG_VERSION;
    to[1] = (char)c->count;
    for (unsigned i = 0; i < c->count; i++) {
        const struct core_member *m = &c->member[i];
        size_t len = strlen(m->address);
        if (cap - n < MEMBER_HEAD + len)
            return 0;
        store_be64(to + n, m->id);
        to[n + 8] = (char)m->role;
        to[n + 9] = (char)len;
        memcpy(to + n + MEMBER_HEAD, m->address, len);
        n += MEMBER_HEAD + len;
    }
    return n;
}

int config_read(const char *p, size_t len, struct core_config *out)
{
    struct core_config c = { 0 };
    if (len < 2 || p[0] != CONFIG_VERSION || (unsigned char)p[1] > CORE_MEMBERS_MAX)
        return FIRN_EFORMAT;
    unsigned count = (unsigned char)p[1];
    size_t n = 2;
    for (; c.count < count; c.count++) {
        struct core_member *m = &c.member[c.count];
        if (len - n < MEMBER_HEAD)
            return FIRN_EFORMAT;
        size_t bytes = (unsigned char)p[n + 9];
        if (len - n - MEMBER_HEAD < bytes || (unsigned char)p[n + 8] > CORE_VOTER ||
            memchr(p + n + MEMBER_HEAD, 0, bytes))
            return FIRN_EFORMAT;
        m->id = load_be64(p + n);
        m->role = (enum core_role)p[n + 8];
        memcpy(m->address, p + n + MEMBER_HEAD, bytes);
        n += MEMBER_HEAD + bytes;
    }
    if (n != len || !config_valid(&c))
        return FIRN_EFORMAT;
    *out = c;
    return 0;
}
