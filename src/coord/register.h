/*
 * register.h - a register's key, value and compare-and-swap as plain data.
 * The steps of coord build these; store/store.h carries them to an engine.
 */
#ifndef FIRN_COORD_REGISTER_H
#define FIRN_COORD_REGISTER_H

#include <stddef.h>

struct firn_slice { /* borrowed bytes, no NUL; p NULL means "absent" where that is allowed */
    const char *p;
    size_t len;
};

static inline struct firn_slice firn_slice(const char *p, size_t len)
{
    return (struct firn_slice){ p, len };
}

struct firn_cas {
    struct firn_slice key;
    struct firn_slice old; /* the whole value to replace; p NULL: the register must be absent */
    /* The new value; p NULL removes the register, and then `old` is given. Only registers that are
     * created and never rewritten may be removed: elsewhere a late write of the first life could
     * land on the second. */
    struct firn_slice value;
};

#endif
