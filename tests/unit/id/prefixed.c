#include "t.h"

#include <stdlib.h>

#include "firn/prefixed.h"

T_TEST(prefixed_round_trip)
{
    static const struct {
        const char *prefix, *rest;
    } good[] = {
        { "ord", "01ARZ3NDEKTSV4RRFFQ69G5FAV" },
        { "o", "1" },
        { "a123456789012345", "x" },
        { "usr2", "_a_b" }, /* the first '_' splits */
        { "inv", "20261115-000042" },
        { "x", "~!" },
    };
    for (size_t i = 0; i < T_LEN(good); i++) {
        const char *prefix = good[i].prefix, *rest = good[i].rest, *stripped = NULL;
        char text[64];
        size_t len = 0, stripped_len = 0, need = strlen(prefix) + strlen(rest) + 2;
        struct firn_prefixed split;
        T_EQ(firn_prefixed_join(prefix, strlen(prefix), rest, strlen(rest), text, need, &len, NULL),
             0, "'%s'", prefix);
        T_EQ(len, need - 1);
        T_EQ(strlen(text), len);
        T_EQ(firn_prefixed_split(text, len, &split, NULL), 0, "'%s'", text);
        T_OK(split.prefix == text && split.prefix_len == strlen(prefix));
        T_OK(split.rest == text + split.prefix_len + 1 && split.rest_len == strlen(rest));
        T_STR(split.rest, rest);
        T_EQ(firn_prefixed_strip(text, len, prefix, strlen(prefix), &stripped, &stripped_len, NULL),
             0);
        T_OK(stripped == split.rest && stripped_len == split.rest_len);
    }
}

T_TEST(prefixed_split_refuses)
{
    static const struct {
        const char *text;
        size_t column;
        const char *says;
    } bad[] = {
        { "", 1, "empty" },
        { "_1", 1, "empty" },
        { "ord", 4, "no '_'" },
        { "ord_", 5, "nothing follows" },
        { "ord-1", 4, "'-' is not allowed here: a prefix has only" },
        { "Ord_1", 1, "'O' is not allowed here: a prefix begins" },
        { "oRd_1", 2, "'R' is not allowed" },
        { "2ord_1", 1, "'2' is not allowed" },
        { " ord_1", 1, "byte 0x20" },
        { "o\xc3\xa9_1", 2, "byte 0xc3" },
        { "o'_1", 2, "byte 0x27" },
        { "ord_1 2", 6, "byte 0x20 is not allowed here: an ID has" },
        { "ord_1\n", 6, "byte 0x0a" },
        { "ord_\x7f", 5, "byte 0x7f" },
        { "a1234567890123456_1", 17, "longer than 16" },
        { "a12345678901234567890123456_1", 17, "longer than 16" },
        { "01ARZ3NDEKTSV4RRFFQ69G5FAV", 1, "'0' is not allowed" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_prefixed split = { .rest_len = 77 };
        struct firn_diag diag = { 99, "" };
        size_t len = strlen(bad[i].text);
        char *exact = malloc(len + !len); /* sanitizers see a read past its end */
        memcpy(exact, bad[i].text, len);
        T_EQ(firn_prefixed_split(exact, len, &split, &diag), FIRN_EFORMAT, "'%s'", bad[i].text);
        free(exact);
        T_OK(strstr(diag.text, bad[i].says), "'%s' says '%s'", bad[i].text, diag.text);
        T_EQ(diag.column, bad[i].column, "'%s'", bad[i].text);
        T_EQ(split.rest_len, 77);
        T_EQ(firn_prefixed_split(bad[i].text, len, &split, NULL), FIRN_EFORMAT);
    }
    struct firn_prefixed split;
    T_EQ(firn_prefixed_split(NULL, 0, &split, NULL), FIRN_EINVAL);
    T_EQ(firn_prefixed_split("a_b", 3, NULL, NULL), FIRN_EINVAL);
}

T_TEST(prefixed_strip_tells_kinds_apart)
{
    const char *rest = NULL;
    size_t rest_len = 77;
    struct firn_diag diag;
    T_EQ(firn_prefixed_strip("usr_1", 5, "ord", 3, &rest, &rest_len, &diag), FIRN_EFORMAT);
    T_STR(diag.text, "this is an ID of 'usr', 'ord' is expected");
    T_EQ(firn_prefixed_strip("ord_1", 5, "or", 2, &rest, &rest_len, &diag), FIRN_EFORMAT);
    T_EQ(firn_prefixed_strip("or_1", 4, "ord", 3, &rest, &rest_len, &diag), FIRN_EFORMAT);
    T_EQ(firn_prefixed_strip("ord_1", 5, "ORD", 3, &rest, &rest_len, &diag), FIRN_EINVAL);
    T_EQ(firn_prefixed_strip("ord_1", 5, "", 0, &rest, &rest_len, &diag), FIRN_EINVAL);
    T_OK(!rest && rest_len == 77);
}

T_TEST(prefixed_join_refuses)
{
    char out[8] = "same";
    size_t len = 77;
    struct firn_diag diag;
    T_EQ(firn_prefixed_join("ord", 3, "12345", 5, out, 8, &len, &diag), FIRN_ENOSPC);
    T_STR(diag.text, "the buffer has 8 bytes, 10 are needed");
    T_EQ(firn_prefixed_join("ord", 3, "1234", 4, out, 8, &len, &diag), FIRN_ENOSPC);
    T_EQ(firn_prefixed_join("ord", 3, "1", 1, out, 0, &len, &diag), FIRN_ENOSPC);
    T_EQ(firn_prefixed_join("o_d", 3, "1", 1, out, 8, &len, &diag), FIRN_EFORMAT);
    T_EQ(diag.column, 2);
    T_EQ(firn_prefixed_join("ord", 3, "", 0, out, 8, &len, &diag), FIRN_EFORMAT);
    T_EQ(firn_prefixed_join("ord", 3, "1 2", 3, out, 8, &len, &diag), FIRN_EFORMAT);
    T_EQ(diag.column, 2);
    T_STR(out, "same");
    T_EQ(len, 77);
    T_EQ(firn_prefixed_join("ord", 3, "123", 3, out, 8, &len, &diag), 0);
    T_STR(out, "ord_123");
    T_EQ(len, 7);
}
