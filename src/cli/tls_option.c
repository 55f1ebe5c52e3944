/* The options for https, and the variables FIRN_CA, FIRN_CERT, FIRN_KEY and FIRN_URL. Tested by
 * tests/integration/tls.py. */
#include "cli/tls_option.h"
#include "cli/say.h"

#include <stdlib.h>
#include <string.h>

/* The option, or the variable; an empty one counts as not set. */
static const char *file_of(const char *option, const char *variable)
{
    const char *text = option ? option : getenv(variable);
    return text && *text ? text : NULL;
}

int tls_option_open(struct tls_option *o, const char *url)
{
    struct firn_diag d = { 0 };
    struct tls_files f = {
        .cert = file_of(o->cert, "FIRN_CERT"),
        .key = file_of(o->key, "FIRN_KEY"),
        .ca = file_of(o->ca, "FIRN_CA"),
        .area = "--",
    };
    if (o->context || strncmp(url, "https://", 8) != 0)
        return -1;
    if (!f.cert != !f.key)
        return say_trouble("--cert and --key belong together: give both or none");
    if (tls_context_open(TLS_CLIENT, &f, &o->context, &d) != 0)
        return say_trouble("%s", d.text[0] ? d.text : "out of memory");
    return -1;
}

void tls_option_done(struct tls_option *o)
{
    tls_context_free(o->context);
    o->context = NULL;
}

const char *default_url(void)
{
    const char *url = getenv("FIRN_URL");
    return url && *url ? url : "http://127.0.0.1:9000";
}
