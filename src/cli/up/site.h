/*
 * site.h - what firn up runs on this machine: three firnds (members), a load balancer, a client of
 * each kind, and the folder with their records and logs. Member N listens on base + 10 N and the
 * three ports after it (page, Snowflake IDs, tickets, peers), the balancer on base to base + 3
 * (page, Snowflake IDs, tickets, Redis protocol). One thread.
 */
#ifndef FIRN_CLI_UP_SITE_H
#define FIRN_CLI_UP_SITE_H

#include "cli/child.h"
#include "cli/http_client.h"
#include "cli/id_body.h"
#include "cli/up/balancer.h"

#include <signal.h>

enum {
    SITE_MEMBERS = 3,
    SITE_CHILDREN = SITE_MEMBERS + 1,
    SITE_PATH_BUF = 4096,
    SITE_ADDRESS_BUF = 32,
    SITE_ARGS_MAX = 28,
    SITE_STATUS_BUF = 4096, /* some lines, one for each member */
};

enum port { PORT_HOME, PORT_SNOWFLAKE, PORT_TICKET, PORT_RESP, PORT_PEERS = PORT_RESP };

struct up { /* the options */
    uint64_t port, rounds;
    const char *state, *balancer, *store;
    bool once;
};

struct member {
    char name[8], dir[SITE_PATH_BUF], address[4][SITE_ADDRESS_BUF];
    char join[SITE_MEMBERS * SITE_ADDRESS_BUF]; /* the peer ports of the others */
    bool known;                                 /* it has been a member before, and knows its id */
    const char *argv[SITE_ARGS_MAX];
};

struct site {
    const struct up *o;
    char dir[SITE_PATH_BUF], firnd[SITE_PATH_BUF], log[SITE_CHILDREN][SITE_PATH_BUF + 16];
    bool temporary, stop;
    bool fresh; /* no member has data: the first one begins a cluster */
    int lock;
    struct member member[SITE_MEMBERS];
    struct balancer balancer;
    size_t children; /* SITE_MEMBERS, or one more with a balancer */
    struct child child[SITE_CHILDREN];
    struct http_client snowflake, ticket;
    char id[2][ID_BODY_TEXT_BUF]; /* of the last round */
    uint64_t rounds;
    unsigned clashes; /* looks in a row at which two members used one slot */
};

/* Functions that return int: -1: go on; otherwise the status to exit with, after an error
 * message. */

/* The signals that mean "stop"; blocked by the command, and asked for where it suits. */
sigset_t site_stop_signals(void);

/* Wait for `ms`, or until a stop signal; whether one has come, from then on. */
bool site_stopped(struct site *s, uint64_t ms);

/* Make the folder of --state, or a temporary one, and lock it. */
int site_folder(struct site *s);

/* Decide what runs: flags, logs, balancer. Then check that its ports are free. */
int site_plan(struct site *s);
int site_check_ports(const struct site *s);
int site_check_port(const struct site *s, uint32_t port);

/* Remove FIRN_... from the environment: they are settings of another firnd, not of these three. */
void site_forget_settings(void);

/* The flags of member i, as its folder is now. */
void site_member_args(struct site *s, size_t i);

uint32_t site_port(const struct site *s, size_t member, enum port port);

/* GET a path on a port: whether it was answered with 200, and the answer as far as it fits. */
bool site_fetch(uint32_t port, const char *path, char out[SITE_STATUS_BUF]);

/* Child i runs and answers that it is ready. */
bool site_ready(const struct site *s, size_t i);

/* slots.c: warn when two members use one slot. To be called each second. */
void site_watch_slots(struct site *s);

/* Start all, and wait until they are ready. */
int site_start(struct site *s);

/* rejoin.c: member i may be started. One whose folder is gone has forgotten its votes and must
 * not come back under its old id: the other members remove that id, then it joins as a new
 * member. */
bool site_may_join(const struct site *s, size_t i);

/* rejoin.c: start member i as soon as it may join. */
int site_start_joining(struct site *s, size_t i);

#endif
