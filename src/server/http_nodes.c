/* GET /v1/nodes: the store's members. Tested in tests/integration/coordination.py. */
#include "server/http_call.h"
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
