/* The audit log's configuration: tokens, URLs, what needs what. */
#include "t.h"

#include "auditlog/config.h"

#include <stdio.h>

static struct firn_diag diag;

static int load(struct config *c, const char *a, const char *b)
{
    static char program[] = "firn-auditlog", no[] = "--no-config";
    static char first[300], second[300];
    char *argv[] = { program, no, first, second, NULL };
    snprintf(first, sizeof first, "%s", a);
    snprintf(second, sizeof second, "%s", b);
    diag.text[0] = '\0';
    return config_load(&c->base, &auditlog_config, b[0] ? 4 : 3, argv, &diag);
}

#define ONE "--shards=postgres://u@h/d"

T_TEST(config_presets)
{
    struct config c;
    T_EQ(load(&c, ONE, ""), 0, "%s", diag.text);
    T_EQ(c.id, CONFIG_ID_FIRN);
    T_EQ(c.limits.commit_ms, 2);
    T_STR(c.generators, "firn://127.0.0.1:9001");
    config_free(&c.base);
}

T_TEST(config_errors)
{
    static const struct {
        const char *a, *b, *words;
    } rows[] = {
        { "--loops=1", "", "at least one" },
        { "--shards=mysql://h/d", "", "postgres://" },
        { "--shards=postgres://u@h/d,postgres://u@h/d", "", "same database" },
        { ONE, "--owners=postgres://a@h/d,postgres://b@h/d", "one for each" },
        { ONE, "--generators=http://h:1", "firn://" },
        { ONE, "--generators=firn://h:1/?mode=leased", "twice" },
        { ONE, "--generators=firn://h:1/?retry=7", "retries" },
        { ONE, "--id=other", "legacy" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct config c;
        T_OK(load(&c, rows[i].a, rows[i].b) < 0, "%s %s", rows[i].a, rows[i].b);
        T_OK(strstr(diag.text, rows[i].words), "%s: %s", rows[i].b, diag.text);
    }
}
