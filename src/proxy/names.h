/*
 * names.h - addresses of servers that are given by name, and a thread that looks the names of a
 * plan up again, so that neither requests nor the watchdog wait for a name server. name_look_up()
 * blocks; names_begin() and names_take() belong to the main thread.
 */
#ifndef FIRN_PROXY_NAMES_H
#define FIRN_PROXY_NAMES_H

#include "firn/error.h"
#include "wire/url.h"

struct plan;

enum { NAME_ADDRESSES_MAX = 16 };

struct name_found { /* sorted, none twice */
    size_t n;
    char address[NAME_ADDRESSES_MAX][HOST_PORT_BUF];
};

/* "10.0.0.1:80", "unix:/path": there is nothing to look up. */
bool name_is_address(const char *address);

/* "host:port" becomes an address for each that the name has (the first NAME_ADDRESSES_MAX); what is
 * an address stays. FIRN_EINVAL: it cannot be looked up. */
FIRN_MUSTUSE int name_look_up(const char *address, struct name_found *out, struct firn_diag *diag);

struct lookup {
    char address[HOST_PORT_BUF]; /* as the configuration has it */
    int result;
    struct firn_diag why;
    struct name_found found; /* with result 0 */
};

struct lookups {
    size_t n;
    struct lookup v[];
};

const struct lookup *lookup_of(const struct lookups *l, const char *address); /* NULL: none */

/* Begin to look up all names of a plan. False: it has none, or the last time is not over. */
bool names_begin(const struct plan *p);
/* When it is done: the results, once; the caller frees them with free(). NULL: not yet. */
struct lookups *names_take(void);
/* Before the process ends. A resolver that does not answer is not waited for. */
void names_end(void);

#endif
