/*
 * src/proxy's Redis client and limits at work, for tests/integration/proxy_redis.py: one command
 * per line on stdin, one answer per line on stdout, in the order of the answers.
 *
 *   limit KIND COUNT PERIOD_US BURST CLIENT NOW_US   pass|refused REMAINING WAIT_US, by the script
 *   step KIND COUNT PERIOD_US BURST CLIENT NOW_US    the same, by this process's table
 *   get KEY                  value TEXT | null | error TEXT
 *   set KEY VALUE TTL_S      ok | error TEXT
 *   many N                   N pipelined INCRs of "many": "many LAST" when the last is answered
 *   state                    ready | away
 *
 * A call that fails is answered "timeout", "lost" or "refused-call". Ready and away are said on
 * stderr.
 */
#include "proxy/limit.h"
#include "proxy/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024 };

static uv_loop_t loop;
static uv_pipe_t in;
static struct redis *redis;
static struct limit_table *table;
static char line[LINE_MAX_BYTES], room[4096];
static size_t line_len;
static int many_left;

static struct slice text(const char *p)
{
    return (struct slice){ p, strlen(p) };
}

static void say_answer(const struct limit_answer *a)
{
    printf("%s %u %" PRIu64 "\n", a->pass ? "pass" : "refused", a->remaining, a->wait_us);
}

static bool number(const struct resp_value *v, int64_t *out)
{
    char digits[32];
    if (v->type != RESP_NUMBER || v->text.len >= sizeof digits)
        return false;
    memcpy(digits, v->text.p, v->text.len);
    digits[v->text.len] = '\0';
    *out = strtoll(digits, NULL, 10);
    return true;
}

static void say(enum redis_result result, const struct redis_reply *reply)
{
    const struct resp_value *v = reply ? &reply->value[0] : NULL;
    struct limit_answer a;
    int64_t n[3];
    if (!v)
        puts(redis_result_name(result));
    else if (v->type == RESP_NULL)
        puts("null");
    else if (v->type == RESP_FAILURE)
        printf("error %.*s\n", (int)v->text.len, v->text.p);
    else if (v->type == RESP_SIMPLE)
        puts("ok");
    else if (v->type == RESP_CONTAINER && reply->n == 4 && number(v + 1, &n[0]) &&
             number(v + 2, &n[1]) && number(v + 3, &n[2]) && limit_script_answer(n, &a))
        say_answer(&a);
    else
        printf("value %.*s\n", (int)v->text.len, v->text.p);
}

static void done(void *user, enum redis_result result, const struct redis_reply *reply)
{
    (void)user;
    say(result, reply);
    fflush(stdout);
}

static void done_many(void *user, enum redis_result result, const struct redis_reply *reply)
{
    (void)user;
    if (--many_left > 0)
        return;
    fputs("many ", stdout);
    done(NULL, result, reply);
}

static void changed(void *user, bool ready, const char *why)
{
    (void)user;
    fprintf(stderr, "%s: %s\n", ready ? "ready" : "away", why);
}

static int limit(char **w, bool shared)
{
    struct limit_rule r = { strcmp(w[1], "window") == 0 ? LIMIT_WINDOW : LIMIT_SMOOTH,
                            (uint32_t)strtoul(w[2], NULL, 10), strtoull(w[3], NULL, 10),
                            (uint32_t)strtoul(w[4], NULL, 10) };
    const uint64_t now = strtoull(w[6], NULL, 10);
    char arg[LIMIT_SCRIPT_ARGS][LIMIT_ARG_BUF];
    struct slice args[LIMIT_SCRIPT_ARGS];
    struct buf key;
    if (!shared) {
        struct limit_answer a = limit_table_take(table, &r, r.kind, text(w[5]), now);
        say_answer(&a);
        return 0;
    }
    buf_init(&key, LIMIT_KEY_BYTES_MAX);
    limit_key(&key, w[1], text(w[5]));
    limit_script_args(&r, now, arg);
    for (int i = 0; i < LIMIT_SCRIPT_ARGS; i++)
        args[i] = text(arg[i]);
    int e = redis_eval(redis, (struct slice){ key.p, key.len }, args, LIMIT_SCRIPT_ARGS, done,
                       NULL);
    buf_done(&key);
    return e;
}

static int many(const char *count)
{
    const struct slice incr[] = { text("INCR"), text("many") };
    int e = 0;
    many_left = atoi(count);
    for (int n = many_left; n > 0 && e == 0; n--)
        e = redis_call(redis, incr, 2, done_many, NULL);
    return e;
}

static void command(char *p)
{
    char *w[8] = { NULL }, *save = NULL;
    int n = 0, e = 0;
    for (char *word = strtok_r(p, " ", &save); word && n < 8; word = strtok_r(NULL, " ", &save))
        w[n++] = word;
    if (n == 7 && strcmp(w[0], "limit") == 0)
        e = limit(w, true);
    else if (n == 7 && strcmp(w[0], "step") == 0)
        e = limit(w, false);
    else if (n == 2 && strcmp(w[0], "get") == 0)
        e = redis_get(redis, text(w[1]), done, NULL);
    else if (n == 4 && strcmp(w[0], "set") == 0)
        e = redis_set(redis, text(w[1]), text(w[2]), (uint32_t)strtoul(w[3], NULL, 10), done, NULL);
    else if (n == 2 && strcmp(w[0], "many") == 0)
        e = many(w[1]);
    else
        puts(n == 1 ? (redis_ready(redis) ? "ready" : "away") : "unknown command");
    if (e)
        puts("refused-call");
    fflush(stdout);
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    (void)h;
    (void)suggested;
    *b = uv_buf_init(room, sizeof room);
}

static void on_input(uv_stream_t *s, ssize_t got, const uv_buf_t *b)
{
    if (got < 0) {
        redis_close(redis);
        uv_close((uv_handle_t *)s, NULL);
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        if (b->base[i] != '\n' && line_len < sizeof line - 1) {
            line[line_len++] = b->base[i];
            continue;
        }
        line[line_len] = '\0';
        line_len = 0;
        command(line);
    }
}

int main(int argc, char **argv)
{
    struct firn_diag why = { 0, "" };
    struct redis_opts o = { .script = limit_script, .pause_max_ms = 200 };
    o.address = argc > 1 ? argv[1] : NULL;
    o.call_ms = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    o.password = argc > 3 ? argv[3] : NULL;
    o.stall_ms = 500;
    uv_loop_init(&loop);
    uv_pipe_init(&loop, &in, 0);
    if (redis_new(&loop, &o, changed, NULL, &redis, &why) ||
        limit_table_new(1 << 16, (struct siphash_key){ 1, 2 }, &table)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    uv_pipe_open(&in, 0);
    uv_read_start((uv_stream_t *)&in, on_room, on_input);
    uv_run(&loop, UV_RUN_DEFAULT);
    limit_table_free(table);
    return uv_loop_close(&loop) ? 1 : 0;
}
