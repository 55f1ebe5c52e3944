/*
 * bench_target.h - what an address means to firn's benches: a table with a row for each scheme, which
 * turns an address into a server and the bytes that it is asked with. Only servers on this machine are
 * accepted: a load loop that is pointed elsewhere would be an attack. One thread.
 */
#ifndef FIRN_CLI_BENCH_BENCH_TARGET_H
#define FIRN_CLI_BENCH_BENCH_TARGET_H

#include "cli/bench/load.h"
#include "cli/url.h"

/* What the user wants to be asked, where the address does not say it. */
struct bench_ask {
    const char *command; /* of the Redis protocol; NULL: `otherwise` */
    const char *otherwise;
    const char *accept; /* NULL: none */
};

struct bench_target {
    const char *text; /* as the user wrote it; borrowed */
    char what[256];   /* the command, or "" */
    char *request;    /* load.request */
    struct url url;
    struct load_target load;
};

/* `http://…` is asked with GET, `redis://host:port[/WORD/WORD…]` with that command. -1: go on; otherwise
 * said, the status to exit with. */
int bench_target_init(struct bench_target *t, const char *address, const struct bench_ask *ask);

/* The same for `host:port` and the Redis protocol. */
int bench_target_init_resp(struct bench_target *t, const char *address,
                           const struct bench_ask *ask);

void bench_target_done(struct bench_target *t);

/* The address begins with a scheme of the table. */
bool bench_target_known(const char *address);

/* -1: the host's addresses are all loopback ones; otherwise said. */
int bench_target_is_local(const char *host);

/* So many files may be open, or said why not. -1: go on. */
int bench_raise_fd_limit(uint64_t need);

#endif
