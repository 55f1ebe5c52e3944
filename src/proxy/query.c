/*
 * GraphQL over HTTP: the request's query is planned and executed (proxy/graphql), with requests to
 * services as parts of this call, a few at a time, and one deadline for all. Tested in
 * tests/integration/gateway_graphql.py and tests/differential/graphql.
 */
#include "proxy/query.h"
#include "daemon/metrics.h"
#include "proxy/collect.h"
#include "proxy/gather.h"
#include "proxy/graphql/execute.h"
#include "proxy/graphql/parse.h"
#include "proxy/graphql/validate.h"
#include "proxy/json_pick.h"
#include "proxy/worker.h"
#include "wire/url.h"

#include <stdlib.h>

enum {
    REQUEST_BYTES_MAX = 256 * 1024, /* of a query with its variables */
    MEMORY_MAX = 32 * 1024 * 1024,  /* of its document, plan and result */
    ANSWER_BYTES_MAX = 16 * 1024 * 1024,
    PARALLEL_MAX = 16, /* requests to services at once */
};

struct query_part {
    struct gather_part part;
    struct gql_fetch *fetch;
    struct query_part *next;
};

struct query {
    struct call *c;
    const struct plan *plan;
    struct arena memory;
    struct gql_errors errors;
    struct gql_execution run;
    struct gather gather;
    struct query_part *parts;
    size_t running;
    uint64_t bytes; /* of services' answers so far */
    bool pumping;
};

struct asked { /* what the request has; absent: nothing */
    struct slice query, variables, name;
};

/* --- the answer --- */

/* The call is gone afterwards. */
static void reply(struct query *q, unsigned status, enum query_result how, struct buf *b)
{
    struct call *c = q->c;
    struct buf body = *b; /* the query goes with the call */
    latency__more(&c->worker->queries[how], 1);
    buf_add(&body, "\n", 1);
    call_reply(c, status, gather_fields(&q->gather), (struct slice){ body.p, body.len });
    buf_done(&body);
}

static void refuse(struct query *q, unsigned status)
{
    struct buf b;
    buf_init(&b, ANSWER_BYTES_MAX);
    gql_write_errors(&q->errors, &b);
    reply(q, status, QUERY_REFUSED, &b);
}

static void refuse_as(struct query *q, unsigned status, const char *why)
{
    if (q->memory.failed) { /* room for the error */
        arena_done(&q->memory);
        q->errors = (struct gql_errors){ .a = &q->memory };
    }
    gql_blame(&q->errors, (struct gql_place){ 1, 1 }, "%s", why);
    refuse(q, status);
}

static void finish(struct query *q, const char *why)
{
    struct buf b;
    buf_init(&b, ANSWER_BYTES_MAX);
    size_t errors = gql_execute_write(&q->run, why, &b);
    if (!b.failed && !q->memory.failed) {
        reply(q, 200, errors ? QUERY_PARTIAL : QUERY_OK, &b);
        return;
    }
    buf_done(&b);
    refuse_as(q, 200, "the answer is too large");
}

/* --- requests to services --- */

static void pump(struct query *q)
{
    struct gql_fetch *f;
    if (q->pumping)
        return;
    q->pumping = true;
    while (!q->memory.failed && q->running < PARALLEL_MAX &&
           (f = gql_execute_next(&q->run)) != NULL) {
        struct query_part *p = calloc(1, sizeof *p);
        if (!p) {
            gql_execute_answer(&q->run, f, (struct slice){ NULL, 0 }, "there is no memory left");
            continue;
        }
        p->fetch = f;
        p->next = q->parts;
        q->parts = p;
        q->running++;
        gather_start(&q->gather, &p->part, &q->plan->backends[f->get->backend], f->target);
    }
    q->pumping = false;
    if (gql_execute_over(&q->run) || q->memory.failed)
        finish(q, NULL);
}

static void on_over(struct gather *g, struct gather_part *part)
{
    struct query *q = (struct query *)((char *)g - offsetof(struct query, gather));
    struct query_part *p = (struct query_part *)((char *)part - offsetof(struct query_part, part));
    const char *why = part->why;
    struct slice json = { NULL, 0 };
    q->running--;
    q->bytes += part->body.len;
    if (why && part->status == 404 && !part->own) { /* there is none: null */
        why = NULL;
    } else if (!why && q->bytes > q->plan->config.graphql.bytes) {
        why = "the services' answers are too large together";
        gather_drop(part);
    } else if (!why && part->status != 204) {
        json = json_whole(part->body.p, part->body.len);
        why = json.p ? NULL : "the service's answer is not JSON";
    }
    gql_execute_answer(&q->run, p->fetch, json, why);
    pump(q);
}

static void on_deadline(struct alarm *a)
{
    struct call *c = (struct call *)((char *)a - offsetof(struct call, deadline));
    for (struct query_part *p = c->query->parts; p; p = p->next)
        gather_stop(&p->part, 504, "it was not there in time");
    finish(c->query, "it was not there in time");
}

static bool put_header(void *user, struct slice want, struct buf *out)
{
    const struct call *c = user;
    for (size_t i = 0; i < c->request.n; i++) {
        const struct http_header *h = &c->request.v[i];
        if (h->name.len == want.len && strncasecmp(h->name.p, want.p, want.len) == 0) {
            if (h->value.len > 0)
                buf_add(out, h->value.p, h->value.len);
            return true;
        }
    }
    return false;
}

static bool mints(void *user, const struct gql_get *get, struct slice target)
{
    const struct call *c = user;
    return gather_mints(&c->query->plan->backends[get->backend], target);
}

/* --- the request --- */

static bool decoded(struct query *q, struct slice text, struct slice *out)
{
    char *to = arena_get(&q->memory, text.len + 1);
    size_t len;
    if (!to || url_decode(text, true, to, text.len + 1, &len) != 0)
        return false;
    *out = (struct slice){ to, len };
    return true;
}

static const char *read_url(struct query *q, struct asked *out)
{
    struct slice query = q->c->head->query, name, value;
    bool good = true;
    while (good && query.p && url_query_next(&query, &name, &value)) {
        struct slice *to = slice_is(name, "query")           ? &out->query
                           : slice_is(name, "variables")     ? &out->variables
                           : slice_is(name, "operationName") ? &out->name
                                                             : NULL;
        good = !to || !value.p || decoded(q, value, to);
    }
    if (out->variables.len > 0)
        out->variables = json_whole(out->variables.p, out->variables.len);
    else
        out->variables.p = NULL;
    if (out->name.len == 0)
        out->name.p = NULL;
    return good ? NULL : "the query of the URL cannot be decoded";
}

static const char *read_text(struct query *q, struct slice json, struct slice *out)
{
    struct buf b;
    if (!json.p || json_type_of(json) == JSON_NULL)
        return NULL;
    if (json_type_of(json) != JSON_STRING)
        return "query and operationName are strings";
    buf_init(&b, json.len + 1);
    bool good = json_as_text(json, &b);
    *out = arena_copy(&q->memory, (struct slice){ b.p, b.len });
    buf_done(&b);
    return good && out->p ? NULL : "the query is too large, or has a NUL in it";
}

static const char *read_body(struct query *q, struct asked *out)
{
    const struct buf *b = q->c->collected ? &q->c->collected->bytes : NULL;
    struct slice type = http_head_value(q->c->head, "content-type");
    const char *end = type.p ? memchr(type.p, ';', type.len) : NULL;
    if (end)
        type.len = (size_t)(end - type.p);
    while (type.len > 0 && type.p[type.len - 1] == ' ')
        type.len--;
    if (!type.p || !http_word_is(type, "application/json"))
        return "send the query as application/json";
    struct slice json = b ? json_whole(b->p, b->len) : (struct slice){ NULL, 0 };
    if (json_type_of(json) != JSON_OBJECT)
        return "the body is no JSON object, as in {\"query\":\"{ ... }\"}";
    out->variables = json_pick(json, "variables");
    const char *why = read_text(q, json_pick(json, "query"), &out->query);
    return why ? why : read_text(q, json_pick(json, "operationName"), &out->name);
}

/* NULL: it can be executed. Otherwise the status of the refusal: 400 where it is no GraphQL request
 * at all, 200 where the errors of its query are the answer. */
static unsigned make_plan(struct query *q, const struct asked *in, struct gql_plan *plan)
{
    const struct config *conf = &q->plan->config;
    const struct gql_schema *s = &q->plan->schema;
    struct gql_document d;
    const enum json_type type = json_type_of(in->variables);
    if (!in->query.p)
        return gql_blame(&q->errors, (struct gql_place){ 1, 1 }, "there is no query"), 400;
    if (in->variables.p && type != JSON_OBJECT && type != JSON_NULL)
        return gql_blame(&q->errors, (struct gql_place){ 1, 1 }, "variables are a JSON object"),
               400;
    if (gql_parse(in->query.p, in->query.len, &d, &q->errors) != 0)
        return 200;
    if (gql_validate(s, &d, &q->errors) != 0)
        return 200;
    struct gql_operation *op = gql_choose(&d, in->name, &q->errors);
    struct gql_limits *limits = arena_get(&q->memory, sizeof *limits);
    if (!op || !limits)
        return 200;
    *limits = (struct gql_limits){ conf->graphql.depth, conf->graphql.cost, conf->graphql.calls,
                                   conf->graphql.introspection };
    q->run = (struct gql_execution){ .s = s,
                                     .limits = limits,
                                     .a = &q->memory,
                                     .header = put_header,
                                     .mints = mints,
                                     .user = q->c };
    return gql_plan(s, op, in->variables, limits, plan, &q->errors) == 0 ? 0 : 200;
}

/* The whole request is here. The call may be gone afterwards. */
static void begin(struct call *c)
{
    struct query *q = c->query;
    struct asked in = { .query = { NULL, 0 } };
    struct gql_plan plan;
    const uint64_t ms = c->route->timeout_ms ? c->route->timeout_ms
                                             : q->plan->config.graphql.timeout_ms;
    const char *why = slice_is(c->head->method, "POST") ? read_body(q, &in) : read_url(q, &in);
    if (why) {
        refuse_as(q, 400, why);
        return;
    }
    unsigned status = make_plan(q, &in, &plan);
    if (status) {
        refuse(q, status);
        return;
    }
    if (gql_execute(&q->run, &plan) != 0) {
        refuse_as(q, 200, "the answer is too large");
        return;
    }
    if (alarm_set(c->worker->loop, &c->deadline, ms, on_deadline) != 0) {
        call_problem(c, 503, "the gateway is out of memory");
        return;
    }
    pump(q);
}

enum link_result query_request(struct call *c)
{
    const struct plan *plan = c->view->plan;
    if (!c->route->graphql)
        return LINK_NEXT;
    if (!slice_is(c->head->method, "GET") && !slice_is(c->head->method, "POST") &&
        !slice_is(c->head->method, "HEAD")) {
        call_problem_with(c, 405, "Allow: GET, HEAD, POST\r\n", "GraphQL takes GET and POST");
        return LINK_DONE;
    }
    struct query *q = calloc(1, sizeof *q);
    if (!q) {
        call_problem(c, 503, "the gateway is out of memory");
        return LINK_DONE;
    }
    c->query = q;
    q->c = c;
    q->plan = plan;
    q->memory.max = MEMORY_MAX;
    q->errors.a = &q->memory;
    gather_init(&q->gather, c, (size_t)plan->config.graphql.bytes, on_over);
    enum link_result r = collect_begin(c, REQUEST_BYTES_MAX, begin);
    if (r != LINK_NEXT)
        return r;
    begin(c);
    return LINK_WAIT;
}

void query_done(struct call *c)
{
    struct query *q = c->query;
    if (!q)
        return;
    for (struct query_part *p = q->parts, *next; p; p = next) {
        next = p->next;
        gather_part_done(&p->part);
        free(p);
    }
    arena_done(&q->memory);
    free(q);
    c->query = NULL;
}

void query_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    static const char name[] = "firn_proxy_graphql_queries_total";
    static const char *const results[] = {
        [QUERY_OK] = "ok", [QUERY_PARTIAL] = "partial", [QUERY_REFUSED] = "refused"
    };
    (void)p;
    metric_head(m, name, "GraphQL queries: answered, answered with errors, or not executed.");
    for (size_t k = 0; k < sizeof results / sizeof results[0]; k++) {
        uint64_t n = 0;
        for (size_t i = 0; i < a->workers_n; i++)
            n += __atomic_load_n(&a->workers[i].queries[k], __ATOMIC_RELAXED);
        metric_value(m, name, "result", results[k], n);
    }
}
