/* Requests with a trace or request ID: the header lines of their answers, what is sampled, and
 * their lines in the log. Spans as a collector gets them: tests/integration/tracing.py. */
#include "http_world.h"
#include "daemon/log.h"
#include "daemon/span_export.h"
#include "t.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRACE   "0af7651916cd43dd8448eb211c80319c"
#define SPAN    "b7ad6b7169203331"
#define SAMPLED "traceparent: 00-" TRACE "-" SPAN "-01\r\n"

static const char *ask(const char *target, const char *more)
{
    static char text[4096];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", target, more);
    T_OK(world_ask(text, (size_t)n, PORT_SNOWFLAKE), "%s", target);
    char *end = strstr(world.answer, "\r\n\r\n");
    T_OK(end);
    end[2] = '\0'; /* the head is what counts here */
    return world.answer;
}

static bool recorded(const char *answer)
{
    return strstr(answer, "\r\ntraceresponse: ") != NULL;
}

/* A collector that says nothing: spans wait in the queue, and are dropped behind its end. */
struct sink {
    int fd;
};

static void start(struct sink *s, double sample)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof a;
    char endpoint[64];
    struct firn_diag d = { 0, "" };
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_OK(bind(s->fd, (struct sockaddr *)&a, size) == 0 && listen(s->fd, 8) == 0);
    T_EQ(getsockname(s->fd, (struct sockaddr *)&a, &size), 0);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", ntohs(a.sin_port));
    struct span_export_opts o = { .endpoint = endpoint, .queue = 4096, .timeout_ms = 60000 };
    o.resource = (struct span_resource){ "test", "1", "i", NULL };
    T_EQ(span_export_start(&o, &world.app.spans, &d), 0, "%s", d.text);
    world.app.sample = sample;
    world_start();
}

static void end(struct sink *s)
{
    close(s->fd); /* resets what waits for an answer */
    span_export_stop(world.app.spans);
    world_end();
}

T_TEST(request_id_is_echoed)
{
    static const char *const paths[] = { "/generate", "/generate?n=2", "/healthz",
                                         "/generate?seq=slow", "/nothing" };
    world_start();
    for (size_t i = 0; i < T_LEN(paths); i++) {
        const char *answer = ask(paths[i], "x-request-id: a-1\r\n");
        T_OK(strstr(answer, "\r\nX-Request-ID: a-1\r\n"), "%s", answer);
        T_OK(!recorded(ask(paths[i], SAMPLED)), "tracing is off: %s", paths[i]);
        T_OK(!strstr(ask(paths[i], "x-request-id: a b\r\n"), "X-Request-ID"), "not a good one");
        T_OK(!strstr(ask(paths[i], "x-request-id: a\r\nX-Request-ID: b\r\n"), "X-Request-ID"));
        T_OK(!strstr(ask(paths[i], ""), "X-Request-ID"));
    }
    world_end();
}

T_TEST(parents_decide)
{
    static const struct {
        const char *more, *begins; /* the traceresponse; NULL: none */
    } rows[] = {
        { "", NULL },
        { SAMPLED, "00-" TRACE "-" },
        { "traceparent: 00-" TRACE "-" SPAN "-00\r\n", NULL },
        { "traceparent: cc-" TRACE "-" SPAN "-01-later\r\n", "00-" TRACE "-" },
        { "traceparent: 00-" TRACE "-" SPAN "-01-\r\n", NULL },
        { "traceparent: 00-" TRACE "-0000000000000000-01\r\n", NULL },
        { SAMPLED SAMPLED, NULL },
        { SAMPLED "tracestate: a=1\r\n", "00-" TRACE "-" },
        { SAMPLED "tracestate: a=1,a=1\r\nX-Request-ID: r\r\n", "00-" TRACE "-" },
    };
    static const char *const paths[] = { "/generate", "/generate?seq=slow", "/v1/node",
                                         "/generate?seq=broken", "/nothing" };
    struct sink s;
    start(&s, 0);
    for (size_t i = 0; i < T_LEN(rows); i++)
        for (size_t k = 0; k < T_LEN(paths); k++) {
            const char *answer = ask(paths[k], rows[i].more);
            const char *says = strstr(answer, "\r\ntraceresponse: ");
            T_EQ(says != NULL, rows[i].begins != NULL, "%s: %s", paths[k], answer);
            if (!says)
                continue;
            says += strlen("\r\ntraceresponse: ");
            T_EQ(strncmp(says, rows[i].begins, strlen(rows[i].begins)), 0, "%s", says);
            T_OK(strncmp(says + 36, SPAN, 16) != 0, "a span of its own");
            T_EQ(strncmp(says + 52, "-01\r\n", 5), 0, "%s", says);
        }
    end(&s);
}

static unsigned share(double sample, unsigned requests)
{
    struct sink s;
    unsigned n = 0;
    start(&s, sample);
    for (unsigned i = 0; i < requests; i++) {
        bool is = recorded(ask(i % 2 ? "/generate" : "/healthz", ""));
        n += is;
        T_OK(!recorded(ask("/generate", "traceparent: 00-" TRACE "-" SPAN "-00\r\n")),
             "a client that says no is not overruled");
    }
    end(&s);
    return n;
}

T_TEST(sampling)
{
    T_EQ(share(1, 100), 100);
    T_EQ(share(0, 100), 0);
    unsigned some = share(0.25, 4000); /* 1,000, with a deviation of 27 */
    T_OK(some > 750 && some < 1250, "%u", some);
}

T_TEST(log_names_the_request)
{
    static char text[65536];
    FILE *f = tmpfile();
    T_OK(f);
    log_to(fileno(f));
    world_start();
    ask("/generate?seq=broken", SAMPLED "X-Request-ID: r-1\r\n");
    ask("/generate?seq=broken", "");
    ask("/generate?seq=none", "X-Request-ID: r-2\r\n");
    log_info("behind", "");
    world_end();
    log_to(STDERR_FILENO);
    ssize_t n = pread(fileno(f), text, sizeof text - 1, 0);
    T_OK(n > 0);
    text[n] = '\0';
    const char *line = strstr(text,
                              "warn  request_failed status=503 problem=urn:firn:problem:store");
    T_OK(line && strstr(line, "request_id=r-1 trace_id=" TRACE "\n"), "%s", text);
    T_OK(!strstr(line + 10, "request_failed"), "one that nobody can name is not logged: %s", text);
    T_OK(!strstr(text, "r-2"), "nor one that the client got wrong");
    T_OK(strstr(text, "info  behind\n"), "%s", text);
    fclose(f);
}
