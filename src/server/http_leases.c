/*
 * Slots for clients over HTTP: take, extend, give back. A client that may mint Snowflake IDs may
 * take a slot to make them with; the lease's name, 128 random bits that the client draws, permits
 * to extend it. Tested in tests/unit/server/http.c and tests/integration/client.py.
 */
#include "server/http_call.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

#include <ctype.h>
#include <stdio.h>

static void write_terms(struct http_wait *w)
{
    const struct lease_terms *t = &w->lease.ask.terms;
    const struct stamp_plan *plan = &w->ctx->app->plan;
    char layout[FIRN_LAYOUT_TEXT_BUF];
    struct buf *b = w->reply->out;
    firn_layout_format(&plan->layout[LEASED_SNOWFLAKE], layout);
    reply_begin(w->reply, 200, "Content-Type: application/json\r\nCache-Control: no-store\r\n");
    buf_add(b, "{", 1);
    json_text(b, "lease", w->lease.ask.id);
    json_id(b, "grant", t->grant.gen);
    json_count(b, "slot", t->grant.slot);
    json_id(b, "from", t->grant.from);
    json_id(b, "until", t->grant.until);
    json_id(b, "now", t->now);
    json_count(b, "window_ms", t->window);
    json_id(b, "floor", t->floor);
    json_count(b, "drift_ms", t->drift);
    json_text(b, "layout", layout);
    json_time(b, "ends", firn_layout_unix_us(&plan->lease, t->grant.until));
    buf_add(b, "}\n", 2);
    reply_end(w->reply);
}

static void came(struct http_wait *w)
{
    struct job *j = &w->ticket.job;
    if (j->result == 0 && w->lease.ask.what == LEASE_RETURN) {
        reply_begin(w->reply, 200, "Content-Type: application/json\r\nCache-Control: no-store\r\n");
        buf_add_str(w->reply->out, "{\"returned\":true}\n");
        reply_end(w->reply);
    } else if (j->result == 0) {
        write_terms(w);
    } else if (j->result == FIRN_ENOSLOT || j->result == FIRN_ENOENT) {
        call_count_error(w->ctx, w->route);
        problem_reply(w->reply, j->result == FIRN_ENOSLOT ? PROBLEM_NO_SLOT : PROBLEM_LEASE, "",
                      "%s", j->diag.text);
    } else {
        http_wait_fail(w, w->reply);
    }
    http_wait_done(w);
}

static bool id_ok(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isxdigit((unsigned char)p[i]) || isupper((unsigned char)p[i]))
            return false;
    return len == LEASE_ID_LEN;
}

/* {"lease":"...","last":"..."}; both may be absent. */
static int read_body(struct slice body, char id[LEASE_ID_LEN + 1], uint64_t *last,
                     struct firn_diag *d)
{
    struct json_reader j;
    char name[16];
    size_t len = 0;
    if (body.len == 0)
        return 0;
    json_start(&j, body.p, body.len, d);
    int r = json_object(&j);
    while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0) {
        if (strcmp(name, "lease") == 0) {
            r = json_string(&j, id, LEASE_ID_LEN + 1, &len);
            if (r == FIRN_ENOSPC || (r == 0 && !id_ok(id, len))) {
                snprintf(d->text, sizeof d->text,
                         "lease is a name that you draw: 128 random bits as 32 digits 0-9 a-f, new "
                         "for each lease");
                return FIRN_EINVAL;
            }
        } else if (strcmp(name, "last") == 0) {
            r = json_u64(&j, last);
        } else {
            snprintf(d->text, sizeof d->text, "there are the members lease and last, no other");
            return FIRN_EINVAL;
        }
    }
    return r < 0 ? r : json_finish(&j);
}

static void submit(struct call *c, int what, const char *id, uint64_t last)
{
    struct http_wait *w = http_wait_new(c, "", 0);
    if (!w)
        return;
    struct job *j = &w->ticket.job;
    j->what = JOB_LEASE;
    j->user = &w->lease;
    w->lease.ask = (struct lease_ask){ .what = what, .last = last };
    memcpy(w->lease.ask.id, id, LEASE_ID_LEN + 1);
    http_wait_submit(c, w, came);
}

void route_lease_take(struct call *c)
{
    char id[LEASE_ID_LEN + 1] = "";
    uint64_t last = 0;
    struct firn_diag d = { 0, "" };
    if (!call_allowed(c, GUARD_MINT_KIND, "snowflake", 9))
        return;
    int r = read_body(c->req->body, id, &last, &d);
    if (r == 0 && id[0] == '\0')
        r = FIRN_EINVAL;
    if (r) {
        call_fail(c, PROBLEM_BODY,
                  "%s; for example {\"lease\":\"5f0c3a9e7b1d4c8290ab6ef1d2c3b4a5\"}",
                  d.text[0] ? d.text : "a lease needs a name");
        return;
    }
    submit(c, LEASE_TAKE, id, 0);
}

static bool path_id_ok(struct call *c)
{
    if (!id_ok(c->arg, c->arg_len)) {
        call_fail(c, PROBLEM_LEASE, "a lease's name is 32 digits 0-9 a-f");
        return false;
    }
    c->arg[c->arg_len] = '\0';
    return true;
}

void route_lease_extend(struct call *c)
{
    char id[LEASE_ID_LEN + 1] = "";
    uint64_t last = 0;
    struct firn_diag d = { 0, "" };
    if (!call_allowed(c, GUARD_MINT_KIND, "snowflake", 9) || !path_id_ok(c))
        return;
    int r = read_body(c->req->body, id, &last, &d);
    if (r) {
        call_fail(c, PROBLEM_BODY, "%s; send {} or {\"last\":\"185363240994\"}",
                  d.text[0] ? d.text : firn_error_message(r));
        return;
    }
    submit(c, LEASE_EXTEND, c->arg, last);
}

void route_lease_return(struct call *c)
{
    if (call_allowed(c, GUARD_MINT_KIND, "snowflake", 9) && path_id_ok(c))
        submit(c, LEASE_RETURN, c->arg, 0);
}
