/* The site of firn up: its folder, its ports, the flags of its programs, and their start. */
#include "cli/up/site.h"
#include "cli/say.h"
#include "platform/mono.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    START_MS = 60 * 1000, /* until all are ready; seconds, unless the machine is very busy */
    PROBE_MS = 1000,      /* for the answer to GET /readyz and the like */
};

/* ---- signals ---- */

sigset_t site_stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

bool site_stopped(struct site *s, uint64_t ms)
{
    sigset_t set = site_stop_signals();
    struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    if (!s->stop && sigtimedwait(&set, NULL, &t) > 0)
        s->stop = true;
    return s->stop;
}

/* ---- the folder ---- */

int site_folder(struct site *s)
{
    char path[SITE_PATH_BUF];
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
    if (!realpath(path, s->dir) || strlen(s->dir) > SITE_PATH_BUF - 64)
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

uint32_t site_port(const struct site *s, size_t member, enum port port)
{
    return (uint32_t)s->o->port + 10 * (uint32_t)member + (uint32_t)port;
}

/* Check before the start: a server would only log it. */
int site_check_port(const struct site *s, uint32_t port)
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
    return say_trouble(
        "port %u: %s: end the program that listens there, or choose other ports with "
        "--port (now %" PRIu64 ", up to 33 above it are used)",
        port, strerror(error), s->o->port);
}

int site_check_ports(const struct site *s)
{
    int r = -1;
    for (size_t m = s->children > SITE_MEMBERS ? 0 : 1; m <= SITE_MEMBERS && r < 0; m++)
        for (enum port p = PORT_HOME; p <= PORT_PEERS && r < 0; p++)
            r = site_check_port(s, site_port(s, m, p));
    return r;
}

void site_forget_settings(void)
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
    char path[SITE_PATH_BUF + 64];
    snprintf(path, sizeof path, "%s/raft/%s", m->dir, name);
    return access(path, F_OK) == 0;
}

/* It has been in a cluster: the file of a member that never was says nothing of a log
 * (src/raft/identity.c). */
static bool has_data(const struct member *m)
{
    char path[SITE_PATH_BUF + 64], line[512];
    bool begun = false;
    snprintf(path, sizeof path, "%s/raft/member", m->dir);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        begun |= strcmp(line, "log begun\n") == 0;
    if (f)
        fclose(f);
    return begun;
}

/* When any member has data, no member begins a new cluster: its tickets would begin again. Then
 * every member may make the records (--store-init), because the one that began the cluster may
 * have been killed before it made them. */
void site_member_args(struct site *s, size_t i)
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
    for (size_t k = 0; k < SITE_MEMBERS; k++)
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
        snprintf(m->address[k], SITE_ADDRESS_BUF, "127.0.0.1:%u",
                 site_port(s, i + 1, (enum port)k));
    for (size_t k = 0, n = 0; k < SITE_MEMBERS; k++)
        if (k != i)
            n += (size_t)snprintf(m->join + n, sizeof m->join - n, "%s127.0.0.1:%u", n ? "," : "",
                                  site_port(s, k + 1, PORT_PEERS));
    snprintf(s->log[i], sizeof s->log[i], "%.4000s/%zu.log", s->dir, i + 1);
    s->child[i] = (struct child){ .name = m->name, .log = s->log[i], .argv = m->argv };
}

int site_plan(struct site *s)
{
    struct balancer *b = &s->balancer;
    s->children = SITE_MEMBERS;
    child_find("firnd", s->firnd);
    for (size_t i = 0; i < SITE_MEMBERS; i++)
        plan_member(s, i);
    for (size_t i = 0; i < SITE_MEMBERS; i++)
        site_member_args(s, i);
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
        say_warning(
            "there is no load balancer on this machine (apt-get install haproxy): continuing "
            "without one");
        return -1;
    }
    if (balancer_prepare(b, s->dir, (uint32_t)s->o->port) != 0)
        return STATUS_TROUBLE;
    snprintf(s->log[SITE_MEMBERS], sizeof s->log[SITE_MEMBERS], "%.4000s/%s.log", s->dir, b->name);
    s->child[SITE_MEMBERS] =
        (struct child){ .name = b->name, .log = s->log[SITE_MEMBERS], .argv = b->argv };
    s->children = SITE_CHILDREN;
    return -1;
}

/* ---- requests ---- */

bool site_fetch(uint32_t port, const char *path, char out[SITE_STATUS_BUF])
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
    snprintf(out, SITE_STATUS_BUF, "%.*s", good ? (int)len : 0, body);
    http_client_done(&c);
    return good;
}

bool site_ready(const struct site *s, size_t i)
{
    uint32_t port = i < SITE_MEMBERS ? site_port(s, i + 1, PORT_HOME) : site_port(s, 0, PORT_HOME);
    char said[SITE_STATUS_BUF];
    return s->child[i].pid != 0 && site_fetch(port, "/readyz", said);
}

static bool all_vote(const struct site *s)
{
    char status[SITE_STATUS_BUF];
    size_t voters = 0;
    if (s->o->store)
        return true;
    if (!site_fetch(site_port(s, 1, PORT_HOME), "/v1/cluster", status))
        return false;
    for (const char *p = status; (p = strstr(p, "\tvoter")); p++)
        voters++;
    return voters == SITE_MEMBERS;
}

/* Wait until child i is ready. -1: it is. */
static int wait_ready(struct site *s, size_t i)
{
    char story[CHILD_TEXT_BUF];
    struct child *c = &s->child[i];
    uint64_t end = mono_ms() + START_MS;
    while (!site_ready(s, i) || (i == SITE_MEMBERS - 1 && !all_vote(s))) {
        if (site_stopped(s, 50))
            return STATUS_OK;
        if (child_ended(c))
            return say_trouble("%s %s; its log is %s", c->name, child_story(c, story), c->log);
        if (mono_ms() > end)
            return say_trouble("%s is not ready after %d s: see %s", c->name, START_MS / 1000,
                               c->log);
    }
    return -1;
}

/* ---- start ---- */

int site_start(struct site *s)
{
    int r = -1;
    bool alone = s->fresh || s->o->store; /* it makes the records before the others come */
    for (size_t i = 0; i < SITE_MEMBERS && r < 0; i++)
        if ((alone ? i == 0 : s->member[i].known) && child_start(&s->child[i]) != 0)
            r = STATUS_TROUBLE;
    if (alone && r < 0)
        r = wait_ready(s, 0);
    for (size_t i = 0; i < SITE_MEMBERS && r < 0; i++)
        if (s->child[i].started_ms == 0)
            r = site_start_joining(s, i);
    if (r < 0 && s->children > SITE_MEMBERS && child_start(&s->child[SITE_MEMBERS]) != 0)
        r = STATUS_TROUBLE;
    for (size_t i = 0; i < s->children && r < 0; i++)
        r = wait_ready(s, i);
    return r;
}
