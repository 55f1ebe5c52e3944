/*
 * firn admin slots and firn admin doctor: the records of a store, read in one pass (struct survey),
 * shown as a table or examined check by check.
 */
#include "cli/admin/admin_show.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/when.h"

#include "drive/hold.h"
#include "drive/lease.h"
#include "drive/setup.h"
#include "store/machine.h"
#include "store/quorum.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is in the store ---- */

struct seen_slot {
    bool present, readable;
    struct slot_record r;
};

struct survey {
    bool has_meta;
    struct meta_record meta;
    struct firn_layout layout;
    uint64_t f, s; /* the current tick: by our clock, and by the store's (0: the store has none) */
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

/* Read the store into v. -1: done. A store without a meta record is no error here. */
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

static const char *slot_word(const struct survey *v, const struct seen_slot *s)
{
    return !s->present    ? "missing"
           : !s->readable ? "broken"
                          : survey_word(&v->meta, &s->r, v->f, v->f > v->s ? v->f : v->s);
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

int admin_slots(struct firn_store *store, bool all, bool json)
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
    if (json) {
        slots_json(&v, all);
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
        if (!all && strcmp(word, "free") == 0)
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
    find(w, far ? 2 : 0, "clock", "this machine's clock is %" PRId64 ".%03d s %s the store's%s",
         (d < 0 ? -d : d) / 1000, (int)((d < 0 ? -d : d) % 1000), d < 0 ? "behind" : "ahead of",
         far ? ": correct the wrong one; nodes with such a clock do not start" : "");
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
             "%zu poisoned: a wrong clock set them in the future; no node takes them. Use `firn "
             "admin retire SLOT`, or wait",
             count[4]);
    if (count[1] + count[2] == 0)
        find(w, 2, "slots", "no slot is free: a node that starts now gets none");
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
                 "%s is in the same server as %s, or in a copy of it: both may fail at once",
                 view[i].url, view[view[i].server].url);
}

static void check_members(struct ward *w, struct firn_store *store)
{
    struct firn_quorum_view view[QUORUM_STORES_MAX];
    size_t n;
    if (firn_quorum_view(store, view, &n) == 0)
        show_members(w, view, n);
}

/* `lost`: the store itself said what happened to its records. */
static void examine(struct ward *w, const struct survey *v, bool lost)
{
    const struct meta_record *m = &v->meta;
    char a[WHEN_BUF];
    if (!v->has_meta) {
        bool any = false;
        for (uint32_t i = 0; i < v->n; i++)
            any |= v->slot[i].present;
        if (any || !lost)
            find(
                w, 2, "records", "%s",
                any ? "there are slots but no meta record: the store is damaged. Stop all users, then "
                      "`firn admin init --recover`"
                    : "there are none: make them with `firn admin init`, or correct the address");
        return;
    }
    find(w, 0, "records", "layout %s", m->layout);
    find(w, 0, "window",
         "%" PRIu64 " ms, drift at most %" PRIu64 " ms, clocks within %" PRIu64 " ms", m->window,
         m->max_drift, m->skew_max);
    if (!file_identity_same(m->store_inc, v->identity))
        find(w, 2, "identity",
             "the store is a copy, was restored or failed over (%s, was %s): stop users of the "
             "old one, then `firn admin fence`",
             v->identity, m->store_inc);
    else
        find(w, 0, "identity", "%s, as when it was last fenced", v->identity);
    if (m->floor > v->f)
        find(w, 1, "floor", "a fence or init moved the slots ahead: IDs carry times up to %s",
             when_utc(unix_us_of(v, m->floor), a));
    check_clock(w, v);
    check_slots(w, v);
    int64_t end = firn_layout_end_us(&v->layout);
    bool soon = end != INT64_MAX && end - v->now_us < INT64_C(366) * 86400 * 1000000;
    find(w, soon ? 2 : 0, "layout", "its timestamps end %s%s", when_relative(end, v->now_us, a),
         soon ? ": plan the move to another layout" : "");
    find(w, v->broken_sequences ? 2 : 0, "sequences", "%" PRIu64 "%s", v->sequences,
         v->broken_sequences ? ", some cannot be read: restore the store from a backup" : "");
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

/* What makes a store refuse by itself. True: it lost something, or is not the one that it was. */
static bool check_whole(struct ward *w, struct firn_store *store)
{
    struct firn_diag d = { 0 };
    bool held = false, lost = firn_store_check(store, &d) == FIRN_ESTORE;
    if (lost)
        find(w, 2, "store", "%s", d.text);
    if (hold_read(store, &held, &d) == 0 && held)
        find(w, 2, "sequences", "%s", HOLD_TEXT);
    return lost;
}

int admin_doctor(struct firn_store *store, bool json)
{
    struct survey v;
    struct ward w;
    int r = look(store, &v);
    if (r >= 0) {
        free(v.slot);
        return r;
    }
    ward_open(&w, json);
    check_members(&w, store);
    examine(&w, &v, check_whole(&w, store));
    free(v.slot);
    return ward_close(&w);
}

const char *admin_quorum_urls(const char *url)
{
    if (!url)
        url = getenv("FIRN_STORE");
    return url && strncmp(url, "quorum:", 7) == 0 ? url + 7 : NULL;
}

static const char no_majority[] =
    "no majority is left to admit other stores. Admit stores that certainly lost "
    "nothing with `firn admin admit --as-is`. Otherwise it is unknown what was "
    "confirmed: stop all users, admit the newest store as it is, then run `firn admin "
    "fence` and `firn admin skip`; or start again with empty stores and `firn admin "
    "init`, without --fresh";

int admin_doctor_outside(const char *url, bool json, int status)
{
    struct firn_quorum_view view[QUORUM_STORES_MAX];
    const char *urls = admin_quorum_urls(url);
    struct firn_diag d = { 0 };
    struct ward w;
    size_t n = 0;
    int r = urls ? firn_quorum_examine(urls, 0, view, &n, &d) : 0;
    if (n == 0)
        return status;
    ward_open(&w, json);
    show_members(&w, view, n);
    if (r == FIRN_ESTORE)
        find(&w, 2, "quorum", "%s", no_majority);
    return ward_close(&w);
}
