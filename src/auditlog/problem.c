/* Problems as answers. Tested in tests/integration/auditlog.py. */
#include "auditlog/problem.h"
#include "daemon/problem.h"

#include <stdarg.h>
#include <stdio.h>

void problem_reply(struct reply *r, enum problem p, const char *fmt, ...)
{
    static const struct problem_kind kinds[] = {
#define X(name, status, slug, title) { status, "urn:firn:problem:" slug, title },
        PROBLEMS(X)
#undef X
    };
    char fields[PROBLEM_FIELDS_BUF], detail[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    problem_fields(&kinds[p], kinds[p].status == 401 ? "WWW-Authenticate: Bearer\r\n" : "", fields);
    reply_begin(r, kinds[p].status, fields);
    problem_write(r->out, &kinds[p], detail);
    reply_end(r);
}
