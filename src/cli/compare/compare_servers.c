/* The servers of firn compare --start, and the clients that measure the effect of a fault.
 * Tested in tests/integration/tools.py. */
#include "cli/compare/compare_servers.h"
#include "cli/http_client.h"
#include "cli/id_body.h"
#include "cli/say.h"
#include "platform/mono.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS UINT64_C(1000000)
enum {
    START_MS = 30000,
    LOOK_MS = 10,
    ASK_EVERY_MS = 2,
    ASK_LIMIT_MS = 2000,
    BEFORE_MS = 600,
    AFTER_MS = 900,
    STOP_MS = 5000,
};

static void sleep_ms(uint64_t ms)
{
    struct timespec t = { .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * MS_NS) };
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* ---- start and stop ---- */

static int start_one(struct compare_servers *s, unsigned i)
{
    struct compare_server *v = &s->server[i];
    char folder[sizeof s->folder]; /* apart, or gcc -O3 takes it for a part of what is written */
    memcpy(folder, s->folder, sizeof folder);
    const char *const flags[] = { "--no-config",
                                  v->state,
                                  v->store,
                                  v->name,
                                  "--loops=1",
                                  "--listen-home=127.0.0.1:0",
                                  "--listen-snowflake=127.0.0.1:0",
                                  "--listen-ticket=127.0.0.1:0" };
    _Static_assert(sizeof v->argv >= sizeof flags + 2 * sizeof *flags, "program, flags, NULL");
    snprintf(v->state, sizeof v->state, "--state-dir=%s/%u", folder, i);
    snprintf(v->store, sizeof v->store, "--store=sqlite:%s/firn.db", folder);
    snprintf(v->log, sizeof v->log, "%s/%u.log", folder, i);
    snprintf(v->name, sizeof v->name, "--name=compare-%u", i);
    v->argv[0] = s->firnd;
    memcpy(v->argv + 1, flags, sizeof flags);
    s->child[i] = (struct child){ .name = "firnd", .log = v->log, .argv = v->argv };
    return child_start(&s->child[i]) == 0 ? -1 : STATUS_TROUBLE;
}

static bool read_log(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
    return true;
}

/* Wait until the server has logged its addresses and is ready. */
static int wait_ready(struct compare_servers *s, unsigned i)
{
    char text[4096] = "", url[128], story[CHILD_TEXT_BUF];
    bool serves = false;
    for (uint64_t end = mono_ns() + START_MS * MS_NS; mono_ns() < end; sleep_ms(LOOK_MS)) {
        const char *at = read_log(s->server[i].log, text, sizeof text)
                             ? strstr(text, "serving home=")
                             : NULL;
        if (child_ended(&s->child[i]))
            return say_trouble("--start: firnd %s", child_story(&s->child[i], story));
        if (!at || !strchr(at, '\n'))
            continue;
        serves = serves ||
                 sscanf(at, "serving home=%63s snowflake=%63s ticket=%63s", s->server[i].home,
                        s->server[i].snowflake, s->server[i].ticket) == 3;
        if (!serves)
            continue;
        struct http_client c;
        const char *body;
        size_t len;
        snprintf(url, sizeof url, "http://%s/readyz", s->server[i].home);
        int r = http_client_init(&c, url);
        if (r == 0)
            r = http_client_get_once(&c, &body, &len);
        http_client_done(&c);
        if (r == 0)
            return -1;
    }
    return say_trouble("--start: firnd is not ready after %d s", START_MS / 1000);
}

int compare_servers_start(struct compare_servers *s, unsigned n)
{
    *s = (struct compare_servers){ 0 };
    if (!child_folder("firn-compare", s->folder)) {
        int status = say_trouble("--start: %s: %s: set TMPDIR to a folder for the servers' state",
                                 s->folder, strerror(errno));
        s->folder[0] = '\0';
        return status;
    }
    child_find("firnd", s->firnd);
    int status = -1;
    for (; s->n < n && status < 0; s->n++) {
        status = start_one(s, s->n);
        if (status < 0)
            status = wait_ready(s, s->n);
    }
    if (status >= 0)
        compare_servers_stop(s);
    return status;
}

void compare_servers_stop(struct compare_servers *s)
{
    child_stop(s->child, s->n, STOP_MS);
    if (s->folder[0])
        child_folder_remove(s->folder);
    s->folder[0] = '\0';
}

/* ---- kill one ---- */

struct asker {
    pthread_t thread;
    struct compare_probe *probe;
    struct http_client client[COMPARE_SERVERS_MAX];
    bool open[COMPARE_SERVERS_MAX];
    unsigned servers, now_at;
    _Atomic bool *stop;
    uint64_t *ids, room;
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct one_id {
    uint64_t id;
    bool any;
};

static void take_one(uint64_t id, void *user)
{
    *(struct one_id *)user = (struct one_id){ id, true };
}

/* Ask one server after the other until one answers. */
static bool ask(struct asker *a, struct one_id *out)
{
    const char *body;
    size_t len;
    for (unsigned tries = 0; tries < a->servers; tries++) {
        unsigned i = a->now_at;
        if (a->open[i] && http_client_get_once(&a->client[i], &body, &len) == 0 &&
            id_body_each(ID_BODY_JSON, body, len, take_one, out) == 0 && out->any)
            return true;
        a->now_at = (i + 1) % a->servers;
    }
    return false;
}

static void *run_asker(void *user)
{
    struct asker *a = user;
    struct compare_probe *p = a->probe;
    uint64_t since = 0; /* when the first request of a row of failures began */
    while (!atomic_load(a->stop)) {
        struct one_id got = { 0 };
        uint64_t began = mono_ns();
        if (since == 0)
            since = began;
        p->asked++;
        if (ask(a, &got)) {
            uint64_t gap = mono_ns() - since;
            if (gap > p->gap_ns)
                p->gap_ns = gap;
            since = 0;
            if (p->ids < a->room)
                a->ids[p->ids++] = got.id;
        } else {
            p->failed++;
        }
        sleep_ms(ASK_EVERY_MS);
    }
    if (since != 0 && mono_ns() - since > p->gap_ns)
        p->gap_ns = mono_ns() - since;
    qsort(a->ids, p->ids, sizeof *a->ids, by_value);
    for (uint64_t i = 0; i < p->ids; i++)
        p->distinct += i == 0 || a->ids[i] != a->ids[i - 1];
    return NULL;
}

static int asker_open(struct asker *a, const struct compare_servers *s, struct compare_probe *p,
                      _Atomic bool *stop)
{
    char url[256];
    a->probe = p;
    a->servers = s->n;
    a->stop = stop;
    a->room = (BEFORE_MS + FAULT_STORE_MS + AFTER_MS) / ASK_EVERY_MS * 4;
    a->ids = calloc(a->room, sizeof *a->ids);
    if (!a->ids)
        return FIRN_ENOMEM;
    p->asked = p->failed = p->gap_ns = p->ids = p->distinct = 0;
    for (unsigned i = 0; i < s->n; i++) {
        if (!p->path[i])
            continue;
        snprintf(url, sizeof url, "http://%s%s", s->server[i].home, p->path[i]);
        int r = http_client_init(&a->client[i], url);
        a->open[i] = true;
        a->client[i].timeout_ms = ASK_LIMIT_MS;
        if (r != 0)
            return r;
    }
    return 0;
}

/* The servers' store is one file: while another process writes to it, they only read. */
static int hold_store(const struct compare_servers *s)
{
    char path[sizeof s->folder + 16];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/firn.db", s->folder);
    int r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_busy_timeout(db, STOP_MS);
    if (r == SQLITE_OK)
        r = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (r == SQLITE_OK)
        sleep_ms(FAULT_STORE_MS);
    sqlite3_close(db); /* rolls back */
    return r == SQLITE_OK ? 0 : FIRN_EIO;
}

int compare_servers_disturb(struct compare_servers *s, enum compare_fault fault,
                            struct compare_probe *probe, unsigned probes)
{
    struct asker *a = calloc(probes, sizeof *a);
    _Atomic bool stop = false;
    unsigned started = 0;
    int r = a ? 0 : FIRN_ENOMEM;
    for (unsigned i = 0; i < probes && r == 0; i++)
        r = asker_open(&a[i], s, &probe[i], &stop);
    for (; started < probes && r == 0; started++)
        if (pthread_create(&a[started].thread, NULL, run_asker, &a[started]) != 0) {
            r = FIRN_ENOMEM;
            break;
        }
    if (r == 0) {
        sleep_ms(BEFORE_MS);
        if (fault == FAULT_KILL)
            child_kill(&s->child[0]);
        else
            r = hold_store(s);
        sleep_ms(AFTER_MS);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < started; i++)
        pthread_join(a[i].thread, NULL);
    for (unsigned i = 0; i < probes && a; i++) {
        for (unsigned k = 0; k < s->n; k++)
            if (a[i].open[k])
                http_client_done(&a[i].client[k]);
        free(a[i].ids);
    }
    free(a);
    return r;
}
