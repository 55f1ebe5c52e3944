/*
 * redis_settings.h - where the gateway's Redis is, as a plan has it: its address looked up, its
 * password read. A reload reads both again. Constant once read; any thread.
 */
#ifndef FIRN_PROXY_REDIS_SETTINGS_H
#define FIRN_PROXY_REDIS_SETTINGS_H

#include "proxy/config.h"
#include "wire/url.h"

struct redis_settings {
    char address[HOST_PORT_BUF]; /* for redis_new(); "": there is no Redis */
    char *password;              /* NULL: none */
    const char *prefix;          /* what all keys begin with; may be "" */
};

/* A check for the configuration: host:port or unix:/path. */
int redis_address_check(const char *value, struct firn_diag *why);
/* The same: letters, digits and ".:_-", so that no pattern can be in it. */
int redis_prefix_check(const char *value, struct firn_diag *why);

/* The first line of redis.password_file, which the caller frees, also on error. FIRN_EINVAL: it is
 * empty; FIRN_EIO, FIRN_ERANGE: the file. */
FIRN_MUSTUSE int redis_password_read(const struct config *c, char **out, struct firn_diag *diag);

/* FIRN_EINVAL: a name that cannot be looked up; FIRN_EIO, FIRN_ERANGE: the password file.
 * redis_settings_free() afterwards in any case. */
FIRN_MUSTUSE int redis_settings_read(const struct config *c, struct redis_settings *out,
                                     struct firn_diag *diag);
void redis_settings_free(struct redis_settings *s);

#endif
