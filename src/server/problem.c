/* The errors of firnd's HTTP API (problem.h) as answers. Tested in tests/unit/server/http.c. */
#include "server/problem.h"
#include "daemon/problem.h"
#include "server/tracing.h"

#include <stdarg.h>
#include <stdio.h>

enum { DETAIL_BYTES_MAX = 1024 };

static const struct problem_kind kinds[] = {
#define X(name, status, slug, title) { status, "urn:firn:problem:" slug, title },
    PROBLEMS(X)
#undef X
};

void problem_reply(struct reply *r, enum problem p, const char *fields, const char *fmt, ...)
{
    char detail[DETAIL_BYTES_MAX], head[PROBLEM_FIELDS_BUF];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    problem_fields(&kinds[p], fields, head);
    reply_begin(r, kinds[p].status, head);
    problem_write(r->out, &kinds[p], detail);
    reply_end(r);
    if (kinds[p].status >= 500)
        tracing_failed(r, kinds[p].status, kinds[p].type, detail);
}
