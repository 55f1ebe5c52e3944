/* GET /v1/nodes and /v1/slots: the store's members and its slots. Tested in
 * tests/integration/coordination.py and tests/integration/http_api.py. */
#include "server/http_call.h"
#include "server/slots.h"
#include "wire/json_write.h"

#include <stdlib.h>

static void write_node(struct buf *b, const struct node_listed *n)
{
    const struct member_record *r = &n->record;
    json_begin(b, NULL, '{');
    json_count(b, "number", n->number);
    json_text(b, "name", r->name);
    json_text(b, "address", r->address);
    json_text(b, "slots", r->slots);
    json_text(b, "version", r->version);
    json_text(b, "kind", r->kind);
    json_text(b, "state", n->state);
    json_bool(b, "self", n->self);
    json_count(b, "beat", r->beat);
    json_count(b, "ttl_ms", r->ttl_ms);
    json_count(b, "age_ms", n->age_ms);
    json_end(b, '}');
}

static void listed(struct http_wait *w)
{
    struct job *j = &w->ticket.job;
    if (j->result) {
        http_wait_fail(w, w->reply);
        http_wait_done(w);
        return;
    }
    struct buf *b = w->reply->out;
    reply_begin(w->reply, 200, "Content-Type: application/json\r\nCache-Control: no-store\r\n");
    buf_add_str(b, "{\"nodes\":[");
    for (size_t i = 0; i < j->list_n; i++)
        write_node(b, &j->nodes[i]);
    buf_add_str(b, "]}\n");
    reply_end(w->reply);
    free(j->nodes);
    j->nodes = NULL;
    http_wait_done(w);
}

void route_nodes(struct call *c)
{
    http_wait_list(c, JOB_NODES, "the list of nodes", listed);
}

/* --- slots --- */

static void write_slot(struct buf *b, const struct firn_layout *lease, const struct slot_listed *s)
{
    json_begin(b, NULL, '{');
    json_count(b, "slot", s->slot);
    json_text(b, "state", s->state);
    json_text(b, "name", s->name);
    json_time(b, "from", firn_layout_unix_us(lease, s->from));
    json_time(b, "until", firn_layout_unix_us(lease, s->until));
    json_end(b, '}');
}

/* Free slots are the most and say nothing more: they are counted only. */
static void slots_listed(struct http_wait *w)
{
    struct job *j = &w->ticket.job;
    if (j->result) {
        http_wait_fail(w, w->reply);
        http_wait_done(w);
        return;
    }
    struct buf *b = w->reply->out;
    size_t n_free = 0;
    reply_begin(w->reply, 200, "Content-Type: application/json\r\nCache-Control: no-store\r\n");
    buf_add_str(b, "{\"slots\":[");
    for (size_t i = 0; i < j->list_n; i++)
        if (strcmp(j->slots[i].state, "free") == 0)
            n_free++;
        else
            write_slot(b, &w->ctx->app->plan.lease, &j->slots[i]);
    json_end(b, ']');
    json_count(b, "first", j->list_n ? j->slots[0].slot : 0);
    json_count(b, "total", j->list_n);
    json_count(b, "free", n_free);
    buf_add_str(b, "}\n");
    reply_end(w->reply);
    free(j->slots);
    j->slots = NULL;
    http_wait_done(w);
}

void route_slots(struct call *c)
{
    http_wait_list(c, JOB_SLOTS, "the list of slots", slots_listed);
}
