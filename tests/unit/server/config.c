/* The settings: where values come from, what is refused and how that is said, reloading, and that
 * the man page and the example file know every setting. */
#include "t.h"

#include "server/config.h"
#include "daemon/config_in.h"
#include "daemon/log.h"
#include "wire/variables.h"

#include <stdlib.h>
#include <unistd.h>

#define SHA_OF_TEST "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define TREE        TEST_DATA "/.."

static char dir[] = "/tmp/firn-config-XXXXXX";
static char file_path[64];

static void remove_dir(void)
{
    unlink(file_path);
    rmdir(dir);
}

/* A clean world: none of the variables, a folder for the file. */
__attribute__((constructor)) static void begin(void)
{
    for (size_t i = 0; i < firnd_config.settings_n; i++) {
        char name[SETTING_NAME_BUF];
        setting_env(&firnd_config, &firnd_config.settings[i], name);
        unsetenv(name);
    }
    unsetenv("STATE_DIRECTORY");
    unsetenv("FIRN_CONFIG");
    if (!mkdtemp(dir))
        abort();
    snprintf(file_path, sizeof file_path, "%s/firnd.yaml", dir);
    atexit(remove_dir);
}

static void write_file(const char *yaml)
{
    FILE *f = fopen(file_path, "w");
    T_OK(f);
    fputs(yaml, f);
    T_EQ(fclose(f), 0);
}

static char *read_text(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    T_OK(f, "%s", path);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static struct firn_diag diag;

/* Load with up to three flags; NULLs are left out. */
static int load(struct config *c, const char *a, const char *b, const char *d)
{
    static char *argv[8];
    const char *flags[] = { a, b, d };
    int argc = 0;
    argv[argc++] = (char *)(uintptr_t) "firnd";
    for (size_t i = 0; i < 3; i++)
        if (flags[i])
            argv[argc++] = (char *)(uintptr_t)flags[i];
    diag.text[0] = '\0';
    return config_load(&c->base, &firnd_config, argc, argv, &diag);
}

static int load_yaml(struct config *c, const char *yaml)
{
    write_file(yaml);
    return load(c, "--config", file_path, NULL);
}

static const struct config_source *source(const struct config *c, const char *name)
{
    for (size_t i = 0; i < firnd_config.settings_n; i++)
        if (strcmp(firnd_config.settings[i].name, name) == 0)
            return &c->base.source[i];
    T_OK(false, "no setting %s", name);
    return NULL;
}

static char *printed(const struct config *c)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    config_print(&c->base, f);
    fclose(f);
    return text;
}

T_TEST(config_defaults)
{
    struct config c;
    T_EQ(load(&c, "--no-config", NULL, NULL), 0, "%s", diag.text);
    T_EQ(c.base.action, CONFIG_RUN);
    T_EQ(c.listen.home.n, 1);
    T_STR(c.listen.home.v[0].host, "127.0.0.1");
    T_EQ(c.listen.home.v[0].port, 9000);
    T_EQ(c.listen.snowflake.v[0].port, 9001);
    T_EQ(c.listen.ticket.v[0].port, 9002);
    T_STR(c.state_dir, "./var");
    T_STR(c.store, "sqlite:./var/firn.db");
    T_STR(c.layout, "firn");
    T_OK(c.name && c.name[0]);
    T_EQ(c.loops, 0);
    T_OK(!c.accept_clock);
    T_EQ(c.tickets.default_start, 100001);
    T_EQ(c.tickets.default_mode, CONFIG_TICKET_GAPLESS);
    T_EQ(c.tickets.idem_retention_s, 86400);
    T_EQ(c.limits.connections, 10000);
    T_EQ(c.limits.ids_per_request, 100000);
    T_EQ(c.limits.sequences, 1000000);
    T_EQ(c.limits.header_ms, 10000);
    T_EQ(c.limits.idle_ms, 60000);
    T_EQ(c.limits.notice_ms, 0);
    T_EQ(c.limits.drain_ms, 10000);
    T_EQ(c.log.level, LOG_LEVEL_INFO);
    T_EQ(c.log.format, LOG_FORMAT_TEXT);
    T_OK(!c.tls.cert && !c.tls.key && !c.tls.client_ca);
    T_EQ(c.auth.tokens.n, 0);
    T_EQ(c.rate.per_client, 0);
    T_OK(!c.base.file);
    T_OK(!config_exposed(&c));
    config_free(&c.base);
    config_free(&c.base);
    T_EQ(CONFIG_LOG_JSON, LOG_FORMAT_JSON);
}

T_TEST(config_flag_beats_env_beats_file_beats_default)
{
    struct config c;
    write_file("# a comment\nloops: 1\nlimits:\n  connections: 11\n  header_ms: 12\nname: file\n");
    setenv("FIRN_CONFIG", file_path, 1);
    setenv("FIRN_LIMITS_CONNECTIONS", "21", 1);
    setenv("FIRN_LIMITS_HEADER_MS", "22", 1);
    setenv("FIRN_NAME", "", 1); /* empty: as if it were not there */
    int r = load(&c, "--limits-header-ms=32", NULL, NULL);
    unsetenv("FIRN_CONFIG");
    unsetenv("FIRN_LIMITS_CONNECTIONS");
    unsetenv("FIRN_LIMITS_HEADER_MS");
    unsetenv("FIRN_NAME");
    T_EQ(r, 0, "%s", diag.text);
    T_EQ(c.limits.idle_ms, 60000);
    T_EQ(c.loops, 1);
    T_STR(c.name, "file");
    T_EQ(c.limits.connections, 21);
    T_EQ(c.limits.header_ms, 32);
    T_EQ(source(&c, "limits.idle_ms")->from, CONFIG_DEFAULT);
    T_EQ(source(&c, "loops")->from, CONFIG_FILE);
    T_EQ(source(&c, "loops")->line, 2);
    T_EQ(source(&c, "name")->line, 6);
    T_EQ(source(&c, "limits.connections")->from, CONFIG_ENV);
    T_EQ(source(&c, "limits.header_ms")->from, CONFIG_FLAG);
    char *text = printed(&c);
    T_OK(strstr(text, "# default\n") && strstr(text, "firnd.yaml:2\n"), "%s", text);
    T_OK(strstr(text, "# FIRN_LIMITS_CONNECTIONS\n") && strstr(text, "# --limits-header-ms\n"));
    free(text);
    config_free(&c.base);
}

T_TEST(config_state_dir)
{
    struct config c;
    setenv("STATE_DIRECTORY", "/var/lib/firn:/var/lib/other", 1);
    T_EQ(load(&c, "--no-config", NULL, NULL), 0, "%s", diag.text);
    T_STR(c.state_dir, "/var/lib/firn");
    T_STR(c.store, "sqlite:/var/lib/firn/firn.db");
    config_free(&c.base);
    setenv("FIRN_STATE_DIR", "/data", 1);
    T_EQ(load(&c, "--no-config", NULL, NULL), 0, "%s", diag.text);
    unsetenv("FIRN_STATE_DIR");
    unsetenv("STATE_DIRECTORY");
    T_STR(c.state_dir, "/data");
    T_STR(c.store, "sqlite:/data/firn.db");
    config_free(&c.base);
}

T_TEST(config_a_member_has_no_store_of_its_own)
{
    static const char *const asks[] = { "--cluster-init", "--cluster-join=10.0.0.1:9003",
                                        "--cluster-restore" };
    struct config c;
    for (size_t i = 0; i < T_LEN(asks); i++) {
        T_EQ(load(&c, "--no-config", asks[i], NULL), 0, "%s", diag.text);
        T_STR(c.store, "raft:", "%s", asks[i]);
        config_free(&c.base);
        T_EQ(load(&c, "--no-config", asks[i], "--store=raft:"), 0, "%s", diag.text);
        config_free(&c.base);
        T_EQ(load(&c, "--no-config", asks[i], "--store=sqlite:x.db"), FIRN_EINVAL);
        T_OK(strstr(diag.text, "leave the store out"), "%s", diag.text);
        T_OK(strncmp(diag.text, asks[i], 14) == 0, "%s", diag.text);
    }
}

T_TEST(config_flags)
{
    struct config c;
    T_EQ(load(&c, "--no-config", "--loops", "3"), 0, "%s", diag.text);
    T_EQ(c.loops, 3);
    config_free(&c.base);
    T_EQ(load(&c, "--no-config", "--accept-clock", "--store=memory:"), 0, "%s", diag.text);
    T_OK(c.accept_clock);
    T_STR(c.store, "memory:");
    config_free(&c.base);
    T_EQ(load(&c, "--no-config", "--accept-clock", "--no-accept-clock"), 0, "%s", diag.text);
    T_OK(!c.accept_clock);
    config_free(&c.base);
    T_EQ(load(&c, "--no-config", "--accept-clock=no", "--tls-cert="), 0, "%s", diag.text);
    config_free(&c.base);
    T_EQ(load(&c, "--no-config", "--listen-home=[::1]:0, localhost:80,*:1", "--listen-ticket=none"),
         0, "%s", diag.text);
    T_EQ(c.listen.home.n, 3);
    T_STR(c.listen.home.v[0].host, "::1");
    T_EQ(c.listen.home.v[0].port, 0);
    T_STR(c.listen.home.v[1].host, "localhost");
    T_STR(c.listen.home.v[2].host, "*");
    T_EQ(c.listen.ticket.n, 0);
    T_OK(config_exposed(&c));
    config_free(&c.base);

    static const struct {
        const char *flag;
        enum config_action action;
    } actions[] = { { "--help", CONFIG_HELP },
                    { "-h", CONFIG_HELP },
                    { "--version", CONFIG_VERSION },
                    { "--print-config", CONFIG_PRINT },
                    { "--check-config", CONFIG_CHECK } };
    for (size_t i = 0; i < T_LEN(actions); i++) {
        T_EQ(load(&c, "--no-config", actions[i].flag, NULL), 0, "%s", diag.text);
        T_EQ(c.base.action, actions[i].action, "%s", actions[i].flag);
        config_free(&c.base);
    }
}

/* Every name gives one flag and one variable, and no two give the same. */
T_TEST(config_names_are_distinct)
{
    for (size_t i = 0; i < firnd_config.settings_n; i++) {
        char flag[SETTING_NAME_BUF], env[SETTING_NAME_BUF], other[SETTING_NAME_BUF];
        setting_flag(&firnd_config.settings[i], flag);
        setting_env(&firnd_config, &firnd_config.settings[i], env);
        for (size_t j = 0; j < i; j++) {
            setting_flag(&firnd_config.settings[j], other);
            T_OK(strcmp(flag, other) != 0, "%s", flag);
            setting_env(&firnd_config, &firnd_config.settings[j], other);
            T_OK(strcmp(env, other) != 0, "%s", env);
        }
        if (i > 0) { /* sections stand together: the schema relies on it */
            size_t len = setting_section_len(firnd_config.settings[i].name);
            for (size_t j = 0; j + 1 < i && len; j++)
                if (strncmp(firnd_config.settings[j].name, firnd_config.settings[i].name,
                            len + 1) == 0)
                    T_OK(strncmp(firnd_config.settings[i - 1].name, firnd_config.settings[i].name,
                                 len + 1) == 0,
                         "%s", firnd_config.settings[i].name);
        }
    }
}

T_TEST(config_bad_values)
{
    static const struct {
        const char *flag;
        int error;
        const char *says;
    } bad[] = {
        { "--loops=x", FIRN_EFORMAT, "--loops: 'x' is not a whole number; give one from 0 to 256" },
        { "--loops=257", FIRN_ERANGE, "'257' is out of bounds" },
        { "--loops=-1", FIRN_EFORMAT, "'-1'" },
        { "--loops=1.5", FIRN_EFORMAT, "'1.5'" },
        { "--loops=_1", FIRN_EFORMAT, "'_1'" },
        { "--loops=1_", FIRN_EFORMAT, "'1_'" },
        { "--loops=", FIRN_EFORMAT, "''" },
        { "--limits-connections=0", FIRN_ERANGE, "from 1 to 1000000" },
        { "--http-hosts=http://a", FIRN_EFORMAT, "'http://a' is no host name" },
        { "--http-hosts=a,,b", FIRN_EFORMAT, "an entry is empty" },
        { "--http-hosts=a, ", FIRN_EFORMAT, "the list ends with a comma" },
        { "--http-origins=app.example.com", FIRN_EFORMAT, "is no origin" },
        { "--http-origins=https://app.example.com/", FIRN_EFORMAT, "is no origin" },
        { "--limits-connections=99999999999999999999999", FIRN_ERANGE, "out of bounds" },
        { "--tickets-default-start=18446744073709551615", FIRN_ERANGE, "9223372036854775807" },
        { "--limits-ids-per-request=0", FIRN_ERANGE, "from 1" },
        { "--limits-header-ms=0", FIRN_ERANGE, "from 10" },
        { "--limits-idle-ms=x", FIRN_EFORMAT, "--limits-idle-ms" },
        { "--limits-drain-ms=x", FIRN_EFORMAT, "--limits-drain-ms" },
        { "--rate-per-client=x", FIRN_EFORMAT, "--rate-per-client" },
        { "--rate-burst=0", FIRN_ERANGE, "from 1" },
        { "--tracing-endpoint=127.0.0.1:4318", FIRN_EFORMAT, "http:// or https://" },
        { "--tracing-sample=2", FIRN_EFORMAT, "'2' is no ratio" },
        { "--tracing-sample=-1", FIRN_EFORMAT, "'-1' is no ratio" },
        { "--tracing-sample=nan", FIRN_EFORMAT, "'nan' is no ratio" },
        { "--tracing-sample=0.5x", FIRN_EFORMAT, "is no ratio" },
        { "--tracing-sample=.", FIRN_EFORMAT, "is no ratio" },
        { "--tracing-sample=0.5", FIRN_EINVAL, "needs tracing.endpoint" },
        { "--tracing-tls-ca=/dev/null", FIRN_EINVAL, "needs an https:// URL" },
        { "--tracing-queue=1", FIRN_ERANGE, "from 16" },
        { "--accept-clock=maybe", FIRN_EFORMAT, "'maybe' is neither true nor false" },
        { "--tickets-default-mode=fast", FIRN_EFORMAT, "gapless|range" },
        { "--log-level=loud", FIRN_EFORMAT, "error|warn|info|debug" },
        { "--log-level=", FIRN_EFORMAT, "error|warn|info|debug" },
        { "--log-format=xml", FIRN_EFORMAT, "text|json" },
        { "--layout=twiter", FIRN_ENOENT, "'twiter' is no layout: no preset has this name" },
        { "--layout=time:99", FIRN_ERANGE, "width is above 64" },
        { "--store=mysql:x", FIRN_EFORMAT, "sqlite:FILE" },
        { "--store=sqlite:", FIRN_EFORMAT, "lacks its file" },
        { "--store=", FIRN_EFORMAT, "empty" },
        { "--state-dir=", FIRN_EFORMAT, "empty" },
        { "--state-dir=a\nb", FIRN_EFORMAT, "'a?b' has a control character" },
        { "--name=a b", FIRN_EFORMAT, "'a b' is no name" },
        { "--listen-home=9000", FIRN_EFORMAT, "HOST:PORT" },
        { "--listen-home=:9000", FIRN_EFORMAT, "HOST:PORT" },
        { "--listen-home=::1:9000", FIRN_EFORMAT, "brackets" },
        { "--listen-home=[]:9000", FIRN_EFORMAT, "no usable host" },
        { "--listen-home=a b:9000", FIRN_EFORMAT, "no usable host" },
        { "--listen-home=a:", FIRN_ERANGE, "port from 0 to 65535" },
        { "--listen-home=a:65536", FIRN_ERANGE, "port" },
        { "--listen-home=a:9x", FIRN_ERANGE, "port" },
        { "--listen-home=a:1,", FIRN_EFORMAT, "comma" },
        { "--listen-home=a:1,,b:1", FIRN_EFORMAT, "HOST:PORT" },
        { "--listen-home=a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9,a:10,a:11,a:12,a:13,a:14,a:15,a:16,a:17",
          FIRN_ERANGE, "more than 16" },
        { "--listen-home=127.0.0.1:9002", FIRN_ECONFLICT, "also in listen.home" },
        { "--listen-home=a:5,A:5", FIRN_ECONFLICT, "each needs its own" },
        { "--worker=1024", FIRN_ERANGE, "1024 is too large; the layout has the slots 0 to 1023" },
        { "--worker=99999", FIRN_ERANGE, "the slots 0 to 1023" },
        { "--worker-id=-1", FIRN_EFORMAT, "is no slot" },
        { "--peers=127.0.0.1:0", FIRN_ERANGE, "--peers: 127.0.0.1 has port 0" },
        { "--peers=10.0.0.2:9000,a:0", FIRN_ERANGE, "a has port 0" },
        { "--tls-cert=/dev/null", FIRN_EINVAL, "--tls-cert: needs tls.key too" },
        { "--tls-key=/dev/null", FIRN_EINVAL, "needs tls.cert too" },
        { "--tls-client-ca=/dev/null", FIRN_EINVAL, "needs tls.cert and tls.key" },
        { "--auth-tokens=x", FIRN_EINVAL, "only be set in the file" },
        { "--listn-home=x", FIRN_EINVAL, "did you mean --listen-home" },
        { "--chek-config", FIRN_EINVAL, "did you mean --check-config" },
        { "--conifg", FIRN_EINVAL, "did you mean --config" },
        { "--loops", FIRN_EINVAL, "--loops lacks its value" },
        { "--config", FIRN_EINVAL, "lacks the file" },
        { "--qqqqqqq", FIRN_EINVAL, "--help lists them" },
        { "extra", FIRN_EINVAL, "'extra'" },
        { "", FIRN_EINVAL, "''" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct config c;
        T_EQ(load(&c, "--no-config", bad[i].flag, NULL), bad[i].error, "%s: %s", bad[i].flag,
             diag.text);
        T_OK(strstr(diag.text, bad[i].says), "%s: %s", bad[i].flag, diag.text);
        T_OK(!c.layout && !c.base.file, "%s leaves nothing behind", bad[i].flag);
    }
    struct config c;
    T_EQ(load(&c, "--no-config", "--tls-cert=/nonexistent/x", "--tls-key=/dev/null"), FIRN_ENOENT);
    T_OK(strstr(diag.text, "--tls-cert: /nonexistent/x: No such file"), "%s", diag.text);
    T_EQ(load(&c, "--config=/nonexistent/firnd.yaml", NULL, NULL), FIRN_ENOENT);
    T_OK(strstr(diag.text, "/nonexistent/firnd.yaml: No such file"), "%s", diag.text);
    T_EQ(load(&c, "--config=/", NULL, NULL), FIRN_EIO, "%s", diag.text);
    setenv("FIRN_LOOPS", "many", 1);
    T_EQ(load(&c, "--no-config", "--loops=1", NULL), FIRN_EFORMAT); /* though a flag would win */
    unsetenv("FIRN_LOOPS");
    T_OK(strstr(diag.text, "FIRN_LOOPS: 'many'"), "%s", diag.text);
    static const char *const none[] = { "--listen-home=none", "--listen-snowflake=none",
                                        "--listen-ticket=" };
    T_EQ(load(&c, none[0], none[1], none[2]), FIRN_EINVAL);
    T_OK(strstr(diag.text, "the server needs one"), "%s", diag.text);
}

T_TEST(config_bad_yaml)
{
    static const struct {
        const char *yaml;
        int error;
        const char *says;
    } bad[] = {
        { "a: b: c\n", FIRN_EFORMAT, "firnd.yaml:1: this is not YAML" },
        { "layout: firn\n\tname: x\n", FIRN_EFORMAT, "firnd.yaml:2: this is not YAML" },
        { "listen:\n  home: [a\nname: x\n", FIRN_EFORMAT, "firnd.yaml:3:" },
        { "layout: \xff\n", FIRN_EFORMAT, "firnd.yaml: byte 9:" },
        { "layout: a\1b\n", FIRN_EFORMAT, "control characters are not allowed" },
        { "- a\n", FIRN_EFORMAT, "firnd.yaml:1: expected settings" },
        { "just text\n", FIRN_EFORMAT, "firnd.yaml:1: expected settings" },
        { "layout: firn\n---\nlayout: firn\n", FIRN_EFORMAT, "firnd.yaml:3: a second document" },
        { "layout: &a firn\nname: *a\n", FIRN_ENOTSUP, "firnd.yaml:2: aliases (*a)" },
        { "layout: firn\nlayout: firn\n", FIRN_EFORMAT, "firnd.yaml:2: 'layout' is there twice" },
        { "? [a]\n: b\n", FIRN_EFORMAT, "firnd.yaml:1: a key must be a word" },
        { "loops: 1\nlimit:\n  connections: 1\n", FIRN_EFORMAT,
          "firnd.yaml:2: there is no setting 'limit'; did you mean limits" },
        { "limits:\n  conections: 1\n", FIRN_EFORMAT,
          "firnd.yaml:2: there is no setting 'limits.conections'; did you mean limits.connections" },
        { "snowflake: [a:1]\n", FIRN_EFORMAT, "did you mean listen.snowflake" },
        { "listen.home: [a:1]\n", FIRN_EFORMAT, "write listen: and, indented below it, home:" },
        { "zzzzzzzzzz: 1\n", FIRN_EFORMAT, "firnd --help lists them" },
        { "limits:\n  listen:\n    home: 1\n", FIRN_EFORMAT, "no setting 'limits.listen'" },
        { "limits: 1\n", FIRN_EFORMAT, "firnd.yaml:1: limits: this takes keys of its own" },
        { "layout: [firn]\n", FIRN_EFORMAT, "firnd.yaml:1: layout: this takes one value" },
        { "layout:\n  a: 1\n", FIRN_EFORMAT, "layout: this takes one value" },
        { "listen:\n  home: 127.0.0.1:1\n", FIRN_EFORMAT,
          "firnd.yaml:2: listen.home: this takes a list" },
        { "listen:\n  home: [[a]]\n", FIRN_EFORMAT, "each entry of the list is one value" },
        { "listen:\n  home: [\"\"]\n", FIRN_EFORMAT, "an entry is empty" },
        { "listen:\n  home: [a:1, 9000]\n", FIRN_EFORMAT, "firnd.yaml:2: listen.home: '9000'" },
        { "name: \"a\\0b\"\n", FIRN_EFORMAT, "firnd.yaml:1: name: the value has a NUL" },
        { "name: \"\"\n", FIRN_EFORMAT, "firnd.yaml:1: name: the value is empty" },
        { "\n\nlimits:\n  connections: 10k\n", FIRN_EFORMAT,
          "firnd.yaml:4: limits.connections: '10k' is not a whole number; give one from 1" },
        { "limits:\n  connections: 0\n", FIRN_ERANGE, "firnd.yaml:2: limits.connections: '0'" },
        { "tls:\n  cert: /dev/null\n", FIRN_EINVAL,
          "firnd.yaml:2: tls.cert: needs tls.key too, its private key (column 9)" },
        { "auth:\n  tokens: x\n", FIRN_EFORMAT, "auth.tokens: this takes a list" },
        { "auth:\n  tokens: [x]\n", FIRN_EFORMAT, "auth.tokens: this takes keys" },
        { "auth:\n  tokens:\n    - nam: x\n", FIRN_EFORMAT,
          "firnd.yaml:3: auth.tokens: there is no 'nam'" },
        { "auth:\n  tokens: [{}]\n", FIRN_EFORMAT, "entry 1 needs a name" },
        { "auth:\n  tokens: [{ name: }]\n", FIRN_EFORMAT, "name: there is no value" },
        { "auth:\n  tokens: [{ name: [x] }]\n", FIRN_EFORMAT, "name: this takes one value" },
        { "auth:\n  tokens: [{ name: x }]\n", FIRN_EFORMAT, "'x': token_sha256: it is missing" },
        { "auth:\n  tokens: [{ name: x, token_sha256: abc }]\n", FIRN_EFORMAT, "64 hex digits" },
        { "auth:\n  tokens: [{ name: x, kinds: snowflake }]\n", FIRN_EFORMAT,
          "kinds: this takes a list" },
        { "auth:\n  tokens: [{ name: x, kinds: [[a]] }]\n", FIRN_EFORMAT, "each entry" },
        { "auth:\n  tokens: [{ name: x, token_sha256: " SHA_OF_TEST " }]\n", FIRN_EFORMAT,
          "'x': kinds: the token may mint nothing" },
        { "auth:\n  tokens: [{ name: x, token_sha256: " SHA_OF_TEST ", kinds: [snowflakes] }]\n",
          FIRN_EFORMAT, "there is no kind 'snowflakes'" },
        { "auth:\n  tokens: [{ name: x, token_sha256: " SHA_OF_TEST ", sequences: [a b] }]\n",
          FIRN_EFORMAT, "'a b' names no sequence" },
        { "auth:\n  tokens:\n"
          "    - { name: x, token_sha256: " SHA_OF_TEST ", kinds: ['*'] }\n"
          "    - { name: x, token_sha256: " SHA_OF_TEST ", kinds: ['*'] }\n",
          FIRN_EFORMAT, "'x': name: the name is there twice" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct config c;
        T_EQ(load_yaml(&c, bad[i].yaml), bad[i].error, "%s: %s", bad[i].yaml, diag.text);
        T_OK(strstr(diag.text, bad[i].says), "%s says: %s", bad[i].yaml, diag.text);
        T_OK(!c.layout && !c.base.file);
    }
}

#ifdef FIRN_HAVE_RAFT
/* What a start would refuse is refused by --check-config, too. */
T_TEST(config_cluster_goes_together)
{
    static const struct {
        const char *yaml;
        const char *why; /* NULL: it is good */
    } c[] = {
        { "store: 'raft:'\n", NULL },
        { "store: 'raft:'\ncluster:\n  init: true\n", NULL },
        { "store: 'raft:'\ncluster:\n  join: [10.0.0.1:9003]\n  standby: true\n", NULL },
        { "store: 'raft:'\ncluster:\n  listen: 10.0.0.1:9003\n  plain: true\n", NULL },
        { "store: 'raft:'\ncluster:\n  listen: 10.0.0.1:9003\n", "cluster.tls_cert" },
        { "store: 'raft:'\ncluster:\n  address: 10.0.0.1:9003\n", "cluster.plain" },
        { "store: 'raft:'\ncluster:\n  tls_ca: /dev/null\n", "all three" },
        { "store: 'raft:'\ncluster:\n  init: true\n  join: [10.0.0.1:9003]\n", NULL },
        { "store: 'raft:'\ncluster:\n  init: true\n  standby: true\n", "cluster.standby" },
        { "store: 'raft:'\ncluster:\n  init: true\n  restore: true\n", "cluster.restore" },
        { "store: 'raft:'\ncluster:\n  init: true\n  standby: true\n", "cluster.standby" },
        { "cluster:\n  listen: 10.0.0.1:9003\n", NULL }, /* no member: nothing listens there */
    };
    for (size_t i = 0; i < T_LEN(c); i++) {
        struct config got;
        T_EQ(load_yaml(&got, c[i].yaml), c[i].why ? FIRN_EINVAL : 0, "%s: %s", c[i].yaml,
             diag.text);
        if (c[i].why)
            T_OK(strstr(diag.text, c[i].why), "%s: %s", c[i].yaml, diag.text);
        else
            config_free(&got.base);
    }
}
#endif

T_TEST(config_empty_yaml)
{
    static const char *const empty[] = {
        "",
        "\n",
        "# nothing\n",
        "---\n",
        "---\n...\n",
        "~\n",
        "tls:\n",
        "tls:\n  cert:\n",
        "listen:\n  home: ~\nname: null\n",
        "auth:\n  tokens: []\n",
        "{}\n",
    };
    for (size_t i = 0; i < T_LEN(empty); i++) {
        struct config c;
        T_EQ(load_yaml(&c, empty[i]), 0, "'%s': %s", empty[i], diag.text);
        T_EQ(c.listen.home.n, 1, "'%s'", empty[i]);
        T_OK(c.name && c.name[0]);
        config_free(&c.base);
    }
}

T_TEST(config_yaml_values)
{
    struct config c;
    T_EQ(load_yaml(&c, "listen:\n"
                       "  home: ['[::1]:1', 10.0.0.1:2]\n"
                       "  ticket: []\n"
                       "accept_clock: yes\n"
                       "tickets: { default_start: 1_000, default_mode: range }\n"
                       "log: { level: debug, format: json }\n"
                       "tls: { cert: /dev/null, key: '/dev/null', client_ca: \"/dev/null\" }\n"
                       "layout: twitter\n"
                       "http: { hosts: [a.example, b], origins: ['*'] }\n"
                       "auth:\n"
                       "  admins: [ops]\n"
                       "  tokens:\n"
                       "    - name: billing\n"
                       "      token_sha256: " SHA_OF_TEST "\n"
                       "      kinds: [snowflake, uuid*]\n"
                       "    - name: all\n"
                       "      token_sha256: " SHA_OF_TEST "\n"
                       "      kinds: ['*']\n"
                       "      sequences: [invoices, orders-*]\n"),
         0, "%s", diag.text);
    T_EQ(c.listen.home.n, 2);
    T_STR(c.listen.home.v[0].host, "::1");
    T_STR(c.listen.home.v[1].host, "10.0.0.1");
    T_EQ(c.listen.ticket.n, 0);
    T_OK(c.accept_clock);
    T_EQ(c.tickets.default_start, 1000);
    T_EQ(c.tickets.default_mode, CONFIG_TICKET_RANGE);
    T_EQ(c.log.level, LOG_LEVEL_DEBUG);
    T_EQ(c.log.format, LOG_FORMAT_JSON);
    T_STR(c.tls.client_ca, "/dev/null");
    T_EQ(c.http.hosts.n, 2);
    T_STR(c.http.hosts.v[0], "a.example");
    T_STR(c.http.hosts.v[1], "b");
    T_EQ(c.http.origins.n, 1);
    T_STR(c.http.origins.v[0], "*");
    T_STR(c.auth.admins.v[0], "ops");
    T_EQ(c.auth.tokens.n, 2);
    const struct config_token *t = c.auth.tokens.v;
    T_STR(t[0].name, "billing");
    T_EQ(t[0].sha256[0], 0x9f);
    T_EQ(t[0].sha256[31], 0x08);
    T_OK(config_scope_allows(&t[0].kinds, "snowflake", 9));
    T_OK(config_scope_allows(&t[0].kinds, "uuidv7", 6));
    T_OK(!config_scope_allows(&t[0].kinds, "ulid", 4));
    T_OK(!config_scope_allows(&t[0].kinds, "snowflakes", 10));
    T_OK(!config_scope_allows(&t[0].sequences, "invoices", 8));
    T_OK(config_scope_allows(&t[1].kinds, "", 0));
    T_OK(config_scope_allows(&t[1].sequences, "orders-7", 8));
    T_OK(!config_scope_allows(&t[1].sequences, "orders", 6));
    T_OK(!config_exposed(&c));

    /* What is printed can be loaded, and prints the same but for the origins. */
    char *first = printed(&c);
    config_free(&c.base);
    T_EQ(load_yaml(&c, first), 0, "%s\n%s", diag.text, first);
    char *second = printed(&c);
    config_free(&c.base);
    char *a = first, *b = second;
    while (*a && *b) {
        size_t n = strcspn(a, "#\n"), m = strcspn(b, "#\n");
        T_OK(n == m && memcmp(a, b, n) == 0, "%.60s | %.60s", a, b);
        a = strchr(a, '\n') + 1;
        b = strchr(b, '\n') + 1;
    }
    T_OK(!*a && !*b);
    free(first);
    free(second);
}

T_TEST(config_exposed_says_why)
{
    struct config c;
    T_EQ(load(&c, "--no-config", "--listen-home=*:9000", NULL), 0);
    T_OK(strstr(config_exposed(&c), "auth.tokens"));
    config_free(&c.base);
    T_EQ(load(&c, "--no-config", "--listen-home=127.evil.example:9000", NULL), 0);
    T_OK(config_exposed(&c));
    config_free(&c.base);
    T_EQ(load(&c, "--no-config", "--listen-home=localhost:1,[::1]:1,127.9.9.9:1", NULL), 0);
    T_OK(!config_exposed(&c));
    config_free(&c.base);
    T_EQ(load_yaml(&c, "listen: { home: [10.0.0.1:1] }\nauth:\n  tokens:\n    - { name: x, "
                       "token_sha256: " SHA_OF_TEST ", kinds: [ulid] }\n"),
         0, "%s", diag.text);
    T_OK(strstr(config_exposed(&c), "unencrypted"));
    config_free(&c.base);
}

T_TEST(config_reload_applies_what_it_can)
{
    struct config old, next;
    struct config_change change[CONFIG_SETTINGS_MAX];
    size_t n = 99;
    T_EQ(load_yaml(&old, "log: { level: info }\nlisten: { home: [127.0.0.1:1] }\nname: a\n"), 0);

    T_EQ(config_reload(&old.base, &next.base, change, &n, &diag), 0, "%s", diag.text);
    T_EQ(n, 0);
    config_free(&next.base);

    write_file("log: { level: debug }\nlisten: { home: [127.0.0.1:2, 127.0.0.1:3] }\nname: b\n"
               "loops: 7\naccept_clock: true\ntickets: { default_mode: range }\n"
               "tls: { cert: /dev/null, key: /dev/null }\n"
               "auth:\n  tokens: [{ name: x, token_sha256: " SHA_OF_TEST ", kinds: ['*'] }]\n");
    T_EQ(config_reload(&old.base, &next.base, change, &n, &diag), 0, "%s", diag.text);
    static const struct config_change expect[] = {
        { "name", false },
        { "loops", false },
        { "accept_clock", false },
        { "listen.home", false },
        { "tickets.default_mode", false },
        { "log.level", true },
        { "tls.cert", true },
        { "tls.key", true },
        { "auth.tokens", true },
    };
    T_EQ(n, T_LEN(expect));
    for (size_t i = 0; i < n; i++) {
        T_STR(change[i].name, expect[i].name);
        T_EQ(change[i].applied, expect[i].applied, "%s", change[i].name);
    }
    T_EQ(next.log.level, LOG_LEVEL_DEBUG);
    T_EQ(next.listen.home.n, 1);
    T_EQ(next.listen.home.v[0].port, 1);
    T_STR(next.name, "a");
    T_EQ(next.loops, 0);
    T_OK(!next.accept_clock);
    T_EQ(next.tickets.default_mode, CONFIG_TICKET_GAPLESS);
    T_STR(next.tls.cert, "/dev/null");
    T_EQ(next.auth.tokens.n, 1);
    config_free(&next.base);

    write_file("log: { level: loud }\n");
    n = 99;
    T_EQ(config_reload(&old.base, &next.base, change, &n, &diag), FIRN_EFORMAT);
    T_OK(strstr(diag.text, "firnd.yaml:1: log.level: 'loud'"), "%s", diag.text);
    T_EQ(n, 99);
    T_EQ(old.log.level, LOG_LEVEL_INFO);
    config_free(&old.base);
}

T_TEST(config_refuses_variables_that_are_no_setting)
{
    static const struct {
        const char *name, *value, *says; /* says NULL: fine */
    } row[] = {
        { "FIRN_LISTN_HOME", "x",
          "firnd: FIRN_LISTN_HOME is no setting; did you mean FIRN_LISTEN_HOME?" },
        { "FIRN_LEVEL", "debug", "firnd: FIRN_LEVEL is no setting; did you mean FIRN_LOG_LEVEL?" },
        { "FIRN_PORT", "9000", "firnd: FIRN_PORT is no setting: unset it; firnd --help lists" },
        { "FIRN_WHATEVER", "", NULL }, /* empty: not set */
        { "FIRN_PORT", "tcp://10.0.0.1:9000", NULL },
        { "FIRN_SERVICE_HOST", "10.0.0.1", NULL }, /* Kubernetes, for a service named firn */
        { "FIRN_PORT_9000_TCP_ADDR", "10.0.0.1", NULL },
        { "FIRN_TEST_QUICK", "1", NULL },
        { "FIRN_FENCING_TOKEN", "7", NULL }, /* it runs under firn elect */
        { "FIRNS_OWN", "x", NULL },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        char *text = NULL;
        size_t size, links = 99;
        FILE *f = open_memstream(&text, &size);
        setenv(row[i].name, row[i].value, 1);
        T_EQ(config_strangers(&firnd_config, &links, f), row[i].says != NULL, "%s", row[i].name);
        unsetenv(row[i].name);
        fclose(f);
        T_OK(links <= 1, "%zu", links);
        T_OK(row[i].says ? strstr(text, row[i].says) == text : text[0] == '\0', "%s", text);
        free(text);
    }
}

/* firn and firnd may run in one environment: firn must not refuse a setting of firnd. */
T_TEST(config_settings_are_known_to_firn)
{
    for (size_t i = 0; i < firnd_config.settings_n; i++) {
        char name[SETTING_NAME_BUF];
        setting_env(&firnd_config, &firnd_config.settings[i], name);
        T_OK(variable_of_firnd(name), "%s: add it to src/wire/variables.c", name);
    }
}

T_TEST(config_help_names_every_flag)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    config_help(&firnd_config, f);
    fclose(f);
    for (size_t i = 0; i < firnd_config.settings_n; i++) {
        char flag[SETTING_NAME_BUF];
        setting_flag(&firnd_config.settings[i], flag);
        T_OK(strstr(text, firnd_config.settings[i].type == SETTING_ENTRIES
                              ? firnd_config.settings[i].name
                              : flag),
             "%s", flag);
    }
    free(text);
}

/* The example as it is says what the defaults are; with the settings that are off turned on, it has
 * every one. */
T_TEST(config_example_has_every_default)
{
    struct config c, defaults;
    T_EQ(load(&defaults, "--no-config", NULL, NULL), 0);
    T_EQ(load(&c, "--config=" TREE "/deploy/firnd.yaml", NULL, NULL), 0, "%s", diag.text);
    char *a = printed(&c), *b = printed(&defaults);
    for (char *p = a, *q = b; *p || *q;) {
        size_t n = strcspn(p, "#\n"), m = strcspn(q, "#\n");
        T_OK(n == m && memcmp(p, q, n) == 0, "%.40s | %.40s", p, q);
        p = strchr(p, '\n') + 1;
        q = strchr(q, '\n') + 1;
    }
    free(a);
    free(b);
    config_free(&c.base);

    char *text = read_text(TREE "/deploy/firnd.yaml"), *to = text;
    for (char *p = text; *p; p++) {
        bool off = *p == '#' && p[1] > ' ' && (p == text || p[-1] == '\n' || p[-1] == ' ');
        if (!off)
            *to++ = *p;
    }
    *to = '\0';
    c = (struct config){ .base.program = &firnd_config };
    T_EQ(config_yaml_read(&c.base, text, strlen(text), &diag), 0, "%s", diag.text);
    for (size_t i = 0; i < firnd_config.settings_n; i++)
        T_EQ(c.base.source[i].from, CONFIG_FILE, "%s is missing in the example",
             firnd_config.settings[i].name);
    config_free(&c.base);
    config_free(&defaults.base);
}

/* The man page has a line "*name*: ..." for each setting and for nothing else, and says which of
 * them can be reloaded. */
T_TEST(config_man_page_is_complete)
{
    size_t found = 0;
    char *text = read_text(TREE "/man/firnd.yaml.5.scd");
    for (char *p = strstr(text, "# GENERAL"); p; p = strstr(p, "\n*")) {
        p += 2;
        size_t len = strcspn(p, "*\n"), i = 0;
        if (p[len] != '*' || p[len + 1] != ':')
            continue;
        while (i < firnd_config.settings_n && (strlen(firnd_config.settings[i].name) != len ||
                                               memcmp(firnd_config.settings[i].name, p, len) != 0))
            i++;
        T_OK(i < firnd_config.settings_n, "the page describes %.*s, which does not exist", (int)len,
             p);
        const char *end = strstr(p, "\n\n");
        const char *mark = strstr(p, "_reload_");
        T_EQ(mark && mark < end, (firnd_config.settings[i].flags & SETTING_RELOAD) != 0,
             "%s: reload", firnd_config.settings[i].name);
        if (firnd_config.settings[i].preset) { /* and the default */
            char value[64];
            snprintf(value, sizeof value, "Default: %s", firnd_config.settings[i].preset);
            const char *says = strstr(p, value);
            T_OK(says && says < end, "%s: %s", firnd_config.settings[i].name, value);
        }
        found++;
    }
    T_EQ(found, firnd_config.settings_n);
}
