/*
 * firn inspect: shows the kind, time and fields of an ID. firn_detect() ranks every reading of a
 * text. The best is drawn bit by bit; other readings are listed with their scores, because the text
 * alone does not tell which is right.
 */
#include "cli/gen/bits.h"
#include "cli/commands.h"
#include "cli/encoding.h"
#include "wire/json_write.h"
#include "cli/operands.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/when.h"
#include "cli/words.h"

#include "firn/read.h"

#include <inttypes.h>

enum { READINGS_MAX = 48 }; /* more than there are kinds and presets together */

/* What firnd may stamp ahead of the clock, and less than a clock is usually off. */
enum { AHEAD_MIN_US = 500 * 1000, AHEAD_MAX_US = 120 * 1000 * 1000 };

struct inspect {
    const char *kind_name, *layout_text, *encoding_name;
    bool json;

    const struct firn_kind *kind; /* NULL: any */
    const struct encoding *encoding;
    struct firn_layout layout;
    bool has_layout;
    int64_t now_us;
    uint64_t shown;
};

static const struct opt opts[] = {
    { "kind", 'k', OPT_TEXT, offsetof(struct inspect, kind_name), "K", "@readable @layouts", 0, 0,
      "read it as this kind, or show why it is not one" },
    { "layout", 'l', OPT_TEXT, offsetof(struct inspect, layout_text), "L", "@layouts", 0, 0,
      "read it as a number of this layout: a preset's name or a layout's text" },
    { "encoding", 'e', OPT_TEXT, offsetof(struct inspect, encoding_name), "E", "@encodings", 0, 0,
      "the IDs are numbers written in this encoding" },
    OPT_JSON(struct inspect, json),
    { .name = NULL },
};

const struct usage inspect_usage = {
    .name = "inspect",
    .examples = "  firn inspect 1541815603606036480        its kind, and when it was made\n"
                "  firn inspect --layout twitter 1541815603606036480\n"
                "  firn inspect --kind uuidv7 017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n"
                "  firn inspect --encoding base62 1ptWyK4WgZU\n"
                "  firn gen xid -n 3 | firn inspect        one per line\n"
                "  firn inspect --json - <ids.txt | jq .readings[0].time\n",
    .synopsis = "firn inspect [--kind K] [--layout L] [--encoding E] [--json] [ID...|-]",
    .about =
        "Shows the kind, the time and the bits of IDs. Without ID, or for -, they are read from\n"
        "standard input, one per line. Where a text has several readings the likeliest is drawn\n"
        "and the others are listed; the score (0 to 100) rates the form and how plausible the\n"
        "time is. With --json each ID is one object on a line of its own.\n",
    .opts = opts,
};

/* ---- text ---- */

static void put_name(const struct firn_reading *r)
{
    printf("%s%s%s", term_style(TERM_BOLD), r->kind->name, term_style(TERM_PLAIN));
    if (r->layout[0])
        printf(", layout %s", r->layout);
}

static void put_bits(const struct firn_reading *r)
{
    static const char *const plain[] = { "", "FIELD", ">BITS", "VALUE", NULL };
    struct bits_run run[FIRN_READ_FIELDS_MAX];
    struct bits b;
    struct table t;
    bool drawn = false;
    for (size_t i = 0; i < r->fields_n; i++) {
        run[i] = (struct bits_run){ r->field[i].name, r->field[i].bit, r->field[i].bits };
        drawn = drawn || r->field[i].bits > 0;
    }
    bits_init(&b, run, r->fields_n);
    drawn = drawn && r->bytes_len > 0;
    if (drawn) {
        bits_draw(&b, r->bytes, r->bytes_len * 8, 2);
        putchar('\n');
    }
    /* Letters are needed only for a drawing without colours. */
    bool letters = drawn && !term_colour();
    table_init(&t, 2, letters ? plain : plain + 1);
    for (size_t i = 0; i < r->fields_n; i++) {
        const struct firn_read_field *f = &r->field[i];
        if (letters)
            table_add(&t, "%c", f->bits ? b.letter[i] : ' ');
        table_add_in(&t, bits_colour(i), "%s", f->name);
        table_add(&t, f->bits ? "%u" : "", f->bits);
        table_add(&t, "%s", f->value);
    }
    if (r->fields_n > 0)
        table_print(&t);
    table_done(&t);
}

/* Without the fraction: whole seconds are enough here, and the table stays narrow. */
static const char *to_seconds(const char *utc, char *out)
{
    const char *dot = strchr(utc, '.');
    if (dot)
        memcpy(out + (dot - utc), "Z", 2);
    return out;
}

static void put_others(const struct inspect *in, const struct firn_reading *r, size_t n)
{
    static const char *const header[] = { ">SCORE", "OR", "LAYOUT", "TIME", "AGE", NULL };
    char utc[WHEN_BUF], age[WHEN_BUF];
    struct table t;
    table_init(&t, 2, header);
    for (size_t i = 0; i < n; i++) {
        table_add(&t, "%" PRId32, r[i].score);
        table_add(&t, "%s", r[i].kind->name);
        table_add(&t, "%s", r[i].layout);
        table_add(&t, "%s", r[i].has_time ? to_seconds(when_utc(r[i].unix_us, utc), utc) : "-");
        table_add(&t, "%s", r[i].has_time ? when_about(r[i].unix_us, in->now_us, age) : "");
    }
    putchar('\n');
    table_print(&t);
    table_done(&t);
}

/* Readings with the first one's score: the text does not tell them apart. */
static void put_ties(const struct firn_reading *r, size_t n)
{
    size_t ties = 1;
    while (ties < n && r[ties].score == r[0].score)
        ties++;
    if (ties == 1)
        return;
    printf("  %sas likely:", term_style(TERM_BOLD));
    for (size_t i = 1; i < ties; i++)
        printf("%s %s", i > 1 ? "," : "", r[i].layout[0] ? r[i].layout : r[i].kind->name);
    printf("%s; choose with --%s\n", term_style(TERM_PLAIN), r[0].layout[0] ? "layout" : "kind");
}

static void show(struct inspect *in, const struct firn_reading *r, size_t n)
{
    char utc[WHEN_BUF], age[WHEN_BUF];
    if (in->shown++ > 0)
        putchar('\n');
    printf("%s  ", r->text);
    put_name(r);
    if (n > 1)
        printf(" (score %" PRId32 " of 100)", r->score);
    printf("\n  %s\n", r->kind->about);
    put_ties(r, n);
    if (r->kind->flags & FIRN_KIND_UNSAFE)
        printf("  %sunsafe: two such IDs can be equal by design%s\n", term_style(TERM_BAD),
               term_style(TERM_PLAIN));
    if (r->has_time)
        printf("  made %s%s%s, %s\n", term_style(TERM_BOLD), when_utc(r->unix_us, utc),
               term_style(TERM_PLAIN), when_relative(r->unix_us, in->now_us, age));
    if (r->has_time && r->kind->bits == 64 && r->unix_us > in->now_us + AHEAD_MIN_US &&
        r->unix_us < in->now_us + AHEAD_MAX_US)
        printf(
            "  its time is ahead of this clock: firnd begins a new or restored store up to 8 s (a "
            "shared one 65 s)\n  above the clock, and borrows up to 5 s in a burst\n");
    if (r->fields_n > 0) {
        putchar('\n');
        put_bits(r);
    }
    if (n > 1)
        put_others(in, r + 1, n - 1);
}

/* ---- JSON ---- */

static void json_reading(struct buf *j, const struct firn_reading *r, bool scored)
{
    char utc[WHEN_BUF], hex[2 * FIRN_READ_BYTES_MAX + 1];
    json_begin(j, NULL, '{');
    json_text(j, "kind", r->kind->name);
    if (r->layout[0])
        json_text(j, "layout", r->layout);
    if (scored)
        json_signed(j, "score", r->score);
    json_text(j, "text", r->text);
    if (r->has_time) {
        json_text(j, "time", when_utc(r->unix_us, utc));
        json_signed(j, "unix_ms", r->unix_us / 1000 - (r->unix_us % 1000 < 0));
    }
    for (size_t i = 0; i < r->bytes_len; i++)
        snprintf(hex + 2 * i, 3, "%02x", r->bytes[i]);
    if (r->bytes_len > 0)
        json_text(j, "hex", hex);
    json_bool(j, "unsafe", r->kind->flags & FIRN_KIND_UNSAFE);
    json_begin(j, "fields", '[');
    for (size_t i = 0; i < r->fields_n; i++) {
        json_begin(j, NULL, '{');
        json_text(j, "name", r->field[i].name);
        json_text(j, "value", r->field[i].value);
        if (r->field[i].bits > 0) {
            json_signed(j, "bit", r->field[i].bit);
            json_signed(j, "bits", r->field[i].bits);
        }
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}

static void show_json(const struct inspect *in, const char *p, size_t len,
                      const struct firn_reading *r, size_t n, const char *error)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_bytes(&j, "input", p, len);
    if (error)
        json_text(&j, "error", error);
    json_begin(&j, "readings", '[');
    for (size_t i = 0; i < n; i++)
        json_reading(&j, &r[i], !in->kind);
    json_end(&j, ']');
    json_end(&j, '}');
    output_json(&j, stdout);
}

/* ---- reading ---- */

/* The ID text of an encoded number: 64 bits in decimal, 128 as a UUID. */
static int decode(const struct inspect *in, const char *p, size_t len, char out[ENCODING_TEXT_BUF],
                  struct firn_diag *d)
{
    struct encoding_value v;
    int r = encoding_read(in->encoding, 0, p, len, &v, d);
    return r ? r : encoding_write(encoding_find(v.bits == 64 ? "decimal" : "uuid"), v, out);
}

static int read_one(const struct inspect *in, const char *p, size_t len, struct firn_reading *r,
                    size_t *n, struct firn_diag *d)
{
    char decoded[ENCODING_TEXT_BUF];
    int error;
    *n = 0;
    if (in->encoding) {
        if ((error = decode(in, p, len, decoded, d)) != 0)
            return error;
        p = decoded;
        len = strlen(decoded);
    }
    if (in->kind) {
        error = firn_read(in->kind, p, len, in->has_layout ? &in->layout : NULL, r, d);
        *n = error == 0;
        if (error && !d->text[0])
            snprintf(d->text, sizeof d->text, "not a valid %s: %s", in->kind->name,
                     firn_error_message(error));
        return error;
    }
    error = firn_detect(p, len, in->now_us / 1000, r, READINGS_MAX, n);
    if (error == 0 && *n == 0) {
        error = FIRN_EFORMAT;
        snprintf(
            d->text, sizeof d->text,
            "no kind matches these %zu characters; firn inspect --kind K shows why for one kind",
            len);
    }
    return error;
}

static int one(struct inspect *in, const char *where, const char *p, size_t len)
{
    struct firn_reading r[READINGS_MAX];
    struct firn_diag d = { 0 };
    char shown[SAY_TEXT_BUF];
    size_t n;
    int error = read_one(in, p, len, r, &n, &d);
    if (error && !d.text[0])
        snprintf(d.text, sizeof d.text, "%s", firn_error_message(error));
    if (in->json)
        show_json(in, p, len, r, n, error ? d.text : NULL);
    else if (!error)
        show(in, r, n);
    return error ? say_failed("%s'%s': %s", where, say_text(p, len, shown), d.text) : STATUS_OK;
}

static int too_long(const struct inspect *in, const char *where)
{
    char why[80];
    snprintf(why, sizeof why, "too long: no ID has more than %d characters", LINES_TEXT_MAX);
    if (in->json)
        show_json(in, "", 0, NULL, 0, why);
    return say_failed("%s%s", where, why);
}

static int each(struct inspect *in, struct operands *o)
{
    int status = STATUS_OK, got;
    const char *p;
    size_t len;
    while ((got = operands_next(o, &p, &len)) != OPERANDS_END) {
        if (got == OPERANDS_ERROR)
            return STATUS_TROUBLE;
        const char *where = operands_where(o);
        int r = got == OPERANDS_ONE ? one(in, where, p, len) : too_long(in, where);
        status = r > status ? r : status;
        if (ferror(stdout))
            break;
    }
    return status;
}

/* ---- options ---- */

static int set_layout(struct inspect *in, const char *text)
{
    struct firn_diag d = { 0 };
    if (firn_layout_parse(text, strlen(text), in->now_us / 1000, &in->layout, &d) == 0) {
        in->has_layout = true;
        in->kind = firn_kind_find("snowflake", strlen("snowflake"));
        return -1;
    }
    char why[sizeof d.text + 64];
    snprintf(why, sizeof why, "%s; firn layout check shows the place", d.text);
    return words_unknown("--layout", text, "@layouts", why);
}

static int set_kind(struct inspect *in)
{
    const char *name = in->kind_name;
    in->kind = firn_kind_find(name, strlen(name));
    if (in->kind && in->layout_text && strcmp(name, "snowflake") != 0)
        return say_trouble("--layout works with snowflakes, not with %s: leave one of them out",
                           name);
    if (in->kind)
        return -1;
    struct firn_layout l;
    if (!strchr(name, ':') && firn_layout_parse(name, strlen(name), 0, &l, NULL) == 0) {
        if (in->layout_text)
            return say_trouble("--kind %s is a layout, too: leave one of them out", name);
        return set_layout(in, name);
    }
    return words_unknown("--kind", name, "@readable @layouts", "firn gen lists the kinds");
}

static int set_options(struct inspect *in)
{
    int r = -1;
    if (in->encoding_name && !(in->encoding = encoding_find(in->encoding_name)))
        return words_unknown("--encoding", in->encoding_name, "@encodings",
                             "firn convert --list shows them");
    if (in->kind_name)
        r = set_kind(in);
    if (r < 0 && in->layout_text)
        r = set_layout(in, in->layout_text);
    return r;
}

int cmd_inspect(int argc, char **argv)
{
    struct inspect in = { .now_us = when_now_us() };
    struct operands o;
    int n, r = options_parse(&inspect_usage, argc, argv, &in, &n);
    if (r >= 0 || (r = set_options(&in)) >= 0 || (r = operands_init(&o, argv + 1, n)) >= 0)
        return r;
    r = each(&in, &o);
    operands_done(&o);
    return output_finish(r);
}
