/*
 * Runs a candidate (coord/queue.h) on a store, with the member that stands in line.
 * Tests: tests/unit/drive/election.c.
 */
#include "drive/election.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>

enum { PAUSE_MS = 20 };

int election_open(struct election *e, struct member *member, const char *name, uint64_t next_least,
                  struct firn_diag *d)
{
    int r = record_user_name_check(name, d);
    if (r != 0)
        return r;
    memset(e, 0, sizeof *e);
    candidate_init(&e->line, next_least);
    e->member = member;
    e->key_len_ = queue_key(name, strlen(name), e->key_);
    return 0;
}

static struct membership_now read_now(const struct member *m)
{
    return (struct membership_now){ m->world.now_ms(m->world.user),
                                    m->world.unix_ms(m->world.user) };
}

/* Wait for the candidate before us, but no longer than our own membership can. */
static void watch(struct election *e, const struct candidate_action *a, uint64_t wait_ms)
{
    struct member *m = e->member;
    struct membership_now now = read_now(m);
    struct firn_record rec;
    char key[RECORD_KEY_BUF];
    struct firn_slice k = firn_slice(key, member_key(a->number, key));
    int r;
    firn_assert(a->number < MEMBERS_MAX, "member %u", a->number);
    if (a->old) {
        uint64_t left = a->ms > now.ms ? a->ms - now.ms : 0;
        bool whole = left <= wait_ms;
        firn_assert(a->old_len > 0 && wait_ms <= UINT32_MAX);
        r = firn_store_wait(m->store, k, firn_slice(a->old, a->old_len),
                            (uint32_t)(whole ? left : wait_ms), &rec, &e->diag);
        if (r == FIRN_EAGAIN && !whole)
            return;
    } else {
        r = firn_store_read(m->store, k, a->fresh, &rec, &e->diag);
    }
    now = read_now(m);
    candidate_watch_done(&e->line, &m->self, &now, r, rec.value, r ? 0 : rec.len);
    e->error = r == FIRN_EAGAIN || r == FIRN_ENOENT ? 0 : r;
}

static int cas(struct election *e, struct firn_slice key, const struct candidate_action *a)
{
    firn_assert(a->value_len > 0 && a->value_len <= RECORD_TEXT_MAX, "%zu bytes", a->value_len);
    int r = firn_store_cas(e->member->store,
                           &(struct firn_cas){ key, firn_slice(a->old, a->old_len),
                                               firn_slice(a->value, a->value_len) },
                           &e->diag);
    e->error = r == FIRN_ECONFLICT ? 0 : r;
    return r;
}

static const char *why(int error)
{
    firn_assert(error == FIRN_EFORMAT || error == FIRN_EOVERFLOW, "%d", error);
    return error == FIRN_EFORMAT ? "a queue or member record is unreadable: look at it with the "
                                   "store's own client"
                                 : "the queue has used up its tokens: take another name";
}

uint64_t election_step(struct election *e, uint32_t wait_ms)
{
    struct member *m = e->member;
    uint64_t due = member_step(m);
    if (due == 0) {
        e->error = m->error;
        if (m->error)
            e->diag = m->diag;
        return 0;
    }
    struct candidate_action a;
    struct firn_record rec;
    struct nonce fresh;
    char key[RECORD_KEY_BUF];
    struct firn_slice queue = firn_slice(e->key_, e->key_len_);
    struct membership_now now = read_now(m);
    uint64_t wait = min64(due, wait_ms), led = e->line.led_;
    m->world.random(m->world.user, fresh.b, sizeof fresh.b);
    candidate_next(&e->line, &m->self, &now, &fresh, &a);
    int r;
    switch (a.what) {
    case CANDIDATE_DO_WAIT:
        return min64(wait, a.ms > now.ms ? a.ms - now.ms : 0);
    case CANDIDATE_DO_READ:
        r = firn_store_read(m->store, queue, a.fresh, &rec, &e->diag);
        e->error = r == FIRN_ENOENT ? 0 : r;
        now = read_now(m);
        candidate_read_done(&e->line, &m->self, &now, r, rec.value, r ? 0 : rec.len);
        break;
    case CANDIDATE_DO_CAS:
        r = cas(e, queue, &a);
        now = read_now(m);
        candidate_cas_done(&e->line, &m->self, &now, r);
        break;
    case CANDIDATE_DO_WATCH:
        watch(e, &a, wait);
        break;
    case CANDIDATE_DO_CAS_MEMBER:
        r = cas(e, firn_slice(key, member_key(a.number, key)), &a);
        now = read_now(m);
        candidate_strike_done(&e->line, &now, r);
        break;
    }
    firn_assert(e->line.led_ >= led, "led with %" PRIu64 ", then %" PRIu64, led, e->line.led_);
    if (e->line.error)
        e->error = firn__diag(&e->diag, e->line.error, 0, "%s", why(e->line.error));
    return 0;
}

bool election_leads(struct election *e)
{
    return candidate_leads(&e->line, &e->member->self, member_now_ms(e->member));
}

uint64_t election_valid_until_ms(struct election *e)
{
    return election_leads(e) ? e->member->self.valid_until_ms : 0;
}

int election_leave(struct election *e, uint64_t timeout_ms)
{
    struct member *m = e->member;
    uint64_t end = member_now_ms(m) + timeout_ms;
    candidate_leave(&e->line);
    while (e->line.state != CANDIDATE_LEFT) {
        uint64_t pause = election_step(e, PAUSE_MS);
        if (e->line.state != CANDIDATE_LEFT && member_now_ms(m) >= end)
            return FIRN_EAGAIN;
        if (pause > 0)
            m->world.sleep_ms(m->world.user, pause);
    }
    membership_touch(&m->self); /* wakes the candidate behind us */
    return 0;
}
