/*
 * Detects that this member was removed from the cluster without having heard of it.
 * Members do not talk to a process that is no member, so all it sees is that no leader comes, as if
 * the quorum was lost; and cluster.restore, the cure for that, would make a second cluster. So a
 * member without a leader asks the other members for their status. The result is only logged and
 * shown, and withdrawn when a leader comes.
 */
#include "raft/node_in.h"
#include "wire/json_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ASK_EVERY_MS = 2000, ANSWER_MS = 1000 };

static void asking_ends(struct node *n)
{
    n->removal.wire = NULL;
    n->removal.ask_ms = uv_now(&n->loop.uv) + ASK_EVERY_MS;
}

static void ask(struct wire *w)
{
    char room[FRAME_HEAD + 8];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_begin(&o, FRAME_STATUS, 0, ANSWER_MS, 1);
    frame_u8(&o, STATUS_JSON);
    frame_end(&o);
    firn_assert(!o.full);
    wire_send(w, o.p, o.len);
}

struct status_seen {
    char cluster[17], id[17]; /* of this member, as the status writes them */
    bool ours, leads, listed;
};

static void see(void *user, const char *path, const char *value, bool string)
{
    struct status_seen *s = user;
    size_t len = strlen(path);
    (void)string;
    if (strcmp(path, "cluster") == 0)
        s->ours |= strcmp(value, s->cluster) == 0;
    else if (strcmp(path, "state") == 0)
        s->leads = strcmp(value, "leader") == 0;
    else if (strncmp(path, "members.", 8) == 0 && strcmp(path + len - 3, ".id") == 0)
        s->listed |= strcmp(value, s->id) == 0;
}

/* The status of a leader of this cluster whose members lack this one. After a restart without a
 * leader this member may not know its cluster's incarnation yet: entries that are not known to be
 * committed are not applied. */
static bool says_removed(const struct node *n, const char *status, size_t len)
{
    struct status_seen s = { .ours = n->fsm.incarnation == 0 };
    snprintf(s.cluster, sizeof s.cluster, "%016" PRIx64, n->fsm.incarnation);
    snprintf(s.id, sizeof s.id, "%016" PRIx64, n->self.id);
    return json_each(status, len, see, &s) == 0 && s.ours && s.leads && !s.listed;
}

static void on_frame(struct wire *w, const struct frame *f)
{
    struct node *n = wire_user(w);
    struct frame_in in = { f->body, f->len, false };
    struct frame_answer a;
    firn_assert(w == n->removal.wire, "a frame of a connection that was closed");
    if (f->type == FRAME_WELCOME) {
        ask(w);
        return;
    }
    if (f->type == FRAME_REPLY && frame_get_reply(&in, &a) == 0 && a.result == 0 &&
        says_removed(n, in.p, in.len)) {
        n->removal.removed = true;
        node_say(
            n, NODE_ERROR, "removed",
            "cause=this member was removed from the cluster cure=stop it; to let it join again "
            "delete its folder and start it with cluster.join");
    }
    wire_close(w);
    asking_ends(n);
}

static void on_gone(struct wire *w, const char *why)
{
    (void)why;
    asking_ends(wire_user(w));
}

static const struct wire_events events = { node_greet, on_frame, on_gone };

void removed_tick(struct node *n)
{
    uint64_t now = uv_now(&n->loop.uv);
    if (n->removal.wire && now >= n->removal.ask_ms) { /* no answer */
        wire_close(n->removal.wire);
        asking_ends(n);
    }
    if (n->election.leaderless_ms == 0)
        n->removal.removed = false;
    if (n->election.leaderless_ms == 0 || n->removal.removed || n->removal.wire ||
        now < n->removal.ask_ms || now < n->election.leaderless_ms + ASK_EVERY_MS)
        return;
    const char *address = node_any_other(n);
    n->forward.other++;
    n->removal.ask_ms = now + ASK_EVERY_MS + WIRE_SILENT_MS;
    if (address)
        n->removal.wire = wire_connect(&n->loop.uv, address, n->net.tls, &events, n);
    if (!n->removal.wire)
        asking_ends(n);
}
