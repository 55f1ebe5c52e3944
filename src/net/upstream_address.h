/* upstream_address.h - where a server is: an IP address and port, or a Unix socket. Pure. */
#ifndef FIRN_NET_UPSTREAM_ADDRESS_H
#define FIRN_NET_UPSTREAM_ADDRESS_H

#include "firn/error.h"
#include "wire/url.h"

#include <sys/socket.h>

/* "10.0.0.1:80", "[::1]:80" or "unix:/run/app.sock". `host` becomes the address without its port,
 * or "localhost". FIRN_EINVAL: none of these. */
FIRN_MUSTUSE int upstream_address(const char *text, struct sockaddr_storage *to,
                                  char host[HOST_BYTES_MAX + 1]);

/* The path of "unix:/path", or NULL. */
const char *upstream_path(const char *text);

#endif
