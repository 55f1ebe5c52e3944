/*
 * The member as a whole: what its core has to save, to apply and to send goes to the disk, to the
 * registers and to the peers after each input (member_drain()); what requests wait for is looked at
 * once for all inputs that came together (member_settle()).
 *
 * A disk that cannot be written stalls the member: nothing is acknowledged meanwhile, a leader
 * hands over, and it goes on by itself when the disk can be written again. An entry or a snapshot
 * that cannot be applied stops it for good: it forwards requests to another member and takes no
 * part, until firnd is restarted.
 */
#include "raft/member_in.h"
#include "raft/mutant.h"
#include "id/diag.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HAND_OVER_EVERY_MS = 500,
    PASSES_MAX = 64,    /* of one member_settle(); the rest waits for the next tick */
    UNSAVED_MAX = 1024, /* entries that a stalled disk lets a follower hold in memory */
};

void member_say(const struct member *m, enum node_level level, const char *event, const char *fmt,
                ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (m->opts.say)
        m->opts.say(m->opts.user, level, event, text);
}

static void stop(struct member *m, const char *why, const char *cure)
{
    if (m->health.stopped)
        return;
    m->health.stopped = m->dirty = true;
    member_say(m, NODE_ERROR, "member_stopped", "cause=%s cure=%s; the other members continue", why,
               cure);
}

/* ---- the core's output ---- */

static void apply_entry(struct member *m, const struct core_entry *e)
{
    int r = e->type != ENTRY_DATA                       ? 0
            : !fsm_entry_at(e->bytes, e->len, e->index) ? FIRN_EFORMAT
                                                        : fsm_apply(&m->fsm, e->bytes, e->len);
    if (r != 0) {
        stop(m, r == FIRN_ENOMEM ? "out of memory" : "a log entry is damaged",
             r == FIRN_ENOMEM ? "restart firnd"
                              : "remove this member, delete its folder, join again");
        return;
    }
    struct core_config c;
    if (e->type == ENTRY_CONFIG && config_read(e->bytes, e->len, &c) == 0)
        membership_committed(m, &c);
    if (m->fsm.check.term)
        check_applied(m);
    proposals_applied(m, e);
    m->dirty = true;
}

static void apply_snapshot(struct member *m, const struct core_snapshot *s)
{
    if (fsm_restore(&m->fsm, s->bytes, s->len) != 0) {
        member_say(m, NODE_ERROR, "snapshot_refused",
                   "cause=wrong checksum cure=remove this member, delete its folder, join again");
        stop(m, "the snapshot is damaged", "remove this member, delete its folder, join again");
        return;
    }
    firn_assert(m->fsm.requests == 0 || m->fsm.dedup.row, "requests without their results");
    membership_committed(m, &s->config);
    m->applied.snapshots++;
    m->check.differs = 0; /* these registers are the leader's */
    m->dirty = true;
}

static void apply_all(struct member *m)
{
    struct core_applying a;
    while (!m->health.stopped)
        switch (core_apply(m->core, &a)) {
        case APPLY_NONE:
            return;
        case APPLY_ENTRY:
            apply_entry(m, &a.entry);
            break;
        case APPLY_SNAPSHOT:
            apply_snapshot(m, a.snapshot);
            break;
        }
}

/* Entries are applied before messages go out: see state_check.c. */
void member_drain(struct member *m)
{
    struct core_save save;
    struct core_message out;
    while (!m->health.stopped && core_save(m->core, &save))
        if (disk_save(m->opts.disk, m->core, &save) != 0)
            stop(m, "out of memory", "restart firnd");
    apply_all(m);
    while (!m->health.stopped && core_send(m->core, &out))
        peers_send(m, &out);
    proposals_watch(m);
    member_read_done(m);
    membership_watch(m);
}

/* None between the entry with the only member of a restored cluster and the one with its new name:
 * a start from it would take the old name for its own. */
static void take_snapshot(struct member *m)
{
    uint64_t every = m->opts.snapshot_every ? m->opts.snapshot_every : SNAPSHOT_EVERY;
    uint64_t keep = m->opts.snapshot_keep ? m->opts.snapshot_keep : SNAPSHOT_KEEP;
    bool unnamed = m->opts.restore && !MEMBER_MUTANT(rm_restored_snapshot);
    if (m->health.stopped || m->health.stalled || unnamed || core_snapshotting(m->core) ||
        core_applied(m->core) - core_snapshot_index(m->core) < every)
        return;
    size_t len = fsm_snapshot_size(&m->fsm);
    char *bytes = malloc(len);
    if (bytes && fsm_snapshot(&m->fsm, bytes, len) == 0 &&
        core_snapshot(m->core, bytes, len, keep) == 0) {
        m->applied.snapshots++;
        member_drain(m);
    }
    free(bytes);
}

/* ---- the disk ---- */

static void watch_disk(struct member *m)
{
    char why[200];
    bool stalled = disk_problem(m->opts.disk, why, sizeof why);
    if (stalled && !m->health.stalled)
        member_say(m, NODE_ERROR, "log_not_written",
                   "cause=%s cure=free disk space or repair the disk: this member goes on by "
                   "itself then; the other members continue",
                   why);
    else if (!stalled && m->health.stalled)
        member_say(m, NODE_INFO, "log_written", "the disk can be written again");
    m->health.stalled = stalled;
    if (!stalled || !core_leads(m->core) || m->now_ms < m->health.hand_over_ms ||
        MEMBER_MUTANT(rm_full_leads))
        return;
    m->health.hand_over_ms = m->now_ms + HAND_OVER_EVERY_MS;
    (void)membership_hand_over(m);
}

static void take_saved(struct member *m)
{
    if (m->health.stopped)
        return;
    core_saved(m->core, disk_saved(m->opts.disk), core_ms(m));
    member_drain(m);
}

/* ---- inputs ---- */

void member_time(struct member *m, uint64_t now_ms, uint64_t wall_ms)
{
    firn_assert(now_ms >= m->now_ms, "now=%" PRIu64 " before=%" PRIu64, now_ms, m->now_ms);
    watch_time(m, now_ms);
    m->now_ms = now_ms;
    m->wall_ms = wall_ms;
}

/* A stalled follower takes no more entries than it can hold. To append fewer of them is a message
 * that the leader might have sent as well. */
static void hold_back(const struct member *m, struct core_message *msg)
{
    if (msg->type == MESSAGE_APPEND && m->health.stalled &&
        core_last(m->core) - core_last_saved(m->core) > UNSAVED_MAX)
        msg->entries = 0;
}

void member_message(struct member *m, const struct frame *f, uint64_t from)
{
    struct core_message msg;
    if (m->health.stopped || message_read(f->body, f->len, &msg, &m->message_room) != 0 ||
        msg.from != from)
        return;
    hold_back(m, &msg);
    watch_heard(m, &msg);
    core_receive(m->core, &msg, core_ms(m));
    member_drain(m);
}

static void in_frame(struct wire *w, const struct frame *f)
{
    struct member *m = wire_user(w);
    uint64_t peer = peers_id(m, w);
    if (peer && f->type == FRAME_RAFT) {
        member_message(m, f, peer);
        return;
    }
    /* Requests before a second HELLO would never be answered. */
    if ((f->type == FRAME_HELLO) != wire_first(w) || peer || f->type == FRAME_RAFT) {
        wire_close(w);
        peers_forget(m, w);
        member_forget(m, w);
        return;
    }
    m->dirty = true;
    if (f->type != FRAME_HELLO) {
        request_take(m, f->body - FRAME_HEAD, f->len + FRAME_HEAD, w, NULL, NULL);
        return;
    }
    struct frame_greeting g;
    char room[FRAME_HEAD];
    struct frame_out o = { .p = room, .cap = sizeof room };
    if (frame_get_hello(f, &g) != 0 || (g.kind == FRAME_MEMBER && !peers_greet(m, w, &g))) {
        wire_close(w);
        return;
    }
    if (g.kind == FRAME_MEMBER)
        membership_met(m, &g);
    frame_begin(&o, FRAME_WELCOME, 0, 0, 0);
    frame_end(&o);
    wire_send(w, o.p, o.len);
}

static void in_gone(struct wire *w, const char *why)
{
    struct member *m = wire_user(w);
    (void)why;
    peers_forget(m, w);
    member_forget(m, w);
}

const struct wire_events member_events = { NULL, in_frame, in_gone };

void member_take(struct member *m, const char *frame, size_t len,
                 void (*done)(void *user, const char *reply, size_t len), void *user)
{
    m->dirty = true;
    request_take(m, frame, len, NULL, done, user);
}

static void check_indexes(const struct member *m)
{
    const struct core *c = m->core;
    const struct node_view *before = &m->view;
    firn_assert(core_term(c) >= before->term, "term=%" PRIu64 " before=%" PRIu64, core_term(c),
                before->term);
    firn_assert(core_applied(c) <= core_committed(c), "applied=%" PRIu64 " commit=%" PRIu64,
                core_applied(c), core_committed(c));
    firn_assert(core_committed(c) <= core_last(c), "commit=%" PRIu64 " last=%" PRIu64,
                core_committed(c), core_last(c));
    firn_assert(core_snapshot_index(c) <= core_last(c), "snapshot=%" PRIu64 " last=%" PRIu64,
                core_snapshot_index(c), core_last(c));
    firn_assert(core_applied(c) >= before->applied_index, "applied=%" PRIu64 " before=%" PRIu64,
                core_applied(c), before->applied_index);
    firn_assert(core_committed(c) >= before->commit_index, "commit=%" PRIu64 " before=%" PRIu64,
                core_committed(c), before->commit_index);
}

void member_tick(struct member *m)
{
    if (!m->health.stopped) {
        core_tick(m->core, core_ms(m));
        member_drain(m);
        watch_disk(m);
    }
    check_indexes(m);
    if (core_impossible(m->core) != m->impossible) {
        m->impossible = core_impossible(m->core);
        member_say(m, NODE_ERROR, "impossible_message",
                   "count=%" PRIu64 " cause=a peer sends what no member of this cluster can "
                   "send: it belongs to another cluster, or has a bug cure=stop or remove it; its "
                   "messages are dropped",
                   m->impossible);
    }
    peers_tick(m);
    watch_tick(m);
    view_tick(m);
    m->dirty = true;
    member_settle(m);
    member_expire(m);
    membership_join(m);
    removed_tick(m);
}

void member_settle(struct member *m)
{
    take_saved(m);
    for (unsigned i = 0; m->dirty && i < PASSES_MAX; i++) {
        m->dirty = false;
        member_pump(m);
    }
    take_snapshot(m);
}

/* ---- life ---- */

const struct node_view *member_view(const struct member *m)
{
    return &m->view;
}

uint64_t member_cluster(const struct member *m)
{
    return m->cluster;
}

const struct core *member_core(const struct member *m)
{
    return m->core;
}

const struct fsm *member_fsm(const struct member *m)
{
    return &m->fsm;
}

static void member_free(struct member *m)
{
    for (size_t i = 0; i < m->opts.join_n && m->join.members; i++)
        free(m->join.members[i]);
    free(m->join.members);
    proposals_free(m);
    core_free(m->core);
    fsm_done(&m->fsm);
    free(m->self.address);
    free(m->requests.room);
    free(m);
}

static struct member *member_new(const struct member_opts *o)
{
    struct member *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->opts = *o;
    m->opts.address = NULL;
    m->opts.join = NULL;
    m->opts.loaded = NULL;
    m->self.id = o->id;
    m->self.newcomer = o->newcomer;
    m->cluster = o->cluster;
    m->proposals.last = &m->proposals.first;
    m->self.address = strdup(o->address);
    m->requests.room = malloc(FRAME_RAFT_MAX);
    m->join.members = calloc(o->join_n + 1, sizeof *m->join.members);
    bool ok = m->self.address && m->requests.room && m->join.members;
    for (size_t i = 0; i < o->join_n && ok; i++)
        ok = (m->join.members[i] = strdup(o->join[i])) != NULL;
    if (!ok) {
        member_free(m);
        return NULL;
    }
    return m;
}

/* A cluster of this member alone. */
static int begin_cluster(struct member *m)
{
    struct core_config alone = { .count = 1,
                                 .member = { { .id = m->self.id, .role = CORE_VOTER } } };
    snprintf(alone.member[0].address, sizeof alone.member[0].address, "%s", m->self.address);
    return m->opts.restore ? core_force(m->core, &alone) : core_bootstrap(m->core, &alone);
}

void member_found(struct member *m)
{
    m->join.founding = false;
    if (begin_cluster(m) == 0)
        member_drain(m);
    else
        stop(m, "the cluster cannot be begun", "restart firnd");
}

int member_start(const struct member_opts *o, uint64_t now_ms, uint64_t wall_ms,
                 struct member **out, struct firn_diag *d)
{
    firn_assert(o->id != 0 && o->disk && o->loaded);
    struct member *m = member_new(o);
    if (!m)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    m->now_ms = now_ms;
    m->wall_ms = wall_ms;
    uint32_t election = o->election_ms ? o->election_ms : ELECTION_MS;
    watch_begin(m, election);
    struct core_opts c = { .id = o->id, .election_ms = election, .seed = o->random };
    int r = core_new(&c, &o->loaded->state, core_ms(m), &m->core);
    if (r == 0 && o->restore)
        r = begin_cluster(m);
    bool founds = o->init && !o->restore && !o->loaded->any;
    m->join.founding = founds && o->join_n > 0;
    if (founds && o->join_n == 0)
        m->join.found_ms = now_ms + (o->fresh ? FOUND_FRESH_MS : FOUND_MS);
    if (r == 0)
        membership_begin(m);
    if (r != 0) {
        member_free(m);
        return firn__diag(d, r, 0,
                          r == FIRN_ENOMEM ? "out of memory"
                          : o->restore     ? "the cluster cannot be restored from this log"
                                           : "the log is damaged: remove this member, delete its "
                                             "folder, join again");
    }
    member_drain(m);
    if (m->health.stopped) {
        member_free(m);
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "the snapshot or the log is damaged: remove this member, delete its "
                          "folder, join again");
    }
    view_tick(m);
    *out = m;
    return 0;
}

void member_end(struct member *m)
{
    if (!m)
        return;
    member_end_requests(m);
    if (m->forward.wire)
        wire_close(m->forward.wire);
    if (m->join.wire)
        wire_close(m->join.wire);
    if (m->removal.wire)
        wire_close(m->removal.wire);
    peers_close(m);
    member_free(m);
}
