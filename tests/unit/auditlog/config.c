/* The audit log's configuration: tokens, URLs, what needs what. */
#include "t.h"

#include "auditlog/config.h"
#include "auditlog/generator_url.h"

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
    T_EQ(c.generators.timeout_ms, 2000);
    T_EQ(c.generators.retries, 3);
    T_EQ(c.generators.retry_ms, 1000);
    T_EQ(c.generators.urls.n, 1);
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
        { ONE, "--generators-urls=https://h:1", "http://" },
        { ONE, "--generators-urls=", "at least one firnd" },
        { ONE, "--id=other", "legacy" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct config c;
        T_OK(load(&c, rows[i].a, rows[i].b) < 0, "%s %s", rows[i].a, rows[i].b);
        T_OK(strstr(diag.text, rows[i].words), "%s: %s", rows[i].b, diag.text);
    }
}

T_TEST(config_generator_urls)
{
    static const char *const bad[] = {
        "h:1",        "http://",      "http://a,b", "http://u@h",
        "http://h/x", "http://h?x=1", "ftp://h",    "http://h:99999"
    };
    struct host_port at;
    T_EQ(generator_url_read("http://10.0.0.1", &at, &diag), 0);
    T_STR(at.host, "10.0.0.1");
    T_EQ(at.port, 9001);
    T_EQ(generator_url_read("http://[::1]:7/", &at, &diag), 0);
    T_STR(at.host, "::1");
    T_EQ(at.port, 7);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(generator_url_read(bad[i], &at, &diag), FIRN_EFORMAT, "%s", bad[i]);
}
