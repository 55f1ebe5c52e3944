/*
 * One process's membership: claim a register, beat, free it. OUT: scan, choose, read, claim. UP: a
 * beat every third of the ttl, and, with keep_house, a scan every ttl and a dead member freed.
 * After a write whose answer is missing or a conflict: read, and the request's nonce tells (the
 * outcome rule, docs/protocol.md sections 5 and 11). Tests: tests/unit/drive/member.c,
 * tests/property/drive/queue_world.c.
 */
#include "coord/membership.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>

enum { CHOICE_MAX = 64 };

static bool text_ok(const char *text)
{
    for (; *text; text++)
        if (*text < '!' || *text > '~')
            return false;
    return true;
}

int membership_init(struct membership *m, const struct membership_params *p, struct roster *roster,
                    struct firn_diag *d)
{
    if (p->ttl_ms < 3 || p->ttl_ms > MEMBER_TTL_MS_MAX || p->backoff_min_ms == 0 ||
        p->backoff_max_ms < p->backoff_min_ms)
        return firn__diag(d, FIRN_EINVAL, 0, "a ttl is 3 ms to a day");
    if (!text_ok(p->name) || !text_ok(p->kind) || !text_ok(p->address) || !text_ok(p->slots) ||
        !text_ok(p->version))
        return firn__diag(d, FIRN_EINVAL, 0, "a member's texts are printable, without blanks");
    *m = (struct membership){ .params = *p, .roster_ = roster };
    m->backoff_ms_ = p->backoff_min_ms;
    return 0;
}

static void rest(struct membership *m, uint64_t due_ms)
{
    m->at_ = MEMBERSHIP_AT_REST;
    m->due_ms_ = due_ms;
}

static void succeeded(struct membership *m)
{
    m->backoff_ms_ = m->params.backoff_min_ms;
}

/* Stay where we are and do the same again, later. */
static void failed(struct membership *m, const struct membership_now *now)
{
    m->due_ms_ = now->ms + m->backoff_ms_;
    m->backoff_ms_ = min64(m->backoff_ms_ * 2, m->params.backoff_max_ms);
    firn_assert(m->backoff_ms_ >= m->params.backoff_min_ms);
}

static void lose(struct membership *m, const struct membership_now *now)
{
    m->lost++;
    m->unbroken++;
    m->valid_until_ms = 0;
    m->state = m->state == MEMBERSHIP_LEAVING ? MEMBERSHIP_LEFT : MEMBERSHIP_OUT;
    rest(m, now->ms);
}

/* ---- building writes ---- */

static void describe_self(const struct membership *m, const struct membership_now *now,
                          struct member_record *r)
{
    r->cluster = m->params.cluster;
    r->ttl_ms = m->params.ttl_ms;
    r->at = now->unix_ms;
    memcpy(r->kind, m->params.kind, sizeof r->kind);
    memcpy(r->name, m->params.name, sizeof r->name);
    memcpy(r->address, m->params.address, sizeof r->address);
    memcpy(r->slots, m->params.slots, sizeof r->slots);
    memcpy(r->version, m->params.version, sizeof r->version);
}

static void build(struct membership *m, enum membership_write what,
                  const struct membership_now *now, const struct nonce *req)
{
    const struct membership_text *base = what == MEMBERSHIP_BEAT || what == MEMBERSHIP_FREE
                                             ? &m->own_
                                             : &m->other_;
    struct member_record r = base->record;
    firn_assert(now->ms > 0); /* 0 marks an empty entry of mine_ */
    firn_assert(what == MEMBERSHIP_CLAIM || (base->len > 0 && r.state == MEMBER_UP), "write %d",
                (int)what);
    firn_assert(base == &m->other_ || r.epoch == m->epoch, "epoch %" PRIu64 " of %" PRIu64, r.epoch,
                m->epoch);
    firn_assert(base == &m->own_ || m->target_ < MEMBERS_MAX);
    switch (what) {
    case MEMBERSHIP_CLAIM:
        r = (struct member_record){ .epoch = base->len ? base->record.epoch + 1 : 1,
                                    .state = MEMBER_UP,
                                    .owner = *req };
        describe_self(m, now, &r);
        break;
    case MEMBERSHIP_BEAT:
        r.beat++;
        describe_self(m, now, &r);
        break;
    case MEMBERSHIP_FREE:
    case MEMBERSHIP_STRIKE:
        member_freed(&base->record, now->unix_ms, req, &r);
        break;
    }
    r.req = *req;
    firn_assert(base->len == 0 || !nonce_eq(req, &base->record.req)); /* no value comes back */
    m->value_len_ = member_encode(&r, m->value_);
    m->doing_ = what;
    m->at_ = MEMBERSHIP_AT_WRITE;
    m->mine_[m->mine_next_ % MEMBERSHIP_MINE].req = *req;
    m->mine_[m->mine_next_++ % MEMBERSHIP_MINE].sent_ms = now->ms;
}

/* When the write of this request was sent; 0: it is not one of ours. */
static uint64_t sent_at(const struct membership *m, const struct nonce *req)
{
    for (uint32_t i = 0; i < MEMBERSHIP_MINE; i++)
        if (m->mine_[i].sent_ms != 0 && nonce_eq(&m->mine_[i].req, req))
            return m->mine_[i].sent_ms;
    return 0;
}

/* ---- choosing a register ---- */

static bool is_free(const struct roster_seen *s)
{
    return s->state == ROSTER_ABSENT ||
           (s->state == ROSTER_FREE && s->epoch < MEMBER_EPOCH_MAX); /* a used-up one stays free */
}

static void look_at(struct membership *m, uint32_t number, bool outcome)
{
    firn_assert(number < MEMBERS_MAX);
    m->target_ = number;
    m->outcome_ = outcome;
    m->at_ = MEMBERSHIP_AT_READ;
}

static void choose(struct membership *m, const struct membership_now *now)
{
    uint32_t free_n = 0, want = 0, width = 1;
    uint64_t soonest = now->ms + m->params.ttl_ms / 3;
    for (uint32_t i = 0; i < m->conflicts_ && width < CHOICE_MAX; i++)
        width *= 2;
    for (uint32_t n = 0; n < MEMBERS_MAX && free_n < width; n++)
        free_n += is_free(&m->roster_->seen[n]);
    if (free_n > 0)
        want = m->random_ % free_n;
    m->full = false;
    for (uint32_t n = 0; n < MEMBERS_MAX; n++) {
        const struct roster_seen *s = &m->roster_->seen[n];
        if (free_n > 0 ? is_free(s) && want-- == 0 : roster_dead(m->roster_, n, now->ms)) {
            look_at(m, n, false);
            return;
        }
        if (s->state == ROSTER_UP && s->since_ms + member_dead_after(s->ttl_ms) < soonest)
            soonest = s->since_ms + member_dead_after(s->ttl_ms);
    }
    m->full = true;
    rest(m, soonest > now->ms ? soonest : now->ms + m->params.backoff_min_ms);
}

/* After a scan while UP: the lowest live member frees the lowest dead one, one per scan. */
static void keep_house(struct membership *m, const struct membership_now *now)
{
    m->house_due_ms_ = now->ms + m->params.ttl_ms;
    rest(m, now->ms);
    uint32_t dead = MEMBERS_MAX;
    for (uint32_t n = 0; n < MEMBERS_MAX; n++) {
        if (roster_dead(m->roster_, n, now->ms)) {
            if (n != m->number && dead == MEMBERS_MAX)
                dead = n;
        } else if (m->roster_->seen[n].state == ROSTER_UP && n < m->number) {
            return;
        }
    }
    if (dead < MEMBERS_MAX) {
        look_at(m, dead, false);
        m->house_due_ms_ = now->ms; /* there may be more */
    }
}

/* ---- the next action ---- */

static void decide(struct membership *m, const struct membership_now *now,
                   const struct nonce *fresh)
{
    switch (m->state) {
    case MEMBERSHIP_OUT:
        m->at_ = MEMBERSHIP_AT_SCAN;
        break;
    case MEMBERSHIP_UP:
        if (now->ms >= m->beat_due_ms_)
            build(m, MEMBERSHIP_BEAT, now, fresh);
        else if (m->params.keep_house && now->ms >= m->house_due_ms_)
            m->at_ = MEMBERSHIP_AT_SCAN;
        break;
    case MEMBERSHIP_LEAVING:
        build(m, MEMBERSHIP_FREE, now, fresh);
        break;
    case MEMBERSHIP_LEFT:
        break;
    }
}

static uint64_t next_due(const struct membership *m)
{
    if (m->state == MEMBERSHIP_LEFT)
        return UINT64_MAX;
    if (m->state != MEMBERSHIP_UP)
        return m->due_ms_;
    uint64_t due = m->beat_due_ms_;
    if (m->params.keep_house && m->house_due_ms_ < due)
        due = m->house_due_ms_;
    return due > m->due_ms_ ? due : m->due_ms_;
}

void membership_next(struct membership *m, const struct membership_now *now,
                     const struct nonce *fresh, struct membership_action *out)
{
    *out = (struct membership_action){ .what = MEMBERSHIP_DO_WAIT, .ms = m->due_ms_ };
    memcpy(&m->random_, fresh->b, sizeof m->random_);
    if (m->at_ == MEMBERSHIP_AT_REST)
        out->ms = next_due(m);
    if (now->ms < out->ms)
        return;
    if (m->at_ == MEMBERSHIP_AT_REST)
        decide(m, now, fresh);
    else if (m->at_ == MEMBERSHIP_AT_CLAIM)
        build(m, MEMBERSHIP_CLAIM, now, fresh);
    else if (m->at_ == MEMBERSHIP_AT_STRIKE)
        build(m, MEMBERSHIP_STRIKE, now, fresh);
    out->number = m->target_;
    if (m->at_ == MEMBERSHIP_AT_SCAN) {
        out->what = MEMBERSHIP_DO_SCAN;
    } else if (m->at_ == MEMBERSHIP_AT_READ) {
        out->what = MEMBERSHIP_DO_READ;
        out->fresh = true;
    } else if (m->at_ == MEMBERSHIP_AT_WRITE) {
        bool own = m->doing_ == MEMBERSHIP_BEAT || m->doing_ == MEMBERSHIP_FREE;
        const struct membership_text *base = own ? &m->own_ : &m->other_;
        out->what = MEMBERSHIP_DO_CAS;
        out->number = own ? m->number : m->target_;
        out->old = base->len ? base->text : NULL;
        out->old_len = base->len;
        out->value = m->value_;
        out->value_len = m->value_len_;
        firn_assert(out->value_len > 0 && out->number < MEMBERS_MAX);
    }
}

/* ---- outcomes ---- */

/* A scan, or a read of another member's register. Keeping house must not hold up the beats. */
static void errand_failed(struct membership *m, const struct membership_now *now)
{
    if (m->state != MEMBERSHIP_OUT) {
        m->house_due_ms_ = now->ms + m->params.ttl_ms;
        rest(m, now->ms);
    }
    failed(m, now);
}

void membership_scan_done(struct membership *m, const struct membership_now *now, int result)
{
    if (result != 0) {
        errand_failed(m, now);
        return;
    }
    succeeded(m);
    if (m->state == MEMBERSHIP_OUT)
        choose(m, now);
    else if (m->state == MEMBERSHIP_UP)
        keep_house(m, now);
    else
        rest(m, now->ms);
}

/* The register holds `p`, a record of ours: claimed, or renewed. */
static void confirmed(struct membership *m, const struct membership_now *now, uint64_t sent_ms,
                      const char *p, size_t len)
{
    struct member_record r;
    firn_assert(sent_ms > 0 && sent_ms <= now->ms, "sent at %" PRIu64 ", now %" PRIu64, sent_ms,
                now->ms);
    succeeded(m);
    if (member_parse(p, len, &r, NULL) != 0 || r.state != MEMBER_UP) {
        lose(m, now); /* cannot be: we wrote it */
        return;
    }
    if (m->state == MEMBERSHIP_OUT) {
        m->number = m->target_;
        m->epoch = r.epoch;
        m->state = MEMBERSHIP_UP;
        m->conflicts_ = 0;
        m->full = false;
        m->valid_until_ms = 0;
        m->house_due_ms_ = now->ms + m->params.ttl_ms;
    }
    if (m->state == MEMBERSHIP_UP) {
        firn_assert(r.epoch == m->epoch, "epoch %" PRIu64 " of %" PRIu64, r.epoch, m->epoch);
        if (now->ms >= m->valid_until_ms)
            m->unbroken++;
        m->valid_until_ms = max64(m->valid_until_ms, sent_ms + m->params.ttl_ms);
        m->beat_due_ms_ = sent_ms + m->params.ttl_ms / 3;
        firn_assert(m->beat_due_ms_ < m->valid_until_ms);
    }
    firn_assert(len <= sizeof m->own_.text);
    m->own_.record = r;
    m->own_.len = len;
    memmove(m->own_.text, p, len);
    rest(m, now->ms);
}

/* A write of our own register whose answer was missing or a conflict; p is the register's
 * content. */
static void outcome(struct membership *m, const struct membership_now *now, int result,
                    const char *p, size_t len)
{
    struct member_record r;
    bool readable = result == 0 && member_parse(p, len, &r, NULL) == 0;
    uint64_t sent_ms = readable ? sent_at(m, &r.req) : 0;
    if (m->state == MEMBERSHIP_OUT) { /* a claim */
        if (sent_ms != 0 && r.state == MEMBER_UP) {
            confirmed(m, now, sent_ms, p, len);
        } else {
            m->conflicts_++;
            rest(m, now->ms);
        }
    } else if (!readable) {
        lose(m, now); /* deleted, or overwritten by a stranger */
    } else if (r.state == MEMBER_FREE && r.epoch == m->epoch && sent_ms != 0) {
        m->state = MEMBERSHIP_LEFT;
        rest(m, now->ms);
    } else if (r.state == MEMBER_UP && r.epoch == m->epoch &&
               (sent_ms != 0 || nonce_eq(&r.req, &m->own_.record.req))) {
        if (sent_ms != 0 && !nonce_eq(&r.req, &m->own_.record.req)) {
            confirmed(m, now, sent_ms, p, len);
        } else { /* unchanged: not applied yet. A new request on the same record; both cannot win */
            rest(m, now->ms);
            failed(m, now);
        }
    } else {
        lose(m,
             now); /* freed by an observer, claimed again, or written by a twin of this process */
    }
}

/* Another member's register, or a free one, to be claimed or freed. */
static void looked(struct membership *m, const struct membership_now *now, int result,
                   const char *p, size_t len)
{
    const struct roster_seen *s = &m->roster_->seen[m->target_];
    m->other_.len = 0;
    if (result == 0) {
        if (member_parse(p, len, &m->other_.record, NULL) != 0) {
            m->roster_->seen[m->target_].state = ROSTER_UNREADABLE;
            rest(m, now->ms + m->params.backoff_min_ms);
            return;
        }
        firn_assert(len <= sizeof m->other_.text); /* or it had not been parsed */
        memcpy(m->other_.text, p, len);
        m->other_.len = len;
    }
    bool up = m->other_.len > 0 && m->other_.record.state == MEMBER_UP;
    if (up && roster_dead(m->roster_, m->target_, now->ms) &&
        nonce_eq(&m->other_.record.req, &s->req)) {
        m->at_ = MEMBERSHIP_AT_STRIKE;
    } else if (m->state == MEMBERSHIP_OUT && !up) {
        m->at_ = MEMBERSHIP_AT_CLAIM;
    } else { /* its member lives after all, or another process was faster */
        m->conflicts_ += m->state == MEMBERSHIP_OUT;
        rest(m, now->ms);
    }
}

void membership_read_done(struct membership *m, const struct membership_now *now, int result,
                          const char *p, size_t len)
{
    if (result != 0 && result != FIRN_ENOENT) {
        if (m->outcome_)
            failed(m, now);
        else
            errand_failed(m, now);
        return;
    }
    succeeded(m);
    if (m->outcome_)
        outcome(m, now, result, p, len);
    else
        looked(m, now, result, p, len);
}

void membership_cas_done(struct membership *m, const struct membership_now *now, int result)
{
    bool own = m->doing_ == MEMBERSHIP_BEAT || m->doing_ == MEMBERSHIP_FREE;
    if (m->doing_ == MEMBERSHIP_STRIKE) {
        rest(m, now->ms); /* freed or not: the next scan shows */
        if (result == 0 || result == FIRN_ECONFLICT)
            m->roster_->seen[m->target_].since_ms = now->ms; /* so that it is read again */
        else
            failed(m, now);
    } else if (result == 0 && m->doing_ == MEMBERSHIP_FREE) {
        m->state = MEMBERSHIP_LEFT;
        rest(m, now->ms);
    } else if (result == 0) {
        firn_assert(m->mine_next_ > 0);
        uint32_t last = (m->mine_next_ + MEMBERSHIP_MINE - 1) % MEMBERSHIP_MINE;
        confirmed(m, now, m->mine_[last].sent_ms, m->value_, m->value_len_);
    } else if (result == FIRN_ECONFLICT || result == FIRN_EUNKNOWN) {
        look_at(m, own ? m->number : m->target_, true);
        if (result == FIRN_EUNKNOWN)
            failed(m, now);
    } else { /* nothing was written */
        rest(m, now->ms);
        failed(m, now);
    }
}

/* ---- requests of the process ---- */

static bool put(char *to, size_t size, const char *text)
{
    size_t len = text ? strlen(text) : size;
    if (len >= size || !text_ok(text) || strcmp(to, text) == 0)
        return false;
    memset(to, 0, size);
    memcpy(to, text, len);
    return true;
}

void membership_describe(struct membership *m, const char *address, const char *slots)
{
    bool changed = put(m->params.address, sizeof m->params.address, address);
    changed |= put(m->params.slots, sizeof m->params.slots, slots);
    if (changed)
        membership_touch(m);
}

void membership_touch(struct membership *m)
{
    m->beat_due_ms_ = 0;
}

void membership_leave(struct membership *m)
{
    if (m->state == MEMBERSHIP_UP)
        m->state = MEMBERSHIP_LEAVING;
    m->valid_until_ms = 0;
    m->due_ms_ = 0;
    if (m->state == MEMBERSHIP_OUT) { /* a claim under way may still land; its silence ends it */
        m->state = MEMBERSHIP_LEFT;
        m->at_ = MEMBERSHIP_AT_REST;
    }
}
