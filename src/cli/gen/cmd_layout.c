/* firn layout: lists the presets, explains a layout, and checks one alone or two for collisions. */
#include "cli/gen/bits.h"
#include "cli/commands.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/when.h"
#include "cli/words.h"

#include "firn/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { ID_BITS = 64, JS_BITS = 53, NUMBER_BUF = 32 };

struct layout_cmd {
    bool json;
    int64_t now_us;
};

static const struct opt opts[] = { OPT_JSON(struct layout_cmd, json), { .name = NULL } };

const struct usage layout_usage = {
    .name = "layout",
    .examples = "  firn layout list                    the presets\n"
                "  firn layout explain twitter         bits, rates, the day it runs out\n"
                "  firn layout check 'time:41@1ms,node:10,seq:12;epoch=2024-01-01T00:00:00Z'\n"
                "  firn layout check twitter leaf      can their IDs collide?\n",
    .synopsis = "firn layout [list]\n"
                "       firn layout explain LAYOUT\n"
                "       firn layout check LAYOUT [LAYOUT2]",
    .about =
        "LAYOUT is a preset's name or a text: fields from the high bit down, then settings.\n"
        "  unused:1,time:41@1ms,dc:5,worker:5,seq:12;epoch=2021-01-01T00:00:00Z\n"
        "Fields are unused, time, dc, node (or worker), shard and seq, each with its bits; time\n"
        "has a tick from 1us to 1s. Settings are epoch, unsigned (bit 63 is used) and\n"
        "decode-only. check with two layouts fails (exit status 1) if both can generate the\n"
        "same ID from now on; IDs of the past are not considered.\n",
    .operands = "list explain check @layouts",
    .opts = opts,
};

/* ---- properties of a layout ---- */

struct facts {
    uint64_t per_tick, per_second, slots, total; /* UINT64_MAX: or more */
    uint64_t lifetime_us;
    int64_t end_us; /* INT64_MAX: beyond the year 9999 */
    bool int64, js53, sorts, over;
    int64_t int64_end_us; /* if !int64: the first time whose IDs have bit 63 set */
};

static uint64_t saturate(unsigned __int128 n)
{
    return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

static struct facts facts_of(const struct firn_layout *l, int64_t now_us)
{
    struct facts f = { .slots = firn_layout_slots(l), .end_us = firn_layout_end_us(l) };
    uint64_t mask = firn_layout_mask(l);
    struct firn_bits time = l->field[FIRN_FIELD_TIME];
    f.per_tick = UINT64_C(1) << l->field[FIRN_FIELD_SEQ].width;
    f.per_second = saturate((unsigned __int128)f.per_tick * 1000000 / l->tick_us);
    f.total = saturate((unsigned __int128)f.per_tick * 1000000 * f.slots / l->tick_us);
    f.lifetime_us = saturate(((unsigned __int128)1 << time.width) * l->tick_us);
    f.int64 = mask >> (ID_BITS - 1) == 0;
    f.js53 = mask >> JS_BITS == 0;
    f.sorts = firn_layout_sortable(l);
    f.over = f.end_us <= now_us;
    f.int64_end_us = INT64_MIN;
    if (!f.int64 && time.shift + time.width == ID_BITS)
        f.int64_end_us = firn_layout_unix_us(l, UINT64_C(1) << (time.width - 1));
    return f;
}

/* 4,096,000 */
static const char *grouped(uint64_t n, char out[NUMBER_BUF])
{
    char digits[NUMBER_BUF];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    size_t at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

static const char *tick_text(uint64_t us, char out[NUMBER_BUF])
{
    static const struct {
        uint64_t us;
        const char *name;
    } unit[] = { { 1000000, "s" }, { 1000, "ms" }, { 1, "us" } };
    size_t u = 0;
    while (us % unit[u].us != 0)
        u++;
    snprintf(out, NUMBER_BUF, "%" PRIu64 " %s", us / unit[u].us, unit[u].name);
    return out;
}

static const char *end_text(int64_t end_us, char out[WHEN_BUF])
{
    if (end_us == INT64_MAX)
        snprintf(out, WHEN_BUF, "after the year 9999");
    else
        when_utc(end_us, out);
    return out;
}

/* The fields in the order of the bits, high to low. */
static size_t runs_of(const struct firn_layout *l, struct bits_run run[FIRN_FIELDS],
                      enum firn_field field[FIRN_FIELDS])
{
    size_t n = 0;
    for (int top = ID_BITS; top > 0; top--)
        for (int f = 0; f < FIRN_FIELDS; f++) {
            struct firn_bits b = l->field[f];
            if (b.width == 0 || b.shift + b.width != top)
                continue;
            field[n] = (enum firn_field)f;
            run[n++] = (struct bits_run){ firn_field_name((enum firn_field)f),
                                          (unsigned)(ID_BITS - top), b.width };
        }
    return n;
}

/* ---- reading a layout ---- */

static const struct firn_preset *find_preset(const char *name)
{
    size_t n;
    const struct firn_preset *p = firn_layout_presets(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].name, name) == 0)
            return &p[i];
    return NULL;
}

/* -1, or the status after an error that marks the position. A rejected layout is a failed check. */
static int parse(const char *text, int64_t now_us, struct firn_layout *out, int status)
{
    struct firn_diag d = { 0 };
    char shown[SAY_TEXT_BUF];
    if (firn_layout_parse(text, strlen(text), now_us / 1000, out, &d) == 0)
        return -1;
    say_text(text, strlen(text), shown);
    const char *near = strchr(text, ':') ? NULL : words_nearest("@layouts", text);
    if (near)
        return say_trouble("no preset '%s': did you mean %s?", shown, near);
    say_failed("%s", d.text);
    fprintf(stderr, "  %s\n", shown);
    if (d.column > 0 && d.column <= strlen(text) + 1 && d.column < SAY_TEXT_BUF - 8)
        fprintf(stderr, "  %*s\n", (int)d.column, "^");
    return status;
}

/* ---- list ---- */

static void layout_json(struct buf *j, const char *name, const struct firn_layout *l,
                        const struct layout_cmd *c)
{
    char text[FIRN_LAYOUT_TEXT_BUF], when[WHEN_BUF];
    struct bits_run run[FIRN_FIELDS];
    enum firn_field field[FIRN_FIELDS];
    struct facts f = facts_of(l, c->now_us);
    size_t n = runs_of(l, run, field);
    firn_layout_format(l, text);
    json_begin(j, NULL, '{');
    json_text(j, "name", name);
    json_text(j, "layout", text);
    json_begin(j, "fields", '[');
    for (size_t i = 0; i < n; i++) {
        struct firn_bits b = l->field[field[i]];
        json_begin(j, NULL, '{');
        json_text(j, "name", run[i].name);
        json_count(j, "bits", b.width);
        json_count(j, "shift", b.shift);
        json_id(j, "max", UINT64_MAX >> (ID_BITS - b.width));
        json_end(j, '}');
    }
    json_end(j, ']');
    json_text(j, "epoch", when_utc(l->epoch_ms * 1000, when));
    json_count(j, "tick_us", l->tick_us);
    json_text(j, "ends", f.end_us == INT64_MAX ? NULL : when_utc(f.end_us, when));
    json_bool(j, "ended", f.over);
    json_bool(j, "decode_only", l->flags & FIRN_LAYOUT_DECODE_ONLY);
    json_id(j, "nodes", f.slots);
    json_id(j, "per_tick", f.per_tick);
    json_id(j, "per_second_per_node", f.per_second);
    json_id(j, "per_second", f.total);
    json_bool(j, "fits_int64", f.int64);
    json_bool(j, "fits_2_53", f.js53);
    json_bool(j, "sorts_by_time", f.sorts);
    json_end(j, '}');
}

static int list(const struct layout_cmd *c)
{
    static const char *const header[] = { "LAYOUT",   ">NODES", ">EACH PER S",
                                          "RUNS OUT", "ABOUT",  NULL };
    char when[WHEN_BUF], number[NUMBER_BUF];
    size_t n;
    const struct firn_preset *p = firn_layout_presets(&n);
    struct table t;
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    table_init(&t, 0, header);
    if (c->json)
        json_begin(&j, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        struct firn_layout l;
        int r = parse(p[i].name, c->now_us, &l, STATUS_TROUBLE);
        if (r >= 0)
            return r;
        if (c->json) {
            layout_json(&j, p[i].name, &l, c);
            continue;
        }
        struct facts f = facts_of(&l, c->now_us);
        bool makes = !(l.flags & FIRN_LAYOUT_DECODE_ONLY);
        table_add_in(&t, term_hue(0), "%s", p[i].name);
        table_add(&t, "%s", makes ? grouped(f.slots, number) : "-");
        table_add(&t, "%s", makes ? grouped(f.per_second, number) : "-");
        end_text(f.end_us, when);
        when[strcspn(when, "T")] = '\0'; /* the day is enough here */
        table_add_in(&t, f.over ? term_style(TERM_BAD) : "", "%s%s", f.over ? "ran out " : "",
                     when);
        table_add(&t, "%s", p[i].summary);
    }
    if (c->json) {
        json_end(&j, ']');
        output_json(&j, stdout);
    } else {
        table_print(&t);
    }
    table_done(&t);
    return output_finish(STATUS_OK);
}

/* ---- explain ---- */

static void explain_fields(const struct firn_layout *l)
{
    static const char *const header[] = { "", "FIELD", ">BITS", "RANGE", "ABOUT", NULL };
    static const char *const about[] = {
        [FIRN_FIELD_TIME] = "ticks since the epoch", [FIRN_FIELD_DC] = "data centre",
        [FIRN_FIELD_NODE] = "node or worker",        [FIRN_FIELD_SHARD] = "database shard",
        [FIRN_FIELD_SEQ] = "number within a tick",
    };
    struct bits_run run[FIRN_FIELDS];
    enum firn_field field[FIRN_FIELDS];
    struct bits b;
    struct table t;
    char number[NUMBER_BUF];
    size_t n = runs_of(l, run, field);
    bits_init(&b, run, n);
    bits_draw(&b, NULL, ID_BITS, 2);
    putchar('\n');
    table_init(&t, 2, header);
    for (size_t i = 0; i < n; i++) {
        unsigned width = run[i].bits;
        table_add_in(&t, bits_colour(i), "%c", b.letter[i]);
        table_add_in(&t, bits_colour(i), "%s", run[i].name);
        table_add(&t, "%u", width);
        table_add(&t, "0 to %s", grouped(UINT64_MAX >> (ID_BITS - width), number));
        table_add(&t, "%s", about[field[i]]);
    }
    unsigned unused = (unsigned)(ID_BITS - __builtin_popcountll(firn_layout_mask(l)));
    if (unused > 0) {
        table_add(&t, ".");
        table_add(&t, "unused");
        table_add(&t, "%u", unused);
        table_add(&t, "0");
        table_add(&t, "never set");
    }
    table_print(&t);
    table_done(&t);
}

__attribute__((format(printf, 2, 3))) static void fact(const char *name, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("  %-14s ", name);
    vprintf(fmt, args);
    putchar('\n');
    va_end(args);
}

static void explain_time(const struct firn_layout *l, const struct facts *f, int64_t now_us)
{
    char a[WHEN_BUF], b[WHEN_BUF], tick[NUMBER_BUF];
    fact("epoch", "%s", when_utc(l->epoch_ms * 1000, a));
    fact("tick", "%s", tick_text(l->tick_us, tick));
    fact("lifetime", "%s", when_span(f->lifetime_us, a));
    if (f->over)
        fact("runs out", "%sit ran out on %s, %s: no more IDs can be generated%s",
             term_style(TERM_BAD), end_text(f->end_us, a), when_relative(f->end_us, now_us, b),
             term_style(TERM_PLAIN));
    else if (f->end_us == INT64_MAX)
        fact("runs out", "%s", end_text(f->end_us, a));
    else
        fact("runs out", "%s, %s", end_text(f->end_us, a), when_relative(f->end_us, now_us, b));
}

static void explain_rates(const struct firn_layout *l, const struct facts *f)
{
    char a[NUMBER_BUF], b[NUMBER_BUF];
    if (l->flags & FIRN_LAYOUT_DECODE_ONLY) {
        fact("nodes", "none: no field distinguishes nodes, so such IDs can be read, not generated");
        return;
    }
    fact("IDs per node", "%s per second (%s per tick)", grouped(f->per_second, a),
         grouped(f->per_tick, b));
    fact("nodes", "%s", grouped(f->slots, a));
    fact("IDs in all", "%s per second", grouped(f->total, a));
}

static void explain_fit(const struct facts *f)
{
    char a[WHEN_BUF];
    if (f->int64)
        fact("fits int64", "yes");
    else if (f->int64_end_us != INT64_MIN)
        fact("fits int64", "no: as signed numbers they become negative on %s",
             end_text(f->int64_end_us, a));
    else
        fact("fits int64", "no: bit 63 is used, as signed numbers they can be negative");
    fact("fits 2^53", "%s",
         f->js53 ? "yes: exact as a JavaScript number"
                 : "no: JavaScript rounds them, pass them as strings");
    fact("sorts by time", "%s", f->sorts ? "yes" : "no: the time is not the highest field");
}

static int explain(const struct layout_cmd *c, const char *text)
{
    char canonical[FIRN_LAYOUT_TEXT_BUF];
    const struct firn_preset *p = find_preset(text);
    struct firn_layout l;
    int r = parse(text, c->now_us, &l, STATUS_TROUBLE);
    if (r >= 0)
        return r;
    if (c->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        layout_json(&j, p ? p->name : NULL, &l, c);
        output_json(&j, stdout);
        return output_finish(STATUS_OK);
    }
    struct facts f = facts_of(&l, c->now_us);
    firn_layout_format(&l, canonical);
    if (p)
        printf("%s%s%s  %s\n", term_style(TERM_BOLD), p->name, term_style(TERM_PLAIN), p->summary);
    printf("%s\n\n", canonical);
    explain_fields(&l);
    putchar('\n');
    explain_time(&l, &f, c->now_us);
    explain_rates(&l, &f);
    explain_fit(&f);
    return output_finish(STATUS_OK);
}

/* ---- check ---- */

struct side {
    const char *text;
    struct firn_layout l;
};

/* The ID as one layout reads it, with the time at which that layout generates it. */
static void witness_row(struct table *t, const struct side *s, uint64_t id, int64_t now_us)
{
    struct firn_parts parts;
    char utc[WHEN_BUF], age[WHEN_BUF], fields[128] = "";
    size_t len = 0;
    if (firn_layout_decompose(&s->l, id, &parts) != 0)
        return;
    for (int f = FIRN_FIELD_TIME + 1; f < FIRN_FIELDS; f++)
        if (s->l.field[f].width > 0)
            len += (size_t)snprintf(fields + len, sizeof fields - len, "%s%s %" PRIu64,
                                    len ? ", " : "", firn_field_name((enum firn_field)f),
                                    parts.field[f]);
    int64_t us = firn_layout_unix_us(&s->l, parts.field[FIRN_FIELD_TIME]);
    table_add_in(t, term_hue(0), "%s", s->text);
    table_add(t, "%s", end_text(us, utc));
    table_add(t, "%s", us == INT64_MAX ? "" : when_relative(us, now_us, age));
    table_add(t, "%s", fields);
}

static void witness_json(struct buf *j, const struct side *s, uint64_t id)
{
    struct firn_parts parts;
    char utc[WHEN_BUF];
    if (firn_layout_decompose(&s->l, id, &parts) != 0)
        return;
    json_begin(j, NULL, '{');
    json_text(j, "layout", s->text);
    json_text(j, "time", end_text(firn_layout_unix_us(&s->l, parts.field[FIRN_FIELD_TIME]), utc));
    for (int f = FIRN_FIELD_TIME + 1; f < FIRN_FIELDS; f++)
        if (s->l.field[f].width > 0)
            json_id(j, firn_field_name((enum firn_field)f), parts.field[f]);
    json_end(j, '}');
}

static void pair_json(const struct side *a, const struct side *b, bool yes, uint64_t id)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_bool(&j, "collide", yes);
    if (yes) {
        json_id(&j, "smallest", id);
        json_begin(&j, "stamped_by", '[');
        witness_json(&j, a, id);
        witness_json(&j, b, id);
        json_end(&j, ']');
    }
    json_end(&j, '}');
    output_json(&j, stdout);
}

static int check_pair(const struct layout_cmd *c, const struct side *a, const struct side *b)
{
    static const char *const header[] = { "LAYOUT", "STAMPS IT AT", "THAT IS", "FIELDS", NULL };
    uint64_t id = 0;
    struct table t;
    bool yes = firn_layout_collide(&a->l, &b->l, c->now_us, &id) == 1;
    if (c->json) {
        pair_json(a, b, yes, id);
    } else if (yes) {
        printf("%sThey can collide:%s both can generate %" PRIu64 ", the smallest from now on.\n",
               term_style(TERM_BAD), term_style(TERM_PLAIN), id);
        table_init(&t, 2, header);
        witness_row(&t, a, id, c->now_us);
        witness_row(&t, b, id, c->now_us);
        table_print(&t);
        table_done(&t);
    } else {
        printf("%sok%s  from now on no ID of one layout will be generated with the other\n",
               term_style(TERM_GOOD), term_style(TERM_PLAIN));
    }
    return output_finish(yes ? STATUS_FAILED : STATUS_OK);
}

static int check(const struct layout_cmd *c, char *const *text, int n)
{
    struct side side[2];
    char canonical[FIRN_LAYOUT_TEXT_BUF];
    for (int i = 0; i < n; i++) {
        side[i].text = text[i];
        int r = parse(text[i], c->now_us, &side[i].l, STATUS_FAILED);
        if (r >= 0)
            return r;
    }
    if (n == 2)
        return check_pair(c, &side[0], &side[1]);
    if (c->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        layout_json(&j, find_preset(text[0]) ? text[0] : NULL, &side[0].l, c);
        output_json(&j, stdout);
    } else {
        firn_layout_format(&side[0].l, canonical);
        printf("%sok%s  %s\n", term_style(TERM_GOOD), term_style(TERM_PLAIN), canonical);
    }
    if (facts_of(&side[0].l, c->now_us).over)
        say_warning("its time has run out: no more IDs can be generated");
    return output_finish(STATUS_OK);
}

int cmd_layout(int argc, char **argv)
{
    struct layout_cmd c = { .now_us = when_now_us() };
    char shown[SAY_TEXT_BUF];
    int n, r = options_parse(&layout_usage, argc, argv, &c, &n);
    if (r >= 0)
        return r;
    const char *what = n > 0 ? argv[1] : "list";
    if (strcmp(what, "list") == 0 && n <= 1)
        return list(&c);
    if (strcmp(what, "list") == 0)
        return say_trouble("list takes no layout: did you mean firn layout explain?");
    if (strcmp(what, "explain") == 0 && n == 2)
        return explain(&c, argv[2]);
    if (strcmp(what, "explain") == 0)
        return say_trouble("explain takes one layout: firn layout explain twitter");
    if (strcmp(what, "check") == 0 && (n == 2 || n == 3))
        return check(&c, argv + 2, n - 1);
    if (strcmp(what, "check") == 0)
        return say_trouble("check takes one layout or two: firn layout check twitter leaf");
    say_text(what, strlen(what), shown);
    if (find_preset(what) || strchr(what, ':'))
        return say_trouble("missing subcommand before '%s': explain or check", shown);
    return say_trouble("unknown subcommand '%s': choose list, explain or check", shown);
}
