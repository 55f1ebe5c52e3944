/* init and retain, over all databases. Tested in tests/integration/auditlog.py. */
#include "auditlog/commands.h"
#include "auditlog/schema.h"

#include <stdio.h>
#include <string.h>

/* The user that owns the tables. */
static const struct config_strings *owners(const struct config *c)
{
    return c->owners.n > 0 ? &c->owners : &c->shards;
}

static int failed(size_t shard, int error, const struct firn_diag *d)
{
    fprintf(stderr, "firn-auditlog: shard %zu: %s\n", shard,
            d->text[0] ? d->text : firn_error_message(error));
    return 1;
}

static int run_init(const struct config *c)
{
    const struct config_strings *urls = owners(c);
    for (size_t i = 0; i < urls->n; i++) {
        struct firn_diag d = { 0, "" };
        long from = 0;
        const struct schema_place place = { i, urls->n };
        int r = schema_init(urls->v[i], &place, (uint32_t)c->partitions.ahead_days, &from, &d);
        if (r)
            return failed(i, r, &d);
        if (from == schema_version())
            printf("shard %zu: version %ld, as it was\n", i, from);
        else
            printf("shard %zu: version %ld, was %ld\n", i, schema_version(), from);
    }
    return 0;
}

static int run_retain(const struct config *c)
{
    const struct config_strings *urls = owners(c);
    for (size_t i = 0; i < urls->n; i++) {
        struct firn_diag d = { 0, "" };
        struct schema_retained n;
        int r = schema_retain(urls->v[i], (uint32_t)c->partitions.ahead_days,
                              (uint32_t)c->partitions.keep_days, c->keys.keep_s, &n, &d);
        if (r)
            return failed(i, r, &d);
        printf("shard %zu: %u partitions detached, %llu keys removed\n", i, n.detached,
               (unsigned long long)n.keys);
    }
    return 0;
}

static int run_unknown(const struct config *c)
{
    (void)c;
    fprintf(stderr, "firn-auditlog: there is no such command; there are init and retain, and none "
                    "to serve\n");
    return 2;
}

const struct command *command_find(const char *name)
{
    static const struct command commands[] = { { "init", true, run_init },
                                               { "retain", true, run_retain } };
    static const struct command unknown = { "", false, run_unknown };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return name[0] == '-' ? NULL : &unknown;
}
