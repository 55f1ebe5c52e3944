#include "server/problem.h"
#include "wire/json_write.h"

#include <stdarg.h>
#include <stdio.h>

enum { DETAIL_BYTES_MAX = 1024, FIELDS_BYTES_MAX = 512 };

static const struct {
    uint16_t status;
    const char *type, *title;
} rows[] = {
#define X(name, status, slug, title) { status, "urn:firn:problem:" slug, title },
    PROBLEMS(X)
#undef X
};

unsigned problem_status(enum problem p)
{
    return rows[p].status;
}

void problem_write(struct buf *b, enum problem p, const char *detail)
{
    buf_add(b, "{", 1);
    json_add_member(b, "type", rows[p].type);
    json_add_member(b, "title", rows[p].title);
    json_add_number(b, "status", rows[p].status);
    json_add_member(b, "detail", detail);
    buf_add(b, "}\n", 2);
}

void problem_reply(struct reply *r, enum problem p, const char *fields, const char *fmt, ...)
{
    char detail[DETAIL_BYTES_MAX], head[FIELDS_BYTES_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    snprintf(head, sizeof head,
             "Content-Type: application/problem+json\r\nCache-Control: no-store\r\n%s%s",
             rows[p].status == 503 ? "Retry-After: 1\r\n" : "", fields);
    reply_begin(r, rows[p].status, head);
    problem_write(r->out, p, detail);
    reply_end(r);
}
