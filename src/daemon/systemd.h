/*
 * systemd.h - what systemd and a service say to each other: readiness, reloading, status and the
 * watchdog one way, listening sockets the other (sd_notify(3) and sd_listen_fds(3), whose protocols are
 * stable and small enough to need no library). Outside of systemd everything here does nothing.
 * Call systemd_sockets() once, before threads are made; the rest from any thread.
 */
#ifndef FIRN_DAEMON_SYSTEMD_H
#define FIRN_DAEMON_SYSTEMD_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

enum { SYSTEMD_SOCKETS_MAX = 64 };

enum systemd_port { SYSTEMD_HOME, SYSTEMD_SNOWFLAKE, SYSTEMD_TICKET };

struct systemd_socket {
    int fd; /* listening; now the caller's */
    enum systemd_port port;
};

/* The sockets that systemd opened for us, at most SYSTEMD_SOCKETS_MAX, their number in `*out_n`; 0 when
 * there are none. Sockets named home, snowflake or ticket (FileDescriptorName=) serve that port; with
 * no such name at all, the first three serve the three ports in this order. Takes the variables out of
 * the environment, so that no child believes them. FIRN_EINVAL: a descriptor that is not a listening
 * stream socket, a name among ours that is not, or too many. */
FIRN_MUSTUSE int systemd_sockets(struct systemd_socket out[SYSTEMD_SOCKETS_MAX], size_t *out_n,
                                 struct firn_diag *diag);

/* 0: said, or there is nobody to say it to. FIRN_EIO: the socket in NOTIFY_SOCKET did not take it. */
int systemd_ready(const char *status);
int systemd_reloading(void); /* systemd_ready() ends it */
int systemd_stopping(const char *status);
int systemd_watchdog(void);
__attribute__((format(printf, 1, 2))) int systemd_status(const char *fmt, ...);

/* How often systemd_watchdog() should be called: half of what systemd allows. 0: no watchdog. */
uint64_t systemd_watchdog_ms(void);

#endif
