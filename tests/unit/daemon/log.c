/* Log lines: their form, that values cannot break out of it, repeats, and threads. */
#include "t.h"

#include "daemon/log.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char text[1 << 20];
static FILE *sink;

static void begin(enum log_level level, enum log_format format)
{
    if (sink)
        fclose(sink);
    sink = tmpfile();
    T_OK(sink);
    log_flush();
    log_to(fileno(sink));
    log_setup(level, format);
}

/* What was written since begin(); lines without the time. */
static const char *lines(void)
{
    static char out[1 << 20];
    char *to = out;
    ssize_t n = pread(fileno(sink), text, sizeof text - 1, 0);
    T_OK(n >= 0);
    text[n] = '\0';
    for (char *p = text; *p;) {
        bool json = *p == '{';
        char *end = strchr(p, '\n');
        T_OK(end, "the last line is whole");
        char *time = json ? p + strlen("{\"time\":\"") : p;
        /* 2026-11-16T03:00:00.123Z */
        T_OK(time[4] == '-' && time[7] == '-' && time[10] == 'T' && time[13] == ':' &&
                 time[16] == ':' && time[19] == '.' && time[23] == 'Z',
             "%.40s", time);
        p = time + (json ? 26 : 25);
        memcpy(to, p, (size_t)(end + 1 - p));
        to += end + 1 - p;
        p = end + 1;
    }
    *to = '\0';
    return out;
}

T_TEST(log_text)
{
    begin(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_info("lease_acquired", "slot=%u until=%s", 3u, "2026-11-16T03:00:03Z");
    log_warn("clock_back", "by_ms=%lld rate=%.2f", -5LL, 1.5);
    log_error("store_failed", "");
    log_debug("unseen", "a=%d", 1);
    log_info("start", "listening on %s:%d", "::1", 80);
    T_STR(lines(), "info  lease_acquired slot=3 until=2026-11-16T03:00:03Z\n"
                   "warn  clock_back by_ms=-5 rate=1.50\n"
                   "error store_failed\n"
                   "info  start msg=\"listening on ::1:80\"\n");
}

T_TEST(log_of_a_request)
{
    begin(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_request(&(struct log_request){ .id = "r-1", .trace = "4bf9" });
    log_warn("refused", "reason=%s", "no token");
    log_audit("admin", "action=%s", "delete");
    log_request(&(struct log_request){ .id = "", .trace = "4bf9" });
    log_info("a", "");
    log_request(NULL);
    log_info("b", "c=1");
    T_STR(lines(), "warn  refused reason=\"no token\" request_id=r-1 trace_id=4bf9\n"
                   "info  admin action=delete request_id=r-1 trace_id=4bf9\n"
                   "info  a trace_id=4bf9\n"
                   "info  b c=1\n");
    begin(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_request(&(struct log_request){ .id = "12", .trace = "" });
    log_info("a", "b=%d", 1);
    log_request(NULL);
    T_STR(lines(), "\"level\":\"info\",\"event\":\"a\",\"b\":1,\"request_id\":\"12\"}\n");
}

T_TEST(log_json)
{
    begin(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    log_info("lease_acquired", "slot=%u until=%s at=%s:%u", 3u, "x y", "h", 80u);
    log_debug("numbers", "a=%d b=%lu c=%zu d=%lld e=%g f=%f g=%x h=%s i=%05d", -1, ULONG_MAX,
              (size_t)7, 9007199254740992LL, 0.25, 1.0 / 0.0, 255u, "12", 42);
    log_info("plain", "hello %s", "you");
    log_error("none", "");
    T_STR(
        lines(),
        "\"level\":\"info\",\"event\":\"lease_acquired\",\"slot\":3,\"until\":\"x y\",\"at\":\"h:80\"}\n"
        "\"level\":\"debug\",\"event\":\"numbers\",\"a\":-1,\"b\":\"18446744073709551615\",\"c\":7,"
        "\"d\":9007199254740992,\"e\":0.25,\"f\":\"inf\",\"g\":\"ff\",\"h\":\"12\",\"i\":\"00042\"}\n"
        "\"level\":\"info\",\"event\":\"plain\",\"msg\":\"hello you\"}\n"
        "\"level\":\"error\",\"event\":\"none\"}\n");
}

T_TEST(log_quotes)
{
    static const struct {
        const char *value, *in_text, *in_json;
    } cases[] = {
        { "", "\"\"", "" },
        { "a b", "\"a b\"", "a b" },
        { "a=b", "\"a=b\"", "a=b" },
        { "say \"hi\"", "\"say \\\"hi\\\"\"", "say \\\"hi\\\"" },
        { "back\\slash", "\"back\\\\slash\"", "back\\\\slash" },
        { "two\nlines\t", "\"two\\nlines\\t\"", "two\\nlines\\t" },
        { "\x1b[31m\x7f", "\"\\x1b[31m\\x7f\"", "\\u001b[31m\\u007f" },
        { "caf\xc3\xa9", "\"caf\xc3\xa9\"", "caf\xc3\xa9" },
        { "\xc2\x9b", "\"\\x9b\"", "\\u009b" },
        { "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"", "\xf0\x9f\x98\x80" },
        { "\xff", "\"\\xff\"", "\\ufffd" },
        { "\xc3", "\"\\xc3\"", "\\ufffd" },
        { "\xed\xa0\x80", "\"\\xed\\xa0\\x80\"", "\\ufffd\\ufffd\\ufffd" },
        { "\xc0\xaf", "\"\\xc0\\xaf\"", "\\ufffd\\ufffd" },
        { "\xf4\x90\x80\x80", "\"\\xf4\\x90\\x80\\x80\"", "\\ufffd\\ufffd\\ufffd\\ufffd" },
        { NULL, "(null)", "(null)" },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        char expect[256];
        begin(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
        log_debug("e", "k=%s z=%c", cases[i].value, 'z');
        snprintf(expect, sizeof expect, "debug e k=%s z=z\n", cases[i].in_text);
        T_STR(lines(), expect);
        begin(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
        log_debug("e", "k=%s z=%c", cases[i].value, 'z');
        snprintf(expect, sizeof expect,
                 "\"level\":\"debug\",\"event\":\"e\",\"k\":\"%s\",\"z\":\"z\"}\n",
                 cases[i].in_json);
        T_STR(lines(), expect);
    }
}

T_TEST(log_precision)
{
    begin(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
    const char raw[3] = { 'a', 'b', 'c' }; /* no NUL: a slice of a request */
    log_debug("e", "k=%.*s l=%.2s percent=%d%%", 3, raw, "xyz", 5);
    T_STR(lines(), "debug e k=abc l=xy percent=5%\n");
}

/* However long values are, a line stays whole, well formed and within what a pipe takes at once. */
T_TEST(log_long_values)
{
    for (int json = 0; json < 2; json++) {
        static char value[5000];
        memset(value, '\n', sizeof value - 1);
        begin(LOG_LEVEL_DEBUG, json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
        log_debug("e", "a=%s b=%s c=%s d=%s", value, value, value, "short");
        lines();
        size_t n = strlen(text);
        T_OK(n <= 4096 && n > 2000, "%zu bytes", n);
        T_OK(strchr(text, '\n') == text + n - 1);
        T_OK(strstr(text, "..."));
        T_OK(strstr(text, json ? "\"left_out\":2}" : "left_out=2\n"), "%.200s",
             text + (n > 200 ? n - 200 : 0));
    }
}

T_TEST(log_repeats_are_counted)
{
    begin(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    for (int i = 0; i < 121; i++)
        log_warn("refused", "peer=%s", "10.0.0.1");
    log_flush();
    T_STR(lines(), "warn  refused peer=10.0.0.1\nwarn  refused repeated=120\n");
    log_flush();
    T_STR(lines(), "warn  refused peer=10.0.0.1\nwarn  refused repeated=120\n");

    begin(LOG_LEVEL_INFO, LOG_FORMAT_JSON); /* another line of the event brings the count */
    for (int i = 0; i < 5; i++)
        log_warn("refused_too", "peer=%d", 1);
    log_warn("refused_too", "peer=%d", 2);
    T_STR(lines(), "\"level\":\"warn\",\"event\":\"refused_too\",\"peer\":1}\n"
                   "\"level\":\"warn\",\"event\":\"refused_too\",\"peer\":2,\"repeated\":4}\n");
}

T_TEST(log_floods_are_cut)
{
    begin(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    for (int i = 0; i < 1000; i++)
        log_warn("flood", "n=%d", i);
    log_flush();
    const char *all = lines();
    size_t n = 0, said = 0;
    for (const char *p = all; *p; p = strchr(p, '\n') + 1) {
        const char *r = strstr(p, "repeated=");
        n += strncmp(p, "warn  flood n=", 14) == 0;
        if (r && r < strchr(p, '\n'))
            said += strtoul(r + 9, NULL, 10);
    }
    T_OK(n >= 20 && n <= 200, "%zu lines", n); /* 20 per second; it may take some */
    T_EQ(n + said, 1000);

    begin(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT); /* who asks for debug lines gets them all */
    for (int i = 0; i < 100; i++)
        log_debug("same", "a=1");
    T_EQ(strlen(lines()), 100 * strlen("debug same a=1\n"));
}

/* More event names than rows: nothing is lost without being said. */
T_TEST(log_audit_is_never_held_back)
{
    int found = 0;
    begin(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    for (int i = 0; i < 100; i++)
        log_audit("admin", "action=%s", "delete");
    for (const char *p = lines(); (p = strstr(p, "info  admin action=delete\n")); p++)
        found++;
    T_EQ(found, 100);
}

T_TEST(log_many_events)
{
    static char names[200][16];
    begin(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 200; i++) {
            snprintf(names[i], sizeof names[i], "event_%d", i);
            log_info(names[i], "x=1");
            log_info(names[i], "x=1");
        }
    log_flush();
    size_t seen = 0;
    for (const char *p = lines(); *p; p = strchr(p, '\n') + 1) {
        const char *r = strstr(p, "repeated="), *end = strchr(p, '\n');
        seen += strstr(p, " x=1") && strstr(p, " x=1") < end;
        if (r && r < end)
            seen += strtoul(r + 9, NULL, 10);
    }
    T_EQ(seen, 1200);
}

T_TEST(log_keeps_errno)
{
    begin(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_to(-1); /* and survives that nothing can be written */
    errno = ENOSPC;
    log_info("x", "a=%d", 1);
    T_EQ(errno, ENOSPC);
    T_OK(!log_wants(LOG_LEVEL_DEBUG) && log_wants(LOG_LEVEL_INFO));
}

static void *writer(void *arg)
{
    for (int i = 0; i < 500; i++)
        log_debug("thread", "who=%s i=%d pad=%s", (const char *)arg, i,
                  "................................................................");
    return NULL;
}

T_TEST(log_threads_do_not_mix_lines)
{
    pthread_t thread[4];
    static char names[4][2] = { "a", "b", "c", "d" };
    int fd[2];
    begin(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
    char path[] = "/tmp/firn-log-XXXXXX";
    fd[0] = mkstemp(path);
    T_OK(fd[0] >= 0);
    fclose(sink);
    sink = fopen(path, "a+"); /* appending: as stderr into a journal or a file with >> */
    T_OK(sink);
    unlink(path);
    close(fd[0]);
    log_to(fileno(sink));
    for (int i = 0; i < 4; i++)
        T_EQ(pthread_create(&thread[i], NULL, writer, names[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    size_t n = 0;
    for (const char *p = lines(); *p; p = strchr(p, '\n') + 1, n++)
        T_OK(strncmp(p, "debug thread who=", 17) == 0 && strchr(p, '\n')[-1] == '.', "%.80s", p);
    T_EQ(n, 2000);
}
