/*
 * Election and lock: the queue's record, and one candidate's way through it. A candidate's round:
 * read the queue; not in line: append; head: lead; else watch the candidate before it, free that
 * member's register when it is dead, remove it from the line when its register says that it is
 * gone, and read the queue again. Whatever the answer to a write was, reading the queue tells the
 * candidate's place: a membership is in line at most once, so no nonce need be remembered. Tests:
 * tests/unit/drive/election.c, tests/property/drive/queue_world.c; models/queue.pml.
 */
#include "coord/queue.h"
#include "coord/record_form.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>

enum {
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 1000,
    WATCH_MS = 5000, /* then the queue is read, should the one before have left unnoticed */
};

/* ---- the record ---- */

struct queue_head {
    uint64_t next;
    struct nonce req;
};

static const struct record_field queue_field[] = {
    F(struct queue_head, next, NUMBER),
    F(struct queue_head, req, NONCE),
};

static const struct record_form queue_form = { "firn=queue 1\n", queue_field, 2 };

#define LINE "line="

_Static_assert(13 + 5 + 11 + 1 + 4 + 32 + 1 + 5 + 1 + QUEUE_MAX * (4 + 1 + 11 + 1 + 11 + 1) <=
                   RECORD_TEXT_MAX,
               "the longest queue record fits");

size_t queue_encode(const struct queue_record *r, char out[RECORD_TEXT_MAX])
{
    struct queue_head head = { r->next, r->req };
    char *p = out + record_encode(&queue_form, &head, out);
    memcpy(p, LINE, sizeof LINE - 1);
    p += sizeof LINE - 1;
    firn_assert(r->count <= QUEUE_MAX && r->next > 0, "%u in line, next %" PRIu64, r->count,
                r->next);
    for (uint32_t i = 0; i < r->count; i++) {
        firn_assert(r->place[i].token < r->next &&
                        (i == 0 || r->place[i].token > r->place[i - 1].token),
                    "place %u token %" PRIu64 " next %" PRIu64, i, r->place[i].token, r->next);
        firn_assert(r->place[i].number < MEMBERS_MAX && r->place[i].epoch > 0);
        if (i > 0)
            *p++ = ',';
        p += record_put_number(p, r->place[i].number);
        *p++ = '.';
        p += record_put_number(p, r->place[i].epoch);
        *p++ = '.';
        p += record_put_number(p, r->place[i].token);
    }
    *p++ = '\n';
    firn_assert(p - out <= RECORD_TEXT_MAX);
    return (size_t)(p - out);
}

/* A number up to `end_char` or the end; moves *p behind that. */
static bool take(const char **p, const char *end, char end_char, uint64_t *out)
{
    const char *at = memchr(*p, end_char, (size_t)(end - *p));
    const char *stop = at ? at : end;
    if (!record_get_number(*p, (size_t)(stop - *p), out))
        return false;
    *p = at ? at + 1 : end;
    return at || end_char == ',';
}

int queue_parse(const char *p, size_t len, struct queue_record *out, struct firn_diag *d)
{
    struct queue_head head = { 0 };
    struct queue_record q = { 0 };
    size_t at = 0;
    int r = record_parse_head(&queue_form, p, len, &head, &at, d);
    if (r != 0)
        return r;
    const char *line = p + at + sizeof LINE - 1, *end = p + len - 1;
    if (len < at + sizeof LINE || memcmp(p + at, LINE, sizeof LINE - 1) != 0 || *end != '\n' ||
        (line < end && end[-1] == ','))
        return firn__diag(d, FIRN_EFORMAT, at + 1, "the record has no line '" LINE "' here");
    uint64_t last = 0;
    while (line < end) {
        struct queue_place *place = &q.place[q.count];
        uint64_t number;
        if (q.count == QUEUE_MAX || !take(&line, end, '.', &number) || number >= MEMBERS_MAX ||
            !take(&line, end, '.', &place->epoch) || place->epoch == 0 ||
            place->epoch > MEMBER_EPOCH_MAX || !take(&line, end, ',', &place->token) ||
            place->token <= last || place->token >= head.next)
            return firn__diag(d, FIRN_EFORMAT, (size_t)(line - p) + 1, "bad value of 'line'");
        last = place->token;
        place->number = (uint32_t)number;
        if (queue_find(&q, place->number, place->epoch) >= 0)
            return firn__diag(d, FIRN_EFORMAT, 0, "a member is in the queue record twice");
        q.count++;
    }
    if (head.next == 0 || head.next > (uint64_t)QUEUE_TOKEN_MAX + 1)
        return firn__diag(d, FIRN_EFORMAT, 0, "bad value of 'next'");
    q.next = head.next;
    q.req = head.req;
    *out = q;
    return 0;
}

size_t queue_key(const char *name, size_t len, char out[RECORD_KEY_BUF])
{
    return record_name_key(QUEUE_PREFIX, name, len, out);
}

int queue_find(const struct queue_record *r, uint32_t number, uint64_t epoch)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->place[i].number == number && r->place[i].epoch == epoch)
            return (int)i;
    return -1;
}

int queue_append(struct queue_record *r, uint32_t number, uint64_t epoch)
{
    if (r->count == QUEUE_MAX)
        return FIRN_ENOSLOT;
    if (r->next > QUEUE_TOKEN_MAX)
        return FIRN_EOVERFLOW;
    firn_assert(queue_find(r, number, epoch) < 0, "member %u.%" PRIu64, number, epoch);
    r->place[r->count++] = (struct queue_place){ number, epoch, r->next++ };
    return 0;
}

void queue_remove(struct queue_record *r, int at)
{
    firn_assert(at >= 0 && (uint32_t)at < r->count, "place %d of %u", at, r->count);
    r->count--;
    memmove(&r->place[at], &r->place[at + 1], (r->count - (uint32_t)at) * sizeof r->place[0]);
}

/* ---- the candidate ---- */

void candidate_init(struct candidate *c, uint64_t next_least)
{
    memset(c, 0, sizeof *c);
    c->next_seen = next_least;
    c->led_ = next_least > 0 ? next_least - 1 : 0; /* old reads may show a place that we left */
    c->backoff_ms_ = BACKOFF_MIN_MS;
}

static void at(struct candidate *c, int where, uint64_t due_ms)
{
    c->at_ = where;
    c->watch_until_ms_ = 0;
    c->due_ms_ = due_ms;
}

static void read_queue(struct candidate *c, bool fresh, uint64_t due_ms)
{
    c->fresh_ = fresh;
    at(c, CANDIDATE_AT_READ, due_ms);
}

static uint64_t later(struct candidate *c, const struct membership_now *now)
{
    uint64_t due = now->ms + c->backoff_ms_;
    c->backoff_ms_ = min64(c->backoff_ms_ * 2, BACKOFF_MAX_MS);
    return due;
}

static void succeeded(struct candidate *c)
{
    c->backoff_ms_ = BACKOFF_MIN_MS;
}

bool candidate_leads(struct candidate *c, const struct membership *m, uint64_t now_ms)
{
    if (c->state == CANDIDATE_LEADING &&
        (!membership_valid(m, now_ms) || m->unbroken != c->unbroken_))
        c->state = CANDIDATE_LOST;
    return c->state == CANDIDATE_LEADING;
}

void candidate_again(struct candidate *c)
{
    if (c->state != CANDIDATE_LOST && c->state != CANDIDATE_LEADING)
        return;
    c->state = CANDIDATE_OUT;
    read_queue(c, true, 0);
}

void candidate_leave(struct candidate *c)
{
    if (c->state == CANDIDATE_LEFT)
        return;
    bool nowhere = c->state == CANDIDATE_OUT && c->epoch_ == 0;
    c->state = nowhere ? CANDIDATE_LEFT : CANDIDATE_LEAVING;
    read_queue(c, true, 0);
}

static void watch(struct candidate *c, const struct queue_place *p)
{
    firn_assert(p->token > 0);
    if (c->before_.token != p->token) {
        c->before_ = *p;
        c->gone_ = false;
        c->seen_.len = 0;
    }
    at(c, CANDIDATE_AT_WATCH, 0);
}

/* What the queue as it is known says about our place. */
static void judge(struct candidate *c, const struct membership *m, const struct membership_now *now)
{
    int i = queue_find(&c->queue_, c->number_, c->epoch_);
    c->error = 0;
    c->full = false;
    if (c->state == CANDIDATE_LEAVING) {
        if (i < 0)
            c->state = CANDIDATE_LEFT;
        at(c, i < 0 ? CANDIDATE_AT_REST : CANDIDATE_AT_BUILD, 0);
        return;
    }
    c->state = CANDIDATE_OUT;
    if (i < 0 || c->queue_.place[i].token <= c->led_) {
        if (c->queue_.next > QUEUE_TOKEN_MAX) {
            c->error = FIRN_EOVERFLOW;
            read_queue(c, true, later(c, now));
        } else if (i < 0 && c->queue_.count == QUEUE_MAX) {
            c->full = true; /* watch the last: if it is dead, no other candidate would notice */
            watch(c, &c->queue_.place[QUEUE_MAX - 1]);
        } else {
            at(c, CANDIDATE_AT_BUILD, 0);
        }
        return;
    }
    c->ahead = (uint32_t)i;
    c->token = c->queue_.place[i].token;
    if (i > 0) {
        c->state = CANDIDATE_WAITING;
        watch(c, &c->queue_.place[i - 1]);
    } else if (membership_valid(m, now->ms)) {
        firn_assert(c->token > c->led_, "token %" PRIu64 " led with %" PRIu64, c->token, c->led_);
        firn_assert(c->epoch_ == m->epoch && c->number_ == m->number, "%u.%" PRIu64, c->number_,
                    c->epoch_);
        c->state = CANDIDATE_LEADING;
        c->unbroken_ = m->unbroken;
        c->led_ = c->token;
        at(c, CANDIDATE_AT_REST, 0);
    } else { /* first in line, but it is the membership that must be renewed first */
        c->state = CANDIDATE_WAITING;
        read_queue(c, false, now->ms + BACKOFF_MIN_MS);
    }
}

/* The write that is due: leave, remove the candidate before that is gone, or join. */
static void build(struct candidate *c, const struct nonce *req)
{
    struct queue_record q = c->queue_;
    int me = queue_find(&q, c->number_, c->epoch_);
    int gone = c->gone_ ? queue_find(&q, c->before_.number, c->before_.epoch) : -1;
    if (gone >= 0) {
        queue_remove(&q, gone);
        me = queue_find(&q, c->number_, c->epoch_);
    }
    if (me >= 0 && (c->state == CANDIDATE_LEAVING || q.place[me].token <= c->led_)) {
        queue_remove(&q, me);
        me = -1;
    }
    /* A store that was wiped or restored counts from below again; its tokens must not. */
    q.next = max64(q.next, c->next_seen);
    if (me < 0 && c->state == CANDIDATE_OUT && queue_append(&q, c->number_, c->epoch_) != 0) {
        read_queue(c, true, 0);
        return;
    }
    q.req = *req;
    firn_assert(q.next >= c->queue_.next && q.count <= c->queue_.count + 1,
                "next %" PRIu64 " to %" PRIu64, c->queue_.next, q.next);
    firn_assert(!nonce_eq(req, &c->queue_.req)); /* no value comes back */
    c->value_len_ = queue_encode(&q, c->value_);
    c->at_ = CANDIDATE_AT_CAS;
}

/* True while the membership of our place is valid. Without it there is nothing to do. */
static bool have_membership(struct candidate *c, const struct membership *m, uint64_t now_ms)
{
    if (c->state == CANDIDATE_LEAVING) /* our old place can be given up without it */
        return true;
    if (!membership_valid(m, now_ms))
        return false;
    if (c->epoch_ != m->epoch || c->number_ != m->number) {
        c->number_ = m->number;
        c->epoch_ = m->epoch;
        c->state = CANDIDATE_OUT;
        read_queue(c, true, 0);
    }
    return true;
}

void candidate_next(struct candidate *c, const struct membership *m,
                    const struct membership_now *now, const struct nonce *fresh,
                    struct candidate_action *out)
{
    struct member_record freed;
    *out = (struct candidate_action){ .what = CANDIDATE_DO_WAIT, .ms = UINT64_MAX };
    candidate_leads(c, m, now->ms);
    if (c->state == CANDIDATE_LEFT || c->state == CANDIDATE_LEADING || c->state == CANDIDATE_LOST ||
        !have_membership(c, m, now->ms))
        return;
    out->ms = c->due_ms_;
    if (now->ms < c->due_ms_)
        return;
    if (c->at_ == CANDIDATE_AT_BUILD)
        build(c, fresh);
    if (c->at_ == CANDIDATE_AT_STRIKE) {
        firn_assert(c->seen_.len > 0 && c->seen_.record.state == MEMBER_UP &&
                        c->seen_.record.epoch == c->before_.epoch,
                    "member %u.%" PRIu64, c->before_.number, c->before_.epoch);
        member_freed(&c->seen_.record, now->unix_ms, fresh, &freed);
        c->value_len_ = member_encode(&freed, c->value_);
        c->at_ = CANDIDATE_AT_CAS_MEMBER;
    }
    switch (c->at_) {
    case CANDIDATE_AT_READ:
        out->what = CANDIDATE_DO_READ;
        out->fresh = c->fresh_;
        break;
    case CANDIDATE_AT_CAS:
        out->what = CANDIDATE_DO_CAS;
        out->old = c->len_ ? c->text_ : NULL;
        out->old_len = c->len_;
        out->value = c->value_;
        out->value_len = c->value_len_;
        firn_assert(out->value_len > 0);
        break;
    case CANDIDATE_AT_WATCH:
        firn_assert(c->before_.token > 0 && c->before_.number < MEMBERS_MAX);
        out->what = CANDIDATE_DO_WATCH;
        out->number = c->before_.number;
        out->fresh = c->fresh_;
        if (c->watch_until_ms_ == 0)
            c->watch_until_ms_ = now->ms + WATCH_MS;
        out->ms = c->watch_until_ms_;
        if (c->seen_.len > 0) {
            uint64_t dead = c->since_ms_ + member_dead_after(c->seen_.record.ttl_ms);
            out->old = c->seen_.text;
            out->old_len = c->seen_.len;
            out->ms = min64(dead, out->ms);
        }
        break;
    case CANDIDATE_AT_CAS_MEMBER:
        out->what = CANDIDATE_DO_CAS_MEMBER;
        out->number = c->before_.number;
        out->old = c->seen_.text;
        out->old_len = c->seen_.len;
        out->value = c->value_;
        out->value_len = c->value_len_;
        break;
    case CANDIDATE_AT_BUILD:
    case CANDIDATE_AT_STRIKE:
    case CANDIDATE_AT_REST:
        break;
    }
}

static void took_queue(struct candidate *c, const struct membership *m,
                       const struct membership_now *now, const char *p, size_t len)
{
    succeeded(c);
    c->fresh_ = false;
    firn_assert(len <= sizeof c->text_); /* or it had not been parsed */
    memmove(c->text_, p, len);
    c->len_ = len;
    c->next_seen = max64(c->next_seen, c->queue_.next);
    judge(c, m, now);
}

void candidate_read_done(struct candidate *c, const struct membership *m,
                         const struct membership_now *now, int result, const char *p, size_t len)
{
    if (result == FIRN_ENOENT) {
        c->queue_ = (struct queue_record){ .next = 1 };
        took_queue(c, m, now, "", 0);
    } else if (result == 0 && queue_parse(p, len, &c->queue_, NULL) == 0) {
        took_queue(c, m, now, p, len);
    } else {
        if (result == 0)
            c->error = FIRN_EFORMAT;
        read_queue(c, true, later(c, now));
    }
}

void candidate_cas_done(struct candidate *c, const struct membership *m,
                        const struct membership_now *now, int result)
{
    if (result == 0 && queue_parse(c->value_, c->value_len_, &c->queue_, NULL) == 0)
        took_queue(c, m, now, c->value_, c->value_len_);
    else if (result == FIRN_ECONFLICT)
        read_queue(c, true, now->ms);
    else
        read_queue(c, true, later(c, now));
}

/* The member before is gone: remove it from the line. */
static void before_gone(struct candidate *c)
{
    c->gone_ = true;
    at(c, CANDIDATE_AT_BUILD, 0);
}

/* Since when a record that the watch sees for the first time has been unchanged: the roster may
 * have seen it before. So a line of many that died together is cleared in one ttl, not in one ttl
 * each. A record that changed under the watch counts from now, even if it is an older one (a
 * restored store). */
static uint64_t first_seen(const struct membership *m, uint32_t number,
                           const struct member_record *r, uint64_t now_ms)
{
    const struct roster_seen *s = &m->roster_->seen[number];
    bool same = s->since_ms != 0 && s->since_ms < now_ms && nonce_eq(&s->req, &r->req);
    return same ? s->since_ms : now_ms;
}

void candidate_watch_done(struct candidate *c, const struct membership *m,
                          const struct membership_now *now, int result, const char *p, size_t len)
{
    struct member_record r;
    bool fresh = c->fresh_, known = c->seen_.len > 0;
    c->fresh_ = false;
    if (result == FIRN_EAGAIN && known) {
        p = c->seen_.text;
        len = c->seen_.len;
        result = 0;
    }
    if (result == 0 && member_parse(p, len, &r, NULL) != 0) {
        c->error = FIRN_EFORMAT; /* whether that member lives is unknown: an operator must look */
        read_queue(c, true, later(c, now));
        return;
    }
    if (result != 0 && result != FIRN_ENOENT) {
        at(c, CANDIDATE_AT_WATCH, later(c, now));
        return;
    }
    succeeded(c);
    if (result == FIRN_ENOENT || r.epoch < c->before_.epoch) { /* a stale read, or a wiped store */
        if (fresh && result == FIRN_ENOENT) {
            before_gone(c);
        } else {
            c->seen_.len = 0;
            c->fresh_ = true;
            at(c, CANDIDATE_AT_WATCH, fresh ? later(c, now) : now->ms);
        }
    } else if (r.state == MEMBER_FREE || r.epoch != c->before_.epoch) {
        before_gone(c);
    } else if (!known || len != c->seen_.len || memcmp(p, c->seen_.text, len) != 0) {
        c->seen_.record = r;
        firn_assert(len <= sizeof c->seen_.text);
        memmove(c->seen_.text, p, len);
        c->seen_.len = len;
        c->since_ms_ = known ? now->ms : first_seen(m, c->before_.number, &r, now->ms);
        read_queue(c, false, now->ms);
    } else if (now->ms - c->since_ms_ >= member_dead_after(r.ttl_ms)) {
        at(c, CANDIDATE_AT_STRIKE, 0);
    } else {
        read_queue(c, false, now->ms);
    }
}

void candidate_strike_done(struct candidate *c, const struct membership_now *now, int result)
{
    if (result == 0) {
        before_gone(c);
        return;
    }
    c->seen_.len = 0; /* it changed, or may have: read it again */
    c->fresh_ = true;
    at(c, CANDIDATE_AT_WATCH, result == FIRN_ECONFLICT ? now->ms : later(c, now));
}
