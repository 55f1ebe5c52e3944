/* http1.h - requests and responses as HTTP/1.1. Pure: bytes in, bytes out. */
#ifndef FIRN_CLIENT_HTTP1_H
#define FIRN_CLIENT_HTTP1_H

#include "client/request.h"

/* The request for `to`; its length, or 0 if it does not fit. */
size_t http1_write(const struct client_opts *o, const struct server_name *to,
                   const struct request *q, char *out, size_t cap);

/* The length of the response, FIRN_EAGAIN if it is not complete yet, FIRN_EFORMAT if it is not a
 * response of firnd, FIRN_ENOMEM. `out` is zeroed except for numbers, whose memory may be
 * reused. */
FIRN_MUSTUSE long http1_read(char *p, size_t len, const struct request *q, struct response *out);

#endif
