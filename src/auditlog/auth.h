/*
 * auth.h - what the token of a request may do. Tokens are known by their SHA-256 only; all are
 * compared, each in full, so that the time taken says nothing about them. Pure; any thread.
 */
#ifndef FIRN_AUDITLOG_AUTH_H
#define FIRN_AUDITLOG_AUTH_H

#include "auditlog/config.h"
#include "wire/buf.h"

enum auth_end { AUTH_OK, AUTH_NO_TOKEN, AUTH_BAD_TOKEN, AUTH_SCOPE };

/* `authorization` is the header's value. AUTH_OK: `*tenant` is whose entries it is about, borrowed
 * from `tokens`, or "default" where there are no tokens at all. */
enum auth_end auth_check(const struct config_tokens *tokens, struct slice authorization,
                         uint32_t scope, struct slice *tenant);

#endif
