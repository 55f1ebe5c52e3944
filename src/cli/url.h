/*
 * url.h - reads the addresses that firn's own clients use.
 * `http://host[:port][/path][?query]` or `https://`, the host a name, an IPv4 or a bracketed IPv6
 * address. No user names, no fragments. May be called from any thread.
 */
#ifndef FIRN_CLI_URL_H
#define FIRN_CLI_URL_H

#include <stdbool.h>
#include <stddef.h>

enum { URL_HOST_MAX = 255, URL_TARGET_MAX = 2000 };

/* What clients that speak no TLS say of https. */
#define URL_NO_HTTPS "https is not supported here: give an http:// address"

struct url {
    bool https;
    char host[URL_HOST_MAX + 1]; /* as getaddrinfo() takes it: IPv6 without its brackets */
    char port[6];
    char authority[URL_HOST_MAX + 9]; /* host:port as the Host header has it */
    char target[URL_TARGET_MAX + 1];  /* path and query; "/" if there is none */
};

/* NULL, or what is wrong with the text, for people. */
const char *url_parse(const char *text, struct url *out);

/* `host:port` alone, as for the Redis protocol; target becomes "". */
const char *url_parse_address(const char *text, struct url *out);

#endif
