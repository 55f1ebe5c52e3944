/* INIT, recovery and FENCE without a store: what a survey of the slots leads to. */
#include "t.h"

#include "coord/survey.h"

enum { SLOTS = 3 };

static struct slot_text text[SLOTS];

static struct nonce fresh(void)
{
    struct nonce v;
    t_random_bytes(v.b, sizeof v.b);
    return v;
}

static struct slot_survey empty(void)
{
    memset(text, 0, sizeof text);
    return (
        struct slot_survey){ .lo = 10, .n = SLOTS, .slot = text, .cluster = fresh(), .floor = 500 };
}

static void add(struct slot_survey *s, uint32_t slot, const struct slot_record *r)
{
    char key[RECORD_KEY_BUF], value[RECORD_TEXT_MAX];
    size_t len = slot_encode(r, value);
    survey_add(s, firn_slice(key, slot_key(slot, key)), firn_slice(value, len));
}

static struct slot_record free_slot(const struct slot_survey *s, uint64_t until)
{
    return (
        struct slot_record){ .cluster = s->cluster, .epoch = 1, .until = until, .req = fresh() };
}

T_TEST(survey_adds_its_own_slots)
{
    struct slot_survey s = empty();
    struct slot_record r = free_slot(&s, 100), back;
    add(&s, 9, &r);
    add(&s, 13, &r);
    survey_add(&s, firn_slice("meta", 4), firn_slice("x", 1));
    for (uint32_t i = 0; i < SLOTS; i++)
        T_EQ(text[i].len, 0);
    add(&s, 11, &r);
    T_EQ(survey_slot(&s, 1, &back, NULL), 0);
    T_EQ(back.until, 100);
    T_EQ(survey_slot(&s, 0, &back, NULL), FIRN_EFORMAT);
    static char longer[RECORD_TEXT_MAX + 1];
    T_EQ(survey_set(&s, 0, longer, sizeof longer, NULL), FIRN_EFORMAT);
    T_EQ(survey_set(&s, 1, NULL, 0, NULL), 0);
    T_EQ(text[1].len, 0);
}

T_TEST(survey_finds_the_cluster)
{
    struct slot_survey s = empty();
    struct nonce before = s.cluster;
    struct slot_record r = free_slot(&s, 100);
    bool found, used;
    T_EQ(survey_cluster(&s, &found, &used, NULL), 0);
    T_OK(!found && !used && nonce_eq(&s.cluster, &before));
    r.cluster = fresh();
    r.epoch = 0;
    add(&s, 10, &r);
    T_EQ(survey_cluster(&s, &found, &used, NULL), 0);
    T_OK(found && !used && nonce_eq(&s.cluster, &r.cluster));
    r.epoch = 3;
    add(&s, 11, &r);
    T_EQ(survey_cluster(&s, &found, &used, NULL), 0);
    T_OK(found && used);
    r.cluster = fresh();
    add(&s, 12, &r);
    T_EQ(survey_cluster(&s, &found, &used, NULL), FIRN_ESTORE);
    survey_add(&s, firn_slice("slot/00010", 10), firn_slice("rubbish", 7));
    T_EQ(survey_cluster(&s, &found, &used, NULL), FIRN_EFORMAT);
}

T_TEST(survey_has_a_word_for_each_slot)
{
    struct meta_record m = { .floor = 0, .window = 10, .max_drift = 5, .skew_max = 5 };
    const struct {
        enum slot_hold state;
        uint64_t until;
        const char *word;
    } rows[] = {
        { SLOT_FREE, 90, "free" },        { SLOT_HELD, 101, "held" },
        { SLOT_HELD, 100, "lapsed" },     { SLOT_HELD, 150, "held" }, /* 2 * (10 + 5 + 10) ahead */
        { SLOT_HELD, 151, "poisoned" },   { SLOT_FREE, 151, "poisoned" },
        { SLOT_RETIRED, 999, "retired" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct slot_record r = { .state = rows[i].state, .until = rows[i].until };
        T_STR(survey_word(&m, &r, 100, 100), rows[i].word, "row %zu", i);
    }
    m.floor = 200; /* a fence moved all slots ahead */
    T_STR(survey_word(&m, &(struct slot_record){ .state = SLOT_FREE, .until = 250 }, 100, 100),
          "free");
}

T_TEST(survey_knows_a_fence)
{
    struct slot_survey s = empty();
    struct meta_record m = { .floor = 200 };
    for (uint32_t i = 0; i < SLOTS; i++) {
        T_EQ(survey_whole(&s, NULL), FIRN_ENOENT);
        T_OK(!survey_fenced(&s, &m, 100, 150));
        struct slot_record r = free_slot(&s, 200 + i);
        add(&s, 10 + i, &r);
    }
    T_EQ(survey_whole(&s, NULL), 0);
    T_OK(survey_fenced(&s, &m, 100, 150));
    T_OK(!survey_fenced(&s, &m, 200, 150));      /* the floor is the one known */
    T_OK(!survey_fenced(&s, &m, 100, 201));      /* it does not cover the caller's window */
    struct slot_record low = free_slot(&s, 199); /* a store that went back while it was fenced */
    add(&s, 12, &low);
    T_OK(!survey_fenced(&s, &m, 100, 150));
    survey_add(&s, firn_slice("slot/00012", 10), firn_slice("rubbish", 7));
    T_OK(!survey_fenced(&s, &m, 100, 150));
    T_EQ(survey_whole(&s, NULL), FIRN_EFORMAT);
}

/* One round over all slots; the writes in b. */
static void build(struct survey_batch *b)
{
    b->count = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct nonce req = fresh();
        if (survey_batch_wants(b, i))
            T_EQ(survey_batch_add(b, i, 7, &req, NULL), 0);
    }
}

T_TEST(survey_creates_what_is_absent)
{
    struct slot_survey s = empty();
    struct slot_record r = free_slot(&s, 900), made;
    struct survey_batch b;
    add(&s, 11, &r);
    survey_batch_init(&b, &s, 0, SLOTS, SURVEY_CREATE_ABSENT);
    build(&b);
    T_EQ(b.count, 2);
    T_OK(b.cas[0].old.p == NULL);
    T_EQ(slot_parse(b.cas[0].value.p, b.cas[0].value.len, &made, NULL), 0);
    T_EQ(made.until, 500);
    T_EQ(made.epoch, 0);
    T_EQ(made.at, 7);
    T_OK(!survey_batch_written(&b, 0, 0));
    /* Another process created slot 12 meanwhile: that is as good. */
    T_OK(survey_batch_written(&b, 1, FIRN_ECONFLICT));
    add(&s, 12, &r);
    survey_batch_reread(&b, 1);
    build(&b);
    T_EQ(b.count, 0);
}

T_TEST(survey_raises_until_all_are_raised)
{
    struct slot_survey s = empty();
    struct survey_batch b;
    struct slot_record r[SLOTS], made;
    for (uint32_t i = 0; i < SLOTS; i++)
        r[i] = free_slot(&s, 100);
    r[1].until = 900; /* above the floor: it stays */
    r[1].state = SLOT_RETIRED;
    r[2].state = SLOT_HELD;
    r[2].owner = fresh();
    for (uint32_t i = 0; i < SLOTS; i++)
        add(&s, 10 + i, &r[i]);
    survey_batch_init(&b, &s, 0, SLOTS, SURVEY_RAISE_ALL);
    build(&b);
    T_EQ(b.count, 3);
    static const uint64_t until[] = { 500, 900, 500 };
    static const enum slot_hold state[] = { SLOT_FREE, SLOT_RETIRED, SLOT_FREE };
    for (size_t k = 0; k < 3; k++) {
        T_EQ(slot_parse(b.cas[k].value.p, b.cas[k].value.len, &made, NULL), 0);
        T_EQ(made.until, until[k], "slot %zu", k);
        T_EQ(made.state, state[k]);
        T_EQ(made.epoch, 2);
        T_EQ(b.cas[k].old.len, text[k].len);
    }
    T_OK(!survey_batch_written(&b, 0, 0));
    T_OK(!survey_batch_written(&b, 1, 0));
    T_OK(survey_batch_written(&b, 2, FIRN_ECONFLICT)); /* its holder extended */
    r[2].until = 150;
    add(&s, 12, &r[2]);
    survey_batch_reread(&b, 2);
    build(&b);
    T_EQ(b.count, 1);
    T_EQ(b.slot[0], 2);
    survey_add(&s, firn_slice("slot/00012", 10), firn_slice("rubbish", 7));
    b.count = 0;
    T_EQ(survey_batch_add(&b, 2, 7, &r[0].req, NULL), FIRN_EFORMAT);
}

T_TEST(survey_meta_of_a_spec)
{
    struct slot_survey s = empty();
    struct setup_spec spec = {
        .layout = "1/41/10/12", .slot_lo = 10, .slots = SLOTS, .window = 60, .max_drift = 5
    };
    struct meta_record m, back;
    struct nonce req = fresh();
    char out[RECORD_TEXT_MAX];
    T_EQ(setup_spec_check(&spec, NULL), 0);
    survey_meta(&s, &spec, &req, &m);
    memcpy(m.store_inc, "inc", 4);
    T_EQ(meta_parse(out, meta_encode(&m, out), &back, NULL), 0);
    T_EQ(back.slot_hi, 13);
    T_EQ(back.floor, 500);
    spec.slots = SLOTS_MAX + 1;
    T_EQ(setup_spec_check(&spec, NULL), FIRN_EINVAL);
    spec.slots = 0;
    T_EQ(setup_spec_check(&spec, NULL), FIRN_EINVAL);
    spec.slots = 1;
    spec.window = 0;
    T_EQ(setup_spec_check(&spec, NULL), FIRN_EINVAL);
}
