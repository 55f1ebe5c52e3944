/* Reading any kind, detection, and minting any kind: what is minted must read back as its kind. */
#include "t.h"

#include "firn/mint.h"
#include "firn/read.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOW_MS INT64_C(1794787200000) /* 2026-11-15 */

static const struct firn_kind *kind_of(const char *name)
{
    const struct firn_kind *k = firn_kind_find(name, strlen(name));
    T_OK(k != NULL, "%s", name);
    return k;
}

static struct firn_mint_opts opts_of(const char *kind)
{
    struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
    if (strcmp(kind, "uuidv3") == 0 || strcmp(kind, "uuidv5") == 0) {
        o.name_space = "dns";
        o.name = "example.com";
    }
    return o;
}

static int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

T_TEST(mint_every_kind_reads_back)
{
    size_t n;
    const struct firn_kind *k = firn_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        struct firn_mint_opts o = opts_of(k[i].name);
        struct firn_mint *m;
        struct firn_diag d = { 0, "" };
        int r = firn_mint_new(&k[i], &o, &m, &d);
        if (!(k[i].flags & FIRN_KIND_MAKES)) {
            T_EQ(r, FIRN_ENOTSUP, "%s", k[i].name);
            continue;
        }
        T_EQ(r, 0, "%s: %s", k[i].name, d.text);
        char last[FIRN_MINT_TEXT_BUF] = "";
        for (int round = 0; round < 200; round++) {
            char text[FIRN_MINT_TEXT_BUF];
            size_t len;
            T_EQ(firn_mint_text(m, text, &len), 0, "%s", k[i].name);
            T_EQ(len, strlen(text));
            struct firn_reading reading;
            T_EQ(firn_read(&k[i], text, len, NULL, &reading, &d), 0, "%s %s: %s", k[i].name, text,
                 d.text);
            T_STR(reading.text, text);
            T_EQ(reading.has_time, (k[i].flags & FIRN_KIND_TIME) != 0, "%s", k[i].name);
            if (reading.has_time && strcmp(k[i].name, "dated") != 0)
                T_OK(llabs(reading.unix_us / 1000 - wall_ms()) < 60000, "%s %s", k[i].name, text);
            T_EQ(reading.bytes_len * 8, k[i].bits, "%s", k[i].name);
            bool named = strcmp(k[i].name, "uuidv3") == 0 || strcmp(k[i].name, "uuidv5") == 0;
            T_OK(named || strcmp(text, last) != 0, "%s came twice: %s", k[i].name, text);
            memcpy(last, text, len + 1);
        }
        firn_mint_free(m);
    }
}

T_TEST(mint_lines_are_distinct_and_whole)
{
    static const char *const kinds[] = { "snowflake", "ulid", "nanoid", "ticket" };
    for (size_t i = 0; i < T_LEN(kinds); i++) {
        struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
        struct firn_mint *m;
        static char out[8192];
        size_t n = 0, len = 0, lines = 0;
        T_EQ(firn_mint_new(kind_of(kinds[i]), &o, &m, NULL), 0);
        T_EQ(firn_mint_lines(m, 10, '\n', out, FIRN_MINT_TEXT_BUF, &n, &len), FIRN_ENOSPC);
        T_EQ(firn_mint_lines(m, 10000, '\n', out, sizeof out, &n, &len), 0);
        T_OK(n >= 100 && len <= sizeof out);
        for (size_t k = 0; k < len; k++)
            lines += out[k] == '\n';
        T_EQ(lines, n);
        T_EQ(out[len - 1], '\n');
        firn_mint_free(m);
    }
}

T_TEST(mint_options_are_checked)
{
    struct firn_layout decode_only, audit;
    T_EQ(firn_layout_parse("mastodon", 8, 0, &decode_only, NULL), 0);
    T_EQ(firn_layout_parse("audit", 5, 0, &audit, NULL), 0);
    struct {
        const char *kind;
        struct firn_mint_opts o;
        int error;
        const char *says;
    } bad[] = {
        { "snowflake", FIRN_MINT_OPTS_INIT, FIRN_ERANGE, "above 1023" },
        { "snowflake", FIRN_MINT_OPTS_INIT, FIRN_ENOTSUP, "decode-only" },
        { "snowflake", FIRN_MINT_OPTS_INIT, FIRN_ERANGE, "no shard field" },
        { "snowflake", FIRN_MINT_OPTS_INIT, FIRN_ERANGE, "does not fit" },
        { "uuidv5", FIRN_MINT_OPTS_INIT, FIRN_EINVAL, "namespace and a name" },
        { "nanoid", FIRN_MINT_OPTS_INIT, FIRN_EINVAL, "only once" },
        { "nanoid", FIRN_MINT_OPTS_INIT, FIRN_ERANGE, "between 1 and 255" },
        { "cuid2", FIRN_MINT_OPTS_INIT, FIRN_ERANGE, "between 2 and 32" },
        { "ulid", FIRN_MINT_OPTS_INIT, FIRN_ENOTSUP, "no encoding" },
        { "ulid", FIRN_MINT_OPTS_INIT, FIRN_EFORMAT, "" },
        { "typeid", FIRN_MINT_OPTS_INIT, FIRN_EFORMAT, "a-z and _" },
        { "stamp17", FIRN_MINT_OPTS_INIT, FIRN_ENOTSUP, "can be read, not made" },
    };
    bad[0].o.slot = 1024;
    bad[1].o.layout = &decode_only;
    bad[2].o.shard = 1;
    bad[3].o.layout = &audit;
    bad[3].o.shard = 32;
    bad[5].o.alphabet = "abca";
    bad[6].o.length = 256;
    bad[7].o.length = 33;
    bad[8].o.codec = firn_codec_find("hex", 3);
    bad[9].o.prefix = "Ord";
    bad[10].o.prefix = "_user";
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_mint *m;
        struct firn_diag d = { 0, "" };
        T_EQ(firn_mint_new(kind_of(bad[i].kind), &bad[i].o, &m, &d), bad[i].error, "row %zu: %s", i,
             d.text);
        T_OK(strstr(d.text, bad[i].says) != NULL, "row %zu: %s", i, d.text);
    }
}

/* A number that was just made is read as what it is, although other layouts read a time of the last
 * years in it. */
T_TEST(detect_prefers_just_now)
{
    static const char *const layouts[] = { "sonyflake", "twitter", "firn",    "discord",
                                           "instagram", "tsid",    "mastodon" };
    for (size_t i = 0; i < T_LEN(layouts); i++)
        for (int64_t now = 1750000000000; now < 1850000000000; now += 1234567891) {
            struct firn_layout l;
            struct firn_parts parts = { { 0 } };
            struct firn_reading r[20];
            char text[FIRN_U64_TEXT_BUF];
            uint64_t id;
            size_t n;
            T_EQ(firn_layout_parse(layouts[i], strlen(layouts[i]), 0, &l, NULL), 0);
            parts.field[FIRN_FIELD_TIME] = firn_layout_ticks(&l, now * 1000);
            T_EQ(firn_layout_compose(&l, &parts, &id, NULL), 0);
            T_EQ(firn_detect(text, firn_u64_format(id, text), now + 3000, r, T_LEN(r), &n), 0);
            T_OK(n > 0);
            struct firn_layout best;
            T_EQ(firn_layout_parse(r[0].layout, strlen(r[0].layout), 0, &best, NULL), 0);
            /* leaf has twitter's time field: the two cannot be told apart */
            T_OK(firn_layout_unix_us(&l, firn_layout_ticks(&l, now * 1000)) == r[0].unix_us,
                 "%s at %" PRId64 " read as %s", layouts[i], now, r[0].layout);
        }
}

T_TEST(detect_at_the_end_of_time)
{
    struct firn_reading r[20];
    size_t n;
    T_EQ(firn_detect("1541815603606036480", 19, INT64_MAX, r, T_LEN(r), &n), 0);
    T_OK(n > 0);
    T_EQ(firn_detect("01ARZ3NDEKTSV4RRFFQ69G5FAV", 26, INT64_MAX, r, T_LEN(r), &n), 0);
    T_STR(r[0].kind->name, "ulid");
}

/* A caller that names the kind may have IDs of an unusual length; detection and prefixes
 * look for the usual ones only. */
T_TEST(read_other_lengths)
{
    struct firn_reading r[20];
    size_t n;
    T_EQ(firn_read(kind_of("nanoid"), "V1StGXR8_Z", 10, NULL, &r[0], NULL), 0);
    T_STR(r[0].text, "V1StGXR8_Z");
    T_STR(r[0].field[0].value, "10 characters of 64");
    T_EQ(firn_read(kind_of("nanoid"), "V1StGXR8!Z", 10, NULL, &r[0], NULL), FIRN_EFORMAT);
    T_EQ(firn_read(kind_of("cuid2"), "tz4a98xx", 8, NULL, &r[0], NULL), 0);
    T_EQ(firn_read(kind_of("cuid2"), "9z4a98xx", 8, NULL, &r[0], NULL), FIRN_EFORMAT);
    T_EQ(firn_detect("V1StGXR8_Z", 10, 1800000000000, r, T_LEN(r), &n), 0);
    for (size_t i = 0; i < n; i++)
        T_OK(strcmp(r[i].kind->name, "nanoid") != 0);
    T_EQ(firn_read(kind_of("prefixed"), "ord_tz4a98xx", 12, NULL, &r[0], NULL), FIRN_EFORMAT);
}

/* Rounded towards the past on both sides of 1970: 100 ns before it is still 1969. */
T_TEST(read_uuid_before_1970)
{
    static const struct {
        const char *text;
        int64_t us;
    } rows[] = {
        { "13814000-1dd2-11b2-8000-000000000000", 0 },
        { "13814009-1dd2-11b2-8000-000000000000", 0 },
        { "13813fff-1dd2-11b2-8000-000000000000", -1 },
        { "13813ff6-1dd2-11b2-8000-000000000000", -1 },
        { "13813ff5-1dd2-11b2-8000-000000000000", -2 },
        { "00000000-0000-1000-8000-000000000000", INT64_C(-12219292800000000) },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct firn_reading r;
        T_EQ(firn_read(kind_of("uuidv1"), rows[i].text, 36, NULL, &r, NULL), 0);
        T_EQ(r.unix_us, rows[i].us, "%s", rows[i].text);
    }
}

T_TEST(mint_prefix_and_encoding)
{
    struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
    struct firn_mint *m;
    char text[FIRN_MINT_TEXT_BUF];
    size_t len;
    struct firn_reading r;
    o.prefix = "ord";
    T_EQ(firn_mint_new(kind_of("ulid"), &o, &m, NULL), 0);
    T_EQ(firn_mint_text(m, text, &len), 0);
    T_EQ(strncmp(text, "ord_", 4), 0);
    T_EQ(firn_read(kind_of("prefixed"), text, len, NULL, &r, NULL), 0);
    T_STR(r.field[0].value, "ord");
    T_STR(r.field[1].value, "ulid");
    T_EQ(r.has_time, 1);
    firn_mint_free(m);
    o.prefix = "user_account";
    T_EQ(firn_mint_new(kind_of("typeid"), &o, &m, NULL), 0);
    T_EQ(firn_mint_text(m, text, &len), 0);
    T_EQ(strncmp(text, "user_account_", 13), 0);
    firn_mint_free(m);
    o.prefix = NULL;
    o.codec = firn_codec_find("base62", 6);
    T_EQ(firn_mint_new(kind_of("snowflake"), &o, &m, NULL), 0);
    T_EQ(firn_mint_text(m, text, &len), 0);
    T_EQ(len, o.codec->width64);
    firn_mint_free(m);
}

T_TEST(mint_is_wiped_in_a_child)
{
    struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
    struct firn_mint *m;
    char text[FIRN_MINT_TEXT_BUF];
    size_t len;
    T_EQ(firn_mint_new(kind_of("ulid"), &o, &m, NULL), 0);
    T_EQ(firn_mint_text(m, text, &len), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(firn_mint_text(m, text, &len) == FIRN_EFORKED ? 0 : 1);
    int status = 1;
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    firn_mint_free(m);
}

T_TEST(detect_ranks_by_shape_and_time)
{
    static const struct {
        const char *text, *kind;
        const char *layout; /* one that must be among the readings: the number alone cannot tell */
    } best[] = {
        { "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "uuidv7", "" },
        { "{017F22E2-79B0-7CC3-98C4-DC0C0C07398F}", "uuidv7", "" },
        { "00000000-0000-0000-0000-000000000000", "uuid", "" },
        { "01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid", "" },
        { "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "ksuid", "" },
        { "9m4e2mr0ui3e8a215n4g", "xid", "" },
        { "507f1f77bcf86cd799439011", "objectid", "" },
        { "20261115-000042", "dated", "" },
        { "20261115093000123", "stamp17", "" },
        { "ord_01ARZ3NDEKTSV4RRFFQ69G5FAV", "prefixed", "" },
        { "user_2x4y6z8a0b1c2d3e4f5g6h7j8k", "typeid", "" },
        { "100001", "ticket", "" },
        { "1541815603606036480", "snowflake", "twitter" },
        { "175928847299117063", "snowflake", "discord" },
        { "V1StGXR8_Z5jdHi6B-myT", "nanoid", "" },
        { "tz4a98xxat96iws9zmbrgj3a", "cuid2", "" },
    };
    for (size_t i = 0; i < T_LEN(best); i++) {
        struct firn_reading r[32];
        size_t n = 0;
        T_EQ(firn_detect(best[i].text, strlen(best[i].text), NOW_MS, r, 32, &n), 0);
        T_OK(n > 0, "%s", best[i].text);
        T_STR(r[0].kind->name, best[i].kind, "%s", best[i].text);
        bool offered = best[i].layout[0] == '\0';
        for (size_t k = 0; k < n; k++)
            offered |= strcmp(r[k].layout, best[i].layout) == 0;
        T_OK(offered, "%s must be offered as %s", best[i].text, best[i].layout);
        for (size_t k = 1; k < n; k++)
            T_OK(r[k].score <= r[k - 1].score);
        struct firn_reading first;
        size_t one = 0;
        T_EQ(firn_detect(best[i].text, strlen(best[i].text), NOW_MS, &first, 1, &one), 0);
        T_EQ(one, 1);
        T_STR(first.kind->name, best[i].kind);
    }
    struct firn_reading r;
    size_t n = 1;
    T_EQ(firn_detect("no ID at all!", 13, NOW_MS, &r, 1, &n), 0);
    T_EQ(n, 0);
}

/* An ID that was made just now is best read as what it is, for every preset that still issues. */
T_TEST(detect_finds_the_layout_of_a_new_id)
{
    struct firn_layout l;
    uint64_t id;
    T_EQ(firn_layout_parse("firn", 4, 0, &l, NULL), 0);
    struct firn_parts p = { { firn_layout_ticks(&l, NOW_MS * 1000), 0, 517, 0, 9 } };
    T_EQ(firn_layout_compose(&l, &p, &id, NULL), 0);
    char text[FIRN_U64_TEXT_BUF];
    size_t n, len = firn_u64_format(id, text);
    struct firn_reading r[32];
    T_EQ(firn_detect(text, len, NOW_MS, r, 32, &n), 0);
    T_STR(r[0].layout, "firn");
    T_OK(n > 3, "other layouts and the plain number are offered too");
}

T_TEST(read_says_why_not)
{
    struct firn_reading r;
    struct firn_diag d = { 0, "" };
    const char *v7 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    T_EQ(firn_read(kind_of("uuidv4"), v7, strlen(v7), NULL, &r, &d), FIRN_EFORMAT);
    T_STR(d.text, "not of kind uuidv4: a UUID of version 7");
    T_EQ(firn_read(kind_of("uuidv7"), v7, strlen(v7), NULL, &r, &d), 0);
    T_EQ(r.unix_us / 1000, INT64_C(1645557742000));
    char longest[200];
    memset(longest, 'a', sizeof longest);
    T_EQ(firn_read(kind_of("nanoid"), longest, sizeof longest, NULL, &r, &d), FIRN_EFORMAT);
    T_EQ(firn_read(NULL, "1", 1, NULL, &r, &d), FIRN_EINVAL);
}
