#include "cli/admin/coord_opts.h"
#include "cli/duration.h"
#include "cli/say.h"
#include "store/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *coord_store_url(const char *given)
{
    struct firn_diag d = { 0 };
    const char *url = given ? given : getenv("FIRN_STORE");
    if (!url || !*url) {
        say_trouble("which store? Give --store URL, or set FIRN_STORE, as in sqlite:firn.db or "
                    "etcd://127.0.0.1:2379/firn");
        return NULL;
    }
    if (firn_store_url_check(url, &d) != 0) {
        say_trouble("%s", d.text);
        return NULL;
    }
    if (strcmp(url, "memory:") == 0) {
        say_trouble("memory: is a store of one process alone: give one that others can see");
        return NULL;
    }
    return url;
}

int coord_store_open(const char *url, uint32_t timeout_ms, struct firn_store **out)
{
    struct firn_diag d = { 0 };
    char shown[SAY_TEXT_BUF], redacted[SAY_TEXT_BUF];
    int error = firn_store_open(url, timeout_ms, out, &d);
    if (error == 0)
        return -1;
    store_url_redact(url, redacted, sizeof redacted);
    return say_trouble("%s: %s", say_text(redacted, strlen(redacted), shown),
                       d.text[0] ? d.text : firn_error_message(error));
}

bool coord_name(const char *given, char out[RECORD_NAME_MAX + 1])
{
    char host[RECORD_NAME_MAX - 11] = "", shown[SAY_TEXT_BUF];
    if (given) {
        if (!record_user_name_ok(given, strlen(given))) {
            say_trouble("--name '%s': give 1 to %d of A-Z a-z 0-9 . _ : and -",
                        say_text(given, strlen(given), shown), RECORD_NAME_MAX);
            return false;
        }
        snprintf(out, RECORD_NAME_MAX + 1, "%s", given);
        return true;
    }
    gethostname(host, sizeof host - 1);
    for (char *p = host; *p; p++)
        if (!record_user_name_ok(p, 1))
            *p = '-';
    snprintf(out, RECORD_NAME_MAX + 1, "%s:%d", host[0] ? host : "host", (int)getpid());
    return true;
}

bool coord_time(const char *option, const char *text, uint64_t min_ms, uint64_t max_ms,
                uint64_t *out_ms)
{
    char shown[SAY_TEXT_BUF];
    uint64_t ms;
    if (!text)
        return true;
    if (duration_parse(text, &ms) && ms >= min_ms && ms <= max_ms) {
        *out_ms = ms;
        return true;
    }
    say_trouble("--%s '%s': give a time such as 500ms, 10s or 5m, from %" PRIu64 " ms to %" PRIu64
                " s",
                option, say_text(text, strlen(text), shown), min_ms, max_ms / 1000);
    return false;
}
