/*
 * firn up: the whole picture on one machine, to try and to take apart: three firnds that are each other's
 * store (each a Snowflake generator and a ticket server), a load balancer in front, and a client that takes
 * an ID of both kinds in turn.
 *
 * Member N listens on base + 10 N and the three ports behind it (page, Snowflake IDs, tickets, peers), the
 * balancer on base to base + 3 (page, Snowflake IDs, tickets, Redis protocol). firn looks after them: one
 * that ends is started again a little later, and all end with firn, however that ends (child.h).
 */
#include "cli/up/balancer.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/id_body.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "platform/mono.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMBERS = 3,
    CHILDREN = MEMBERS + 1,
    ROUNDS_DEFAULT = 10,
    ROUNDS_MAX = 1000000,
    PORT_DEFAULT = 9000,
    PORT_MAX = 65535 - 10 * MEMBERS - 3,
    PATH_BUF = 4096,
    ADDRESS_BUF = 32,
    ARGS_MAX = 28,
    STATUS_BUF = 4096,     /* some lines, one for each member */
    START_MS = 60 * 1000,  /* until all are ready; seconds, unless the machine is very busy */
    PROBE_MS = 1000,       /* for the answer of one that is asked how it is */
    GRACE_MS = 15 * 1000,  /* to end: longer than firnd's own limits.drain_ms */
    JOIN_MS = 30 * 1000,   /* for those who have data to have a leader, too */
    REMOVE_MS = 10 * 1000, /* for a member to be taken out of the cluster */
    RESTART_MS = 5 * 1000, /* time to see how it goes on without one */
};

enum port { PORT_HOME, PORT_SNOWFLAKE, PORT_TICKET, PORT_RESP, PORT_PEERS = PORT_RESP };

struct up {
    uint64_t port, rounds;
    const char *state, *balancer, *store;
    bool once;
};

struct member {
    char name[8], dir[PATH_BUF], address[4][ADDRESS_BUF];
    char join[MEMBERS * ADDRESS_BUF]; /* the peer ports of the others */
    bool known;                       /* it has been a member before, and knows its id */
    const char *argv[ARGS_MAX];
};

struct site {
    const struct up *o;
    char dir[PATH_BUF], firnd[PATH_BUF], log[CHILDREN][PATH_BUF + 16];
    bool temporary, stop;
    bool fresh; /* no member has data: the first one begins a cluster */
    int lock;
    struct member member[MEMBERS];
    struct balancer balancer;
    size_t children; /* MEMBERS, or one more with a balancer */
    struct child child[CHILDREN];
    struct http_client snowflake, ticket;
    char id[2][ID_BODY_TEXT_BUF]; /* of the last round */
    uint64_t rounds;
};

static const struct opt opts[] = {
    { .name = "rounds",
      .letter = 'n',
      .type = OPT_COUNT,
      .at = offsetof(struct up, rounds),
      .value = "N",
      .max = ROUNDS_MAX,
      .about = "IDs that the client takes of each kind and shows (default 10)" },
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
      .about = "a store that all three share (default: they are each other's)" },
    { .name = NULL },
};

const struct usage up_usage = {
    .name = "up",
    .examples = "  firn up                       all of it, until Ctrl-C\n"
                "  firn up --state var/cluster   and go on where it ended the next time\n"
                "  firn up --once --rounds 3     start, show three rounds, stop\n",
    .synopsis = "firn up [--rounds N] [--once] [--state DIR] [--port PORT] [--balancer NAME]\n"
                "               [--store URL]",
    .about =
        "Starts three servers that are each other's store, a load balancer in front of them and\n"
        "a client that takes Snowflake IDs and tickets in turn, all on this machine. A server\n"
        "that ends (kill one!) is started again after 5 s. Ctrl-C stops all.\n",
    .opts = opts,
};

/* ---- signals ---- */

/* Those that mean "stop"; blocked, and asked for where it suits. */
static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

/* Wait for `ms`, or until somebody wants us to stop; whether somebody does, from then on. */
static bool stopped(struct site *s, uint64_t ms)
{
    sigset_t set = stop_signals();
    struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    if (!s->stop && sigtimedwait(&set, NULL, &t) > 0)
        s->stop = true;
    return s->stop;
}

/* ---- the folder ---- */

static int make_folder(struct site *s)
{
    char path[PATH_BUF];
    s->temporary = !s->o->state;
    if (s->temporary && !child_folder("firn-up", path))
        return say_trouble("cannot make a folder %s: %s; name one with --state", path,
                           strerror(errno));
    if (!s->temporary)
        snprintf(path, sizeof path, "%.4000s", s->o->state);
    for (char *p = path + 1; !s->temporary && *p; p++) /* mkdir -p */
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0750);
            *p = '/';
        }
    if (!s->temporary && mkdir(path, 0750) != 0 && errno != EEXIST)
        return say_trouble("cannot make %s: %s; name another folder with --state", path,
                           strerror(errno));
    if (!realpath(path, s->dir) || strlen(s->dir) > PATH_BUF - 64)
        return say_trouble("cannot use %s: %s", path, strerror(errno));
    snprintf(path, sizeof path, "%.4000s/lock", s->dir);
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (s->lock < 0)
        return say_trouble("cannot write %s: %s; name another folder with --state", path,
                           strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
        return say_trouble(
            "another firn up runs in %s: end it, or name another folder with --state", s->dir);
    return -1;
}

/* ---- what runs ---- */

static uint32_t port_of(const struct site *s, size_t member, enum port port)
{
    return (uint32_t)s->o->port + 10 * (uint32_t)member + (uint32_t)port;
}

/* Better before the start than as a line in a log. */
static int check_port(const struct site *s, uint32_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return say_trouble("cannot make a socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* old connections do not matter */
    int r = bind(fd, (struct sockaddr *)&a, sizeof a);
    int error = errno;
    close(fd);
    if (r == 0)
        return -1;
    return say_trouble("port %u: %s: end what listens there, or choose other ports with --port "
                       "(now %" PRIu64 ", up to 33 above it are used)",
                       port, strerror(error), s->o->port);
}

static int check_ports(const struct site *s)
{
    int r = -1;
    for (size_t m = s->children > MEMBERS ? 0 : 1; m <= MEMBERS && r < 0; m++)
        for (enum port p = PORT_HOME; p <= PORT_PEERS && r < 0; p++)
            r = check_port(s, port_of(s, m, p));
    return r;
}

/* FIRN_… in the environment are settings of somebody's firnd, and not meant for these three. */
static void forget_settings(void)
{
    char name[64];
    for (char **e = environ; *e;) {
        size_t len = strcspn(*e, "=");
        if (strncmp(*e, "FIRN_", 5) == 0 && len < sizeof name) {
            memcpy(name, *e, len);
            name[len] = '\0';
            unsetenv(name);
            e = environ; /* it has moved up */
        } else {
            e++;
        }
    }
}

static bool has_file(const struct member *m, const char *name)
{
    char path[PATH_BUF + 64];
    snprintf(path, sizeof path, "%s/raft/%s", m->dir, name);
    return access(path, F_OK) == 0;
}

/* It began a cluster, or was in one: a member that was started and never came so far has neither. */
static bool has_data(const struct member *m)
{
    return has_file(m, "vote") || has_file(m, "log/0000000000000001-0000000000000001");
}

/* Its flags as of now. Where one has data, nobody begins a cluster: its tickets would begin again. Records are then
 * made by whoever finds none, as the one that began may have been killed before it did. */
static void member_args(struct site *s, size_t i)
{
    static const char *const flag[] = { "--listen-home", "--listen-snowflake", "--listen-ticket",
                                        "--cluster-listen" };
    struct member *m = &s->member[i];
    size_t n = 0;
    const char *const first[] = { s->firnd,      "--no-config",
                                  "--name",      m->name,
                                  "--state-dir", m->dir,
                                  "--store",     s->o->store ? s->o->store : "raft:" };
    for (size_t k = 0; k < sizeof first / sizeof first[0]; k++)
        m->argv[n++] = first[k];
    for (size_t k = 0; k < (s->o->store ? 3 : 4); k++) {
        m->argv[n++] = flag[k];
        m->argv[n++] = m->address[k];
    }
    m->known = has_file(m, "member");
    s->fresh = !s->o->store;
    for (size_t k = 0; k < MEMBERS; k++)
        s->fresh &= !has_data(&s->member[k]);
    m->argv[n++] = s->fresh && i == 0 ? "--cluster-init" : "--store-init";
    if (s->fresh && i == 0) {
        m->argv[n++] = "--cluster-fresh";
    } else if (!s->o->store) {
        m->argv[n++] = "--cluster-join";
        m->argv[n++] = m->join;
    }
    m->argv[n] = NULL;
}

static void plan_member(struct site *s, size_t i)
{
    struct member *m = &s->member[i];
    snprintf(m->name, sizeof m->name, "node%zu", i + 1);
    snprintf(m->dir, sizeof m->dir, "%.4000s/%zu", s->dir, i + 1);
    for (size_t k = 0; k < sizeof m->address / sizeof m->address[0]; k++)
        snprintf(m->address[k], ADDRESS_BUF, "127.0.0.1:%u", port_of(s, i + 1, (enum port)k));
    for (size_t k = 0, n = 0; k < MEMBERS; k++)
        if (k != i)
            n += (size_t)snprintf(m->join + n, sizeof m->join - n, "%s127.0.0.1:%u", n ? "," : "",
                                  port_of(s, k + 1, PORT_PEERS));
    snprintf(s->log[i], sizeof s->log[i], "%.4000s/%zu.log", s->dir, i + 1);
    s->child[i] = (struct child){ .name = m->name, .log = s->log[i], .argv = m->argv };
}

static int plan(struct site *s)
{
    struct balancer *b = &s->balancer;
    s->children = MEMBERS;
    child_find("firnd", s->firnd);
    for (size_t i = 0; i < MEMBERS; i++)
        plan_member(s, i);
    for (size_t i = 0; i < MEMBERS; i++)
        member_args(s, i);
    const char *wanted = s->o->balancer;
    if (wanted && strcmp(wanted, "none") == 0)
        return -1;
    if (wanted && strcmp(wanted, "haproxy") != 0 && strcmp(wanted, "nginx") != 0)
        return say_trouble("--balancer is haproxy, nginx or none");
    if (!balancer_find(b, wanted)) {
        if (wanted)
            return say_trouble(
                "%s is not installed: apt-get install %s, or --balancer none", wanted,
                strcmp(wanted, "nginx") == 0 ? "nginx-light libnginx-mod-stream" : wanted);
        say_warning("there is no load balancer on this machine (apt-get install haproxy): "
                    "going on without one");
        return -1;
    }
    if (balancer_prepare(b, s->dir, (uint32_t)s->o->port) != 0)
        return STATUS_TROUBLE;
    snprintf(s->log[MEMBERS], sizeof s->log[MEMBERS], "%.4000s/%s.log", s->dir, b->name);
    s->child[MEMBERS] = (struct child){ .name = b->name, .log = s->log[MEMBERS], .argv = b->argv };
    s->children = CHILDREN;
    return -1;
}

/* ---- asking them ---- */

/* One GET of a path on a port: whether it was answered with 200, and the answer as far as it fits. */
static bool fetch(uint32_t port, const char *path, char out[STATUS_BUF])
{
    char url[128];
    const char *body = "";
    size_t len = 0;
    struct http_client c;
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", port, path);
    bool good = http_client_init(&c, url) == 0;
    c.once = true;
    c.timeout_ms = PROBE_MS;
    c.accept = "text/plain";
    good = good && http_client_get(&c, &body, &len) == 0;
    snprintf(out, STATUS_BUF, "%.*s", good ? (int)len : 0, body);
    http_client_done(&c);
    return good;
}

static bool is_ready(const struct site *s, size_t i)
{
    uint32_t port = i < MEMBERS ? port_of(s, i + 1, PORT_HOME) : port_of(s, 0, PORT_HOME);
    char said[STATUS_BUF];
    return s->child[i].pid != 0 && fetch(port, "/readyz", said);
}

static bool all_vote(const struct site *s)
{
    char status[STATUS_BUF];
    size_t voters = 0;
    if (s->o->store)
        return true;
    if (!fetch(port_of(s, 1, PORT_HOME), "/v1/cluster", status))
        return false;
    for (const char *p = status; (p = strstr(p, "\tvoter")); p++)
        voters++;
    return voters == MEMBERS;
}

/* Until child i is there. -1: it is. */
static int wait_ready(struct site *s, size_t i)
{
    char story[CHILD_TEXT_BUF];
    struct child *c = &s->child[i];
    uint64_t end = mono_ms() + START_MS;
    while (!is_ready(s, i) || (i == MEMBERS - 1 && !all_vote(s))) {
        if (stopped(s, 50))
            return STATUS_OK;
        if (child_ended(c))
            return say_trouble("%s %s; all it said is in %s", c->name, child_story(c, story),
                               c->log);
        if (mono_ms() > end)
            return say_trouble("%s is not ready after %d s: %s tells why", c->name, START_MS / 1000,
                               c->log);
    }
    return -1;
}

/* ---- a folder that is gone ---- */

/* The id of who has this peer address, of the status as lines; false: nobody. */
static bool id_at(const char *status, const char *address, char out[17])
{
    char field[ADDRESS_BUF + 2];
    snprintf(field, sizeof field, "\t%s\t", address);
    const char *at = strstr(status, field);
    if (!at || at - status < 16)
        return false;
    memcpy(out, at - 16, 16);
    out[16] = '\0';
    return true;
}

static bool remove_member(const struct site *s, size_t by, const char *id)
{
    char url[128], post[64];
    const char *body;
    size_t len;
    struct http_client c;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/cluster", port_of(s, by + 1, PORT_HOME));
    snprintf(post, sizeof post, "{\"action\":\"remove\",\"id\":\"%s\"}", id);
    bool good = http_client_init(&c, url) == 0;
    c.post = post;
    c.timeout_ms = REMOVE_MS;
    good = good && http_client_post(&c, &body, &len) == 0;
    http_client_done(&c);
    return good;
}

/* A member whose folder is gone has forgotten its votes, and must not come back under its old id: that one is
 * removed by the others, whom it then joins as a new one. Whether it may be started. */
static bool may_join(const struct site *s, size_t i)
{
    char status[STATUS_BUF], id[17];
    if (s->fresh || s->o->store || s->member[i].known)
        return true;
    for (size_t k = 0; k < MEMBERS; k++)
        if (k != i && s->child[k].pid &&
            fetch(port_of(s, k + 1, PORT_HOME), "/v1/cluster", status) &&
            strstr(status, ", leader\t"))
            return !id_at(status, s->member[i].address[PORT_PEERS], id) || remove_member(s, k, id);
    return false;
}

/* -1: it is started. */
static int start_joining(struct site *s, size_t i)
{
    uint64_t end = mono_ms() + JOIN_MS;
    while (!may_join(s, i)) {
        if (stopped(s, 50))
            return STATUS_OK;
        if (mono_ms() > end)
            return say_trouble("%s has no data, and those who have do not let it in: they have no "
                               "leader. When more than one folder is gone see Backup and restore "
                               "in docs/cluster.md; logs are in %s",
                               s->member[i].name, s->dir);
    }
    return child_start(&s->child[i]) == 0 ? -1 : STATUS_TROUBLE;
}

static int start_all(struct site *s)
{
    int r = -1;
    bool alone = s->fresh || s->o->store; /* it makes the records before the others come */
    for (size_t i = 0; i < MEMBERS && r < 0; i++)
        if ((alone ? i == 0 : s->member[i].known) && child_start(&s->child[i]) != 0)
            r = STATUS_TROUBLE;
    if (alone && r < 0)
        r = wait_ready(s, 0);
    for (size_t i = 0; i < MEMBERS && r < 0; i++)
        if (s->child[i].started_ms == 0)
            r = start_joining(s, i);
    if (r < 0 && s->children > MEMBERS && child_start(&s->child[MEMBERS]) != 0)
        r = STATUS_TROUBLE;
    for (size_t i = 0; i < s->children && r < 0; i++)
        r = wait_ready(s, i);
    return r;
}

/* ---- what people see ---- */

static void show(const struct site *s)
{
    static const char *const header[] = { "WHAT", "ADDRESS", ">PID", "LOG", NULL };
    struct table t;
    bool balanced = s->children > MEMBERS;
    size_t from = balanced ? 0 : 1; /* whose ports to try: the balancer's, or the first member's */
    table_init(&t, 0, header);
    for (size_t i = 0; i < MEMBERS; i++) {
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
        table_add(&t, "%s127.0.0.1:%u", p == PORT_RESP ? "" : "http://", port_of(s, 0, p));
        table_add(&t, "%d", (int)s->child[MEMBERS].pid);
        table_add(&t, "%s", p == PORT_HOME ? s->child[MEMBERS].log : "");
    }
    table_print(&t);
    table_done(&t);
    printf("\nTry\n    curl http://127.0.0.1:%u/generate\n", port_of(s, from, PORT_SNOWFLAKE));
    printf("    redis-cli -p %u INCR orders\n",
           balanced && s->balancer.resp ? port_of(s, 0, PORT_RESP) : port_of(s, 1, PORT_TICKET));
    printf(
        "    kill -9 %d                     generator 1: the others go on, and it comes back\n\n",
        (int)s->child[0].pid);
}

/* One ID of each kind. -1: got them. */
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

/* The lines of firn compare. IDs of several generators need not rise, so that is not asked here. */
static int show_rounds(struct site *s)
{
    int r = -1;
    if (s->o->rounds == 0)
        return r;
    puts("Starting ID generation client...\nGenerating IDs from Snowflake and Ticket Server:");
    for (uint64_t i = 0; i < s->o->rounds && r < 0 && !stopped(s, 0); i++) {
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
    size_t from = s->children > MEMBERS ? 0 : 1;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/generate", port_of(s, from, PORT_SNOWFLAKE));
    if (http_client_init(&s->snowflake, url) != 0)
        return say_trouble("%s", s->snowflake.why);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/generate", port_of(s, from, PORT_TICKET));
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

/* Who is not well stands in front: what does not fit on the line is cut. */
static void draw_line(const struct site *s, const bool ready[CHILDREN], bool answered)
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

/* Those that ended are told and, after a while, started again. */
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
            if (i < MEMBERS)
                member_args(s, i);
            if ((i == MEMBERS || may_join(s, i)) && child_start(c) == 0) {
                clear_line();
                say_warning("%s runs again, pid %d", c->name, (int)c->pid);
            }
        }
    }
}

static void serve(struct site *s)
{
    bool ready[CHILDREN];
    s->snowflake.once = s->ticket.once = true; /* the next second comes soon enough */
    while (!stopped(s, 1000)) {
        look_after(s);
        bool watched = term_width() > 0, answered = false;
        if (!watched)
            continue; /* nobody looks at the line: nothing is asked */
        const char *body;
        size_t len;
        answered = http_client_get(&s->snowflake, &body, &len) == 0 &&
                   id_body_one(body, len, s->id[0]) == 0 &&
                   http_client_get(&s->ticket, &body, &len) == 0 &&
                   id_body_one(body, len, s->id[1]) == 0;
        s->rounds += answered;
        for (size_t i = 0; i < s->children; i++)
            ready[i] = is_ready(s, i);
        draw_line(s, ready, answered);
    }
    clear_line();
}

static void stop_all(struct site *s, bool failed)
{
    http_client_done(&s->snowflake);
    http_client_done(&s->ticket);
    if (s->children > MEMBERS) /* nobody is sent to those that end */
        child_stop(&s->child[MEMBERS], 1, GRACE_MS);
    child_stop(s->child, MEMBERS, GRACE_MS);
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
    if (operands > 0)
        return say_trouble("'%s' is one word too many: firn up takes options only", argv[1]);
    struct site *s = calloc(1, sizeof *s);
    if (!s)
        return say_trouble("out of memory");
    s->o = &o;
    s->lock = -1;
    s->snowflake.fd = s->ticket.fd = -1;
    sigset_t set = stop_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    forget_settings();
    r = make_folder(s);
    if (r < 0)
        r = plan(s);
    if (r < 0)
        r = check_ports(s);
    bool planned = r < 0; /* from here on there are logs that may be worth a look */
    if (r < 0)
        r = start_all(s);
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
