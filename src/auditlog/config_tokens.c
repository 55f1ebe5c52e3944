/*
 * The setting tokens: who may write, read and administer, and for which tenant. A token is kept as
 * its SHA-256 only. Tested in tests/unit/auditlog/config.c.
 */
#include "auditlog/config.h"
#include "daemon/config_entries.h"
#include "daemon/entry_sha256.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bit;
} scopes[] = { { "write", SCOPE_WRITE }, { "read", SCOPE_READ }, { "admin", SCOPE_ADMIN } };

static uint32_t scope_bit(const char *name)
{
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++)
        if (strcmp(scopes[i].name, name) == 0)
            return scopes[i].bit;
    return 0;
}

static int check_scope(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF];
    return scope_bit(text) ? 0
                           : entry_blame(r, k->name, "'%s' is none of write, read and admin",
                                         config_shown(text, show));
}

static int check_tenant(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    size_t n = strlen(text);
    bool ok = n >= 1 && n <= TENANT_BYTES_MAX;
    for (size_t i = 0; i < n; i++)
        ok = ok && (isalnum((unsigned char)text[i]) || strchr("-_.", text[i]));
    return ok ? 0
              : entry_blame(r, k->name, "give 1 to %d letters, digits, '-', '_' and '.'",
                            TENANT_BYTES_MAX);
}

static int check_token(const struct entry_reader *r, void *entry)
{
    struct config_token *t = entry;
    t->scope = 0;
    for (size_t i = 0; i < t->scopes.n; i++)
        t->scope |= scope_bit(t->scopes.v[i]);
    return t->scope ? 0
                    : entry_blame(r, "scopes",
                                  "the token may do nothing; give it some of write, read, admin");
}

#define AT(field) .offset = offsetof(struct config_token, field)

static const struct entry_key keys[] = {
    { "name", &entry_text, AT(name), .check = entry_check_name },
    { "token_sha256", &entry_sha256, AT(sha256),
      .missing = "it is missing: give the 64 hex digits that printf %s TOKEN | sha256sum prints" },
    { "tenant", &entry_text, AT(tenant), .check = check_tenant,
      .missing = "it is missing: whose entries does the token write and read?" },
    { "scopes", &entry_texts, AT(scopes), .check = check_scope },
};

const struct setting_entries config_tokens_type = { keys, sizeof keys / sizeof keys[0],
                                                    sizeof(struct config_token), NULL,
                                                    check_token };
