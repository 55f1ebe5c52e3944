/* core_stub.h - stands in for src/raft/core where it is not linked: weak, so the real one wins. */
#ifndef CORE_STUB_H
#define CORE_STUB_H

#include "raft/core/core.h"

#include <string.h>

__attribute__((weak)) size_t config_write(const struct core_config *c, char *to, size_t cap)
{
    size_t n = 0;
    to[n++] = (char)c->count;
    for (unsigned i = 0; i < c->count; i++) {
        size_t address = strlen(c->member[i].address) + 1;
        if (n + 9 + address > cap)
            return 0;
        memcpy(to + n, &c->member[i].id, 8);
        to[n + 8] = (char)c->member[i].role;
        memcpy(to + n + 9, c->member[i].address, address);
        n += 9 + address;
    }
    return n;
}

__attribute__((weak)) int config_read(const char *p, size_t len, struct core_config *out)
{
    const char *end = p + len;
    *out = (struct core_config){ .count = len > 0 ? (unsigned char)*p++ : 0 };
    if (out->count == 0 || out->count > CORE_MEMBERS_MAX)
        return FIRN_EFORMAT;
    for (unsigned i = 0; i < out->count; i++) {
        struct core_member *m = &out->member[i];
        size_t address = end - p > 9 ? strnlen(p + 9, (size_t)(end - p) - 9) : SIZE_MAX;
        if (address > CORE_ADDRESS_MAX || p + 9 + address == end)
            return FIRN_EFORMAT;
        memcpy(&m->id, p, 8);
        m->role = (enum core_role)p[8];
        memcpy(m->address, p + 9, address + 1);
        p += 10 + address;
    }
    return p == end ? 0 : FIRN_EFORMAT;
}

#endif
