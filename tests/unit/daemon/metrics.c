/* The Prometheus text format. */
#include "t.h"

#include "daemon/metrics.h"

T_TEST(metrics_text)
{
    struct buf b;
    buf_init(&b, 4096);
    metric(&b, "a", "One value.", 1.5);
    metric_head(&b, "b_total", "By kind.");
    metric_value(&b, "b_total", "kind", "x", UINT64_MAX);
    buf_add(&b, "", 1);
    T_STR(b.p, "# HELP a One value.\n# TYPE a gauge\na 1.5\n"
               "# HELP b_total By kind.\n# TYPE b_total counter\n"
               "b_total{kind=\"x\"} 18446744073709551615\n");
    b.len = 0;
    metrics_process(&b, 1500);
    buf_add(&b, "", 1);
    T_OK(strstr(b.p, "\nprocess_start_time_seconds 1.5\n"), "%s", b.p);
    T_OK(strstr(b.p, "\nprocess_cpu_seconds_total "), "%s", b.p);
    T_OK(strstr(b.p, "\nprocess_resident_memory_bytes "), "%s", b.p);
    T_OK(!strstr(b.p, "\nprocess_resident_memory_bytes 0\n"), "%s", b.p);
    buf_done(&b);
}
