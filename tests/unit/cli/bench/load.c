/* The load generator against a server that behaves well, badly, and in crumbs. */
#include "wire/histogram.c"
#include "wire/http_response.c"
#include "cli/id_body.c"
#include "cli/bench/load.c"
#include "cli/bench/load_worker.c"
#include "cli/verify/sortfile.c"
#include "../stub_server.h"

static struct load_plan plan_for(const struct stub *s, const char *request)
{
    static struct load_target t;
    t = (struct load_target){ .resp = request[0] == '*',
                              .request = request,
                              .request_len = strlen(request),
                              .address_len = sizeof s->address };
    memcpy(&t.address, &s->address, sizeof s->address);
    struct load_plan p = {
        .target = &t,
        .targets = 1,
        .connections = 4,
        .depth = 3,
        .threads = 1,
        .cpu = -1,
        .run_ns = 20 * SECOND_NS,
        .requests_max = 200,
        .check = true,
    };
    return p;
}

static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
static const char incr[] = "*2\r\n$4\r\nINCR\r\n$1\r\nx\r\n";
static struct load_result r;

static size_t json_id_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    char body[64];
    int len = snprintf(body, sizeof body, "{\"id\":\"%u\"}", n * 7 + 1);
    return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                            "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX: %u\r\n\r\n%s", len, n / 50,
                            body);
}

static void check_all_is_well(const struct load_plan *p, uint64_t ids)
{
    T_EQ(load_run(p, &r), 0, "%s", r.why);
    T_EQ(r.requests, 200);
    T_EQ(r.errors + r.lost + r.unanswered + r.unreadable, 0);
    T_EQ(r.ids, ids);
    T_EQ(r.distinct, ids);
    T_EQ(r.falls, 0);
    T_EQ(r.latency.total, 200);
    T_EQ(r.bytes_out, 200 * p->target->request_len);
    T_OK(r.latency.max > 0 && r.elapsed_ns > 0);
}

T_TEST(http)
{
    static struct stub s = { .answer = json_id_answer };
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    check_all_is_well(&p, 200);
    p.threads = 2;
    atomic_store(&s.requests, 0);
    check_all_is_well(&p, 200);
    p.check = false;
    check_all_is_well(&p, 0);
    stub_stop(&s);
}

T_TEST(http_in_crumbs)
{
    static struct stub s = { .answer = json_id_answer, .crumb = 7 };
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    check_all_is_well(&p, 200);
    p.check = false; /* bodies are then skipped wherever they are cut */
    check_all_is_well(&p, 0);
    stub_stop(&s);
}

static size_t chunked_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    char body[64];
    int len = snprintf(body, sizeof body, "{\"ids\":[%u,%u]}", 2 * n, 2 * n + 1);
    return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\n%.3s\r\n%x\r\n%s\r\n0\r\n\r\n",
                            body, (unsigned)len - 3, body + 3);
}

T_TEST(http_chunked)
{
    static struct stub s = { .answer = chunked_answer, .crumb = 11 };
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    check_all_is_well(&p, 400);
    stub_stop(&s);
}

static size_t resp_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    return (size_t)snprintf(out, STUB_ANSWER_BYTES, n % 2 ? ":%u\r\n" : "*1\r\n:%u\r\n", n);
}

T_TEST(resp)
{
    static struct stub s = { .answer = resp_answer, .crumb = 3 };
    stub_start(&s);
    struct load_plan p = plan_for(&s, incr);
    check_all_is_well(&p, 200);
    stub_stop(&s);
}

static size_t same_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    (void)n;
    return (size_t)snprintf(out, STUB_ANSWER_BYTES, ":42\r\n");
}

T_TEST(repeated_ids_are_seen)
{
    static struct stub s = { .answer = same_answer };
    stub_start(&s);
    struct load_plan p = plan_for(&s, incr);
    T_EQ(load_run(&p, &r), 0);
    T_EQ(r.ids, 200);
    T_EQ(r.distinct, 1);
    T_EQ(r.repeated, 42);
    T_EQ(r.falls, 196); /* all but the first of each connection */
    stub_stop(&s);
}

static size_t failing_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    if (n % 4 == 0)
        return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                                "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno");
    return json_id_answer(n, out);
}

T_TEST(errors_are_counted)
{
    static struct stub s = { .answer = failing_answer };
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    T_EQ(load_run(&p, &r), 0);
    T_EQ(r.requests, 150);
    T_EQ(r.errors, 50);
    T_EQ(r.distinct, 150);
    T_OK(r.sample_len == 2 && memcmp(r.sample, "no", 2) == 0);
    stub_stop(&s);
}

T_TEST(a_server_that_hangs_up_is_called_again)
{
    static struct stub s = { .answer = json_id_answer, .close_after = true };
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    p.depth = 1;
    T_EQ(load_run(&p, &r), 0);
    T_EQ(r.requests + r.lost, 200);
    /* A connection answers once; a second request may be on its way when it ends. */
    T_OK(r.requests >= 100 && r.reconnects + 4 >= r.requests, "%" PRIu64 " answered, %" PRIu64,
         r.requests, r.reconnects);
    T_EQ(r.distinct, r.ids);
    stub_stop(&s);
}

/* Errors and connections that end are asked again, and every request is answered. */
T_TEST(attempts)
{
    static struct stub failing = { .answer = failing_answer },
                       closing = { .answer = json_id_answer, .close_after = true };
    struct stub *stubs[] = { &failing, &closing };
    for (size_t i = 0; i < T_LEN(stubs); i++) {
        stub_start(stubs[i]);
        struct load_plan p = plan_for(stubs[i], get);
        p.depth = 1;
        p.rate = 5000;
        p.attempts = 50;
        T_EQ(load_run(&p, &r), 0);
        T_EQ(r.requests, 200);
        T_EQ(r.errors + r.lost + r.unanswered + r.unreadable + r.unsent, 0);
        T_EQ(r.sent, 200);
        T_EQ(r.distinct, 200);
        T_OK(i == 1 || r.retried >= 66, "%" PRIu64 " asked again", r.retried);
        T_EQ(r.latency.total, 200);
        stub_stop(stubs[i]);
    }
}

static size_t no_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    if (n >= 20)
        sleep(3600);
    return json_id_answer(n, out);
}

/* Answers that are late end the attempt; the last attempt ends the request. IDs go to a file. */
T_TEST(attempts_have_a_deadline)
{
    static struct stub s = { .answer = no_answer };
    char text[1024];
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    p.depth = 1;
    p.connections = 2;
    p.rate = 5000;
    p.requests_max = 24;
    p.attempts = 3;
    p.attempt_ns = SECOND_NS / 20;
    p.log = tmpfile();
    T_EQ(load_run(&p, &r), 0);
    T_EQ(r.requests + r.lost, 24);
    T_OK(r.requests <= 20 && r.retried >= 2 * r.lost, "%" PRIu64 " asked again", r.retried);
    T_OK(r.sample_len == 17 && memcmp(r.sample, "no answer in time", 17) == 0);
    rewind(p.log);
    uint64_t lines = 0;
    while (fgets(text, sizeof text, p.log))
        lines++;
    T_EQ(lines, r.requests);
    T_EQ(r.ids, 0); /* none is remembered */
    fclose(p.log);
    stub_stop(&s);
}

static size_t silent_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    if (n < 20)
        return resp_answer(n, out);
    pause();
    return 0;
}

/* A stall must show in the open loop: whatever was due during it has waited. */
T_TEST(open_loop_counts_from_when_due)
{
    static struct stub s = { .answer = silent_answer };
    stub_start(&s);
    struct load_plan p = plan_for(&s, incr);
    p.rate = 1000;
    p.requests_max = 0;
    p.run_ns = SECOND_NS / 2;
    T_EQ(load_run(&p, &r), 0);
    T_EQ(r.latency.total, r.requests + r.unanswered);
    /* 480, and fewer where this process did not get to send all that was due. */
    T_OK(r.requests <= 20 && r.unanswered > 5 * r.requests, "%" PRIu64 " unanswered", r.unanswered);
    uint64_t median = histogram_at(&r.latency, 500000); /* drains for a second after half a one */
    T_OK(median > SECOND_NS, "median %" PRIu64, median);
    stub_stop(&s);
}

T_TEST(nobody_there)
{
    static struct stub s = { .answer = same_answer };
    stub_start(&s);
    struct load_plan p = plan_for(&s, incr);
    stub_stop(&s);
    T_EQ(load_run(&p, &r), FIRN_EIO);
    T_OK(r.why[0]);
}

static size_t text_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    char body[64];
    int len = snprintf(body, sizeof body, "{\"id\":\"x-%08x\"}", n < 150 ? n : n - 50);
    return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                            "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len, body);
}

T_TEST(texts_are_compared_by_their_hashes)
{
    static struct stub s = { .answer = text_answer };
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    T_EQ(load_run(&p, &r), 0);
    T_EQ(r.unreadable, 0);
    T_EQ(r.ids, 200);
    T_EQ(r.hashed, 200);
    T_EQ(r.distinct, 150);
    stub_stop(&s);
}

static size_t resp_text_answer(unsigned n, char out[STUB_ANSWER_BYTES])
{
    return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                            n % 2 ? "$5\r\nx%04u\r\n" : "*1\r\n$5\r\nx%04u\r\n", n);
}

T_TEST(texts_of_resp)
{
    static struct stub s = { .answer = resp_text_answer, .crumb = 3 };
    stub_start(&s);
    struct load_plan p = plan_for(&s, incr);
    check_all_is_well(&p, 200);
    T_EQ(r.hashed, 200);
    stub_stop(&s);
}

T_TEST(memory_is_bounded)
{
    static struct stub s = { .answer = json_id_answer };
    stub_start(&s);
    struct load_plan p = plan_for(&s, get);
    p.ids_max = 49;
    T_EQ(load_run(&p, &r), 0);
    T_EQ(r.requests, 200); /* the run goes on */
    T_EQ(r.ids, 50);
    T_EQ(r.unchecked, 150);
    stub_stop(&s);
}

static uint64_t live_calls, live_requests;

static void note_live(const struct load_live *l, void *user)
{
    (void)user;
    live_calls++;
    T_OK(l->requests >= live_requests && l->p50_ns <= l->p99_ns);
    live_requests = l->requests;
}

T_TEST(two_targets_while_somebody_looks)
{
    static struct stub a = { .answer = json_id_answer }, b = { .answer = resp_answer };
    stub_start(&a);
    stub_start(&b);
    struct load_plan p = plan_for(&a, get);
    struct load_target t[2];
    t[0] = *p.target;
    t[1] = (struct load_target){
        .resp = true, .request = incr, .request_len = strlen(incr), .address_len = sizeof b.address
    };
    memcpy(&t[1].address, &b.address, sizeof b.address);
    p.target = t;
    p.targets = 2;
    p.threads = 2;
    p.rate = 200;
    p.live = note_live;
    p.requests_max = 0;
    p.run_ns = 2 * SECOND_NS;
    T_EQ(load_run(&p, &r), 0, "%s", r.why);
    T_EQ(r.errors + r.lost + r.unreadable, 0);
    T_EQ(r.share[0].requests + r.share[1].requests, r.requests);
    T_OK(r.share[0].requests > 0 && r.share[1].requests > 0);
    T_OK(live_calls > 0 && live_requests > 0);
    stub_stop(&a);
    stub_stop(&b);
    T_EQ(load_run(&p, &r), FIRN_EIO);
}
