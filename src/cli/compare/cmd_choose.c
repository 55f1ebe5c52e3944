/* firn choose: recommends a kind of ID, with reasons, from flags or from questions. */
#include "cli/compare/choose.h"
#include "cli/commands.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RUNNERS_UP = 3 };

struct choosing {
    bool wish[CHOOSE_BITS];
    bool list, json;
};

#define WISH(name_, bit_, about_)                                                   \
    {                                                                               \
        .name = name_, .at = offsetof(struct choosing, wish[bit_]), .about = about_ \
    }

static const struct opt opts[] = {
    WISH("64bit", CHOOSE_64BIT, "it fits a signed 64-bit integer, such as a bigint column"),
    WISH("gapless", CHOOSE_GAPLESS, "no number may be missing, as on invoices"),
    WISH("sortable", CHOOSE_SORTABLE, "it sorts by creation time"),
    WISH("strict", CHOOSE_STRICT, "each is greater than all that were issued before, anywhere"),
    WISH("available", CHOOSE_AVAILABLE, "it is issued while the store cannot be reached"),
    WISH("offline", CHOOSE_OFFLINE,
         "it is generated in process, without a server request for each"),
    WISH("no-setup", CHOOSE_NO_SETUP, "it needs no worker number, no lease and no store"),
    WISH("public", CHOOSE_PUBLIC, "it can be public: it cannot be guessed or enumerated"),
    WISH("hide-time", CHOOSE_HIDE_TIME, "it hides its creation time"),
    WISH("strings", CHOOSE_STRINGS, "a text, not a number"),
    WISH("short", CHOOSE_SHORT, "at most 13 characters, for people to read and type"),
    WISH("uuid", CHOOSE_UUID, "it is a UUID, for columns and programs that require one"),
    WISH("javascript", CHOOSE_JAVASCRIPT,
         "it is a number that JavaScript represents exactly (2^53)"),
    WISH("fast", CHOOSE_FAST, "a million per second or more from one process"),
    WISH("dated", CHOOSE_DATED, "people can read the date in it"),
    { .name = "list",
      .at = offsetof(struct choosing, list),
      .about = "show all kinds and their properties instead" },
    OPT_JSON(struct choosing, json),
    { .name = NULL },
};

const struct usage choose_usage = {
    .name = "choose",
    .examples = "  firn choose                            asks, on a terminal\n"
                "  firn choose --64bit --sortable         a bigint that sorts by time\n"
                "  firn choose --gapless --offline        impossible: shows why\n"
                "  firn choose --list                     all kinds and their properties\n",
    .synopsis = "firn choose [WISH...] [--json]\n"
                "       firn choose --list [--json]",
    .about = "Recommends a kind of ID that meets all requirements, with the reasons, and the\n"
             "disadvantages of the next best. If no kind meets all, it shows which requirements\n"
             "conflict; the exit status is then 1.\n",
    .opts = opts,
};

/* ---- asking ---- */

/* 1 yes, 0 no, -1 the input ended. */
static int ask(const char *question)
{
    char line[64];
    for (;;) {
        printf("%s [y/N] ", question);
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin))
            return -1;
        if (!strchr(line, '\n')) /* skip the rest */
            for (int c; (c = getchar()) != '\n' && c != EOF;)
                ;
        switch (tolower((unsigned char)line[strspn(line, " \t")])) {
        case 'y':
            return 1;
        case 'n':
        case '\n':
        case '\r':
            return 0;
        default:
            puts("Please answer y or n; Ctrl-D ends the questions.");
        }
    }
}

/* A question is asked only while its answer can still decide something. */
static uint32_t ask_all(void)
{
    uint32_t wishes = 0;
    puts("A few questions; Enter means no, Ctrl-D ends them.");
    for (unsigned i = 0; i < CHOOSE_BITS; i++) {
        unsigned fit = 0, with = 0;
        for (unsigned k = 0; k < CHOOSE_KINDS; k++)
            if ((wishes & ~choose_kinds[k].has) == 0) {
                fit++;
                with += choose_kinds[k].has >> i & 1;
            }
        if (with == 0 || with == fit)
            continue;
        int r = ask(choose_wishes[i].question);
        if (r < 0)
            break;
        wishes |= (uint32_t)r << i;
    }
    putchar('\n');
    return wishes;
}

/* ---- output ---- */

static void put_wishes(uint32_t wishes, const char *gap)
{
    bool more = false;
    for (unsigned i = 0; i < CHOOSE_BITS; i++)
        if (wishes >> i & 1) {
            printf("%s--%s", more ? gap : "", choose_wishes[i].flag);
            more = true;
        }
}

static void put_lacks(uint32_t lacks)
{
    bool more = false;
    for (unsigned i = 0; i < CHOOSE_BITS; i++)
        if (lacks >> i & 1) {
            printf("%s%s", more ? "; " : "", choose_wishes[i].lacks);
            more = true;
        }
}

static void put_others(const struct choose_answer *a, bool best)
{
    const char *bold = term_style(TERM_BOLD), *plain = term_style(TERM_PLAIN);
    unsigned shown = 0;
    printf("\n%s%s%s\n", bold, best ? "Why not" : "Nearest", plain);
    for (unsigned i = 0; i < CHOOSE_KINDS && shown < RUNNERS_UP; i++) {
        unsigned k = a->order[i];
        if ((int)k == a->best)
            continue;
        printf("  %s%s%s: ", term_hue(0), choose_kinds[k].name, plain);
        if (a->lacks[k])
            put_lacks(a->lacks[k]);
        else
            printf("is possible, too; disadvantage: %s", choose_kinds[k].con);
        putchar('\n');
        shown++;
    }
}

static int tell(uint32_t wishes, const struct choose_answer *a)
{
    const char *bold = term_style(TERM_BOLD), *plain = term_style(TERM_PLAIN);
    if (a->best < 0) {
        printf("%sNo kind meets all requirements.%s ", bold, plain);
        put_wishes(a->conflict, " and ");
        printf(" exclude each other:\n  %s.\n", choose_why(a->conflict));
        put_others(a, false);
        return STATUS_FAILED;
    }
    const struct choose_kind *k = &choose_kinds[a->best];
    printf("%s%s%s: %s\n", bold, k->name, plain, k->about);
    for (unsigned i = 0; i < CHOOSE_BITS; i++)
        if (wishes >> i & 1)
            printf("  %s+%s %s\n", term_style(TERM_GOOD), plain, choose_wishes[i].has);
    printf("  %s-%s %s\n", term_style(TERM_BAD), plain, k->con);
    printf("  How: %s\n", k->how);
    put_others(a, true);
    return STATUS_OK;
}

static void json_wishes(struct buf *j, const char *key, uint32_t wishes)
{
    json_begin(j, key, '[');
    for (unsigned i = 0; i < CHOOSE_BITS; i++)
        if (wishes >> i & 1)
            json_text(j, NULL, choose_wishes[i].flag);
    json_end(j, ']');
}

static void json_kind(struct buf *j, const struct choose_kind *k, uint32_t lacks, bool has)
{
    json_text(j, "kind", k->key);
    json_text(j, "name", k->name);
    json_text(j, "about", k->about);
    json_text(j, "against", k->con);
    json_text(j, "how", k->how);
    json_count(j, "chars", k->chars);
    json_wishes(j, has ? "has" : "lacks", has ? k->has : lacks);
}

static int tell_json(uint32_t wishes, const struct choose_answer *a)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_wishes(&j, "wishes", wishes);
    if (a->best >= 0) {
        json_begin(&j, "recommended", '{');
        json_kind(&j, &choose_kinds[a->best], 0, true);
        json_end(&j, '}');
    } else {
        json_null(&j, "recommended");
        json_begin(&j, "clash", '{');
        json_wishes(&j, "wishes", a->conflict);
        json_text(&j, "why", choose_why(a->conflict));
        json_end(&j, '}');
    }
    json_begin(&j, "others", '[');
    for (unsigned i = 0, shown = 0; i < CHOOSE_KINDS && shown < RUNNERS_UP; i++)
        if ((int)a->order[i] != a->best) {
            json_begin(&j, NULL, '{');
            json_kind(&j, &choose_kinds[a->order[i]], a->lacks[a->order[i]], false);
            json_end(&j, '}');
            shown++;
        }
    json_end(&j, ']');
    json_end(&j, '}');
    output_json(&j, stdout);
    return a->best >= 0 ? STATUS_OK : STATUS_FAILED;
}

static void list_json(void)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '[');
    for (unsigned i = 0; i < CHOOSE_KINDS; i++) {
        json_begin(&j, NULL, '{');
        json_kind(&j, &choose_kinds[i], 0, true);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    output_json(&j, stdout);
}

static void list(void)
{
    static const char *const header[] = { "KIND", ">CHARS", "HAS", NULL };
    struct table t;
    table_init(&t, 0, header);
    for (unsigned i = 0; i < CHOOSE_KINDS; i++) {
        char has[200] = "";
        size_t len = 0;
        for (unsigned b = 0; b < CHOOSE_BITS; b++)
            if (choose_kinds[i].has >> b & 1)
                len += (size_t)snprintf(has + len, sizeof has - len, "%s%s", len ? " " : "",
                                        choose_wishes[b].flag);
        table_add(&t, "%s", choose_kinds[i].name);
        table_add(&t, "%u", choose_kinds[i].chars);
        table_add(&t, "%s", has);
    }
    table_print(&t);
    table_done(&t);
}

int cmd_choose(int argc, char **argv)
{
    struct choosing c = { 0 };
    struct choose_answer a;
    char shown[SAY_TEXT_BUF];
    uint32_t wishes = 0;
    int operands, r = options_parse(&choose_usage, argc, argv, &c, &operands);
    if (r >= 0)
        return r;
    if (operands > 0)
        return say_trouble("unexpected operand '%s': requirements are flags, such as --64bit",
                           say_text(argv[1], strlen(argv[1]), shown));
    for (unsigned i = 0; i < CHOOSE_BITS; i++)
        wishes |= (uint32_t)c.wish[i] << i;
    if (c.list) {
        if (c.json)
            list_json();
        else
            list();
        return output_finish(STATUS_OK);
    }
    if (wishes == 0) {
        if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 || c.json)
            return say_trouble(
                "missing requirements: give some, such as --64bit --sortable; firn choose --help "
                "lists them");
        wishes = ask_all();
    }
    choose(wishes, &a);
    return output_finish(c.json ? tell_json(wishes, &a) : tell(wishes, &a));
}
