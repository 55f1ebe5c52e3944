/*
 * signals.h - the signals of a server: SIGTERM and SIGINT end it, SIGHUP reloads its configuration.
 * The main thread waits for them; no handler runs. Also the other limits that a server sets for
 * itself at its start.
 */
#ifndef FIRN_DAEMON_SIGNALS_H
#define FIRN_DAEMON_SIGNALS_H

#include <signal.h>
#include <stdint.h>

/* Before the first thread: they inherit that these signals are blocked. SIGPIPE and SIGXFSZ are
 * ignored, so that a closed socket and a limit on file sizes become errors of the call. */
void signals_block(void);

/* The next of the three, or 0 after `ms`. */
int signals_wait(uint32_t ms);

/* Between SIGTERM and the drain: wait for `ms`, in which the program still serves and its readiness
 * check fails, so that balancers stop sending. Another SIGTERM or SIGINT ends it. Feeds the
 * watchdog. */
void signals_notice(uint64_t ms);

/* First of all in main(): /dev/null in place of those of stdin, stdout and stderr that are closed.
 * Else the next file or socket gets their number, and what is logged. */
void descriptors_standard(void);

/* Raise the limit on open descriptors to `want`, or as far as the system allows. Returns the limit
 * that holds now. */
uint64_t descriptors_raise(uint64_t want);

#endif
