/* resp2.h - requests and responses in the Redis protocol. Pure: bytes in, bytes out. */
#ifndef FIRN_CLIENT_RESP2_H
#define FIRN_CLIENT_RESP2_H

#include "client/request.h"

/* AUTH, to be sent once on a connection if there is a token; its length, or 0 without one. */
size_t resp2_write_auth(const struct client_opts *o, char *out, size_t cap);

/* The command; its length, or 0 if it does not fit. */
size_t resp2_write(const struct client_opts *o, const struct request *q, char *out, size_t cap);

/* As http1_read(); of a long list `out` remembers how far it was read, so pass the same one when
 * more bytes arrived. With `auth` the reply to AUTH comes first; it matters only if it is an
 * error. */
FIRN_MUSTUSE long resp2_read(const char *p, size_t len, bool auth, const struct request *q,
                             struct response *out);

#endif
