/*
 * about.h - what every server answers about itself over HTTP: /healthz, /readyz, /metrics and its
 * page. The header lines, and the members of the JSON answers. A server that is not ready answers
 * /readyz with a problem (problem.h) of status 503 whose detail is the reason.
 */
#ifndef FIRN_DAEMON_ABOUT_H
#define FIRN_DAEMON_ABOUT_H

#include "wire/json_write.h"

#define ABOUT_NO_STORE "Cache-Control: no-store\r\n"
#define ABOUT_METRICS_FIELDS \
    "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" ABOUT_NO_STORE
#define ABOUT_OPENMETRICS_TYPE "application/openmetrics-text"
#define ABOUT_OPENMETRICS_FIELDS \
    "Content-Type: " ABOUT_OPENMETRICS_TYPE "; version=1.0.0; charset=utf-8\r\n" ABOUT_NO_STORE

#define ABOUT_CACHED        "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n"
#define ABOUT_SCRIPT_FIELDS "Content-Type: text/javascript; charset=utf-8\r\n" ABOUT_CACHED
#define ABOUT_STYLE_FIELDS  "Content-Type: text/css; charset=utf-8\r\n" ABOUT_CACHED
#define ABOUT_TEXT_FIELDS   "Content-Type: text/plain; charset=utf-8\r\n" ABOUT_CACHED

/* A page has its scripts and styles in files of this server, asks this server alone and is framed
 * by none. Nothing inside the page is executed. */
#define ABOUT_PAGE_FIELDS                                                            \
    "Content-Type: text/html; charset=utf-8\r\n" ABOUT_CACHED                        \
    "Content-Security-Policy: default-src 'none'; style-src 'self'; "                \
    "script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "        \
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'" \
    "\r\n"

/* /healthz: the process serves. */
static inline void about_healthy(struct buf *b)
{
    json_text(b, "status", "ok");
}

/* /readyz, when it is. `reason`: what an operator should know all the same, or NULL. */
static inline void about_ready(struct buf *b, const char *reason)
{
    json_text(b, "status", "ready");
    json_text(b, "reason", reason);
}

#endif
