/* Options as they are typed: every spelling of a value, numbers at their limits, operands in any
 * order. */
#include "cli/options.h"
#include "t.h"

T_TEST(numbers)
{
    static const struct {
        const char *text;
        bool suffix, good;
        uint64_t want;
    } c[] = {
        { "0", false, true, 0 },
        { "007", false, true, 7 },
        { "18446744073709551615", false, true, UINT64_MAX },
        { "18446744073709551616", false, false, 0 },
        { "99999999999999999999", false, false, 0 },
        { "5k", true, true, 5000 },
        { "100M", true, true, 100000000 },
        { "18G", true, true, UINT64_C(18000000000) },
        { "18446744074G", true, false, 0 },
        { "5k", false, false, 0 },
        { "5K", true, false, 0 },
        { "5kk", true, false, 0 },
        { "k", true, false, 0 },
        { "", true, false, 0 },
        { "-1", false, false, 0 },
        { "+1", false, false, 0 },
        { " 1", false, false, 0 },
        { "1 ", false, false, 0 },
        { "0x10", false, false, 0 },
        { "1e3", true, false, 0 },
    };
    for (size_t i = 0; i < T_LEN(c); i++) {
        uint64_t n = 42;
        T_EQ(options_number(c[i].text, c[i].suffix, &n), c[i].good, "'%s'", c[i].text);
        T_EQ(n, c[i].good ? c[i].want : 42, "'%s'", c[i].text);
    }
}

struct values {
    bool loud;
    const char *name;
    uint64_t count, wait_ms;
};

static const struct opt opts[] = {
    { .name = "loud", .letter = 'l', .at = offsetof(struct values, loud), .about = "" },
    { .name = "name", .type = OPT_TEXT, .at = offsetof(struct values, name), .value = "N" },
    { .name = "count",
      .letter = 'n',
      .type = OPT_COUNT,
      .at = offsetof(struct values, count),
      .value = "N",
      .min = 1,
      .max = 5000 },
    { .name = "wait",
      .type = OPT_TIME,
      .at = offsetof(struct values, wait_ms),
      .value = "TIME",
      .max = 60000 },
    { .name = NULL },
};
static const struct usage usage = { .name = "test", .opts = opts };

/* Splits `line` at blanks and reads it. */
static int parse(const char *line, struct values *out, char *argv[16], int *out_n)
{
    static char text[256];
    int argc = 0;
    *out = (struct values){ 0 };
    strcpy(text, "test ");
    strcat(text, line);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) && argc < 15;)
        argv[argc++] = word;
    argv[argc] = NULL;
    return options_parse(&usage, argc, argv, out, out_n);
}

T_TEST(every_spelling)
{
    static const char *const same[] = {
        "-l -n 5 --name=x a b",      "a -ln5 b --name x",      "--count=5 --loud --name x a b",
        "a b --count 5 --name=x -l", "-l --name x -n5 -- a b", "--count 5 -l a --name=x -- b",
    };
    for (size_t i = 0; i < T_LEN(same); i++) {
        struct values v;
        char *argv[16];
        int n;
        T_EQ(parse(same[i], &v, argv, &n), -1, "%s", same[i]);
        T_OK(v.loud && v.count == 5, "%s", same[i]);
        T_STR(v.name, "x");
        T_EQ(n, 2, "%s", same[i]);
        T_STR(argv[1], "a");
        T_STR(argv[2], "b");
    }
}

T_TEST(what_looks_like_an_option_and_is_none)
{
    struct values v;
    char *argv[16];
    int n;
    T_EQ(parse("- -- --loud -n", &v, argv, &n), -1);
    T_OK(!v.loud);
    T_EQ(n, 3);
    T_STR(argv[1], "-");
    T_STR(argv[2], "--loud");
    T_STR(argv[3], "-n");
}

T_TEST(refused)
{
    static const char *const bad[] = { "--lout",     "-x",         "--count",    "-n",
                                       "--count=",   "--count 0",  "-n 5001",    "-n 6k",
                                       "--count 1x", "--loud=yes", "--wait 61s", "--wait abc" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct values v;
        char *argv[16];
        int n;
        T_EQ(parse(bad[i], &v, argv, &n), 2, "%s", bad[i]);
    }
}
