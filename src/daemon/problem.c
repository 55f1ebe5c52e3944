/* Header lines and body of an application/problem+json answer. */
#include "daemon/problem.h"
#include "wire/json_write.h"

#include <stdio.h>

void problem_fields(const struct problem_kind *k, const char *more, char out[PROBLEM_FIELDS_BUF])
{
    snprintf(out, PROBLEM_FIELDS_BUF,
             "Content-Type: application/problem+json\r\nCache-Control: no-store\r\n%s%s",
             k->status == 503 ? "Retry-After: 1\r\n" : "", more);
}

void problem_write(struct buf *b, const struct problem_kind *k, const char *detail)
{
    buf_add(b, "{", 1);
    json_text(b, "type", k->type);
    json_text(b, "title", k->title);
    json_count(b, "status", k->status);
    json_text(b, "detail", detail);
    buf_add(b, "}\n", 2);
}
