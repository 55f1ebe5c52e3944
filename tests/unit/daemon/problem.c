/* problem+json: header lines and body, whatever the detail contains. */
#include "t.h"

#include "daemon/problem.h"

static const struct problem_kind busy = { 503, "urn:firn:problem:busy", "Too much to do" };
static const struct problem_kind route = { 404, "urn:firn:problem:no-such-route", "Nothing here" };

T_TEST(problem_fields_retry_only_where_it_helps)
{
    char fields[PROBLEM_FIELDS_BUF];
    problem_fields(&busy, "X-A: b\r\n", fields);
    T_STR(fields, "Content-Type: application/problem+json\r\nCache-Control: no-store\r\n"
                  "Retry-After: 1\r\nX-A: b\r\n");
    problem_fields(&route, "", fields);
    T_STR(fields, "Content-Type: application/problem+json\r\nCache-Control: no-store\r\n");
}

T_TEST(problem_body_is_json)
{
    struct buf b;
    buf_init(&b, 4096);
    problem_write(&b, &route, "'\"' is no path");
    buf_add(&b, "", 1);
    T_STR(b.p,
          "{\"type\":\"urn:firn:problem:no-such-route\",\"title\":\"Nothing here\",\"status\":404,"
          "\"detail\":\"'\\\"' is no path\"}\n");
    buf_done(&b);
}
