/*
 * The Raft cluster over HTTP: its members, and changes of them. The request goes to the member in
 * this process, which passes it on to the leader; the answer comes back to the loop as a job does.
 * Tested in tests/integration/cluster.py.
 */
#include "server/http_call.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <stdlib.h>

enum { STATUS_MS = 500, CHANGE_MS = 30 * 1000 };

#define NAME  "@cluster" /* in a token's list of sequences; '*' covers it too */
#define PLAIN "Content-Type: text/plain\r\nCache-Control: no-store\r\n"
#define JSON  "Content-Type: application/json\r\nCache-Control: no-store\r\n"

#ifdef FIRN_HAVE_RAFT
#include "raft/node.h"

/* On the cluster's thread. */
static void came(void *user, const char *reply, size_t len)
{
    struct http_wait *w = user;
    struct job *j = &w->ticket.job;
    struct frame f;
    struct frame_answer a = { .result = FIRN_ECLOSED };
    struct frame_in in = { NULL, 0, false };
    if (reply && frame_parse(reply, len, &f) > 0) {
        in = (struct frame_in){ f.body, f.len, false };
        if (frame_get_reply(&in, &a) != 0)
            a.result = FIRN_EUNKNOWN;
    }
    if (a.result == 0 && in.len > 0) {
        w->text = malloc(in.len);
        w->text_len = in.len;
        if (w->text)
            memcpy(w->text, in.p, in.len);
        else
            a.result = FIRN_ENOMEM;
    } else if (a.result != 0) {
        struct firn_slice why = frame_get_text(&in, FRAME_MAX);
        snprintf(j->diag.text, sizeof j->diag.text, "%.*s", (int)why.len, why.p ? why.p : "");
    }
    job_return(j, a.result);
}

static void refuse(struct http_wait *w)
{
    const struct job *j = &w->ticket.job;
    enum problem p = j->result == FIRN_ENOENT      ? PROBLEM_CLUSTER
                     : j->result == FIRN_ECONFLICT ? PROBLEM_MEMBERS
                     : j->result == FIRN_EAUTH     ? PROBLEM_NOT_ALLOWED
                     : j->result == FIRN_EINVAL    ? PROBLEM_BODY
                                                   : PROBLEM_STORE;
    call_count_error(w->ctx, w->route);
    problem_reply(w->reply, p, "", "%s",
                  j->diag.text[0] ? j->diag.text : firn_error_message(j->result));
}

static void described(struct job *j)
{
    struct http_wait *w = (struct http_wait *)(void *)j;
    if (j->result) {
        refuse(w);
    } else {
        reply_begin(w->reply, 200, w->answer.format == ANSWER_TEXT ? PLAIN : JSON);
        buf_add(w->reply->out, w->text, w->text_len);
        buf_add(w->reply->out, "\n", w->answer.format == ANSWER_TEXT ? 0 : 1);
        reply_end(w->reply);
    }
    http_wait_done(w);
}

static void changed(struct job *j)
{
    struct http_wait *w = (struct http_wait *)(void *)j;
    audit_end(&w->audit, j->result, j->diag.text);
    if (j->result) {
        refuse(w);
    } else {
        reply_begin(w->reply, 200, JSON);
        json_begin(w->reply->out, NULL, '{');
        json_text(w->reply->out, "done", j->name);
        json_end(w->reply->out, '}');
        buf_add(w->reply->out, "\n", 1);
        reply_end(w->reply);
    }
    http_wait_done(w);
}

static void submit(struct call *c, struct http_wait *w, struct frame_out *o,
                   void (*done)(struct job *j))
{
    w->reply = reply_defer(c->r, DEFER_PIPELINED);
    if (!w->reply) {
        call_fail(c, PROBLEM_BUSY, "no memory to wait with: ask again in a moment");
        http_wait_free(w);
        return;
    }
    w->ticket.job.done = done;
    w->ticket.job.back = c->ctx->outbox;
    frame_end(o);
    node_submit(c->ctx->app->cluster, o->p, o->len, came, w);
}

static bool member(struct call *c)
{
    if (c->ctx->app->cluster)
        return true;
    call_fail(c, PROBLEM_CLUSTER,
              "this server is no member of a cluster: its store is not raft:, see docs/cluster.md");
    return false;
}

void route_cluster(struct call *c)
{
    char room[FRAME_HEAD + 8];
    struct frame_out o = { .p = room, .cap = sizeof room };
    if (!call_allowed(c, GUARD_LIST, "the cluster", 11) || !member(c))
        return;
    struct http_wait *w = http_wait_new(c, "", 0);
    if (!w)
        return;
    w->answer.format = answer_format(c->req->accept) == ANSWER_TEXT ? ANSWER_TEXT : ANSWER_JSON;
    frame_begin(&o, FRAME_STATUS, 0, STATUS_MS, 0);
    frame_u8(&o, w->answer.format == ANSWER_TEXT);
    submit(c, w, &o, described);
}

/* ---- changes ---- */

struct wanted {
    char action[16], id[FRAME_ADDRESS_MAX + 1], address[FRAME_ADDRESS_MAX + 1];
    bool force;
};

static int read_wanted(struct slice body, struct wanted *w, struct firn_diag *d)
{
    struct json_reader j;
    char name[16];
    *w = (struct wanted){ "", "", "", false };
    json_start(&j, body.p, body.len, d);
    int r = json_object(&j);
    while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0) {
        if (strcmp(name, "action") == 0)
            r = json_string(&j, w->action, sizeof w->action, NULL);
        else if (strcmp(name, "id") == 0)
            r = json_string(&j, w->id, sizeof w->id, NULL);
        else if (strcmp(name, "address") == 0)
            r = json_string(&j, w->address, sizeof w->address, NULL);
        else if (strcmp(name, "force") == 0)
            r = json_boolean(&j, &w->force);
        else
            r = FIRN_EINVAL;
    }
    return r < 0 ? r : json_finish(&j);
}

#define HEX "0123456789abcdefABCDEF"

static bool ids_only(const char *p)
{
    for (size_t n;; p += n + 1) {
        n = strspn(p, HEX);
        if (n == 0 || n > 16 || (p[n] != ',' && p[n] != '\0'))
            return false;
        if (p[n] == '\0')
            return true;
    }
}

void route_cluster_change(struct call *c)
{
    static const char *const actions[] = { [CHANGE_ADD] = "add",
                                           [CHANGE_REMOVE] = "remove",
                                           [CHANGE_PROMOTE] = "promote",
                                           [CHANGE_TRANSFER] = "transfer" };
    struct wanted want;
    struct firn_diag d = { 0, "" };
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32];
    struct frame_out o = { .p = room, .cap = sizeof room };
    if (!call_allowed(c, GUARD_OPERATE, NAME, sizeof NAME - 1) || !member(c))
        return;
    int r = read_wanted(c->req->body, &want, &d), action = 0;
    for (int i = CHANGE_ADD; i <= CHANGE_TRANSFER; i++)
        if (strcmp(actions[i], want.action) == 0)
            action = i;
    unsigned long long id = strtoull(want.id, NULL, 16);
    size_t len = strlen(want.id);
    bool whole = len <= 16 && strspn(want.id, HEX) == len;
    if (want.force) { /* all that are lost */
        whole = action == CHANGE_REMOVE && ids_only(want.id);
        action = CHANGE_FORCE;
    }
    if (r != 0 || !action || !whole || (id == 0 && action != CHANGE_TRANSFER) ||
        (action == CHANGE_ADD) != (want.address[0] != '\0')) {
        call_fail(
            c, PROBLEM_BODY,
            "%s; send {\"action\":\"remove\",\"id\":\"0123456789abcdef\"}: add (with address), "
            "remove, promote, transfer (the id may be left out); remove with \"force\":true and "
            "the ids of all other members, with commas between them, where they are lost",
            d.text[0] ? d.text : "not understood");
        return;
    }
    struct http_wait *w = http_wait_new(c, want.action, strlen(want.action));
    if (!w)
        return;
    char target[AUDIT_TARGET_BUF]; /* a member's id, and where it is if it comes in */
    snprintf(target, sizeof target, "%.32s%s%.120s", want.id, want.address[0] ? "@" : "",
             want.address);
    http_wait_audit(c, w, action == CHANGE_FORCE ? "force" : actions[action],
                    (struct slice){ target, strlen(target) });
    frame_begin(&o, FRAME_CHANGE, 0, CHANGE_MS, 0);
    frame_u8(&o, (uint8_t)action);
    frame_u64(&o, id);
    const char *text = want.force ? want.id : want.address;
    frame_text(&o, firn_slice(text, strlen(text)));
    submit(c, w, &o, changed);
}

#else

void route_cluster(struct call *c)
{
    call_fail(c, PROBLEM_CLUSTER, "this firnd was built without raft:");
}

void route_cluster_change(struct call *c)
{
    route_cluster(c);
}
#endif
