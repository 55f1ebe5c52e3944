/* Trips to servers that refuse, are silent, truncate their responses or are not ready. */
#include "client/core.h"
#include "t.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum behaviour { FINE, SILENT, CUTS, HALF, NOT_READY, NO_TOKEN, GARBAGE, FINE_AND_CLOSES };

struct stub { /* a server in a thread, one connection at a time */
    enum behaviour how;
    int fd;
    uint16_t port;
    pthread_t thread;
    atomic_uint asked, accepted;
    atomic_bool stop;
    char last[8192]; /* the last request */
};

static const char *const answers[] = {
    [FINE] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n42\n",
    [FINE_AND_CLOSES] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n42\n",
    [CUTS] = "",
    [HALF] = "HTTP/1.1 200 OK\r\nContent-Le",
    [NOT_READY] =
        "HTTP/1.1 503 X\r\nContent-Length: 60\r\n\r\n{\"type\":\"urn:firn:problem:not-ready\","
        "\"detail\":\"no slot yet\"}",
    [NO_TOKEN] = "HTTP/1.1 401 X\r\nContent-Length: 20\r\n\r\n{\"detail\":\"a token\"}",
    [GARBAGE] = "hello, this is not a firnd\r\n\r\n",
};

static bool wait_readable(struct stub *s, int fd)
{
    struct pollfd p = { fd, POLLIN, 0 };
    while (!s->stop)
        if (poll(&p, 1, 5) > 0)
            return true;
    return false;
}

static void serve_one(struct stub *s, int c)
{
    char buf[sizeof s->last - 1];
    for (size_t len = 0; wait_readable(s, c);) {
        ssize_t n = recv(c, buf + len, sizeof buf - len, 0);
        if (n <= 0)
            return;
        len += (size_t)n;
        if (!memmem(buf, len, "\r\n\r\n", 4))
            continue;
        memcpy(s->last, buf, len);
        s->last[len] = '\0';
        s->asked++;
        len = 0;
        if (s->how == SILENT)
            continue;
        size_t size = strlen(answers[s->how]);
        if (send(c, answers[s->how], size, MSG_NOSIGNAL) != (ssize_t)size || s->how == CUTS ||
            s->how == HALF || s->how == FINE_AND_CLOSES)
            return;
    }
}

static void *serve(void *arg)
{
    struct stub *s = arg;
    while (wait_readable(s, s->fd)) {
        int c = accept(s->fd, NULL, NULL);
        s->accepted++;
        serve_one(s, c);
        close(c);
    }
    return NULL;
}

static void stub_start(struct stub *s, enum behaviour how)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof a;
    *s = (struct stub){ .how = how };
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    T_EQ(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    T_EQ(listen(s->fd, 16), 0);
    T_EQ(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    T_EQ(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* --- a client of some stubs --- */

static struct stub stub[4];
static size_t stubs;
static struct client_opts opts;
static struct core *core;
static struct trip trip;

static void begin(const char *options, size_t n, const enum behaviour *how)
{
    char url[512] = "firn://";
    struct firn_diag d = { 0, "" };
    stubs = n;
    for (size_t i = 0; i < n; i++) {
        stub_start(&stub[i], how[i]);
        snprintf(url + strlen(url), sizeof url - strlen(url), "%s127.0.0.1:%u", i ? "," : "",
                 stub[i].port);
    }
    snprintf(url + strlen(url), sizeof url - strlen(url), "/?%s", options);
    T_EQ(client_url_parse(url, &opts, &d), 0, "%s", d.text);
    T_EQ(core_new(&opts, NULL, &core, &d), 0, "%s", d.text);
}

static int ask(bool once)
{
    struct request q = { .kind = REQUEST_NUMBERS, .n = 1 };
    trip_start(&trip, core, &q);
    trip.once = once;
    int r = trip_run(&trip);
    if (r == 0)
        T_EQ(trip.answer.numbers.v[0].first, 42);
    trip_done(&trip);
    return r;
}

static unsigned asked(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < stubs; i++)
        n += stub[i].asked;
    return n;
}

static void end(void)
{
    core_free(core);
    for (size_t i = 0; i < stubs; i++) {
        stub[i].stop = true;
        pthread_join(stub[i].thread, NULL);
        close(stub[i].fd);
    }
}

#define BEGIN(options, ...)                                                            \
    begin(options, sizeof((enum behaviour[]){ __VA_ARGS__ }) / sizeof(enum behaviour), \
          (enum behaviour[]){ __VA_ARGS__ })

/* Where an attempt must not time out, however busy the machine is; and where it must. */
static const char quick[] = "timeout=10s&retry_delay=5ms&deadline=30s";
static const char impatient[] = "timeout=1s&retry_delay=5ms&deadline=30s";

T_TEST(connections_are_kept)
{
    BEGIN(quick, FINE);
    for (int i = 0; i < 20; i++)
        T_EQ(ask(false), 0);
    T_EQ(stub[0].accepted, 1);
    end();
}

T_TEST(a_connection_that_the_server_closed_is_not_used)
{
    BEGIN(quick, FINE_AND_CLOSES);
    for (int i = 0; i < 20; i++) {
        T_EQ(ask(false), 0, "%s", trip.why);
        usleep(2000); /* most ends have arrived by then; a later one costs a retry, no error */
    }
    end();
}

T_TEST(who_cannot_be_reached_costs_no_retry)
{
    BEGIN(quick, FINE, FINE);
    opts.retries = 0;
    core->server[0].name.port = 1; /* no server is there */
    for (int i = 0; i < 20; i++) {
        core->health[0] = (struct health){ 0 };
        T_EQ(ask(false), 0, "%s", trip.why);
    }
    T_EQ(core->stats.retries, 0);
    end();
}

T_TEST(another_server_is_asked_after_a_time_out)
{
    BEGIN(impatient, SILENT, FINE);
    for (int i = 0; i < 3; i++) {
        core->health[0] = (struct health){ 0 };
        T_EQ(ask(false), 0, "%s", trip.why);
    }
    T_OK(stub[0].asked > 0 && core->stats.retries == stub[0].asked, "%u", stub[0].asked);
    T_EQ(stub[1].asked, 3);
    end();
}

T_TEST(every_attempt_is_told)
{
    BEGIN(quick, CUTS, HALF, GARBAGE, NOT_READY);
    T_OK(ask(false) < 0);
    T_EQ(asked(), 4);
    T_OK(strstr(trip.why, "closed without an answer") &&
             strstr(trip.why, "not an answer of firnd") && strstr(trip.why, "503: no slot yet"),
         "%s", trip.why);
    for (size_t i = 0; i < stubs; i++) {
        char name[32];
        snprintf(name, sizeof name, "127.0.0.1:%u: ", stub[i].port);
        T_OK(strstr(trip.why, name), "%s in %s", name, trip.why);
    }
    end();
}

T_TEST(a_refusal_for_good_is_not_asked_again)
{
    BEGIN(quick, NO_TOKEN, NO_TOKEN, NO_TOKEN);
    T_EQ(ask(false), FIRN_EAUTH);
    T_EQ(asked(), 1);
    end();
}

T_TEST(what_may_have_been_taken_is_not_taken_again)
{
    static const enum behaviour unclear[] = { CUTS, HALF, SILENT, GARBAGE };
    for (size_t i = 0; i < T_LEN(unclear); i++) {
        BEGIN(unclear[i] == SILENT ? impatient : quick, unclear[i], unclear[i], unclear[i]);
        T_EQ(ask(true), FIRN_EUNKNOWN, "%s", trip.why);
        T_EQ(asked(), 1);
        T_OK(strstr(trip.why, "firn_client_next_keyed"));
        end();
    }
    BEGIN(quick, NOT_READY, FINE); /* a refusal is clear: nothing was taken */
    for (int i = 0; i < 10; i++) {
        core->health[0] = (struct health){ 0 };
        T_EQ(ask(true), 0, "%s", trip.why);
    }
    end();
}

T_TEST(the_deadline_ends_it)
{
    BEGIN("timeout=10s&retries=50&deadline=1s", SILENT, SILENT);
    T_EQ(ask(false), FIRN_EIO);
    T_OK(strstr(trip.why, "until the deadline"), "%s", trip.why);
    T_EQ(asked(), 1);
    end();
}

T_TEST(without_a_budget_there_are_no_retries)
{
    BEGIN(quick, CUTS, CUTS);
    core->budget.fifths = 0;
    T_EQ(ask(false), FIRN_EIO);
    T_EQ(asked(), 1);
    T_OK(strstr(trip.why, "budget"), "%s", trip.why);
    end();
}

/* --- attempts as the caller's hooks see them --- */

static struct seen {
    struct firn_client_attempt a;
    char host[64], what[64], parent[64], sent[64], text[300], id[64];
    bool ended;
} seen[64];
static size_t seen_n;
static int a_user;

static void seen_begin(void *user, const struct firn_client_attempt *a, char *traceparent)
{
    T_OK(user == &seen_n);
    T_OK(seen_n < T_LEN(seen) && (seen_n == 0 || seen[seen_n - 1].ended), "one after the other");
    T_EQ(a->ended_ns, 0);
    T_STR(traceparent, a->parent);
    if (a->parent[0])
        snprintf(traceparent, FIRN_CLIENT_TRACEPARENT_BUF, "%.36s%016zx-01", a->parent, seen_n + 1);
    else if (seen_n % 2)
        snprintf(traceparent, FIRN_CLIENT_TRACEPARENT_BUF, "x\r\nX-Evil: 1"); /* is not sent */
    seen[seen_n++] = (struct seen){ .ended = false };
}

static void seen_end(void *user, const struct firn_client_attempt *a)
{
    struct seen *s = &seen[seen_n - 1];
    T_OK(user == &seen_n && seen_n > 0 && !s->ended);
    s->a = *a;
    s->ended = true;
    snprintf(s->host, sizeof s->host, "%s", a->host);
    snprintf(s->what, sizeof s->what, "%s", a->what);
    snprintf(s->parent, sizeof s->parent, "%s", a->parent);
    snprintf(s->sent, sizeof s->sent, "%s", a->traceparent);
    snprintf(s->text, sizeof s->text, "%s", a->text);
    snprintf(s->id, sizeof s->id, "%s", a->request_id);
    T_OK(a->ended_ns >= a->began_ns && a->size == sizeof *a);
}

static const struct firn_client_opts hooks = { sizeof hooks, &seen_n, seen_begin, seen_end };
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-"

T_TEST(each_attempt_is_shown)
{
    static const struct {
        enum behaviour how;
        const char *text;
        int error;
    } fails[] = { { CUTS, "closed without an answer", FIRN_EIO },
                  { HALF, "closed without an answer", FIRN_EIO },
                  { GARBAGE, "not an answer of firnd", FIRN_EIO },
                  { NOT_READY, "503: no slot yet", FIRN_EAGAIN },
                  { SILENT, "no answer within 1000 ms", FIRN_EIO } };
    for (size_t i = 0; i < T_LEN(fails); i++) {
        BEGIN(fails[i].how == SILENT ? impatient : quick, fails[i].how, FINE);
        core->hooks = &hooks;
        core->health[1].clash = true; /* the other one is asked first */
        seen_n = 0;
        struct request q = { .kind = REQUEST_NUMBERS, .n = 1, .shard = 5 };
        strcpy(q.traceparent, TRACE "b7ad6b7169203331-01");
        strcpy(q.id, "req-1");
        trip_start(&trip, core, &q);
        trip.user = &a_user;
        T_EQ(trip_run(&trip), 0, "%s", trip.why);
        trip_done(&trip);
        T_EQ(seen_n, 2);
        T_EQ(seen[0].a.error, fails[i].error);
        T_STR(seen[0].text, fails[i].text);
        T_EQ(seen[1].a.error, 0);
        T_STR(seen[1].text, "");
        for (size_t k = 0; k < 2; k++) {
            T_OK(seen[k].ended && seen[k].a.user == &a_user);
            T_EQ(seen[k].a.number, k + 1);
            T_EQ(seen[k].a.port, stub[k].port);
            T_EQ(seen[k].a.shard, 5);
            T_STR(seen[k].host, "127.0.0.1");
            T_STR(seen[k].what, "id");
            T_STR(seen[k].id, "req-1");
            T_STR(seen[k].parent, TRACE "b7ad6b7169203331-01");
            T_STR(seen[k].sent, k ? TRACE "0000000000000002-01" : TRACE "0000000000000001-01");
            T_EQ(stub[k].asked, 1); /* from here on the thread leaves `last` alone */
            T_OK(strstr(stub[k].last, seen[k].sent), "%s", stub[k].last);
            T_OK(strstr(stub[k].last, "?shard=5 "), "%s", stub[k].last);
        }
        T_OK(seen[1].a.began_ns >= seen[0].a.ended_ns / 1000 * 1000);
        end();
    }
}

T_TEST(attempts_without_a_trace_and_without_a_server)
{
    BEGIN(quick, FINE, FINE);
    core->hooks = &hooks;
    core->server[0].name.port = 1; /* no server is there */
    seen_n = 0;
    for (int i = 0; i < 6; i++) {
        core->health[0] = (struct health){ 0 };
        T_EQ(ask(false), 0, "%s", trip.why);
    }
    size_t refused = 0;
    for (size_t i = 0; i < seen_n; i++) {
        T_STR(seen[i].sent, "");
        T_OK(seen[i].ended && seen[i].a.user == NULL);
        refused += seen[i].a.error == FIRN_EIO && strstr(seen[i].text, "refused");
    }
    T_EQ(seen_n, 6 + refused);
    T_EQ(stub[1].asked, 6);
    T_OK(!strstr(stub[1].last, "Evil") && !strstr(stub[1].last, "traceparent"), "%s", stub[1].last);
    end();
}

T_TEST(an_attempt_that_is_given_up_ends)
{
    BEGIN(quick, SILENT);
    core->hooks = &hooks;
    seen_n = 0;
    struct request q = { .kind = REQUEST_GET, .path = "/v1/node" };
    trip_start(&trip, core, &q);
    T_OK(!trip_step(&trip));
    trip_done(&trip);
    T_EQ(seen_n, 1);
    T_OK(seen[0].ended);
    T_EQ(seen[0].a.error, FIRN_ECLOSED);
    T_STR(seen[0].what, "/v1/node");
    end();
}

T_TEST(a_pinned_question_stays_where_it_is)
{
    BEGIN(quick, CUTS, FINE);
    struct request q = { .kind = REQUEST_POST, .path = "/v1/leases/x/extend", .body = "{}" };
    trip_start(&trip, core, &q);
    trip.pin = 0;
    T_EQ(trip_run(&trip), FIRN_EIO);
    trip_done(&trip);
    T_EQ(stub[0].asked, 1);
    T_EQ(stub[1].asked, 0);
    end();
}
