/*
 * Elections. A member that has not heard its leader for a random time asks first whether it could
 * win (pre-vote), which changes nothing anywhere; then it raises its term, votes for itself, and
 * asks for votes when that vote is on its disk.
 *
 * A member votes once a term, for a candidate whose log is not behind its own, whatever its own
 * configuration says of the candidate or of itself: it may lack the entry that changed it. Only
 * voters stand, and members whose removal is not committed. While a member hears its leader it does
 * not even take a candidate's higher term, so that a removed member cannot disturb; `transfer`
 * overrides that. Tested by tests/unit/raft/core/core.c and tests/unit/raft/core/rules.c.
 */
#include "raft/core/core_in.h"

static uint64_t next_random(struct core *c) /* splitmix64 */
{
    uint64_t z = c->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void election_reset(struct core *c)
{
    c->deadline_ms = c->now + c->o.election_ms + next_random(c) % c->o.election_ms;
}

/* Follow in `term`; leader 0: not known. */
void election_follow(struct core *c, uint64_t term, uint64_t leader)
{
    firn_assert(term >= c->term || CORE_MUTANT(rc_old_leader));
    if (term > c->term)
        core_set_state(c, term, 0);
    if (c->state != CORE_FOLLOWER)
        election_reset(c);
    c->state = CORE_FOLLOWER;
    c->pre = c->transferred = false;
    c->transfer_to = 0;
    c->leader = leader;
    if (leader == 0)
        return;
    firn_assert(c->term_leader == 0 || c->term_leader == leader || CORE_MUTANT(rc_old_leader),
                "two leaders in term %" PRIu64 ": %" PRIu64 " and %" PRIu64, term, c->term_leader,
                leader);
    c->term_leader = leader;
    c->heard_ms = c->now;
    election_reset(c);
}

static bool sticky(const struct core *c)
{
    return c->state == CORE_LEADER || (c->leader && c->now - c->heard_ms < c->o.election_ms);
}

static bool vote_saved(const struct core *c)
{
    return c->vote_save <= c->saved_number || CORE_MUTANT(rc_unsaved_own_vote);
}

static uint64_t granted(struct core *c, const struct peer *p)
{
    (void)c;
    return p->granted;
}

void election_count(struct core *c)
{
    if (c->state != CORE_CANDIDATE || (!c->pre && !vote_saved(c)) ||
        core_majority(c, granted, 1) == 0)
        return;
    if (c->pre)
        election_stand(c, false, false);
    else
        lead_begin(c);
}

/* A voter, or one whose removal is perhaps not committed: it may be the only one that can bring
 * that entry to the rest. It does not count itself. A member that stores a snapshot has neither its
 * state nor, soon, its old log. */
static bool may_stand(const struct core *c)
{
    struct core_config before;
    uint64_t index;
    if (c->waiting && c->waiting_received)
        return false;
    if (core_votes(c) || !core_changing(c))
        return core_votes(c);
    core_config_at(c, c->config_index - 1, &before, &index);
    return config_votes(&before, c->o.id);
}

void election_stand(struct core *c, bool pre, bool transfer)
{
    if (!may_stand(c))
        return;
    c->state = CORE_CANDIDATE;
    c->leader = 0;
    c->pre = pre;
    c->transferred = transfer;
    for (unsigned i = 0; i < c->peers; i++)
        c->peer[i].asked = c->peer[i].answered = c->peer[i].granted = false;
    if (!pre)
        core_set_state(c, c->term + 1, c->o.id);
    election_reset(c);
    election_count(c);
}

void election_tick(struct core *c)
{
    bool alone = c->state == CORE_FOLLOWER && !c->leader && core_votes(c) &&
                 config_voters(&c->config) == 1; /* nothing to wait for */
    if (c->now < c->deadline_ms && !alone)
        return;
    election_reset(c);
    if (c->state == CORE_CANDIDATE && !c->pre && !vote_saved(c))
        return; /* the disk is slow: another term would not help */
    election_follow(c, c->term, 0);
    election_stand(c, true, false);
}

bool election_send(struct core *c, struct core_message *out)
{
    if (!c->pre && !vote_saved(c))
        return false;
    for (unsigned i = 0; i < c->peers; i++) {
        struct peer *p = &c->peer[i];
        if (!config_votes(&c->config, p->id) || p->answered ||
            (p->asked && c->now - p->asked_ms < core_heartbeat_ms(c)))
            continue;
        p->asked = true;
        p->asked_ms = c->now;
        uint64_t last = log_last(&c->log);
        *out = (struct core_message){ .type = MESSAGE_VOTE,
                                      .from = c->o.id,
                                      .to = p->id,
                                      .term = c->term + c->pre,
                                      .pre = c->pre,
                                      .transfer = c->transferred,
                                      .index = last,
                                      .index_term = log_term(&c->log, last) };
        return true;
    }
    return false;
}

static bool behind(const struct core *c, const struct core_message *m)
{
    uint64_t last = log_last(&c->log), term = log_term(&c->log, last);
    return m->index_term < term || (m->index_term == term && m->index < last);
}

static void answer(struct core *c, const struct core_message *m, bool ok, uint64_t need)
{
    core_reply(c, need,
               &(struct core_message){ .type = MESSAGE_VOTE_RESULT,
                                       .to = m->from,
                                       .term = ok ? m->term : c->term,
                                       .pre = m->pre,
                                       .ok = ok });
}

void election_vote(struct core *c, const struct core_message *m)
{
    if (m->term > c->term && sticky(c) && !m->transfer)
        return;
    bool ok = !behind(c, m) || CORE_MUTANT(rc_vote_behind);
    if (m->pre) {
        answer(c, m, ok && m->term > c->term, c->term_save);
        return;
    }
    if (m->term > c->term)
        election_follow(c, m->term, 0);
    ok = ok && m->term == c->term &&
         (c->vote == 0 || c->vote == m->from || (CORE_MUTANT(rc_vote_twice) && c->vote != c->o.id));
    if (ok && c->vote != m->from) {
        if (c->state == CORE_CANDIDATE && c->pre)
            election_follow(c, c->term, 0);
        firn_assert(c->state == CORE_FOLLOWER);
        core_set_state(c, c->term, m->from);
    }
    if (ok)
        election_reset(c);
    answer(c, m, ok, CORE_MUTANT(rc_unsaved_vote) ? 0 : ok ? c->vote_save : c->term_save);
}

void election_result(struct core *c, const struct core_message *m)
{
    struct peer *p = core_find_peer(c, m->from);
    if (c->state != CORE_CANDIDATE || m->pre != c->pre || !p)
        return;
    p->answered = true;
    p->granted = m->ok;
    election_count(c);
}
