/* Tables of FIRN_... environment variables, and the pattern of Kubernetes' service links.
 * Tests: tests/unit/wire/variables.c, tests/unit/server/config.c. */
#include "wire/variables.h"
#include "wire/distance.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static const char *const of_firn[] = { "FIRN_STORE", "FIRN_TOKEN", "FIRN_CONFIG", "FIRN_URL",
                                       "FIRN_CA",    "FIRN_CERT",  "FIRN_KEY" };

static const char *const set_by_firn[] = { "FIRN_FENCING_TOKEN", "FIRN_LEADER_NAME",
                                           "FIRN_ELECTION",      "FIRN_CONFIG_NAME",
                                           "FIRN_CONFIG_VALUE",  "FIRN_CONFIG_REVISION",
                                           "FIRN_BIN_DIR" /* scripts/run-cluster, tests */ };

/* Settings outside sections, and the sections. */
static const char *const of_firnd[] = {
    "FIRN_STATE_DIR",    "FIRN_STORE", "FIRN_STORE_TIMEOUT_MS",
    "FIRN_STORE_INIT",   "FIRN_FENCE", "FIRN_NAME",
    "FIRN_LAYOUT",       "FIRN_LOOPS", "FIRN_WORKER_ID",
    "FIRN_ACCEPT_CLOCK", "FIRN_PEERS",
};
static const char *const sections[] = { "LISTEN_", "TICKETS_", "LEASES_", "CLUSTER_",
                                        "LIMITS_", "LOG_",     "TLS_",    "AUTH_",
                                        "RATE_",   "HTTP_",    "TRACING_" };

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool variable_common(const char *name)
{
    return is_one_of(name, of_firn, COUNT(of_firn)) ||
           is_one_of(name, set_by_firn, COUNT(set_by_firn)) || begins(name, "FIRN_TEST_");
}

bool variable_of_firnd(const char *name)
{
    if (is_one_of(name, of_firnd, COUNT(of_firnd)))
        return true;
    for (size_t i = 0; i < COUNT(sections); i++)
        if (begins(name, VARIABLES_PREFIX) && begins(name + strlen(VARIABLES_PREFIX), sections[i]))
            return true;
    return false;
}

/* PORT_9000_TCP, and behind it nothing, _ADDR, _PORT or _PROTO. */
static bool is_port_link(const char *p)
{
    static const char *const protocols[] = { "_TCP", "_UDP", "_SCTP" };
    static const char *const ends[] = { "", "_ADDR", "_PORT", "_PROTO" };
    size_t digits = 0;
    if (!begins(p, "PORT_"))
        return false;
    p += strlen("PORT_");
    while (isdigit((unsigned char)p[digits]))
        digits++;
    for (size_t i = 0; digits > 0 && i < COUNT(protocols); i++)
        if (begins(p + digits, protocols[i]))
            return is_one_of(p + digits + strlen(protocols[i]), ends, COUNT(ends));
    return false;
}

bool variable_of_service(const char *name, const char *value)
{
    for (const char *p = strchr(name, '_'); p; p = strchr(p, '_')) {
        p++;
        if (strcmp(p, "SERVICE_HOST") == 0 || strcmp(p, "SERVICE_PORT") == 0 ||
            begins(p, "SERVICE_PORT_") || is_port_link(p))
            return true;
        if (strcmp(p, "PORT") == 0 &&
            (begins(value, "tcp://") || begins(value, "udp://") || begins(value, "sctp://")))
            return true;
    }
    return false;
}

const char *variable_nearest(const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name), near = SIZE_MAX;
    for (size_t i = 0; i < COUNT(of_firn); i++) {
        size_t d = edit_distance(name, len, of_firn[i], strlen(of_firn[i]));
        if (d < near) {
            near = d;
            found = of_firn[i];
        }
    }
    return near <= 3 ? found : NULL;
}
