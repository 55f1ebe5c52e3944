/*
 * libfirn-client at work, for tests/integration/client.py. Takes IDs in any mode until it has
 * enough or its standard input ends, from several threads and forked children, and writes each as a
 * line.
 *
 *     client_firn URL [--count N] [--threads T] [--forks F] [--batch B] [--pace US] [--text]
 *                     [--key PREFIX] [--poll] [--stats] [--shard S] [--shards N] [--trace PARENT]
 *                     [--attempts]
 *
 * --shard is carried by every ID; with --shards the first has shard S, the next S + 1, and after N
 * of them S again. --attempts writes each attempt of a request to standard error. --count is for
 * each thread of each process; 0: until standard input ends. --stats shows them at the end, and
 * with --count 0 for each byte of standard input. Errors go to standard error, a line each, and
 * make the exit status 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <firn/client.h>

static struct {
    const char *url, *key, *trace;
    unsigned long count, threads, forks, batch, pace_us, shard, shards;
    int text, poll, stats, attempts;
} o = { .count = 1, .threads = 1, .batch = 1 };

static struct firn_client *client;
static atomic_int failed;
static atomic_bool over;

static void fail(int r, const struct firn_diag *d)
{
    fprintf(stderr, "%s: %s\n", firn_error_name(r), d->text);
    failed = 1;
}

struct sheet { /* lines of one thread, written in whole lines at a time */
    char text[64 * 1024];
    size_t len;
};

static void flush(struct sheet *s)
{
    for (size_t at = 0; at < s->len;) {
        ssize_t n = write(1, s->text + at, s->len - at);
        if (n <= 0)
            exit(3);
        at += (size_t)n;
    }
    s->len = 0;
}

/* One write of at most PIPE_BUF bytes is atomic, also among processes. */
static void line(struct sheet *s, const char *text)
{
    size_t n = strlen(text);
    if (s->len + n + 1 > 4096)
        flush(s);
    memcpy(s->text + s->len, text, n);
    s->text[s->len + n] = '\n';
    s->len += n + 1;
}

static void number(struct sheet *s, uint64_t id)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, id);
    line(s, text);
}

/* A span would get a random number; here one can be seen to be sent. */
static void attempt_begin(void *user, const struct firn_client_attempt *a, char *traceparent)
{
    static atomic_uint spans;
    (void)user;
    if (a->parent[0])
        snprintf(traceparent, FIRN_CLIENT_TRACEPARENT_BUF, "%.36s%016x-01", a->parent, ++spans);
}

static void attempt_end(void *user, const struct firn_client_attempt *a)
{
    (void)user;
    fprintf(stderr,
            "attempt what=%s number=%u server=%s:%u shard=%u parent=%s sent=%s took_us=%" PRIu64
            " error=%s text=%s\n",
            a->what, a->number, a->host, a->port, a->shard, a->parent, a->traceparent,
            (a->ended_ns - a->began_ns) / 1000, a->error ? firn_error_name(a->error) : "0",
            a->text);
}

static struct firn_client_ask ask_of(unsigned long i)
{
    struct firn_client_ask ask = FIRN_CLIENT_ASK_INIT;
    ask.shard = (uint32_t)(o.shard + (o.shards ? i % o.shards : 0));
    ask.text = (uint32_t)o.text;
    ask.traceparent = o.trace;
    return ask;
}

static int take_some(struct sheet *s, unsigned long i, struct firn_diag *d)
{
    static _Thread_local uint64_t ids[100000];
    char text[FIRN_CLIENT_TEXT_BUF], key[128];
    int r;
    struct firn_client_ask ask = ask_of(i);
    if (o.key)
        snprintf(key, sizeof key, "%s-%lu", o.key, i);
    if (o.shard || o.shards || o.trace) {
        ask.key = o.key ? key : NULL;
        r = o.text ? firn_client_mint_text(client, &ask, text, sizeof text, d)
                   : firn_client_mint(client, &ask, ids, o.batch, d);
    } else if (o.key) {
        r = firn_client_next_keyed(client, key, ids, d);
    } else if (o.text) {
        r = firn_client_next_text(client, NULL, text, sizeof text, d);
    } else if (o.batch > 1) {
        r = firn_client_next_n(client, ids, o.batch, d);
    } else {
        r = firn_client_next(client, ids, d);
    }
    if (r)
        return r;
    if (o.text)
        line(s, text);
    for (unsigned long k = 0; !o.text && k < o.batch; k++)
        number(s, ids[k]);
    return 0;
}

static void *work(void *arg)
{
    struct sheet *s = calloc(1, sizeof *s);
    (void)arg;
    for (unsigned long i = 0; (o.count == 0 || i < o.count) && !over; i++) {
        struct firn_diag d = { 0, "" };
        int r = take_some(s, i, &d);
        if (r)
            fail(r, &d);
        if (r && o.count)
            break;
        if (o.pace_us) {
            flush(s);
            usleep((useconds_t)o.pace_us);
        }
    }
    flush(s);
    free(s);
    return NULL;
}

/* The same by the calls that do not wait: at most 16 under way. */
static void poll_work(void)
{
    struct sheet *s = calloc(1, sizeof *s);
    unsigned long asked = 0, got = 0;
    while ((o.count == 0 || got < o.count) && !over) {
        while (asked - got < 16 && (o.count == 0 || asked < o.count)) {
            struct firn_client_ask ask = ask_of(asked);
            struct firn_diag d = { 0, "" };
            int r = firn_client_submit(client, &ask, &d);
            if (r) {
                fail(r, &d);
                free(s);
                return;
            }
            asked++;
        }
        struct pollfd p = { firn_client_fd(client), firn_client_events(client), 0 };
        if (poll(&p, 1, 60000) <= 0) {
            fprintf(stderr, "nothing came for a minute\n");
            failed = 1;
            break;
        }
        int r = firn_client_pump(client);
        if (r < 0)
            fail(r, &(struct firn_diag){ 0, "" });
        struct firn_client_answer a = { .size = sizeof a };
        while (firn_client_take(client, &a) == 0) {
            got++;
            if (a.error) {
                fprintf(stderr, "%s: %s\n", firn_error_name(a.error), a.text);
                failed = 1;
            } else if (o.text) {
                line(s, a.text);
            } else {
                number(s, a.id);
            }
        }
    }
    flush(s);
    free(s);
}

static void show_stats(void)
{
    struct firn_client_stats s = { .size = sizeof s };
    firn_client_stats(client, &s);
    fprintf(stderr,
            "stats servers=%u out=%u requests=%" PRIu64 " retries=%" PRIu64 " failures=%" PRIu64
            " blocks=%" PRIu64 " block_ids=%" PRIu64 " stale=%" PRIu64 " leases=%" PRIu64
            " extensions=%" PRIu64 " slot=%u window_ms=%u clashes=%" PRIu64 "\n",
            s.servers, s.servers_out, s.requests, s.retries, s.failures, s.blocks, s.block_ids,
            s.stale_ids, s.leases, s.extensions, s.slot, s.window_ms, s.clashes);
}

static void *until_end_of_input(void *arg)
{
    char byte;
    (void)arg;
    while (read(0, &byte, 1) > 0)
        if (o.stats)
            show_stats();
    over = 1;
    return NULL;
}

static void run(void)
{
    pthread_t thread[64], input;
    if (o.count == 0)
        pthread_create(&input, NULL, until_end_of_input, NULL);
    if (o.poll) {
        poll_work();
    } else {
        for (unsigned long i = 0; i < o.threads; i++)
            pthread_create(&thread[i], NULL, work, NULL);
        for (unsigned long i = 0; i < o.threads; i++)
            pthread_join(thread[i], NULL);
    }
    if (o.count == 0)
        pthread_join(input, NULL);
}

static void read_options(int argc, char **argv)
{
    static const struct {
        const char *name;
        unsigned long *to;
    } numbers[] = { { "--count", &o.count },  { "--threads", &o.threads }, { "--forks", &o.forks },
                    { "--batch", &o.batch },  { "--pace", &o.pace_us },    { "--shard", &o.shard },
                    { "--shards", &o.shards } };
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        for (; k < NUMBERS && strcmp(argv[i], numbers[k].name) != 0; k++)
            ;
        if (k < NUMBERS && i + 1 < argc)
            *numbers[k].to = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--key") == 0 && i + 1 < argc)
            o.key = argv[++i];
        else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc)
            o.trace = argv[++i];
        else if (strcmp(argv[i], "--attempts") == 0)
            o.attempts = 1;
        else if (strcmp(argv[i], "--text") == 0)
            o.text = 1;
        else if (strcmp(argv[i], "--poll") == 0)
            o.poll = 1;
        else if (strcmp(argv[i], "--stats") == 0)
            o.stats = 1;
        else
            o.url = argv[i];
    }
}

int main(int argc, char **argv)
{
    struct firn_diag d = { 0, "" };
    uint64_t first;
    pid_t child[64];
    read_options(argc, argv);
    if (!o.url || o.threads > 64 || o.forks > 64 || o.batch > 100000) {
        fprintf(stderr, "usage: client_firn URL [OPTION...]\n");
        return 2;
    }
    struct firn_client_opts opts = FIRN_CLIENT_OPTS_INIT;
    opts.attempt_begin = attempt_begin;
    opts.attempt_end = attempt_end;
    int r = o.attempts ? firn_client_open_with(o.url, &opts, &client, &d)
                       : firn_client_open(o.url, &client, &d);
    if (r) {
        fprintf(stderr, "%s: %s\n", firn_error_name(r), d.text);
        return 1;
    }
    /* Something for the children to inherit: a block, a lease, a connection. */
    if (o.forks) {
        r = firn_client_next(client, &first, &d);
        if (r)
            fail(r, &d);
        else
            dprintf(1, "%" PRIu64 "\n", first);
    }
    for (unsigned long i = 0; i < o.forks; i++)
        if ((child[i] = fork()) == 0) {
            run();
            firn_client_close(client);
            _exit(failed);
        }
    run();
    for (unsigned long i = 0; i < o.forks; i++) {
        int status = 1;
        while (waitpid(child[i], &status, 0) < 0 && errno == EINTR)
            ;
        if (status)
            failed = 1;
    }
    if (o.stats)
        show_stats();
    firn_client_close(client);
    return failed;
}
