/*
 * base64url.h - reads base64url (RFC 4648, section 5) as JOSE uses it: without padding, and in one
 * spelling only. A text whose last character has bits that no byte takes is refused, so two
 * different tokens never decode to the same bytes. Any thread.
 */
#ifndef FIRN_PROXY_BASE64URL_H
#define FIRN_PROXY_BASE64URL_H

#include "firn/error.h"
#include "wire/buf.h"

/* Writes the bytes to `out` and their number to *out_len. FIRN_EFORMAT: not base64url, *out_len is
 * untouched. FIRN_ENOSPC: more than `cap` bytes, nothing was written. */
FIRN_MUSTUSE int base64url_read(struct slice text, void *out, size_t cap, size_t *out_len);

#endif
