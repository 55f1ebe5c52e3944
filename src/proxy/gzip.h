/* gzip.h - whether an answer is to be compressed: what the client takes, and what is worth it.
 * Pure; any thread. */
#ifndef FIRN_PROXY_GZIP_H
#define FIRN_PROXY_GZIP_H

#include "wire/buf.h"

/* Accept-Encoding takes gzip and does not prefer the body as it is (RFC 9110, 12.5.3). A list that
 * cannot be read takes nothing. */
bool gzip_accepted(struct slice accept_encoding);

/* Whether a Content-Type begins with one of the n texts, letters of any case. */
bool gzip_type_in(struct slice type, const char *const *list, size_t n);

#endif
