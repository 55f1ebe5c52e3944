/* A mint: its options, and its life in other threads than the one that made it. */
#include "t.h"

#include "firn/mint.h"

#include <pthread.h>

static const struct firn_kind *kind_of(const char *name)
{
    const struct firn_kind *k = firn_kind_find(name, strlen(name));
    T_OK(k != NULL, "%s", name);
    return k;
}

T_TEST(mint_options_without_a_size)
{
    struct firn_mint *m = NULL;
    struct firn_diag d = { 0, "" };
    struct firn_mint_opts o = { .slot = 17 };
    T_EQ(firn_mint_new(kind_of("snowflake"), &o, &m, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "FIRN_MINT_OPTS_INIT"), "%s", d.text);
    o.size = 8; /* the layout's pointer lies behind it and must not be followed */
    o.layout = (const struct firn_layout *)(uintptr_t)1;
    T_EQ(firn_mint_new(kind_of("snowflake"), &o, &m, &d), FIRN_EINVAL);
}

T_TEST(mint_lines_of_nothing)
{
    struct firn_mint *m = NULL;
    struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
    char out[FIRN_MINT_TEXT_BUF + 1];
    size_t n = 9, len = 9;
    T_EQ(firn_mint_new(kind_of("ulid"), &o, &m, NULL), 0);
    T_EQ(firn_mint_lines(m, 0, '\n', out, sizeof out, &n, &len), 0);
    T_EQ(n, 0);
    T_EQ(len, 0);
    firn_mint_free(m);
}

static void *make_mint(void *kind)
{
    struct firn_mint *m = NULL;
    struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
    char out[FIRN_MINT_TEXT_BUF];
    size_t len;
    if (firn_mint_new(kind, &o, &m, NULL) != 0 || firn_mint_text(m, out, &len) != 0)
        return NULL;
    return m;
}

/* The maker's random generator is gone with its thread. */
T_TEST(mint_used_after_its_maker_ended)
{
    static const char *const kinds[] = { "uuidv4", "uuidv7", "ulid",  "ksuid",  "typeid",
                                         "nanoid", "cuid2",  "xid",   "uuidv1", "objectid",
                                         "uuidv8", "tsid",   "uuidv6" };
    for (size_t i = 0; i < T_LEN(kinds); i++) {
        pthread_t t;
        void *made = NULL;
        T_EQ(pthread_create(&t, NULL, make_mint, (void *)(uintptr_t)kind_of(kinds[i])), 0);
        T_EQ(pthread_join(t, &made), 0);
        T_OK(made != NULL);
        char a[FIRN_MINT_TEXT_BUF], b[FIRN_MINT_TEXT_BUF];
        size_t a_len, b_len;
        T_EQ(firn_mint_text(made, a, &a_len), 0, "%s", kinds[i]);
        T_EQ(firn_mint_text(made, b, &b_len), 0, "%s", kinds[i]);
        T_OK(a_len == b_len && memcmp(a, b, a_len) != 0, "%s", kinds[i]);
        firn_mint_free(made);
    }
}
