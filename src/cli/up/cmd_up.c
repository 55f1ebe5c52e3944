/*
 * firn up: a complete system on one machine, for trying out: a cluster of three firnds (each a
 * Snowflake generator and a ticket server), a load balancer in front, and a client that requests
 * IDs of both kinds in turn.
 *
 * site.h has the programs. firn supervises them: one that ends is started again a little later, and
 * all end with firn, however firn ends (child.h).
 */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/up/shop.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROUNDS_DEFAULT = 10,
    ROUNDS_MAX = 1000000,
    PORT_DEFAULT = 9000,
    PORT_MAX = 65535 - 10 * SITE_MEMBERS - 3,
    GRACE_MS = 15 * 1000,  /* to end: longer than firnd's own limits.drain_ms */
    RESTART_MS = 5 * 1000, /* time to observe the system without one */
};

static const struct opt opts[] = {
    { .name = "rounds",
      .letter = 'n',
      .type = OPT_COUNT,
      .at = offsetof(struct up, rounds),
      .value = "N",
      .max = ROUNDS_MAX,
      .about = "number of IDs of each kind that the client requests and shows (default 10)" },
    { .name = "once",
      .at = offsetof(struct up, once),
      .about = "stop all after the rounds, instead of serving until Ctrl-C" },
    { .name = "state",
      .type = OPT_TEXT,
      .at = offsetof(struct up, state),
      .value = "DIR",
      .words = "@files",
      .about = "where records and logs are kept (default: a temporary folder)" },
    { .name = "port",
      .type = OPT_NUMBER,
      .at = offsetof(struct up, port),
      .value = "PORT",
      .min = 1024,
      .max = PORT_MAX,
      .about = "the first of its ports, up to 33 above it are used (default 9000)" },
    { .name = "balancer",
      .type = OPT_TEXT,
      .at = offsetof(struct up, balancer),
      .value = "NAME",
      .words = "haproxy nginx none",
      .about = "haproxy, nginx or none (default: the first of them that is installed)" },
    { .name = "store",
      .type = OPT_TEXT,
      .at = offsetof(struct up, store),
      .value = "URL",
      .about = "a store that all three share (default: they form a cluster)" },
    { .name = NULL },
};

const struct usage up_usage = {
    .name = "up",
    .examples = "  firn up                       everything, until Ctrl-C\n"
                "  firn up --state var/cluster   keep the state for the next time\n"
                "  firn up --once --rounds 3     start, show three rounds, stop\n"
                "  firn up shop                  the gateway, with five services behind it\n",
    .synopsis =
        "firn up [shop] [--rounds N] [--once] [--state DIR] [--port PORT] [--balancer NAME]\n"
        "               [--store URL]",
    .about =
        "Starts a cluster of three servers, a load balancer in front of them and a client that\n"
        "requests Snowflake IDs and tickets in turn, all on this machine. A server\n"
        "that ends (kill one!) is started again after 5 s. Ctrl-C stops all.\n"
        "\n"
        "shop: instead of these five services, an ID server, Redis and two gateways in front of\n"
        "them, and commands that show each feature of the gateway.\n",
    .operands = "shop",
    .opts = opts,
};

/* ---- output ---- */

static void show(const struct site *s)
{
    static const char *const header[] = { "WHAT", "ADDRESS", ">PID", "LOG", NULL };
    struct table t;
    bool balanced = s->children > SITE_MEMBERS;
    size_t from = balanced ? 0 : 1; /* whose ports to try: the balancer's, or the first member's */
    table_init(&t, 0, header);
    for (size_t i = 0; i < SITE_MEMBERS; i++) {
        const struct child *c = &s->child[i];
        table_add(&t, "generator %zu (Snowflake IDs)", i + 1);
        table_add(&t, "http://%s", s->member[i].address[PORT_SNOWFLAKE]);
        table_add(&t, "%d", (int)c->pid);
        table_add(&t, "%s", c->log);
        table_add(&t, "  its ticket server");
        table_add(&t, "http://%s", s->member[i].address[PORT_TICKET]);
        table_add(&t, "%d", (int)c->pid);
        table_add(&t, "%s", "");
    }
    static const char *const what[] = { "page, API, metrics", "Snowflake IDs", "tickets",
                                        "Redis protocol" };
    for (enum port p = PORT_HOME; balanced && p <= (s->balancer.resp ? PORT_RESP : PORT_TICKET);
         p++) {
        table_add(&t, "%s%s", p == PORT_HOME ? s->balancer.name : "  ",
                  p == PORT_HOME ? " (page, API, metrics)" : what[p]);
        table_add(&t, "%s127.0.0.1:%u", p == PORT_RESP ? "" : "http://", site_port(s, 0, p));
        table_add(&t, "%d", (int)s->child[SITE_MEMBERS].pid);
        table_add(&t, "%s", p == PORT_HOME ? s->child[SITE_MEMBERS].log : "");
    }
    table_print(&t);
    table_done(&t);
    printf("\nTry\n    curl http://127.0.0.1:%u/generate\n", site_port(s, from, PORT_SNOWFLAKE));
    printf("    redis-cli -p %u INCR orders\n", balanced && s->balancer.resp
                                                    ? site_port(s, 0, PORT_RESP)
                                                    : site_port(s, 1, PORT_TICKET));
    printf("    kill -9 %d                     generator 1: the others keep serving, and it is "
           "restarted\n"
           "\n",
           (int)s->child[0].pid);
}

/* Request one ID of each kind. -1: done. */
static int ask_round(struct site *s)
{
    struct http_client *c[2] = { &s->snowflake, &s->ticket };
    for (size_t i = 0; i < 2; i++) {
        const char *body;
        size_t len;
        char shown[SAY_TEXT_BUF];
        if (http_client_get(c[i], &body, &len) != 0)
            return say_trouble("http://%s%s: %s (asked %u times)", c[i]->url.authority,
                               c[i]->url.target, c[i]->why, c[i]->retries + 1);
        if (id_body_one(body, len, s->id[i]) != 0)
            return say_trouble("http://%s: expected {\"id\":\"...\"}, got '%s'",
                               c[i]->url.authority, say_text(body, len, shown));
    }
    s->rounds++;
    return -1;
}

/* The lines of firn compare. IDs of several generators need not rise, so this is not checked. */
static int show_rounds(struct site *s)
{
    int r = -1;
    if (s->o->rounds == 0)
        return r;
    puts("Starting ID generation client...\nGenerating IDs from Snowflake and Ticket Server:");
    for (uint64_t i = 0; i < s->o->rounds && r < 0 && !site_stopped(s, 0); i++) {
        r = ask_round(s);
        if (r < 0)
            printf("Snowflake ID: %s, Ticket ID: %s\n", s->id[0], s->id[1]);
        if (output_gone())
            return output_finish(STATUS_OK);
    }
    if (r < 0 && !s->stop)
        puts("ID generation completed.");
    fflush(stdout);
    return r;
}

static int open_clients(struct site *s)
{
    char url[128];
    size_t from = s->children > SITE_MEMBERS ? 0 : 1;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/generate", site_port(s, from, PORT_SNOWFLAKE));
    if (http_client_init(&s->snowflake, url) != 0)
        return say_trouble("%s", s->snowflake.why);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/generate", site_port(s, from, PORT_TICKET));
    if (http_client_init(&s->ticket, url) != 0)
        return say_trouble("%s", s->ticket.why);
    return -1;
}

/* ---- until Ctrl-C ---- */

static void clear_line(void)
{
    if (term_width() > 0)
        fputs("\r\033[K", stdout);
    fflush(stdout);
}

/* Programs that are not ready come first: text that does not fit on the line is truncated. */
static void draw_line(const struct site *s, const bool ready[SITE_CHILDREN], bool answered)
{
    size_t width = term_width(), well = 0;
    char text[512];
    int n = 0;
    if (width == 0)
        return;
    for (size_t i = 0; i < s->children; i++) {
        well += ready[i];
        if (!ready[i])
            n += snprintf(text + n, sizeof text - (size_t)n, "%s %s  ", s->child[i].name,
                          s->child[i].pid ? "NOT READY" : "DOWN");
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "%zu of %zu ready  round %" PRIu64, well,
                  s->children, s->rounds);
    if (answered)
        n += snprintf(text + n, sizeof text - (size_t)n, "  Snowflake %s  ticket %s", s->id[0],
                      s->id[1]);
    else
        n += snprintf(text + n, sizeof text - (size_t)n, "  NO ANSWER");
    snprintf(text + n, sizeof text - (size_t)n, "  Ctrl-C stops");
    printf("\r\033[K%.*s", (int)width - 1, text);
    fflush(stdout);
}

/* Programs that ended are reported and, after a while, started again. */
static void look_after(struct site *s)
{
    char story[CHILD_TEXT_BUF];
    for (size_t i = 0; i < s->children; i++) {
        struct child *c = &s->child[i];
        if (child_ended(c)) {
            clear_line();
            say_warning("%s %s; it is started again in %d s", c->name, child_story(c, story),
                        RESTART_MS / 1000);
        } else if (c->pid == 0 && mono_ms() >= c->ended_ms + RESTART_MS) {
            c->ended_ms = mono_ms(); /* of this attempt, should it fail */
            if (i < SITE_MEMBERS)
                site_member_args(s, i);
            if ((i == SITE_MEMBERS || site_may_join(s, i)) && child_start(c) == 0) {
                clear_line();
                say_warning("%s runs again, pid %d", c->name, (int)c->pid);
            }
        }
    }
}

static void serve(struct site *s)
{
    bool ready[SITE_CHILDREN];
    s->snowflake.once = s->ticket.once = true; /* the next second is soon enough for a retry */
    while (!site_stopped(s, 1000)) {
        look_after(s);
        site_watch_slots(s);
        bool watched = term_width() > 0, answered = false;
        if (!watched)
            continue; /* no terminal shows the line: nothing is requested */
        const char *body;
        size_t len;
        answered = http_client_get(&s->snowflake, &body, &len) == 0 &&
                   id_body_one(body, len, s->id[0]) == 0 &&
                   http_client_get(&s->ticket, &body, &len) == 0 &&
                   id_body_one(body, len, s->id[1]) == 0;
        s->rounds += answered;
        for (size_t i = 0; i < s->children; i++)
            ready[i] = site_ready(s, i);
        draw_line(s, ready, answered);
    }
    clear_line();
}

static void stop_all(struct site *s, bool failed)
{
    http_client_done(&s->snowflake);
    http_client_done(&s->ticket);
    if (s->children > SITE_MEMBERS) /* so that no client is sent to servers that are ending */
        child_stop(&s->child[SITE_MEMBERS], 1, GRACE_MS);
    child_stop(s->child, SITE_MEMBERS, GRACE_MS);
    if (s->lock >= 0)
        close(s->lock);
    if (s->temporary && s->dir[0] && !failed)
        child_folder_remove(s->dir);
    else if (s->temporary && s->dir[0])
        say_warning("logs are kept in %s", s->dir);
}

int cmd_up(int argc, char **argv)
{
    struct up o = { .port = PORT_DEFAULT, .rounds = ROUNDS_DEFAULT };
    int operands, r = options_parse(&up_usage, argc, argv, &o, &operands);
    if (r >= 0)
        return r;
    if (operands == 1 && strcmp(argv[1], "shop") == 0)
        return o.balancer || o.store ? say_trouble("--balancer and --store are not for the shop")
                                     : shop_up(&o);
    if (operands > 0)
        return say_trouble("unexpected operand '%s': shop, or options only", argv[1]);
    struct site *s = calloc(1, sizeof *s);
    if (!s)
        return say_trouble("out of memory");
    s->o = &o;
    s->lock = -1;
    s->snowflake.fd = s->ticket.fd = -1;
    sigset_t set = site_stop_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    site_forget_settings();
    r = site_folder(s);
    if (r < 0)
        r = site_plan(s);
    if (r < 0)
        r = site_check_ports(s);
    bool planned = r < 0; /* from here on there are logs that may explain a failure */
    if (r < 0)
        r = site_start(s);
    if (r < 0)
        r = open_clients(s);
    if (r < 0) {
        show(s);
        r = show_rounds(s);
    }
    bool serving = r < 0;
    if (serving && !o.once)
        serve(s);
    stop_all(s, planned && r > 0);
    if (r <= 0)
        printf("All stopped%s%s.\n", s->temporary ? "" : "; the state stays in ",
               s->temporary ? "" : s->dir);
    free(s);
    return output_finish(r < 0 ? STATUS_OK : r);
}
