/* firn choose, over every combination of wishes. */
#include "cli/compare/choose.c"
#include "t.h"

#define ALL (UINT32_C(1) << CHOOSE_BITS)

static int index_of(const char *key)
{
    for (int i = 0; i < CHOOSE_KINDS; i++)
        if (strcmp(choose_kinds[i].key, key) == 0)
            return i;
    t_fail(__FILE__, __LINE__, "a kind", "%s", key);
}

static bool any_has(uint32_t wishes)
{
    for (int i = 0; i < CHOOSE_KINDS; i++)
        if ((choose_kinds[i].has & wishes) == wishes)
            return true;
    return false;
}

T_TEST(the_tables_are_whole)
{
    for (int i = 0; i < CHOOSE_KINDS; i++) {
        const struct choose_kind *k = &choose_kinds[i];
        T_OK(k->key && k->name && k->about && k->con && k->how && k->chars > 0 && k->has < ALL);
        T_EQ(index_of(k->key), i, "%s stands there once", k->key);
    }
    for (int i = 0; i < CHOOSE_BITS; i++) {
        const struct choose_wish *w = &choose_wishes[i];
        T_OK(w->flag && w->question && w->has && w->lacks);
        T_OK(any_has(UINT32_C(1) << i), "some kind has %s", w->flag);
    }
}

/* Implications between requirements, which hold however the table is edited. */
T_TEST(the_table_does_not_contradict_itself)
{
    for (int i = 0; i < CHOOSE_KINDS; i++) {
        const struct choose_kind *k = &choose_kinds[i];
        uint32_t h = k->has;
        T_OK(!(h & BIT(NO_SETUP)) || h & BIT(OFFLINE), "%s: without setup means offline", k->key);
        T_OK(!(h & BIT(STRICT)) || h & BIT(SORTABLE), "%s: strict order is order", k->key);
        T_OK(!(h & BIT(UUID)) || (h & BIT(STRINGS) && k->chars == 36), "%s: a UUID", k->key);
        T_OK(!(h & BIT(JAVASCRIPT)) || h & BIT(64BIT), "%s: 53 bits are fewer than 64", k->key);
        T_OK(!(h & BIT(DATED)) || !(h & BIT(HIDE_TIME)), "%s: a date is a time", k->key);
        T_OK(!(h & BIT(OFFLINE)) || h & BIT(AVAILABLE), "%s: needs no store for each", k->key);
        T_OK(!(h & BIT(GAPLESS)) || !(h & BIT(AVAILABLE)), "%s: CAP", k->key);
        T_OK(!(h & BIT(GAPLESS)) || !(h & (BIT(OFFLINE) | BIT(PUBLIC))), "%s: counted", k->key);
        T_OK(!(h & BIT(SHORT)) || h & BIT(JAVASCRIPT) || k->chars <= 13, "%s: short", k->key);
    }
}

T_TEST(every_combination)
{
    for (uint32_t wishes = 0; wishes < ALL; wishes++) {
        struct choose_answer a;
        uint32_t seen = 0;
        unsigned before = 0;
        choose(wishes, &a);
        T_EQ(a.best >= 0, any_has(wishes), "wishes %x", wishes);
        for (int i = 0; i < CHOOSE_KINDS; i++) {
            unsigned k = a.order[i], lack = bits_in(a.lacks[k]);
            seen |= UINT32_C(1) << k;
            T_OK(lack >= before, "those that lack least come first: %x", wishes);
            before = lack;
            T_EQ(a.lacks[k], wishes & ~choose_kinds[k].has);
        }
        T_EQ(seen, (UINT32_C(1) << CHOOSE_KINDS) - 1, "every kind is ranked once: %x", wishes);
        if (a.best >= 0) {
            T_EQ(choose_kinds[a.best].has & wishes, wishes, "no wish is violated: %x", wishes);
            T_EQ(a.order[0], a.best);
            T_EQ(a.conflict, 0);
            continue;
        }
        T_OK(a.conflict && (a.conflict & ~wishes) == 0, "the clash is among the wishes: %x",
             wishes);
        T_OK(!any_has(a.conflict), "and is one: %x", wishes);
        for (unsigned b = 0; b < CHOOSE_BITS; b++)
            if (a.conflict >> b & 1)
                T_OK(any_has(a.conflict & ~(UINT32_C(1) << b)), "none of it can be left out: %x",
                     wishes);
        T_OK(choose_why(a.conflict)[0]);
    }
}

/* Every pair that clashes has a reason of its own. */
T_TEST(pairs_are_explained)
{
    const char *shrug = choose_why(0);
    for (unsigned a = 0; a < CHOOSE_BITS; a++)
        for (unsigned b = a + 1; b < CHOOSE_BITS; b++) {
            uint32_t pair = UINT32_C(1) << a | UINT32_C(1) << b;
            if (any_has(pair))
                continue;
            T_OK(strcmp(choose_why(pair), shrug) != 0, "--%s and --%s", choose_wishes[a].flag,
                 choose_wishes[b].flag);
        }
}

T_TEST(advice)
{
    static const struct {
        uint32_t wishes;
        const char *key;
    } cases[] = {
        { 0, "snowflake" },
        { BIT(64BIT) | BIT(SORTABLE), "snowflake" },
        { BIT(GAPLESS), "ticket-gapless" },
        { BIT(NO_SETUP), "uuidv7" },
        { BIT(PUBLIC) | BIT(HIDE_TIME), "uuidv4" },
        { BIT(64BIT) | BIT(PUBLIC), "sealed" },
        { BIT(JAVASCRIPT), "ticket-range" },
        { BIT(SHORT) | BIT(STRINGS), "tsid" },
        { BIT(GAPLESS) | BIT(DATED), "dated" },
        { BIT(SORTABLE) | BIT(PUBLIC) | BIT(UUID), "uuidv7" },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        struct choose_answer a;
        choose(cases[i].wishes, &a);
        T_EQ(a.best, index_of(cases[i].key), "case %zu: %s, not %s", i, cases[i].key,
             a.best >= 0 ? choose_kinds[a.best].key : "none");
    }
}
