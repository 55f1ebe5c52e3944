/*
 * The leader as this member sees it, and its own election time-out.
 * A loop that did not run has heard nothing, but that says nothing about the leader: its messages
 * lie unread. So the time in which this process did not run does not exist for the core
 * (core_ms()), and time-outs follow the pauses that are measured (pace.h). Tests:
 * tests/unit/raft/pace.c, tests/unit/raft/watch.c, tests/integration/cluster.py.
 */
#include "raft/member_in.h"

#include <inttypes.h>

enum { SILENT_MS = 5000 }; /* plus the time of some elections */

void watch_begin(struct member *m, uint32_t base_ms)
{
    pace_init(&m->election.pace, base_ms);
    m->election.heard_ms = core_ms(m);
}

void watch_time(struct member *m, uint64_t now_ms)
{
    uint64_t due = m->now_ms + MEMBER_TICK_MS;
    if (now_ms <= due)
        return;
    uint64_t late = now_ms - due;
    pace_paused(&m->election.pace, late < UINT32_MAX ? (uint32_t)late : UINT32_MAX, now_ms);
    if (late >= core_election_ms(m->core) / 5)
        m->election.paused_ms += late;
}

void watch_heard(struct member *m, const struct core_message *msg)
{
    bool result = msg->type == MESSAGE_APPEND_RESULT;
    bool speaks = msg->type == MESSAGE_APPEND || msg->type == MESSAGE_SNAPSHOT;
    if (speaks && msg->term >= core_term(m->core))
        m->election.heard_ms = core_ms(m);
    if ((result || speaks) && msg->term == core_term(m->core) &&
        result == (core_state(m->core) == CORE_LEADER))
        pace_heard(&m->election.pace, msg->term, m->now_ms);
}

static void set_timeout(struct member *m)
{
    const struct pace *p = &m->election.pace;
    uint32_t before = core_election_ms(m->core);
    uint32_t timeout = pace_timeout(&m->election.pace, m->now_ms);
    if (timeout == before)
        return;
    member_say(m, NODE_INFO, "election_timeout", "ms=%u configured_ms=%u cause=%s", timeout,
               p->base_ms,
               timeout > before ? "pauses of this machine or of the network"
                                : "the pauses have become shorter");
    core_set_election(m->core, timeout);
}

static void watch_leader(struct member *m)
{
    struct member_election *e = &m->election;
    uint64_t id = core_leader(m->core);
    if (id != e->logged) {
        e->logged = id;
        const struct core_member *leader = config_member(core_config(m->core), id);
        if (id)
            member_say(m, NODE_INFO, "leader", "member=%" PRIx64 " address=%s term=%" PRIu64 "%s",
                       id, leader ? leader->address : "?", core_term(m->core),
                       id == m->self.id ? " this_member=yes" : "");
        else
            member_say(m, NODE_WARN, "no_leader", "term=%" PRIu64, core_term(m->core));
    }
    if (id || m->health.stopped) /* stopped: the other members may have a leader */
        e->leaderless_ms = 0;
    else if (e->leaderless_ms == 0)
        e->leaderless_ms = m->now_ms;
    if (m->forward.wire && !m->health.stopped && (id == m->self.id || id == 0)) {
        wire_close(m->forward.wire); /* it may never answer what it has not answered yet */
        member_leader_lost(m);
    }
}

/* A transfer is no loss. */
static void watch_lead(struct member *m)
{
    struct member_election *e = &m->election;
    bool leads = core_state(m->core) == CORE_LEADER;
    uint64_t term = core_term(m->core);
    if (e->led && (!leads || term != e->led_term) && !e->handing_over) {
        e->lost++;
        member_say(m, NODE_WARN, "leadership_lost",
                   "term=%" PRIu64 " election_timeout_ms=%u cause=%s", e->led_term,
                   core_election_ms(m->core),
                   "it did not hear from a quorum in time, or another member stood for election");
    }
    if (leads && (!e->led || term != e->led_term))
        e->led_since_ms = m->now_ms;
    e->handing_over = m->change.transferring;
    e->led = leads;
    e->led_term = term;
}

/* A member without a vote starts no election: it would wait for its leader without a word. */
static void watch_silence(struct member *m)
{
    struct member_election *e = &m->election;
    const struct core_member *me = membership_self(m);
    bool follows = me && core_state(m->core) == CORE_FOLLOWER && core_config(m->core)->count > 1 &&
                   !m->health.stalled && !m->health.stopped;
    uint64_t patience = SILENT_MS + 10ull * core_election_ms(m->core);
    bool silent = follows && core_ms(m) - e->heard_ms >= patience;
    if (silent && !e->silent)
        member_say(m, NODE_ERROR, "leader_silent",
                   "term=%" PRIu64 " index=%" PRIu64 " voter=%s cure=check that the leader reaches "
                   "this member's peer port; else restart this firnd",
                   core_term(m->core), core_last(m->core), me->role == CORE_VOTER ? "yes" : "no");
    else if (!silent && e->silent)
        member_say(m, NODE_INFO, "leader_heard", "term=%" PRIu64, core_term(m->core));
    e->silent = silent;
    if (!follows)
        e->heard_ms = core_ms(m);
}

void watch_tick(struct member *m)
{
    set_timeout(m);
    watch_leader(m);
    watch_lead(m);
    watch_silence(m);
}
