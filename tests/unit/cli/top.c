/* firn top: what it reads, and pictures for screens of all sizes. */
#include "cli/duration.c"
#undef GOOD
#include "cli/watch/top_frame.c"
#include "cli/watch/top_node.c"
#include "t.h"

static const char node_json[] =
    "{\"name\":\"alpha\",\"version\":\"0.1.0\",\"ready\":true,\"reason\":\"ready\",\"slot\":7,"
    "\"state\":\"active\",\"window\":{\"from_tick\":\"1\"},\"clock\":{\"state\":\"held\",\"behind_ms\":-3,"
    "\"now\":\"2026-11-16T04:03:51.852Z\"},\"store\":{\"url\":\"sqlite:x\",\"errors\":2},"
    "\"connections\":5,\"uptime_s\":9}";
static const char metrics[] = "# HELP firn_ids_total x\n"
                              "firn_ids_total{kind=\"snowflake\"} 100\n"
                              "firn_ids_total{kind=\"ticket\"} 20\n"
                              "firn_ids_total{kind=\"dated\"} 3\n"
                              "firn_ids_total_other 7\n"
                              "firn_requests_total{protocol=\"http\"} 50\n"
                              "firn_requests_total{protocol=\"resp\"} 6\n"
                              "firn_window_seconds 2.5\n"
                              "process_cpu_seconds_total 1.5\n"
                              "process_resident_memory_bytes 1.5e+07\n";

T_TEST(answers_are_read)
{
    struct top_sample s = { 0 };
    T_EQ(top_read_node(node_json, strlen(node_json), &s), 0);
    T_STR(s.name, "alpha");
    T_STR(s.clock, "held");
    T_OK(s.ready && s.slot == 7 && s.behind_ms == -3 && s.connections == 5 && s.store_errors == 2);
    T_EQ(s.unix_us, UINT64_C(1794801831852000));
    T_EQ(top_read_metrics(metrics, strlen(metrics), &s), 0);
    T_EQ(s.ids, 123);
    T_EQ(s.tickets, 23);
    T_EQ(s.requests, 56);
    T_EQ(s.window_s * 10, 25);
    T_EQ(s.memory_bytes, 15000000);
    T_EQ(top_read_node("{\"a\":1}", 7, &s), FIRN_EFORMAT);
    T_EQ(top_read_node("<html>", 6, &s), FIRN_EFORMAT);
    T_EQ(top_read_metrics("nothing 1\n", 10, &s), FIRN_EFORMAT);
    static const char mad[] =
        "firn_ids_total 1e300\nfirn_window_seconds nan\nfirn_requests_total -inf";
    s = (struct top_sample){ 0 };
    T_EQ(top_read_metrics(mad, strlen(mad), &s), 0);
    T_OK(s.ids > 1e14 && s.ids < 1e16 && s.window_s < 1 && s.requests < 1);
}

T_TEST(rates_are_differences)
{
    struct top_node n = { 0 };
    struct top_sample s = { .at_ns = 1000000000, .ids = 100, .requests = 10, .cpu_s = 1 };
    top_node_update(&n, &s);
    T_OK(n.up && !n.has_rates);
    s = (struct top_sample){ .at_ns = 3000000000, .ids = 300, .requests = 30, .cpu_s = 2 };
    top_node_update(&n, &s);
    T_OK(n.has_rates);
    T_EQ(n.ids_per_s, 100);
    T_EQ(n.requests_per_s, 10);
    T_EQ(n.cpu_percent, 50);
    s = (struct top_sample){ .at_ns = 4000000000, .ids = 5, .requests = 1, .cpu_s = 0 };
    top_node_update(&n, &s); /* restarted */
    T_OK(!n.has_rates);
    n.up = false; /* it was down in between: the time is not to be divided by */
    s.at_ns += 1000000000;
    top_node_update(&n, &s);
    T_OK(!n.has_rates && n.up);
}

static char picture[64 * 1024];

static void draw(struct top_view *v)
{
    FILE *f = fmemopen(picture, sizeof picture, "w");
    top_frame(v, f);
    fclose(f);
}

/* Characters of the longest line, escape sequences taken off; *out_lines is their number. */
static size_t longest(size_t *out_lines)
{
    size_t most = 0, now = 0, lines = 1;
    for (const char *p = picture; *p; p++) {
        if (*p == '\033') {
            p += strcspn(p, "m");
            continue;
        }
        if (*p == '\n') {
            lines += p[1] != '\0';
            now = 0;
            continue;
        }
        now += ((unsigned char)*p & 0xc0) != 0x80;
        if (now > most)
            most = now;
    }
    *out_lines = lines;
    return most;
}

T_TEST(it_fits_every_screen)
{
    struct top_node node[9] = { 0 };
    double history[TOP_HISTORY];
    for (size_t i = 0; i < TOP_HISTORY; i++)
        history[i] = (double)i * 1000;
    for (size_t i = 0; i < 9; i++) {
        struct top_sample s = { .at_ns = 1 };
        T_EQ(top_read_node(node_json, strlen(node_json), &s), 0);
        T_EQ(top_read_metrics(metrics, strlen(metrics), &s), 0);
        snprintf(node[i].url, sizeof node[i].url, "http://10.0.0.%zu:9000", i);
        node[i].asked = true;
        top_node_update(&node[i], &s);
        s.at_ns = 1000000001;
        s.ids *= 1234567;
        top_node_update(&node[i], &s);
        node[i].last.ready = i != 3;
    }
    node[1].up = false;
    snprintf(node[1].why, sizeof node[1].why, "%s",
             "Connection refused, and a long text behind it");
    node[2] = (struct top_node){ .url = "http://later:9000" };
    for (size_t width = 1; width < 220; width++)
        for (size_t height = 1; height < 30; height += 3)
            for (int colour = 0; colour < 2; colour++) {
                size_t lines;
                struct top_view v = { .node = node,
                                      .nodes = 9,
                                      .width = width,
                                      .height = height,
                                      .colour = colour,
                                      .history = history,
                                      .history_n = TOP_HISTORY,
                                      .when = "10:00:00",
                                      .keys = true };
                draw(&v);
                size_t most = longest(&lines);
                T_OK(most <= (width < 36 ? 36 : width), "%zu of %zu columns:\n%s", most, width,
                     picture);
                T_OK(lines <= (height < 6 ? 6 : height), "%zu of %zu lines:\n%s", lines, height,
                     picture);
            }
    struct top_view wide = { .node = node, .nodes = 9, .when = "10:00:00" };
    draw(&wide);
    T_OK(strstr(picture, "7 of 9 up") && strstr(picture, "DOWN") && strstr(picture, "refused"));
    T_OK(strstr(picture, "asking") && strstr(picture, "not ready") && strstr(picture, "VERSION"));
    T_OK(!strchr(picture, '\033'));
    wide.width = 40;
    draw(&wide);
    T_OK(strstr(picture, "IDS/S") && !strstr(picture, "VERSION"), "%s", picture);
}
