/* http1.h - questions as HTTP/1.1 requests, and the answers. Pure: bytes in, bytes out. */
#ifndef FIRN_CLIENT_HTTP1_H
#define FIRN_CLIENT_HTTP1_H

#include "client/request.h"

/* The request for `to`; its length, or 0 if it does not fit. */
size_t http1_write(const struct client_opts *o, const struct server_name *to,
                   const struct request *q, char *out, size_t cap);

/* How many bytes the answer takes, FIRN_EAGAIN if it is not complete yet, FIRN_EFORMAT if it is none,
 * FIRN_ENOMEM. `out` is zeroed but for numbers, which may have memory from before. */
FIRN_MUSTUSE long http1_read(char *p, size_t len, const struct request *q, struct response *out);

#endif
