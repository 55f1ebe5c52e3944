/*
 * The connection, its queue and its clock.
 *
 * The queue is a ring of calls whose answers have not come yet. All calls have the same call_ms, so
 * those that timed out are its head. Their answers are read and dropped when
 * they come, because answers are known by their order alone. AUTH, SELECT and SCRIPT LOAD are calls
 * as others are, which go first on each connection.
 *
 * The timer only wakes the loop; what is late is judged after the loop has polled (uv_check), so
 * that a turn that took long does not make answers late that have arrived meanwhile.
 *
 * A connection is an allocation of its own, freed by its close callback: the client connects again
 * while libuv still ends the old one.
 */
#include "proxy/redis.h"
#include "id/diag.h"
#include "id/rng_take.h"
#include "platform/assert.h"
#include "wire/latency.h"
#include "wire/resp.h"
#include "wire/url.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READ_BYTES = 64 * 1024,
    SHA_HEX = 2 * SHA_DIGEST_LENGTH,
    ARGS_MAX = 16,
    WHY_BUF = 160,
    QUEUE_SPARE = 8,             /* places for our own commands: the handshake, a script */
    HANDSHAKE_BYTES = 64 * 1024, /* ... and their bytes */
};

enum state { CONNECTING, READY, AWAY, CLOSING };

struct call {
    redis_done_fn *done; /* NULL: it timed out, or it is one of ours */
    void *user;
    uint64_t deadline_ms;
    bool late;      /* it timed out */
    bool handshake; /* an error ends the connection */
};

struct link {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    uv_connect_t connect;
    uv_write_t write;
    struct redis *r; /* NULL: given up */
    struct buf sending, in;
    size_t handshake; /* answers of it that are still to come */
    bool up, writing;
};

struct redis {
    uv_loop_t *loop;
    struct redis_opts o; /* its texts are ours */
    char *address, *user, *password, *script;
    char sha[SHA_HEX + 1];
    struct sockaddr_storage to;
    const char *path; /* in `address`; NULL: TCP */
    redis_state_fn *on_state;
    void *state_user;
    char told[WHY_BUF]; /* what on_state was told last: a reason, "" for ready or not yet */
    enum state state;
    struct link *link;
    struct buf out; /* of this turn; what does not fit is refused before it is written */
    struct call *queue;
    size_t head, count;
    size_t passed; /* calls at the head that timed out or are ours: no deadline is among them */
    size_t late;   /* calls in the queue that timed out */
    uint64_t late_since_ms; /* ... since when no answer came */
    uint64_t connect_by_ms, retry_at_ms, pause_ms;
    uint64_t random;
    uv_timer_t timer;
    uv_prepare_t flush;
    uv_check_t judge;
    uv_idle_t awake;
    int handles; /* not closed yet */
    struct redis_stats own_stats, *stats;
};

const char *redis_result_name(enum redis_result result)
{
    static const char *const name[] = { "ok", "timeout", "lost", "closed" };
    return name[result];
}

static uint64_t now_ms(const struct redis *r)
{
    return uv_now(r->loop);
}

static struct call *at(struct redis *r, size_t i)
{
    return &r->queue[(r->head + i) % r->o.queue_max];
}

/* ---- the clock ---- */

static void on_timer(uv_timer_t *t);

static uint64_t wake_ms(struct redis *r)
{
    if (r->state == AWAY)
        return r->retry_at_ms;
    uint64_t when = r->state == CONNECTING ? r->connect_by_ms : UINT64_MAX;
    if (r->late > 0 && r->late_since_ms + r->o.stall_ms < when)
        when = r->late_since_ms + r->o.stall_ms;
    while (r->passed < r->count && !at(r, r->passed)->done)
        r->passed++;
    if (r->passed < r->count && at(r, r->passed)->deadline_ms < when)
        when = at(r, r->passed)->deadline_ms;
    return when;
}

static void schedule(struct redis *r)
{
    if (r->state == CLOSING)
        return;
    uint64_t when = wake_ms(r), now = now_ms(r);
    if (when == UINT64_MAX)
        uv_timer_stop(&r->timer);
    else
        uv_timer_start(&r->timer, on_timer, when > now ? when - now : 0, 0);
}

/* ---- ends of calls ---- */

/* The callback may do anything, also redis_close(); the client's memory outlives this turn. */
static void finish(struct call c, enum redis_result result, const struct redis_reply *reply)
{
    if (c.done)
        c.done(c.user, result, reply);
}

static struct call pop(struct redis *r)
{
    struct call c = *at(r, 0);
    r->head = (r->head + 1) % r->o.queue_max;
    r->count--;
    r->passed -= r->passed > 0;
    r->late -= c.late;
    r->late_since_ms = now_ms(r);
    return c;
}

/* Only those that are there now: a callback may add new ones. */
static void finish_all(struct redis *r, enum redis_result result)
{
    for (size_t n = r->count; n > 0 && r->count > 0; n--) {
        struct call c = pop(r);
        latency__more(&r->stats->lost, c.done && result == REDIS_LOST);
        finish(c, result, NULL);
    }
}

/* ---- connections ---- */

static void on_link_closed(uv_handle_t *h)
{
    struct link *k = h->data;
    buf_done(&k->sending);
    buf_done(&k->in);
    free(k);
}

static void give_up_link(struct redis *r)
{
    if (!r->link)
        return;
    r->link->r = NULL;
    if (!uv_is_closing(&r->link->io.handle))
        uv_close(&r->link->io.handle, on_link_closed);
    r->link = NULL;
}

static uint64_t next_random(struct redis *r)
{
    uint64_t x = r->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 31;
}

/* Away, for a pause of between a half and all of pause_ms: gateways do not return in step. */
static void lose(struct redis *r, const char *why)
{
    bool was_ready = r->state == READY;
    if (r->state == CLOSING)
        return;
    give_up_link(r);
    buf_consume(&r->out, r->out.len);
    r->out.failed = false;
    r->state = AWAY;
    r->retry_at_ms = now_ms(r) + r->pause_ms / 2 + next_random(r) % (r->pause_ms / 2 + 1);
    r->pause_ms = 2 * r->pause_ms < r->o.pause_max_ms ? 2 * r->pause_ms : r->o.pause_max_ms;
    finish_all(r, REDIS_LOST);
    if (r->state == CLOSING)
        return;
    if (r->on_state && (was_ready || strncmp(why, r->told, sizeof r->told - 1) != 0)) {
        snprintf(r->told, sizeof r->told, "%s", why); /* not the same at each attempt */
        r->on_state(r->state_user, false, r->told);
    }
    schedule(r);
}

static void lose_because(struct redis *r, const char *what, int error)
{
    char why[WHY_BUF];
    snprintf(why, sizeof why, "%s: %s", what, uv_strerror(error));
    lose(r, why);
}

/* ---- writing ---- */

static void send_out(struct link *k);

static void on_written(uv_write_t *w, int status)
{
    struct link *k = w->data;
    k->writing = false;
    buf_consume(&k->sending, k->sending.len);
    if (!k->r)
        return;
    if (status < 0)
        lose_because(k->r, "cannot write to Redis", status);
    else
        send_out(k);
}

static void send_out(struct link *k)
{
    struct redis *r = k->r;
    if (!k->up || k->writing || r->out.len == 0)
        return;
    struct buf empty = k->sending;
    k->sending = r->out;
    r->out = empty;
    uv_buf_t b = uv_buf_init(k->sending.p, (unsigned)k->sending.len);
    k->write.data = k;
    int e = uv_write(&k->write, &k->io.stream, &b, 1, on_written);
    if (e < 0)
        lose_because(r, "cannot write to Redis", e);
    else
        k->writing = true;
}

/* Before the loop sleeps: all commands of this turn at once. */
static void on_flush(uv_prepare_t *p)
{
    struct redis *r = p->data;
    uv_prepare_stop(p);
    if (r->link)
        send_out(r->link);
}

static void queue_call(struct redis *r, const struct slice *args, size_t n, struct call c)
{
    resp_array(&r->out, n);
    for (size_t i = 0; i < n; i++)
        resp_bulk(&r->out, args[i].p ? args[i].p : "", args[i].len);
    *at(r, r->count) = c;
    if (r->count++ == r->passed)
        schedule(r);
    uv_prepare_start(&r->flush, on_flush);
}

/* ---- reading ---- */

static struct slice text(const char *p)
{
    return (struct slice){ p, strlen(p) };
}

static void load_script(struct redis *r, bool handshake)
{
    const struct slice args[] = { text("SCRIPT"), text("LOAD"), text(r->script) };
    queue_call(r, args, 3, (struct call){ .handshake = handshake });
}

/* One whole answer at the start of the bytes: its length, FIRN_EAGAIN or FIRN_EFORMAT. */
static ssize_t read_reply(const char *p, size_t len, struct redis_reply *out)
{
    uint64_t more = 1;
    size_t used = 0;
    out->n = 0;
    for (; more > 0; more--) {
        struct resp_value v;
        ssize_t n = resp_reply(p + used, len - used, &v);
        if (n < 0)
            return n;
        used += (size_t)n;
        if (v.type == RESP_CONTAINER)
            more += v.members;
        if (out->n < REDIS_VALUES_MAX)
            out->value[out->n++] = v;
    }
    return (ssize_t)used;
}

static void now_ready(struct redis *r)
{
    r->state = READY;
    r->pause_ms = r->o.pause_ms;
    latency__more(&r->stats->connects, 1);
    r->told[0] = '\0';
    if (r->on_state)
        r->on_state(r->state_user, true, "connected");
}

static void take_reply(struct redis *r, const struct redis_reply *reply)
{
    static const char forgot[] = "NOSCRIPT";
    const struct resp_value *v = &reply->value[0];
    const bool failed = v->type == RESP_FAILURE;
    struct call c = pop(r);
    latency__more(&r->stats->errors, failed);
    if (c.handshake) {
        if (failed) {
            char why[WHY_BUF];
            snprintf(why, sizeof why, "Redis refuses AUTH, SELECT or SCRIPT LOAD: %.*s",
                     (int)(v->text.len < 100 ? v->text.len : 100), v->text.p);
            lose(r, why);
        } else if (--r->link->handshake == 0) {
            now_ready(r);
        }
        return;
    }
    if (failed && r->script && r->count < r->o.queue_max && v->text.len >= sizeof forgot - 1 &&
        memcmp(v->text.p, forgot, sizeof forgot - 1) == 0)
        load_script(r, false);
    finish(c, REDIS_OK, reply);
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    struct link *k = h->data;
    (void)suggested;
    char *room = k->r ? buf_room(&k->in, READ_BYTES) : NULL;
    *b = uv_buf_init(room, room ? READ_BYTES : 0);
}

static void on_bytes(uv_stream_t *s, ssize_t got, const uv_buf_t *b)
{
    struct link *k = s->data;
    struct redis *r = k->r;
    struct redis_reply reply;
    size_t used = 0;
    (void)b;
    if (!r || got == 0)
        return;
    if (got < 0) {
        if (got == UV_ENOBUFS)
            lose(r, "an answer of Redis is too large");
        else
            lose_because(r, "the connection to Redis ended", (int)got);
        return;
    }
    buf_commit(&k->in, (size_t)got);
    while (k->r && used < k->in.len) {
        ssize_t n = read_reply(k->in.p + used, k->in.len - used, &reply);
        if (n == FIRN_EAGAIN)
            break;
        if (n < 0 || r->count == 0) {
            lose(r, n < 0 ? "this is not the Redis protocol" : "Redis sent an answer too many");
            return;
        }
        used += (size_t)n;
        take_reply(r, &reply);
    }
    buf_consume(&k->in, used); /* the link is freed in a later turn at the earliest */
    if (k->r)
        schedule(r);
}

/* ---- connecting ---- */

static void on_connected(uv_connect_t *c, int status)
{
    struct link *k = c->data;
    struct redis *r = k->r;
    if (!r)
        return;
    if (status == 0)
        status = uv_read_start(&k->io.stream, on_room, on_bytes);
    if (status < 0) {
        lose_because(r, "cannot connect to Redis", status);
        return;
    }
    k->up = true;
    send_out(k);
}

/* Its commands go first, for nothing else is queued yet. */
static void queue_handshake(struct redis *r)
{
    const struct call ours = { .handshake = true };
    char number[16];
    snprintf(number, sizeof number, "%u", r->o.database);
    if (r->password && r->user)
        queue_call(r, (struct slice[]){ text("AUTH"), text(r->user), text(r->password) }, 3, ours);
    else if (r->password)
        queue_call(r, (struct slice[]){ text("AUTH"), text(r->password) }, 2, ours);
    queue_call(r, (struct slice[]){ text("SELECT"), text(number) }, 2, ours);
    if (r->script)
        load_script(r, true);
    r->link->handshake = r->count;
}

static int begin(struct redis *r, struct link *k)
{
    k->connect.data = k;
    if (r->path) {
        uv_pipe_connect(&k->connect, &k->io.pipe, r->path, on_connected);
        return 0; /* errors come to on_connected() */
    }
    uv_tcp_nodelay(&k->io.tcp, 1);
    return uv_tcp_connect(&k->connect, &k->io.tcp, (const struct sockaddr *)&r->to, on_connected);
}

static void connect_now(struct redis *r)
{
    struct link *k = calloc(1, sizeof *k);
    int e = k ? (r->path ? uv_pipe_init(r->loop, &k->io.pipe, 0) : uv_tcp_init(r->loop, &k->io.tcp))
              : UV_ENOMEM;
    if (e < 0) {
        free(k);
        lose_because(r, "cannot connect to Redis", e);
        return;
    }
    k->io.handle.data = k;
    k->r = r;
    buf_init(&k->in, (size_t)r->o.reply_max + READ_BYTES);
    buf_init(&k->sending, (size_t)r->o.out_max + HANDSHAKE_BYTES);
    r->link = k;
    r->state = CONNECTING;
    r->connect_by_ms = now_ms(r) + r->o.connect_ms;
    queue_handshake(r);
    e = begin(r, k);
    if (e < 0)
        lose_because(r, "cannot connect to Redis", e);
    else
        schedule(r);
}

/* ---- what is late ---- */

static void time_out(struct redis *r)
{
    while (r->passed < r->count) {
        struct call *c = at(r, r->passed);
        if (c->done && c->deadline_ms > now_ms(r))
            return;
        r->passed++;
        if (!c->done)
            continue;
        struct call late = *c;
        c->done = NULL;
        c->late = true;
        if (r->late++ == 0)
            r->late_since_ms = late.deadline_ms;
        latency__more(&r->stats->timeouts, 1);
        finish(late, REDIS_TIMEOUT, NULL);
    }
}

static void on_judge(uv_check_t *c)
{
    struct redis *r = c->data;
    uv_check_stop(c);
    uv_idle_stop(&r->awake);
    if (r->state == AWAY && now_ms(r) >= r->retry_at_ms)
        connect_now(r);
    else if (r->state == CONNECTING && now_ms(r) >= r->connect_by_ms)
        lose(r, "Redis did not answer AUTH, SELECT or SCRIPT LOAD in time");
    else if (r->late > 0 && now_ms(r) >= r->late_since_ms + r->o.stall_ms)
        lose(r, "Redis does not answer");
    time_out(r);
    schedule(r);
}

static void on_idle(uv_idle_t *i)
{
    (void)i;
}

static void on_timer(uv_timer_t *t)
{
    struct redis *r = t->data;
    uv_check_start(&r->judge, on_judge);
    uv_idle_start(&r->awake, on_idle); /* so that the poll before on_judge() does not wait */
}

/* ---- the public side ---- */

bool redis_ready(const struct redis *r)
{
    return (r->state == READY || r->state == CONNECTING) && r->late == 0;
}

int redis_call(struct redis *r, const struct slice *args, size_t n, redis_done_fn *done, void *user)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += args[i].len + 32;
    if (!redis_ready(r) || r->count + QUEUE_SPARE >= r->o.queue_max ||
        bytes > r->o.out_max - (r->out.len < r->o.out_max ? r->out.len : r->o.out_max)) {
        latency__more(&r->stats->refused, 1);
        return FIRN_EAGAIN;
    }
    if (!buf_room(&r->out, bytes + 32)) {
        r->out.failed = false; /* nothing of it was written */
        return FIRN_ENOMEM;
    }
    latency__more(&r->stats->calls, 1);
    queue_call(
        r, args, n,
        (struct call){ .done = done, .user = user, .deadline_ms = now_ms(r) + r->o.call_ms });
    return 0;
}

int redis_eval(struct redis *r, struct slice key, const struct slice *args, size_t n,
               redis_done_fn *done, void *user)
{
    struct slice all[ARGS_MAX] = { text("EVALSHA"), { r->sha, SHA_HEX }, text("1"), key };
    firn_assert(r->script && n <= ARGS_MAX - 4, "n=%zu", n);
    memcpy(all + 4, args, n * sizeof *args);
    return redis_call(r, all, n + 4, done, user);
}

int redis_get(struct redis *r, struct slice key, redis_done_fn *done, void *user)
{
    return redis_call(r, (struct slice[]){ text("GET"), key }, 2, done, user);
}

int redis_set(struct redis *r, struct slice key, struct slice value, uint32_t ttl_s,
              redis_done_fn *done, void *user)
{
    char ttl[16];
    snprintf(ttl, sizeof ttl, "%u", ttl_s);
    return redis_call(r, (struct slice[]){ text("SET"), key, value, text("EX"), text(ttl) }, 5,
                      done, user);
}

void redis_stats(const struct redis *r, struct redis_stats *out)
{
    *out = *r->stats;
    out->queued = r->count;
}

static void free_now(struct redis *r)
{
    buf_done(&r->out);
    free(r->queue);
    free(r->address);
    free(r->user);
    free(r->password);
    free(r->script);
    free(r);
}

static void on_closed(uv_handle_t *h)
{
    struct redis *r = h->data;
    if (--r->handles == 0)
        free_now(r);
}

void redis_close(struct redis *r)
{
    if (!r || r->state == CLOSING)
        return;
    give_up_link(r);
    r->state = CLOSING;
    finish_all(r, REDIS_CLOSED);
    uv_close((uv_handle_t *)&r->timer, on_closed);
    uv_close((uv_handle_t *)&r->flush, on_closed);
    uv_close((uv_handle_t *)&r->judge, on_closed);
    uv_close((uv_handle_t *)&r->awake, on_closed);
}

static bool address_of(struct redis *r)
{
    static const char unix_prefix[] = "unix:";
    const size_t n = sizeof unix_prefix - 1;
    struct host_port hp;
    if (strncmp(r->address, unix_prefix, n) == 0) {
        r->path = r->address + n;
        return r->path[0] == '/' && strlen(r->path) <= REDIS_NAME_MAX;
    }
    if (!host_port_full(r->address, &hp))
        return false;
    return uv_ip4_addr(hp.host, hp.port, (struct sockaddr_in *)&r->to) == 0 ||
           uv_ip6_addr(hp.host, hp.port, (struct sockaddr_in6 *)&r->to) == 0;
}

static void defaults(struct redis_opts *o)
{
    const struct {
        uint32_t *field, value;
    } row[] = { { &o->connect_ms, 1000 }, { &o->call_ms, 100 },      { &o->stall_ms, 2000 },
                { &o->queue_max, 4096 },  { &o->out_max, 16 << 20 }, { &o->reply_max, 8 << 20 },
                { &o->pause_ms, 50 },     { &o->pause_max_ms, 5000 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (*row[i].field == 0)
            *row[i].field = row[i].value;
    o->queue_max = o->queue_max < 2 * QUEUE_SPARE ? 2 * QUEUE_SPARE : o->queue_max;
}

static bool copy(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

static void hex_sha1(const char *p, char out[SHA_HEX + 1])
{
    unsigned char sum[SHA_DIGEST_LENGTH];
    SHA1((const unsigned char *)p, strlen(p), sum);
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

int redis_new(uv_loop_t *loop, const struct redis_opts *opts, redis_state_fn *state, void *user,
              struct redis **out, struct firn_diag *d)
{
    struct redis *r = calloc(1, sizeof *r);
    if (!r)
        return FIRN_ENOMEM;
    r->loop = loop;
    r->o = *opts;
    r->on_state = state;
    r->state_user = user;
    r->stats = opts->stats ? opts->stats : &r->own_stats;
    defaults(&r->o);
    r->pause_ms = r->o.pause_ms;
    buf_init(&r->out, (size_t)r->o.out_max + HANDSHAKE_BYTES);
    r->queue = calloc(r->o.queue_max, sizeof *r->queue);
    if (!r->queue || !copy(&r->address, opts->address ? opts->address : "127.0.0.1:6379") ||
        !copy(&r->user, opts->user) || !copy(&r->password, opts->password) ||
        !copy(&r->script, opts->script)) {
        free_now(r);
        return FIRN_ENOMEM;
    }
    if (!address_of(r)) {
        int e = firn__diag(d, FIRN_EINVAL, 0,
                           "%.80s is not the address of a Redis: 127.0.0.1:6379, [::1]:6379 or "
                           "unix:/path",
                           r->address);
        free_now(r);
        return e;
    }
    if (r->script)
        hex_sha1(r->script, r->sha);
    firn__entropy(&r->random, sizeof r->random);
    uv_timer_init(loop, &r->timer);
    uv_prepare_init(loop, &r->flush);
    uv_check_init(loop, &r->judge);
    uv_idle_init(loop, &r->awake);
    r->timer.data = r->flush.data = r->judge.data = r->awake.data = r;
    r->handles = 4;
    connect_now(r);
    *out = r;
    return 0;
}
