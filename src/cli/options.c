/* Options: help texts from the tables, and reading argv into a struct. */
#include "cli/options.h"
#include "cli/duration.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/suggest.h"
#include "cli/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HELP_WIDTH = 100, HELP_INDENT_MAX = 26 };

bool options_number(const char *text, bool suffix, uint64_t *out)
{
    static const struct {
        char letter;
        uint64_t times;
    } units[] = { { 'k', 1000 }, { 'M', 1000000 }, { 'G', 1000000000 } };
    uint64_t n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
            return false;
    if (p == text)
        return false;
    for (size_t i = 0; suffix && *p && i < sizeof units / sizeof units[0]; i++)
        if (p[0] == units[i].letter && !p[1]) {
            if (__builtin_mul_overflow(n, units[i].times, &n))
                return false;
            p++;
        }
    if (*p)
        return false;
    *out = n;
    return true;
}

/* ---- help ---- */

/* Words of `text` between columns `indent` and `width`; the first line stands at `indent`
 * already. */
static void put_wrapped(const char *text, size_t indent, size_t width)
{
    size_t at = indent;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (at > indent && at + 1 + n > width) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        fwrite(text, 1, n, stdout);
        at += n;
        text += n;
        while (*text == ' ')
            text++;
    }
    putchar('\n');
}

static int opt_label(const struct opt *o, char *out, size_t size)
{
    char letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(out, size, "  %s--%s%s%s", letter, o->name, o->value ? " " : "",
                    o->value ? o->value : "");
}

static void put_opt(const struct opt *o, size_t indent, size_t width)
{
    char label[64];
    size_t len = (size_t)opt_label(o, label, sizeof label);
    fputs(label, stdout);
    if (len + 2 > indent)
        printf("\n%*s", (int)indent, "");
    else
        printf("%*s", (int)(indent - len), "");
    put_wrapped(o->about, indent, width);
}

static const struct opt help_opt = { .name = "help", .letter = 'h', .about = "this text" };

void options_help(const struct usage *u)
{
    size_t indent = 0, screen = term_width(), width = HELP_WIDTH;
    char label[64];
    if (screen > 0 && screen < width)
        width = screen;
    for (const struct opt *o = u->opts; o->name; o++) {
        size_t len = (size_t)opt_label(o, label, sizeof label) + 2;
        if (len > indent && len <= HELP_INDENT_MAX)
            indent = len;
    }
    if (indent == 0)
        indent = (size_t)opt_label(&help_opt, label, sizeof label) + 2;
    const char *bold = term_style(TERM_BOLD), *plain = term_style(TERM_PLAIN);
    printf("%sExamples:%s\n%s\n%sUsage:%s %s\n\n%s\n", bold, plain, u->examples, bold, plain,
           u->synopsis, u->about);
    for (const struct opt *o = u->opts; o->name; o++)
        put_opt(o, indent, width);
    put_opt(&help_opt, indent, width);
    fputs(
        "\nExit status: 0 done, 1 a check failed or an ID was unreadable, 2 wrong usage, or input\n"
        "or output failed.\n",
        stdout);
}

/* ---- parsing ---- */

/* Report an unknown option, with the nearest known one. */
static int unknown(const struct usage *u, const char *name, size_t len)
{
    char word[64], shown[SAY_TEXT_BUF];
    struct suggest s;
    snprintf(word, sizeof word, "%.*s", (int)len, name);
    suggest_init(&s, word);
    for (const struct opt *o = u->opts; o->name; o++)
        suggest_try(&s, o->name);
    say_text(name, len, shown);
    if (s.best)
        return say_trouble("unknown option --%s: did you mean --%s?", shown, s.best);
    return say_trouble("unknown option --%s; see firn %s --help", shown, u->name);
}

static int set(const struct opt *o, const char *value, void *into)
{
    char *at = (char *)into + o->at, shown[SAY_TEXT_BUF];
    uint64_t n;
    switch (o->type) {
    case OPT_FLAG:
        *(bool *)(void *)at = true;
        return -1;
    case OPT_TEXT:
        *(const char **)(void *)at = value;
        return -1;
    case OPT_TIME:
        if (duration_parse(value, &n) && n >= o->min && n <= o->max) {
            *(uint64_t *)(void *)at = n;
            return -1;
        }
        say_text(value, strlen(value), shown);
        return say_trouble("--%s '%s': give a time such as 500ms, 10s or 5m, from "
                           "%" PRIu64 " ms to %" PRIu64 " s",
                           o->name, shown, o->min, o->max / 1000);
    case OPT_NUMBER:
    case OPT_COUNT:
        break;
    }
    if (!options_number(value, o->type == OPT_COUNT, &n) || n < o->min || n > o->max) {
        say_text(value, strlen(value), shown);
        if (o->max >= UINT64_MAX - 1)
            return say_trouble("--%s '%s': give a whole number%s%s", o->name, shown,
                               o->min ? " from 1" : "",
                               o->type == OPT_COUNT ? ", such as 1000, 10k or 5M" : "");
        return say_trouble("--%s '%s': give a whole number from %" PRIu64 " to %" PRIu64, o->name,
                           shown, o->min, o->max);
    }
    *(uint64_t *)(void *)at = n;
    return -1;
}

static const struct opt *by_name(const struct usage *u, const char *name, size_t len)
{
    for (const struct opt *o = u->opts; o->name; o++)
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    return len == strlen(help_opt.name) && memcmp(name, help_opt.name, len) == 0 ? &help_opt : NULL;
}

static const struct opt *by_letter(const struct usage *u, char letter)
{
    for (const struct opt *o = u->opts; o->name; o++)
        if (o->letter && o->letter == letter)
            return o;
    return letter == help_opt.letter ? &help_opt : NULL;
}

static int show_help(const struct usage *u)
{
    options_help(u);
    return output_finish(STATUS_OK);
}

struct parser {
    const struct usage *u;
    int argc, i; /* argv[i] is read next */
    char **argv;
    void *into;
};

/* `value` is NULL if it must come from the next argument. */
static int take(struct parser *p, const struct opt *o, const char *value)
{
    if (o == &help_opt)
        return show_help(p->u);
    if (o->type != OPT_FLAG && !value) {
        if (p->i + 1 >= p->argc)
            return say_trouble("--%s needs a value: --%s %s; see firn %s --help", o->name, o->name,
                               o->value, p->u->name);
        value = p->argv[++p->i];
    }
    return set(o, value, p->into);
}

static int long_option(struct parser *p, const char *name)
{
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;
    const struct opt *o = by_name(p->u, name, len);
    if (!o)
        return unknown(p->u, name, len);
    if (value && o->type == OPT_FLAG)
        return say_trouble("--%s takes no value: leave out = and the text after it", o->name);
    return take(p, o, value);
}

static int short_options(struct parser *p, const char *letters)
{
    for (; *letters; letters++) {
        const struct opt *o = by_letter(p->u, *letters);
        if (!o) {
            char shown[SAY_TEXT_BUF];
            return say_trouble("unknown option -%s; see firn %s --help",
                               say_text(letters, 1, shown), p->u->name);
        }
        bool wants = o->type != OPT_FLAG;
        int r = take(p, o, wants && letters[1] ? letters + 1 : NULL);
        if (r >= 0 || wants)
            return r;
    }
    return -1;
}

int options_parse(const struct usage *u, int argc, char **argv, void *into, int *out_operands)
{
    struct parser p = { .u = u, .argc = argc, .i = 1, .argv = argv, .into = into };
    bool options = true;
    int operands = 0, r = -1;
    for (; p.i < argc && r < 0; p.i++) {
        char *arg = argv[p.i];
        if (options && strcmp(arg, "--") == 0)
            options = false;
        else if (options && arg[0] == '-' && arg[1] == '-')
            r = long_option(&p, arg + 2);
        else if (options && arg[0] == '-' && arg[1])
            r = short_options(&p, arg + 1);
        else
            argv[1 + operands++] = arg;
    }
    if (r < 0)
        *out_operands = operands;
    return r;
}
