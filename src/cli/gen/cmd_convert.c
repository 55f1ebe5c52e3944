/* firn convert: writes 64- and 128-bit values in another encoding. */
#include "cli/commands.h"
#include "cli/encoding.h"
#include "wire/json_write.h"
#include "cli/operands.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/words.h"

#include <inttypes.h>

struct convert {
    const char *from_name, *to_name;
    uint64_t bits;
    bool list, json;
    const struct encoding *from, *to;
};

static const struct opt opts[] = {
    { "from", 'f', OPT_TEXT, offsetof(struct convert, from_name), "E", "@encodings", 0, 0,
      "the encoding of the values" },
    { "to", 't', OPT_TEXT, offsetof(struct convert, to_name), "E", "@encodings", 0, 0,
      "the encoding to write" },
    { "bits", 'b', OPT_NUMBER, offsetof(struct convert, bits), "N", "64 128", 64, 128,
      "64 or 128; without it the size of a value decides: 64 if it fits" },
    { "list", 'l', OPT_FLAG, offsetof(struct convert, list), NULL, NULL, 0, 0,
      "show the encodings" },
    OPT_JSON(struct convert, json),
    { .name = NULL },
};

const struct usage convert_usage = {
    .name = "convert",
    .examples =
        "  firn convert --list                                      list the encodings\n"
        "  firn convert --from decimal --to base62 1541815603606036480\n"
        "  firn convert --from uuid --to ulid 017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n"
        "  firn gen snowflake -n 9 | firn convert --from decimal --to hex\n"
        "  firn convert --bits 128 --from decimal --to uuid 1        a small value as 128 bits\n",
    .synopsis = "firn convert --from E --to E [--bits 64|128] [VALUE...|-]\n"
                "       firn convert --list",
    .about = "Writes values in another encoding, one per line. Without VALUE, or for -, they are\n"
             "read from standard input, one per line. Values are not changed: a UUID keeps its\n"
             "version bits.\n",
    .opts = opts,
};

static int list(bool json)
{
    static const char *const header[] = { "ENCODING", ">64 BITS", ">128 BITS", "ORDER",
                                          "SAMPLE",   "ABOUT",    NULL };
    static const struct encoding_value sample = { { 0, 1541815603606036480 }, 64 };
    static const struct encoding_value sample128 = { { 0x017f22e279b07cc3, 0x98c4dc0c0c07398f },
                                                     128 };
    size_t n;
    const struct encoding *e = encoding_list(&n);
    struct table t;
    struct buf j;
    table_init(&t, 0, header);
    buf_init(&j, OUTPUT_JSON_MAX);
    if (json)
        json_begin(&j, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        char text[ENCODING_TEXT_BUF] = "";
        if (encoding_write(&e[i], e[i].codec ? sample : sample128, text) != 0)
            return say_trouble("%s: no sample", e[i].name);
        if (json) {
            json_begin(&j, NULL, '{');
            json_text(&j, "encoding", e[i].name);
            json_bool(&j, "ordered", e[i].ordered);
            json_text(&j, "sample", text);
            json_text(&j, "about", e[i].about);
            json_end(&j, '}');
            continue;
        }
        table_add_in(&t, term_hue(0), "%s", e[i].name);
        table_add(&t, e[i].codec ? "%u" : "-", e[i].codec ? e[i].codec->width64 : 0u);
        table_add(&t, "%zu", e[i].codec ? (size_t)e[i].codec->width128 : strlen(text));
        table_add(&t, "%s", e[i].ordered ? "kept" : "-");
        table_add(&t, "%s", text);
        table_add(&t, "%s", e[i].about);
    }
    if (json) {
        json_end(&j, ']');
        output_json(&j, stdout);
    } else {
        table_print(&t);
        printf("\n"
               "The numbers are lengths in characters. ORDER kept: texts of one width\n"
               "sort as the values do. SAMPLE is %" PRIu64 " or, of 128 bits, one UUID.\n",
               sample.v.lo);
    }
    table_done(&t);
    return output_finish(STATUS_OK);
}

static int find(const char *option, const char *name, const struct encoding **out)
{
    char what[16];
    if (!name)
        return say_trouble(
            "--from and --to are required: the encodings to read and to write; firn convert "
            "--list shows them");
    *out = encoding_find(name);
    if (*out)
        return -1;
    snprintf(what, sizeof what, "--%s", option);
    return words_unknown(what, name, "@encodings", "firn convert --list shows the encodings");
}

static int one(const struct convert *c, const char *where, const char *p, size_t len)
{
    struct encoding_value v;
    struct firn_diag d = { 0 };
    char text[ENCODING_TEXT_BUF], shown[SAY_TEXT_BUF];
    unsigned bits = (unsigned)c->bits;
    if (bits == 0 && !c->to->codec)
        bits = 128;
    if (encoding_read(c->from, bits, p, len, &v, &d) != 0)
        return say_failed("%s'%s' is not valid %s: %s", where, say_text(p, len, shown),
                          c->from->name, d.text);
    if (encoding_write(c->to, v, text) != 0)
        return say_failed("%s'%s' has 64 bits, %s has 128: give --bits 128", where,
                          say_text(p, len, shown), c->to->name);
    if (c->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        json_begin(&j, NULL, '{');
        json_bytes(&j, "input", p, len);
        json_text(&j, "from", c->from->name);
        json_text(&j, "to", c->to->name);
        json_count(&j, "bits", v.bits);
        json_text(&j, "output", text);
        json_end(&j, '}');
        output_json(&j, stdout);
    } else {
        puts(text);
    }
    return STATUS_OK;
}

static int each(const struct convert *c, struct operands *o)
{
    int status = STATUS_OK, got;
    const char *p;
    size_t len;
    while ((got = operands_next(o, &p, &len)) != OPERANDS_END) {
        if (got == OPERANDS_ERROR)
            return STATUS_TROUBLE;
        int r =
            got == OPERANDS_ONE
                ? one(c, operands_where(o), p, len)
                : say_failed(
                      "%sthe text is too long: no encoding of 128 bits has more than %d characters",
                      operands_where(o), LINES_TEXT_MAX);
        status = r > status ? r : status;
        if (ferror(stdout))
            break;
    }
    return status;
}

int cmd_convert(int argc, char **argv)
{
    struct convert c = { 0 };
    struct operands o;
    int n, r = options_parse(&convert_usage, argc, argv, &c, &n);
    if (r >= 0)
        return r;
    if (c.list)
        return list(c.json);
    if (c.bits != 0 && c.bits != 64 && c.bits != 128)
        return say_trouble("--bits %" PRIu64 ": give 64 or 128", c.bits);
    if ((r = find("from", c.from_name, &c.from)) >= 0 || (r = find("to", c.to_name, &c.to)) >= 0)
        return r;
    if (c.bits == 64 && !c.to->codec)
        return say_trouble("--to %s has 128 bits: leave out --bits 64", c.to->name);
    if ((r = operands_init(&o, argv + 1, n)) >= 0)
        return r;
    r = each(&c, &o);
    operands_done(&o);
    return output_finish(r);
}
