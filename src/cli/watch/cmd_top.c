/*
 * firn top: a live view of servers. Each server has a thread that polls it and stores the result,
 * so that a server that hangs does not delay the others. The main thread draws, reads the keyboard
 * and ends the threads.
 */
#include "cli/commands.h"
#include "cli/http_client.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/term.h"
#include "cli/tls_option.h"
#include "cli/watch/top_frame.h"
#include "cli/when.h"
#include "platform/mono.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { NODES_MAX = 64, EVERY_MS = 1000, ANSWER_MS = 2000, FIRST_MS = 150 };

struct watched {
    pthread_t thread;
    bool started;
    char node_url[320], metrics_url[320];
    struct http_client node, metrics;
    struct top *top;
    struct top_node shown; /* under the mutex */
    uint64_t looks;        /* under the mutex */
};

struct top {
    struct tls_option tls;
    uint64_t every_ms;
    bool once, json;

    struct watched *watched;
    size_t n;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop; /* under the mutex */
    double history[TOP_HISTORY];
    size_t history_n;
};

static const struct opt opts[] = {
    { .name = "every",
      .type = OPT_TIME,
      .at = offsetof(struct top, every_ms),
      .value = "TIME",
      .min = 50,
      .max = 3600000,
      .about = "how often to ask (default 1s)" },
    { .name = "once",
      .at = offsetof(struct top, once),
      .about = "poll twice, for the rates, print the result once and end" },
    OPT_TLS(struct top, tls),
    OPT_JSON(struct top, json),
    { .name = NULL },
};

const struct usage top_usage = {
    .name = "top",
    .examples = "  firn top                                          the firnd of this machine\n"
                "  firn top http://10.0.0.1:9000 http://10.0.0.2:9000\n"
                "  firn top --once http://127.0.0.1:9000             once, for pipes\n",
    .synopsis = "firn top [URL...] [--every TIME] [--once] [--json]\n"
                "                [--ca FILE] [--cert FILE --key FILE]",
    .about =
        "Shows a live view of servers: IDs, tickets and requests per second, slots, how long\n"
        "their windows last without the store, their clocks compared with this machine's, and\n"
        "their response times. A server that is down stays in the list, with the reason. CLASH:\n"
        "two servers use one slot, and give out the same IDs (firn doctor says what to do).\n"
        "Without a URL it asks $FIRN_URL, or http://127.0.0.1:9000. q quits.\n",
    .opts = opts,
};

/* ---- polling ---- */

/* A name that has no address now may have one later. */
static int clients_open(struct watched *w, char *why, size_t size)
{
    struct http_client *const c[] = { &w->node, &w->metrics };
    for (size_t i = 0; i < 2; i++) {
        if (c[i]->buf)
            continue;
        int r = http_client_init_tls(c[i], i == 0 ? w->node_url : w->metrics_url,
                                     w->top->tls.context);
        c[i]->timeout_ms = ANSWER_MS;
        if (r != 0) {
            snprintf(why, size, "%.190s", c[i]->why);
            return r;
        }
    }
    w->metrics.accept = "text/plain";
    return 0;
}

static void look(struct watched *w)
{
    struct top_sample s = { 0 };
    const char *body;
    size_t len;
    char why[200] = "";
    uint64_t ask_ns = 0, before_us = (uint64_t)when_now_us();
    int64_t skew_us = 0;
    int r = clients_open(w, why, sizeof why);
    if (r == 0 && (r = http_client_get_once(&w->node, &body, &len)) != 0)
        snprintf(why, sizeof why, "%.190s", w->node.why);
    if (r == 0) {
        uint64_t after_us = (uint64_t)when_now_us();
        ask_ns = w->node.answer_ns;
        if (top_read_node(body, len, &s) != 0) {
            r = FIRN_EFORMAT;
            snprintf(why, sizeof why, "this is not a firnd: unexpected answer to /v1/node");
        }
        skew_us = (int64_t)s.unix_us - (int64_t)(before_us + (after_us - before_us) / 2);
    }
    if (r == 0 && (r = http_client_get_once(&w->metrics, &body, &len)) != 0)
        snprintf(why, sizeof why, "/metrics: %.180s", w->metrics.why);
    if (r == 0 && (r = top_read_metrics(body, len, &s)) != 0)
        snprintf(why, sizeof why, "/metrics has no metrics of firnd");
    s.at_ns = mono_ns();
    pthread_mutex_lock(&w->top->mutex);
    struct top_node *n = &w->shown;
    n->asked = true;
    if (r == 0) {
        n->ask_ns = ask_ns;
        n->skew_us = skew_us;
        top_node_update(n, &s);
    } else {
        n->up = n->has_rates = false;
        snprintf(n->why, sizeof n->why, "%s", why);
    }
    w->looks++;
    pthread_cond_broadcast(&w->top->changed);
    pthread_mutex_unlock(&w->top->mutex);
}

/* Wait until the next poll. False: it is time to end. */
static bool rest(struct top *t, uint64_t ms)
{
    struct timespec at = mono_timespec(mono_ns() + ms * 1000000);
    pthread_mutex_lock(&t->mutex);
    int r = 0;
    while (!t->stop && r != ETIMEDOUT) /* polls of other threads wake it, too */
        r = pthread_cond_timedwait(&t->changed, &t->mutex, &at);
    bool on = !t->stop;
    pthread_mutex_unlock(&t->mutex);
    return on;
}

static void *watch(void *user)
{
    struct watched *w = user;
    uint64_t wait_ms = w->top->every_ms < FIRST_MS ? w->top->every_ms : FIRST_MS;
    do {
        look(w);
        uint64_t ms = wait_ms;
        wait_ms = w->top->once ? wait_ms : w->top->every_ms; /* the first rates come soon */
        if (!rest(w->top, ms))
            break;
    } while (true);
    return NULL;
}

static int watched_open(struct watched *w, struct top *t, const char *text)
{
    char shown[SAY_TEXT_BUF];
    struct url url;
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '/')
        len--;
    say_text(text, strlen(text), shown);
    w->top = t;
    if (len >= sizeof w->shown.url)
        return say_trouble("%s: the address is too long", shown);
    memcpy(w->shown.url, text, len);
    snprintf(w->node_url, sizeof w->node_url, "%s/v1/node", w->shown.url);
    snprintf(w->metrics_url, sizeof w->metrics_url, "%s/metrics", w->shown.url);
    const char *wrong = url_parse(w->node_url, &url);
    return wrong ? say_trouble("%s: %s", shown, wrong) : tls_option_open(&t->tls, w->node_url);
}

/* ---- drawing ---- */

static size_t copy_nodes(struct top *t, struct top_node *out)
{
    pthread_mutex_lock(&t->mutex);
    for (size_t i = 0; i < t->n; i++)
        out[i] = t->watched[i].shown;
    pthread_mutex_unlock(&t->mutex);
    top_find_clashes(out, t->n);
    return t->n;
}

static void remember(struct top *t, const struct top_node *node)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++)
        if (node[i].up && node[i].has_rates)
            sum += node[i].ids_per_s;
    if (t->history_n == TOP_HISTORY)
        memmove(t->history, t->history + 1, (TOP_HISTORY - 1) * sizeof *t->history);
    else
        t->history_n++;
    t->history[t->history_n - 1] = sum;
}

static void put_json(const struct top_node *node, size_t n)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_begin(&j, "nodes", '[');
    for (size_t i = 0; i < n; i++) {
        const struct top_node *x = &node[i];
        json_begin(&j, NULL, '{');
        json_text(&j, "url", x->url);
        json_bool(&j, "up", x->up);
        if (x->up) {
            json_text(&j, "name", x->last.name);
            json_text(&j, "version", x->last.version);
            json_bool(&j, "ready", x->last.ready);
            json_text(&j, "reason", x->last.reason);
            json_text(&j, "state", x->last.state);
            json_signed(&j, "slot", x->last.slot);
            json_bool(&j, "slot_clash", x->clash);
            json_text(&j, "clock", x->last.clock);
            json_signed(&j, "clock_skew_us", x->skew_us);
            json_signed(&j, "window_ms", (int64_t)(x->last.window_s * 1000));
            json_count(&j, "ask_ns", x->ask_ns);
            json_count(&j, "connections", x->last.connections);
            json_count(&j, "uptime_s", x->last.uptime_s);
            json_count(&j, "store_errors", x->last.store_errors);
            json_signed(&j, "memory_bytes", (int64_t)x->last.memory_bytes);
            if (x->has_rates) {
                json_signed(&j, "ids_per_second", (int64_t)(x->ids_per_s + 0.5));
                json_signed(&j, "tickets_per_second", (int64_t)(x->tickets_per_s + 0.5));
                json_signed(&j, "requests_per_second", (int64_t)(x->requests_per_s + 0.5));
                json_signed(&j, "cpu_percent", (int64_t)(x->cpu_percent + 0.5));
            }
        } else {
            json_text(&j, "why", x->why);
        }
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_end(&j, '}');
    output_json(&j, stdout);
}

static const char *clock_text(char out[16])
{
    time_t now = time(NULL);
    struct tm t;
    localtime_r(&now, &t);
    strftime(out, 16, "%H:%M:%S", &t);
    return out;
}

/* ---- on a terminal ---- */

static volatile sig_atomic_t ended, resized;

static void on_end(int signal_)
{
    (void)signal_;
    ended = 1;
}

static void on_resize(int signal_)
{
    (void)signal_;
    resized = 1;
}

static void draw(struct top *t, struct top_node *node)
{
    struct winsize size = { 0 };
    char when[16], *text = NULL;
    size_t len = 0;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    struct top_view v = {
        .node = node,
        .nodes = copy_nodes(t, node),
        .width = size.ws_col ? size.ws_col : 80,
        .height = size.ws_row ? size.ws_row : 24,
        .colour = term_colour(),
        .history = t->history,
        .history_n = t->history_n,
        .when = clock_text(when),
        .keys = true,
    };
    FILE *f = open_memstream(&text, &len);
    if (!f)
        return;
    fputs("\033[H", f); /* over the last frame, so that nothing flickers */
    top_frame(&v, f);
    fclose(f);
    for (const char *p = text, *nl; p < text + len;
         p = nl + 1) { /* clear what is right of a line */
        nl = memchr(p, '\n', len - (size_t)(p - text));
        if (!nl) {
            fwrite(p, 1, len - (size_t)(p - text), stdout);
            break;
        }
        fwrite(p, 1, (size_t)(nl - p), stdout);
        fputs("\033[K\r\n", stdout);
    }
    fputs("\033[K\033[J", stdout);
    fflush(stdout);
    free(text);
}

static void live(struct top *t, struct top_node *node)
{
    struct termios before, raw;
    bool tty = tcgetattr(STDIN_FILENO, &before) == 0;
    struct sigaction end = { .sa_handler = on_end }, size = { .sa_handler = on_resize };
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGWINCH, &size, NULL);
    if (tty) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, no cursor */
    uint64_t next = 0;
    while (!ended && !output_gone()) {
        uint64_t now = mono_ns();
        if (now >= next) {
            copy_nodes(t, node);
            remember(t, node);
            next = now + t->every_ms * 1000000;
        }
        draw(t, node);
        resized = 0;
        uint64_t wait = next > now ? (next - now) / 1000000 + 1 : 1;
        /* The first rates arrive before the first second is over. */
        if (t->history_n < 3 && wait > FIRST_MS)
            wait = FIRST_MS;
        struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
        if (poll(&p, tty ? 1 : 0, (int)wait) <= 0 || resized)
            continue;
        char key = 0;
        if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
            break;
    }
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (tty)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* ---- without a terminal ---- */

/* Wait until every server has been polled `looks` times. */
static void wait_looks(struct top *t, uint64_t looks)
{
    pthread_mutex_lock(&t->mutex);
    for (size_t i = 0; i < t->n; i++)
        while (t->watched[i].looks < looks)
            pthread_cond_wait(&t->changed, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}

static void print_one(struct top *t, struct top_node *node)
{
    char when[16];
    size_t n = copy_nodes(t, node);
    if (t->json) {
        put_json(node, n);
        return;
    }
    struct top_view v = { .node = node,
                          .nodes = n,
                          .width = term_width(),
                          .colour = term_colour(),
                          .when = clock_text(when) };
    top_frame(&v, stdout);
}

static int run(struct top *t)
{
    struct top_node *node = calloc(t->n, sizeof *node);
    int status = STATUS_OK;
    if (!node)
        return say_trouble("out of memory");
    for (size_t i = 0; i < t->n; i++) {
        t->watched[i].started = pthread_create(&t->watched[i].thread, NULL, watch,
                                               &t->watched[i]) == 0;
        if (!t->watched[i].started) {
            status = say_trouble("a thread for each server cannot be started: %s", strerror(errno));
            break;
        }
    }
    if (status == STATUS_OK && !t->once && !t->json && isatty(STDOUT_FILENO) == 1) {
        live(t, node);
    } else if (status == STATUS_OK) {
        for (uint64_t looks = 2; looks == 2 || !t->once; looks++) {
            wait_looks(t, looks);
            if (looks > 2 && !t->json)
                putchar('\n');
            print_one(t, node);
            if (output_gone())
                break;
        }
    }
    copy_nodes(t, node);
    for (size_t i = 0; i < t->n && t->once && status == STATUS_OK; i++)
        if (!node[i].up || node[i].clash)
            status = STATUS_FAILED;
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    for (size_t i = 0; i < t->n; i++)
        if (t->watched[i].started)
            pthread_join(t->watched[i].thread, NULL);
    free(node);
    return output_finish(status);
}

int cmd_top(int argc, char **argv)
{
    struct top t = { .every_ms = EVERY_MS };
    int operands, r = options_parse(&top_usage, argc, argv, &t, &operands);
    if (r >= 0)
        return r;
    t.n = operands > 0 ? (size_t)operands : 1;
    if (t.n > NODES_MAX)
        return say_trouble("too many servers: at most %d", NODES_MAX);
    t.watched = calloc(t.n, sizeof *t.watched);
    if (!t.watched)
        return say_trouble("out of memory");
    pthread_mutex_init(&t.mutex, NULL);
    mono_cond_init(&t.changed);
    for (size_t i = 0; i < t.n && r < 0; i++)
        r = watched_open(&t.watched[i], &t, operands > 0 ? argv[1 + i] : default_url());
    if (r < 0)
        r = run(&t);
    for (size_t i = 0; i < t.n; i++) {
        http_client_done(&t.watched[i].node);
        http_client_done(&t.watched[i].metrics);
    }
    tls_option_done(&t.tls);
    pthread_cond_destroy(&t.changed);
    pthread_mutex_destroy(&t.mutex);
    free(t.watched);
    return r;
}
