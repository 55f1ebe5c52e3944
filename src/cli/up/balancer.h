/*
 * balancer.h - a load balancer for three firnds on this machine, from the configurations in
 * deploy/.
 * Those files are embedded in the program; their ports are changed here, and nginx gets folders
 * that it may write to.
 */
#ifndef FIRN_CLI_UP_BALANCER_H
#define FIRN_CLI_UP_BALANCER_H

#include "cli/up/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BALANCER_PATH_BUF = MACHINE_PATH_BUF, BALANCER_ARGS_MAX = 8 };

struct balancer {
    const char *name; /* "haproxy" or "nginx" */
    bool resp;        /* it forwards the Redis protocol, too */
    char program[BALANCER_PATH_BUF], config[BALANCER_PATH_BUF], own_log[BALANCER_PATH_BUF],
        globals[2 * BALANCER_PATH_BUF];
    const char *argv[BALANCER_ARGS_MAX];
};

/* Find the program: `name`, or with NULL the first of haproxy and nginx that is installed.
 * False: it is not. */
bool balancer_find(struct balancer *b, const char *name);

/* Write its configuration below `dir` (absolute) with the ports 9000 to 9039 moved to `base` and
 * up; argv then starts it in the foreground. -1: failed, reported. */
int balancer_prepare(struct balancer *b, const char *dir, uint32_t base);

/* Made by cmake/embed.cmake from deploy/haproxy/firn.cfg and deploy/nginx/firn.conf. */
extern const unsigned char balancer_haproxy[], balancer_nginx[];
extern const size_t balancer_haproxy_len, balancer_nginx_len;

#endif
