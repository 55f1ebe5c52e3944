/*
 * url.h - the address of a store, taken apart:
 * scheme://[user[:password]@]host[:port][,host...]/path?name=value A pure function over text.
 * Percent-escapes are decoded in every part.
 */
#ifndef FIRN_STORE_URL_H
#define FIRN_STORE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#define STORE_HOSTS_MAX  9 /* an ensemble of nine is already unusual */
#define STORE_PARAMS_MAX 12

struct store_url {
    char scheme[16];
    char user[128], password[256]; /* empty: none */
    struct {
        char name[256]; /* IPv6 without its brackets */
        uint16_t port;
    } host[STORE_HOSTS_MAX];
    size_t host_n;
    char path[128]; /* without the slash in front */
    struct {
        char name[24], value[256];
    } param[STORE_PARAMS_MAX];
    size_t param_n;
    bool existing; /* not of the text: open what is there, and create nothing (store.h) */
};

/* `params` lists the parameters allowed behind the '?', separated by spaces. FIRN_EFORMAT:
 * what is wrong and where, never with the password in it. */
FIRN_MUSTUSE int store_url_parse(const char *text, uint16_t default_port, const char *params,
                                 struct store_url *out, struct firn_diag *d);

/* The value of a parameter, or NULL. */
const char *store_url_param(const struct store_url *u, const char *name);

/* The URL for logs and pages: a password becomes "***". Truncates. */
void store_url_redact(const char *text, char *out, size_t size);

#endif
