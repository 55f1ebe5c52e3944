/*
 * The Redis protocol: one table of commands. Any Redis client is a firn client: INCR takes a
 * ticket, FIRN.NEXT mints any kind. IDs are bulk strings, because many clients read integers as
 * doubles; only INCR and INCRBY answer with integers, as Redis users expect. Tested in
 * tests/integration/clients.py.
 */
#include "server/resp_call.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
struct command {
    const char *name; /* lower case, as COMMAND lists them */
    int arity;        /* as Redis counts: the command included; negative: at least */
    resp_handler *run;
    const char *flag; /* readonly, write or fast */
    const char *group, *summary;
};

static const struct command *find_command(const char *p, size_t len);
static bool arg_equals(struct slice arg, const char *word)
{
    return arg.len == strlen(word) && strncasecmp(arg.p, word, arg.len) == 0;
}

bool resp_allowed(struct service_ctx *ctx, struct reply *r, enum guard_what what, struct slice name)
{
    struct guard_refusal why;
    if (guard_check(ctx, r->peer, (struct slice){ NULL, 0 }, what, name, &why) == 0)
        return true;
    guard_refuse_resp(r, &why, name);
    return false;
}

/* --- connection --- */

static void run_ping(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    if (q->argc > 2)
        resp_error(r->out, "ERR wrong number of arguments for 'ping' command");
    else if (q->argc == 2)
        resp_bulk(r->out, q->argv[1].p, q->argv[1].len);
    else
        resp_simple(r->out, "PONG");
}

static void run_echo(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    resp_bulk(r->out, q->argv[1].p, q->argv[1].len);
}

static void run_quit(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    resp_simple(r->out, "OK");
    r->close = true;
}

static void run_select(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    if (arg_equals(q->argv[1], "0"))
        resp_simple(r->out, "OK");
    else
        resp_error(r->out, "ERR DB index is out of range");
}

static void run_auth(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    struct guard_refusal why;
    struct slice user = { NULL, 0 };
    if (q->argc > 3) {
        resp_error(r->out, "ERR syntax error");
        return;
    }
    if (q->argc == 3)
        user = q->argv[1];
    int e = guard_auth(ctx, r->peer, user, q->argv[q->argc - 1], &why);
    if (e == 0)
        resp_simple(r->out, "OK");
    else if (e == FIRN_EAUTH)
        guard_refuse_resp(r, &why, user);
    else
        resp_error(r->out,
                   "ERR AUTH <password> called without any password configured for the default "
                   "user. Are you sure your configuration is correct?");
}

/* Names the connection; "" removes its name. False: the name is invalid, and that is answered. */
static bool set_name(struct reply *r, struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.p[i] < '!' || name.p[i] > '~') {
            resp_error(r->out,
                       "ERR Client names cannot contain spaces, newlines or special characters.");
            return false;
        }
    if (r->peer) {
        free(r->peer->user);
        r->peer->user = name.len ? strndup(name.p, name.len) : NULL;
    }
    return true;
}

static void run_hello(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    size_t at = 1, auth = 0, name = 0;
    int version = resp_proto(r);
    if (q->argc > 1) {
        if (!arg_equals(q->argv[1], "2") && !arg_equals(q->argv[1], "3")) {
            resp_error(r->out, "NOPROTO unsupported protocol version");
            return;
        }
        version = q->argv[1].p[0] - '0';
        at = 2;
    }
    for (; at < q->argc; at++) {
        if (arg_equals(q->argv[at], "setname") && at + 1 < q->argc) {
            name = ++at;
        } else if (arg_equals(q->argv[at], "auth") && at + 2 < q->argc) {
            auth = at + 1;
            at += 2;
        } else {
            resp_errorf(r->out, "ERR Syntax error in HELLO option '%.*s'", (int)q->argv[at].len,
                        q->argv[at].p);
            return;
        }
    }
    struct guard_refusal why;
    if (auth && guard_auth(ctx, r->peer, q->argv[auth], q->argv[auth + 1], &why) == FIRN_EAUTH) {
        guard_refuse_resp(r, &why, q->argv[auth]);
        return;
    }
    if (name && !set_name(r, q->argv[name]))
        return;
    if (r->peer)
        r->peer->proto = (uint8_t)version;
    resp_map(r->out, version, 7);
    resp_bulk_str(r->out, "server");
    resp_bulk_str(r->out, "firn");
    resp_bulk_str(r->out, "version");
    resp_bulk_str(r->out, FIRN_VERSION);
    resp_bulk_str(r->out, "proto");
    resp_int(r->out, version);
    resp_bulk_str(r->out, "id");
    resp_int(r->out, r->peer ? (int64_t)r->peer->id : 0);
    resp_bulk_str(r->out, "mode");
    resp_bulk_str(r->out, "standalone");
    resp_bulk_str(r->out, "role");
    resp_bulk_str(r->out, "master");
    resp_bulk_str(r->out, "modules");
    resp_array(r->out, 0);
}

static void run_client(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    struct slice sub = q->argv[1];
    if (arg_equals(sub, "id")) {
        resp_int(r->out, r->peer ? (int64_t)r->peer->id : 0);
    } else if (arg_equals(sub, "getname")) {
        const char *name = r->peer ? r->peer->user : NULL;
        if (name)
            resp_bulk_str(r->out, name);
        else
            resp_null(r->out, resp_proto(r));
    } else if (arg_equals(sub, "setname") && q->argc == 3) {
        if (set_name(r, q->argv[2]))
            resp_simple(r->out, "OK");
    } else if (arg_equals(sub, "setinfo") || arg_equals(sub, "no-evict") ||
               arg_equals(sub, "no-touch")) {
        resp_simple(r->out, "OK");
    } else {
        resp_errorf(r->out,
                    "ERR unknown subcommand '%.*s'. Try CLIENT ID, GETNAME, SETNAME or SETINFO.",
                    (int)(sub.len < 64 ? sub.len : 64), sub.p);
    }
}

/* Settings that tools ask for before they start; redis-benchmark warns without the first two. */
static void run_config(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    static const char *const told[][2] = { { "save", "" },
                                           { "appendonly", "yes" },
                                           { "databases", "1" } };
    enum { TOLD = sizeof told / sizeof told[0] };
    (void)ctx;
    if (!arg_equals(q->argv[1], "get") || q->argc < 3) {
        resp_error(r->out,
                   "ERR only CONFIG GET is supported; firnd's settings are in firnd.yaml(5)");
        return;
    }
    bool wanted[TOLD] = { false };
    size_t n = 0;
    for (size_t i = 2; i < q->argc; i++)
        for (size_t k = 0; k < TOLD; k++)
            if (arg_equals(q->argv[i], told[k][0]) && !wanted[k]) {
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

static void run_info(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)q;
    struct app *app = ctx->app;
    struct lease_view v;
    struct timespec now;
    const char *why;
    char text[1024];
    uint64_t ids = 0;
    size_t kinds;
    firn_kinds(&kinds);
    for (size_t i = 0; i < app->loops; i++)
        for (size_t k = 0; k < kinds; k++)
            ids += minter_counted(app->ctx[i].minter, k);
    clock_gettime(CLOCK_REALTIME, &now);
    board_copy(&app->board, &v);
    bool ready = app_ready(app, &why);
    int n = snprintf(text, sizeof text,
                     "# Server\r\nredis_version:7.0.0\r\nfirn_version:" FIRN_VERSION
                     "\r\nprocess_id:%d\r\nuptime_in_seconds:%llu\r\n"
                     "# Clients\r\nconnected_clients:%u\r\n"
                     "# Stats\r\nids_total:%llu\r\ntickets_total:%llu\r\n"
                     "# Firn\r\nready:%d\r\nready_reason:%s\r\nslot:%u\r\nslot_state:%s\r\n",
                     (int)getpid(),
                     (unsigned long long)((uint64_t)now.tv_sec - app->started_ms / 1000),
                     (unsigned)atomic_load(&app->places.open), (unsigned long long)ids,
                     (unsigned long long)atomic_load(&coordinator_stats(app->coordinator)->tickets),
                     ready, why, v.grant.slot, slot_state_name(v.state));
    resp_verbatim(r->out, resp_proto(r), "txt", text, (size_t)n);
}

/* --- the table --- */

static resp_handler run_command;

static const struct command commands[] = {
    { "auth", -2, run_auth, "fast", "connection", "Show a token" },
    { "client", -2, run_client, "fast", "connection", "Name and number of this connection" },
    { "command", -1, run_command, "readonly", "server", "Lists the commands" },
    { "config", -2, run_config, "readonly", "server",
      "Settings that tools ask for: CONFIG GET name" },
    { "echo", 2, run_echo, "fast", "connection", "Say it again" },
    { "firn.inspect", 2, run_inspect, "readonly", "firn", "What an ID says" },
    { "firn.next", -2, run_next, "write", "firn",
      "Mint: " NEXT_USAGE "; a retry with the same key gets the same again" },
    { "get", 2, run_get, "readonly", "string", "The next number of a sequence, not taken" },
    { "hello", -1, run_hello, "fast", "connection", "Choose the protocol's version" },
    { "incr", 2, run_incr, "write", "string", "Take the next number of a sequence" },
    { "incrby", 3, run_incrby, "write", "string", "Take n numbers; the answer is the last" },
    { "info", -1, run_info, "readonly", "server", "The state of this server" },
    { "ping", -1, run_ping, "fast", "connection", "Answers PONG" },
    { "quit", -1, run_quit, "fast", "connection", "Close the connection" },
    { "select", 2, run_select, "fast", "connection", "Only database 0 exists" },
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct command *find_command(const char *p, size_t len)
{
    char first = len ? (char)(p[0] | 0x20) : 0; /* most rows are passed by their first letter */
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].name[0] == first && strlen(commands[i].name) == len &&
            strncasecmp(commands[i].name, p, len) == 0)
            return &commands[i];
    return NULL;
}

bool resp_is_command(const char *p, size_t len)
{
    return find_command(p, len) != NULL;
}

/* An entry of COMMAND INFO: name, arity, flags, first key, last key, step, and four more. */
static void write_command(struct reply *r, const struct command *c)
{
    int key = strcmp(c->group, "string") == 0;
    resp_array(r->out, 10);
    resp_bulk_str(r->out, c->name);
    resp_int(r->out, c->arity);
    resp_set(r->out, resp_proto(r), 1);
    resp_simple(r->out, c->flag);
    resp_int(r->out, key);
    resp_int(r->out, key);
    resp_int(r->out, key);
    for (int i = 0; i < 4; i++)
        resp_array(r->out, 0);
}

static void write_docs(struct reply *r, const struct command *c)
{
    resp_bulk_str(r->out, c->name);
    resp_map(r->out, resp_proto(r), 2);
    resp_bulk_str(r->out, "summary");
    resp_bulk_str(r->out, c->summary);
    resp_bulk_str(r->out, "group");
    resp_bulk_str(r->out, c->group);
}

static void run_command(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    bool docs = resp_is(q, 1, "docs"), info = resp_is(q, 1, "info");
    if (resp_is(q, 1, "count")) {
        resp_int(r->out, COMMANDS);
    } else if (resp_is(q, 1, "list")) {
        resp_array(r->out, COMMANDS);
        for (size_t i = 0; i < COMMANDS; i++)
            resp_bulk_str(r->out, commands[i].name);
    } else if ((docs || info) && q->argc > 2) {
        size_t known = 0;
        for (size_t i = 2; i < q->argc; i++)
            known += find_command(q->argv[i].p, q->argv[i].len) != NULL;
        if (docs)
            resp_map(r->out, resp_proto(r), known);
        else
            resp_array(r->out, q->argc - 2);
        for (size_t i = 2; i < q->argc; i++) {
            const struct command *c = find_command(q->argv[i].p, q->argv[i].len);
            if (c && docs)
                write_docs(r, c);
            else if (c)
                write_command(r, c);
            else if (info)
                resp_null(r->out, resp_proto(r));
        }
    } else if (q->argc == 1 || docs || info) {
        if (docs)
            resp_map(r->out, resp_proto(r), COMMANDS);
        else
            resp_array(r->out, COMMANDS);
        for (size_t i = 0; i < COMMANDS; i++) {
            if (docs)
                write_docs(r, &commands[i]);
            else
                write_command(r, &commands[i]);
        }
    } else {
        resp_error(r->out,
                   "ERR unknown subcommand. Try COMMAND, COMMAND COUNT, LIST, INFO or DOCS.");
    }
}

/* An unknown command answers as Redis does, its first arguments included. */
static void unknown(const struct resp_request *q, struct reply *r)
{
    char args[160] = "";
    size_t at = 0;
    for (size_t i = 1; i < q->argc && at < 128; i++) {
        size_t len = q->argv[i].len < 128 - at ? q->argv[i].len : 128 - at;
        at += (size_t)snprintf(args + at, sizeof args - at, "'%.*s' ", (int)len, q->argv[i].p);
        if (at >= sizeof args)
            break;
    }
    resp_errorf(r->out, "ERR unknown command '%.*s', with args beginning with: %s",
                (int)(q->argv[0].len < 128 ? q->argv[0].len : 128), q->argv[0].p, args);
}

void resp_handle(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    const struct command *c = find_command(q->argv[0].p, q->argv[0].len);
    if (!c) {
        unknown(q, r);
        return;
    }
    size_t least = (size_t)(c->arity < 0 ? -c->arity : c->arity);
    if (q->argc < least || (c->arity > 0 && q->argc > least)) {
        resp_errorf(r->out, "ERR wrong number of arguments for '%s' command", c->name);
        return;
    }
    c->run(ctx, q, r);
}
