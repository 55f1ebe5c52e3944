/* The progress line. */
#include "cli/progress.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

enum { QUIET_NS = 300000000, REDRAW_NS = 100000000, BAR_CELLS = 32 };

void progress_init(struct progress *p)
{
    *p = (struct progress){ .on = isatty(STDERR_FILENO) == 1, .what = "" };
    if (p->on)
        p->next_ns = mono_ns() + QUIET_NS;
}

void progress_phase(struct progress *p, const char *what, uint64_t total)
{
    p->what = what;
    p->total = total;
    if (p->on)
        p->phase_ns = mono_ns();
}

/* As 12.3M: three digits are enough to show movement. */
static void human(char *out, size_t size, double n)
{
    static const char unit[] = { ' ', 'k', 'M', 'G', 'T' };
    size_t u = 0;
    for (; n >= 1000 && u + 1 < sizeof unit; u++)
        n /= 1000;
    if (u == 0)
        snprintf(out, size, "%.0f", n);
    else
        snprintf(out, size, "%.*f%c", n < 10 ? 2 : n < 100 ? 1 : 0, n, unit[u]);
}

static void draw(struct progress *p, uint64_t done, uint64_t count, uint64_t now_ns)
{
    char items[16], rate[16], bar[BAR_CELLS + 1];
    double seconds = (double)(now_ns - p->phase_ns) / (double)NS_PER_S;
    human(items, sizeof items, (double)count);
    human(rate, sizeof rate, seconds > 0 ? (double)count / seconds : 0);
    if (p->total == 0) {
        fprintf(stderr, "\r\033[K%s %s  %s/s", p->what, items, rate);
    } else {
        /* A file may grow while it is read: the bar stops at 100 %. */
        double part = done < p->total ? (double)done / (double)p->total : 1;
        int cells = (int)(part * BAR_CELLS);
        memset(bar, '.', BAR_CELLS);
        memset(bar, '#', (size_t)cells);
        bar[BAR_CELLS] = '\0';
        fprintf(stderr, "\r\033[K%s [%s] %3d%%  %s  %s/s", p->what, bar, (int)(part * 100), items,
                rate);
    }
    fflush(stderr);
    p->drawn = true;
}

void progress_step(struct progress *p, uint64_t done, uint64_t count)
{
    if (!p->on)
        return;
    uint64_t now_ns = mono_ns();
    if (now_ns < p->next_ns)
        return;
    draw(p, done, count, now_ns);
    p->next_ns = now_ns + REDRAW_NS;
}

void progress_clear(struct progress *p)
{
    if (!p->drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->drawn = false;
}
