/* firn admin: what an operator does to a store, and what can be seen in it. */
#include "cli/commands.h"
#include "cli/duration.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/store_option.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/when.h"

#include "drive/lease.h"
#include "drive/ticket.h"
#include "drive/setup.h"
#include "id/rng_take.h"
#include "store/quorum.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES_MAX = 20, /* each operation may be begun again when an answer is lost */
};
#define TIME_MAX_MS UINT64_C(86400000)

struct admin {
    const char *store, *layout;
    uint64_t slots, slot_lo, window, drift, skew;
    bool fresh, recover, force, all, json, as_is;
};

#define TIME(name_, member, about_)                                                             \
    {                                                                                           \
        .name = name_, .type = OPT_TIME, .at = offsetof(struct admin, member), .value = "TIME", \
        .min = 1, .max = TIME_MAX_MS, .about = about_                                           \
    }
#define FLAG(name_, member, about_)                                          \
    {                                                                        \
        .name = name_, .at = offsetof(struct admin, member), .about = about_ \
    }

static const struct opt opts[] = {
    OPT_STORE(struct admin, store),
    { "layout", 'l', OPT_TEXT, offsetof(struct admin, layout), "LAYOUT", "@layouts", 0, 0,
      "init: the layout of the IDs (default firn)" },
    { "slots", 0, OPT_NUMBER, offsetof(struct admin, slots), "N", NULL, 1, SLOTS_MAX,
      "init: how many slots (default: as many as the layout has, 16 for sqlite:)" },
    { "slot-lo", 0, OPT_NUMBER, offsetof(struct admin, slot_lo), "N", NULL, 0, 65535,
      "init: the first slot; regions with stores of their own need ranges of their own" },
    TIME("window", window, "init: how long a node goes on without the store (60s; sqlite: 3s)"),
    TIME("max-drift", drift, "init: how far IDs may run ahead of the clock (5s)"),
    TIME("skew-max", skew, "init: how far clocks may differ (10s; sqlite: 0)"),
    FLAG("fresh", fresh, "init: nobody ever used this ID space, so begin at once"),
    FLAG("recover", recover, "init: make a damaged store whole again; all its users are stopped"),
    FLAG("force", force, "retire: also a slot that is held"),
    FLAG("all", all, "slots: free ones, too"),
    FLAG("as-is", as_is, "admit: the store has all it had, it was only restarted or moved"),
    OPT_JSON(struct admin, json),
    { .name = NULL },
};

const struct usage admin_usage = {
    .name = "admin",
    .examples = "  firn admin init --store etcd://10.0.0.1:2379,10.0.0.2:2379/firn\n"
                "  firn admin init --store 'quorum:sqlite:/a/f.db|sqlite:/b/f.db|sqlite:/c/f.db'\n"
                "  firn admin doctor --store raft://10.0.0.1:9003,10.0.0.2:9003/\n"
                "  firn admin slots                    who holds which slot (FIRN_STORE is set)\n"
                "  firn admin doctor                   what is wrong, and what to do about it\n"
                "  firn admin fence                    after any restore of the store\n",
    .synopsis = "firn admin init [--fresh | --recover] [OPTIONS]\n"
                "       firn admin slots [--all]\n"
                "       firn admin doctor\n"
                "       firn admin fence\n"
                "       firn admin skip N [SEQUENCE]\n"
                "       firn admin retire SLOT [--force]\n"
                "       firn admin admit URL [--as-is]",
    .about =
        "init makes the records of an empty store, once. Timestamps begin above all that a lost store\n"
        "may have granted (about a minute and a half ahead); --fresh begins now.\n"
        "fence raises every slot above all that may have been granted: needed after the store was\n"
        "restored from a backup, copied, or failed over with loss. Stop the old one first.\n"
        "skip passes over the next N numbers of a sequence, or of all: after a restore, so that numbers\n"
        "given since the backup do not come again.\n"
        "retire takes a slot out of use for good, such as one that a wrong clock left in the future.\n"
        "admit lets a store of a quorum vote again that was wiped, restored or replaced: a majority of the\n"
        "others gives it all registers first. Stop whatever still uses what it was before.\n"
        "doctor's exit status is 1 when something needs a hand.\n",
    .operands = "init slots doctor fence skip retire admit",
    .opts = opts,
};

/* ---- what is in the store ---- */

struct seen_slot {
    bool present, readable;
    struct slot_record r;
};

struct survey {
    bool has_meta;
    struct meta_record meta;
    struct firn_layout layout;
    uint64_t f, s; /* ticks now: by our clock, and by the store's (0: it has none) */
    int64_t now_us;
    char identity[STORE_ID_TEXT_BUF];
    uint32_t lo, n;
    struct seen_slot *slot;
    size_t beyond; /* slot records outside the range of meta */
    uint64_t sequences, broken_sequences;
};

static int see_slot(void *user, struct firn_slice key, struct firn_slice value)
{
    struct survey *v = user;
    uint32_t slot;
    if (slot_key_parse(key.p, key.len, &slot) != 0)
        return 0;
    if (slot < v->lo || slot - v->lo >= v->n) {
        v->beyond++;
        return 0;
    }
    struct seen_slot *seen = &v->slot[slot - v->lo];
    seen->present = true;
    seen->readable = slot_parse(value.p, value.len, &seen->r, NULL) == 0;
    return 0;
}

static int see_sequence(void *user, struct firn_slice key, struct firn_slice value)
{
    struct survey *v = user;
    struct seq_record r;
    (void)key;
    v->sequences++;
    v->broken_sequences += seq_parse(value.p, value.len, &r, NULL) != 0;
    return 0;
}

static uint64_t tick_of(const struct survey *v, int64_t unix_ms)
{
    int64_t t = unix_ms - v->layout.epoch_ms;
    return t > 0 ? (uint64_t)t : 0;
}

static int64_t unix_us_of(const struct survey *v, uint64_t tick)
{
    return tick < (uint64_t)1 << LEASE_TS_BITS ? (v->layout.epoch_ms + (int64_t)tick) * 1000
                                               : INT64_MAX;
}

/* -1: looked. A store without meta is no error here. */
static int look(struct firn_store *store, struct survey *v)
{
    struct firn_diag d = { 0 };
    struct firn_record rec = { 0 };
    *v = (struct survey){ .now_us = when_now_us(), .n = SLOTS_MAX };
    int r = setup_read_meta(store, &v->meta, &rec, &d);
    if (r != 0 && r != FIRN_ENOENT)
        return say_trouble("the meta record: %s", d.text[0] ? d.text : firn_error_message(r));
    v->has_meta = r == 0;
    const char *layout = v->has_meta ? v->meta.layout : "firn";
    if (firn_layout_parse(layout, strlen(layout), 0, &v->layout, &d) != 0)
        return say_trouble("the layout in the store: %s", d.text);
    v->f = tick_of(v, v->now_us / 1000);
    v->s = rec.store_ms ? tick_of(v, (int64_t)rec.store_ms) : 0;
    if (v->has_meta) {
        v->lo = (uint32_t)v->meta.slot_lo;
        v->n = (uint32_t)(v->meta.slot_hi - v->meta.slot_lo);
    }
    v->slot = calloc(v->n, sizeof *v->slot);
    if (!v->slot)
        return say_trouble("out of memory");
    r = firn_store_scan(store, firn_slice("slot/", 5), see_slot, v, &d);
    if (r == 0)
        r = firn_store_scan(store, firn_slice("seq/", 4), see_sequence, v, &d);
    if (r == 0)
        r = firn_store_identity(store, v->identity, &d);
    return r ? say_trouble("%s", d.text[0] ? d.text : firn_error_message(r)) : -1;
}

/* Beyond all that a right clock and a fence could have granted. */
static bool poisoned(const struct survey *v, const struct slot_record *r)
{
    const struct meta_record *m = &v->meta;
    uint64_t reach = 2 * (m->window + m->max_drift + 2 * m->skew_max);
    uint64_t now = v->f > v->s ? v->f : v->s;
    return r->until > (m->floor > now ? m->floor : now) + reach;
}

static const char *slot_word(const struct survey *v, const struct seen_slot *s)
{
    if (!s->present)
        return "missing";
    if (!s->readable)
        return "broken";
    if (s->r.state == SLOT_RETIRED)
        return "retired";
    if (poisoned(v, &s->r))
        return "poisoned";
    if (s->r.state == SLOT_FREE)
        return "free";
    return s->r.until > v->f ? "held" : "lapsed"; /* its window is over: dead, or cut off */
}

/* ---- slots ---- */

static void slots_json(const struct survey *v, bool all)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '[');
    for (uint32_t i = 0; i < v->n; i++) {
        const struct seen_slot *s = &v->slot[i];
        const char *word = slot_word(v, s);
        char utc[WHEN_BUF];
        if (!all && strcmp(word, "free") == 0)
            continue;
        json_begin(&j, NULL, '{');
        json_count(&j, "slot", v->lo + i);
        json_text(&j, "state", word);
        if (s->readable) {
            json_text(&j, "owner", s->r.name);
            json_count(&j, "epoch", s->r.epoch);
            json_id(&j, "from", s->r.from);
            json_id(&j, "until", s->r.until);
            json_text(&j, "until_utc", when_utc(unix_us_of(v, s->r.until), utc));
            json_text(&j, "written_utc", when_utc(unix_us_of(v, s->r.at), utc));
        }
        json_end(&j, '}');
    }
    json_end(&j, ']');
    output_json(&j, stdout);
}

static int show_slots(struct firn_store *store, const struct admin *a)
{
    static const char *const header[] = { ">slot",       "state",        "owner", ">epoch",
                                          "window ends", "last written", NULL };
    struct survey v;
    struct table t;
    size_t free_n = 0;
    int r = look(store, &v);
    if (r < 0 && !v.has_meta)
        r = say_failed("the store has no records of firn: make them with `firn admin init`");
    if (r >= 0) {
        free(v.slot);
        return r;
    }
    if (a->json) {
        slots_json(&v, a->all);
        free(v.slot);
        return output_finish(STATUS_OK);
    }
    table_init(&t, 0, header);
    for (uint32_t i = 0; i < v.n; i++) {
        const struct seen_slot *s = &v.slot[i];
        const char *word = slot_word(&v, s);
        bool bad = strcmp(word, "missing") == 0 || strcmp(word, "broken") == 0 ||
                   strcmp(word, "poisoned") == 0;
        char when[WHEN_BUF];
        free_n += strcmp(word, "free") == 0;
        if (!a->all && strcmp(word, "free") == 0)
            continue;
        table_add(&t, "%u", v.lo + i);
        table_add_in(&t,
                     term_style(bad                    ? TERM_BAD
                                : strcmp(word, "held") ? TERM_DIM
                                                       : TERM_GOOD),
                     "%s", word);
        if (!s->readable) {
            for (int k = 0; k < 4; k++)
                table_add(&t, "-");
            continue;
        }
        table_add(&t, "%s", s->r.name[0] ? s->r.name : "-");
        table_add(&t, "%" PRIu64, s->r.epoch);
        table_add(&t, "%s", when_about(unix_us_of(&v, s->r.until), v.now_us, when));
        table_add(&t, "%s", when_about(unix_us_of(&v, s->r.at), v.now_us, when));
    }
    table_print(&t);
    table_done(&t);
    printf("%zu of %u slots are free\n", free_n, v.n);
    free(v.slot);
    return output_finish(STATUS_OK);
}

/* ---- doctor ---- */

struct ward {
    struct table t;
    struct buf j;
    bool json;
    int bad;
};

__attribute__((format(printf, 4, 5))) static void find(struct ward *w, int grade, const char *what,
                                                       const char *fmt, ...)
{
    static const char *const word[] = { "ok", "note", "BAD" };
    static const enum term_style style[] = { TERM_GOOD, TERM_DIM, TERM_BAD };
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    w->bad += grade == 2;
    if (w->json) {
        json_begin(&w->j, NULL, '{');
        json_text(&w->j, "check", what);
        json_text(&w->j, "verdict", word[grade]);
        json_text(&w->j, "finding", text);
        json_end(&w->j, '}');
        return;
    }
    table_add_in(&w->t, term_style(style[grade]), "%s", word[grade]);
    table_add(&w->t, "%s", what);
    table_add(&w->t, "%s", text);
}

static void check_clock(struct ward *w, const struct survey *v)
{
    if (v->s == 0) {
        find(w, 0, "clock", "this store has no clock to compare with");
        return;
    }
    int64_t d = (int64_t)v->f - (int64_t)v->s;
    bool far = d > (int64_t)v->meta.skew_max || -d > (int64_t)v->meta.skew_max;
    find(w, far ? 2 : 0, "clock", "this machine's is %" PRId64 ".%03d s %s the store's%s",
         (d < 0 ? -d : d) / 1000, (int)((d < 0 ? -d : d) % 1000), d < 0 ? "behind" : "ahead of",
         far ? ": set the wrong one; nodes with such a clock do not start" : "");
}

static void check_slots(struct ward *w, const struct survey *v)
{
    static const char *const words[] = { "held",     "free",    "lapsed", "retired",
                                         "poisoned", "missing", "broken" };
    size_t count[sizeof words / sizeof words[0]] = { 0 }, foreign = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const struct seen_slot *s = &v->slot[i];
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            count[k] += strcmp(slot_word(v, s), words[k]) == 0;
        foreign += s->readable && !nonce_eq(&s->r.cluster, &v->meta.cluster);
    }
    find(w, 0, "slots", "%u: %zu held, %zu free, %zu lapsed, %zu retired", v->n, count[0], count[1],
         count[2], count[3]);
    if (count[5])
        find(w, 2, "slots",
             "%zu records are missing: stop all users of the store, then `firn admin init "
             "--recover`",
             count[5]);
    if (count[6])
        find(w, 2, "slots",
             "%zu records cannot be read: stop all users, remove these keys with the store's own "
             "tools, then `firn admin init --recover`",
             count[6]);
    if (foreign)
        find(w, 2, "slots", "%zu records belong to another cluster: two stores were mixed",
             foreign);
    if (count[4])
        find(w, 2, "slots",
             "%zu poisoned: a wrong clock left them in the future; nobody takes them. `firn admin "
             "retire SLOT`, or wait",
             count[4]);
    if (count[1] + count[2] == 0)
        find(w, 2, "slots", "none is free: a node that starts now gets none");
    if (v->beyond)
        find(w, 1, "slots", "%zu records lie outside the range %u to %u", v->beyond, v->lo,
             v->lo + v->n - 1);
}

/* The stores of a quorum. */
static void show_members(struct ward *w, const struct firn_quorum_view *view, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool member = strcmp(view[i].state, "member") == 0;
        find(w, member ? 0 : 2, "quorum", "%s: %s%s%s", view[i].url, view[i].state,
             member ? "" : ": ", member ? "" : view[i].why);
    }
    for (size_t i = 0; i < n; i++)
        if (view[i].server != i)
            find(w, 1, "quorum",
                 "%s is in the same server as %s, or in a copy: both may go at once", view[i].url,
                 view[view[i].server].url);
}

static void check_members(struct ward *w, struct firn_store *store)
{
    struct firn_quorum_view view[QUORUM_STORES_MAX];
    size_t n;
    if (firn_quorum_view(store, view, &n) == 0)
        show_members(w, view, n);
}

static void examine(struct ward *w, const struct survey *v)
{
    const struct meta_record *m = &v->meta;
    char a[WHEN_BUF];
    if (!v->has_meta) {
        bool any = false;
        for (uint32_t i = 0; i < v->n; i++)
            any |= v->slot[i].present;
        find(w, 2, "records", "%s",
             any ? "slots are there, but no meta record: damaged. Stop all users, then `firn admin "
                   "init --recover`"
                 : "none: make them with `firn admin init`, or correct the address");
        return;
    }
    find(w, 0, "records", "layout %s", m->layout);
    find(w, 0, "window",
         "%" PRIu64 " ms, drift at most %" PRIu64 " ms, clocks within %" PRIu64 " ms", m->window,
         m->max_drift, m->skew_max);
    if (strcmp(m->store_inc, v->identity) != 0)
        find(w, 2, "identity",
             "the store is a copy, was restored or failed over (%s, was %s): stop users of the "
             "old one, then `firn admin fence`",
             v->identity, m->store_inc);
    else
        find(w, 0, "identity", "%s, as when it was last fenced", v->identity);
    if (m->floor > v->f)
        find(w, 1, "floor", "a fence or INIT put the slots ahead: IDs carry times until %s",
             when_utc(unix_us_of(v, m->floor), a));
    check_clock(w, v);
    check_slots(w, v);
    int64_t end = firn_layout_end_us(&v->layout);
    bool soon = end != INT64_MAX && end - v->now_us < INT64_C(366) * 86400 * 1000000;
    find(w, soon ? 2 : 0, "layout", "its timestamps end %s%s", when_relative(end, v->now_us, a),
         soon ? ": plan the move to another layout" : "");
    find(w, v->broken_sequences ? 2 : 0, "sequences", "%" PRIu64 "%s", v->sequences,
         v->broken_sequences ? ", some cannot be read: put the store back from a backup" : "");
}

static void ward_open(struct ward *w, bool json)
{
    static const char *const header[] = { "", "check", "finding", NULL };
    *w = (struct ward){ .json = json };
    if (json) {
        buf_init(&w->j, OUTPUT_JSON_MAX);
        json_begin(&w->j, NULL, '[');
    } else {
        table_init(&w->t, 0, header);
    }
}

static int ward_close(struct ward *w)
{
    if (w->json) {
        json_end(&w->j, ']');
        output_json(&w->j, stdout);
    } else {
        table_print(&w->t);
        table_done(&w->t);
    }
    return output_finish(w->bad ? STATUS_FAILED : STATUS_OK);
}

static int doctor(struct firn_store *store, const struct admin *a)
{
    struct survey v;
    struct ward w;
    int r = look(store, &v);
    if (r >= 0) {
        free(v.slot);
        return r;
    }
    ward_open(&w, a->json);
    check_members(&w, store);
    examine(&w, &v);
    free(v.slot);
    return ward_close(&w);
}

/* The behind-"quorum:" of the store's URL; NULL: it is no quorum. */
static const char *quorum_option(const char *url)
{
    if (!url)
        url = getenv("FIRN_STORE");
    return url && strncmp(url, "quorum:", 7) == 0 ? url + 7 : NULL;
}

static const char no_majority[] =
    "no majority is left to admit others. Stores that surely have all they had: `firn admin admit "
    "--as-is`. Else nobody knows what was confirmed: stop all users, admit the newest there is as it "
    "is, then `firn admin fence` and `firn admin skip`; or begin anew with empty stores and `firn "
    "admin init`, not --fresh";

/* The store could not be opened, which was said. Of a quorum each store can still be looked at. */
static int doctor_outside(const struct admin *a, int status)
{
    struct firn_quorum_view view[QUORUM_STORES_MAX];
    const char *urls = quorum_option(a->store);
    struct firn_diag d = { 0 };
    struct ward w;
    size_t n = 0;
    int r = urls ? firn_quorum_examine(urls, 0, view, &n, &d) : 0;
    if (n == 0)
        return status;
    ward_open(&w, a->json);
    show_members(&w, view, n);
    if (r == FIRN_ESTORE)
        find(&w, 2, "quorum", "%s", no_majority);
    return ward_close(&w);
}

/* ---- changes ---- */

static void entropy(void *user, void *out, size_t len)
{
    (void)user;
    firn__entropy(out, len);
}

static struct setup setup_now(struct firn_store *store, int64_t epoch_ms)
{
    int64_t t = when_now_us() / 1000 - epoch_ms;
    return (struct setup){ .store = store, .f = t > 0 ? (uint64_t)t : 0, .random = entropy };
}

/* Worth beginning again: each operation goes on where it was cut. */
static bool passing(int r)
{
    return r == FIRN_EUNKNOWN || r == FIRN_EAGAIN || r == FIRN_EIO;
}

static int said(int r, const struct firn_diag *d)
{
    return say_failed("%s", d->text[0] ? d->text : firn_error_message(r));
}

static int init(struct firn_store *store, const struct admin *a)
{
    struct firn_diag d = { 0 };
    struct firn_layout l;
    char text[FIRN_LAYOUT_TEXT_BUF];
    const char *layout = a->layout ? a->layout : "firn";
    bool shared = store->ops->shared;
    if (a->fresh && a->recover)
        return say_trouble("--fresh and --recover exclude each other");
    if (firn_layout_parse(layout, strlen(layout), when_now_us() / 1000, &l, &d) != 0)
        return say_trouble("--layout: %s", d.text);
    if (l.flags & FIRN_LAYOUT_DECODE_ONLY)
        return say_trouble("--layout: it can only be read, there is nothing to lease in it");
    struct lease_params p = { 0 };
    lease_params_of(&l, shared, &p, text);
    struct setup e = setup_now(store, l.epoch_ms);
    struct firn_record any = { .store_ms = 0 };
    if (firn_store_read(store, firn_slice("slot/00000", 10), false, &any, NULL) == 0 &&
        (int64_t)any.store_ms > l.epoch_ms)
        e.s = any.store_ms - (uint64_t)l.epoch_ms; /* the later of the two clocks counts */
    struct setup_spec spec = {
        .layout = text,
        .slot_lo = (uint32_t)a->slot_lo,
        .slots = a->slots ? (uint32_t)a->slots : p.slots - (uint32_t)a->slot_lo,
        .window = a->window ? a->window
                  : shared  ? 60000
                            : 3000,
        .max_drift = a->drift ? a->drift : 5000,
        .skew_max = a->skew  ? a->skew
                    : shared ? 10000
                             : 0,
        .floor = a->fresh ? e.f : 0,
    };
    if (a->slot_lo >= p.slots || spec.slots > p.slots - a->slot_lo)
        return say_trouble("the layout has the slots 0 to %u", p.slots - 1);
    int r;
    for (int i = 0;
         passing(r = a->recover ? setup_recover(&e, &spec, &d) : setup_init(&e, &spec, &d)) &&
         i < TRIES_MAX;
         i++)
        ;
    if (r)
        return said(r, &d);
    printf("%s: slots %u to %u, window %" PRIu64 " ms\n", a->recover ? "recovered" : "ready",
           spec.slot_lo, spec.slot_lo + spec.slots - 1, spec.window);
    if (!a->fresh)
        say_note("timestamps begin about %" PRIu64 " s ahead, above all that a lost store may have "
                 "granted",
                 (spec.window + spec.max_drift + 2 * spec.skew_max) / 1000);
    return output_finish(STATUS_OK);
}

/* The setup of a store that has its records. */
static int known(struct firn_store *store, struct setup *e, struct meta_record *m)
{
    struct firn_diag d = { 0 };
    struct firn_layout l;
    struct firn_record rec;
    int r = setup_read_meta(store, m, &rec, &d);
    if (r == FIRN_ENOENT)
        return say_failed("the store has no records of firn: make them with `firn admin init`");
    if (r == 0)
        r = firn_layout_parse(m->layout, strlen(m->layout), 0, &l, &d);
    if (r)
        return said(r, &d);
    *e = setup_now(store, l.epoch_ms);
    if ((int64_t)rec.store_ms > l.epoch_ms)
        e->s = rec.store_ms - (uint64_t)l.epoch_ms;
    return -1;
}

static int fence(struct firn_store *store)
{
    struct setup e;
    struct meta_record m;
    struct firn_diag d = { 0 };
    int r = known(store, &e, &m);
    if (r >= 0)
        return r;
    for (int i = 0; passing(r = setup_fence(&e, m.floor, NULL, &d)) && i < TRIES_MAX; i++)
        ;
    if (r)
        return said(r, &d);
    say_warning("sequences are as the store has them: if it went back, numbers will come again; "
                "`firn admin skip N` passes over as many as may have been given since");
    printf("fenced: all %" PRIu64 " slots now begin above all that may have been granted\n",
           m.slot_hi - m.slot_lo);
    return output_finish(STATUS_OK);
}

struct names {        /* of sequences: a scan is over before anything is written */
    const char *only; /* NULL: all */
    char (*name)[RECORD_NAME_MAX + 1];
    size_t n;
};

/* A dated sequence counts in registers of its own, one for each period: its name means these, too. */
static bool is_of(const char *only, const char *name, size_t len)
{
    size_t n = only ? strlen(only) : len;
    return len >= n && (!only || memcmp(name, only, n) == 0) &&
           (len == n || name[n] == RECORD_INNER);
}

static int keep_name(void *user, const char *name, size_t len, const struct seq_record *r)
{
    struct names *s = user;
    (void)r;
    if (len > RECORD_NAME_MAX || !is_of(s->only, name, len))
        return 0;
    void *more = realloc(s->name, (s->n + 1) * sizeof *s->name);
    if (!more)
        return FIRN_ENOMEM;
    s->name = more;
    memcpy(s->name[s->n], name, len);
    s->name[s->n++][len] = '\0';
    return 0;
}

static int skip_one(struct tickets *t, const char *name, uint64_t n, struct firn_diag *d)
{
    struct seq_record now;
    int r;
    for (int i = 0; passing(r = ticket_skip(t, name, strlen(name), n, &now, d)) && i < TRIES_MAX;
         i++)
        ;
    if (r == 0 && seq_left(&now) == 0)
        printf("%s: no numbers are left\n", name);
    else if (r == 0)
        printf("%s: the next number is %" PRIu64 "\n", name, now.next);
    return r;
}

static int skip(struct firn_store *store, const char *text, const char *only)
{
    struct tickets t;
    struct firn_diag d = { 0 };
    struct names s = { .only = only };
    uint64_t n;
    if (!options_number(text, false, &n) || n == 0 || n > SEQ_NUMBER_MAX)
        return say_trouble("'%s' is not how many numbers to pass over: 1 or more", text);
    int r = tickets_init(&t, store, NULL, NULL);
    if (r)
        return said(r, &d);
    r = ticket_list(&t, keep_name, &s, &d);
    for (size_t i = 0; r == 0 && i < s.n; i++)
        r = skip_one(&t, s.name[i], n, &d);
    tickets_done(&t);
    free(s.name);
    if (r)
        return said(r, &d);
    if (s.n == 0 && only)
        return say_failed("there is no sequence '%s'", only);
    if (s.n == 0)
        say_note("there are no sequences");
    return output_finish(STATUS_OK);
}

static int retire(struct firn_store *store, const char *text, bool force)
{
    struct setup e;
    struct meta_record m;
    struct firn_diag d = { 0 };
    uint64_t slot;
    int r = known(store, &e, &m);
    if (r >= 0)
        return r;
    if (!options_number(text, false, &slot) || slot < m.slot_lo || slot >= m.slot_hi)
        return say_trouble("'%s' is no slot: the store has %" PRIu64 " to %" PRIu64, text,
                           m.slot_lo, m.slot_hi - 1);
    for (int i = 0; passing(r = setup_retire(&e, (uint32_t)slot, force, &d)) && i < TRIES_MAX; i++)
        ;
    if (r)
        return said(r, &d);
    printf("slot %" PRIu64 " is retired\n", slot);
    return output_finish(STATUS_OK);
}

static int admit(const char *store_url, const char *url, bool as_is)
{
    struct firn_diag d = { 0 };
    struct firn_store *store;
    int r;
    if (as_is) {
        r = firn_quorum_admit_as_is(url, 0, &d);
    } else {
        r = store_option_open(store_url, &store);
        if (r >= 0 && quorum_option(store_url))
            say_failed("a store is admitted by a majority of the others: `firn admin doctor` says "
                       "what each of them lacks");
        if (r >= 0)
            return r;
        r = firn_quorum_admit(store, url, &d);
        firn_store_close(store);
    }
    if (r)
        return said(r, &d);
    printf("admitted: it votes again\n");
    if (as_is)
        say_note(
            "if it, or any other store of the quorum, may have less than it had: stop all users, "
            "then `firn admin fence`");
    return output_finish(STATUS_OK);
}

int cmd_admin(int argc, char **argv)
{
    struct admin a = { 0 };
    struct firn_store *store;
    int operands, r = options_parse(&admin_usage, argc, argv, &a, &operands);
    if (r >= 0)
        return r;
    const char *what = operands > 0 ? argv[1] : "";
    bool admits = strcmp(what, "admit") == 0;
    static const struct {
        const char *word;
        int least, most; /* operands, with the word */
    } whats[] = { { "init", 1, 1 }, { "slots", 1, 1 },  { "doctor", 1, 1 }, { "fence", 1, 1 },
                  { "skip", 2, 3 }, { "retire", 2, 2 }, { "admit", 2, 2 } };
    bool fits = false;
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++)
        fits |= strcmp(what, whats[i].word) == 0 && operands >= whats[i].least &&
                operands <= whats[i].most;
    if (!fits)
        return say_trouble(
            "say what to do: init, slots, doctor, fence, skip N, retire SLOT or admit URL; see "
            "firn admin --help");
    if (admits)
        return admit(a.store, argv[2], a.as_is);
    r = store_option_open(a.store, &store);
    if (r >= 0)
        return strcmp(what, "doctor") == 0 ? doctor_outside(&a, r) : r;
    if (strcmp(what, "init") == 0)
        r = init(store, &a);
    else if (strcmp(what, "slots") == 0)
        r = show_slots(store, &a);
    else if (strcmp(what, "doctor") == 0)
        r = doctor(store, &a);
    else if (strcmp(what, "fence") == 0)
        r = fence(store);
    else if (strcmp(what, "skip") == 0)
        r = skip(store, argv[2], operands > 2 ? argv[3] : NULL);
    else
        r = retire(store, argv[2], a.force);
    firn_store_close(store);
    return r;
}
