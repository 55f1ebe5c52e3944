/* The parameters of a list. */
#include "t.h"

#include "auditlog/audit_id.h"
#include "auditlog/query.h"

static struct firn_diag diag;

static int read_it(const char *text, struct list_query *q)
{
    return list_query_read((struct slice){ text, strlen(text) }, q, &diag);
}

T_TEST(query_presets)
{
    struct list_query q;
    T_EQ(list_query_read((struct slice){ NULL, 0 }, &q, &diag), 0);
    T_EQ(q.limit, LIST_LIMIT_PRESET);
    T_EQ(q.from, 0);
    T_EQ(q.before, AUDIT_ID_MAX);
    T_OK(!q.has_before && q.again[0] == '\0');
}

T_TEST(query_values)
{
    const int64_t day = INT64_C(1763510400); /* 2025-11-19 */
    struct list_query q;
    T_EQ(read_it("limit=7&before=99&since=2025-11-19T00:00:00Z", &q), 0, "%s", diag.text);
    T_EQ(q.limit, 7);
    T_EQ(q.before, 99);
    T_EQ(q.since_us, day * 1000000);
    T_STR(q.again, "&since=2025-11-19T00:00:00Z");
    /* Entries of that time have IDs from an hour before it on. */
    T_EQ(q.from, audit_id_floor((day - 3600) * 1000));
    T_EQ(read_it("until=2025-11-19T01%3A00:00.5%2B01:00", &q), 0, "%s", diag.text);
    T_EQ(q.until_us, day * 1000000 + 500000);
    T_EQ(q.before, audit_id_floor((day + 3600) * 1000 + 500));
    T_STR(q.again, "&until=2025-11-19T01%3A00:00.5%2B01:00");
}

T_TEST(query_errors)
{
    static const char *const bad[] = {
        "limit=0",
        "limit=1001",
        "limit=",
        "limit",
        "limit=1x",
        "before=",
        "before=-1",
        "before=0",
        "before",
        "since=2025-11-19",
        "since",
        "until=now",
        "until=%zz",
        "x=1",
        "Limit=1",
        "since=2025-11-19T00:00:00Z&since=2025-11-19T00:00:00Z&since=2025-11-19T00:00:00Z&"
        "since=2025-11-19T00:00:00Z&since=2025-11-19T00:00:00Z&since=2025-11-19T00:00:00Z&"
        "since=2025-11-19T00:00:00Z&since=2025-11-19T00:00:00Z",
    };
    struct list_query q = { .limit = 55 };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(read_it(bad[i], &q) < 0, "%s", bad[i]);
    T_EQ(q.limit, 55);
}
