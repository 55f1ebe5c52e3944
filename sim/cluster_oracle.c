/*
 * The rules of a cluster's world, judged on the truth: what every member has on its disk, every
 * entry that ever was, and the first entry that was committed at each index.
 */
#include "cluster_in.h"
#include "id/fnv.h"

enum { VOTER_LACKS = 64 }; /* at most, of a whole member: raft/membership.c */
enum { SUM_EVERY = 4 };    /* the state is compared after each so many entries: a digest is long */

void k_oracle_reset(void)
{
    k.epoch++;
}

uint64_t k_entry_sum(const struct core_entry *e)
{
    return fnv(fnv_word(FNV_BEGIN, e->type), e->bytes, e->len);
}

static bool same_config(const struct core_config *a, const struct core_config *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; i < a->count && same; i++) {
        const struct core_member *o = config_member(b, a->member[i].id);
        same = o && o->role == a->member[i].role;
    }
    return same;
}

/* ---- log matching: an index and a term name one entry, and one before it ---- */

static struct entry_truth *entry_truth(const struct side *side, uint64_t index, uint64_t term)
{
    size_t at = (size_t)rand_mix(index << 20 ^ term) % ENTRIES_MAX;
    for (size_t i = 0; i < ENTRIES_MAX; i++, at = (at + 1) % ENTRIES_MAX) {
        struct entry_truth *e = &k.entry[at];
        if (e->epoch != k.epoch || (e->index == index && e->term == term && e->side == side))
            return e;
    }
    abort(); /* far more than a run can make */
}

static void match(struct kmember *m, const struct core_entry *e, uint64_t before)
{
    struct entry_truth *t = entry_truth(m->side, e->index, e->term);
    uint64_t sum = k_entry_sum(e);
    if (t->epoch != k.epoch)
        *t = (struct entry_truth){ k.epoch, m->side, e->index, e->term, sum, before };
    if (t->sum != sum || t->before != before)
        violate(k.w, "log",
                "member %" PRIu64 ": entry %" PRIu64 " of term %" PRIu64
                " differs from another member's",
                m->id, e->index, e->term);
}

static bool term_at(const struct kmember *m, uint64_t index, uint64_t *term)
{
    struct core_entry e;
    *term = 0;
    if (index == 0)
        return true;
    if (core_entry_at(m->core, index, &e))
        *term = e.term;
    else if (index < INDEX_MAX && m->side->truth[index].set &&
             index <= core_snapshot_index(m->core))
        *term = m->side->truth[index].term;
    else
        return false;
    return true;
}

/* The configuration in force is the newest one in the log. */
static void look_config(struct kmember *m)
{
    static struct core_config c;
    struct core_entry e;
    for (uint64_t i = core_last(m->core); i >= core_first(m->core) && i > 0; i--)
        if (core_entry_at(m->core, i, &e) && e.type == ENTRY_CONFIG) {
            if (config_read(e.bytes, e.len, &c) != 0 || !same_config(&c, core_config(m->core)))
                violate(k.w, "config",
                        "member %" PRIu64 ": the configuration in force is not that of %" PRIu64
                        ", the newest",
                        m->id, i);
            return;
        }
}

/* ---- truncation ---- */

/* Voters that have the entry on their disk; one whose disk is lost may have had it. */
static unsigned holders(const struct side *side, uint64_t index, uint64_t term,
                        const struct core_config *c, unsigned *voters)
{
    unsigned n = 0;
    *voters = 0;
    for (unsigned i = 0; i < c->count; i++) {
        const struct kmember *m = k_member(c->member[i].id);
        *voters += c->member[i].role == CORE_VOTER;
        n += c->member[i].role == CORE_VOTER &&
             (m ? m->side == side && k_disk_has(m, index, term) : k.id[c->member[i].id].dead);
    }
    return n;
}

static void look_truncation(struct kmember *m, uint64_t from)
{
    const struct image_of_disk *d = &m->disk;
    for (uint64_t i = from > d->first ? from : d->first; i < d->first + d->entries; i++) {
        const struct stored *e = &d->entry[i - d->first];
        unsigned voters, n = holders(m->side, e->index, e->term, &m->side->config, &voters);
        sometimes.rc_truncated++;
        sometimes.rc_figure_8 += n > voters / 2;
        sometimes.rc_config_undone += e->type == ENTRY_CONFIG;
        if (i < INDEX_MAX && m->side->truth[i].set && m->side->truth[i].term == e->term)
            violate(k.w, "undone",
                    "member %" PRIu64 " truncates entry %" PRIu64 " of term %" PRIu64
                    ", which is committed",
                    m->id, e->index, e->term);
    }
}

/* Who becomes a voter has nearly all of the log: until it has, a majority may have to wait. */
static void look_promotion(const struct kmember *m, const struct core_entry *e)
{
    static struct core_config c;
    if (e->type != ENTRY_CONFIG || e->term != core_term(m->core) || e->index <= VOTER_LACKS ||
        config_read(e->bytes, e->len, &c) != 0)
        return;
    for (unsigned i = 0; i < c.count; i++) {
        const struct core_member *was = config_member(&m->side->config, c.member[i].id);
        const struct kmember *of = k_member(c.member[i].id);
        if (was && was->role == CORE_STANDBY && c.member[i].role == CORE_VOTER && of &&
            k_disk_last(of) + VOTER_LACKS + 1 < e->index)
            violate(k.w, "promote",
                    "member %" PRIu64 " becomes a voter at %" PRIu64 " with a log to %" PRIu64,
                    of->id, e->index, k_disk_last(of));
    }
}

void k_look_save(struct kmember *m, const struct core_save *s)
{
    struct core_entry e;
    uint64_t before;
    if (s->truncate) {
        trace(k.w, "member %" PRIu64 " truncates from %" PRIu64, m->id, s->truncate);
        look_truncation(m, s->truncate);
        look_config(m);
    }
    if (s->snapshot)
        trace(k.w,
              "member %" PRIu64 " saves the snapshot of %" PRIu64 ", its log begins with %" PRIu64,
              m->id, s->snapshot->index, s->log_first);
    for (uint64_t i = 0; i < s->entries; i++) {
        if (!core_entry_at(m->core, s->first + i, &e))
            continue;
        if (term_at(m, e.index - 1, &before))
            match(m, &e, before);
        if (m->whole && core_state(m->core) == CORE_LEADER)
            look_promotion(m, &e);
    }
}

/* ---- promises: what is told is on the disk ---- */

void k_look_send(struct kmember *m, const struct core_message *msg)
{
    struct id_truth *t = &k.id[m->id];
    bool pre = (msg->type == MESSAGE_VOTE || msg->type == MESSAGE_VOTE_RESULT) && msg->pre;
    if (msg->from != m->id || msg->to == m->id)
        violate(k.w, "message", "member %" PRIu64 " sends from %" PRIu64 " to %" PRIu64, m->id,
                msg->from, msg->to);
    if (pre)
        return;
    if (msg->term >= TERM_MAX) {
        violate(k.w, "terms", "term %" PRIu64 " is reached", msg->term);
        return;
    }
    if (msg->term > t->term)
        t->term = msg->term;
    if (m->disk.term < msg->term && !SIM_MUTANT(rc_sync_skipped))
        violate(k.w, "promise", "member %" PRIu64 " tells term %" PRIu64 ", its disk has %" PRIu64,
                m->id, msg->term, m->disk.term);
    uint64_t vote = msg->type == MESSAGE_VOTE                     ? m->id
                    : msg->type == MESSAGE_VOTE_RESULT && msg->ok ? msg->to
                                                                  : 0;
    if (vote) {
        if (t->voted[msg->term] && t->voted[msg->term] != vote)
            violate(k.w, "vote", "member %" PRIu64 " votes for %u and %" PRIu64 " in term %" PRIu64,
                    m->id, t->voted[msg->term], vote, msg->term);
        t->voted[msg->term] = (uint8_t)vote;
        if ((m->disk.term == msg->term && m->disk.vote != vote) && !SIM_MUTANT(rc_sync_skipped))
            violate(k.w, "promise",
                    "member %" PRIu64 " votes for %" PRIu64 ", its disk has %" PRIu64, m->id, vote,
                    m->disk.vote);
    }
    bool has = msg->index <= m->disk.snapshot.index || msg->index <= k_disk_last(m);
    if (msg->type == MESSAGE_APPEND_RESULT && msg->ok && !has && !SIM_MUTANT(rc_sync_skipped))
        violate(k.w, "promise",
                "member %" PRIu64 " acknowledges %" PRIu64 ", its disk has up to %" PRIu64, m->id,
                msg->index, k_disk_last(m));
    if (msg->type == MESSAGE_SNAPSHOT_RESULT && msg->ok && msg->offset == msg->total &&
        msg->index > m->disk.snapshot.index && msg->index > k_disk_last(m))
        violate(k.w, "promise",
                "member %" PRIu64 " acknowledges a snapshot of %" PRIu64
                ", its disk has one of %" PRIu64,
                m->id, msg->index, m->disk.snapshot.index);
}

void k_look_started(struct kmember *m)
{
    if (core_term(m->core) < k.id[m->id].term)
        violate(k.w, "term",
                "member %" PRIu64 " starts with term %" PRIu64 ", it has told %" PRIu64, m->id,
                core_term(m->core), k.id[m->id].term);
    look_config(m);
}

/* ---- commitment ---- */

static void commit(struct kmember *m, const struct core_entry *e)
{
    if (e->index >= INDEX_MAX) {
        violate(k.w, "entries", "index %" PRIu64 " is reached", e->index);
        return;
    }
    struct truth *t = &m->side->truth[e->index];
    uint64_t sum = k_entry_sum(e);
    if (t->set && (t->term != e->term || t->sum != sum))
        violate(k.w, "committed",
                "member %" PRIu64 ": entry %" PRIu64 " is of term %" PRIu64
                ", that of term %" PRIu64 " was committed",
                m->id, e->index, e->term, t->term);
    if (t->set)
        return;
    *t = (struct truth){
        .set = true, .type = e->type, .term = e->term, .sum = sum, .leader_term = core_term(m->core)
    };
    if (e->index > m->side->committed)
        m->side->committed = e->index;
    if (e->type == ENTRY_CONFIG && e->index > m->side->config_index) {
        if (config_read(e->bytes, e->len, &m->side->config) != 0)
            violate(k.w, "config", "the configuration of %" PRIu64 " cannot be read", e->index);
        m->side->config_index = e->index;
        for (uint64_t id = 1; id < IDS_MAX; id++) {
            bool in = config_member(&m->side->config, id) != NULL;
            m->side->removed[id] += m->side->joined[id] && !in;
            m->side->joined[id] = in;
        }
        trace(k.w, "configuration %" PRIu64 " is committed: %u members", e->index,
              m->side->config.count);
    }
}

/* What a leader commits is of its term, and on the disks of a majority. */
static void look_majority(struct kmember *m, uint64_t index)
{
    struct core_entry e;
    unsigned voters;
    if (!core_entry_at(m->core, index, &e))
        return;
    unsigned n = holders(m->side, index, e.term, core_config(m->core), &voters);
    if (n <= voters / 2)
        violate(k.w, "majority",
                "leader %" PRIu64 " commits %" PRIu64 ", which %u of %u voters have", m->id, index,
                n, voters);
    if (e.term != core_term(m->core))
        violate(k.w, "majority",
                "leader %" PRIu64 " of term %" PRIu64 " commits %" PRIu64 " of term %" PRIu64,
                m->id, core_term(m->core), index, e.term);
}

static void look_leader(struct kmember *m)
{
    struct core_entry e;
    uint64_t term = core_term(m->core);
    trace(k.w, "member %" PRIu64 " leads in term %" PRIu64 ", its log ends with %" PRIu64, m->id,
          term, core_last(m->core));
    sometimes.rc_elected++;
    if (m->disk.term != term || m->disk.vote != m->id)
        violate(k.w, "promise",
                "member %" PRIu64 " leads in term %" PRIu64 " before its own vote is on "
                "its disk",
                m->id, term);
    if (term < TERM_MAX && m->side->leader[term] && m->side->leader[term] != m->id)
        violate(k.w, "leaders", "members %" PRIu64 " and %" PRIu64 " lead in term %" PRIu64,
                m->side->leader[term], m->id, term);
    if (term < TERM_MAX)
        m->side->leader[term] = m->id;
    for (uint64_t i = core_first(m->core); i <= m->side->committed; i++)
        if (m->side->truth[i].set && m->side->truth[i].leader_term < term &&
            (!core_entry_at(m->core, i, &e) || e.term != m->side->truth[i].term))
            violate(k.w, "complete",
                    "member %" PRIu64 " leads in term %" PRIu64 " without entry %" PRIu64
                    " of term %" PRIu64,
                    m->id, term, i, m->side->truth[i].term);
    for (unsigned i = 0; i < MACHINES; i++) {
        const struct kmember *o = &k.member[i];
        sometimes.rc_two_leaders += o != m && o->side == m->side && o->up &&
                                    core_state(o->core) == CORE_LEADER;
    }
}

void k_look(struct kmember *m)
{
    struct core_entry e;
    uint64_t term = core_term(m->core), committed = core_committed(m->core);
    enum core_state state = core_state(m->core);
    if (term < m->term)
        violate(k.w, "term", "member %" PRIu64 " goes back from term %" PRIu64 " to %" PRIu64,
                m->id, m->term, term);
    if (core_impossible(m->core) > 0)
        violate(k.w, "impossible", "member %" PRIu64 " got what no leader can have sent", m->id);
    if (state == CORE_LEADER && (m->state != CORE_LEADER || term != m->term))
        look_leader(m);
    sometimes.rc_stepped_down += m->state == CORE_LEADER && state != CORE_LEADER && term == m->term;
    m->term = term;
    m->state = state;
    if (committed < m->looked)
        violate(k.w, "committed", "member %" PRIu64 " goes back from %" PRIu64 " to %" PRIu64,
                m->id, m->looked, committed);
    if (committed == m->looked)
        return;
    if (state == CORE_LEADER)
        look_majority(m, committed);
    for (uint64_t i = m->looked + 1; i <= committed; i++)
        if (core_entry_at(m->core, i, &e))
            commit(m, &e);
        else if (i > core_snapshot_index(m->core))
            violate(k.w, "committed",
                    "member %" PRIu64 " has committed %" PRIu64 " and does not have it", m->id, i);
    m->looked = committed;
    fold(k.w, committed << 16 | m->id << 8 | term);
}

/* ---- the state machine ---- */

static void look_state(struct kmember *m, bool must)
{
    struct truth *t = m->applied < INDEX_MAX ? &m->side->truth[m->applied] : NULL;
    if (!t || !t->set || m->corrupt || !(must || t->summed || m->applied % SUM_EVERY == 0))
        return;
    uint64_t sum = fsm_sum(k_fsm(m));
    if (!t->summed)
        t->fsm = sum;
    if (t->fsm != sum)
        violate(k.w, "state", "member %" PRIu64 ": after %" PRIu64 " its state is not another's",
                m->id, m->applied);
    t->summed = true;
}

void k_look_applied(struct kmember *m, const struct core_entry *e)
{
    const struct truth *t = e->index < INDEX_MAX ? &m->side->truth[e->index] : NULL;
    if (!t || !t->set || t->term != e->term || t->sum != k_entry_sum(e))
        violate(k.w, "apply",
                "member %" PRIu64 " applies entry %" PRIu64 " of term %" PRIu64
                ", which is not committed",
                m->id, e->index, e->term);
    if (m->fsm.check.term && !m->fsm.check.same)
        violate(k.w, "digest", "member %" PRIu64 ": the leader's digest at %" PRIu64 " is another",
                m->id, e->index);
    sometimes.rc_checked += m->fsm.check.term != 0;
    m->fsm.check = (struct fsm_check){ 0 };
    look_state(m, false);
}

void k_look_state(struct kmember *m)
{
    look_state(m, false);
}

/* The configuration of a snapshot is the newest one up to its index. */
void k_look_snapshot(struct kmember *m, const struct core_snapshot *s)
{
    if (s->index >= INDEX_MAX || !m->side->truth[s->index].set ||
        m->side->truth[s->index].term != s->term)
        violate(k.w, "snapshot",
                "member %" PRIu64 ": the snapshot of %" PRIu64 " is not of a committed entry",
                m->id, s->index);
    if (s->index >= m->side->config_index && !same_config(&s->config, &m->side->config))
        violate(k.w, "snapshot",
                "member %" PRIu64 ": the snapshot of %" PRIu64
                " has another configuration than %" PRIu64,
                m->id, s->index, m->side->config_index);
}

void k_look_restored(struct kmember *m, const struct core_snapshot *s)
{
    k_look_snapshot(m, s);
    if (m->looked < s->index)
        m->looked = s->index;
    sometimes.rc_installed += core_last(m->core) > 0 && k_disk_last(m) > 0;
    look_state(m, true);
}
