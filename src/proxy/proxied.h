/* proxied.h - the PROXY header that servers of a service with proxy_protocol get. */
#ifndef FIRN_PROXY_PROXIED_H
#define FIRN_PROXY_PROXIED_H

#include "proxy/call.h"
#include "wire/proxy_protocol.h"

/* For the client of a call, or of the call that it is a part of: its address as trusted proxies
 * told it. The port is the client's own, or 0 where only a header told the address. */
size_t proxied_header(const struct call *c, char out[PROXY_WRITE_MAX]);

#endif
