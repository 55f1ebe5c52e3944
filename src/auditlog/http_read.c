/* GET /v1/users/{user}/logs and GET /v1/logs/{id}. Tested in tests/integration/auditlog.py. */
#include "auditlog/audit_id.h"
#include "auditlog/http_call.h"
#include "auditlog/query.h"
#include "auditlog/rows.h"
#include "auditlog/tracing.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROW_BYTES_ABOUT = 1024 }; /* of an entry, to bound what is asked for at once */

#define LINES_FIELDS "Content-Type: application/x-ndjson\r\nCache-Control: no-store\r\n"

static void read_free(struct read_job *j)
{
    buf_done(&j->out);
    free(j->span);
    free(j);
}

static struct read_job *read_new(struct call *c, struct slice tenant, struct slice user,
                                 struct slice again, void (*done)(struct job *j))
{
    struct read_job *j = calloc(1, sizeof *j + tenant.len + user.len + again.len);
    if (!j)
        return NULL;
    char *p = j->text;
    memcpy(p, tenant.p, tenant.len);
    j->tenant = (struct slice){ p, tenant.len };
    if (user.len > 0)
        memcpy(p + tenant.len, user.p, user.len);
    j->user = (struct slice){ p + tenant.len, user.len };
    if (again.len > 0)
        memcpy(p + tenant.len + user.len, again.p, again.len);
    j->again = (struct slice){ p + tenant.len + user.len, again.len };
    j->base =
        (struct job){ .back = c->ctx->outbox, .done = done, .rows = 1, .began_ns = mono_ns() };
    j->base.until_ns = j->base.began_ns + c->ctx->app->config->limits.wait_ms * 1000000;
    return j;
}

static void submit(struct call *c, struct read_job *j, uint32_t shard)
{
    if (!j) {
        problem_reply(c->r, PROBLEM_INTERNAL, "out of memory");
        return;
    }
    j->reply = reply_defer(c->r, DEFER_PIPELINED);
    if (!j->reply) {
        read_free(j);
        problem_reply(c->r, PROBLEM_BUSY, "too many requests of this connection wait");
        return;
    }
    j->ctx = c->ctx;
    j->span = trace_begin(c->ctx, c->req, j->id ? "/v1/logs/{id}" : "/v1/users/{user}/logs", shard);
    struct reply *reply = j->reply;
    int r = queue_add(reader_queue(app_database(c->ctx->app, shard)->reader), &j->base);
    if (r) {
        read_free(j);
        call_refused(c->ctx, reply, r);
    }
}

/* ---- one entry ---- */

static void entry_done(struct job *base)
{
    struct read_job *j = (struct read_job *)base;
    struct reply *r = j->reply;
    if (base->outcome != OUTCOME_DONE)
        answer_outcome(r, base);
    else if (j->found == 0)
        problem_reply(r, PROBLEM_ENTRY, "the tenant has no entry %" PRIu64, j->id);
    else
        reply_http(r, 200, JSON_FIELDS, j->out.p, j->out.len);
    trace_end(j->ctx, j->span, reply_status(r));
    j->span = NULL;
    reply_done(r);
    read_free(j);
}

void route_entry(struct call *c)
{
    struct slice tenant;
    uint64_t id;
    if (!call_allowed(c, SCOPE_READ, &tenant))
        return;
    if (c->ctx->app->config->id == CONFIG_ID_LEGACY) {
        problem_reply(c->r, PROBLEM_ENTRY,
                      "yyyyMMddHHmmssSSS says no shard: with id: legacy no entry is found by it");
        return;
    }
    if (audit_id_read(c->arg, &id) != 0) {
        problem_reply(c->r, PROBLEM_PARAMETER,
                      "an entry's ID is a decimal number, as POST answers "
                      "it");
        return;
    }
    struct read_job *j = read_new(c, tenant, (struct slice){ "", 0 }, (struct slice){ "", 0 },
                                  entry_done);
    if (j)
        j->id = id;
    submit(c, j, audit_id_shard(id));
}

/* ---- those of a user ---- */

static void list_done(struct job *base)
{
    struct read_job *j = (struct read_job *)base;
    struct reply *r = j->reply;
    const struct slice lines = { j->out.p ? j->out.p : "", j->out.len };
    const uint64_t next = j->more ? j->last : 0;
    char fields[512] = LINES_FIELDS;
    if (next)
        snprintf(fields, sizeof fields,
                 LINES_FIELDS "Link: <?limit=%u&before=%" PRIu64 "%.*s>; rel=\"next\"\r\n",
                 j->limit, next, (int)j->again.len, j->again.p);
    if (base->outcome != OUTCOME_DONE) {
        answer_outcome(r, base);
    } else if (j->lines) {
        reply_http(r, 200, fields, lines.p, lines.len);
    } else {
        reply_begin(r, 200, JSON_FIELDS);
        rows_page(r->out, lines, next);
        reply_end(r);
    }
    trace_end(j->ctx, j->span, reply_status(r));
    j->span = NULL;
    reply_done(r);
    read_free(j);
}

void route_list(struct call *c)
{
    struct firn_diag d = { 0, "" };
    struct slice tenant;
    char user[USER_BYTES_MAX + 1];
    size_t user_len;
    struct list_query q;
    if (!call_allowed(c, SCOPE_READ, &tenant) || !call_user(c, user, &user_len))
        return;
    if (list_query_read(c->req->query, &q, &d) != 0) {
        problem_reply(c->r, PROBLEM_PARAMETER, "%s", d.text);
        return;
    }
    const struct slice who = { user, user_len };
    struct read_job *j = read_new(c, tenant, who, (struct slice){ q.again, strlen(q.again) },
                                  list_done);
    if (j) {
        const bool legacy = c->ctx->app->config->id == CONFIG_ID_LEGACY;
        j->limit = q.limit;
        j->base.bytes = (size_t)q.limit * ROW_BYTES_ABOUT;
        j->since_us = q.since_us;
        j->until_us = q.until_us;
        j->from = legacy ? 0 : q.from;
        j->before = legacy && !q.has_before ? AUDIT_ID_MAX : q.before;
        j->lines = http_names_type(c->req->accept, "application/x-ndjson");
    }
    submit(c, j, shard_of_user(tenant, who));
}
