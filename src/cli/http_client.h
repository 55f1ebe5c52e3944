/*
 * http_client.h - a small blocking HTTP/1.1 client, also over TLS, that keeps its connection.
 * One URL per client, complete answers; GET, or one POST. Timeouts and retries: 2 s to connect, 2 s
 * for an answer, then 3 more attempts, 1 s apart. A request that is answered twice skips a number
 * and never repeats one, so a retry is safe. A client belongs to one thread.
 */
#ifndef FIRN_CLI_HTTP_CLIENT_H
#define FIRN_CLI_HTTP_CLIENT_H

#include "cli/url.h"
#include "firn/error.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

struct link;        /* wire/link.h */
struct tls_context; /* wire/tls_context.h */

enum {
    HTTP_CLIENT_TIMEOUT_MS = 2000,
    HTTP_CLIENT_RETRIES = 3,
    HTTP_CLIENT_PAUSE_MS = 1000,
};

struct http_client {
    struct url url;
    /* Borrowed; set them after http_client_init(). NULL: GET, JSON, no token. */
    const char *post, *accept, *token;
    uint32_t timeout_ms; /* for one answer */
    bool once;           /* GET without retries */
    struct addrinfo *where;
    int fd;                  /* -1: not connected, or over TLS */
    struct tls_context *tls; /* https: borrowed */
    struct link *link;       /* https: the connection, or NULL */
    char *buf;
    size_t len, room;   /* of buf: bytes held */
    size_t taken;       /* bytes of the last answer, to be dropped */
    uint64_t answer_ns; /* how long the last successful exchange took, without retries before it */
    unsigned retries;   /* of the last call */
    char why[512]; /* the error as text, without a full stop; for a status what the server says */
};

/* FIRN_EFORMAT: not a URL. FIRN_ENOENT: the host has no address. FIRN_ENOMEM. `why` is set. */
FIRN_MUSTUSE int http_client_init(struct http_client *c, const char *url);

/* The same for a URL that may be https://; `tls` is borrowed, NULL refuses https. */
FIRN_MUSTUSE int http_client_init_tls(struct http_client *c, const char *url,
                                      struct tls_context *tls);
void http_client_done(struct http_client *c);

/* GET the URL; the body of a 200, borrowed until the next call. FIRN_EIO: no connection or no
 * answer in time, after all attempts. FIRN_EFORMAT: the answer is not HTTP. FIRN_ENOTSUP:
 * another status. */
FIRN_MUSTUSE int http_client_get(struct http_client *c, const char **out_body, size_t *out_len);

/* The same without retries: for callers that have another server to ask, or that ask again soon. */
FIRN_MUSTUSE int http_client_get_once(struct http_client *c, const char **out_body,
                                      size_t *out_len);

/* The same with `post` as a JSON body, without retries; 201 counts as success, too. */
FIRN_MUSTUSE int http_client_post(struct http_client *c, const char **out_body, size_t *out_len);

#endif
