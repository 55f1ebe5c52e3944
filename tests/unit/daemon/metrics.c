/* Metrics as text, in both formats. */
#include "t.h"

#include "daemon/metrics.h"

T_TEST(metrics_text)
{
    struct buf b;
    buf_init(&b, 4096);
    struct metrics m = { &b, false };
    metric(&m, "a", "One value.", 1.5);
    metric_head(&m, "b_total", "By kind.");
    metric_value(&m, "b_total", "kind", "x", UINT64_MAX);
    buf_add(&b, "", 1);
    T_STR(b.p, "# HELP a One value.\n# TYPE a gauge\na 1.5\n"
               "# HELP b_total By kind.\n# TYPE b_total counter\n"
               "b_total{kind=\"x\"} 18446744073709551615\n");
    b.len = 0;
    metrics_process(&m, 1500);
    buf_add(&b, "", 1);
    T_OK(strstr(b.p, "\nprocess_start_time_seconds 1.5\n"), "%s", b.p);
    T_OK(strstr(b.p, "\nprocess_cpu_seconds_total "), "%s", b.p);
    T_OK(strstr(b.p, "\nprocess_resident_memory_bytes "), "%s", b.p);
    T_OK(!strstr(b.p, "\nprocess_resident_memory_bytes 0\n"), "%s", b.p);
    buf_done(&b);
}

T_TEST(metrics_open)
{
    struct buf b;
    buf_init(&b, 4096);
    struct metrics m = { &b, true };
    metric(&m, "a_seconds", "A gauge.", 1.5);
    metric(&m, "b_bytes_total", "A counter.", 2);
    metric_head(&m, "c_info", "An info.");
    metric_value(&m, "c_info", "version", "1", 1);
    metrics_end(&m);
    buf_add(&b, "", 1);
    T_STR(b.p, "# HELP a_seconds A gauge.\n# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n"
               "a_seconds 1.5\n"
               "# HELP b_bytes A counter.\n# TYPE b_bytes counter\n# UNIT b_bytes bytes\n"
               "b_bytes_total 2\n"
               "# HELP c An info.\n# TYPE c info\nc_info{version=\"1\"} 1\n# EOF\n");
    buf_done(&b);
}

T_TEST(metrics_histogram)
{
    struct buf b;
    struct latency l = { 0 };
    buf_init(&b, 8192);
    struct metrics m = { &b, true };
    latency_add(&l, 20000, 2);
    latency_add(&l, UINT64_C(60000000000), 1);
    metric_histogram_head(&m, "a_seconds", "A histogram.");
    metric_histogram(&m, "a_seconds", "kind", "x", &l);
    metric_histogram(&m, "a_seconds", NULL, NULL, &l);
    buf_add(&b, "", 1);
    T_OK(strstr(b.p, "# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n"
                     "a_seconds_bucket{kind=\"x\",le=\"1.6e-05\"} 0\n"
                     "a_seconds_bucket{kind=\"x\",le=\"3.2e-05\"} 2\n"),
         "%s", b.p);
    T_OK(strstr(b.p, "a_seconds_bucket{kind=\"x\",le=\"16.777216\"} 2\n"
                     "a_seconds_bucket{kind=\"x\",le=\"+Inf\"} 3\n"
                     "a_seconds_sum{kind=\"x\"} 60.00004\na_seconds_count{kind=\"x\"} 3\n"
                     "a_seconds_bucket{le=\"1.6e-05\"} 0\n"),
         "%s", b.p);
    T_OK(strstr(b.p, "\na_seconds_sum 60.00004\na_seconds_count 3\n"), "%s", b.p);
    buf_done(&b);
}
