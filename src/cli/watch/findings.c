/* The findings of firn doctor (findings.h). Tests: tests/unit/cli/findings.c. */
#include "cli/watch/findings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 5, 6))) static void find(struct findings *out,
                                                       enum finding_level level, size_t node,
                                                       const char *about, const char *fmt, ...)
{
    if (out->n == FINDINGS_MAX)
        return;
    struct finding *f = &out->f[out->n++];
    *f = (struct finding){ .level = level, .node = node, .about = about };
    out->bad += level == FINDING_BAD;
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, args);
    va_end(args);
}

/* ---- one server ---- */

static void look_at_clock(const struct top_node *n, size_t i, struct findings *out)
{
    static const struct {
        const char *state;
        enum finding_level level;
        const char *text;
    } rows[] = {
        { "wait", FINDING_BAD, "is not plausible: set it; or accept_clock: true if it is right" },
        { "held", FINDING_NOTE,
          "was set back or stands, and is held: check its time service (chronyc tracking)" },
        { "suspect", FINDING_NOTE,
          "leapt ahead and is not followed: set it; or restart with accept_clock: true" },
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (strcmp(n->last.clock, rows[k].state) == 0)
            find(out, rows[k].level, i, "clock", "its clock %s", rows[k].text);
    int64_t ms = n->skew_us / 1000;
    if (n->last.unix_us && (ms > FINDING_SKEW_MS || ms < -FINDING_SKEW_MS))
        find(out, FINDING_NOTE, i, "clock",
             "its clock is %" PRId64 " ms %s this machine's: check the time service of both",
             ms < 0 ? -ms : ms, ms < 0 ? "behind" : "ahead of");
}

static void look_at_one(const struct top_node *n, size_t i, struct findings *out)
{
    if (!n->up) {
        find(out, FINDING_BAD, i, "server",
             "it does not answer (%.150s): start it, or correct the URL", n->why);
        return;
    }
    if (!n->last.ready)
        find(out, FINDING_BAD, i, "ready", "it is not ready: %s", n->last.reason);
    look_at_clock(n, i, out);
    if (n->last.store_errors > 0)
        find(out, FINDING_NOTE, i, "store",
             "%" PRIu64 " calls to the store failed since it was started: see its log",
             n->last.store_errors);
}

/* ---- several ---- */

static bool same_store(const struct top_node *a, const struct top_node *b)
{
    return strcmp(a->last.face.store, b->last.face.store) == 0;
}

static bool is_again(const struct top_node *a, const struct top_node *b)
{
    return a->last.face.start[0] && strcmp(a->last.face.start, b->last.face.start) == 0;
}

static void look_at_pair(const struct top_node *node, size_t i, size_t k, struct findings *out)
{
    const struct top_node *a = &node[i], *b = &node[k];
    if (!a->up || !b->up)
        return;
    if (is_again(a, b)) {
        find(out, FINDING_NOTE, k, "server", "it is the same process as %s: leave one URL out",
             a->url);
        return;
    }
    if (faces_clash(&a->last.face, &b->last.face) && same_store(a, b))
        find(
            out, FINDING_BAD, k, "slot",
            "it uses slot %" PRId64 " as %s does, with a copy of the same store: IDs come twice. "
            "Stop one of them; start it with an empty state directory, or give both one shared store",
            b->last.slot, a->url);
    else if (faces_clash(&a->last.face, &b->last.face))
        find(out, FINDING_BAD, k, "slot",
             "it uses slot %" PRId64 " as %s does, of another store: IDs come twice. Give both one "
             "shared store, or name each among the peers of the other: then one takes another slot",
             b->last.slot, a->url);
}

/* Against the first server that is up: one finding for each that differs, not for each pair. */
static void look_at_differences(const struct top_node *node, size_t n, struct findings *out)
{
    size_t first = 0;
    while (first < n && !node[first].up)
        first++;
    for (size_t i = first + 1; i < n; i++) {
        const struct top_sample *a = &node[first].last, *b = &node[i].last;
        if (!node[i].up || is_again(&node[first], &node[i]))
            continue;
        if (strcmp(a->face.layout, b->face.layout) != 0)
            find(
                out, FINDING_BAD, i, "layout",
                "its layout differs from that of %s: their IDs may collide and do not sort together; "
                "set the same layout on both, with a new store on one",
                node[first].url);
        if (strcmp(a->version, b->version) != 0)
            find(out, FINDING_NOTE, i, "version", "it is %s, %s is %s: update the older one",
                 b->version, node[first].url, a->version);
        if (a->face.store[0] && b->face.store[0] && !same_store(&node[first], &node[i]))
            find(
                out, FINDING_NOTE, i, "store",
                "its store is not that of %s: both give out the same ticket numbers, and only chance "
                "keeps their slots apart; give both one shared store",
                node[first].url);
    }
}

bool findings_clash(const struct top_node *node, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (node[i].up && node[k].up && faces_clash(&node[i].last.face, &node[k].last.face))
                return true;
    return false;
}

void findings_of(const struct top_node *node, size_t n, struct findings *out)
{
    out->n = out->bad = 0;
    for (size_t i = 0; i < n; i++)
        look_at_one(&node[i], i, out);
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            look_at_pair(node, i, k, out);
    look_at_differences(node, n, out);
}
