/* Metrics as text: Prometheus' own format and OpenMetrics, and the metrics that every process has.
 */
#include "daemon/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool ends_with(const char *name, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len > n && memcmp(name + len - n, end, n) == 0;
}

/* OpenMetrics names a family without the suffix of its samples, and its unit on a line. */
void metric_head(struct metrics *m, const char *name, const char *help)
{
    static const char *const units[] = { "seconds", "bytes" };
    size_t len = strlen(name);
    bool total = ends_with(name, len, "_total"), info = m->open && ends_with(name, len, "_info");
    if (m->open)
        len -= total ? 6 : info ? 5 : 0;
    buf_addf(m->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)len, name, help, (int)len, name,
             total  ? "counter"
             : info ? "info"
                    : "gauge");
    for (size_t i = 0; m->open && i < sizeof units / sizeof units[0]; i++)
        if (ends_with(name, len, units[i]))
            buf_addf(m->out, "# UNIT %.*s %s\n", (int)len, name, units[i]);
}

void metric(struct metrics *m, const char *name, const char *help, double value)
{
    metric_head(m, name, help);
    buf_addf(m->out, "%s %.15g\n", name, value);
}

void metric_value(struct metrics *m, const char *name, const char *label, const char *is,
                  uint64_t value)
{
    buf_addf(m->out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, is, value);
}

void metric_sample(struct metrics *m, const char *name, const char *labels, double value)
{
    buf_addf(m->out, "%s{%s} %.15g\n", name, labels, value);
}

void metric_histogram_head(struct metrics *m, const char *name, const char *help)
{
    buf_addf(m->out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    if (m->open)
        buf_addf(m->out, "# UNIT %s seconds\n", name);
}

void metric_histogram(struct metrics *m, const char *name, const char *label, const char *is,
                      const struct latency *l)
{
    char labels[128] = "";
    uint64_t n = 0;
    if (label)
        snprintf(labels, sizeof labels, "%s=\"%s\"", label, is);
    for (size_t i = 0; i <= LATENCY_BOUNDS; i++) {
        n += l->bucket[i];
        buf_addf(m->out, "%s_bucket{%s%sle=\"", name, labels, label ? "," : "");
        if (i < LATENCY_BOUNDS)
            buf_addf(m->out, "%.9g", (double)latency_bound_us(i) / 1e6);
        else
            buf_add_str(m->out, "+Inf");
        buf_addf(m->out, "\"} %" PRIu64 "\n", n);
    }
    const char *open = label ? "{" : "", *close = label ? "}" : "";
    buf_addf(m->out, "%s_sum%s%s%s %.15g\n%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close,
             (double)l->sum_ns / 1e9, name, open, labels, close, n);
}

void metrics_process(struct metrics *m, uint64_t started_ms)
{
    struct timespec cpu;
    long pages = 0, resident = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%ld %ld", &pages, &resident) != 2)
            resident = 0;
        fclose(f);
    }
    metric(m, "process_start_time_seconds", "Unix time of the start.", (double)started_ms / 1000);
    metric(m, "process_cpu_seconds_total", "CPU time used.",
           (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    metric(m, "process_resident_memory_bytes", "Memory in use.",
           (double)resident * (double)sysconf(_SC_PAGESIZE));
}

void metrics_end(struct metrics *m)
{
    if (m->open)
        buf_add_str(m->out, "# EOF\n");
}
