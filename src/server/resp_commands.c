/*
 * The Redis protocol: one table of commands. Any Redis client is a firn client: INCR takes a
 * ticket, FIRN.NEXT mints any kind. IDs are bulk strings, because many clients read integers as
 * doubles; only INCR and INCRBY answer with integers, as Redis users expect. Tested in
 * tests/integration/clients.py.
 */
#include "server/resp_call.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct command {
    const char *name; /* lower case, as COMMAND lists them */
    size_t len;
    int arity; /* as Redis counts: the command included; negative: at least */
    resp_handler *run;
    int when;         /* AT_ONCE: also between MULTI and EXEC */
    const char *flag; /* readonly, write or fast */
    const char *group, *summary;
};

enum { AT_ONCE = 1 };

static const struct command *find_command(const char *p, size_t len);

bool resp_allowed(struct service_ctx *ctx, struct reply *r, enum guard_what what, struct slice name)
{
    struct guard_refusal why;
    ctx->guard.paid = r->waited_ms > 0;
    if (guard_check(ctx, r->peer, (struct slice){ NULL, 0 }, what, name, &why) == 0)
        return true;
    guard_refuse_resp(r, &why, name);
    return false;
}

uint64_t resp_scope(struct service_ctx *ctx, struct reply *r, struct slice name,
                    char out[RECORD_NAME_MAX + 1])
{
    char scope[GUARD_SCOPE_BUF];
    uint64_t max = guard_scope(ctx, r->peer, (struct slice){ NULL, 0 }, name, scope);
    if (max && strlen(scope) <= RECORD_NAME_MAX) /* it begins a name, which is no longer */
        memcpy(out, scope, strlen(scope) + 1);
    return max && strlen(scope) <= RECORD_NAME_MAX ? max : 0;
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
    if (resp_is(q, 1, "0"))
        resp_simple(r->out, "OK");
    else
        resp_error(r->out, "ERR DB index is out of range: firn has database 0 only; give each "
                           "application a prefix for its names instead");
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

static void run_hello(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    size_t at = 1, auth = 0, name = 0;
    int version = resp_proto(r);
    if (q->argc > 1) {
        if (!resp_is(q, 1, "2") && !resp_is(q, 1, "3")) {
            resp_error(r->out, "NOPROTO unsupported protocol version");
            return;
        }
        version = q->argv[1].p[0] - '0';
        at = 2;
    }
    for (; at < q->argc; at++) {
        if (resp_is(q, at, "setname") && at + 1 < q->argc) {
            name = ++at;
        } else if (resp_is(q, at, "auth") && at + 2 < q->argc) {
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
    if (name && !resp_set_name(r, q->argv[name]))
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

/* --- the table --- */

static resp_handler run_command;

/* Those that are sent most come first, because the table is searched from there. */
#define NAMED(name) name, sizeof name - 1

static const struct command commands[] = {
    { NAMED("incr"), 2, run_incr, 0, "write", "string", "Take the next number of a sequence" },
    { NAMED("firn.next"), -2, run_next, 0, "write", "firn",
      "Mint: " NEXT_USAGE "; a retry with the same key gets the same again" },
    { NAMED("incrby"), 3, run_incrby, 0, "write", "string",
      "Take n numbers; the answer is the last" },
    { NAMED("get"), 2, run_get, 0, "readonly", "string",
      "The next number of a sequence, not taken" },
    { NAMED("ping"), -1, run_ping, 0, "fast", "connection", "Answers PONG" },
    { NAMED("auth"), -2, run_auth, 0, "fast", "connection", "Show a token" },
    { NAMED("client"), -2, run_client, 0, "fast", "connection",
      "Name and number of this connection" },
    { NAMED("command"), -1, run_command, 0, "readonly", "server", "Lists the commands" },
    { NAMED("config"), -2, run_config, 0, "readonly", "server",
      "Settings that tools ask for: CONFIG GET name" },
    { NAMED("dbsize"), 1, run_dbsize, 0, "readonly", "server",
      "How many sequences there are, about" },
    { NAMED("del"), -2, run_del, 0, "write", "generic",
      "Delete sequences; their numbers never come again" },
    { NAMED("discard"), 1, run_discard, AT_ONCE, "fast", "transactions",
      "Forget the commands since MULTI" },
    { NAMED("echo"), 2, run_echo, 0, "fast", "connection", "Say it again" },
    { NAMED("exec"), 1, run_exec, AT_ONCE, "write", "transactions",
      "Run the commands since MULTI" },
    { NAMED("exists"), -2, run_exists, 0, "readonly", "generic",
      "How many of these sequences there are" },
    { NAMED("expire"), -3, run_expire, 0, "write", "generic",
      "Refused: a sequence does not expire" },
    { NAMED("expireat"), -3, run_expire, 0, "write", "generic",
      "Refused: a sequence does not expire" },
    { NAMED("firn.inspect"), 2, run_inspect, 0, "readonly", "firn", "What an ID says" },
    { NAMED("hello"), -1, run_hello, 0, "fast", "connection", "Choose the protocol's version" },
    { NAMED("info"), -1, run_info, 0, "readonly", "server", "The state of this server" },
    { NAMED("multi"), 1, run_multi, AT_ONCE, "fast", "transactions", "Keep commands until EXEC" },
    { NAMED("pexpire"), -3, run_expire, 0, "write", "generic",
      "Refused: a sequence does not expire" },
    { NAMED("pexpireat"), -3, run_expire, 0, "write", "generic",
      "Refused: a sequence does not expire" },
    { NAMED("pttl"), 2, run_ttl, 0, "readonly", "generic",
      "-1, or -2 if there is no such sequence" },
    { NAMED("quit"), -1, run_quit, AT_ONCE, "fast", "connection", "Close the connection" },
    { NAMED("select"), 2, run_select, 0, "fast", "connection", "Only database 0 exists" },
    { NAMED("setnx"), 3, run_setnx, 0, "write", "string",
      "Create a sequence that INCR continues behind the value" },
    { NAMED("time"), 1, run_time, 0, "fast", "server", "The time of this server" },
    { NAMED("ttl"), 2, run_ttl, 0, "readonly", "generic",
      "-1, or -2 if there is no such sequence" },
    { NAMED("unlink"), -2, run_del, 0, "write", "generic", "As DEL" },
    { NAMED("unwatch"), 1, run_unwatch, 0, "fast", "transactions", "Nothing is ever watched" },
    { NAMED("watch"), -2, run_watch, AT_ONCE, "fast", "transactions",
      "Refused: INCR is atomic without it" },
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct command *find_command(const char *p, size_t len)
{
    char first = len ? (char)(p[0] | 0x20) : 0; /* most rows are passed by their first letter */
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].name[0] == first && commands[i].len == len &&
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
    bool keys = strcmp(c->group, "generic") == 0, key = keys || strcmp(c->group, "string") == 0;
    resp_array(r->out, 10);
    resp_bulk_str(r->out, c->name);
    resp_int(r->out, c->arity);
    resp_set(r->out, resp_proto(r), 1);
    resp_simple(r->out, c->flag);
    resp_int(r->out, key);
    resp_int(r->out, keys && c->arity == -2 ? -1 : key);
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

/* NULL: there is no such command, or it has another number of arguments; that is answered. */
static const struct command *known(const struct resp_request *q, struct reply *r)
{
    const struct command *c = find_command(q->argv[0].p, q->argv[0].len);
    size_t least = !c ? 0 : (size_t)(c->arity < 0 ? -c->arity : c->arity);
    if (c && q->argc >= least && (c->arity < 0 || q->argc == least))
        return c;
    if (!c)
        unknown(q, r);
    else
        resp_errorf(r->out, "ERR wrong number of arguments for '%s' command", c->name);
    resp_multi_spoil(r);
    return NULL;
}

void resp_run(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    const struct command *c = known(q, r);
    if (c)
        c->run(ctx, q, r);
}

static uint8_t timed_as(const struct command *c)
{
    if (c && c->run == run_next)
        return RESP_IDS;
    return c && strcmp(c->group, "string") == 0 ? RESP_TICKETS : RESP_OTHER;
}

void resp_handle(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    const struct command *c = known(q, r);
    if (c != commands) /* INCR is the usual one */
        r->timed_as = timed_as(c);
    if (!c)
        return;
    if (resp_in_multi(r->peer) && c->when != AT_ONCE)
        resp_multi_queue(q, r);
    else
        c->run(ctx, q, r);
}
