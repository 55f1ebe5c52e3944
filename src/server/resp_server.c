/*
 * RESP commands about this server and this connection: CLIENT, CONFIG, INFO, DBSIZE, TIME. Tested
 * in tests/integration/clients.py.
 */
#include "server/resp_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

bool resp_set_name(struct reply *r, struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.p[i] < '!' || name.p[i] > '~') {
            resp_error(r->out,
                       "ERR Client names cannot contain spaces, newlines or special characters.");
            return false;
        }
    struct resp_session *s = r->peer ? resp_session(r->peer) : NULL;
    if (s) {
        free(s->name);
        s->name = name.len ? strndup(name.p, name.len) : NULL;
    }
    return true;
}

static const char *name_of(const struct peer *p)
{
    const struct resp_session *s = p->user;
    return s && s->name ? s->name : NULL;
}

/* The line of CLIENT INFO, with the fields that clients insist on; those that firn does not measure
 * are 0. Other connections belong to other threads and are not listed. */
static void write_line(struct reply *r)
{
    const struct peer *p = r->peer;
    const struct resp_session *s = p->user;
    char address[PEER_ADDRESS_BUF], line[PEER_ADDRESS_BUF + 512];
    peer_address(p, address);
    int n = snprintf(line, sizeof line,
                     "id=%llu addr=%s laddr= fd=-1 name=%.256s age=0 idle=0 flags=%s db=0 sub=0 "
                     "psub=0 ssub=0 multi=%d qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 obl=0 oll=0 "
                     "omem=0 tot-mem=0 events=r cmd=client user=default redir=-1 resp=%d\n",
                     (unsigned long long)p->id, address, name_of(p) ? name_of(p) : "",
                     resp_in_multi(p) ? "x" : "N", resp_in_multi(p) ? (int)s->queued : -1,
                     resp_proto(r));
    resp_verbatim(r->out, resp_proto(r), "txt", line, (size_t)n);
}

void run_client(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    struct slice sub = q->argv[1];
    if (resp_is(q, 1, "id")) {
        resp_int(r->out, (int64_t)r->peer->id);
    } else if (resp_is(q, 1, "getname")) {
        if (name_of(r->peer))
            resp_bulk_str(r->out, name_of(r->peer));
        else
            resp_null(r->out, resp_proto(r));
    } else if (resp_is(q, 1, "setname") && q->argc == 3) {
        if (resp_set_name(r, q->argv[2]))
            resp_simple(r->out, "OK");
    } else if ((resp_is(q, 1, "info") || resp_is(q, 1, "list")) && q->argc == 2) {
        write_line(r);
    } else if (resp_is(q, 1, "setinfo") || resp_is(q, 1, "no-evict") || resp_is(q, 1, "no-touch")) {
        resp_simple(r->out, "OK");
    } else {
        resp_errorf(
            r->out,
            "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try CLIENT ID, "
            "GETNAME, SETNAME name, INFO, LIST or SETINFO.",
            (int)(sub.len < 64 ? sub.len : 64), sub.p);
    }
}

/* Settings that tools ask for before they start; redis-benchmark warns without the first two. */
void run_config(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    static const char *const told[][2] = { { "save", "" },
                                           { "appendonly", "yes" },
                                           { "databases", "1" } };
    enum { TOLD = sizeof told / sizeof told[0] };
    (void)ctx;
    if (!resp_is(q, 1, "get") || q->argc < 3) {
        resp_error(r->out,
                   "ERR only CONFIG GET is supported; firnd's settings are in firnd.yaml(5)");
        return;
    }
    bool wanted[TOLD] = { false };
    size_t n = 0;
    for (size_t i = 2; i < q->argc; i++)
        for (size_t k = 0; k < TOLD; k++)
            if (resp_is(q, i, told[k][0]) && !wanted[k]) {
                wanted[k] = true;
                n++;
            }
    resp_map(r->out, resp_proto(r), n);
    for (size_t k = 0; k < TOLD; k++)
        if (wanted[k]) {
            resp_bulk_str(r->out, told[k][0]);
            resp_bulk_str(r->out, told[k][1]);
        }
}

void run_time(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    struct timespec now;
    char text[FIRN_U64_TEXT_BUF];
    clock_gettime(CLOCK_REALTIME, &now);
    resp_array(r->out, 2);
    resp_bulk(r->out, text, firn_u64_format((uint64_t)now.tv_sec, text));
    resp_bulk(r->out, text, firn_u64_format((uint64_t)now.tv_nsec / 1000, text));
}

static uint64_t sequences(const struct app *app)
{
    return atomic_load(&coordinator_stats(app->coordinator)->sequences);
}

void run_dbsize(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)q;
    resp_int(r->out, (int64_t)sequences(ctx->app));
}

/* --- INFO --- */

static void info_server(struct app *app, struct buf *b)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    buf_addf(b,
             "redis_version:7.0.0\r\nredis_mode:standalone\r\nfirn_version:" FIRN_VERSION
             "\r\nprocess_id:%d\r\nuptime_in_seconds:%llu\r\n",
             (int)getpid(), (unsigned long long)((uint64_t)now.tv_sec - app->started_ms / 1000));
}

static void info_clients(struct app *app, struct buf *b)
{
    buf_addf(b, "connected_clients:%u\r\n", (unsigned)atomic_load(&app->places.open));
}

static void info_persistence(struct app *app, struct buf *b)
{
    (void)app;
    buf_add_str(b, "loading:0\r\n");
}

static void info_stats(struct app *app, struct buf *b)
{
    uint64_t ids = 0;
    size_t kinds;
    firn_kinds(&kinds);
    for (size_t i = 0; i < app->loops; i++)
        for (size_t k = 0; k < kinds; k++)
            ids += minter_counted(app->ctx[i].minter, k);
    buf_addf(b, "ids_total:%llu\r\ntickets_total:%llu\r\n", (unsigned long long)ids,
             (unsigned long long)atomic_load(&coordinator_stats(app->coordinator)->tickets));
}

static void info_replication(struct app *app, struct buf *b)
{
    (void)app;
    buf_add_str(b, "role:master\r\nconnected_slaves:0\r\n");
}

static void info_firn(struct app *app, struct buf *b)
{
    struct lease_view v;
    const char *why;
    board_copy(&app->board, &v);
    bool ready = app_ready(app, &why);
    buf_addf(b, "ready:%d\r\nready_reason:%s\r\nslot:%u\r\nslot_state:%s\r\n", ready, why,
             v.grant.slot, slot_state_name(v.state));
}

static void info_keyspace(struct app *app, struct buf *b)
{
    buf_addf(b, "db0:keys=%llu,expires=0,avg_ttl=0\r\n", (unsigned long long)sequences(app));
}

static const struct {
    const char *name;
    void (*write)(struct app *app, struct buf *b);
} sections[] = {
    { "Server", info_server },           { "Clients", info_clients },
    { "Persistence", info_persistence }, { "Stats", info_stats },
    { "Replication", info_replication }, { "Firn", info_firn },
    { "Keyspace", info_keyspace },
};

static bool wants_section(const struct resp_request *q, const char *name)
{
    for (size_t i = 1; i < q->argc; i++)
        if (resp_is(q, i, name) || resp_is(q, i, "all") || resp_is(q, i, "default") ||
            resp_is(q, i, "everything"))
            return true;
    return q->argc == 1;
}

void run_info(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    struct buf text;
    buf_init(&text, 8192);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (wants_section(q, sections[i].name)) {
            buf_addf(&text, "# %s\r\n", sections[i].name);
            sections[i].write(ctx->app, &text);
        }
    if (text.failed)
        resp_error(r->out, "TRYAGAIN out of memory");
    else
        resp_verbatim(r->out, resp_proto(r), "txt", text.p ? text.p : "", text.len);
    buf_done(&text);
}
