/*
 * firn cluster remove --force: the majority is lost for good, and this member goes on alone.
 *
 * The member is ended and started again as cluster.restore would, with a new id and as a new
 * incarnation of the cluster: members of the old one that come back after all do not know it, and
 * every user of the registers notices, and fences. The request is answered when the cluster has its
 * new name.
 */
#include "raft/node_in.h"
#include "id/diag.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void answer(struct hand_in *h, int result, const char *why)
{
    char room[FRAME_HEAD + 32 + sizeof(struct firn_diag)];
    struct frame_out o = { .p = room, .cap = sizeof room };
    if (result != 0) {
        frame_refuse(&o, 0, result, 0, why);
    } else {
        frame_reply(&o, 0, 0, 0, 0);
        frame_end(&o);
    }
    h->done(h->user, o.p, o.len);
    free(h);
}

static void ended(struct node *n, int result, const char *why)
{
    struct hand_in *h = n->force.ask;
    n->force = (struct node_force){ 0 };
    answer(h, result, why);
}

bool force_take(struct node *n, struct hand_in *h)
{
    struct frame f;
    struct firn_diag d = { 0 };
    char lost[FRAME_ADDRESS_MAX + 1] = "";
    if (frame_parse(h->bytes, h->len, &f) != (ssize_t)h->len || f.type != FRAME_CHANGE)
        return false;
    struct frame_in in = { f.body, f.len, false };
    if (frame_get_u8(&in) != CHANGE_FORCE)
        return false;
    (void)frame_get_u64(&in);
    struct firn_slice ids = frame_get_text(&in, FRAME_ADDRESS_MAX);
    if (ids.p)
        memcpy(lost, ids.p, ids.len);
    int r = n->force.ask ? firn__diag(&d, FIRN_EAGAIN, 0, "another one is under way")
                         : member_may_force(n->member, lost, &d);
    if (r != 0)
        answer(h, r, d.text);
    else
        n->force.ask = h;
    return true;
}

/* Not while the member is at work. */
static void begin(struct node *n)
{
    struct firn_diag d = { 0 };
    uint64_t old = n->self.id;
    int r = node_random(&n->self.id, &d);
    if (r != 0) {
        n->self.id = old;
        ended(n, r, d.text);
        return;
    }
    node_say(n, NODE_WARN, "forced",
             "old=%016" PRIx64 " id=%016" PRIx64 " cause=firn cluster remove --force: this member "
             "goes on alone cure=delete the folders of all other members before they are started",
             old, n->self.id);
    member_end(n->member);
    n->member = NULL;
    wire_close_all(&n->wires);
    disk_close(n->disk);
    n->disk = NULL;
    n->opts.init = n->self.newcomer = false;
    n->opts.restore = n->force.begun = true;
    r = node_open_member(n, &d);
    n->opts.restore = false; /* the member has it now */
    if (r == 0)
        return;
    node_say(n, NODE_ERROR, "member_stopped", "cause=%s cure=restart firnd with cluster.restore",
             d.text);
    ended(n, r, d.text);
}

void force_tick(struct node *n)
{
    if (n->force.ask && !n->force.begun)
        begin(n);
    else if (n->force.named && !n->self.restored)
        ended(n, 0, "");
}

void force_end(struct node *n)
{
    struct hand_in *h = n->force.ask;
    if (!h)
        return;
    n->force.ask = NULL;
    h->done(h->user, NULL, 0);
    free(h);
}
