/* The configuration's machinery with a program of its own: another name, prefix and struct. What
 * firnd makes of it, and every error text, is in tests/unit/server/config.c. */
#include "t.h"

#include "daemon/config_entries.h"
#include "daemon/config_in.h"

#include <stdlib.h>

struct route {
    char *name, *path;
    struct config_strings methods;
    uint32_t tries;
    bool safe;
    int turn;
};

struct routes {
    struct route *v;
    size_t n;
};

struct proxy {
    struct config_base base;
    char *upstream;
    uint64_t tries;
    bool strict;
    struct routes routes;
    bool checked;
};

#define AT(field) .offset = offsetof(struct route, field)

static int check_path(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    return *text == '/' ? 0 : entry_blame(r, k->name, "it begins with '/'");
}

static int check_route(const struct entry_reader *r, void *entry)
{
    const struct route *t = entry;
    return t->safe && t->tries > 1 ? entry_blame(r, "tries", "safe allows one") : 0;
}

static const struct entry_key route_keys[] = {
    { "name", &entry_text, AT(name), .check = entry_check_name },
    { "path", &entry_text, AT(path), .missing = "it is missing", .check = check_path },
    { "methods", &entry_texts, AT(methods) },
    { "tries", &entry_u32, AT(tries), .min = 1, .max = 9, .preset = 1 },
    { "safe", &entry_bool, AT(safe) },
    { "turn", &entry_choice, AT(turn), .choices = "first|next|any" },
};
static const struct setting_entries routes_type = { route_keys, T_LEN(route_keys),
                                                    sizeof(struct route), "route-", check_route };

static int check(const void *config, struct firn_diag *diag)
{
    const struct proxy *p = config;
    return p->strict && p->tries > 1
               ? config_fault(&p->base, "retry.tries", FIRN_EINVAL, diag, "strict allows one try")
               : 0;
}

static const struct setting settings[] = {
    { "upstream", SETTING_STRING, SETTING_RELOAD, offsetof(struct proxy, upstream), "none",
      .help = "where requests go" },
    { "strict", SETTING_BOOL, 0, offsetof(struct proxy, strict), "false", .help = "no retries" },
    { "retry.tries", SETTING_UINT, 0, offsetof(struct proxy, tries), "1", .min = 1, .max = 9,
      .help = "tries of a request" },
    { "routes", SETTING_ENTRIES, SETTING_RELOAD, offsetof(struct proxy, routes),
      .entries = &routes_type, .help = "which requests go where" },
};
static const struct config_program program = { .name = "test-proxy",
                                               .about = "Tests.\n",
                                               .file = "/nonexistent/test-proxy.yaml",
                                               .prefix = "TEST_PROXY_",
                                               .flag_example = "retry.tries",
                                               .settings = settings,
                                               .settings_n = T_LEN(settings),
                                               .size = sizeof(struct proxy),
                                               .check = check };

static struct firn_diag diag;

static int load(struct proxy *p, const char *flag)
{
    static char *argv[2];
    argv[0] = (char *)(uintptr_t) "test-proxy";
    argv[1] = (char *)(uintptr_t)flag;
    diag.text[0] = '\0';
    return config_load(&p->base, &program, flag ? 2 : 1, argv, &diag);
}

T_TEST(config_of_another_program)
{
    struct proxy p;
    T_EQ(load(&p, NULL), 0, "%s", diag.text);
    T_STR(p.upstream, "none");
    T_EQ(p.tries, 1);
    T_EQ(p.routes.n, 0);
    config_free(&p.base);
    setenv("TEST_PROXY_RETRY_TRIES", "3", 1);
    T_EQ(load(&p, "--upstream=b"), 0, "%s", diag.text);
    T_EQ(p.tries, 3);
    T_STR(p.upstream, "b");
    config_free(&p.base);
    T_EQ(load(&p, "--strict"), FIRN_EINVAL);
    T_STR(diag.text, "TEST_PROXY_RETRY_TRIES: strict allows one try");
    unsetenv("TEST_PROXY_RETRY_TRIES");
    T_EQ(load(&p, "--zzzzzzzz"), FIRN_EINVAL);
    T_STR(diag.text, "there is no flag '--zzzzzzzz'; test-proxy --help lists them");
    T_EQ(load(&p, "--routes=a"), FIRN_EINVAL);
    T_STR(diag.text, "--routes: this can only be set in the file");
}

T_TEST(config_entries_and_columns)
{
    static const struct {
        const char *yaml, *says;
        size_t column;
    } bad[] = {
        { "routes:\n  - {}\n", "x.yaml:2: routes: 'route-1': path: it is missing (column 5)", 5 },
        { "routes:\n  - { path: /a, pth: b }\n",
          "x.yaml:2: routes: there is no 'pth'; give name, path, methods, tries, safe, turn (column "
          "17)",
          17 },
        { "routes:\n  - { path: a }\n",
          "x.yaml:2: routes: 'route-1': path: it begins with '/' (column 13)", 13 },
        { "routes:\n  - { path: /, tries: 10 }\n",
          "x.yaml:2: routes: 'route-1': tries: '10' is no number from 1 to 9 (column 23)", 23 },
        { "routes:\n  - { path: /, tries: 2, safe: true }\n",
          "x.yaml:2: routes: 'route-1': tries: safe allows one (column 23)", 23 },
        { "routes:\n  - { path: /, turn: an }\n",
          "x.yaml:2: routes: 'route-1': turn: 'an' is none of first|next|any (column 22)", 22 },
        { "routes:\n  - { path: /, safe: yes }\n",
          "x.yaml:2: routes: 'route-1': safe: 'yes' is neither true nor false (column 22)", 22 },
        { "routes:\n  - { path: /, name: a }\n  - { path: /, name: a }\n",
          "x.yaml:3: routes: 'a': name: the name is there twice (column 22)", 22 },
        { "routes:\n  - { path: /a, methods: GET }\n",
          "x.yaml:2: routes: methods: this takes a list, as in [a, b] (column 26)", 26 },
        { "retry: { tries: 10 }\n",
          "x.yaml:1: retry.tries: '10' is out of bounds; give a number from 1 to 9 (column 17)",
          17 },
        { "retry: { tires: 1 }\n",
          "x.yaml:1: there is no setting 'retry.tires'; did you mean retry.tries (column 10)", 10 },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct proxy p = { .base = { .program = &program, .file = strdup("x.yaml") } };
        T_OK(config_yaml_read(&p.base, bad[i].yaml, strlen(bad[i].yaml), &diag) < 0);
        T_STR(diag.text, bad[i].says);
        T_EQ(diag.column, bad[i].column, "%s", diag.text);
        config_free(&p.base);
    }
    struct proxy p = { .base = { .program = &program, .file = strdup("x.yaml") } };
    static const char good[] = "routes:\n- path: /a\n  methods: [GET, HEAD]\n  turn: any\n"
                               "- { path: /b, tries: 9, safe: false, name: b }\n";
    T_EQ(config_yaml_read(&p.base, good, sizeof good - 1, &diag), 0, "%s", diag.text);
    T_EQ(p.routes.n, 2);
    T_STR(p.routes.v[0].name, "route-1");
    T_STR(p.routes.v[0].methods.v[1], "HEAD");
    T_EQ(p.routes.v[0].turn, 2);
    T_STR(p.routes.v[1].path, "/b");
    T_EQ(p.routes.v[1].tries, 9);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    entries_write(&routes_type, &p.routes, f);
    fclose(f);
    T_STR(text,
          "[{ name: route-1, path: /a, methods: [GET, HEAD], tries: 1, safe: false, turn: any }, "
          "{ name: b, path: /b, tries: 9, safe: false, turn: first }]");
    free(text);
    T_EQ(p.base.source[3].from, CONFIG_FILE);
    T_EQ(p.base.source[3].line, 1);
    config_free(&p.base);
    T_OK(!p.base.program && p.routes.n == 0);
}

T_TEST(config_lists_are_bounded)
{
    struct proxy p = { .base = { .program = &program, .file = strdup("x.yaml") } };
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs("routes: [", f);
    for (int i = 0; i <= CONFIG_LIST_MAX; i++)
        fputs("{},", f);
    fputs("]\n", f);
    fclose(f);
    T_EQ(config_yaml_read(&p.base, text, size, &diag), FIRN_ERANGE);
    T_STR(diag.text, "x.yaml:1: routes: too many entries (1001, at most 1000) (column 9)");
    free(text);
    config_free(&p.base);
}
