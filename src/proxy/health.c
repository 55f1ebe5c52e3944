/*
 * Active health checks: the first loop asks each server of the services that have a health_path for
 * it, and two equal results in a row change its state. Any answer from 200 to 399 is a good one.
 * Tested in tests/integration/gateway.py.
 */
#include "daemon/log.h"
#include "proxy/worker.h"
#include "wire/proxy_protocol.h"

#include <stdio.h>
#include <stdlib.h>

enum { IN_A_ROW = 2 };

struct check {
    struct alarm alarm;
    struct health *health;
    size_t backend, server;
    struct exchange *x;
    unsigned status;
};

struct health {
    struct service_ctx *worker;
    struct view *view;
    size_t n;
    struct check checks[];
};

static void begin(struct alarm *a);

static void again(struct check *k)
{
    struct health *h = k->health;
    const struct config_service *s = h->view->plan->backends[k->backend].conf;
    if (alarm_set(h->worker->loop, &k->alarm, s->health_ms, begin) != 0)
        log_error("health_check_ended", "service=%s cause=%s", s->name, "out of memory");
}

static void result(struct check *k, bool good)
{
    struct health *h = k->health;
    struct backend *b = &h->view->plan->backends[k->backend];
    struct server *s = &b->server[k->server];
    bool changed = false;
    pthread_mutex_lock(&b->lock);
    struct balance_server *state = &b->balance[k->server];
    s->health_in_a_row = good == !state->down ? 0 : s->health_in_a_row + 1;
    if (s->health_in_a_row >= IN_A_ROW) {
        s->health_in_a_row = 0;
        state->down = !good;
        changed = true;
    }
    pthread_mutex_unlock(&b->lock);
    if (changed && good)
        log_info("server_up", "service=%s server=%s", b->conf->name, s->address);
    else if (changed)
        log_warn("server_down", "service=%s server=%s cause=%s", b->conf->name, s->address,
                 "its health_path does not answer as it should");
    again(k);
}

static void on_ready(void *user)
{
    (void)user;
}

static void on_head(void *user, const struct exchange_answer *a)
{
    ((struct check *)user)->status = a->head->status;
}

static bool on_body(void *user, const char *p, size_t len)
{
    (void)user;
    (void)p;
    (void)len;
    return true;
}

static void on_done(void *user, enum exchange_end end, const char *why, struct slice trailers)
{
    struct check *k = user;
    (void)why;
    (void)trailers;
    k->x = NULL;
    alarm_clear(&k->alarm);
    if (end == EXCHANGE_CROWDED) /* all connections are in use: that says nothing */
        again(k);
    else if (end != EXCHANGE_CLOSED)
        result(k, end == EXCHANGE_OK && k->status >= 200 && k->status < 400);
}

static const struct exchange_calls calls = {
    .ready = on_ready, .head = on_head, .body = on_body, .done = on_done
};

static void too_late(struct alarm *a)
{
    struct check *k = (struct check *)a;
    exchange_cancel(k->x);
    k->x = NULL;
    result(k, false);
}

static void begin(struct alarm *a)
{
    struct check *k = (struct check *)a;
    struct health *h = k->health;
    struct backend *b = &h->view->plan->backends[k->backend];
    struct upstream *u = worker_pool(h->worker, h->view, k->backend, k->server);
    char lines[512];
    const char *host = b->conf->host ? b->conf->host : server_host(&b->server[k->server]);
    int n = snprintf(lines, sizeof lines, "Host: %.300s\r\nUser-Agent: firn-proxy health\r\n",
                     host);
    struct exchange_request req = { .method = { "GET", 3 },
                                    .target = slice_of(b->conf->health_path),
                                    .fields = { lines, (size_t)n } };
    char proxy[PROXY_WRITE_MAX]; /* the gateway speaks for itself */
    if (b->conf->proxy_protocol)
        req.proxy = (struct slice){ proxy, proxy_header_write(NULL, NULL, proxy) };
    k->status = 0;
    int r = u ? exchange_begin(u, &req, &calls, k, &k->x) : FIRN_ENOMEM;
    if (r == FIRN_EAGAIN) {
        again(k);
    } else if (r != 0 ||
               alarm_set(h->worker->loop, &k->alarm, b->conf->first_byte_ms, too_late) != 0) {
        if (k->x)
            exchange_cancel(k->x);
        k->x = NULL;
        result(k, false);
    }
}

int health_new(struct service_ctx *w, struct view *v, struct health **out)
{
    const struct plan *p = v->plan;
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < p->config.services.n; i++)
        n += p->backends[i].conf->health_path ? p->backends[i].n : 0;
    if (n == 0)
        return 0;
    struct health *h = calloc(1, sizeof *h + n * sizeof *h->checks);
    if (!h)
        return FIRN_ENOMEM;
    h->worker = w;
    h->view = v;
    v->refs++;
    for (size_t i = 0; i < p->config.services.n; i++)
        for (size_t k = 0; p->backends[i].conf->health_path && k < p->backends[i].n; k++) {
            struct check *c = &h->checks[h->n++];
            *c = (struct check){ .health = h, .backend = i, .server = k };
            if (alarm_set(w->loop, &c->alarm, 1 + 7 * h->n, begin) != 0) {
                health_free(h);
                return FIRN_ENOMEM;
            }
        }
    *out = h;
    return 0;
}

void health_free(struct health *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->n; i++) {
        alarm_clear(&h->checks[i].alarm);
        if (h->checks[i].x)
            exchange_cancel(h->checks[i].x);
    }
    view_unref(h->worker, h->view);
    free(h);
}
