/* Reads the answers of a server for firn top. */
#include "cli/watch/top_node.h"
#include "wire/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 2026-11-16T04:03:51.852Z, or 0. */
static uint64_t unix_us(const char *text)
{
    struct tm t = { 0 };
    unsigned ms = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3uZ", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
               &t.tm_min, &t.tm_sec, &ms) < 6)
        return 0;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    return (uint64_t)timegm(&t) * 1000000 + ms * 1000;
}

struct reading {
    struct top_sample *out;
    unsigned found;
};

static void take(void *user, const char *path, const char *value, bool quoted)
{
    struct reading *r = user;
    struct top_sample *s = r->out;
    const struct {
        const char *path;
        char *text;
        size_t size;
    } texts[] = {
        { "name", s->name, sizeof s->name },
        { "version", s->version, sizeof s->version },
        { "state", s->state, sizeof s->state },
        { "reason", s->reason, sizeof s->reason },
        { "clock.state", s->clock, sizeof s->clock },
        { "layout", s->face.layout, sizeof s->face.layout },
        { "store.id", s->face.store, sizeof s->face.store },
        { "start", s->face.start, sizeof s->face.start },
    };
    const struct {
        const char *path;
        uint64_t *number;
    } numbers[] = {
        { "uptime_s", &s->uptime_s },
        { "connections", &s->connections },
        { "store.errors", &s->store_errors },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (quoted && strcmp(path, texts[i].path) == 0) {
            snprintf(texts[i].text, texts[i].size, "%s", value);
            r->found++;
        }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!quoted && strcmp(path, numbers[i].path) == 0)
            *numbers[i].number = strtoull(value, NULL, 10);
    if (strcmp(path, "ready") == 0)
        s->ready = strcmp(value, "true") == 0;
    else if (strcmp(path, "slot") == 0)
        s->slot = strcmp(value, "null") == 0 ? -1 : strtoll(value, NULL, 10);
    else if (strcmp(path, "clock.behind_ms") == 0)
        s->behind_ms = strtoll(value, NULL, 10);
    else if (strcmp(path, "clock.now") == 0)
        s->unix_us = unix_us(value);
}

int top_read_node(const char *p, size_t len, struct top_sample *out)
{
    struct reading r = { .out = out };
    out->slot = -1;
    if (json_each(p, len, take, &r) != 0 || r.found < 3)
        return FIRN_EFORMAT;
    out->face.slot = out->slot;
    out->face.ready = out->ready;
    return 0;
}

void top_find_clashes(struct top_node *node, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        node[i].clash = false;
        for (size_t k = 0; k < n && node[i].up; k++)
            node[i].clash |= k != i && node[k].up &&
                             faces_clash(&node[i].last.face, &node[k].last.face);
    }
}

/* Values that no counter reaches, and text that is no number, become 0 so that the arithmetic
 * stays defined. */
static double sane(double value)
{
    const double most = 1e15;
    if (!(value >= -most)) /* false for NaN, too */
        return 0;
    return value > most ? most : value;
}

int top_read_metrics(const char *p, size_t len, struct top_sample *out)
{
    const struct {
        const char *name; /* up to its labels or its value */
        const char *labels;
        double *sum;
    } wanted[] = {
        { "firn_ids_total", NULL, &out->ids },
        { "firn_ids_total", "{kind=\"ticket\"}", &out->tickets },
        { "firn_ids_total", "{kind=\"dated\"}", &out->tickets },
        { "firn_requests_total", NULL, &out->requests },
        { "firn_window_seconds", NULL, &out->window_s },
        { "process_cpu_seconds_total", NULL, &out->cpu_s },
        { "process_resident_memory_bytes", NULL, &out->memory_bytes },
    };
    unsigned found = 0;
    for (const char *end = p + len; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        char line[256];
        size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
        if (n < sizeof line && n > 0 && *p != '#') {
            memcpy(line, p, n);
            line[n] = '\0';
            size_t name = strcspn(line, "{ "), labels = 0;
            const char *close = line[name] == '{' ? strrchr(line, '}') : NULL;
            if (close)
                labels = (size_t)(close + 1 - line) - name;
            for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
                if (strlen(wanted[i].name) != name || memcmp(line, wanted[i].name, name) != 0)
                    continue;
                if (wanted[i].labels && (strlen(wanted[i].labels) != labels ||
                                         memcmp(line + name, wanted[i].labels, labels) != 0))
                    continue;
                *wanted[i].sum = sane(*wanted[i].sum + strtod(line + name + labels, NULL));
                found++;
            }
        }
        p += n + 1;
    }
    return found > 0 ? 0 : FIRN_EFORMAT;
}

void top_node_update(struct top_node *n, const struct top_sample *now)
{
    const struct top_sample *b = &n->last;
    double seconds = (double)(now->at_ns - b->at_ns) / 1e9;
    /* A counter that fell belongs to a restarted process. */
    n->has_rates = n->up && b->at_ns && seconds > 0 && now->ids >= b->ids &&
                   now->requests >= b->requests && now->cpu_s >= b->cpu_s;
    if (n->has_rates) {
        n->ids_per_s = (now->ids - b->ids) / seconds;
        n->tickets_per_s = (now->tickets - b->tickets) / seconds;
        n->requests_per_s = (now->requests - b->requests) / seconds;
        n->cpu_percent = (now->cpu_s - b->cpu_s) / seconds * 100;
    }
    n->last = *now;
    n->up = true;
}
