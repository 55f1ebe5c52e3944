/*
 * Detects that this member was removed from the cluster without having heard of it.
 * Members do not talk to a process that is no member, so all it sees is that no leader comes, as if
 * the quorum was lost; and cluster.restore, the cure for that, would make a second cluster. So a
 * member without a leader asks the other members for their status. The result is only logged and
 * shown, and withdrawn when a leader comes.
 */
#include "raft/member_in.h"
#include "wire/json_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ASK_EVERY_MS = 2000, ANSWER_MS = 1000 };

static void asking_ends(struct member *m)
{
    m->removal.wire = NULL;
    m->removal.ask_ms = m->now_ms + ASK_EVERY_MS;
}

void status_ask(struct wire *w, enum frame_status what, uint32_t budget_ms)
{
    char room[FRAME_HEAD + 8];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_begin(&o, FRAME_STATUS, 0, budget_ms, 1);
    frame_u8(&o, (uint8_t)what);
    frame_end(&o);
    firn_assert(!o.full);
    wire_send(w, o.p, o.len);
}

static void see(void *user, const char *path, const char *value, bool string)
{
    struct status_seen *s = user;
    size_t len = strlen(path);
    (void)string;
    if (strcmp(path, "cluster") == 0) {
        s->ours |= strcmp(value, s->cluster) == 0;
        s->cluster_known |= strspn(value, "0") != strlen(value);
    } else if (strcmp(path, "state") == 0) {
        s->leads = strcmp(value, "leader") == 0;
    } else if (strncmp(path, "members.", 8) == 0 && strcmp(path + len - 3, ".id") == 0) {
        s->cluster_known = true;
        s->listed |= strcmp(value, s->id) == 0;
    }
}

bool status_read(const struct member *m, const struct frame *f, struct status_seen *out)
{
    /* After a restart without a leader this member may not know its cluster's incarnation yet:
     * entries that are not known to be committed are not applied. */
    struct status_seen s = { .ours = m->fsm.incarnation == 0 };
    struct frame_in in = { f->body, f->len, false };
    struct frame_answer a;
    snprintf(s.cluster, sizeof s.cluster, "%016" PRIx64, m->fsm.incarnation);
    snprintf(s.id, sizeof s.id, "%016" PRIx64, m->self.id);
    if (f->type != FRAME_REPLY || frame_get_reply(&in, &a) != 0 || a.result != 0 ||
        json_each(in.p, in.len, see, &s) != 0)
        return false;
    *out = s;
    return true;
}

static void on_frame(struct wire *w, const struct frame *f)
{
    struct member *m = wire_user(w);
    struct status_seen s;
    firn_assert(w == m->removal.wire, "a frame of a connection that was closed");
    if (f->type == FRAME_WELCOME) {
        status_ask(w, STATUS_JSON, ANSWER_MS);
        return;
    }
    /* A leader of this cluster, whose members lack this one. */
    if (status_read(m, f, &s) && s.ours && s.leads && !s.listed) {
        m->removal.removed = true;
        member_say(
            m, NODE_ERROR, "removed",
            "cause=this member was removed from the cluster cure=stop it; to let it join again "
            "delete its folder and start it with cluster.join");
    }
    wire_close(w);
    asking_ends(m);
}

static void on_gone(struct wire *w, const char *why)
{
    (void)why;
    asking_ends(wire_user(w));
}

static const struct wire_events events = { member_greet, on_frame, on_gone };

void removed_tick(struct member *m)
{
    uint64_t now = m->now_ms;
    if (m->removal.wire && now >= m->removal.ask_ms) { /* no answer */
        wire_close(m->removal.wire);
        asking_ends(m);
    }
    if (m->election.leaderless_ms == 0)
        m->removal.removed = false;
    if (m->election.leaderless_ms == 0 || m->removal.removed || m->removal.wire ||
        now < m->removal.ask_ms || now < m->election.leaderless_ms + ASK_EVERY_MS)
        return;
    const char *address = member_any_other(m);
    m->forward.other++;
    m->removal.ask_ms = now + ASK_EVERY_MS + WIRE_SILENT_MS;
    if (address)
        m->removal.wire = wire_connect(m->opts.wires, address, &events, m);
    if (!m->removal.wire)
        asking_ends(m);
}
