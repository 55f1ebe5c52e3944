/*
 * redact.h - what must not reach a log or a span: which header fields are secrets, and copies of a
 * query or a body without the values of members like "password" and "access_token". By names only:
 * a secret under another name is not found, so a route names its own (log_redact). Pure; any
 * thread.
 */
#ifndef FIRN_PROXY_REDACT_H
#define FIRN_PROXY_REDACT_H

#include "daemon/config.h"
#include "wire/buf.h"

#define REDACTED "[redacted]"

/* Names that are secret beside the built-in ones; NULL: none. */
struct redact {
    const struct config_strings *more;
};

/* A header field: Authorization, Cookie, X-Api-Key and names with words like token or secret. */
bool redact_field(const struct redact *r, struct slice name);

/* A parameter of a query or form, or a member of JSON. */
bool redact_member(const struct redact *r, struct slice name);

/* "a=1&token=x" as "a=1&token=[redacted]". Names may be written with %XX; parameters may also be
 * separated by ';'. */
void redact_query(const struct redact *r, struct slice query, struct buf *out);

/* JSON, also a beginning of it: the values of secret members, whole objects among them. What is no
 * JSON stays. */
void redact_json(const struct redact *r, struct slice text, struct buf *out);

#endif
