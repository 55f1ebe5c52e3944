#include "cli/bench_load.h"
#include "cli/duration.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/url.h"

#include <inttypes.h>
#include <netdb.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { REQUEST_BYTES_MAX = 64 * 1024, WORDS_MAX = 64, FDS_SPARE = 64 };

struct bench {
    const char *http, *resp, *command, *accept;
    uint64_t connections, depth, seconds, warmup_ms, rate, requests, threads, cpu, idle, pid;
    bool check, json;

    struct url url;
    const char *target; /* as the user wrote it */
    char *request;
    struct load_plan plan;
    struct load_result result;
};

#define NUMBER(name_, member, value_, min_, max_, about_)                                        \
    {                                                                                            \
        .name = name_, .type = OPT_COUNT, .at = offsetof(struct bench, member), .value = value_, \
        .min = min_, .max = max_, .about = about_                                                \
    }
#define TEXT(name_, member, value_, about_)                                                     \
    {                                                                                           \
        .name = name_, .type = OPT_TEXT, .at = offsetof(struct bench, member), .value = value_, \
        .about = about_                                                                         \
    }

static const struct opt opts[] = {
    TEXT("http", http, "URL", "send GET requests for this address"),
    TEXT("resp", resp, "HOST:PORT", "speak the Redis protocol; --command says what"),
    TEXT("command", command, "WORDS", "the command to send, such as \"INCR x\" (default PING)"),
    TEXT("accept", accept, "TYPE", "the Accept header, such as text/plain"),
    NUMBER("connections", connections, "N", 1, LOAD_CONNECTIONS_MAX, "open so many (default 50)"),
    NUMBER("depth", depth, "N", 1, LOAD_DEPTH_MAX,
           "keep so many requests in flight on each connection (default 1)"),
    NUMBER("seconds", seconds, "N", 1, LOAD_SECONDS_MAX, "measure so long (default 5)"),
    NUMBER("warmup", warmup_ms, "MS", 0, 60000,
           "before that, run so many milliseconds that do not count (default 0)"),
    NUMBER("requests", requests, "N", 1, UINT64_MAX - 1,
           "stop once so many were sent, should that be sooner"),
    NUMBER(
        "rate", rate, "R", 1, 100000000,
        "open loop: R requests a second over all connections, whether the server keeps up or not; "
        "latency counts from when a request was due"),
    NUMBER("idle", idle, "N", 0, LOAD_IDLE_MAX, "open further connections that say nothing"),
    NUMBER("threads", threads, "N", 1, LOAD_THREADS_MAX, "threads of the client (default 1)"),
    NUMBER("cpu", cpu, "N", 0, CPU_SETSIZE - LOAD_THREADS_MAX,
           "run the client's first thread on core N, the next on N+1"),
    NUMBER("pid", pid, "P", 1, 1 << 22, "the server's process: report its CPU time per request"),
    { .name = "check",
      .at = offsetof(struct bench, check),
      .about = "all IDs received are distinct, and rise on each connection (64-bit numbers only)" },
    OPT_JSON(struct bench, json),
    { .name = NULL },
};

const struct usage bench_load_usage = {
    .name = "bench load",
    .examples =
        "  firn bench load --http http://127.0.0.1:9001/generate --depth 16\n"
        "  firn bench load --http http://127.0.0.1:9002/generate --check --seconds 2\n"
        "  firn bench load --resp 127.0.0.1:9001 --command \"FIRN.NEXT snowflake\" --depth 100\n"
        "  firn bench load --http http://127.0.0.1:9001/generate --rate 20k --seconds 60\n",
    .synopsis = "firn bench load --http URL [option...]\n"
                "       firn bench load --resp HOST:PORT --command WORDS [option...]",
    .about =
        "Sends the same request over many connections and counts the answers. Only servers on\n"
        "this machine (loopback) are accepted: this is a load loop, and pointed elsewhere it\n"
        "would be an attack. Pin server and client to a core each (taskset, --cpu) for figures\n"
        "that can be compared.\n",
    .opts = opts,
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_)
{
    (void)signal_;
    interrupted = 1;
}

/* ---- the plan ---- */

static bool loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int resolve(struct bench *b)
{
    char shown[SAY_TEXT_BUF];
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list;
    int r = getaddrinfo(b->url.host, b->url.port, &hints, &list);
    say_text(b->target, strlen(b->target), shown);
    if (r != 0)
        return say_trouble("%s: %s", shown, gai_strerror(r));
    int status = -1;
    for (const struct addrinfo *a = list; a && status < 0; a = a->ai_next)
        if (!loopback(a->ai_addr))
            status = say_trouble("%s is not on this machine: a load loop may only be pointed at "
                                 "loopback addresses (127.0.0.1, ::1, localhost)",
                                 shown);
    const struct addrinfo *best = list; /* localhost is ::1, too, where few servers listen */
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if (a->ai_family == AF_INET && best->ai_family != AF_INET)
            best = a;
    memcpy(&b->plan.address, best->ai_addr, best->ai_addrlen);
    b->plan.address_len = best->ai_addrlen;
    freeaddrinfo(list);
    return status;
}

static int set_target(struct bench *b)
{
    char shown[SAY_TEXT_BUF];
    if (!b->http == !b->resp)
        return say_trouble("give one target: --http URL or --resp HOST:PORT");
    if (b->http && b->command)
        return say_trouble("--command is for --resp; with --http the URL says all");
    if (b->resp && b->accept)
        return say_trouble("--accept is for --http");
    b->target = b->http ? b->http : b->resp;
    const char *wrong = b->http ? url_parse(b->http, &b->url) : url_parse_address(b->resp, &b->url);
    if (wrong)
        return say_trouble("%s: %s", say_text(b->target, strlen(b->target), shown), wrong);
    return resolve(b);
}

/* The words of a command as an array of bulk strings. */
static int format_command(struct bench *b)
{
    const char *word[WORDS_MAX], *p = b->command ? b->command : "PING";
    size_t len[WORDS_MAX], n = 0, total = 0;
    for (; *(p += strspn(p, " ")); p += len[n - 1]) {
        if (n == WORDS_MAX)
            return say_trouble("--command: at most %d words", WORDS_MAX);
        word[n] = p;
        len[n++] = strcspn(p, " ");
    }
    if (n == 0)
        return say_trouble("--command is empty: for instance --command \"INCR x\"");
    if (strlen(b->command ? b->command : "") > REQUEST_BYTES_MAX / 2)
        return say_trouble("--command is too long");
    total = (size_t)snprintf(b->request, REQUEST_BYTES_MAX, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++)
        total += (size_t)snprintf(b->request + total, REQUEST_BYTES_MAX - total, "$%zu\r\n%.*s\r\n",
                                  len[i], (int)len[i], word[i]);
    b->plan.request_len = total;
    return -1;
}

static int format_get(struct bench *b)
{
    static const struct {
        const char *type;
        enum id_body_form form;
    } forms[] = { { "text/plain", ID_BODY_LINES }, { "application/octet-stream", ID_BODY_BYTES } };
    size_t accept_len = b->accept ? strlen(b->accept) : 0;
    if (accept_len > 256 || strcspn(b->accept ? b->accept : "", "\r\n") != accept_len)
        return say_trouble("--accept: give a media type, such as text/plain");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (b->accept && strcmp(b->accept, forms[i].type) == 0)
            b->plan.form = forms[i].form;
    b->plan.request_len = (size_t)snprintf(
        b->request, REQUEST_BYTES_MAX, "GET %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", b->url.target,
        b->url.authority, b->accept ? "Accept: " : "", b->accept ? b->accept : "",
        b->accept ? "\r\n" : "");
    return -1;
}

static int raise_fd_limit(uint64_t need)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= need)
        return -1;
    l.rlim_cur = l.rlim_max < need ? l.rlim_max : need;
    if (l.rlim_cur < need || setrlimit(RLIMIT_NOFILE, &l) != 0)
        return say_trouble("%" PRIu64 " open files are needed and the limit is %" PRIu64
                           ": raise it with ulimit -n, or ask for fewer connections",
                           need, (uint64_t)l.rlim_max);
    return -1;
}

static int make_plan(struct bench *b)
{
    struct load_plan *p = &b->plan;
    if (b->threads > b->connections)
        return say_trouble("--threads %" PRIu64 ": there are only %" PRIu64 " connections",
                           b->threads, b->connections);
    p->resp = b->resp != NULL;
    p->request = b->request;
    p->connections = (uint32_t)b->connections;
    p->depth = (uint32_t)b->depth;
    p->threads = (uint32_t)b->threads;
    p->idle = (uint32_t)b->idle;
    p->cpu = b->cpu == OPT_NOT_GIVEN ? -1 : (int)b->cpu;
    p->warmup_ns = b->warmup_ms * 1000000;
    p->run_ns = b->seconds * 1000000000;
    p->requests_max = b->requests;
    p->rate = b->rate;
    p->check = b->check;
    p->pid = (uint32_t)b->pid;
    p->stop = &interrupted;
    int r = p->resp ? format_command(b) : format_get(b);
    return r >= 0 ? r : raise_fd_limit(b->connections + b->idle + FDS_SPARE);
}

/* ---- the report ---- */

static uint64_t per_second(uint64_t n, uint64_t ns)
{
    return ns ? (uint64_t)((double)n * 1e9 / (double)ns) : 0;
}

static const struct {
    const char *name;
    uint32_t per_million;
} marks[] = {
    { "p50", 500000 }, { "p90", 900000 }, { "p99", 990000 }, { "p99.9", 999000 }, { "max", 1000000 }
};

static void put_json(const struct bench *b)
{
    const struct load_result *r = &b->result;
    struct json j;
    json_init(&j, stdout);
    json_begin(&j, NULL, '{');
    json_text(&j, "target", b->target);
    if (b->resp)
        json_text(&j, "command", b->command ? b->command : "PING");
    json_count(&j, "connections", (int64_t)b->connections);
    json_count(&j, "depth", (int64_t)b->depth);
    json_count(&j, "threads", (int64_t)b->threads);
    if (b->rate)
        json_count(&j, "rate", (int64_t)b->rate);
    json_count(&j, "elapsed_ns", (int64_t)r->elapsed_ns);
    json_count(&j, "requests", (int64_t)r->requests);
    json_count(&j, "per_second", (int64_t)per_second(r->requests, r->elapsed_ns));
    json_count(&j, "errors", (int64_t)r->errors);
    json_count(&j, "lost", (int64_t)r->lost);
    json_count(&j, "unanswered", (int64_t)r->unanswered);
    json_count(&j, "reconnects", (int64_t)r->reconnects);
    json_count(&j, "bytes_in", (int64_t)r->bytes_in);
    json_count(&j, "bytes_out", (int64_t)r->bytes_out);
    json_begin(&j, "latency_ns", '{');
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        json_count(&j, marks[i].name, (int64_t)histogram_at(&r->latency, marks[i].per_million));
    json_end(&j, '}');
    if (r->has_cpu) {
        json_begin(&j, "server", '{');
        json_count(&j, "cpu_ns", (int64_t)r->cpu_ns);
        json_count(&j, "cpu_ns_per_request", (int64_t)(r->requests ? r->cpu_ns / r->requests : 0));
        json_count(&j, "rss_bytes", (int64_t)r->rss_bytes);
        json_end(&j, '}');
    }
    if (b->check) {
        json_begin(&j, "check", '{');
        json_count(&j, "ids", (int64_t)r->ids);
        json_count(&j, "distinct", (int64_t)r->distinct);
        json_bool(&j, "rising", r->falls == 0);
        json_count(&j, "unreadable", (int64_t)r->unreadable);
        json_end(&j, '}');
    }
    json_end(&j, '}');
    json_done(&j);
}

static void put_count(struct table *t, const char *name, uint64_t n, const char *unit)
{
    char text[GROUPED_BUF];
    table_add(t, "%s", name);
    table_add(t, "%s%s", grouped_text(n, text), unit);
}

static void put_duration(struct table *t, const char *name, uint64_t ns)
{
    char text[DURATION_BUF];
    table_add(t, "%s", name);
    table_add(t, "%s", duration_text(ns, text));
}

static void put_table(const struct bench *b)
{
    static const char *const header[] = { "MEASURED", ">VALUE", NULL };
    const struct load_result *r = &b->result;
    struct table t;
    printf("%s%s%s: %" PRIu64 " connections, depth %" PRIu64 ", %s\n\n", b->target,
           b->resp ? " " : "", b->resp ? b->command ? b->command : "PING" : "", b->connections,
           b->depth, b->rate ? "open loop" : "closed loop");
    table_init(&t, 0, header);
    put_duration(&t, "time", r->elapsed_ns);
    put_count(&t, "requests", r->requests, "");
    put_count(&t, "rate", per_second(r->requests, r->elapsed_ns), "/s");
    if (b->rate)
        put_count(&t, "rate asked for", b->rate, "/s");
    put_count(&t, "errors", r->errors, "");
    put_count(&t, "lost", r->lost, "");
    put_count(&t, "unanswered", r->unanswered, "");
    put_count(&t, "received", r->bytes_in, " B");
    put_count(&t, "sent", r->bytes_out, " B");
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        put_duration(&t, marks[i].name, histogram_at(&r->latency, marks[i].per_million));
    if (r->has_cpu && r->requests) {
        put_duration(&t, "server CPU per request", r->cpu_ns / r->requests);
        put_count(&t, "server memory", r->rss_bytes >> 10, " KiB");
    }
    if (b->check) {
        put_count(&t, "IDs", r->ids, "");
        put_count(&t, "distinct", r->distinct, "");
        table_add(&t, "rising");
        table_add(&t, "%s", r->falls ? "no" : "yes");
    }
    table_print(&t);
    table_done(&t);
}

static int verdict(const struct bench *b)
{
    const struct load_result *r = &b->result;
    char shown[SAY_TEXT_BUF];
    int status = STATUS_OK;
    if (b->pid && !r->has_cpu)
        say_warning("no process %" PRIu64 " any more: its CPU time is not known", b->pid);
    if (r->ids_full)
        say_warning("ended early: --check remembers %d IDs and no more", LOAD_IDS_MAX);
    if (r->requests == 0)
        status = say_failed("no request was answered as hoped");
    if (r->errors || r->lost || r->unanswered)
        status = say_failed("%" PRIu64 " errors, %" PRIu64 " lost with their connection, %" PRIu64
                            " unanswered",
                            r->errors, r->lost, r->unanswered);
    if (r->sample_len > 0)
        say_warning("an error began: %s", say_text(r->sample, r->sample_len, shown));
    if (b->check && r->unreadable)
        status = say_failed("%" PRIu64 " answers held no 64-bit IDs", r->unreadable);
    if (b->check && r->distinct < r->ids)
        status = say_failed("%" PRIu64 " IDs were not new: %" PRIu64 " came twice, for one",
                            r->ids - r->distinct, r->repeated);
    if (b->check && r->falls)
        status = say_failed("%" PRIu64 " IDs were not above the one before on their connection",
                            r->falls);
    return status;
}

static int run(struct bench *b)
{
    char shown[SAY_TEXT_BUF];
    struct sigaction act = { .sa_handler = on_interrupt }, before;
    sigaction(SIGINT, &act, &before);
    int error = load_run(&b->plan, &b->result);
    sigaction(SIGINT, &before, NULL);
    if (error == FIRN_EIO)
        return say_trouble("%s: %s: is the server running? `make run` starts firnd",
                           say_text(b->target, strlen(b->target), shown), b->result.why);
    if (error)
        return say_trouble("%s", b->result.why);
    if (b->json)
        put_json(b);
    else
        put_table(b);
    return output_finish(verdict(b));
}

int bench_load(int argc, char **argv)
{
    struct bench *b = calloc(1, sizeof *b);
    char *request = malloc(REQUEST_BYTES_MAX);
    int operands, r;
    if (!b || !request) {
        r = say_trouble("out of memory");
        goto done;
    }
    *b = (struct bench){ .connections = 50,
                         .depth = 1,
                         .seconds = 5,
                         .threads = 1,
                         .cpu = OPT_NOT_GIVEN,
                         .request = request };
    r = options_parse(&bench_load_usage, argc, argv, b, &operands);
    if (r < 0 && operands > 0)
        r = say_trouble("'%s' is one word too many: the target follows --http or --resp", argv[1]);
    if (r < 0)
        r = set_target(b);
    if (r < 0)
        r = make_plan(b);
    if (r < 0)
        r = run(b);
done:
    free(request);
    free(b);
    return r;
}
