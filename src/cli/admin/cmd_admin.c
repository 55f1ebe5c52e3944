/* firn admin: options, and the changes that an operator makes to a store; admin_show.c has the
 * views. */
#include "cli/admin/admin_show.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/store_option.h"
#include "cli/when.h"

#include "drive/hold.h"
#include "drive/lease.h"
#include "drive/ticket.h"
#include "drive/setup.h"
#include "id/rng_take.h"
#include "store/quorum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TRIES_MAX = 20, /* an operation is repeated when an answer is lost */
};
#define TIME_MAX_MS UINT64_C(86400000)

struct admin {
    const char *store, *layout;
    uint64_t slots, slot_lo, window, drift, skew, skip;
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
      "init: number of slots (default: as many as the layout has, at most 1024)" },
    { "slot-lo", 0, OPT_NUMBER, offsetof(struct admin, slot_lo), "N", NULL, 0, 65535,
      "init: the first slot; regions with stores of their own need ranges of their own" },
    TIME("window", window, "init: how long a node works without the store (60s; sqlite: 3s)"),
    TIME("max-drift", drift, "init: how far IDs may run ahead of the clock (5s)"),
    TIME("skew-max", skew, "init: how far clocks may differ (10s; sqlite: 0)"),
    FLAG("fresh", fresh, "init: this ID space was never used: timestamps begin now"),
    FLAG("recover", recover, "init: repair a damaged store; all its users must be stopped"),
    FLAG("force", force, "retire: also a slot that is held"),
    { "skip", 0, OPT_NUMBER, offsetof(struct admin, skip), "N", NULL, 0, SEQ_NUMBER_MAX,
      "fence: also pass over the next N numbers of every sequence; 0: none was lost" },
    FLAG("all", all, "slots: free ones, too"),
    FLAG("as-is", as_is, "admit: the store lost nothing, it was only restarted or moved"),
    OPT_JSON(struct admin, json),
    { .name = NULL },
};

const struct usage admin_usage = {
    .name = "admin",
    .examples =
        "  firn admin init --store etcd://10.0.0.1:2379,10.0.0.2:2379/firn\n"
        "  firn admin init --store 'quorum:sqlite:/a/f.db|sqlite:/b/f.db|sqlite:/c/f.db'\n"
        "  firn admin doctor --store raft://10.0.0.1:9003,10.0.0.2:9003/\n"
        "  firn admin slots                    the slots and their owners (FIRN_STORE is set)\n"
        "  firn admin doctor                   problems, and what to do about them\n"
        "  firn admin fence --skip 5000        after any restore of the store\n"
        "  firn admin backup /backup/firn-1.db --store sqlite:/var/lib/firn/firn.db\n",
    .synopsis = "firn admin init [--fresh | --recover] [OPTIONS]\n"
                "       firn admin slots [--all]\n"
                "       firn admin doctor\n"
                "       firn admin fence [--skip N]\n"
                "       firn admin backup FILE\n"
                "       firn admin skip N [SEQUENCE]\n"
                "       firn admin retire SLOT [--force]\n"
                "       firn admin admit URL [--as-is]",
    .about =
        "init makes the records of an empty store, once. A store that was here before and was lost\n"
        "may have granted timestamps ahead of the clock, so IDs begin above those: the first comes\n"
        "after twice skew-max (20s; sqlite: at once) and is stamped window and max-drift ahead (65s;\n"
        "sqlite: 8s). --fresh says that no ID was made in this space before: they begin now.\n"
        "fence raises every slot above all that may have been granted: needed after the store\n"
        "was restored from a backup, copied, or failed over with loss. Stop the old one first.\n"
        "--skip N passes over N numbers of every sequence, too: as many as may have been issued\n"
        "since. A store that knows that it lost numbers (a restored backup, a file without its\n"
        "-wal) refuses to give any until it is fenced with --skip.\n"
        "backup copies a sqlite: store into a new file while it is in use. Put in the place of\n"
        "the store, the copy fences itself and gives no tickets until it is fenced with --skip.\n"
        "skip passes over the next N numbers of a sequence, or of all: after a restore, so that\n"
        "numbers issued since the backup are not issued again.\n"
        "retire takes a slot out of use permanently, such as one that a wrong clock set in the\n"
        "future.\n"
        "admit lets a store of a quorum vote again after it was wiped, restored or replaced: a\n"
        "majority of the other stores gives it all registers first. Stop the processes that\n"
        "still use its old data.\n"
        "The exit status of doctor is 1 when a check fails.\n",
    .operands = "init slots doctor fence backup skip retire admit",
    .opts = opts,
};

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

/* Errors after which the operation is repeated: it continues where it was interrupted. */
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
        return say_trouble(
            "--layout: IDs of this layout can only be read: choose one that firn can generate");
    struct lease_params p = { 0 };
    lease_params_of(&l, &p, text);
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
        return say_trouble("--slots, --slot-lo: the layout has the slots 0 to %u", p.slots - 1);
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
    char when[WHEN_BUF], wait[WHEN_BUF];
    uint64_t ahead_ms = spec.window + spec.max_drift + 2 * spec.skew_max;
    if (a->fresh)
        printf("IDs begin now\n");
    else
        printf(
            "IDs come %s%s, stamped from %s on: a store that was lost may have granted timestamps\n"
            "up to there. If no ID was ever made in this space, `firn admin init --fresh` on an empty\n"
            "store makes them begin now.\n",
            spec.skew_max ? "in " : "at once",
            spec.skew_max ? when_span(2 * spec.skew_max * 1000, wait) : "",
            when_utc(when_now_us() + (int64_t)ahead_ms * 1000, when));
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

struct names {        /* of sequences: the scan ends before anything is written */
    const char *only; /* NULL: all */
    char (*name)[RECORD_NAME_MAX + 1];
    size_t n;
};

/* A dated sequence counts in registers of its own, one per period: its name includes them. */
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

static int skip_all(struct firn_store *store, uint64_t n, const char *only, size_t *out_found,
                    struct firn_diag *d)
{
    struct tickets t;
    struct names s = { .only = only };
    int r = tickets_init(&t, store, NULL, NULL);
    if (r)
        return r;
    r = ticket_list(&t, keep_name, &s, d);
    for (size_t i = 0; r == 0 && i < s.n; i++)
        r = skip_one(&t, s.name[i], n, d);
    tickets_done(&t);
    free(s.name);
    *out_found = s.n;
    return r;
}

static int skip(struct firn_store *store, const char *text, const char *only)
{
    struct firn_diag d = { 0 };
    size_t found = 0;
    uint64_t n;
    if (!options_number(text, false, &n) || n == 0 || n > SEQ_NUMBER_MAX)
        return say_trouble("'%s' is not a count of numbers to skip: give 1 or more", text);
    int r = skip_all(store, n, only, &found, &d);
    if (r)
        return said(r, &d);
    if (found == 0 && only)
        return say_failed("there is no sequence '%s'", only);
    if (found == 0)
        say_note("there are no sequences");
    return output_finish(STATUS_OK);
}

/* The slots, then the sequences; what made the store refuse is lifted last, so that an interrupted
 * fence is begun again. */
static int fence_all(struct firn_store *store, const struct setup *e, const struct meta_record *m,
                     uint64_t numbers, struct firn_diag *d)
{
    bool skips = numbers != OPT_NOT_GIVEN;
    size_t found = 0;
    int r = skips ? firn_store_accept(store, false, d) : 0;
    for (int i = 0; r == 0 && passing(r = setup_fence(e, m->floor, NULL, d)) && i < TRIES_MAX; i++)
        r = 0;
    if (r == 0 && skips && numbers > 0)
        r = skip_all(store, numbers, NULL, &found, d);
    for (int i = 0; r == 0 && skips && passing(r = hold_lift(store, d)) && i < TRIES_MAX; i++)
        r = 0;
    return r == 0 && skips ? firn_store_accept(store, true, d) : r;
}

static int fence(struct firn_store *store, uint64_t numbers)
{
    struct setup e;
    struct meta_record m;
    struct firn_diag d = { 0 };
    bool held = false, lost = firn_store_check(store, &d) == FIRN_ESTORE;
    struct firn_record rec;
    if (lost && setup_read_meta(store, &m, &rec, NULL) == FIRN_ENOENT)
        return say_failed("%s; create its sequences above the numbers used", d.text);
    int r = known(store, &e, &m);
    if (r >= 0)
        return r;
    r = hold_read(store, &held, &d);
    if (r)
        return said(r, &d);
    if ((held || lost) && numbers == OPT_NOT_GIVEN)
        return say_failed("the store %s, so its sequences went back, too: add --skip N, as many "
                          "numbers as may have been issued since (0: none)",
                          held ? "is a restored backup" : "lost commits");
    r = fence_all(store, &e, &m, numbers, &d);
    if (r)
        return said(r, &d);
    if (numbers == OPT_NOT_GIVEN)
        say_warning("sequences are unchanged: if the store lost writes, numbers will repeat; `firn "
                    "admin fence --skip N` skips as many as may have been issued since");
    printf("fenced: all %" PRIu64 " slots now begin above all that may have been granted\n",
           m.slot_hi - m.slot_lo);
    if (lost)
        say_note("restart the servers that halted on this store");
    return output_finish(STATUS_OK);
}

/* ---- backup ---- */

static int backup(struct firn_store *store, const char *path)
{
    static const struct {
        const char *scheme, *tool;
    } tools[] = {
        { "etcd", "etcdctl snapshot save" },
        { "postgres", "pg_basebackup or pg_dump" },
        { "redis", "a copy of its RDB or AOF file after BGSAVE" },
        { "zookeeper", "a copy of its snapshot and log directories" },
        { "raft", "a copy of a stopped member's directory (docs/cluster.md)" },
        { "quorum", "a backup of each of its stores" },
    };
    char url[4096], mark[4096];
    struct firn_diag d = { 0 };
    struct firn_store *copy = NULL;
    int n = snprintf(url, sizeof url, "sqlite:%s", path);
    for (size_t i = 0; !store->ops->backup && i < sizeof tools / sizeof tools[0]; i++)
        if (strcmp(store->ops->scheme, tools[i].scheme) == 0)
            return say_failed("firn copies sqlite: stores alone: use %s; after a restore, `firn "
                              "admin fence --skip N`",
                              tools[i].tool);
    if (!store->ops->backup || n < 0 || (size_t)n >= sizeof url - sizeof ".mark")
        return say_failed("this store cannot be copied");
    snprintf(mark, sizeof mark, "%s.mark", path);
    int r = firn_store_check(store, &d);
    if (r == 0)
        r = store->ops->backup(store, path, &d);
    if (r)
        return said(r, &d);
    r = firn_store_open_existing(url, 0, &copy, &d);
    struct setup e = { .store = copy, .random = entropy };
    if (r == 0)
        r = hold_backup(&e, &d);
    firn_store_close(copy);
    unlink(mark); /* of the store that the copy was for a moment */
    if (r) {
        unlink(path);
        return said(r, &d);
    }
    printf("%s: restored, it fences itself; tickets then need `firn admin fence --skip N`\n", path);
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
        r = store_option_open(store_url, 0, &store); /* a wiped one may have to be made anew */
        if (r >= 0 && admin_quorum_urls(store_url))
            say_failed(
                "admitting a store needs a majority of the other stores: `firn admin doctor` shows "
                "what is wrong with each");
        if (r >= 0)
            return r;
        r = firn_quorum_admit(store, url, &d);
        firn_store_close(store);
    }
    if (r)
        return said(r, &d);
    printf("admitted: it votes again\n");
    if (as_is)
        say_note("if this store, or any other of the quorum, may have lost data: stop all users, "
                 "then run `firn admin fence`");
    return output_finish(STATUS_OK);
}

int cmd_admin(int argc, char **argv)
{
    struct admin a = { .skip = OPT_NOT_GIVEN };
    struct firn_store *store;
    int operands, r = options_parse(&admin_usage, argc, argv, &a, &operands);
    if (r >= 0)
        return r;
    const char *what = operands > 0 ? argv[1] : "";
    bool admits = strcmp(what, "admit") == 0;
    static const struct {
        const char *word;
        int least, most; /* operands, with the subcommand */
    } whats[] = { { "init", 1, 1 },   { "slots", 1, 1 }, { "doctor", 1, 1 }, { "fence", 1, 1 },
                  { "backup", 2, 2 }, { "skip", 2, 3 },  { "retire", 2, 2 }, { "admit", 2, 2 } };
    bool fits = false;
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++)
        fits |= strcmp(what, whats[i].word) == 0 && operands >= whats[i].least &&
                operands <= whats[i].most;
    if (!fits)
        return say_trouble(
            "missing or wrong subcommand: init, slots, doctor, fence, backup FILE, skip N, retire SLOT or "
            "admit URL; see firn admin --help");
    if (admits)
        return admit(a.store, argv[2], a.as_is);
    r = strcmp(what, "init") == 0 ? store_option_open(a.store, 0, &store)
                                  : store_option_open_existing(a.store, 0, &store);
    if (r >= 0)
        return strcmp(what, "doctor") == 0 ? admin_doctor_outside(a.store, a.json, r) : r;
    if (strcmp(what, "init") == 0)
        r = init(store, &a);
    else if (strcmp(what, "slots") == 0)
        r = admin_slots(store, a.all, a.json);
    else if (strcmp(what, "doctor") == 0)
        r = admin_doctor(store, a.json);
    else if (strcmp(what, "fence") == 0)
        r = fence(store, a.skip);
    else if (strcmp(what, "backup") == 0)
        r = backup(store, argv[2]);
    else if (strcmp(what, "skip") == 0)
        r = skip(store, argv[2], operands > 2 ? argv[3] : NULL);
    else
        r = retire(store, argv[2], a.force);
    firn_store_close(store);
    return r;
}
