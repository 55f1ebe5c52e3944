/* firn seal and firn unseal: encrypt and decrypt IDs (firn/seal.h), one per line, and make keys. */
#include "cli/commands.h"
#include "wire/json_write.h"
#include "cli/gen/keyfile.h"
#include "cli/operands.h"
#include "cli/output.h"
#include "cli/say.h"

#include "firn/random.h"
#include "firn/text.h"

#include <inttypes.h>

struct seal_cmd {
    const char *key_file;
    bool new_key, json;
    struct firn_seal *seal;
};

static const struct opt seal_opts[] = {
    { "key-file", 'k', OPT_TEXT, offsetof(struct seal_cmd, key_file), "FILE", "@files", 0, 0,
      "lines KEYID:32 hex digits; the last key seals, all keys unseal" },
    { "new-key", 'n', OPT_FLAG, offsetof(struct seal_cmd, new_key), NULL, NULL, 0, 0,
      "print a new line for a key file instead" },
    OPT_JSON(struct seal_cmd, json),
    { .name = NULL },
};

static const struct opt unseal_opts[] = {
    { "key-file", 'k', OPT_TEXT, offsetof(struct seal_cmd, key_file), "FILE", "@files", 0, 0,
      "lines KEYID:32 hex digits, as for firn seal" },
    OPT_JSON(struct seal_cmd, json),
    { .name = NULL },
};

const struct usage seal_usage = {
    .name = "seal",
    .examples =
        "  (umask 077; firn seal --new-key >keys)         a key file with its first key\n"
        "  firn seal --key-file keys 1541815603606036480  23 characters\n"
        "  firn gen snowflake -n 5 | firn seal --key-file keys\n"
        "  firn seal --new-key 2 >>keys                   now key 2 seals; key 1 still unseals\n",
    .synopsis = "firn seal --key-file FILE [ID...|-]\n"
                "       firn seal --new-key [KEYID]",
    .about =
        "Encrypts 64-bit IDs (decimal) into texts that reveal nothing and cannot be guessed or\n"
        "changed. Without ID, or for -, they are read from standard input, one per line. KEYID\n"
        "is 0 to 57 and names the key in the text; every line of a key file needs its own\n"
        "(default 1).\n",
    .opts = seal_opts,
};

const struct usage unseal_usage = {
    .name = "unseal",
    .examples = "  firn unseal --key-file keys 2C4mYyXq9sVQ6hJ8bWvT1nd\n"
                "  firn unseal --key-file keys - <texts.txt\n",
    .synopsis = "firn unseal --key-file FILE [TEXT...|-]",
    .about =
        "Decrypts texts of firn seal and prints the IDs. A text that was changed, forged or\n"
        "sealed with another key is rejected (exit status 1). Without TEXT, or for -, they are\n"
        "read from standard input, one per line.\n",
    .opts = unseal_opts,
};

static void put(const struct seal_cmd *c, uint64_t id, const char *text, bool opened)
{
    if (c->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        json_begin(&j, NULL, '{');
        json_id(&j, "id", id);
        json_text(&j, "sealed", text);
        json_end(&j, '}');
        output_json(&j, stdout);
    } else if (opened) {
        printf("%" PRIu64 "\n", id);
    } else {
        puts(text);
    }
}

static int seal_one(struct seal_cmd *c, const char *where, const char *p, size_t len)
{
    char shown[SAY_TEXT_BUF], text[FIRN_SEAL_TEXT_BUF];
    uint64_t id;
    if (firn_u64_parse(p, len, &id) != 0)
        return say_failed("%s'%s' is not a decimal number of 64 bits: convert it with firn convert",
                          where, say_text(p, len, shown));
    int r = firn_seal_text(c->seal, id, text);
    if (r != 0)
        return say_trouble("%s", firn_error_message(r));
    put(c, id, text, false);
    return STATUS_OK;
}

static int open_one(struct seal_cmd *c, const char *where, const char *p, size_t len)
{
    char shown[SAY_TEXT_BUF], text[FIRN_SEAL_TEXT_BUF];
    struct firn_diag d = { 0 };
    uint64_t id;
    int r = firn_seal_open(c->seal, p, len, &id, &d);
    if (r != 0)
        return say_failed("%s'%s': %s", where, say_text(p, len, shown),
                          d.text[0] ? d.text : firn_error_message(r));
    snprintf(text, sizeof text, "%.*s", (int)len, p);
    put(c, id, text, true);
    return STATUS_OK;
}

typedef int one_fn(struct seal_cmd *c, const char *where, const char *p, size_t len);

static int each(struct seal_cmd *c, one_fn *one, char *const *list, int n)
{
    struct operands o;
    int status = STATUS_OK, got, r = operands_init(&o, list, n);
    const char *p;
    size_t len;
    if (r >= 0)
        return r;
    while ((got = operands_next(&o, &p, &len)) != OPERANDS_END && !ferror(stdout)) {
        if (got == OPERANDS_ERROR)
            r = STATUS_TROUBLE;
        else if (got == OPERANDS_LONG)
            r = say_failed("%sthe text is too long: at most %d characters", operands_where(&o),
                           LINES_TEXT_MAX);
        else
            r = one(c, operands_where(&o), p, len);
        status = r > status ? r : status;
        if (r == STATUS_TROUBLE)
            break;
    }
    operands_done(&o);
    return output_finish(status);
}

static int new_key(const struct seal_cmd *c, char *const *operand, int n)
{
    uint8_t key[FIRN_SEAL_KEY_BYTES];
    uint64_t id = 1;
    char hex[2 * sizeof key + 1], shown[SAY_TEXT_BUF];
    if (c->key_file)
        return say_trouble("--new-key prints a line and changes no file: leave out --key-file and "
                           "write >>%s",
                           c->key_file);
    if (n > 1 || (n == 1 && (!options_number(operand[0], false, &id) || id > FIRN_SEAL_KEY_ID_MAX)))
        return say_trouble("--new-key '%s': give one key id from 0 to %d",
                           say_text(operand[n - 1], strlen(operand[n - 1]), shown),
                           FIRN_SEAL_KEY_ID_MAX);
    firn_rng_bytes(firn_rng_thread(), key, sizeof key);
    for (size_t i = 0; i < sizeof key; i++)
        snprintf(hex + 2 * i, 3, "%02x", key[i]);
    if (c->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        json_begin(&j, NULL, '{');
        json_count(&j, "key_id", id);
        json_text(&j, "key", hex);
        json_end(&j, '}');
        output_json(&j, stdout);
    } else {
        printf("%" PRIu64 ":%s\n", id, hex);
    }
    explicit_bzero(key, sizeof key);
    explicit_bzero(hex, sizeof hex);
    return output_finish(STATUS_OK);
}

static int run(const struct usage *u, one_fn *one, int argc, char **argv)
{
    struct seal_cmd c = { 0 };
    int n, r = options_parse(u, argc, argv, &c, &n);
    if (r >= 0)
        return r;
    if (c.new_key)
        return new_key(&c, argv + 1, n);
    if ((r = keyfile_open(c.key_file, &c.seal)) >= 0)
        return r;
    r = each(&c, one, argv + 1, n);
    firn_seal_free(c.seal);
    return r;
}

int cmd_seal(int argc, char **argv)
{
    return run(&seal_usage, seal_one, argc, argv);
}

int cmd_unseal(int argc, char **argv)
{
    return run(&unseal_usage, open_one, argc, argv);
}
