/* Draws one frame of firn top: cells, columns that fit, the history. */
#include "cli/watch/top_frame.h"
#include "cli/duration.h"

#include <inttypes.h>
#include <string.h>

enum { CELL = 64, GAP = 2 };

#define PLAIN "\033[0m"
#define BOLD  "\033[1m"
#define GOOD  "\033[32m"
#define BAD   "\033[31m"
#define WARN  "\033[33m"

static const char *sgr(const struct top_view *v, const char *code)
{
    return v->colour ? code : "";
}

/* ---- cells ---- */

static void cell_name(const struct top_node *n, char *out)
{
    snprintf(out, CELL, "%.40s", n->last.name[0] ? n->last.name : "-");
}

static void cell_address(const struct top_node *n, char *out)
{
    const char *p = strstr(n->url, "://");
    snprintf(out, CELL, "%.40s", p ? p + 3 : n->url);
}

static void cell_state(const struct top_node *n, char *out)
{
    if (!n->asked)
        snprintf(out, CELL, "asking");
    else if (!n->up)
        snprintf(out, CELL, "DOWN");
    else if (n->clash)
        snprintf(out, CELL, "CLASH");
    else
        snprintf(out, CELL, "%s", n->last.ready ? "ready" : "not ready");
}

static void rate(const struct top_node *n, double value, char *out)
{
    char text[GROUPED_BUF];
    if (n->has_rates)
        snprintf(out, CELL, "%s", grouped_text((uint64_t)(value + 0.5), text));
    else
        snprintf(out, CELL, "-");
}

static void cell_ids(const struct top_node *n, char *out)
{
    rate(n, n->ids_per_s, out);
}

static void cell_tickets(const struct top_node *n, char *out)
{
    rate(n, n->tickets_per_s, out);
}

static void cell_requests(const struct top_node *n, char *out)
{
    rate(n, n->requests_per_s, out);
}

static void cell_slot(const struct top_node *n, char *out)
{
    if (n->last.slot < 0)
        snprintf(out, CELL, "-");
    else
        snprintf(out, CELL, "%" PRId64, n->last.slot);
}

static void cell_window(const struct top_node *n, char *out)
{
    snprintf(out, CELL, "%.1f s", n->last.window_s);
}

static void cell_clock(const struct top_node *n, char *out)
{
    int64_t ms = n->skew_us / 1000;
    if (n->last.unix_us == 0)
        snprintf(out, CELL, "%s", n->last.clock);
    else
        snprintf(out, CELL, "%s %+" PRId64 " ms", n->last.clock, ms);
}

static void cell_ask(const struct top_node *n, char *out)
{
    char text[DURATION_BUF];
    snprintf(out, CELL, "%s", duration_text(n->ask_ns, text));
}

static void cell_connections(const struct top_node *n, char *out)
{
    char text[GROUPED_BUF];
    snprintf(out, CELL, "%s", grouped_text(n->last.connections, text));
}

static void cell_cpu(const struct top_node *n, char *out)
{
    if (n->has_rates)
        snprintf(out, CELL, "%.0f%%", n->cpu_percent);
    else
        snprintf(out, CELL, "-");
}

static void cell_memory(const struct top_node *n, char *out)
{
    snprintf(out, CELL, "%.0f MB", n->last.memory_bytes / 1e6);
}

static void cell_uptime(const struct top_node *n, char *out)
{
    uint64_t s = n->last.uptime_s;
    if (s < 120)
        snprintf(out, CELL, "%" PRIu64 " s", s);
    else if (s < 7200)
        snprintf(out, CELL, "%" PRIu64 " min", s / 60);
    else if (s < 172800)
        snprintf(out, CELL, "%" PRIu64 " h", s / 3600);
    else
        snprintf(out, CELL, "%" PRIu64 " d", s / 86400);
}

static void cell_version(const struct top_node *n, char *out)
{
    snprintf(out, CELL, "%s", n->last.version);
}

static const struct column {
    const char *name;
    bool right, always; /* shown for a server that is down, too */
    unsigned rank;      /* columns with the highest number are left out first */
    void (*cell)(const struct top_node *n, char *out);
} columns[] = {
    { "NODE", false, true, 0, cell_name },          { "ADDRESS", false, true, 6, cell_address },
    { "STATE", false, true, 1, cell_state },        { "IDS/S", true, false, 2, cell_ids },
    { "TICKETS/S", true, false, 7, cell_tickets },  { "REQ/S", true, false, 8, cell_requests },
    { "SLOT", true, false, 5, cell_slot },          { "WINDOW", true, false, 3, cell_window },
    { "CLOCK", false, false, 4, cell_clock },       { "ASK", true, false, 9, cell_ask },
    { "CONNS", true, false, 10, cell_connections }, { "CPU", true, false, 11, cell_cpu },
    { "MEMORY", true, false, 12, cell_memory },     { "UP", true, false, 13, cell_uptime },
    { "VERSION", false, false, 14, cell_version },
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* ---- layout ---- */

static size_t total_width(const size_t *width, const bool *shown)
{
    size_t sum = 0;
    for (size_t c = 0; c < COLUMNS; c++)
        if (shown[c])
            sum += width[c] + (sum ? GAP : 0);
    return sum;
}

static void lay_out(const struct top_view *v, size_t *width, bool *shown)
{
    char text[CELL];
    for (size_t c = 0; c < COLUMNS; c++) {
        shown[c] = true;
        width[c] = strlen(columns[c].name);
        for (size_t i = 0; i < v->nodes; i++) {
            if (!v->node[i].up && !columns[c].always)
                continue;
            columns[c].cell(&v->node[i], text);
            if (strlen(text) > width[c])
                width[c] = strlen(text);
        }
    }
    for (unsigned rank = COLUMNS; v->width && rank-- > 1 && total_width(width, shown) > v->width;)
        for (size_t c = 0; c < COLUMNS; c++)
            if (columns[c].rank == rank)
                shown[c] = false;
}

/* At most `room` columns of the text. */
static void put_cut(FILE *out, const char *text, size_t room)
{
    size_t len = strlen(text);
    fwrite(text, 1, len < room ? len : room, out);
}

static size_t left_of(const struct top_view *v, size_t used)
{
    return v->width == 0 ? SIZE_MAX : v->width > used ? v->width - used : 0;
}

static const char *colour_of(const struct top_node *n, const struct column *c)
{
    if (c->cell == cell_state)
        return !n->asked ? "" : n->up && n->last.ready && !n->clash ? GOOD : BAD;
    if (c->cell == cell_clock && n->up && strcmp(n->last.clock, "ok") != 0)
        return WARN;
    if (c->cell == cell_window && n->up && n->last.window_s < 1)
        return WARN;
    return "";
}

static void put_row(const struct top_view *v, const struct top_node *n, const size_t *width,
                    const bool *shown, FILE *out)
{
    const char *more = !n->asked        ? ""
                       : !n->up         ? n->why
                       : n->clash       ? "another server uses its slot: IDs come twice"
                       : !n->last.ready ? n->last.reason
                                        : "";
    char text[CELL];
    size_t used = 0, last = 0;
    for (size_t c = 0; c < COLUMNS; c++)
        if (shown[c] && (n->up || columns[c].always))
            last = c;
    for (size_t c = 0; c <= last; c++) {
        if (!shown[c] || (!n->up && !columns[c].always))
            continue;
        columns[c].cell(n, text);
        size_t len = strlen(text), pad = width[c] > len ? width[c] - len : 0;
        const char *colour = sgr(v, colour_of(n, &columns[c]));
        if (used)
            fprintf(out, "%*s", (int)GAP, "");
        used += used ? GAP : 0;
        if (columns[c].right)
            fprintf(out, "%*s", (int)pad, "");
        fputs(colour, out);
        put_cut(out, text, left_of(v, used));
        if (*colour)
            fputs(sgr(v, PLAIN), out);
        if (!columns[c].right && (c < last || *more))
            fprintf(out, "%*s", (int)(left_of(v, used + len) < pad ? 0 : pad), "");
        used += width[c];
    }
    if (*more && left_of(v, used + GAP) > 0) {
        fprintf(out, "%*s%s", (int)GAP, "", sgr(v, n->up ? WARN : BAD));
        put_cut(out, more, left_of(v, used + GAP));
        fputs(sgr(v, PLAIN), out);
    }
    putc('\n', out);
}

static void put_names(const struct top_view *v, const size_t *width, const bool *shown, FILE *out)
{
    size_t used = 0;
    fputs(sgr(v, BOLD), out);
    for (size_t c = 0; c < COLUMNS; c++) {
        if (!shown[c])
            continue;
        if (used)
            fprintf(out, "%*s", (int)GAP, "");
        used += used ? GAP : 0;
        if (left_of(v, used) >= width[c])
            fprintf(out, columns[c].right ? "%*s" : "%-*s", (int)width[c], columns[c].name);
        else
            put_cut(out, columns[c].name, left_of(v, used));
        used += width[c];
    }
    fprintf(out, "%s\n", sgr(v, PLAIN));
}

/* The history of the sum: one bar per poll, scaled to the highest. */
static void put_history(const struct top_view *v, size_t room, FILE *out)
{
    static const char *const bar[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    size_t n = v->history_n < room ? v->history_n : room;
    double highest = 0;
    for (size_t i = v->history_n - n; i < v->history_n; i++)
        if (v->history[i] > highest)
            highest = v->history[i];
    for (size_t i = v->history_n - n; i < v->history_n; i++)
        fputs(bar[highest > 0 ? (size_t)(v->history[i] / highest * 7 + 0.5) : 0], out);
}

static void put_head(const struct top_view *v, FILE *out)
{
    char text[200], count[GROUPED_BUF];
    size_t up = 0;
    double ids = 0;
    bool known = false;
    for (size_t i = 0; i < v->nodes; i++) {
        up += v->node[i].up;
        if (v->node[i].up && v->node[i].has_rates) {
            ids += v->node[i].ids_per_s;
            known = true;
        }
    }
    int n = snprintf(text, sizeof text, "firn top  %zu of %zu up  %s IDs/s  %s", up, v->nodes,
                     known ? grouped_text((uint64_t)(ids + 0.5), count) : "-", v->when);
    fputs(sgr(v, up == v->nodes ? BOLD : BAD), out);
    put_cut(out, text, left_of(v, 0));
    fputs(sgr(v, PLAIN), out);
    size_t room = left_of(v, (size_t)n + GAP);
    if (v->history_n > 1 && room >= 10) {
        fprintf(out, "%*s%s", (int)GAP, "", sgr(v, GOOD));
        put_history(v, room < TOP_HISTORY ? room : TOP_HISTORY, out);
        fputs(sgr(v, PLAIN), out);
    }
    putc('\n', out);
}

void top_frame(const struct top_view *v, FILE *out)
{
    size_t width[COLUMNS], lines = 0;
    bool shown[COLUMNS];
    lay_out(v, width, shown);
    put_head(v, out);
    putc('\n', out);
    put_names(v, width, shown, out);
    /* Three lines above, and one below for the keys or the rest. */
    size_t room = v->height == 0 ? v->nodes : v->height > 5 ? v->height - 5 : 1;
    for (; lines < v->nodes && lines < room; lines++)
        put_row(v, &v->node[lines], width, shown, out);
    if (lines < v->nodes)
        fprintf(out, "and %zu more: make the window higher\n", v->nodes - lines);
    else if (v->keys && (v->height == 0 || v->height > lines + 4))
        put_cut(out, "\nq quits", left_of(v, 0) == SIZE_MAX ? SIZE_MAX : left_of(v, 0) + 1);
}
