/*
 * url.h - the options of a client, as its URL gives them: firn://a:9001,b:9001/?mode=prefetch.
 * Pure: no server is asked and no file is read. The options are the rows of one table (url.c).
 */
#ifndef FIRN_CLIENT_URL_H
#define FIRN_CLIENT_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "firn/error.h"

enum client_mode { MODE_REMOTE, MODE_PREFETCH, MODE_LEASED };
enum client_proto { PROTO_HTTP, PROTO_RESP };

enum {
    SERVERS_MAX = 32, /* in the URL or discovered; a trip remembers those tried in a word of bits */
    HOST_BUF = 256,
    VALUE_BUF = 512,
    PORT_DEFAULT = 9001,
    RESP_BLOCK_MAX = 10000, /* each number is a text there */
    FRESH_MIN_MS = 50,      /* the cheap clock moves in steps of up to 10 ms */
};

struct server_name {
    char host[HOST_BUF]; /* IPv6 without its brackets */
    uint16_t port;
};

struct client_opts {
    struct server_name server[SERVERS_MAX];
    uint32_t servers;
    uint32_t mode, proto;  /* enum client_mode, enum client_proto */
    char kind[VALUE_BUF];  /* "snowflake" */
    char seq[VALUE_BUF];   /* of tickets; alone it implies kind=ticket */
    char token[VALUE_BUF]; /* bearer token, or password of AUTH */
    char token_file[VALUE_BUF];
    uint64_t timeout_ms;     /* of one attempt */
    uint64_t retries;        /* after the first attempt */
    uint64_t retry_delay_ms; /* between an attempt that failed and the next */
    uint64_t deadline_ms;    /* of a call as a whole; 0: what the three above add up to */
    uint64_t fresh_ms;       /* prefetch: no ID is older; 0: any age will do */
    uint64_t block;          /* prefetch: most IDs in one block */
    uint32_t tls, discover, background;                  /* booleans */
    char ca[VALUE_BUF], cert[VALUE_BUF], key[VALUE_BUF]; /* PEM files */
};

/* FIRN_EFORMAT, FIRN_EINVAL, FIRN_ERANGE: `d` says what is wrong, and for an unknown option
 * names the nearest one. *out is complete, with defaults, on success only. */
FIRN_MUSTUSE int client_url_parse(const char *url, struct client_opts *out, struct firn_diag *d);

#endif
