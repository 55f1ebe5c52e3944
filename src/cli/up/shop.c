/* firn up shop: its programs, their start and their end; see shop.h. */
#include "cli/up/shop.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/up/machine.h"
#include "platform/mono.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    START_MS = 60 * 1000,
    GRACE_MS = 15 * 1000,
    RESTART_MS = 5 * 1000, /* time to observe the shop without one */
};

static const struct part {
    const char *name, *what, *service; /* service: of firn-shop */
    uint32_t offset;                   /* of its port */
    uint32_t ready;                    /* of the port that answers /readyz or /healthz; 0: TCP */
    const char *path;
} parts[SHOP_CHILDREN] = {
    [SHOP_GATEWAY] = { "gateway-1", "gateway 1", NULL, 0, 1, "/readyz" },
    [SHOP_GATEWAY_2] = { "gateway-2", "gateway 2", NULL, 10, 11, "/readyz" },
    [SHOP_USERS] = { "users", "users", "users", 12, 12, "/healthz" },
    [SHOP_ORDERS] = { "orders", "orders", "orders", 13, 13, "/healthz" },
    [SHOP_PRODUCTS] = { "products", "products", "products", 14, 14, "/healthz" },
    [SHOP_PAYMENTS] = { "payments", "payments", "payments", 15, 15, "/healthz" },
    [SHOP_NOTIFICATIONS] = { "notifications", "notifications", "notifications", 16, 16,
                             "/healthz" },
    [SHOP_NOTIFICATIONS_2] = { "notifications-2", "  their canary", "notifications", 17, 17,
                               "/healthz" },
    [SHOP_FIRND] = { "firnd", "firnd: IDs of new rows", NULL, 20, 20, "/readyz" },
    [SHOP_REDIS] = { "redis", "Redis: limits, cache", NULL, 23, 0, NULL },
};

uint32_t shop_port(const struct shop *s, enum shop_child i)
{
    return (uint32_t)s->site.o->port + parts[i].offset;
}

static bool has_child(const struct shop *s, size_t i)
{
    return i != SHOP_REDIS || s->redis;
}

/* --- what runs --- */

/* "--listen-http=127.0.0.1:9000", or without a name "127.0.0.1:9000"; kept in `flag`. */
static const char *address_flag(struct shop *s, size_t i, size_t n, const char *name,
                                uint32_t offset)
{
    char *out = s->flag[i][n];
    snprintf(out, SHOP_FLAG_BUF, "%s127.0.0.1:%u", name, (uint32_t)s->site.o->port + offset);
    return out;
}

static void plan_gateway(struct shop *s, size_t i)
{
    const char *const argv[] = { s->proxy,
                                 "--config",
                                 s->config,
                                 address_flag(s, i, 0, "--listen-http=", parts[i].offset),
                                 address_flag(s, i, 1, "--listen-admin=", parts[i].ready),
                                 NULL };
    memcpy(s->argv[i], argv, sizeof argv);
}

static void plan_service(struct shop *s, size_t i)
{
    const char *const argv[] = { s->service,
                                 parts[i].service,
                                 address_flag(s, i, 0, "", parts[i].offset),
                                 address_flag(s, i, 1, "firn://", parts[SHOP_FIRND].offset + 1),
                                 parts[i].name,
                                 NULL };
    memcpy(s->argv[i], argv, sizeof argv);
}

static void plan_firnd(struct shop *s, size_t i)
{
    const char *const argv[] = { s->firnd,
                                 "--no-config",
                                 "--name",
                                 "shop",
                                 "--state-dir",
                                 s->state[0],
                                 address_flag(s, i, 0, "--listen-home=", parts[i].offset),
                                 address_flag(s, i, 1, "--listen-snowflake=", parts[i].offset + 1),
                                 address_flag(s, i, 2, "--listen-ticket=", parts[i].offset + 2),
                                 NULL };
    memcpy(s->argv[i], argv, sizeof argv);
}

static void plan_redis(struct shop *s, size_t i)
{
    snprintf(s->flag[i][0], SHOP_FLAG_BUF, "%u", shop_port(s, SHOP_REDIS));
    const char *const argv[] = { s->server,   "--port",       s->flag[i][0], "--bind",
                                 "127.0.0.1", "--dir",        s->state[1],   "--save",
                                 "",          "--appendonly", "no",          NULL };
    memcpy(s->argv[i], argv, sizeof argv);
}

static int plan(struct shop *s)
{
    static void (*const plans[SHOP_CHILDREN])(struct shop *, size_t) = {
        [SHOP_GATEWAY] = plan_gateway,       [SHOP_GATEWAY_2] = plan_gateway,
        [SHOP_USERS] = plan_service,         [SHOP_ORDERS] = plan_service,
        [SHOP_PRODUCTS] = plan_service,      [SHOP_PAYMENTS] = plan_service,
        [SHOP_NOTIFICATIONS] = plan_service, [SHOP_NOTIFICATIONS_2] = plan_service,
        [SHOP_FIRND] = plan_firnd,           [SHOP_REDIS] = plan_redis,
    };
    const char *dir = s->site.dir;
    child_find("firnd", s->firnd);
    child_find("firn-proxy", s->proxy);
    if (!child_find("firn-shop", s->service))
        return say_trouble("there is no firn-shop beside firn: it is an example that is built and "
                           "not installed (examples/shop); use the firn of a build folder");
    s->redis = machine_find("redis-server", s->server);
    if (!s->redis)
        say_warning("there is no Redis on this machine (apt-get install redis-server): each "
                    "gateway counts and caches by itself");
    snprintf(s->config, sizeof s->config, "%s/gateway.yaml", dir);
    snprintf(s->state[0], sizeof s->state[0], "%s/firnd", dir);
    snprintf(s->state[1], sizeof s->state[1], "%s/redis", dir);
    for (size_t i = 0; i < 2; i++)
        if (mkdir(s->state[i], 0750) != 0 && errno != EEXIST)
            return say_trouble("cannot make %s: %s", s->state[i], strerror(errno));
    for (size_t i = 0; i < SHOP_CHILDREN; i++) {
        plans[i](s, i);
        snprintf(s->log[i], sizeof s->log[i], "%s/%s.log", dir, parts[i].name);
        s->child[i] = (struct child){ .name = parts[i].name, .log = s->log[i], .argv = s->argv[i] };
    }
    int r = -1;
    for (size_t i = 0; i < SHOP_CHILDREN && r < 0; i++)
        if (has_child(s, i)) {
            r = site_check_port(&s->site, shop_port(s, (enum shop_child)i));
            if (r < 0 && parts[i].ready)
                r = site_check_port(&s->site, (uint32_t)s->site.o->port + parts[i].ready);
        }
    return r;
}

/* A line of examples/shop with this shop's ports and folder. Without Redis there is no line that
 * names it, and caches are in memory. */
static void put_line(const struct shop *s, FILE *to, const char *p, size_t len)
{
    static const char server[] = "redis:", shared[] = "cache: redis";
    const uint32_t base = (uint32_t)s->site.o->port;
    const char *at = s->redis ? NULL : memmem(p, len, shared, sizeof shared - 1);
    size_t before = at ? (size_t)(at - p) : len;
    if (!s->redis && len >= sizeof server - 1 && memcmp(p, server, sizeof server - 1) == 0)
        return;
    machine_put_moved(to, p, before, base, s->site.dir);
    if (!at)
        return;
    fputs("cache: memory", to);
    machine_put_moved(to, at + sizeof shared - 1, len - before - (sizeof shared - 1), base,
                      s->site.dir);
}

static int write_file(const struct shop *s, const char *name, const unsigned char *text, size_t len)
{
    char path[SITE_PATH_BUF + 32];
    snprintf(path, sizeof path, "%s/%s", s->site.dir, name);
    FILE *to = fopen(path, "w");
    if (!to)
        return say_trouble("cannot write %s: %s", path, strerror(errno));
    for (const char *p = (const char *)text, *end = p + len, *next; p < end; p = next) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        next = eol ? eol + 1 : end;
        put_line(s, to, p, (size_t)(next - p));
    }
    return fclose(to) == 0 ? -1 : say_trouble("cannot write %s: %s", path, strerror(errno));
}

static int write_files(const struct shop *s)
{
    int r = write_file(s, "gateway.yaml", shop_gateway_yaml, shop_gateway_yaml_len);
    if (r < 0)
        r = write_file(s, "schema.graphql", shop_schema_graphql, shop_schema_graphql_len);
    return r < 0 ? write_file(s, "tour.sh", shop_tour_sh, shop_tour_sh_len) : r;
}

/* --- start --- */

static bool takes_connections(uint32_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

static bool is_ready(const struct shop *s, size_t i)
{
    char said[SITE_STATUS_BUF];
    if (s->child[i].pid == 0)
        return false;
    return parts[i].path
               ? site_fetch((uint32_t)s->site.o->port + parts[i].ready, parts[i].path, said)
               : takes_connections(shop_port(s, (enum shop_child)i));
}

/* Start the children `from` to `to` - 1, the last one first, and wait until they are ready. */
static int start(struct shop *s, size_t from, size_t to)
{
    char story[CHILD_TEXT_BUF];
    uint64_t end = mono_ms() + START_MS;
    for (size_t i = to; i-- > from;)
        if (has_child(s, i) && child_start(&s->child[i]) != 0)
            return STATUS_TROUBLE;
    for (size_t i = to; i-- > from;) {
        struct child *c = &s->child[i];
        while (has_child(s, i) && !is_ready(s, i)) {
            if (site_stopped(&s->site, 50))
                return STATUS_OK;
            if (child_ended(c))
                return say_trouble("%s %s; its log is %s", c->name, child_story(c, story), c->log);
            if (mono_ms() > end)
                return say_trouble("%s is not ready after %d s: see %s", c->name, START_MS / 1000,
                                   c->log);
        }
    }
    return -1;
}

/* --- output --- */

static void show(const struct shop *s)
{
    static const char *const header[] = { "WHAT", "ADDRESS", ">PID", "LOG", NULL };
    struct table t;
    table_init(&t, 0, header);
    for (size_t i = 0; i < SHOP_CHILDREN; i++) {
        if (!has_child(s, i))
            continue;
        table_add(&t, "%s", parts[i].what);
        table_add(&t, "%s127.0.0.1:%u", parts[i].path ? "http://" : "",
                  shop_port(s, (enum shop_child)i));
        table_add(&t, "%d", (int)s->child[i].pid);
        table_add(&t, "%s", s->log[i]);
        if (i > SHOP_GATEWAY_2)
            continue;
        table_add(&t, "  its page: routes, servers, rates");
        table_add(&t, "http://127.0.0.1:%u/", (uint32_t)s->site.o->port + parts[i].ready);
        table_add(&t, "%s", "");
        table_add(&t, "%s", "");
    }
    table_print(&t);
    table_done(&t);
    printf("\nTry, in another terminal (bash), or all of it: bash %s/tour.sh\n\n", s->site.dir);
    machine_put_moved(stdout, (const char *)shop_tour_sh, shop_tour_sh_len,
                      (uint32_t)s->site.o->port, s->site.dir);
    printf(
        "\nKill one; it is started again after %d s\n"
        "    kill -9 %d    gateway 2: clients use gateway 1, which has the same limits and cache\n"
        "    kill -9 %d    products: what the cache has goes on\n"
        "    kill -9 %d    payments: 503, and the breaker opens\n"
        "    kill -9 %d    firnd: nothing new can be made, everything else goes on\n",
        RESTART_MS / 1000, (int)s->child[SHOP_GATEWAY_2].pid, (int)s->child[SHOP_PRODUCTS].pid,
        (int)s->child[SHOP_PAYMENTS].pid, (int)s->child[SHOP_FIRND].pid);
    if (s->redis)
        printf("    kill -9 %d    Redis: each gateway counts and caches by itself\n",
               (int)s->child[SHOP_REDIS].pid);
    putchar('\n');
    fflush(stdout);
}

/* --- until Ctrl-C --- */

static void clear_line(void)
{
    if (term_width() > 0)
        fputs("\r\033[K", stdout);
    fflush(stdout);
}

/* "requests":N of a gateway's /status; 0: it does not say. */
static uint64_t requests_of(const struct shop *s, size_t gateway)
{
    char said[SITE_STATUS_BUF];
    static const char name[] = "\"requests\":";
    if (!site_fetch((uint32_t)s->site.o->port + parts[gateway].ready, "/status", said))
        return 0;
    const char *at = strstr(said, name);
    return at ? strtoull(at + sizeof name - 1, NULL, 10) : 0;
}

static void draw_line(const struct shop *s)
{
    size_t width = term_width(), well = 0, all = 0;
    char text[512];
    int n = 0;
    for (size_t i = 0; i < SHOP_CHILDREN; i++) {
        bool ready = has_child(s, i) && is_ready(s, i);
        all += has_child(s, i);
        well += ready;
        if (has_child(s, i) && !ready)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s %s  ", parts[i].name,
                          s->child[i].pid ? "NOT READY" : "DOWN");
    }
    snprintf(text + n, sizeof text - (size_t)n,
             "%zu of %zu ready  requests: gateway 1 %llu, gateway 2 %llu  Ctrl-C stops", well, all,
             (unsigned long long)requests_of(s, SHOP_GATEWAY),
             (unsigned long long)requests_of(s, SHOP_GATEWAY_2));
    printf("\r\033[K%.*s", (int)width - 1, text);
    fflush(stdout);
}

static void look_after(struct shop *s)
{
    char story[CHILD_TEXT_BUF];
    for (size_t i = 0; i < SHOP_CHILDREN; i++) {
        struct child *c = &s->child[i];
        if (!has_child(s, i))
            continue;
        if (child_ended(c)) {
            clear_line();
            say_warning("%s %s; it is started again in %d s", c->name, child_story(c, story),
                        RESTART_MS / 1000);
        } else if (c->pid == 0 && mono_ms() >= c->ended_ms + RESTART_MS) {
            c->ended_ms = mono_ms(); /* of this attempt, should it fail */
            if (child_start(c) == 0) {
                clear_line();
                say_warning("%s runs again, pid %d", c->name, (int)c->pid);
            }
        }
    }
}

static void stop_all(struct shop *s, bool failed)
{
    child_stop(s->child, SHOP_USERS, GRACE_MS);
    child_stop(s->child + SHOP_USERS, SHOP_CHILDREN - SHOP_USERS, GRACE_MS);
    if (s->site.lock >= 0)
        close(s->site.lock);
    if (s->site.temporary && s->site.dir[0] && !failed)
        child_folder_remove(s->site.dir);
    else if (s->site.temporary && s->site.dir[0])
        say_warning("logs are kept in %s", s->site.dir);
}

int shop_up(const struct up *o)
{
    struct shop *s = calloc(1, sizeof *s);
    if (!s)
        return say_trouble("out of memory");
    s->site.o = o;
    s->site.lock = -1;
    sigset_t set = site_stop_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    site_forget_settings();
    int r = site_folder(&s->site);
    if (r < 0)
        r = plan(s);
    if (r < 0)
        r = shop_tokens(s->site.dir);
    if (r < 0)
        r = write_files(s);
    bool planned = r < 0; /* from here on there are logs that may explain a failure */
    if (r < 0)
        r = start(s, SHOP_USERS, SHOP_CHILDREN);
    if (r < 0)
        r = start(s, SHOP_GATEWAY, SHOP_USERS);
    if (r < 0)
        show(s);
    while (r < 0 && !o->once && !site_stopped(&s->site, 1000)) {
        look_after(s);
        if (term_width() > 0)
            draw_line(s);
    }
    clear_line();
    stop_all(s, planned && r > 0);
    if (r <= 0)
        printf("All stopped%s%s.\n", s->site.temporary ? "" : "; the state stays in ",
               s->site.temporary ? "" : s->site.dir);
    free(s);
    return output_finish(r < 0 ? STATUS_OK : r);
}
