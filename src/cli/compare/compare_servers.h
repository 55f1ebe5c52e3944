/*
 * compare_servers.h - starts firnds for firn compare, on free ports and one store in a temporary
 * folder, and measures what clients see when one is killed or the store stands still.
 * compare_servers_stop() removes everything. One thread.
 */
#ifndef FIRN_CLI_COMPARE_COMPARE_SERVERS_H
#define FIRN_CLI_COMPARE_COMPARE_SERVERS_H

#include "firn/error.h"
#include "cli/child.h"

#include <stdbool.h>
#include <stdint.h>

enum { COMPARE_SERVERS_MAX = 5, COMPARE_PROBES_MAX = 8 };

struct compare_server {
    char home[64], snowflake[64], ticket[64]; /* host:port */
    char name[32], state[300], store[300], log[300];
    const char *argv[12];
};

struct compare_servers {
    char folder[CHILD_FOLDER_BUF], firnd[CHILD_PATH_BUF];
    unsigned n;
    struct child child[COMPARE_SERVERS_MAX];
    struct compare_server server[COMPARE_SERVERS_MAX];
};

/* -1: all are ready. Otherwise the status to exit with, after a message; nothing is left. */
int compare_servers_start(struct compare_servers *s, unsigned n);
void compare_servers_stop(struct compare_servers *s);

/* A client that requests an ID every few milliseconds and, if a server fails, asks the next at
 * once. */
struct compare_probe {
    const char *path[COMPARE_SERVERS_MAX]; /* the path for server i; NULL: it does not serve this */
    uint64_t asked, failed;
    uint64_t gap_ns;        /* the longest time of one request, or without a success */
    uint64_t ids, distinct; /* that it got */
};

enum compare_fault {
    FAULT_STORE, /* for FAULT_STORE_MS no server can write to the store: another holds its lock */
    FAULT_KILL,  /* kill -9 the first server */
};
enum { FAULT_STORE_MS = 1500 };

/* Run all probes, let the fault happen in the middle, and continue. */
FIRN_MUSTUSE int compare_servers_disturb(struct compare_servers *s, enum compare_fault fault,
                                         struct compare_probe *probe, unsigned probes);

#endif
