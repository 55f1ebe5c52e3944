/* POST /v1/users/{user}/logs. Tested in tests/integration/auditlog.py. */
#include "auditlog/http_call.h"
#include "auditlog/tracing.h"
#include "platform/mono.h"
#include "wire/json_write.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { ROWS_MAX = 1000 }; /* of limits.rows */

struct write_request { /* while it is read */
    struct call *call;
    struct slice tenant, user, key;
    bool list;
    size_t lines, text_max;
};

static void write_free(struct write_job *w)
{
    free(w->span);
    free(w->rows);
    free(w->ids);
    free(w);
}

/* ---- the answer ---- */

static void answer_ids(struct reply *r, const struct write_job *w, bool repeated)
{
    char fields[160];
    snprintf(fields, sizeof fields, JSON_FIELDS "%s",
             repeated ? "Idempotency-Replayed: true\r\n" : "");
    reply_begin(r, 201, fields);
    json_begin(r->out, NULL, '{');
    if (!w->list) {
        json_id(r->out, "id", w->ids[0]);
    } else {
        json_begin(r->out, "ids", '[');
        for (size_t i = 0; i < w->ids_n; i++)
            json_id(r->out, NULL, w->ids[i]);
        json_end(r->out, ']');
    }
    json_end(r->out, '}');
    buf_add(r->out, "\n", 1);
    reply_end(r);
}

static void write_done(struct job *j)
{
    struct write_job *w = (struct write_job *)j;
    struct service_ctx *ctx = w->ctx;
    struct reply *r = w->reply;
    if (r) {
        latency__more(&ctx->outcomes[j->outcome], 1);
        if (j->outcome == OUTCOME_DONE || j->outcome == OUTCOME_REPEATED)
            answer_ids(r, w, j->outcome == OUTCOME_REPEATED);
        else
            answer_outcome(r, j);
        trace_write_end(ctx, w, reply_status(r));
        reply_done(r);
    }
    write_free(w);
}

/* ---- the request ---- */

static struct slice keep(struct write_job *w, size_t *used, const char *p, size_t len)
{
    char *to = w->text + *used;
    memcpy(to, p, len);
    *used += len;
    return (struct slice){ to, len };
}

static bool digest(const struct write_request *q, uint8_t out[DIGEST_BYTES])
{
    const struct slice body = q->call->req->body;
    EVP_MD_CTX *m = EVP_MD_CTX_new();
    bool ok = m && EVP_DigestInit_ex(m, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(m, q->user.p, q->user.len) == 1 &&
              EVP_DigestUpdate(m, q->list ? "\0l" : "\0o", 2) == 1 &&
              EVP_DigestUpdate(m, body.p, body.len) == 1 && EVP_DigestFinal_ex(m, out, NULL) == 1;
    EVP_MD_CTX_free(m);
    return ok;
}

/* One entry into the job. False: the problem is answered. */
static bool add_entry(const struct write_request *q, struct write_job *w, struct slice json,
                      size_t *used)
{
    struct firn_diag d = { 0, "" };
    struct entry e;
    const uint64_t detail_max = q->call->ctx->app->config->limits.detail_bytes;
    char line[32] = "";
    if (q->list)
        snprintf(line, sizeof line, "line %zu: ", w->rows_n + 1);
    if (entry_read(json, &e, &d) != 0) {
        problem_reply(q->call->r, PROBLEM_BODY, "%s%s", line, d.text);
        return false;
    }
    if (e.detail.len > detail_max) {
        problem_reply(q->call->r, PROBLEM_TOO_LARGE, "%sdetail has %zu bytes, more than %llu", line,
                      e.detail.len, (unsigned long long)detail_max);
        return false;
    }
    struct row *row = &w->rows[w->rows_n++];
    row->actor = keep(w, used, e.actor, e.actor_len);
    row->action = keep(w, used, e.action, e.action_len);
    row->detail = keep(w, used, e.detail.p, e.detail.len);
    return true;
}

static bool add_entries(const struct write_request *q, struct write_job *w, size_t *used)
{
    struct slice rest = q->call->req->body, line;
    if (!q->list)
        return add_entry(q, w, rest, used);
    while (entry_line_next(&rest, &line))
        if (!add_entry(q, w, line, used))
            return false;
    return true;
}

static struct write_job *make_job(const struct write_request *q)
{
    const struct config *c = q->call->ctx->app->config;
    struct write_job *w = calloc(1, sizeof *w + q->text_max);
    if (w)
        w->rows = calloc(q->lines, sizeof *w->rows);
    if (!w || !w->rows || (q->key.p && !digest(q, w->digest))) {
        if (w)
            write_free(w);
        problem_reply(q->call->r, PROBLEM_INTERNAL, "out of memory");
        return NULL;
    }
    size_t used = 0;
    w->ctx = q->call->ctx;
    w->list = q->list;
    w->tenant = keep(w, &used, q->tenant.p, q->tenant.len);
    w->user = keep(w, &used, q->user.p, q->user.len);
    if (q->key.p)
        w->key = keep(w, &used, q->key.p, q->key.len);
    if (!add_entries(q, w, &used)) {
        write_free(w);
        return NULL;
    }
    firn_assert(used <= q->text_max && w->rows_n == q->lines, "used=%zu of %zu", used, q->text_max);
    w->shard = shard_of_user(w->tenant, w->user);
    w->at_us = (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000);
    w->base = (struct job){ .back = q->call->ctx->outbox,
                            .done = write_done,
                            .rows = w->rows_n,
                            .bytes = sizeof *w + q->text_max + w->rows_n * sizeof *w->rows,
                            .began_ns = mono_ns() };
    w->base.until_ns = w->base.began_ns + c->limits.wait_ms * 1000000;
    return w;
}

/* The form of the body; false: the problem is answered. */
static bool read_form(struct write_request *q)
{
    const struct http_request *req = q->call->req;
    const uint64_t rows_max = q->call->ctx->app->config->limits.rows;
    const bool typed = req->content_type.p && req->content_type.len > 0;
    q->list = typed && (http_type_is(req->content_type, "application/x-ndjson") ||
                        http_type_is(req->content_type, "application/ndjson"));
    if (typed && !q->list && !http_type_is(req->content_type, "application/json")) {
        problem_reply(q->call->r, PROBLEM_MEDIA,
                      "send one entry as application/json, or several as application/x-ndjson, an "
                      "object per line");
        return false;
    }
    q->lines = 1;
    if (q->list) {
        struct slice rest = req->body, line;
        for (q->lines = 0; entry_line_next(&rest, &line); q->lines++) {
        }
    }
    if (q->lines == 0) {
        problem_reply(q->call->r, PROBLEM_BODY, "there is no entry in the body");
        return false;
    }
    if (q->lines > rows_max) {
        problem_reply(q->call->r, PROBLEM_TOO_LARGE, "there are %zu entries, at most %llu",
                      q->lines, (unsigned long long)rows_max);
        return false;
    }
    q->text_max = req->body.len + q->tenant.len + q->user.len + q->key.len + 2 * q->lines;
    return true;
}

void route_write(struct call *c)
{
    struct write_request q = { .call = c, .key = c->req->idempotency_key };
    char user[USER_BYTES_MAX + 1];
    size_t user_len;
    if (!call_allowed(c, SCOPE_WRITE, &q.tenant) || !call_user(c, user, &user_len))
        return;
    q.user = (struct slice){ user, user_len };
    if (q.key.p && !entry_key_valid(q.key)) {
        problem_reply(c->r, PROBLEM_KEY, "an Idempotency-Key has 1 to %d visible ASCII characters",
                      KEY_BYTES_MAX);
        return;
    }
    if (!read_form(&q))
        return;
    struct write_job *w = make_job(&q);
    if (!w)
        return;
    w->reply = reply_defer(c->r, DEFER_PIPELINED);
    if (!w->reply) {
        write_free(w);
        problem_reply(c->r, PROBLEM_BUSY, "too many requests of this connection wait");
        return;
    }
    w->span = trace_begin(c->ctx, c->req, "/v1/users/{user}/logs", w->shard);
    struct reply *reply = w->reply;
    int r = queue_add(writer_queue(app_database(c->ctx->app, w->shard)->writer), &w->base);
    if (r) {
        write_free(w);
        call_refused(c->ctx, reply, r);
    }
}
