/* The Prometheus text format, and the metrics that every process has. */
#include "daemon/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void metric_head(struct buf *out, const char *name, const char *help)
{
    size_t len = strlen(name);
    bool total = len > 6 && memcmp(name + len - 6, "_total", 6) == 0;
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, total ? "counter" : "gauge");
}

void metric(struct buf *out, const char *name, const char *help, double value)
{
    metric_head(out, name, help);
    buf_addf(out, "%s %.15g\n", name, value);
}

void metric_value(struct buf *out, const char *name, const char *label, const char *is,
                  uint64_t value)
{
    buf_addf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, is, value);
}

void metrics_process(struct buf *out, uint64_t started_ms)
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
    metric(out, "process_start_time_seconds", "Unix time of the start.", (double)started_ms / 1000);
    metric(out, "process_cpu_seconds_total", "CPU time used.",
           (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    metric(out, "process_resident_memory_bytes", "Memory in use.",
           (double)resident * (double)sysconf(_SC_PAGESIZE));
}
