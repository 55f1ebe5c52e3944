/* W3C Trace Context: which header values are taken, how they are written, what is refused. */
#include "t.h"

#include "guard.h"
#include "wire/trace.h"

#include <stdio.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static struct slice slice(const char *text)
{
    return (struct slice){ guard_copy(text, strlen(text)), strlen(text) };
}

T_TEST(trace_parent_is_read_and_written)
{
    static const struct {
        const char *text, *again;
    } some[] = {
        { "00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01" },
        { "00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00" },
        { "00-" TRACE "-" SPAN "-03", "00-" TRACE "-" SPAN "-03" },
        { "00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-03" }, /* flags that we do not know */
        { "01-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01" },
        { "fe-" TRACE "-" SPAN "-09-more-x", "00-" TRACE "-" SPAN "-01" },
        { "cc-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01" },
        { "00-00000000000000000000000000000001-0000000000000001-01",
          "00-00000000000000000000000000000001-0000000000000001-01" },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        struct trace_parent t;
        char out[TRACE_PARENT_BUF];
        T_EQ(trace_parent_read(slice(some[i].text), &t), 0, "%s", some[i].text);
        T_STR(trace_parent_write(&t, out), some[i].again);
    }
}

T_TEST(trace_parent_is_refused)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-011",
        "00-" TRACE "-" SPAN "-01-",      /* version 00 ends there */
        "00-" TRACE "-" SPAN "-01-extra", /* the same */
        "01-" TRACE "-" SPAN "-011",      /* a later one goes on with a dash */
        "ff-" TRACE "-" SPAN "-01",       /* a version that will never be */
        "0-" TRACE "-" SPAN "-001",
        "0x-" TRACE "-" SPAN "-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-" TRACE "-B7AD6B7169203331-01",
        "00-" TRACE "-" SPAN "-0A",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        " 00-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-0\x01",
        "00-0af7651916cd43dd8448eb211c80319-" SPAN "-01-",
    };
    struct trace_parent t = { .flags = 7 };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(trace_parent_read(slice(bad[i]), &t), FIRN_EFORMAT, "%s", bad[i]);
    T_EQ(trace_parent_read((struct slice){ NULL, 0 }, &t), FIRN_EFORMAT, "absent");
    T_EQ(t.flags, 7, "an error touches nothing");
}

static char *repeat(const char *piece, size_t n, char *out)
{
    *out = '\0';
    for (size_t i = 0; i < n; i++)
        strcat(out, piece);
    return out;
}

T_TEST(trace_state)
{
    char long_key[300], long_value[300], many[512] = "", text[700];
    static const char *const good[] = {
        "",
        "a=b",
        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        " a=b , c=d\t,, e= f g!",
        "tenant@system=1",
        "0a_-*/@z=~!\"#",
    };
    static const char *const bad[] = { "a",       "=b",   "a=",     "A=b",     "a=b=c",
                                       "a=b,a=c", "_a=b", "a=\x7f", "a=b;c,d", "a\xc3=b" };
    for (size_t i = 0; i < T_LEN(good); i++)
        T_OK(trace_state_ok(slice(good[i])), "%s", good[i]);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(!trace_state_ok(slice(bad[i])), "%s", bad[i]);
    T_OK(!trace_state_ok((struct slice){ NULL, 0 }));

    snprintf(text, sizeof text, "%s=1", repeat("k", 256, long_key));
    T_OK(trace_state_ok(slice(text)));
    snprintf(text, sizeof text, "%s=1", repeat("k", 257, long_key));
    T_OK(!trace_state_ok(slice(text)));
    snprintf(text, sizeof text, "k=%s", repeat("v", 256, long_value));
    T_OK(trace_state_ok(slice(text)));
    snprintf(text, sizeof text, "k=%s", repeat("v", 257, long_value));
    T_OK(!trace_state_ok(slice(text)));
    for (int i = 0; i < 32; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sk%d=1", i ? "," : "", i);
    T_OK(trace_state_ok(slice(many)));
    strcat(many, ",k32=1");
    T_OK(!trace_state_ok(slice(many)), "33 members");
    T_OK(trace_state_ok(slice(repeat(",", 512, text))));
    T_OK(!trace_state_ok(slice(repeat(",", 513, text))));
}

T_TEST(request_ids)
{
    char text[200];
    static const char *const good[] = { "1", "0af7651916cd-43dd", "req_1.2~3:4/5+6=7@8|9",
                                        "1-67891233-abcdef012345678912345678" };
    static const char *const bad[] = { "",      "a b",   "a\"b",     "a\\b", "a,b", "a\tb",
                                       "a\x10", "a\x7f", "\xc3\xa9", "<a>",  "a;b" };
    for (size_t i = 0; i < T_LEN(good); i++)
        T_OK(request_id_ok(slice(good[i])), "%s", good[i]);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(!request_id_ok(slice(bad[i])), "%s", bad[i]);
    T_OK(!request_id_ok((struct slice){ NULL, 0 }));
    T_OK(request_id_ok(slice(repeat("x", 128, text))));
    T_OK(!request_id_ok(slice(repeat("x", 129, text))));
}
