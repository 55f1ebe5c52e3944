/* The link `fault`. Tested in tests/integration/gateway_bodies.py. */
#include "id/rng_take.h"
#include "daemon/metrics.h"
#include "proxy/bodies.h"
#include "proxy/worker.h"
#include "wire/json_write.h"

#include <stdio.h>

static enum link_result abort_with(struct call *c, unsigned status)
{
    static const char body[] = "{\"error\":\"injected fault\"}\n";
    atomic_fetch_add_explicit(&c->rules->aborted, 1, memory_order_relaxed);
    c->why = "an injected fault";
    call_reply(c, status, "Content-Type: application/json\r\nCache-Control: no-store\r\n",
               slice_of(body));
    return LINK_DONE;
}

static void on_alarm(struct alarm *a)
{
    struct call *c = (struct call *)((char *)a - offsetof(struct call, fault));
    if (c->fault_status)
        abort_with(c, c->fault_status);
    else
        call_resume(c);
}

enum link_result fault_request(struct call *c)
{
    const struct fault_rule *r = &c->rules->fault;
    if (!r->delay_ms && !r->abort_status)
        return LINK_NEXT;
    struct slice header = r->header ? http_head_value(c->head, r->header)
                                    : (struct slice){ NULL, 0 };
    struct fault f = fault_pick(r, header, firn__rng_take_u64(firn_rng_thread()));
    if (f.delay_ms && alarm_set(c->worker->loop, &c->fault, f.delay_ms, on_alarm) == 0) {
        atomic_fetch_add_explicit(&c->rules->delayed, 1, memory_order_relaxed);
        c->fault_status = f.status;
        return LINK_WAIT;
    }
    return f.status ? abort_with(c, f.status) : LINK_NEXT;
}

void fault_done(struct call *c)
{
    alarm_clear(&c->fault);
}

static bool injects(const struct plan *p, size_t i)
{
    return p->rules[i].fault.delay_ms || p->rules[i].fault.abort_status;
}

void fault_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    static const char name[] = "firn_proxy_faults_total";
    char labels[160];
    bool begun = false;
    (void)a;
    for (size_t i = 0; i < p->config.routes.n; i++) {
        if (!injects(p, i))
            continue;
        if (!begun)
            metric_head(m, name, "Faults that were injected.");
        begun = true;
        for (int k = 0; k < 2; k++) {
            snprintf(labels, sizeof labels, "route=\"%s\",fault=\"%s\"", p->config.routes.v[i].name,
                     k ? "abort" : "delay");
            metric_sample(m, name, labels,
                          (double)atomic_load(k ? &p->rules[i].aborted : &p->rules[i].delayed));
        }
    }
}

/* Routes that inject faults now: nobody should have to guess why requests fail. */
void fault_status(struct app *a, const struct plan *p, struct buf *b)
{
    (void)a;
    json_begin(b, "routes", '[');
    for (size_t i = 0; i < p->config.routes.n; i++) {
        if (!injects(p, i))
            continue;
        json_begin(b, NULL, '{');
        json_text(b, "name", p->config.routes.v[i].name);
        json_count(b, "delayed", atomic_load(&p->rules[i].delayed));
        json_count(b, "aborted", atomic_load(&p->rules[i].aborted));
        json_end(b, '}');
    }
    json_end(b, ']');
}
