/*
 * Membership changes: members are added, promoted and removed, and the lead is handed over. A
 * process that starts without data asks to join until it is a member.
 *
 * JOIN and ADD add the process as a standby, which gets the log; ADD ends there. JOIN makes it a
 * voter when it has caught up. Each step is one entry of the log, and the leader makes one at a
 * time. A request names the state to reach, and every attempt looks at what is left to do: so it
 * may be repeated, and another leader can go on with it.
 *
 * A removal of a member that is gone already is the same request again, and done: members remember
 * whom the cluster removed, as far as their logs go back and while they run. An id that never was a
 * member's is a mistake of the operator, and is refused.
 *
 * A process whose folder was lost joins with a new id and its old address: the member that had this
 * address, if the leader does not hear it, is removed before the new one is added.
 *
 * cluster.init together with cluster.join: the process asks the members to join first, and begins a
 * cluster only if none of them knows one; else it joins. With cluster.init alone it waits first
 * whether a member of a cluster connects that knows its address: then its data were lost.
 */
#include "raft/member_in.h"
#include "raft/mutant.h"
#include "id/diag.h"
#include "wire/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOIN_EVERY_MS = 300,
    JOIN_BUDGET_MS = 30 * 1000,
    STEP_RETRY_MS = 50,
    PATIENCE_MS = 2000, /* before a change is refused because members are not heard */
    CAUGHT_UP = 64,     /* entries that a member may lack when it is made a voter */
    FOUND_BUDGET_MS = 1000,
    FORCE_AFTER_MS = 5000, /* without a leader: connections to lost members have ended by then */
};

struct change { /* what a request asks for */
    enum frame_change what;
    uint64_t id;
    char address[FRAME_ADDRESS_MAX + 1];
};

bool address_loopback(const char *address)
{
    struct host_port h;
    enum host_error e = host_port_read((struct slice){ address, strlen(address) }, &h);
    return (e == HOST_OK || e == HOST_COLONS) && host_is_loopback(h.host);
}

/* ---- who was a member ---- */

static uint64_t *find_gone(struct member *m, uint64_t id)
{
    for (unsigned i = 0; i < GONE_MAX; i++)
        if (m->history.gone[i] == id)
            return &m->history.gone[i];
    return NULL;
}

void membership_committed(struct member *m, const struct core_config *c)
{
    struct member_history *h = &m->history;
    for (unsigned i = 0; i < c->count; i++) {
        uint64_t *back = find_gone(m, c->member[i].id); /* added again */
        if (back)
            *back = 0;
    }
    for (unsigned i = 0; i < h->last.count; i++)
        if (!config_member(c, h->last.member[i].id))
            h->gone[h->next++ % GONE_MAX] = h->last.member[i].id;
    h->last = *c;
}

/* A process that replays the log of a restored cluster passes through names that the cluster no
 * longer has; the entry that makes it a member is behind the last one. The member that restores the
 * cluster has no name until it has given it a new one: who notes its new id with the old name goes
 * on as the old cluster after a crash. */
uint64_t membership_cluster(const struct member *m)
{
    bool named = !m->opts.restore || MEMBER_MUTANT(rm_restored_old_name);
    return named && config_member(&m->history.last, m->self.id) ? m->fsm.incarnation : 0;
}

void membership_begin(struct member *m)
{
    struct core_config c;
    struct core_entry e;
    for (uint64_t i = core_first(m->core); i <= core_snapshot_index(m->core); i++)
        if (!MEMBER_MUTANT(rm_gone_not_loaded) && core_entry_at(m->core, i, &e) &&
            e.type == ENTRY_CONFIG && config_read(e.bytes, e.len, &c) == 0)
            membership_committed(m, &c);
}

/* ---- one step ---- */

static void done(struct member *m, struct request *q)
{
    struct frame_out o = member_reply(m, q, core_applied(m->core));
    member_reply_send(m, q, &o);
}

static void wait_for(struct member *m, struct request *q, const char *what)
{
    q->waiting = what;
    request_wait(m, q, STEP_RETRY_MS);
}

/* The voters of `next` that this leader does not hear, and the cure. */
static void refuse_unheard(struct member *m, struct request *q, const struct core_config *next)
{
    char why[400];
    int len = snprintf(why, sizeof why, "the cluster would have no majority:");
    for (unsigned i = 0; i < next->count && len < 250; i++) {
        const struct core_member *s = &next->member[i];
        if (s->role == CORE_VOTER && s->id != m->self.id && !status_heard(m, s->id))
            len += snprintf(why + len, sizeof why - (size_t)len, " member %016" PRIx64 " (%.40s)",
                            s->id, s->address);
    }
    snprintf(why + len, sizeof why - (size_t)len,
             " does not answer the leader: start it, or remove it first, and repeat this");
    member_refuse(m, q, FIRN_ECONFLICT, why);
}

static void begin_step(struct member *m, struct request *q, const struct core_config *next,
                       uint64_t changed)
{
    struct proposal *p = calloc(1, sizeof *p + sizeof p->part[0]);
    uint64_t index;
    int r = p ? core_change(m->core, next, &index) : FIRN_ENOMEM;
    if (r == 0) {
        p->kind = PROPOSAL_CHANGE;
        p->count = 1;
        p->entry = changed;
        p->part[0].number = q->number;
        if (MEMBER_MUTANT(rm_change_at_once))
            done(m, q);
        else
            request_move(q, REQUEST_PROPOSED);
        m->change.under_way = true;
        proposal_begun(m, p, index);
        return;
    }
    free(p);
    if (r == FIRN_ECONFLICT && m->now_ms - q->since_ms >= PATIENCE_MS)
        refuse_unheard(m, q, next);
    else if (r == FIRN_EINVAL)
        member_refuse(m, q, r, "the cluster would have no voter, or too many members");
    else
        wait_for(m, q, "another membership change is under way: retry when it is done");
}

void membership_stepped(struct member *m, const struct proposal *p, bool applied)
{
    struct request *q = member_request(m, p->part[0].number);
    firn_assert(m->change.under_way && !m->change.transferring);
    m->change.under_way = false;
    if (applied) {
        const struct core_member *s = config_member(core_config(m->core), p->entry);
        member_say(m, NODE_INFO, "members_changed", "member=%" PRIx64 " role=%s", p->entry,
                   !s                      ? "removed"
                   : s->role == CORE_VOTER ? "voter"
                                           : "standby");
    }
    if (!q)
        return;
    q->begun |= applied;
    q->maybe |= !applied; /* it is in the log: the next leader may find it done */
    request_wait(m, q, applied ? 0 : STEP_RETRY_MS);
}

static void remove_from(struct core_config *c, uint64_t id)
{
    unsigned i = 0;
    while (i < c->count && c->member[i].id != id)
        i++;
    firn_assert(i < c->count);
    c->count--;
    memmove(&c->member[i], &c->member[i + 1], (c->count - i) * sizeof c->member[0]);
}

/* ---- handing over the lead ---- */

static void transfer(struct member *m, struct request *q, uint64_t to, bool removes)
{
    int r = core_transfer(m->core, to);
    if (r == FIRN_EAGAIN) {
        wait_for(m, q, "the lead is being handed over already: retry when that is done");
    } else if (r != 0) {
        /* FIRN_ENOENT of a removal would say that it is done. */
        member_refuse(m, q, removes && !MEMBER_MUTANT(rm_last_is_gone) ? FIRN_EINVAL : r,
                      to == 0 ? "there is no other voter to hand over to"
                              : "that member is no voter, or is the leader already");
    } else {
        request_move(q, REQUEST_PROPOSED);
        m->change = (struct member_change){ true, true, q->number, removes };
        m->election.handing_over = true;
        member_drain(m);
    }
}

bool membership_hand_over(struct member *m)
{
    if (m->change.under_way || core_transfer(m->core, 0) != 0)
        return false;
    m->change = (struct member_change){ .under_way = true, .transferring = true };
    m->election.handing_over = true;
    member_drain(m);
    return true;
}

void membership_watch(struct member *m)
{
    if (!m->change.transferring || core_transferring(m->core) || MEMBER_MUTANT(rm_transfer_unended))
        return;
    struct member_change was = m->change;
    struct request *q = was.number ? member_request(m, was.number) : NULL;
    m->change = (struct member_change){ 0 };
    m->dirty = true;
    if (!q)
        return;
    firn_assert(q->state == REQUEST_PROPOSED, "request=%" PRIu64 " state=%d", was.number,
                (int)q->state);
    if (core_state(m->core) == CORE_LEADER)
        member_refuse(m, q, FIRN_EIO, "the lead could not be handed over in time: try again");
    else if (was.removes)
        request_wait(m, q, STEP_RETRY_MS); /* the new leader removes this member */
    else
        done(m, q);
}

/* ---- towards the requested state ---- */

static const struct core_member *at_address(const struct core_config *c, const char *address)
{
    for (unsigned i = 0; i < c->count; i++)
        if (strcmp(c->member[i].address, address) == 0)
            return &c->member[i];
    return NULL;
}

/* Another member has the address of the one to add. */
static void replace(struct member *m, struct request *q, const struct core_member *old)
{
    struct core_config next = *core_config(m->core);
    if (old->id == m->self.id || status_heard(m, old->id)) {
        member_refuse(m, q, FIRN_ECONFLICT,
                      "another member has this address: remove that one first (firn cluster "
                      "remove)");
    } else if (m->now_ms - m->election.led_since_ms < PATIENCE_MS) {
        wait_for(m, q, "another member has this address, and may answer yet");
    } else {
        uint64_t id = old->id;
        member_say(m, NODE_WARN, "member_replaced",
                   "member=%" PRIx64 " address=%s cause=it is not heard, and a new member joins "
                   "with its address",
                   id, old->address);
        remove_from(&next, id);
        begin_step(m, q, &next, id);
    }
}

static void add(struct member *m, struct request *q, const struct change *c)
{
    struct core_config next = *core_config(m->core);
    const struct core_member *old = at_address(&next, c->address);
    if (old) {
        replace(m, q, old);
    } else if (next.count == CORE_MEMBERS_MAX) {
        member_refuse(m, q, FIRN_EINVAL, "the cluster has as many members as it can have");
    } else {
        struct core_member *s = &next.member[next.count++];
        *s = (struct core_member){ .id = c->id, .role = CORE_STANDBY };
        snprintf(s->address, sizeof s->address, "%s", c->address);
        begin_step(m, q, &next, c->id);
    }
}

static void promote(struct member *m, struct request *q, uint64_t id)
{
    struct core_config next = *core_config(m->core);
    struct core_peer p;
    bool known = core_peer(m->core, id, &p);
    bool behind = !known || p.match + CAUGHT_UP < core_last(m->core) || !status_heard(m, id);
    if (behind && !MEMBER_MUTANT(rm_promoted_early)) {
        wait_for(m, q,
                 "the member does not catch up: see whether the leader reaches its peer port");
        return;
    }
    for (unsigned i = 0; i < next.count; i++)
        if (next.member[i].id == id)
            next.member[i].role = CORE_VOTER;
    begin_step(m, q, &next, id);
}

static void remove_member(struct member *m, struct request *q, uint64_t id)
{
    struct core_config next = *core_config(m->core);
    if (id == m->self.id) {
        transfer(m, q, 0, true);
        return;
    }
    remove_from(&next, id);
    begin_step(m, q, &next, id);
}

static void refuse_unknown(struct member *m, struct request *q, const struct change *c)
{
    char why[160];
    snprintf(why, sizeof why, "no member has the id %016" PRIx64 "%s: see firn cluster status",
             c->id, c->what == CHANGE_REMOVE ? ", and no removed one is known that had it" : "");
    member_refuse(m, q, FIRN_ENOENT, why);
}

static void step(struct member *m, struct request *q, const struct change *c)
{
    const struct core_member *s = config_member(core_config(m->core), c->id);
    bool adds = c->what == CHANGE_JOIN || c->what == CHANGE_ADD;
    if (core_changing(m->core))
        wait_for(m, q, "another membership change is under way: retry when it is done");
    else if (c->what == CHANGE_TRANSFER && c->id == m->self.id)
        done(m, q);
    else if (c->what == CHANGE_TRANSFER)
        transfer(m, q, c->id, false);
    else if (!s && c->what == CHANGE_REMOVE && (q->begun || q->maybe || find_gone(m, c->id)))
        done(m, q);
    else if (!s && !adds)
        refuse_unknown(m, q, c);
    else if (c->what == CHANGE_REMOVE)
        remove_member(m, q, c->id);
    else if (!s)
        add(m, q, c);
    else if (c->address[0] && strcmp(s->address, c->address) != 0)
        member_refuse(m, q, FIRN_ECONFLICT,
                      "this member has another address: remove it, and let it join again");
    else if (s->role == CORE_STANDBY && c->what != CHANGE_ADD)
        promote(m, q, c->id);
    else
        done(m, q);
}

void membership_change(struct member *m, struct request *q)
{
    struct frame_in in = { q->frame.body, q->frame.len, false };
    struct host_port to;
    struct change c = { .what = (enum frame_change)frame_get_u8(&in), .id = frame_get_u64(&in) };
    struct firn_slice address = frame_get_text(&in, FRAME_ADDRESS_MAX);
    firn_assert(!m->change.under_way && q->state == REQUEST_WAITING, "state=%d", (int)q->state);
    memcpy(c.address, address.p, address.len);
    bool adds = c.what == CHANGE_JOIN || c.what == CHANGE_ADD;
    if (c.what < CHANGE_JOIN || c.what > CHANGE_TRANSFER ||
        (c.id == 0 && c.what != CHANGE_TRANSFER) || (adds && address.len == 0))
        member_refuse(m, q, FIRN_EINVAL, "unknown membership change, or one without a member");
    else if (adds && (strlen(c.address) != address.len || !host_port_full(c.address, &to)))
        member_refuse(m, q, FIRN_EINVAL, "the member's address is no host:port");
    else if (adds && !m->opts.plain && !address_loopback(c.address))
        member_refuse(
            m, q, FIRN_EAUTH,
            "the address is on another machine: set cluster.tls_cert, cluster.tls_key and "
            "cluster.tls_ca, or cluster.plain in a trusted network");
    else
        step(m, q, &c);
}

/* ---- without a majority ---- */

static bool names(const char *ids, uint64_t id)
{
    char *end = NULL;
    for (const char *p = ids; *p; p = *end ? end + 1 : end)
        if (strtoull(p, &end, 16) == id)
            return true;
    return false;
}

/* The first of `ids` that is no other member's; 0: all are. */
static uint64_t stranger(const struct member *m, const char *ids)
{
    char *end = NULL;
    for (const char *p = ids; *p; p = *end ? end + 1 : end) {
        uint64_t id = strtoull(p, &end, 16);
        if (id == m->self.id || !config_member(core_config(m->core), id))
            return id;
    }
    return 0;
}

/* Every other member is named, and none answers: a wrong address of --url, or a partition that is
 * taken for a disaster, should not make a second cluster. */
int member_may_force(const struct member *m, const char *lost, struct firn_diag *d)
{
    const struct core_config *c = core_config(m->core);
    uint64_t since = m->election.leaderless_ms, wrong = stranger(m, lost);
    if (m->health.stopped || m->removal.removed || c->count == 0)
        return firn__diag(d, FIRN_ECONFLICT, 0, "this member cannot go on alone: it %s",
                          m->health.stopped    ? "has stopped, see its log"
                          : m->removal.removed ? "was removed from a cluster that has a leader"
                                               : "has no data of a cluster");
    if (since == 0)
        return firn__diag(d, FIRN_ECONFLICT, 0,
                          "there is a leader, so the majority is not lost: remove without --force");
    if (wrong)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "%016" PRIx64 " is not another member: see firn cluster status", wrong);
    for (unsigned i = 0; i < c->count; i++) {
        const struct core_member *s = &c->member[i];
        if (strcmp(s->address, m->self.address) == 0) /* itself, or what it was to become */
            continue;
        if (peers_up(m, s->id))
            return firn__diag(d, FIRN_ECONFLICT, 0,
                              "member %016" PRIx64 " (%.60s) answers: it is not lost. Stop it "
                              "first; it can join again with an empty folder",
                              s->id, s->address);
        if (!names(lost, s->id))
            return firn__diag(d, FIRN_EINVAL, 0,
                              "member %016" PRIx64 " (%.60s) would be removed as well: name every "
                              "other member",
                              s->id, s->address);
    }
    if (m->now_ms - since < FORCE_AFTER_MS)
        return firn__diag(d, FIRN_EAGAIN, 0,
                          "there is no leader since less than %d seconds: try again after that",
                          FORCE_AFTER_MS / 1000);
    return 0;
}

/* ---- joining, and founding ---- */

static uint64_t all_of(size_t members)
{
    return members < 64 ? (UINT64_C(1) << members) - 1 : UINT64_MAX;
}

static void join_end(struct member *m)
{
    firn_assert(m->opts.join_n > 0);
    m->join.wire = NULL;
    m->join.next++; /* wraps around the list */
    m->join.retry_ms = m->now_ms + JOIN_EVERY_MS;
    if (MEMBER_MUTANT(rm_join_once) && !m->join.founding)
        m->join.retry_ms = UINT64_MAX;
    if (!m->join.founding || m->join.next < m->opts.join_n)
        return;
    if (m->join.none == all_of(m->opts.join_n)) {
        member_say(m, NODE_INFO, "cluster_begun",
                   "cause=cluster.init is set, and no member of cluster.join knows a cluster");
        member_found(m);
    } else if (!m->join.waits) { /* one that does not answer may know a cluster */
        m->join.waits = true;
        member_say(m, NODE_WARN, "cluster_not_begun",
                   "cause=cluster.init is set, and not all of cluster.join have answered that they "
                   "know no cluster cure=start them; if there never was a cluster, this member may "
                   "also begin it with cluster.init alone");
    }
}

/* A process connects as a member only to addresses that its configuration has: a cluster knows this
 * one. */
void membership_met(struct member *m, const struct frame_greeting *g)
{
    if (m->join.found_ms == 0)
        return;
    m->join.found_ms = 0;
    member_say(m, NODE_ERROR, "cluster_not_begun",
               "cause=cluster.init is set, this folder has no data, and %s is a member of a "
               "cluster that has this address: this member's data were lost cure=replace "
               "cluster.init by cluster.join %.*s",
               g->address, (int)strcspn(g->address, " "), g->address);
}

static void join_ask(struct member *m, struct wire *w)
{
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_begin(&o, FRAME_CHANGE, 0, JOIN_BUDGET_MS, 1);
    frame_u8(&o, m->opts.standby ? CHANGE_ADD : CHANGE_JOIN);
    frame_u64(&o, m->self.id);
    frame_text(&o, firn_slice(m->self.address, strlen(m->self.address)));
    frame_end(&o);
    firn_assert(!o.full, "len=%zu", o.len);
    wire_send(w, o.p, o.len);
}

static void join_answered(struct member *m, const struct frame *f)
{
    struct frame_in in = { f->body, f->len, false };
    struct frame_answer a;
    struct status_seen s;
    bool read = m->join.founding && status_read(m, f, &s);
    if (read && (!s.cluster_known || MEMBER_MUTANT(rm_found_anyway))) {
        m->join.none |= UINT64_C(1) << m->join.next % m->opts.join_n % 64;
    } else if (read) {
        m->join.founding = false;
        member_say(m, NODE_WARN, "init_ignored",
                   "cause=cluster.init is set, this folder has no data, and %s knows a cluster: "
                   "this member joins it cure=remove cluster.init from the settings",
                   m->join.members[m->join.next % m->opts.join_n]);
    } else if (!m->join.founding && f->type == FRAME_REPLY && frame_get_reply(&in, &a) == 0 &&
               a.result != 0) {
        struct firn_slice why = frame_get_text(&in, FRAME_MAX);
        member_say(m, NODE_WARN, "join_refused", "%.*s", (int)why.len, why.p ? why.p : "");
    }
}

static void join_frame(struct wire *w, const struct frame *f)
{
    struct member *m = wire_user(w);
    firn_assert(w == m->join.wire && m->self.id != 0);
    if (f->type == FRAME_WELCOME && m->join.founding) {
        status_ask(w, STATUS_OWN, FOUND_BUDGET_MS);
    } else if (f->type == FRAME_WELCOME) {
        join_ask(m, w);
    } else {
        join_answered(m, f);
        wire_close(w);
        join_end(m);
    }
}

static void join_gone(struct wire *w, const char *why)
{
    struct member *m = wire_user(w);
    member_say(m, NODE_INFO, "join_failed", "member=%s cause=%s",
               m->join.members[m->join.next % m->opts.join_n], why);
    join_end(m);
}

static const struct wire_events join_events = { member_greet, join_frame, join_gone };

void membership_join(struct member *m)
{
    const struct core_member *me = membership_self(m);
    if (m->join.found_ms && m->now_ms >= m->join.found_ms) {
        m->join.found_ms = 0;
        member_found(m);
        return;
    }
    /* An entry that makes it a member may be undone, and the leader no longer sends it anything:
     * then it has to ask again. */
    m->self.newcomer &= MEMBER_MUTANT(rm_joined_early)
                            ? me == NULL
                            : !config_member(&m->history.last, m->self.id);
    /* A process that the configuration lacks was removed, and must not join again by itself; a
     * newcomer never was in it. */
    bool in = me ? me->role == CORE_VOTER || (m->opts.standby && !m->self.newcomer)
                 : core_config(m->core)->count > 0 && !m->self.newcomer;
    if (in || m->opts.join_n == 0 || m->join.wire || m->now_ms < m->join.retry_ms)
        return;
    m->join.wire = wire_connect(m->opts.wires, m->join.members[m->join.next % m->opts.join_n],
                                &join_events, m);
    if (!m->join.wire)
        join_end(m);
}
