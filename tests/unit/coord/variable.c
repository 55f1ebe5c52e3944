/* The decisions of a configuration change, without a store: answers are made up. */
#include "t.h"

#include "coord/variable.h"

static const struct variable_write write_x = { .name = "x",
                                               .value = "new",
                                               .value_len = 3,
                                               .by = "me",
                                               .if_revision = VARIABLE_ANY_REVISION,
                                               .unix_ms = 7 };

static struct nonce fresh(void)
{
    struct nonce v;
    t_random_bytes(v.b, sizeof v.b);
    return v;
}

/* A read that finds `revision` with the nonce `req`; 0: absent. */
static bool reads(struct variable_change *c, uint64_t revision, const struct nonce *req,
                  struct variable *out, int *result)
{
    struct variable v = { .revision = revision, .req = *req };
    struct nonce next = fresh();
    char text[RECORD_TEXT_MAX];
    size_t len = revision ? variable_encode(&v, text) : 0;
    return variable_change_read(c, revision ? 0 : FIRN_ENOENT, text, len, &next, out, result, NULL);
}

static void begin(struct variable_change *c)
{
    T_EQ(variable_change_init(c, &write_x, NULL), 0);
}

T_TEST(variable_change_of_an_absent_one)
{
    struct variable_change c;
    struct variable out;
    struct nonce none = { { 0 } };
    int result;
    begin(&c);
    T_OK(reads(&c, 0, &none, &out, &result));
    T_EQ(c.next.revision, 1);
    T_OK(!variable_change_written(&c, 0, &out, &result));
    T_EQ(result, 0);
    T_EQ(out.revision, 1);
    T_STR(out.value, "new");
    T_STR(out.by, "me");
    T_EQ(out.at, 7);
}

T_TEST(variable_change_whose_answer_is_lost)
{
    struct variable_change c;
    struct variable out;
    struct nonce old = fresh(), other = fresh();
    int result;
    /* It landed: the nonce tells. */
    begin(&c);
    T_OK(reads(&c, 4, &old, &out, &result));
    T_OK(variable_change_written(&c, FIRN_EUNKNOWN, &out, &result));
    T_OK(!reads(&c, 5, &c.mine[0], &out, &result));
    T_EQ(result, 0);
    T_EQ(out.revision, 5);
    /* The value that it named is still there: another write on it, only one of the two can land. */
    begin(&c);
    T_OK(reads(&c, 4, &old, &out, &result));
    T_OK(variable_change_written(&c, FIRN_EUNKNOWN, &out, &result));
    T_OK(reads(&c, 4, &old, &out, &result));
    T_EQ(c.next.revision, 5);
    T_EQ(c.rounds, 2);
    /* Another write took its place: ours is sent again. */
    T_OK(variable_change_written(&c, FIRN_EUNKNOWN, &out, &result));
    T_OK(reads(&c, 5, &other, &out, &result));
    T_EQ(c.next.revision, 6);
    T_EQ(c.open_revision, 0);
    /* And changed twice since: unknown. */
    T_OK(variable_change_written(&c, FIRN_EUNKNOWN, &out, &result));
    T_OK(!reads(&c, 7, &other, &out, &result));
    T_EQ(result, FIRN_EUNKNOWN);
}

T_TEST(variable_change_that_fails)
{
    struct variable_change c;
    struct variable out;
    struct nonce old = fresh(), next = fresh();
    int result;
    begin(&c);
    T_OK(!variable_change_read(&c, FIRN_EIO, NULL, 0, &next, &out, &result, NULL));
    T_EQ(result, FIRN_EIO);
    begin(&c);
    T_OK(!variable_change_read(&c, 0, "rubbish", 7, &next, &out, &result, NULL));
    T_EQ(result, FIRN_EFORMAT);
    begin(&c);
    T_OK(reads(&c, 4, &old, &out, &result));
    T_OK(!variable_change_written(&c, FIRN_EIO, &out, &result));
    T_EQ(result, FIRN_EIO);
    /* After a write that may have landed no error says that nothing was written. */
    begin(&c);
    T_OK(reads(&c, 4, &old, &out, &result));
    T_OK(variable_change_written(&c, FIRN_EUNKNOWN, &out, &result));
    T_OK(!variable_change_read(&c, FIRN_EIO, NULL, 0, &next, &out, &result, NULL));
    T_EQ(result, FIRN_EUNKNOWN);
}

T_TEST(variable_change_ends_after_its_rounds)
{
    struct variable_change c;
    struct variable out;
    struct nonce old = fresh();
    int result = 0, rounds = 0;
    begin(&c);
    for (bool again = true; again; rounds++) {
        T_OK(reads(&c, 4 + (uint64_t)rounds, &old, &out, &result));
        again = variable_change_written(&c, FIRN_ECONFLICT, &out, &result);
    }
    T_EQ(rounds, VARIABLE_ROUNDS_MAX);
    T_EQ(result, FIRN_ECONFLICT);
}

T_TEST(variable_change_of_another_revision)
{
    struct variable_change c;
    struct variable_write w = write_x;
    struct variable out;
    struct nonce old = fresh();
    int result;
    w.if_revision = 3;
    T_EQ(variable_change_init(&c, &w, NULL), 0);
    T_OK(!reads(&c, 4, &old, &out, &result));
    T_EQ(result, FIRN_ECONFLICT);
    T_EQ(out.revision, 4);
}

T_TEST(variable_change_rejects)
{
    static const struct variable_write bad[] = {
        { .name = "x y", .value = "", .by = "" },
        { .name = "", .value = "", .by = "" },
        { .name = "x", .value = "a\0b", .value_len = 3, .by = "" },
        { .name = "x", .value = "", .value_len = VARIABLE_VALUE_MAX + 1, .by = "" },
    };
    struct variable_change c;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(variable_change_init(&c, &bad[i], NULL), FIRN_EINVAL, "row %zu", i);
}
