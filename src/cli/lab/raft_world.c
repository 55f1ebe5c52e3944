/* Three libraft nodes with a simulated clock, disks and network; see raft_world.h. */
#include "cli/lab/raft_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISK_MS = 2, NEAR_MS = 4, FAR_MS = 6, TICK_PHASE_MS = 7 };

enum event_type { EVENT_TICK, EVENT_SENT, EVENT_DELIVER, EVENT_STORED };

struct world_event {
    uint64_t at_ms, sequence;
    enum event_type type;
    unsigned node; /* whose it is; DELIVER: the receiver */
    struct raft_io_send *send;
    struct raft_io_append *append;
    size_t upto;                  /* STORED: entries that are safe then */
    struct raft_message message;  /* DELIVER; its entries are ours until then */
    struct world_message summary; /* DELIVER */
};

static const char *const address[WORLD_NODES] = { "A", "B", "C" };

/* ---- events ---- */

/* Filled in by the caller; NULL: too many, and the world has failed. */
static struct world_event *schedule(struct raft_world *w, enum event_type type, unsigned node,
                                    uint64_t in_ms)
{
    if (w->events == WORLD_EVENTS_MAX) {
        w->failed = true;
        return NULL;
    }
    struct world_event *e = &w->event[w->events++];
    *e = (struct world_event){
        .at_ms = w->now_ms + in_ms, .sequence = w->sequence++, .type = type, .node = node
    };
    return e;
}

static struct world_event take(struct raft_world *w, size_t i)
{
    struct world_event e = w->event[i];
    w->event[i] = w->event[--w->events];
    return e;
}

static size_t earliest(const struct raft_world *w)
{
    size_t best = 0;
    for (size_t i = 1; i < w->events; i++) {
        const struct world_event *a = &w->event[i], *b = &w->event[best];
        if (a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->sequence < b->sequence))
            best = i;
    }
    return best;
}

/* ---- the disk ---- */

static void disk_cut(struct world_disk *d, size_t n)
{
    while (d->n > n)
        raft_free(d->entry[--d->n].buf.base);
    if (d->durable > n)
        d->durable = n;
}

static bool disk_add(struct world_disk *d, raft_term term, unsigned short type,
                     const struct raft_buffer *buf)
{
    if (d->n == WORLD_ENTRIES_MAX)
        return false;
    struct world_entry *e = &d->entry[d->n];
    *e = (struct world_entry){ term, type, { raft_malloc(buf->len + 1), buf->len } };
    if (!e->buf.base)
        return false;
    memcpy(e->buf.base, buf->base, buf->len);
    d->n++;
    return true;
}

static int io_load(struct raft_io *io, raft_term *term, raft_id *voted_for,
                   struct raft_snapshot **snapshot, raft_index *start_index,
                   struct raft_entry *entries[], size_t *n_entries)
{
    const struct world_disk *d = &((struct world_node *)io->impl)->disk;
    size_t size = 0;
    *term = d->term;
    *voted_for = d->vote;
    *snapshot = NULL;
    *start_index = 1;
    *entries = NULL;
    *n_entries = d->n;
    if (d->n == 0)
        return 0;
    for (size_t i = 0; i < d->n; i++)
        size += d->entry[i].buf.len;
    char *batch = raft_malloc(size + 1);
    struct raft_entry *out = raft_calloc(d->n, sizeof *out);
    if (!batch || !out) {
        raft_free(batch);
        raft_free(out);
        return RAFT_NOMEM;
    }
    char *p = batch;
    for (size_t i = 0; i < d->n; i++) {
        const struct world_entry *e = &d->entry[i];
        memcpy(p, e->buf.base, e->buf.len);
        out[i] = (struct raft_entry){ e->term, e->type, { p, e->buf.len }, batch };
        p += e->buf.len;
    }
    *entries = out;
    return 0;
}

static int io_bootstrap(struct raft_io *io, const struct raft_configuration *conf)
{
    struct world_disk *d = &((struct world_node *)io->impl)->disk;
    struct raft_buffer buf;
    int r = raft_configuration_encode(conf, &buf);
    if (r != 0)
        return r;
    bool ok = disk_add(d, 1, RAFT_CHANGE, &buf);
    raft_free(buf.base);
    d->term = 1;
    d->durable = d->n;
    return ok ? 0 : RAFT_NOMEM;
}

static int io_recover(struct raft_io *io, const struct raft_configuration *conf)
{
    (void)io, (void)conf;
    return RAFT_IOERR;
}

static int io_set_term(struct raft_io *io, raft_term term)
{
    struct world_disk *d = &((struct world_node *)io->impl)->disk;
    d->term = term;
    d->vote = 0;
    return 0;
}

static int io_set_vote(struct raft_io *io, raft_id id)
{
    ((struct world_node *)io->impl)->disk.vote = id;
    return 0;
}

static int io_append(struct raft_io *io, struct raft_io_append *req,
                     const struct raft_entry entries[], unsigned n, raft_io_append_cb cb)
{
    struct world_node *node = io->impl;
    for (unsigned i = 0; i < n; i++)
        if (!disk_add(&node->disk, entries[i].term, entries[i].type, &entries[i].buf))
            return RAFT_NOSPACE;
    struct world_event *e = schedule(node->world, EVENT_STORED, node->i, DISK_MS);
    if (!e)
        return RAFT_TOOMANY;
    req->cb = cb;
    e->append = req;
    e->upto = node->disk.n;
    return 0;
}

static int io_truncate(struct raft_io *io, raft_index index)
{
    disk_cut(&((struct world_node *)io->impl)->disk, (size_t)index - 1);
    return 0;
}

/* The log stays far too short for one. */
static int io_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                           const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    (void)io, (void)trailing, (void)req, (void)snapshot, (void)cb;
    return RAFT_IOERR;
}

static int io_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *req,
                           raft_io_snapshot_get_cb cb)
{
    (void)io, (void)req, (void)cb;
    return RAFT_IOERR;
}

/* ---- the clock ---- */

static raft_time io_time(struct raft_io *io)
{
    return ((struct world_node *)io->impl)->world->now_ms;
}

/* splitmix64 */
static uint64_t draw(struct raft_world *w)
{
    uint64_t z = (w->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int io_random(struct raft_io *io, int min, int max)
{
    struct world_node *node = io->impl;
    struct raft_world *w = node->world;
    if (w->quick >= 0)
        return (unsigned)w->quick == node->i ? min : max - 1;
    return max > min ? min + (int)(draw(w) % (uint64_t)(max - min)) : min;
}

/* ---- the network ---- */

static void message_free(struct raft_message *m)
{
    if (m->type != RAFT_IO_APPEND_ENTRIES || !m->append_entries.entries)
        return;
    raft_free(m->append_entries.entries[0].batch);
    raft_free(m->append_entries.entries);
}

/* The sender keeps its entries; the receiver gets some of its own. */
static bool entries_copy(struct raft_append_entries *a)
{
    size_t size = 0;
    if (a->n_entries == 0) {
        a->entries = NULL;
        return true;
    }
    for (unsigned i = 0; i < a->n_entries; i++)
        size += a->entries[i].buf.len;
    char *batch = raft_malloc(size + 1);
    struct raft_entry *out = raft_calloc(a->n_entries, sizeof *out);
    if (!batch || !out) {
        raft_free(batch);
        raft_free(out);
        return false;
    }
    char *p = batch;
    for (unsigned i = 0; i < a->n_entries; i++) {
        out[i] = a->entries[i];
        out[i].buf.base = p;
        out[i].batch = batch;
        memcpy(p, a->entries[i].buf.base, out[i].buf.len);
        p += out[i].buf.len;
    }
    a->entries = out;
    return true;
}

static void summarise(const struct raft_message *m, struct world_message *s)
{
    s->type = m->type;
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES: {
        const struct raft_append_entries *a = &m->append_entries;
        s->term = a->term;
        s->prev_index = a->prev_log_index;
        s->prev_term = a->prev_log_term;
        s->leader_commit = a->leader_commit;
        s->entries = a->n_entries;
        if (a->n_entries > 0) {
            s->entry_type = a->entries[0].type;
            if (s->entry_type == RAFT_COMMAND)
                snprintf(s->command, sizeof s->command, "%.*s", (int)a->entries[0].buf.len,
                         (const char *)a->entries[0].buf.base);
        }
        break;
    }
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        s->term = m->append_entries_result.term;
        s->rejected = m->append_entries_result.rejected;
        s->last_index = m->append_entries_result.last_log_index;
        break;
    case RAFT_IO_REQUEST_VOTE:
        s->term = m->request_vote.term;
        s->last_index = m->request_vote.last_log_index;
        s->last_term = m->request_vote.last_log_term;
        s->pre_vote = m->request_vote.pre_vote;
        break;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        s->term = m->request_vote_result.term;
        s->granted = m->request_vote_result.vote_granted;
        s->pre_vote = m->request_vote_result.pre_vote == raft_tribool_true;
        break;
    case RAFT_IO_TIMEOUT_NOW:
        s->term = m->timeout_now.term;
        break;
    default:
        break;
    }
}

static int io_send(struct raft_io *io, struct raft_io_send *req, const struct raft_message *message,
                   raft_io_send_cb cb)
{
    struct world_node *node = io->impl;
    struct raft_world *w = node->world;
    unsigned to = (unsigned)message->server_id - 1;
    struct raft_message copy = *message;
    copy.server_id = node->i + 1;
    copy.server_address = address[node->i];
    if (copy.type == RAFT_IO_INSTALL_SNAPSHOT)
        return RAFT_NOCONNECTION;
    if (copy.type == RAFT_IO_APPEND_ENTRIES && !entries_copy(&copy.append_entries))
        return RAFT_NOMEM;
    bool far = (node->i == 2) !=
               (to == 2); /* C is a little farther away, so that answers arrive one by one */
    struct world_event *d = schedule(w, EVENT_DELIVER, to, far ? FAR_MS : NEAR_MS);
    struct world_event *s = d ? schedule(w, EVENT_SENT, node->i, 0) : NULL;
    if (!s) {
        message_free(&copy);
        if (d)
            w->events--;
        return RAFT_TOOMANY;
    }
    d->message = copy;
    d->summary = (struct world_message){ .from = node->i, .to = to };
    summarise(&copy, &d->summary);
    d->summary.lost = w->cut[node->i][to] || (w->lose && w->lose(w->lose_user, &d->summary));
    req->cb = cb;
    s->send = req;
    return 0;
}

static int io_init(struct raft_io *io, raft_id id, const char *at)
{
    (void)io, (void)id, (void)at;
    return 0;
}

static int io_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv)
{
    struct world_node *node = io->impl;
    node->tick = tick;
    node->recv = recv;
    node->tick_ms = msecs;
    /* Machines do not tick together. */
    return schedule(node->world, EVENT_TICK, node->i, msecs + node->i * TICK_PHASE_MS)
               ? 0
               : RAFT_TOOMANY;
}

/* The node's own requests end; messages that it sent are still delivered. */
static void io_close(struct raft_io *io, raft_io_close_cb cb)
{
    struct world_node *node = io->impl;
    struct raft_world *w = node->world;
    for (size_t i = 0; i < w->events;) {
        if (w->event[i].node != node->i || w->event[i].type == EVENT_DELIVER) {
            i++;
            continue;
        }
        struct world_event e = take(w, i);
        if (e.type == EVENT_SENT && e.send->cb)
            e.send->cb(e.send, RAFT_CANCELED);
        if (e.type == EVENT_STORED && e.append->cb)
            e.append->cb(e.append, RAFT_CANCELED);
    }
    disk_cut(&node->disk, node->disk.durable);
    cb(io);
}

/* ---- the state machine ---- */

/* libraft does not say which entry it is: the next command in the log. */
static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct world_node *node = fsm->data;
    struct raft_world *w = node->world;
    const struct world_disk *d = &node->disk;
    char command[WORLD_COMMAND_BUF], name, value[8];
    snprintf(command, sizeof command, "%.*s", (int)buf->len, (const char *)buf->base);
    if (sscanf(command, "set %c = %7s", &name, value) == 2 && name >= 'a' && name <= 'z')
        memcpy(node->variable[name - 'a'], value, sizeof value);
    do
        node->set_index++;
    while (node->set_index < d->n && d->entry[node->set_index - 1].type != RAFT_COMMAND);
    *result = NULL;
    if (w->watch.applied)
        w->watch.applied(w->watch.user, node->i, node->set_index, command);
    return 0;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    (void)fsm, (void)bufs, (void)n_bufs;
    return RAFT_IOERR;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    (void)fsm, (void)buf;
    return RAFT_IOERR;
}

/* ---- nodes ---- */

bool world_start(struct raft_world *w, unsigned i)
{
    struct world_node *n = &w->node[i];
    struct raft_configuration conf;
    n->world = w;
    n->i = i;
    memset(n->variable, 0, sizeof n->variable);
    n->set_index = 0;
    n->io = (struct raft_io){
        .version = 1,
        .impl = n,
        .init = io_init,
        .close = io_close,
        .load = io_load,
        .start = io_start,
        .bootstrap = io_bootstrap,
        .recover = io_recover,
        .set_term = io_set_term,
        .set_vote = io_set_vote,
        .send = io_send,
        .append = io_append,
        .truncate = io_truncate,
        .snapshot_put = io_snapshot_put,
        .snapshot_get = io_snapshot_get,
        .time = io_time,
        .random = io_random,
    };
    n->fsm = (struct raft_fsm){ .version = 1,
                                .data = n,
                                .apply = fsm_apply,
                                .snapshot = fsm_snapshot,
                                .restore = fsm_restore };
    if (raft_init(&n->raft, &n->io, &n->fsm, i + 1, address[i]) != 0) {
        w->failed = true;
        return false;
    }
    n->up = true;
    raft_set_election_timeout(&n->raft, WORLD_ELECTION_MS);
    raft_set_heartbeat_timeout(&n->raft, WORLD_HEARTBEAT_MS);
    raft_set_pre_vote(&n->raft, w->pre_vote);
    bool ok = true;
    if (n->disk.term == 0) {
        raft_configuration_init(&conf);
        for (unsigned k = 0; k < WORLD_NODES; k++)
            ok = ok && raft_configuration_add(&conf, k + 1, address[k], RAFT_VOTER) == 0;
        ok = ok && raft_bootstrap(&n->raft, &conf) == 0;
        raft_configuration_close(&conf);
    }
    ok = ok && raft_start(&n->raft) == 0;
    if (!ok)
        w->failed = true;
    return ok;
}

static void closed(struct raft *r)
{
    (void)r;
}

void world_kill(struct raft_world *w, unsigned i)
{
    struct world_node *n = &w->node[i];
    if (!n->up)
        return;
    n->up = false;
    raft_close(&n->raft, closed); /* at once: io_close() waits for nothing */
}

static void ask_done(struct raft_apply *req, int status, void *result)
{
    struct world_node *n = req->data;
    struct raft_world *w = n->world;
    (void)result;
    raft_free(req);
    if (n->up && w->watch.answered) /* a dead node does not answer */
        w->watch.answered(w->watch.user, n->i, status);
}

bool world_ask(struct raft_world *w, unsigned i, const char *command)
{
    struct world_node *n = &w->node[i];
    size_t len = strlen(command);
    if (!n->up || raft_state(&n->raft) != RAFT_LEADER)
        return false;
    struct raft_buffer buf = { raft_malloc(len), len };
    struct raft_apply *req = raft_malloc(sizeof *req);
    if (!buf.base || !req)
        goto no;
    memcpy(buf.base, command, len);
    req->data = n;
    w->asked = raft_last_index(&n->raft) + 1;
    if (raft_apply(&n->raft, req, &buf, 1, ask_done) == 0)
        return true;
no:
    raft_free(buf.base);
    raft_free(req);
    return false;
}

static void transfer_done(struct raft_transfer *req)
{
    raft_free(req);
}

bool world_transfer(struct raft_world *w, unsigned from, unsigned to)
{
    struct raft_transfer *req = raft_malloc(sizeof *req);
    if (!req)
        return false;
    if (raft_transfer(&w->node[from].raft, req, to + 1, transfer_done) == 0)
        return true;
    raft_free(req);
    return false;
}

int world_leader(const struct raft_world *w)
{
    int best = -1;
    for (int i = 0; i < WORLD_NODES; i++) {
        const struct world_node *n = &w->node[i];
        if (n->up && n->raft.state == RAFT_LEADER &&
            (best < 0 || n->raft.current_term > w->node[best].raft.current_term))
            best = i;
    }
    return best;
}

/* ---- the world ---- */

bool world_init(struct raft_world *w, uint64_t seed, bool pre_vote, int quick)
{
    *w = (struct raft_world){ .rng = seed, .pre_vote = pre_vote, .quick = quick };
    w->event = calloc(WORLD_EVENTS_MAX, sizeof *w->event);
    if (!w->event)
        return false;
    for (unsigned i = 0; i < WORLD_NODES; i++)
        if (!world_start(w, i))
            return false;
    return true;
}

void world_done(struct raft_world *w)
{
    w->watch = (struct world_watch){ 0 };
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        world_kill(w, i);
        disk_cut(&w->node[i].disk, 0);
    }
    while (w->events > 0) {
        struct world_event e = take(w, 0);
        if (e.type == EVENT_DELIVER)
            message_free(&e.message);
    }
    free(w->event);
    w->event = NULL;
}

static void deliver(struct raft_world *w, struct world_event *e)
{
    struct world_node *n = &w->node[e->node];
    if (!n->up || w->cut[e->summary.from][e->node])
        e->summary.lost = true;
    if (e->summary.lost)
        message_free(&e->message);
    else
        n->recv(&n->io, &e->message); /* takes the entries */
    if (w->watch.message)
        w->watch.message(w->watch.user, &e->summary);
}

bool world_step(struct raft_world *w)
{
    if (w->events == 0 || w->failed)
        return false;
    struct world_event e = take(w, earliest(w));
    struct world_node *n = &w->node[e.node];
    w->now_ms = e.at_ms;
    switch (e.type) {
    case EVENT_TICK:
        schedule(w, EVENT_TICK, e.node, n->tick_ms);
        n->tick(&n->io);
        if (w->watch.ticked)
            w->watch.ticked(w->watch.user, e.node);
        break;
    case EVENT_SENT:
        if (e.send->cb)
            e.send->cb(e.send, 0);
        break;
    case EVENT_DELIVER:
        deliver(w, &e);
        break;
    case EVENT_STORED:
        if (e.upto > n->disk.n) /* entries that were truncated in the meantime */
            e.upto = n->disk.n;
        if (n->disk.durable < e.upto)
            n->disk.durable = e.upto;
        e.append->cb(e.append, 0);
        if (w->watch.stored)
            w->watch.stored(w->watch.user, e.node, e.upto);
        break;
    }
    return !w->failed;
}
