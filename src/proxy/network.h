/*
 * network.h - networks of IP addresses (10.0.0.0/8, fd00::/8, ::1), for settings that name clients
 * or proxies. Pure; any thread.
 */
#ifndef FIRN_PROXY_NETWORK_H
#define FIRN_PROXY_NETWORK_H

#include "firn/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct ip_network { /* IPv4 as ::ffff:a.b.c.d */
    uint8_t address[16];
    uint8_t bits; /* of the prefix, 0 .. 128 */
    bool local;   /* instead: peers on Unix sockets */
};

/* "10.0.0.0/8", "10.1.2.3", "fd00::/8", "unix". FIRN_EFORMAT: not one, or bits behind the prefix are set.
 */
FIRN_MUSTUSE int ip_network_parse(const char *text, struct ip_network *out);
bool ip_network_has(const struct ip_network *n, const struct sockaddr *sa);

#endif
