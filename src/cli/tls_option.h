/*
 * tls_option.h - the --ca, --cert and --key that commands on https:// servers share, and the
 * variables that stand in for them. One thread; the context is for any number of clients.
 */
#ifndef FIRN_CLI_TLS_OPTION_H
#define FIRN_CLI_TLS_OPTION_H

#include "cli/options.h"
#include "wire/tls_context.h"

struct tls_option {
    const char *ca, *cert, *key; /* files, or NULL */
    struct tls_context *context; /* NULL until an https URL needs it */
};

#define OPT_TLS_FILE(struct_, member, name_, about_)                                       \
    {                                                                                      \
        .name = name_, .type = OPT_TEXT, .at = offsetof(struct_, member), .value = "FILE", \
        .words = "@files", .about = about_                                                 \
    }
/* Three rows of a command's table. */
#define OPT_TLS(struct_, member)                                                              \
    OPT_TLS_FILE(struct_, member.ca, "ca",                                                    \
                 "https: authorities to trust (default: FIRN_CA, else the system's)"),        \
        OPT_TLS_FILE(struct_, member.cert, "cert",                                            \
                     "https: certificate for servers that ask for one (default: FIRN_CERT)"), \
        OPT_TLS_FILE(struct_, member.key, "key", "https: its private key (default: FIRN_KEY)")

/* Prepare for a URL: an https one has the files read, once. -1: go on; otherwise the status to exit
 * with, after a message. */
int tls_option_open(struct tls_option *o, const char *url);
void tls_option_done(struct tls_option *o);

/* Where a server is asked that no option names: FIRN_URL, or http://127.0.0.1:9000. */
const char *default_url(void);

#endif
