/*
 * The setting auth.tokens: tokens and their scopes. A token is kept as its SHA-256 only. Tested in
 * tests/unit/server/config.c.
 */
#include "firn/read.h"
#include "daemon/config_entries.h"
#include "daemon/entry_sha256.h"
#include "server/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* They are counted each time that one is created. */
enum { TOKEN_SEQUENCES_MAX = 100000 };

static bool is_word(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-_.:/*", text[i]))
            return false;
    return n >= 1 && n <= 128;
}

static int check_name(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    return is_word(text)
               ? 0
               : entry_blame(r, k->name,
                             "give up to 128 letters, digits, '-', '_', '.', ':' and '/'");
}

static int check_kind(const struct entry_reader *r, const struct entry_key *k, char *kind)
{
    char show[CONFIG_SHOWN_BUF];
    return is_word(kind) && (strchr(kind, '*') || strcmp(kind, "ticket") == 0 ||
                             firn_kind_find(kind, strlen(kind)))
               ? 0
               : entry_blame(r, k->name, "there is no kind '%s'; `firn gen --help` lists them",
                             config_shown(kind, show));
}

static int check_sequence(const struct entry_reader *r, const struct entry_key *k, char *name)
{
    char show[CONFIG_SHOWN_BUF];
    return is_word(name)
               ? 0
               : entry_blame(r, k->name, "'%s' names no sequence", config_shown(name, show));
}

static int check_token(const struct entry_reader *r, void *entry)
{
    const struct config_token *t = entry;
    return t->kinds.n + t->sequences.n > 0
               ? 0
               : entry_blame(r, "kinds",
                             "the token may mint nothing; give it kinds or sequences, or ['*']");
}

#define AT(field) .offset = offsetof(struct config_token, field)

static const struct entry_key keys[] = {
    { "name", &entry_text, AT(name), .check = check_name },
    { "token_sha256", &entry_sha256, AT(sha256),
      .missing = "it is missing: give the 64 hex digits that printf %s TOKEN | sha256sum prints" },
    { "kinds", &entry_texts, AT(kinds), .check = check_kind },
    { "sequences", &entry_texts, AT(sequences), .check = check_sequence },
    { "admin", &entry_bool, AT(admin) },
    { "max_sequences", &entry_u32, AT(max_sequences), .max = TOKEN_SEQUENCES_MAX },
};

const struct setting_entries config_tokens_type = { keys, sizeof keys / sizeof keys[0],
                                                    sizeof(struct config_token), NULL,
                                                    check_token };
