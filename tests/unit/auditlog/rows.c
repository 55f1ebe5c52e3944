/* Rows as JSON. */
#include "t.h"

#include "auditlog/rows.h"

T_TEST(rows_as_json)
{
    const struct shown_row r = { .id = UINT64_C(778743058235113506),
                                 .map_version = 1,
                                 .at_us = INT64_C(1763510400123456),
                                 .user = { "u\"1", 3 },
                                 .actor = { "a", 1 },
                                 .action = { "b", 1 },
                                 .detail = { "{\"n\": 1}", 8 } };
    struct buf b, page;
    buf_init(&b, 10000);
    buf_init(&page, 10000);
    row_write(&b, &r);
    buf_add(&b, "", 1);
    T_STR(b.p, "{\"id\":\"778743058235113506\",\"shard\":19,\"user\":\"u\\\"1\",\"actor\":\"a\","
               "\"action\":\"b\",\"at\":\"2025-11-19T00:00:00.123Z\",\"detail\":{\"n\": 1},"
               "\"map_version\":1}\n");
    buf_done(&b);
    rows_page(&page, (struct slice){ "{1}\n{2}\n", 8 }, 7);
    rows_page(&page, (struct slice){ "", 0 }, 0);
    buf_add(&page, "", 1);
    T_STR(page.p, "{\"entries\":[{1},{2}],\"next\":\"7\"}\n{\"entries\":[],\"next\":null}\n");
    buf_done(&page);
}
