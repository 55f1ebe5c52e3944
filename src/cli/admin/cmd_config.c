/* firn config: shared values by name: get, set, list, and watch them for changes. */
#include "cli/commands.h"
#include "cli/admin/coord_opts.h"
#include "cli/child.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/when.h"
#include "wire/json_write.h"
#include "drive/variable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 1000, RETRY_MS = 1000 };

struct config {
    const char *store, *by;
    uint64_t if_revision, after;
    bool json, once;
};

static const struct opt opts[] = {
    OPT_STORE(struct config, store),
    { .name = "if-revision",
      .type = OPT_NUMBER,
      .at = offsetof(struct config, if_revision),
      .value = "N",
      .max = INT64_MAX,
      .about = "set: only if the value has this revision; 0: only if it was never set" },
    { .name = "by",
      .type = OPT_TEXT,
      .at = offsetof(struct config, by),
      .value = "ME",
      .about = "set: who sets it (default host:pid)" },
    { .name = "after",
      .type = OPT_NUMBER,
      .at = offsetof(struct config, after),
      .value = "N",
      .max = INT64_MAX,
      .about = "watch: begin with the revision after this one (default 0: the current one)" },
    { .name = "once",
      .at = offsetof(struct config, once),
      .about = "watch: end after the first value" },
    OPT_JSON(struct config, json),
    { .name = NULL },
};

const struct usage config_usage = {
    .name = "config",
    .examples = "  firn config set rate-limit 500\n"
                "  firn config get rate-limit\n"
                "  firn config set rate-limit 600 --if-revision 1\n"
                "  firn config watch rate-limit -- sh -c 'reload --rate \"$FIRN_CONFIG_VALUE\"'\n",
    .synopsis =
        "firn config get NAME [--store URL] [--json]\n"
        "       firn config set NAME VALUE|- [--if-revision N] [--by ME] [--store URL]\n"
        "       firn config watch NAME [--after N] [--once] [--store URL] [-- COMMAND ...]\n"
        "       firn config list [--store URL] [--json]",
    .about =
        "Values of up to 768 bytes, without NUL, that all users of a store share. Each change\n"
        "increases the revision by one. watch prints each new value, or runs the command with\n"
        "FIRN_CONFIG_NAME, FIRN_CONFIG_VALUE and FIRN_CONFIG_REVISION in its environment, one\n"
        "run after the other; when values change faster than that, only the last is seen.\n",
    .operands = "get set watch list",
    .opts = opts,
};

static int fail(const char *name, int error, const struct firn_diag *d)
{
    if (error == FIRN_ENOENT)
        return say_failed("'%s' was never set: firn config list shows the names that are", name);
    return say_trouble("'%s': %s", name, d->text[0] ? d->text : firn_error_message(error));
}

static void print_json(const char *name, const struct variable *s)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_text(&j, "name", name);
    json_count(&j, "revision", s->revision);
    json_text(&j, "by", s->by);
    json_count(&j, "at_ms", s->at);
    json_bytes(&j, "value", s->value, s->length);
    json_end(&j, '}');
    output_json(&j, stdout);
}

static void print(const struct config *c, const char *name, const struct variable *s)
{
    if (c->json) {
        print_json(name, s);
        return;
    }
    fwrite(s->value, 1, s->length, stdout);
    if (s->length == 0 || s->value[s->length - 1] != '\n')
        putchar('\n');
}

static int get(const struct config *c, struct firn_store *store, char **args, int count)
{
    struct variable s;
    struct firn_diag d = { 0 };
    if (count != 1)
        return say_trouble("usage: firn config get NAME");
    int error = variable_get(store, args[0], &s, &d);
    if (error)
        return fail(args[0], error, &d);
    print(c, args[0], &s);
    return output_finish(STATUS_OK);
}

/* A value, or "-" for standard input without its last newline. */
static int value_of(const char *arg, char buf[VARIABLE_VALUE_MAX + 3], struct variable_write *w)
{
    w->value = arg;
    w->value_len = strlen(arg);
    if (strcmp(arg, "-") != 0)
        return -1;
    w->value = buf;
    w->value_len = fread(buf, 1, VARIABLE_VALUE_MAX + 2, stdin);
    if (ferror(stdin))
        return say_trouble("cannot read standard input: %s", strerror(errno));
    if (w->value_len > 0 && buf[w->value_len - 1] == '\n')
        w->value_len--;
    return -1;
}

static int set(const struct config *c, struct firn_store *store, char **args, int count)
{
    char buf[VARIABLE_VALUE_MAX + 3], by[RECORD_NAME_MAX + 1];
    struct variable s;
    struct firn_diag d = { 0 };
    if (count != 2)
        return say_trouble(
            "usage: firn config set NAME VALUE; - reads the value from standard input");
    if (!coord_name(c->by, by))
        return STATUS_TROUBLE;
    struct variable_write w = { .name = args[0],
                                .by = by,
                                .if_revision = c->if_revision,
                                .unix_ms = (uint64_t)when_now_us() / 1000 };
    int r = value_of(args[1], buf, &w);
    if (r >= 0)
        return r;
    int error = variable_set(store, &w, &s, &d);
    if (error == FIRN_ECONFLICT && c->if_revision != VARIABLE_ANY_REVISION)
        return say_failed("'%s' has revision %" PRIu64 ", not %" PRIu64
                          ": it was changed in between; get the new value and try again",
                          w.name, s.revision, c->if_revision);
    if (error)
        return fail(args[0], error, &d);
    if (c->json)
        print_json(args[0], &s);
    else
        say_note("'%s' has revision %" PRIu64 " now", w.name, s.revision);
    return output_finish(STATUS_OK);
}

/* Run the command for a value and wait for it. A failure of the command is reported, then watching
 * continues. */
static int run_command(const char *name, const struct variable *s, char **command)
{
    char for_name[RECORD_NAME_MAX + 32], for_value[VARIABLE_VALUE_MAX + 32], for_revision[64];
    const char *const env[] = { for_name, for_value, for_revision, NULL };
    struct child_spec spec = { .argv = (const char *const *)command, .env = env };
    snprintf(for_name, sizeof for_name, "FIRN_CONFIG_NAME=%s", name);
    snprintf(for_value, sizeof for_value, "FIRN_CONFIG_VALUE=%s", s->value);
    snprintf(for_revision, sizeof for_revision, "FIRN_CONFIG_REVISION=%" PRIu64, s->revision);
    pid_t pid = child_spawn(&spec);
    if (pid < 0)
        return STATUS_TROUBLE;
    int status = child_wait(pid);
    if (status)
        say_warning("the command ended with status %d for revision %" PRIu64, status, s->revision);
    return status;
}

static int watch(const struct config *c, struct firn_store *store, char **args, int count)
{
    struct variable now, known;
    bool any = false, warned = false;
    if (count < 1)
        return say_trouble("usage: firn config watch NAME [-- COMMAND]");
    for (;;) {
        struct firn_diag d = { 0 };
        int error = variable_wait(store, args[0], any ? &known : NULL, WAIT_MS, &now, &d);
        /* A stale answer must not go back to an older revision; a restored store may. */
        if (error == 0 && any && now.revision <= known.revision)
            error = variable_get(store, args[0], &now, &d);
        if (error == 0 && any && nonce_eq(&now.req, &known.req))
            error = FIRN_EAGAIN;
        if (output_gone())
            return output_finish(STATUS_OK);
        if (error == FIRN_EAGAIN)
            continue;
        if (error == FIRN_EINVAL || error == FIRN_ESTORE)
            return fail(args[0], error, &d);
        if (error) {
            if (!warned)
                say_warning("%s; trying again", d.text[0] ? d.text : firn_error_message(error));
            warned = true;
            struct timespec t = { RETRY_MS / 1000, 0 };
            nanosleep(&t, NULL);
            continue;
        }
        warned = false;
        bool first = !any;
        any = true;
        known = now;
        if (first && now.revision <= c->after)
            continue;
        int status = 0;
        if (count > 1)
            status = run_command(args[0], &now, args + 1);
        else
            print(c, args[0], &now);
        if (c->once)
            return output_finish(status);
    }
}

static int list_one(void *user, struct firn_slice key, struct firn_slice value)
{
    const struct config *c = user;
    struct variable s;
    char name[RECORD_NAME_MAX + 1] = "";
    size_t len = key.len - VARIABLE_PREFIX_LEN;
    if (len > RECORD_NAME_MAX || variable_parse(value.p, value.len, &s, NULL) != 0)
        return 0;
    memcpy(name, key.p + VARIABLE_PREFIX_LEN, len);
    if (c->json)
        print_json(name, &s);
    else
        puts(name);
    return 0;
}

static int list(const struct config *c, struct firn_store *store, char **args, int count)
{
    struct firn_diag d = { 0 };
    if (count > 0)
        return say_trouble("unexpected operand '%s': firn config list takes no name", args[0]);
    int error = firn_store_scan(store, firn_slice(VARIABLE_PREFIX, VARIABLE_PREFIX_LEN), list_one,
                                (void *)(uintptr_t)c, &d);
    return output_finish(error ? fail("config", error, &d) : STATUS_OK);
}

int cmd_config(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct config *, struct firn_store *, char **, int);
    } verbs[] = { { "get", get }, { "set", set }, { "watch", watch }, { "list", list } };
    struct config c = { .if_revision = VARIABLE_ANY_REVISION };
    char shown[SAY_TEXT_BUF];
    struct firn_store *store = NULL;
    int operands, r = options_parse(&config_usage, argc, argv, &c, &operands);
    if (r >= 0)
        return r;
    if (operands == 0)
        return say_trouble("missing subcommand: get, set, watch or list");
    argv[1 + operands] = NULL; /* the command after -- ends here */
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(argv[1], verbs[i].name) != 0)
            continue;
        r = verbs[i].run == set ? store_option_open(c.store, 0, &store)
                                : store_option_open_existing(c.store, 0, &store);
        if (r < 0)
            r = verbs[i].run(&c, store, argv + 2, operands - 1);
        firn_store_close(store);
        return r;
    }
    return say_trouble("unknown subcommand '%s': choose get, set, watch or list",
                       say_text(argv[1], strlen(argv[1]), shown));
}
