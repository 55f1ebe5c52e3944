/*
 * url.h - takes addresses and URLs apart: host:port with IPv6 in brackets, and
 * scheme://[user[:password]@]host[:port][,host...][/path][?name=value&...]. Pure functions over
 * text, for any thread. A caller says in its own errors which of the parts it allows.
 */
#ifndef FIRN_WIRE_URL_H
#define FIRN_WIRE_URL_H

#include "firn/error.h"
#include "wire/buf.h"

enum { HOST_BYTES_MAX = 255 };

struct host_port {
    char host[HOST_BYTES_MAX + 1]; /* IPv6 without its brackets; may be empty */
    bool brackets, has_port;
    uint16_t port; /* 0 without one */
};

/* In the order in which they are looked for. Where a caller allows HOST_COLONS or HOST_EMPTY, the
 * struct is complete for these, too. */
enum host_error {
    HOST_OK,
    HOST_OPEN_BRACKET,  /* "[::1" */
    HOST_AFTER_BRACKET, /* "[::1]x" */
    HOST_BAD_PORT,      /* not a number from 0 to 65535 behind the last ':' */
    HOST_LONG,          /* more than HOST_BYTES_MAX */
    HOST_EMPTY,         /* ":9001"; or there is a NUL in it */
    HOST_COLONS,        /* "::1:9001": IPv6 without brackets */
};

/* "host", "host:port", "[::1]" or "[::1]:port". */
enum host_error host_port_read(struct slice text, struct host_port *out);

/* The same for an address that goes into logs and JSON as it is: a host and a port above 0, at most
 * HOST_BYTES_MAX visible characters, no quotes or backslashes. IPv6 may come without brackets. */
bool host_port_full(const char *text, struct host_port *out);

/* host:port, with brackets around IPv6, into `out`, truncated if it is too long. Returns `out`. */
enum { HOST_PORT_BUF = HOST_BYTES_MAX + sizeof "[]:65535" };
char *host_port_write(const char *host, uint16_t port, char out[HOST_PORT_BUF]);

/* Whether a host is 127.0.0.0/8, ::1 or localhost, without looking anything up. */
bool host_is_loopback(const char *host);

/* Slices of the URL, still percent-encoded; p is NULL for a part that is not there. */
struct url_parts {
    struct slice scheme, user, password;
    struct slice hosts;  /* separated by commas */
    struct slice target; /* everything behind the hosts; empty, or it begins with '/', '?' or '#' */
    struct slice path;   /* without the slash in front */
    struct slice query;  /* without the '?' */
};

/* False: there is no "://". A '#' ends hosts and path and is left to the caller to refuse. */
bool url_split(struct slice text, struct url_parts *out);

/* Takes what stands before the next comma off `*rest`. False at the end; "a," gives "a" and "". */
bool url_host_next(struct slice *rest, struct slice *host);

/* Takes the next path segment off `*rest` ("/v1/ids" gives "v1", then "ids"), still encoded.
 * False at the end. "/a/" gives "a" and an empty segment: a router must not take it for "/a" by
 * accident. */
bool url_path_next(struct slice *rest, struct slice *segment);

/* Takes the next `name=value` off a query, both still encoded; value is absent without '='.
 * Empty parts ("a=1&&b=2") are passed over. False at the end. */
bool url_query_next(struct slice *rest, struct slice *name, struct slice *value);

/* Percent-decodes into `out` with a NUL at the end; '+' becomes a space where `plus_is_space`.
 * FIRN_EFORMAT: '%' without two hex digits, or %00. FIRN_ENOSPC: `cap` does not hold it with its
 * NUL. */
FIRN_MUSTUSE int url_decode(struct slice in, bool plus_is_space, char *out, size_t cap,
                            size_t *out_len);

#endif
