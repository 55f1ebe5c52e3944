/*
 * findings.h - what firn doctor makes of the answers of some servers: pure, any thread.
 * Each finding says what is wrong and what to do.
 */
#ifndef FIRN_CLI_WATCH_FINDINGS_H
#define FIRN_CLI_WATCH_FINDINGS_H

#include "cli/watch/top_node.h"

enum { FINDINGS_MAX = 256, FINDING_SKEW_MS = 1000 };

enum finding_level { FINDING_NOTE, FINDING_BAD };

struct finding {
    enum finding_level level;
    size_t node;       /* which server */
    const char *about; /* "slot", "clock", ... */
    char text[400];    /* what is wrong, then what to do */
};

struct findings {
    struct finding f[FINDINGS_MAX];
    size_t n;
    size_t bad;
};

/* Of one or several servers, as they answered at about the same time. */
void findings_of(const struct top_node *node, size_t n, struct findings *out);

/* Whether two of the servers clash (coord/clash.h): then look again before you say so. */
bool findings_clash(const struct top_node *node, size_t n);

#endif
