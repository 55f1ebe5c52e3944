/*
 * log.h - structured logs on stderr: one line per event, as text or as JSON.
 *
 *     log_info("lease_acquired", "slot=%u until=%s", slot, when);
 *     2026-11-16T03:00:00.123Z info  lease_acquired slot=3 until=2026-11-16T03:00:03Z
 *     {"time":"2026-11-16T03:00:00.123Z","level":"info","event":"lease_acquired","slot":3,...}
 *
 * Event names are stable, because people search for them; the words of the format are the keys. A
 * value is quoted where it needs it, so nothing that comes from outside can forge a line or a
 * field. A format without '=' in its first word is one value, `msg`. Only the function that decides
 * logs, once: error = an operator should act, warn = the server coped.
 *
 * Any thread may log at any time. A line is one write(2) of at most 4096 bytes, so lines of several
 * processes on one pipe do not mix. When an event repeats itself or floods the log, a few lines per
 * second are written and the next one says how many were not: repeated=120. Debug lines are not
 * counted.
 */
#ifndef FIRN_DAEMON_LOG_H
#define FIRN_DAEMON_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* From now on; may be called again while other threads log. Before the first call: info, text. */
void log_setup(enum log_level level, enum log_format format);

/* Write to `fd` instead of stderr, for tests. */
void log_to(int fd);

/* Whether a line of this level would be written: for values that are costly to make. */
bool log_wants(enum log_level level);

/* Write the counts of lines that were held back. Call it regularly, and at the end. */
void log_flush(void);

/* `event` is a literal: its address is kept. Formats take d i u x X o c s p f e g with the usual
 * flags and lengths; `*` only as a precision. */
__attribute__((format(printf, 3, 4))) void log_event(enum log_level level, const char *event,
                                                     const char *fmt, ...);

/* What someone must find later, whatever else happened: written at every level, never held back. */
__attribute__((format(printf, 2, 3))) void log_audit(const char *event, const char *fmt, ...);

/* The request that this thread works on from now on, so that its lines can be found by the IDs that
 * the client knows: they end with request_id= and trace_id=. Borrowed; NULL, at first: none. */
struct log_request {
    const char *id, *trace; /* "": it has none */
};
void log_request(const struct log_request *r);

#define LOG_AT(level, ...)                 \
    do {                                   \
        if (log_wants(level))              \
            log_event(level, __VA_ARGS__); \
    } while (0)

#define log_error(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
