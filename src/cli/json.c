#include "cli/json.h"
#include "cli/escape.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

void json_init(struct json *j, FILE *out)
{
    *j = (struct json){ .out = out };
}

static void string(struct json *j, const char *p, size_t len)
{
    putc('"', j->out);
    escape_put(j->out, p, len, true);
    putc('"', j->out);
}

/* What stands in front of a value: a comma, its key. */
static void before(struct json *j, const char *key)
{
    if (j->more[j->depth])
        putc(',', j->out);
    j->more[j->depth] = true;
    if (key) {
        string(j, key, strlen(key));
        putc(':', j->out);
    }
}

void json_begin(struct json *j, const char *key, char bracket)
{
    before(j, key);
    putc(bracket, j->out);
    assert(j->depth + 1 < JSON_OUT_DEPTH_MAX);
    j->more[++j->depth] = false;
}

void json_end(struct json *j, char bracket)
{
    assert(j->depth > 0);
    j->depth--;
    putc(bracket, j->out);
}

void json_bytes(struct json *j, const char *key, const char *p, size_t len)
{
    before(j, key);
    string(j, p, len);
}

void json_text(struct json *j, const char *key, const char *text)
{
    if (text)
        json_bytes(j, key, text, strlen(text));
    else
        json_null(j, key);
}

void json_bool(struct json *j, const char *key, bool value)
{
    before(j, key);
    fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
    before(j, key);
    fputs("null", j->out);
}

void json_count(struct json *j, const char *key, int64_t n)
{
    before(j, key);
    fprintf(j->out, "%" PRId64, n);
}

void json_id(struct json *j, const char *key, uint64_t id)
{
    before(j, key);
    fprintf(j->out, "\"%" PRIu64 "\"", id);
}

void json_done(struct json *j)
{
    assert(j->depth == 0);
    putc('\n', j->out);
    j->more[0] = false;
}
