/* Sequences over HTTP: list, create, describe. Taking numbers is minting: http_ids.c. Tested in
 * tests/unit/server/http.c. */
#include "server/http_call.h"
#include "firn/dated.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const mode_names[] = { [SEQ_GAPLESS] = "gapless", [SEQ_RANGE] = "range" };
static const char *const reset_names[] = {
    [FIRN_DATED_DAY] = "day", [FIRN_DATED_MONTH] = "month", [FIRN_DATED_YEAR] = "year"
};

enum { LIST_DEFAULT = 100, LIST_MAX = 1000 };  /* sequences in one answer */
enum { DATED_NAME_MAX = RECORD_NAME_MAX - 9 }; /* room for ":20261116" */

static int name_index(const char *const *names, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return (int)i;
    return -1;
}

/* --- writing --- */

static void write_sequence(struct buf *b, const char *name, const struct seq_record *s)
{
    uint32_t reset, digits;
    json_text(b, "name", name);
    json_text(b, "mode", mode_names[s->mode]);
    json_id(b, "start", s->start);
    json_count(b, "step", s->step);
    json_count(b, "offset", s->offset);
    json_id(b, "max", s->max);
    if (dated_note_parse(s->note, &reset, &digits) ==
        0) { /* counts in a register for each period */
        json_begin(b, "dated", '{');
        json_text(b, "reset", reset_names[reset]);
        json_count(b, "digits", digits);
        json_end(b, '}');
        return;
    }
    json_id(b, "next", s->next);
    json_id(b, "left", seq_left(s));
}

#define JSON_FIELDS "Content-Type: application/json\r\nCache-Control: no-store\r\n"

static void reply_sequence(struct http_wait *w, unsigned status)
{
    const struct job *j = &w->ticket.job;
    char fields[256];
    struct reply *r = w->reply;
    if (status == 201)
        snprintf(fields, sizeof fields, JSON_FIELDS "Location: /v1/sequences/%s\r\n", j->name);
    reply_begin(r, status, status == 201 ? fields : JSON_FIELDS);
    buf_add(r->out, "{", 1);
    write_sequence(r->out, j->name, &j->record);
    buf_add(r->out, "}\n", 2);
    reply_end(r);
}

/* --- list --- */

static void listed(struct http_wait *w)
{
    struct job *j = &w->ticket.job;
    if (j->result) {
        http_wait_fail(w, w->reply);
        http_wait_done(w);
        return;
    }
    struct buf *b = w->reply->out;
    reply_begin(w->reply, 200, JSON_FIELDS);
    buf_add_str(b, "{\"sequences\":[");
    for (size_t i = 0; i < j->list_n; i++) {
        json_begin(b, NULL, '{');
        write_sequence(b, j->list[i].name, &j->list[i].record);
        json_end(b, '}');
    }
    buf_add_str(b, "]");
    if (j->more)
        json_text(b, "next", j->cursor);
    buf_add_str(b, "}\n");
    reply_end(w->reply);
    free(j->list);
    j->list = NULL;
    http_wait_done(w);
}

/* A cursor is what an answer gave as `next`: a name, or a little more. */
static bool cursor_ok(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return s.len <= TICKET_CURSOR_MAX;
}

void route_sequences(struct call *c)
{
    static const char what[] = "the list of sequences";
    struct slice after = c->q.value[PARAM_AFTER], limit = c->q.value[PARAM_LIMIT];
    uint64_t max = LIST_DEFAULT;
    if (limit.p && (http_u64(limit, LIST_MAX, &max) != 0 || max == 0)) {
        call_fail(c, PROBLEM_PARAMETER, "limit must be from 1 to %d", LIST_MAX);
        return;
    }
    if (!cursor_ok(after)) {
        call_fail(c, PROBLEM_PARAMETER,
                  "after must be a name, or what the last answer gave as next");
        return;
    }
    struct http_wait *w = call_allowed(c, GUARD_LIST, what, sizeof what - 1)
                              ? http_wait_new(c, "", 0)
                              : NULL;
    if (!w)
        return;
    struct job *j = &w->ticket.job;
    j->what = JOB_LIST;
    j->want = max;
    memcpy(j->cursor, after.p ? after.p : "", after.len);
    http_wait_submit(c, w, listed);
}

/* --- describe --- */

static void described(struct http_wait *w)
{
    if (w->ticket.job.result)
        http_wait_fail(w, w->reply);
    else
        reply_sequence(w, 200);
    http_wait_done(w);
}

static bool check_name(struct call *c, enum problem p, const char *name, size_t len)
{
    if (record_user_name_ok(name, len))
        return true;
    call_fail(c, p, "a sequence's name has 1 to %d of A-Z a-z 0-9 . _ : -", RECORD_NAME_MAX);
    return false;
}

void route_sequence(struct call *c)
{
    if (!check_name(c, PROBLEM_PARAMETER, c->arg, c->arg_len) ||
        !call_allowed(c, GUARD_SEQUENCE, c->arg, c->arg_len))
        return;
    struct http_wait *w = http_wait_new(c, c->arg, c->arg_len);
    if (!w)
        return;
    w->ticket.job.what = JOB_DESCRIBE;
    http_wait_submit(c, w, described);
}

/* --- delete --- */

static void deleted(struct http_wait *w)
{
    const struct job *j = &w->ticket.job;
    audit_end(&w->audit, j->result, j->diag.text);
    if (j->result) {
        http_wait_fail(w, w->reply);
    } else {
        struct buf *b = w->reply->out;
        reply_begin(w->reply, 200, JSON_FIELDS);
        buf_add(b, "{", 1);
        json_text(b, "name", j->name);
        json_text(b, "state", "deleted");
        json_id(b, "next", j->record.next);
        buf_add(b, "}\n", 2);
        reply_end(w->reply);
    }
    http_wait_done(w);
}

void route_sequence_delete(struct call *c)
{
    if (!check_name(c, PROBLEM_PARAMETER, c->arg, c->arg_len) ||
        !call_allowed(c, GUARD_DELETE, c->arg, c->arg_len))
        return;
    struct http_wait *w = http_wait_new(c, c->arg, c->arg_len);
    if (!w)
        return;
    w->ticket.job.what = JOB_DELETE;
    http_wait_audit(c, w, "delete", (struct slice){ c->arg, c->arg_len });
    http_wait_submit(c, w, deleted);
}

/* --- create --- */

struct wanted {
    char name[256];
    size_t name_len;
    struct seq_spec spec;
    bool dated;
    uint32_t reset, digits;
};

static int bad(struct firn_diag *d, const char *text)
{
    snprintf(d->text, sizeof d->text, "%s", text);
    return FIRN_EINVAL;
}

static int read_dated(struct json_reader *j, struct wanted *w, struct firn_diag *d)
{
    char name[32], text[16];
    uint64_t digits = FIRN_DATED_DIGITS;
    int r = json_object(j), reset = -1;
    while (r == 0 && (r = json_member(j, name, sizeof name)) > 0) {
        if (strcmp(name, "reset") == 0) {
            r = json_string(j, text, sizeof text, NULL);
            reset = r ? -1 : name_index(reset_names, 3, text);
            if (r == 0 && reset < 0)
                return bad(d, "dated.reset must be day, month or year");
        } else if (strcmp(name, "digits") == 0) {
            r = json_u64(j, &digits);
            if (r == 0 && (digits < 1 || digits > FIRN_DATED_DIGITS_MAX))
                return bad(d, "dated.digits must be from 1 to 18");
        } else {
            return bad(d, "dated has the members reset and digits, no other");
        }
    }
    if (r < 0)
        return r;
    if (reset < 0)
        return bad(d, "dated needs reset: day, month or year");
    w->dated = true;
    w->reset = (uint32_t)reset;
    w->digits = (uint32_t)digits;
    return 0;
}

static int read_mode(struct json_reader *j, struct wanted *w, struct firn_diag *d)
{
    char text[16];
    int r = json_string(j, text, sizeof text, NULL);
    int mode = r ? -1 : name_index(mode_names, 2, text);
    if (r == FIRN_ENOSPC || (r == 0 && mode < 0))
        return bad(d, "mode must be gapless or range");
    if (r == 0)
        w->spec.mode = (enum seq_mode)mode;
    return r;
}

/* One member of the body. */
static int read_member(struct json_reader *j, const char *name, struct wanted *w, unsigned *seen,
                       struct firn_diag *d)
{
    static const char *const members[] = {
        "name", "mode", "dated", "start", "step", "offset", "max"
    };
    uint64_t *const numbers[] = { &w->spec.start, &w->spec.step, &w->spec.offset, &w->spec.max };
    int i = name_index(members, 7, name);
    if (i < 0) {
        snprintf(
            d->text, sizeof d->text,
            "there is no member '%.30s'; known are name, mode, start, step, offset, max, dated",
            name);
        return FIRN_EINVAL;
    }
    if (*seen >> i & 1) {
        snprintf(d->text, sizeof d->text, "%s is there twice", name);
        return FIRN_EINVAL;
    }
    *seen |= 1u << i;
    if (i == 0)
        return json_string(j, w->name, sizeof w->name, &w->name_len);
    if (i == 1)
        return read_mode(j, w, d);
    if (i == 2)
        return read_dated(j, w, d);
    int r = json_u64(j, numbers[i - 3]);
    if (r == 0 && *numbers[i - 3] == 0 && i != 5) {
        snprintf(d->text, sizeof d->text, "%s must be at least 1", name);
        return FIRN_EINVAL;
    }
    return r;
}

static int read_wanted(struct slice body, struct wanted *w, struct firn_diag *d)
{
    struct json_reader j;
    char name[64];
    unsigned seen = 0;
    *w = (struct wanted){ .dated = false };
    json_start(&j, body.p, body.len, d);
    int r = json_object(&j);
    while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0)
        r = read_member(&j, name, w, &seen, d);
    return r < 0 ? r : json_finish(&j);
}

static bool same_settings(const struct seq_record *a, const struct seq_record *b)
{
    return a->mode == b->mode && a->start == b->start && a->step == b->step &&
           a->offset == b->offset && a->max == b->max && strcmp(a->note, b->note) == 0;
}

static void created(struct http_wait *w)
{
    const struct job *j = &w->ticket.job;
    bool same = j->result == FIRN_ECONFLICT && !seq_deleted(&j->record) &&
                same_settings(&j->record, &w->want);
    if (!same) /* else nothing was done */
        audit_end(&w->audit, j->result, j->diag.text);
    if (j->result == 0) {
        reply_sequence(w, 201);
    } else if (j->result != FIRN_ECONFLICT) {
        http_wait_fail(w, w->reply);
    } else if (seq_deleted(&j->record)) {
        call_count_error(w->ctx, w->route);
        problem_reply(w->reply, PROBLEM_DELETED, "", "%s: %s", j->name, j->diag.text);
    } else if (same) {
        reply_sequence(w, 200);
    } else {
        call_count_error(w->ctx, w->route);
        problem_reply(
            w->reply, PROBLEM_EXISTS, "",
            "%s exists with other settings, see GET /v1/sequences/%s; choose another name", j->name,
            j->name);
    }
    http_wait_done(w);
}

void route_sequence_create(struct call *c)
{
    struct wanted want;
    struct firn_diag d = { 0, "" };
    struct slice body = c->req->body;
    static const char example[] = "{\"name\":\"orders\",\"mode\":\"gapless\",\"start\":1}";
    if (body.len == 0) {
        call_fail(c, PROBLEM_BODY, "the body is empty; send JSON such as %s", example);
        return;
    }
    int r = read_wanted(body, &want, &d);
    if (r) {
        call_fail(c, PROBLEM_BODY, "%s; for example %s", d.text[0] ? d.text : firn_error_message(r),
                  example);
        return;
    }
    if (!check_name(c, PROBLEM_BODY, want.name, want.name_len) ||
        !call_allowed(c, GUARD_ADMIN, want.name, want.name_len))
        return;
    char note[RECORD_NOTE_MAX + 1] = "";
    if (want.dated) {
        if (want.name_len > DATED_NAME_MAX) {
            call_fail(c, PROBLEM_BODY, "a dated sequence's name has at most %d characters",
                      DATED_NAME_MAX);
            return;
        }
        dated_note_format(want.reset, want.digits, note);
        if (want.spec.max == 0 || want.spec.max > FIRN_DATED_NUMBER_MAX)
            want.spec.max = FIRN_DATED_NUMBER_MAX;
    }
    want.spec.note = note;
    struct seq_record record;
    struct nonce none = { { 0 } };
    r = seq_new(&want.spec, &none, &record, &d);
    if (r) {
        call_fail(c, PROBLEM_BODY, "%s", d.text[0] ? d.text : firn_error_message(r));
        return;
    }
    struct http_wait *w = http_wait_new(c, want.name, want.name_len);
    if (!w)
        return;
    w->want = record;
    w->ticket.job.what = JOB_CREATE;
    http_wait_audit(c, w, "create", (struct slice){ want.name, want.name_len });
    w->ticket.job.spec = want.spec;
    char scope[GUARD_SCOPE_BUF] = "";
    uint64_t most = guard_scope(c->ctx, c->r->peer, c->req->authorization,
                                (struct slice){ want.name, want.name_len }, scope);
    if (most && strlen(scope) <= RECORD_NAME_MAX) {
        w->ticket.job.scope_max = most;
        memcpy(w->ticket.job.scope, scope, strlen(scope) + 1);
    }
    memcpy(w->ticket.job.note, note, sizeof note);
    http_wait_submit(c, w, created);
}
