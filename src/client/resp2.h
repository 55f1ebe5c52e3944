/* resp2.h - questions in the Redis protocol, and the answers. Pure: bytes in, bytes out. */
#ifndef FIRN_CLIENT_RESP2_H
#define FIRN_CLIENT_RESP2_H

#include "client/request.h"

/* AUTH, to be sent once on a connection if there is a token; its length, or 0 without one. */
size_t resp2_write_auth(const struct client_opts *o, char *out, size_t cap);

/* The command; its length, or 0 if it does not fit. */
size_t resp2_write(const struct client_opts *o, const struct request *q, char *out, size_t cap);

/* As http1_read(); of a long list it remembers in `out` how far it was, so give it the same one when more came.
 * With `auth` the answer of AUTH comes first; it counts only if it is a refusal. */
FIRN_MUSTUSE long resp2_read(const char *p, size_t len, bool auth, const struct request *q,
                             struct response *out);

#endif
