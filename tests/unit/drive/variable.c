#include "drive/variable.h"
#include "t.h"

/* A store that loses answers: the write lands or not, and then somebody else may be quicker. */
struct liar {
    struct firn_store base;
    struct firn_store *real;
    int lie;         /* writes whose answer is lost */
    bool apply;      /* they land all the same */
    int interlopers; /* and others write after them */
};

static int liar_read(struct firn_store *s, struct firn_slice key, bool fresh,
                     struct firn_record *out, struct firn_diag *d)
{
    return firn_store_read(((struct liar *)s)->real, key, fresh, out, d);
}

static int liar_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    struct liar *l = (struct liar *)s;
    if (l->lie == 0)
        return firn_store_cas(l->real, want, d);
    l->lie--;
    if (l->apply)
        T_EQ(firn_store_cas(l->real, want, d), 0);
    for (; l->interlopers > 0; l->interlopers--) {
        struct variable got;
        struct variable_write w = { .name = "x",
                                    .value = "theirs",
                                    .value_len = 6,
                                    .by = "",
                                    .if_revision = VARIABLE_ANY_REVISION };
        T_EQ(variable_set(l->real, &w, &got, d), 0);
    }
    return FIRN_EUNKNOWN;
}

static const struct firn_store_ops liar_ops = {
    .size = sizeof liar_ops, .scheme = "liar", .read = liar_read, .cas = liar_cas
};

static int set(struct firn_store *s, const char *value, uint64_t if_revision, struct variable *out)
{
    struct variable_write w = { .name = "x",
                                .value = value,
                                .value_len = strlen(value),
                                .by = "me",
                                .if_revision = if_revision };
    return variable_set(s, &w, out, NULL);
}

T_TEST(variable_record_round_trip)
{
    struct variable s = { .revision = INT64_MAX, .at = INT64_MAX, .length = VARIABLE_VALUE_MAX },
                    back;
    char text[RECORD_TEXT_MAX], again[RECORD_TEXT_MAX];
    memset(s.by, 'b', RECORD_NAME_MAX);
    memset(s.value, '\n', VARIABLE_VALUE_MAX);
    size_t len = variable_encode(&s, text);
    T_OK(len <= RECORD_TEXT_MAX);
    T_EQ(variable_parse(text, len, &back, NULL), 0);
    T_EQ(variable_encode(&back, again), len);
    T_OK(memcmp(text, again, len) == 0);
    for (size_t cut = 0; cut < len; cut++)
        T_EQ(variable_parse(text, cut, &back, NULL), FIRN_EFORMAT, "cut at %zu", cut);
    text[len - 1] = '\0';
    T_EQ(variable_parse(text, len, &back, NULL), FIRN_EFORMAT, "a NUL");
}

T_TEST(set_get_and_revisions)
{
    struct firn_store *s;
    struct variable got;
    T_EQ(firn_store_memory_new(&s), 0);
    T_EQ(variable_get(s, "x", &got, NULL), FIRN_ENOENT);
    T_EQ(set(s, "one", 5, &got), FIRN_ECONFLICT);
    T_EQ(got.revision, 0);
    T_EQ(set(s, "one", 0, &got), 0);
    T_EQ(got.revision, 1);
    T_EQ(set(s, "two", 0, &got), FIRN_ECONFLICT);
    T_EQ(got.revision, 1);
    T_EQ(set(s, "two", 1, &got), 0);
    T_EQ(set(s, "", VARIABLE_ANY_REVISION, &got), 0);
    T_EQ(variable_get(s, "x", &got, NULL), 0);
    T_EQ(got.revision, 3);
    T_EQ(got.length, 0);
    T_STR(got.by, "me");
    T_EQ(variable_get(s, "no/name", &got, NULL), FIRN_EINVAL);
    struct variable later;
    T_EQ(variable_wait(s, "x", &got, 0, &later, NULL), FIRN_EAGAIN);
    T_EQ(set(s, "new", 3, &later), 0);
    T_EQ(variable_wait(s, "x", &got, 0, &later, NULL), 0);
    T_STR(later.value, "new");
    firn_store_close(s);
}

T_TEST(a_lost_answer)
{
    static const struct {
        bool apply;
        int interlopers, result;
        uint64_t revision; /* afterwards */
        const char *value;
    } rows[] = {
        { true, 0, 0, 2, "mine" },               /* it landed: known by its nonce */
        { false, 0, 0, 2, "mine" },              /* it did not: sent again */
        { false, 1, 0, 3, "mine" },              /* another came first, so ours never can land */
        { true, 1, FIRN_EUNKNOWN, 3, "theirs" }, /* landed and replaced: no process can tell */
        { false, 2, FIRN_EUNKNOWN, 3, "theirs" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct liar l = { .base = { &liar_ops } };
        struct variable got;
        T_EQ(firn_store_memory_new(&l.real), 0);
        T_EQ(set(l.real, "first", 0, &got), 0);
        l.lie = 1;
        l.apply = rows[i].apply;
        l.interlopers = rows[i].interlopers;
        T_EQ(set(&l.base, "mine", VARIABLE_ANY_REVISION, &got), rows[i].result, "row %zu", i);
        T_EQ(variable_get(l.real, "x", &got, NULL), 0);
        T_EQ(got.revision, rows[i].revision, "row %zu", i);
        T_STR(got.value, rows[i].value);
        firn_store_close(l.real);
    }
}

T_TEST(values_that_are_refused)
{
    struct firn_store *s;
    struct variable got;
    char big[VARIABLE_VALUE_MAX + 2];
    memset(big, 'x', sizeof big);
    big[VARIABLE_VALUE_MAX + 1] = '\0';
    T_EQ(firn_store_memory_new(&s), 0);
    T_EQ(set(s, big, VARIABLE_ANY_REVISION, &got), FIRN_EINVAL);
    big[VARIABLE_VALUE_MAX] = '\0';
    T_EQ(set(s, big, VARIABLE_ANY_REVISION, &got), 0);
    struct variable_write w = { .name = "x", .value = "a\0b", .value_len = 3, .by = "" };
    T_EQ(variable_set(s, &w, &got, NULL), FIRN_EINVAL);
    firn_store_close(s);
}
