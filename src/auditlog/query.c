/*
 * The parameters of a list. The time of an ID and the `at` of its entry differ: the ID may have
 * been fetched ahead, or lie ahead of the clock. The range of IDs is therefore wider than that of
 * the time; it spares the database the partitions that cannot have any. Tested in
 * tests/unit/auditlog/query.c.
 */
#include "auditlog/query.h"
#include "auditlog/audit_id.h"
#include "id/civil.h"
#include "id/diag.h"
#include "wire/http_line.h"
#include "wire/text.h"
#include "wire/url.h"

#define SLACK_MS  (INT64_C(3600) * 1000)
#define TIME_MIN  (-INT64_C(210000000000000000)) /* of a timestamptz: 4713 BC, and far ahead */
#define TIME_MAX  INT64_C(9000000000000000000)
#define NUMBER_OF "give limit as a number from 1 to 1000"

static int read_time(struct slice value, const char *name, int64_t *out_us, struct firn_diag *d)
{
    char text[64];
    size_t len;
    struct firn__time t;
    if (url_decode(value, false, text, sizeof text, &len) != 0 ||
        firn__rfc3339_parse(text, len, &t) != 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "%s is no time such as 2026-11-19T08:00:00Z", name);
    *out_us = t.unix_s * 1000000 + t.ns / 1000;
    return 0;
}

static int read_one(struct slice name, struct slice value, struct list_query *q, struct text *again,
                    struct firn_diag *d)
{
    uint64_t n;
    if (slice_is(name, "limit")) {
        if (!value.p || http_u64(value, LIST_LIMIT_MAX, &n) || n == 0)
            return firn__diag(d, FIRN_EFORMAT, 0, NUMBER_OF);
        q->limit = (uint32_t)n;
        return 0;
    }
    if (slice_is(name, "before")) {
        if (!value.p || audit_id_read(value, &q->before))
            return firn__diag(d, FIRN_EFORMAT, 0,
                              "before is no ID; take `next` of the last answer");
        q->has_before = true;
        return 0;
    }
    const bool since = slice_is(name, "since");
    if (!since && !slice_is(name, "until"))
        return firn__diag(d, FIRN_EINVAL, 0,
                          "there is no parameter '%.*s'; there are limit, before, since and until",
                          (int)(name.len < 32 ? name.len : 32), name.p);
    int r = read_time(value.p ? value : (struct slice){ "", 0 }, since ? "since" : "until",
                      since ? &q->since_us : &q->until_us, d);
    text_addf(again, "&%s=%.*s", since ? "since" : "until", (int)value.len, value.p ? value.p : "");
    return r;
}

int list_query_read(struct slice query, struct list_query *out, struct firn_diag *diag)
{
    struct list_query q = { .limit = LIST_LIMIT_PRESET,
                            .since_us = TIME_MIN,
                            .until_us = TIME_MAX,
                            .before = AUDIT_ID_MAX };
    struct text again = { .p = q.again, .cap = sizeof q.again };
    struct slice name, value;
    q.again[0] = '\0';
    if (!query.p)
        query = (struct slice){ "", 0 };
    while (url_query_next(&query, &name, &value)) {
        int r = read_one(name, value, &q, &again, diag);
        if (r)
            return r;
    }
    if (again.truncated)
        return firn__diag(diag, FIRN_EINVAL, 0, "since and until are given once each");
    if (q.since_us != TIME_MIN)
        q.from = audit_id_floor(q.since_us / 1000 - SLACK_MS);
    if (q.until_us != TIME_MAX) {
        uint64_t end = audit_id_floor(q.until_us / 1000 + SLACK_MS);
        q.before = end < q.before ? end : q.before;
    }
    *out = q;
    return 0;
}
