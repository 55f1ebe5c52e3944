/*
 * Member records, and how long each has been seen unchanged (roster.h).
 * Tests: tests/unit/drive/member.c, tests/property/drive/queue_world.c; tests/fuzz/members.c.
 */
#include "coord/roster.h"
#include "coord/record_form.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>

static const char *const hold_name[] = { "free", "up", NULL };

static const struct record_field member_field[] = {
    F(struct member_record, cluster, NONCE),    F(struct member_record, epoch, NUMBER),
    FC(struct member_record, state, hold_name), F(struct member_record, owner, NONCE),
    FT(struct member_record, kind, TEXT),       FT(struct member_record, name, TEXT),
    FT(struct member_record, address, TEXT),    FT(struct member_record, slots, TEXT),
    FT(struct member_record, version, TEXT),    F(struct member_record, beat, NUMBER),
    F(struct member_record, ttl_ms, NUMBER),    F(struct member_record, at, NUMBER),
    F(struct member_record, req, NONCE),
};

static const struct record_form member_form = { "firn=member 1\n", member_field,
                                                sizeof member_field / sizeof member_field[0] };

_Static_assert(sizeof(enum member_hold) == sizeof(unsigned), "CHOICE");
_Static_assert(14 + 13 * 9 + 3 * 32 + 4 + 4 * 19 + MEMBER_KIND_MAX + RECORD_NAME_MAX +
                       MEMBER_ADDRESS_MAX + MEMBER_SLOTS_MAX + MEMBER_VERSION_MAX <=
                   RECORD_TEXT_MAX,
               "the longest member record fits");

size_t member_encode(const struct member_record *r, char out[RECORD_TEXT_MAX])
{
    static const struct nonce none;
    firn_assert((r->state == MEMBER_UP) != nonce_eq(&r->owner, &none), "state %d", (int)r->state);
    firn_assert(r->epoch > 0 && r->ttl_ms > 0 && r->ttl_ms <= MEMBER_TTL_MS_MAX,
                "epoch %" PRIu64 " ttl %" PRIu64, r->epoch, r->ttl_ms);
    return record_encode(&member_form, r, out);
}

int member_parse(const char *p, size_t len, struct member_record *out, struct firn_diag *d)
{
    static const struct nonce none;
    struct member_record m = { 0 };
    int r = record_parse(&member_form, p, len, &m, d);
    if (r != 0)
        return r;
    if ((m.state == MEMBER_UP) == nonce_eq(&m.owner, &none) || m.ttl_ms == 0 ||
        m.ttl_ms > MEMBER_TTL_MS_MAX || m.epoch == 0 || m.epoch > MEMBER_EPOCH_MAX)
        return firn__diag(d, FIRN_EFORMAT, 0, "the member record contradicts itself");
    *out = m;
    return 0;
}

size_t member_key(uint32_t number, char out[RECORD_KEY_BUF])
{
    return record_number_key(MEMBER_PREFIX, number, out);
}

int member_key_parse(const char *p, size_t len, uint32_t *out_number)
{
    return record_number_key_parse(MEMBER_PREFIX, p, len, out_number);
}

void member_freed(const struct member_record *old, uint64_t unix_ms, const struct nonce *req,
                  struct member_record *out)
{
    *out = *old; /* name and kind stay, for people who look at the list */
    out->state = MEMBER_FREE;
    memset(&out->owner, 0, sizeof out->owner);
    memset(out->address, 0, sizeof out->address);
    memset(out->slots, 0, sizeof out->slots);
    out->at = unix_ms;
    out->req = *req;
}

bool member_replaced(const struct member_record *old, const struct member_record *by)
{
    return old->state == MEMBER_UP && by->state == MEMBER_UP && by->at > old->at &&
           old->address[0] != '\0' && strcmp(old->address, by->address) == 0 &&
           strcmp(old->name, by->name) == 0 && strcmp(old->kind, by->kind) == 0;
}

void roster_begin(struct roster *r)
{
    for (uint32_t i = 0; i < MEMBERS_MAX; i++)
        r->seen[i].state = ROSTER_ABSENT; /* req and since stay, for those that are seen again */
}

void roster_add(struct roster *r, uint32_t number, const char *p, size_t len, uint64_t now_ms)
{
    struct member_record m;
    if (number >= MEMBERS_MAX)
        return;
    struct roster_seen *s = &r->seen[number];
    if (member_parse(p, len, &m, NULL) != 0) {
        s->state = ROSTER_UNREADABLE;
        return;
    }
    if (s->since_ms == 0 || !nonce_eq(&s->req, &m.req))
        s->since_ms = now_ms;
    s->req = m.req;
    s->ttl_ms = m.ttl_ms;
    s->epoch = m.epoch;
    s->state = m.state == MEMBER_UP ? ROSTER_UP : ROSTER_FREE;
}

bool roster_dead(const struct roster *r, uint32_t number, uint64_t now_ms)
{
    firn_assert(number < MEMBERS_MAX);
    const struct roster_seen *s = &r->seen[number];
    firn_assert(s->state != ROSTER_UP || now_ms >= s->since_ms, "seen at %" PRIu64 ", now %" PRIu64,
                s->since_ms, now_ms);
    return s->state == ROSTER_UP && now_ms - s->since_ms >= member_dead_after(s->ttl_ms);
}
