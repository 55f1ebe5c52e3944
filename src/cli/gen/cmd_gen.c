/*
 * firn gen: generates IDs of any kind, one per line. A mint (firn/mint.h) fills a large block with
 * lines and one write(2) outputs it, so that generating and formatting determine the speed, not
 * system calls.
 */
#include "cli/commands.h"
#include "cli/encoding.h"
#include "cli/gen/worker.h"
#include "id/mint.h"
#include "id/rng_take.h"
#include "store/slotlock.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/words.h"

#include "firn/dated.h"
#include "firn/mint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 1 << 18,
    RETRY_NS = 1000000,
    BORROW_US = 4500000, /* a run that borrows may begin this far ahead: below its own drift */
};

struct gen {
    uint64_t count, worker, dc, shard, length, first;
    const char *layout_text, *encoding, *prefix, *policy, *alphabet, *name_space, *name, *reset;
    bool json;

    const struct firn_kind *kind;
    struct firn_layout layout;
    bool has_layout; /* the kind uses `layout`: it needs a worker */
    bool pinned;     /* the user chose the worker */
    uint32_t slots;  /* not pinned: slot .. slot + slots - 1 are free to choose */
    struct worker lease;
    struct firn_mint_opts mint;
};

static const struct opt opts[] = {
    { "count", 'n', OPT_COUNT, offsetof(struct gen, count), "N", NULL, 1, UINT64_MAX - 1,
      "number of IDs, such as 10k, 5M or 1G (default 1)" },
    { "layout", 'l', OPT_TEXT, offsetof(struct gen, layout_text), "L", "@layouts", 0, 0,
      "snowflake: a preset's name or a layout's text (default firn); see firn layout list" },
    { "worker", 'w', OPT_NUMBER, offsetof(struct gen, worker), "W", NULL, 0, UINT32_MAX,
      "number of the node that generates them (default: one that no other firn gen of this machine "
      "uses)" },
    { "dc", 'd', OPT_NUMBER, offsetof(struct gen, dc), "D", NULL, 0, UINT32_MAX,
      "the data centre, for layouts that have one (default: with --worker 0)" },
    { "shard", 's', OPT_NUMBER, offsetof(struct gen, shard), "S", NULL, 0, UINT32_MAX,
      "the shard, for layouts that have one (default 0; without a node field as --worker)" },
    { "encoding", 'e', OPT_TEXT, offsetof(struct gen, encoding), "E", "@encodings", 0, 0,
      "how numbers are written (default decimal); see firn convert --list" },
    { "prefix", 'p', OPT_TEXT, offsetof(struct gen, prefix), "P", NULL, 0, 0,
      "a business prefix: ord gives ord_...; for typeid, its type" },
    { "policy", 0, OPT_TEXT, offsetof(struct gen, policy), "POLICY", "wait error borrow", 0, 0,
      "when the numbers of a tick are used up: wait for the next tick (default), stop "
      "with an error, or borrow from the near future" },
    { "length", 0, OPT_NUMBER, offsetof(struct gen, length), "N", NULL, 1, 255,
      "nanoid and cuid2: characters; dated: digits of the counter" },
    { "alphabet", 0, OPT_TEXT, offsetof(struct gen, alphabet), "A", NULL, 0, 0,
      "nanoid: its characters, each once" },
    { "namespace", 0, OPT_TEXT, offsetof(struct gen, name_space), "NS", "dns url oid x500", 0, 0,
      "uuidv3 and uuidv5: dns, url, oid, x500 or a UUID" },
    { "name", 0, OPT_TEXT, offsetof(struct gen, name), "NAME", NULL, 0, 0,
      "uuidv3 and uuidv5: the name to hash" },
    { "first", 0, OPT_NUMBER, offsetof(struct gen, first), "N", NULL, 1, INT64_MAX,
      "ticket and dated: the first number (default 1)" },
    { "reset", 0, OPT_TEXT, offsetof(struct gen, reset), "PERIOD", "day month year", 0, 0,
      "dated: when the counter starts again (default day)" },
    OPT_JSON(struct gen, json),
    { .name = NULL },
};

const struct usage gen_usage = {
    .name = "gen",
    .examples = "  firn gen                                 list the kinds\n"
                "  firn gen ulid                            one ULID\n"
                "  firn gen uuidv7 -n 1000                  a thousand UUIDs of version 7\n"
                "  firn gen snowflake --worker 7            with the default layout, by worker 7\n"
                "  firn gen twitter --dc 1 --worker 7       a preset's name is a kind, too\n"
                "  firn gen snowflake -e base62 -p ord      ord_ and eleven characters\n"
                "  firn gen nanoid --length 12 --alphabet 0123456789abcdef\n"
                "  firn gen uuidv5 --namespace dns --name www.example.com\n"
                "  firn gen dated --reset month --first 42  the number 42 of this month\n",
    .synopsis = "firn gen [KIND] [-n N] [OPTION...]",
    .about =
        "Generates IDs, one per line. KIND is one of the table that firn gen prints, or a\n"
        "preset layout.\n"
        "\n"
        "Snowflakes are limited by real time: a sequence of 12 bits allows 4,096,000 IDs per\n"
        "second. For a higher rate choose a layout with a wider sequence, such as\n"
        "  --layout 'unused:1,time:41@1ms,node:6,seq:16;epoch=2021-01-01T00:00:00Z'\n"
        "--policy borrow exceeds the rate only for the seconds that it may run ahead of the\n"
        "clock.\n"
        "\n"
        "Without --worker a run takes a worker number that no other firn gen of this machine uses,\n"
        "and begins above what was made with it before: the file workers in\n"
        "$XDG_STATE_HOME/firn (for root /var/lib/firn, else ~/.local/state/firn) has the notes. With\n"
        "--worker a run waits for another one with that number, and begins above it, too; that no\n"
        "other machine and no other program uses the number is up to you.\n",
    .operands = "@kinds @layouts",
    .opts = opts,
};

/* ---- which options go with which kinds ---- */

static const struct {
    const char *option, *kinds;
    size_t at;
    enum opt_type type;
} only_for[] = {
    { "layout", "snowflake", offsetof(struct gen, layout_text), OPT_TEXT },
    { "worker", "snowflake sonyflake tsid", offsetof(struct gen, worker), OPT_NUMBER },
    { "dc", "snowflake", offsetof(struct gen, dc), OPT_NUMBER },
    { "shard", "snowflake", offsetof(struct gen, shard), OPT_NUMBER },
    { "policy", "snowflake sonyflake tsid", offsetof(struct gen, policy), OPT_TEXT },
    { "length", "nanoid cuid2 dated", offsetof(struct gen, length), OPT_NUMBER },
    { "alphabet", "nanoid", offsetof(struct gen, alphabet), OPT_TEXT },
    { "namespace", "uuidv3 uuidv5", offsetof(struct gen, name_space), OPT_TEXT },
    { "name", "uuidv3 uuidv5", offsetof(struct gen, name), OPT_TEXT },
    { "first", "ticket dated", offsetof(struct gen, first), OPT_NUMBER },
    { "reset", "dated", offsetof(struct gen, reset), OPT_TEXT },
};

struct in_list {
    const char *word;
    bool found;
};

static void compare_word(const char *word, void *user)
{
    struct in_list *l = user;
    l->found = l->found || strcmp(word, l->word) == 0;
}

static bool is_one_of(const char *word, const char *list)
{
    struct in_list l = { word, false };
    words_each(list, compare_word, &l);
    return l.found;
}

static bool is_given(const struct gen *g, size_t at, enum opt_type type)
{
    const char *p = (const char *)g + at;
    if (type == OPT_TEXT)
        return *(const char *const *)(const void *)p != NULL;
    return *(const uint64_t *)(const void *)p != OPT_NOT_GIVEN;
}

static int check_fits(const struct gen *g)
{
    const char *kind = g->kind->name;
    for (size_t i = 0; i < sizeof only_for / sizeof only_for[0]; i++)
        if (is_given(g, only_for[i].at, only_for[i].type) && !is_one_of(kind, only_for[i].kinds))
            return say_trouble("--%s works with %s, not with %s: leave it out", only_for[i].option,
                               only_for[i].kinds, kind);
    if (is_one_of(kind, "uuidv3 uuidv5") && g->count > 1)
        return say_trouble("--count: a name has exactly one %s: leave it out", kind);
    if (is_one_of(kind, "uuidv3 uuidv5") && (!g->name || !g->name_space))
        return say_trouble(
            "%s needs a name: give --namespace dns|url|oid|x500|UUID and --name NAME", kind);
    return -1;
}

/* ---- the kind and its layout ---- */

static bool is_preset(const char *name)
{
    size_t n;
    const struct firn_preset *p = firn_layout_presets(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].name, name) == 0)
            return true;
    return false;
}

static int find_kind(struct gen *g, const char *name)
{
    if (strcmp(name, "uuid") == 0)
        name = "uuidv4";
    g->kind = firn_kind_find(name, strlen(name));
    if (!g->kind && is_preset(name)) {
        g->kind = firn_kind_find("snowflake", strlen("snowflake"));
        if (g->layout_text)
            return say_trouble("%s is a layout already: write firn gen snowflake --layout %s", name,
                               g->layout_text);
        g->layout_text = name;
    }
    if (!g->kind)
        return words_unknown("unknown kind", name, "@kinds @layouts", "firn gen lists them");
    if (!(g->kind->flags & FIRN_KIND_MAKES))
        return say_trouble("%s can be read but not generated: firn gen lists the kinds that can",
                           g->kind->name);
    return -1;
}

/* 0 if the number fits a field of that many bits. */
static int check_field(const char *option, uint64_t n, const char *field, unsigned bits)
{
    if (n == OPT_NOT_GIVEN)
        return 0;
    if (bits == 0)
        return say_trouble("--%s: the layout has no %s field: leave it out, or see firn layout "
                           "explain",
                           option, field);
    if (bits < 64 && n >> bits)
        return say_trouble("--%s %" PRIu64 ": the layout's %s has %u bits: give 0 to %" PRIu64,
                           option, n, field, bits, (UINT64_C(1) << bits) - 1);
    return 0;
}

static uint64_t or_zero(uint64_t n)
{
    return n == OPT_NOT_GIVEN ? 0 : n;
}

static int set_identity(struct gen *g)
{
    const struct firn_bits *f = g->layout.field;
    unsigned dc = f[FIRN_FIELD_DC].width, node = f[FIRN_FIELD_NODE].width;
    bool only_shard = dc + node == 0 && f[FIRN_FIELD_SHARD].width > 0;
    if (only_shard && g->worker != OPT_NOT_GIVEN)
        return say_trouble("--worker: this layout has no node field, its shard is the identity: "
                           "give --shard");
    int r = check_field("worker", g->worker, "node", node);
    r = r ? r : check_field("dc", g->dc, "dc", dc);
    r = r ? r : check_field("shard", g->shard, "shard", f[FIRN_FIELD_SHARD].width);
    if (r)
        return r;
    uint64_t slot = only_shard ? or_zero(g->shard) : or_zero(g->dc) << node | or_zero(g->worker);
    if (slot > UINT32_MAX)
        return say_trouble("--dc and --worker: the combined number is above %" PRIu32, UINT32_MAX);
    g->mint.slot = (uint32_t)slot;
    g->mint.shard = only_shard ? 0 : or_zero(g->shard);
    g->pinned = only_shard ? g->shard != OPT_NOT_GIVEN : g->worker != OPT_NOT_GIVEN;
    /* Of a data centre that was given: its workers. */
    uint64_t slots = firn_layout_slots(&g->layout);
    if (g->dc != OPT_NOT_GIVEN && !only_shard)
        slots = UINT64_C(1) << node;
    g->slots = slots < WORKERS_MAX ? (uint32_t)slots : WORKERS_MAX;
    return -1;
}

static int set_layout(struct gen *g)
{
    struct firn_diag d = { 0 };
    struct timespec now;
    const char *text = g->layout_text ? g->layout_text : "firn";
    if (is_one_of(g->kind->name, "sonyflake tsid"))
        text = g->kind->name;
    else if (strcmp(g->kind->name, "snowflake") != 0)
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    if (firn_layout_parse(text, strlen(text), (int64_t)now.tv_sec * 1000, &g->layout, &d) != 0) {
        char why[sizeof d.text + 64];
        snprintf(why, sizeof why, "%s; firn layout check shows the place", d.text);
        return words_unknown("--layout", text, "@layouts", why);
    }
    g->has_layout = true;
    g->mint.layout = strcmp(g->kind->name, "snowflake") == 0 ? &g->layout : NULL;
    return set_identity(g);
}

/* ---- the other options ---- */

/* The index of `value` in a list of words; -1: it is not in the list, reported. */
static int choice(const char *option, const char *value, const char *const *words, size_t n)
{
    char shown[SAY_TEXT_BUF];
    for (size_t i = 0; i < n; i++)
        if (strcmp(value, words[i]) == 0)
            return (int)i;
    say_trouble("--%s '%s': give %s, %s or %s", option, say_text(value, strlen(value), shown),
                words[0], words[1], words[2]);
    return -1;
}

static int set_words(struct gen *g)
{
    static const char *const policies[] = {
        [FIRN_POLICY_WAIT] = "wait", [FIRN_POLICY_ERROR] = "error", [FIRN_POLICY_BORROW] = "borrow"
    };
    static const char *const resets[] = {
        [FIRN_DATED_DAY] = "day", [FIRN_DATED_MONTH] = "month", [FIRN_DATED_YEAR] = "year"
    };
    int c;
    if (g->policy) {
        if ((c = choice("policy", g->policy, policies, 3)) < 0)
            return STATUS_TROUBLE;
        g->mint.policy = (uint32_t)c;
    }
    if (g->reset) {
        if ((c = choice("reset", g->reset, resets, 3)) < 0)
            return STATUS_TROUBLE;
        g->mint.reset = (uint32_t)c;
    }
    return -1;
}

static int set_encoding(struct gen *g)
{
    if (!g->encoding)
        return -1;
    if (!(g->kind->flags & FIRN_KIND_NUMBER))
        return say_trouble(
            "--encoding: %s has a fixed text form: leave it out, or use firn convert",
            g->kind->name);
    const struct encoding *e = encoding_find(g->encoding);
    if (e && !e->codec)
        return say_trouble(
            "--encoding %s needs 128 bits, %s has 64: firn convert --list shows the others",
            e->name, g->kind->name);
    if (!e)
        return words_unknown("--encoding", g->encoding, "@encodings",
                             "firn convert --list shows them");
    g->mint.codec = e->codec;
    return -1;
}

/* ---- the worker ---- */

/* The worker's lease, before the generator begins. -1: it is ours, or up to the user. */
static int lease_worker(struct gen *g)
{
    struct firn_diag d = { 0 };
    uint32_t random;
    const char *name = g->layout.field[FIRN_FIELD_NODE].width ? "worker" : "shard";
    if (!g->has_layout || firn_layout_slots(&g->layout) == 0) /* the mint says what is wrong */
        return -1;
    char text[FIRN_LAYOUT_TEXT_BUF];
    firn_layout_format(&g->layout, text);
    int r = worker_open(&g->lease, slot_name_scope(text, firn_layout_slots(&g->layout)), &d);
    if (r != 0 && g->pinned) {
        say_note("the uses of %s %" PRIu32 " cannot be noted (%s): nothing keeps runs apart", name,
                 g->mint.slot, d.text);
        return -1;
    }
    if (r != 0)
        return say_trouble("no file for the workers of this machine: %s: set XDG_STATE_HOME to a "
                           "directory that you may write to, or give --%s",
                           d.text, name);
    firn__entropy(&random, sizeof random);
    r = worker_take(&g->lease, g->mint.slot, g->pinned ? 1 : g->slots, random, &d);
    if (r == FIRN_EFORMAT)
        return say_trouble(
            "the file of this machine's workers: %s: delete it when no firn gen runs "
            "(firn gen --help says where it is)",
            d.text);
    if (r == FIRN_ECLOCK)
        return say_trouble("IDs with later times were made on this machine: set the clock%s%s",
                           g->pinned ? ", or give another --" : "", g->pinned ? name : "");
    if (r != 0 && g->pinned)
        return say_trouble("another firn gen, or a firnd of this machine, uses %s %" PRIu32
                           ": wait for it, or leave out --%s to "
                           "get one of your own",
                           name, g->mint.slot, name);
    if (r != 0)
        return say_trouble("all %" PRIu32 " %ss of the layout are in use on this machine: wait, or "
                           "choose a layout with more",
                           g->slots, name);
    g->mint.slot = g->lease.number;
    return -1;
}

/* Begin above what was made with this worker before. */
static int begin_above(const struct gen *g, struct firn_mint *m)
{
    int64_t used = g->lease.used_us, slack = g->mint.policy == FIRN_POLICY_BORROW ? BORROW_US : 0;
    if (g->lease.file < 0 || used == 0)
        return 0;
    for (;;) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        int64_t ahead = used - slack - ((int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000);
        if (ahead <= 0)
            break;
        nanosleep(&(struct timespec){ ahead / 1000000, ahead % 1000000 * 1000 }, NULL);
    }
    uint64_t tick = firn_layout_ticks(&g->layout, used - 1); /* the last one that may be used */
    if (firn_layout_unix_us(&g->layout, tick) >= used)       /* none since the epoch */
        return 0;
    return firn_gen_after(&m->gen, &g->layout, tick << g->layout.field[FIRN_FIELD_TIME].shift);
}

/* The IDs made so far are about to be printed. */
static int note_use(struct gen *g, const struct firn_mint *m)
{
    struct firn_diag d = { 0 };
    if (!g->has_layout ||
        worker_note(&g->lease, firn_layout_unix_us(&g->layout, m->gen.tick_ + 1), &d) == 0)
        return -1;
    return say_trouble("the use of worker %" PRIu32 " cannot be noted: %s: free some space",
                       g->mint.slot, d.text);
}

/* ---- output ---- */

static int list_kinds(bool json)
{
    static const char *const header[] = { "KIND", ">BITS", "TIME", "SORTS", "ABOUT", NULL };
    size_t n;
    const struct firn_kind *k = firn_kinds(&n);
    struct table t;
    struct buf j;
    table_init(&t, 0, header);
    buf_init(&j, OUTPUT_JSON_MAX);
    if (json)
        json_begin(&j, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        if (!(k[i].flags & FIRN_KIND_MAKES))
            continue;
        if (json) {
            json_begin(&j, NULL, '{');
            json_text(&j, "kind", k[i].name);
            json_count(&j, "bits", k[i].bits);
            json_bool(&j, "time", k[i].flags & FIRN_KIND_TIME);
            json_bool(&j, "sorts", k[i].flags & FIRN_KIND_SORTS);
            json_text(&j, "about", k[i].about);
            json_end(&j, '}');
            continue;
        }
        table_add_in(&t, term_hue(0), "%s", k[i].name);
        if (k[i].bits)
            table_add(&t, "%" PRIu32, k[i].bits);
        else
            table_add(&t, "-");
        table_add(&t, "%s", k[i].flags & FIRN_KIND_TIME ? "yes" : "-");
        table_add(&t, "%s", k[i].flags & FIRN_KIND_SORTS ? "yes" : "-");
        table_add(&t, "%s", k[i].about);
    }
    if (json) {
        json_end(&j, ']');
        output_json(&j, stdout);
    } else {
        table_print(&t);
    }
    table_done(&t);
    return output_finish(STATUS_OK);
}

/* Lines of IDs as members of a JSON array. */
static void put_json_lines(struct buf *j, const char *p, size_t len)
{
    for (const char *end = p + len, *nl; p < end && (nl = memchr(p, '\n', (size_t)(end - p)));
         p = nl + 1)
        json_bytes(j, NULL, p, (size_t)(nl - p));
    output_json_part(j, stdout);
}

static int failed(const struct gen *g, uint64_t done, int error)
{
    const char *cure = "";
    if (error == FIRN_EAGAIN)
        cure = ": leave out --policy error to wait for the next tick";
    else if (error == FIRN_ECLOCK)
        cure = ": correct the clock and try again";
    else if (error == FIRN_EEXHAUSTED)
        cure = ": choose a layout with a later epoch or more time bits";
    else if (error == FIRN_EOVERFLOW)
        cure = ": choose a smaller --first";
    return say_trouble("%" PRIu64 " of %" PRIu64 " generated, then: %s%s", done, g->count,
                       firn_error_message(error), cure);
}

/* Generate all, block by block. `j` is NULL for lines. */
static int run(struct gen *g, struct firn_mint *m, char *block, struct buf *j)
{
    struct progress p;
    progress_init(&p);
    p.on = p.on && isatty(STDOUT_FILENO) != 1;
    progress_phase(&p, "making", g->count);
    uint64_t done = 0;
    int r = -1;
    while (done < g->count && r < 0) {
        size_t n, len;
        int error = firn_mint_lines(m, g->count - done, '\n', block, BLOCK_BYTES, &n, &len);
        if (error == FIRN_EAGAIN && g->mint.policy != FIRN_POLICY_ERROR) {
            nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
            continue;
        }
        if (error) {
            progress_clear(&p);
            return failed(g, done, error);
        }
        done += n;
        if ((r = note_use(g, m)) >= 0)
            break;
        if (j)
            put_json_lines(j, block, len);
        else
            r = output_block(block, len);
        if (j && output_gone())
            break;
        progress_step(&p, done, done);
    }
    progress_clear(&p);
    return r < 0 ? STATUS_OK : r;
}

static int run_json(struct gen *g, struct firn_mint *m, char *block)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_text(&j, "kind", g->kind->name);
    if (g->has_layout) {
        char text[FIRN_LAYOUT_TEXT_BUF];
        firn_layout_format(&g->layout, text);
        json_text(&j, "layout", text);
    }
    json_begin(&j, "ids", '[');
    int status = run(g, m, block, &j);
    json_end(&j, ']');
    json_end(&j, '}');
    output_json(&j, stdout);
    return output_finish(status);
}

static int make(struct gen *g)
{
    struct firn_mint *m = NULL;
    struct firn_diag d = { 0 };
    int error = firn_mint_new(g->kind, &g->mint, &m, &d);
    if (error == 0 && g->has_layout)
        error = begin_above(g, m);
    if (error)
        return say_trouble("%s: %s", g->kind->name, d.text[0] ? d.text : firn_error_message(error));
    char *block = malloc(BLOCK_BYTES);
    int status = STATUS_TROUBLE;
    if (!block)
        say_trouble("out of memory");
    else if (g->json)
        status = run_json(g, m, block);
    else
        status = run(g, m, block, NULL);
    free(block);
    firn_mint_free(m);
    worker_close(&g->lease);
    return status;
}

int cmd_gen(int argc, char **argv)
{
    struct gen g = {
        .count = 1,
        .worker = OPT_NOT_GIVEN,
        .dc = OPT_NOT_GIVEN,
        .shard = OPT_NOT_GIVEN,
        .length = OPT_NOT_GIVEN,
        .first = OPT_NOT_GIVEN,
        .mint = FIRN_MINT_OPTS_INIT,
        .lease = { .file = -1, .name = -1 },
    };
    int operands, r = options_parse(&gen_usage, argc, argv, &g, &operands);
    if (r >= 0)
        return r;
    if (operands == 0 && argc == 1 + g.json)
        return list_kinds(g.json);
    if (operands == 0 && !g.layout_text)
        return say_trouble(
            "missing kind: write firn gen KIND, for instance firn gen ulid; firn gen lists them");
    if (operands > 1)
        return say_trouble(
            "too many operands: give one kind, and the number of IDs with -n: firn gen %s -n 10",
            argv[1]);
    if ((r = find_kind(&g, operands ? argv[1] : "snowflake")) >= 0 || (r = check_fits(&g)) >= 0 ||
        (r = set_words(&g)) >= 0 || (r = set_encoding(&g)) >= 0 || (r = set_layout(&g)) >= 0 ||
        (r = lease_worker(&g)) >= 0)
        return r;
    g.mint.length = (uint32_t)or_zero(g.length);
    g.mint.first = or_zero(g.first);
    g.mint.prefix = g.prefix;
    g.mint.alphabet = g.alphabet;
    g.mint.name_space = g.name_space;
    g.mint.name = g.name;
    return make(&g);
}
