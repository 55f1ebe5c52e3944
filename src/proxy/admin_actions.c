/*
 * What the admin address can change: POST /reload, POST /servers/{service}/{address}/drain and
 * /enable. Only for requests of the admin page itself or of no page at all, and with the token of
 * admin.token_file where there is one. Each is logged. Tested in
 * tests/integration/gateway_watch.py.
 */
#include "daemon/about.h"
#include "daemon/log.h"
#include "daemon/origin.h"
#include "platform/mono.h"
#include "proxy/admin.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const char json_fields[] = "Content-Type: application/json\r\n" ABOUT_NO_STORE;

/* "/servers/{service}/{address}/{what}", decoded. */
struct target {
    char service[STATS_NAME_BUF], address[HOST_PORT_BUF], what[16];
};

static bool segment(struct slice *rest, char *out, size_t cap)
{
    struct slice s;
    size_t len;
    return url_path_next(rest, &s) && url_decode(s, false, out, cap, &len) == 0 && len > 0;
}

static bool read_target(struct slice path, struct target *t)
{
    char first[16];
    return segment(&path, first, sizeof first) && strcmp(first, "servers") == 0 &&
           segment(&path, t->service, sizeof t->service) &&
           segment(&path, t->address, sizeof t->address) &&
           segment(&path, t->what, sizeof t->what) && path.len == 0 &&
           (strcmp(t->what, "drain") == 0 || strcmp(t->what, "enable") == 0);
}

bool admin_is_action(struct slice path)
{
    struct target t;
    return slice_is(path, "/reload") || read_target(path, &t);
}

static bool token_ok(struct app *a, struct slice authorization)
{
    static const char scheme[] = "Bearer ";
    const size_t n = sizeof scheme - 1;
    struct plan *p = app_plan(a);
    const char *want = p->admin_token;
    bool ok = !want ||
              (authorization.len == n + strlen(want) && memcmp(authorization.p, scheme, n) == 0 &&
               CRYPTO_memcmp(authorization.p + n, want, strlen(want)) == 0);
    plan_unref(p);
    return ok;
}

static void log_action(const struct reply *r, const char *action, const char *target,
                       const char *result)
{
    char client[PEER_ADDRESS_BUF] = "?";
    if (r->peer)
        peer_address(r->peer, client);
    log_info("admin", "action=%s target=%s client=%s result=%s", action, target, client, result);
}

/* main() waits for this signal and reads the file; /status tells the result. */
static void reload(struct app *a, struct reply *r)
{
    reply_begin(r, 202, json_fields);
    json_begin(r->out, NULL, '{');
    json_count(r->out, "reloads", atomic_load(&a->reloads));
    json_count(r->out, "reload_errors", atomic_load(&a->reload_errors));
    json_end(r->out, '}');
    buf_add(r->out, "\n", 1);
    reply_end(r);
    log_action(r, "reload", "configuration", "asked");
    (void)kill(getpid(), SIGHUP);
}

enum turned { TURNED, NOT_THERE, THE_LAST };

/* The last server of a service stays: to take all away, take the route away. */
static enum turned turn(struct backend *b, const char *address, bool drain)
{
    size_t at = b->n, others = 0;
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->server[i].address, address) == 0)
            at = i;
        else
            others += !b->balance[i].drained && b->balance[i].turn.weight > 0;
    if (at == b->n)
        return NOT_THERE;
    if (drain && others == 0)
        return THE_LAST;
    b->balance[at].drained = drain;
    return TURNED;
}

static void turn_server(struct app *a, const struct target *t, struct reply *r)
{
    static const struct problem_kind none = { 404, "urn:firn:problem:no-such-server",
                                              "No such server" },
                                     last = { 409, "urn:firn:problem:last-server",
                                              "The last server" };
    const bool drain = strcmp(t->what, "drain") == 0;
    enum turned how = NOT_THERE;
    struct plan *p = app_plan(a);
    for (size_t i = 0; i < p->config.services.n; i++) {
        struct backend *b = &p->backends[i];
        if (strcmp(b->conf->name, t->service) != 0)
            continue;
        pthread_mutex_lock(&b->lock);
        how = turn(b, t->address, drain);
        pthread_mutex_unlock(&b->lock);
    }
    plan_unref(p);
    char target[sizeof t->service + sizeof t->address];
    snprintf(target, sizeof target, "%s/%s", t->service, t->address);
    log_action(r, t->what, target, how == TURNED ? "done" : "refused");
    if (how == NOT_THERE) {
        admin_problem(r, &none, "no service has a server of this address; see /status");
    } else if (how == THE_LAST) {
        admin_problem(r, &last,
                      "the service has no other server that gets requests; enable one first");
    } else {
        reply_begin(r, 200, json_fields);
        json_begin(r->out, NULL, '{');
        json_text(r->out, "service", t->service);
        json_text(r->out, "server", t->address);
        json_bool(r->out, "drained", drain);
        json_end(r->out, '}');
        buf_add(r->out, "\n", 1);
        reply_end(r);
    }
}

void admin_act(struct service_ctx *w, const struct http_request *req, struct reply *r)
{
    static const struct problem_kind foreign = { 403, "urn:firn:problem:origin", "Another origin" },
                                     unknown = { 401, "urn:firn:problem:not-authenticated",
                                                 "Not authenticated" };
    struct target t;
    if (!origin_is_own(req)) {
        log_action(r, "post", "admin", "other_origin");
        admin_problem(r, &foreign, "only the admin page itself may do this in a browser");
    } else if (!token_ok(w->app, req->authorization)) {
        log_action(r, "post", "admin", "no_token");
        admin_problem(r, &unknown, "send Authorization: Bearer and the token of admin.token_file");
    } else if (read_target(req->path, &t)) {
        turn_server(w->app, &t, r);
    } else {
        reload(w->app, r);
    }
}
