/*
 * browser.h - which requests of web pages firnd serves: the names in Host that it answers to, pages
 * of other sites that may not mint, and origins that may (CORS). Browsers say by themselves where a
 * request comes from (Sec-Fetch-Site, Origin); other clients say nothing and are let through.
 * Decisions only, without a clock or a socket; constant after browser_init(), so that any thread
 * may ask.
 */
#ifndef FIRN_SERVER_BROWSER_H
#define FIRN_SERVER_BROWSER_H

#include "firn/error.h"
#include "daemon/config.h"
#include "daemon/origin.h"

struct browser {                   /* zeroed: no settings, and no name of its own */
    struct config_strings hosts;   /* http.hosts, and the machine's own name before them */
    bool everywhere;               /* http.hosts is set: the list holds on every address */
    struct config_strings origins; /* http.origins */
    char **fields;                 /* of each origin: the header lines of answers to it */
};

/* Copies what it is given. FIRN_ENOMEM: browser_done() follows. */
FIRN_MUSTUSE int browser_init(struct browser *b, const char *own,
                              const struct config_strings *hosts,
                              const struct config_strings *origins);
void browser_done(struct browser *b);

/* What a Host header, with or without a port, says to a server on loopback: HOST_OWN also for the
 * machine's name and http.hosts. */
enum host_rank browser_host(const struct browser *b, struct slice host);

/* The header lines of an answer to a request with this Origin if it is one of http.origins, else
 * NULL. They live as long as `b`. */
const char *browser_allowed(const struct browser *b, struct slice origin);

/* Header lines for all other answers, so that caches keep them apart; or NULL. */
const char *browser_others(const struct browser *b);

/* Whether the page that sent this request is of another origin than this server, and none of
 * http.origins. False where the request does not say that it comes from a page. */
bool browser_foreign(const struct browser *b, const struct http_request *req);

/* For the settings: FIRN_EFORMAT and why. */
int browser_check_host(const char *value, struct firn_diag *why);
int browser_check_origin(const char *value, struct firn_diag *why);

/* What the answer to a preflight says besides browser_allowed(). */
extern const char browser_preflight[];

#endif
