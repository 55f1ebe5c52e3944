/*
 * client.h - who the client of a request is: the peer, or whom proxies that we trust tell, by
 * X-Forwarded-For or, where that is missing, by Forwarded (RFC 7239).
 */
#ifndef FIRN_PROXY_CLIENT_H
#define FIRN_PROXY_CLIENT_H

#include "proxy/call.h"

/* Sets peer, trusted and client. The client is the last address that no trusted proxy has. */
void client_find(struct call *c);

/* Adds the peer to what the service is told: X-Forwarded-For, -Proto and -Host, and Forwarded if a
 * trusted proxy began it. */
void client_tell(struct call *c);

/* The last address of a list takes itself off it; false: there is none that can be read, and those
 * before it are not to be believed. `forwarded`: the list is one of RFC 7239. Pure. */
bool client_hop(struct slice *list, bool forwarded, struct slice *out);

/* A peer's address without its port: "10.0.0.1", "::1"; or all that is known. Borrowed. Pure. */
struct slice client_host(const char *peer);

/* "10.0.0.1", "::1" or "[::1]:443", as proxies write it. Pure. */
bool client_address(struct slice text, struct sockaddr_storage *sa, char out[PEER_ADDRESS_BUF]);

#endif
