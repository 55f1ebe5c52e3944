/* generator_url.h - the URL of a firnd that makes IDs: http://host[:port]. Pure; any thread. */
#ifndef FIRN_AUDITLOG_GENERATOR_URL_H
#define FIRN_AUDITLOG_GENERATOR_URL_H

#include "wire/url.h"

/* FIRN_EFORMAT; diag says what is wrong. */
FIRN_MUSTUSE int generator_url_read(const char *url, struct host_port *out, struct firn_diag *diag);

#endif
