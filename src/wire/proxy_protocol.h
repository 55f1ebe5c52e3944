/*
 * proxy_protocol.h - the PROXY protocol of HAProxy, versions 1 (read) and 2 (read and written): in
 * front of everything else on a connection, a proxy tells for whom it connects. Pure; any thread.
 */
#ifndef FIRN_WIRE_PROXY_PROTOCOL_H
#define FIRN_WIRE_PROXY_PROTOCOL_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum {
    PROXY_READ_MAX = 4096, /* a longer header, with its extensions, is refused */
    PROXY_WRITE_MAX = 52,
};

struct proxy_header {
    bool told; /* false: the proxy speaks for itself, or does not know; addresses are not set */
    struct sockaddr_storage from, to;
};

/* Bytes of the header; FIRN_EAGAIN: it is not whole; FIRN_EFORMAT: it is none. Extensions (TLV) of
 * version 2 are passed over. */
FIRN_MUSTUSE ssize_t proxy_header_read(const char *p, size_t len, struct proxy_header *out);

/* Version 2. With `from` NULL, or with families that are no two of IP, the proxy speaks for itself
 * (LOCAL). Returns the header's length. */
size_t proxy_header_write(const struct sockaddr *from, const struct sockaddr *to,
                          char out[PROXY_WRITE_MAX]);

#endif
