/*
 * systemd.h - messages to systemd (readiness, reloading, status, watchdog) and the listening
 * sockets that it passes: sd_notify(3) and sd_listen_fds(3), whose protocols are stable and small
 * enough to need no library. Outside of systemd everything here does nothing. Call
 * systemd_sockets() once, before threads are made; the rest from any thread.
 */
#ifndef FIRN_DAEMON_SYSTEMD_H
#define FIRN_DAEMON_SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

enum { SYSTEMD_SOCKETS_MAX = 64 };

struct systemd_socket {
    int fd;      /* listening; now the caller's */
    size_t port; /* index in the program's names */
};

/* The sockets that systemd opened for us, at most SYSTEMD_SOCKETS_MAX, their number in `*out_n`; 0
 * when there are none. A socket named as one of the program's ports (FileDescriptorName=) serves
 * that port; when no socket has such a name, the first ones serve the ports in the order of
 * `names`. Takes the variables out of the environment, so that no child process believes them.
 * FIRN_EINVAL: a descriptor that is not a listening stream socket, an unknown name beside known
 * ones, or too many sockets. */
FIRN_MUSTUSE int systemd_sockets(const char *const *names, size_t names_n,
                                 struct systemd_socket out[SYSTEMD_SOCKETS_MAX], size_t *out_n,
                                 struct firn_diag *diag);

/* Gives every loop of a program a copy of each socket from systemd_sockets(), and sets passed[port]
 * for those ports. `give` gets the descriptor, also when it returns an error. */
FIRN_MUSTUSE int systemd_share(const char *const *names, size_t names_n, size_t loops,
                               int (*give)(void *user, size_t loop, size_t port, int fd),
                               void *user, bool *passed, struct firn_diag *diag);

/* 0: sent, or systemd did not start us. FIRN_EIO: the socket in NOTIFY_SOCKET did not take it. */
int systemd_ready(const char *status);
int systemd_reloading(void); /* systemd_ready() ends it */
int systemd_stopping(const char *status);
int systemd_watchdog(void);

/* How often to call systemd_watchdog(): half of the time after which systemd would end us
 * (WatchdogSec=), in ms, at least 1. 0: there is no watchdog. */
uint64_t systemd_watchdog_ms(void);
__attribute__((format(printf, 1, 2))) int systemd_status(const char *fmt, ...);

#endif
