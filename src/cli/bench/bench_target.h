/*
 * bench_target.h - addresses for firn's benches: a table with a row per scheme turns an address
 * into a server and the bytes of a request. Servers on other machines are accepted only if the
 * user says so (--allow-remote): a load generator that is directed elsewhere by mistake would be an
 * attack. One thread.
 */
#ifndef FIRN_CLI_BENCH_BENCH_TARGET_H
#define FIRN_CLI_BENCH_BENCH_TARGET_H

#include "cli/bench/load.h"
#include "cli/url.h"

enum { BENCH_WHY_BUF = 400 };

/* The request, where the address does not determine it. */
struct bench_ask {
    const char *command; /* of the Redis protocol; NULL: `otherwise` */
    const char *otherwise;
    const char *accept; /* NULL: none */
    bool remote;        /* --allow-remote */
    char *why;          /* where a message goes, BENCH_WHY_BUF bytes; NULL: to stderr */
};

struct bench_target {
    const char *text; /* as the user wrote it; borrowed */
    char what[256];   /* the command, or "" */
    char *request;    /* load.request */
    struct url url;
    struct load_target load;
};

/* `http://…` is requested with GET, `redis://host:port[/WORD/WORD…]` with that command. -1: go
 * on; otherwise the status to exit with, after a message. */
int bench_target_init(struct bench_target *t, const char *address, const struct bench_ask *ask);

/* The same for `host:port` and the Redis protocol. */
int bench_target_init_resp(struct bench_target *t, const char *address,
                           const struct bench_ask *ask);

void bench_target_done(struct bench_target *t);

/* The address begins with a scheme of the table. */
bool bench_target_known(const char *address);

/* -1: all addresses of the host are loopback; otherwise the status after a message. */
int bench_target_is_local(const char *host);

/* Raise the limit of open files to `need`. -1: go on; otherwise the status after a message. */
int bench_raise_fd_limit(uint64_t need);

#endif
