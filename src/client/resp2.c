/* Requests and responses in the Redis protocol. Tested in tests/unit/client/answers.c. */
#include "client/resp2.h"
#include "firn/text.h"
#include "platform/assert.h"
#include "wire/resp_reply.h"

#include <stdio.h>
#include <string.h>

/* --- writing --- */

static size_t command(char *out, size_t cap, const char *const *words, size_t n)
{
    size_t len = (size_t)snprintf(out, cap, "*%zu\r\n", n);
    for (size_t i = 0; i < n && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    return len < cap ? len : 0;
}

size_t resp2_write_auth(const struct client_opts *o, char *out, size_t cap)
{
    return o->token[0] ? command(out, cap, (const char *[]){ "AUTH", o->token }, 2) : 0;
}

size_t resp2_write(const struct client_opts *o, const struct request *q, char *out, size_t cap)
{
    const char *words[10] = { "FIRN.NEXT", o->kind };
    size_t n = 2;
    char count[24], shard[16];
    if (o->seq[0]) {
        words[n++] = "SEQ";
        words[n++] = o->seq;
    }
    if (q->kind == REQUEST_NUMBERS && q->n > 1) {
        snprintf(count, sizeof count, "%llu", (unsigned long long)q->n);
        words[n++] = "COUNT";
        words[n++] = count;
    }
    if (q->shard) {
        snprintf(shard, sizeof shard, "%u", q->shard);
        words[n++] = "SHARD";
        words[n++] = shard;
    }
    if (q->key[0]) {
        words[n++] = "KEY";
        words[n++] = q->key;
    }
    return command(out, cap, words, n);
}

/* --- reading --- */

static bool begins(struct slice s, const char *word)
{
    return s.len >= strlen(word) && memcmp(s.p, word, strlen(word)) == 0;
}

static void read_refusal(struct slice said, struct response *out)
{
    static const struct {
        const char *words;
        int error;
        bool again;
    } rows[] = {
        { "TRYAGAIN", FIRN_EAGAIN, true },
        { "ERR rate limit", FIRN_EAGAIN, true },
        { "NOAUTH", FIRN_EAUTH, false },
        { "WRONGPASS", FIRN_EAUTH, false },
        { "NOPERM", FIRN_EAUTH, false },
        { "ERR there is no sequence", FIRN_ENOENT, false },
        { "ERR no kind", FIRN_ENOENT, false },
        { "ERR sequence", FIRN_EOVERFLOW, false },
        { "ERR " SHARD_REFUSED, FIRN_ERANGE, false },
        { "ERR the key was used", FIRN_EREUSED, false },
    };
    out->error = FIRN_EINVAL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (begins(said, rows[i].words)) {
            out->error = rows[i].error;
            out->again = rows[i].again;
            break;
        }
    snprintf(out->text, sizeof out->text, "%.*s", (int)(said.len < 300 ? said.len : 300), said.p);
}

static int read_number(const struct resp_value *v, const struct request *q, struct runs *out)
{
    uint64_t n;
    if ((v->type != RESP_NUMBER && v->type != RESP_TEXT) || out->numbers >= q->n ||
        firn_u64_parse(v->text.p, v->text.len, &n) != 0)
        return FIRN_EFORMAT;
    return runs_add(out, n);
}

static int read_text(const struct resp_value *v, struct response *out)
{
    if (v->type != RESP_TEXT || v->text.len == 0 || v->text.len >= sizeof out->text)
        return FIRN_EFORMAT;
    memcpy(out->text, v->text.p, v->text.len);
    out->text[v->text.len] = '\0';
    return 0;
}

/* The members of a list, from out->at on. */
static long read_list(const char *p, size_t len, const struct request *q, struct response *out)
{
    struct resp_value v;
    firn_assert(out->at <= len, "at=%zu of %zu", out->at, len);
    while (out->missing > 0) {
        long used = resp_reply(p + out->at, len - out->at, &v);
        if (used < 0)
            return used;
        int r = read_number(&v, q, &out->numbers);
        if (r)
            return r;
        out->at += (size_t)used;
        out->missing--;
    }
    return out->numbers.numbers ? (long)out->at : FIRN_EFORMAT;
}

long resp2_read(const char *p, size_t len, bool auth, const struct request *q, struct response *out)
{
    struct resp_value v;
    size_t at = 0;
    if (out->missing > 0)
        return read_list(p, len, q, out);
    long used = resp_reply(p, len, &v);
    if (auth && used > 0) {
        if (v.type == RESP_FAILURE) { /* the reply to the command says nothing new then */
            read_refusal(v.text, out);
            out->close = true;
            return (long)len;
        }
        at = (size_t)used;
        used = resp_reply(p + at, len - at, &v);
    }
    if (used < 0)
        return used;
    at += (size_t)used;
    if (v.type == RESP_FAILURE) {
        read_refusal(v.text, out);
        return (long)at;
    }
    if (q->kind == REQUEST_TEXT)
        return read_text(&v, out) ? FIRN_EFORMAT : (long)at;
    if (v.type == RESP_CONTAINER) {
        out->at = at;
        out->missing = v.members;
        return read_list(p, len, q, out);
    }
    int r = read_number(&v, q, &out->numbers);
    return r ? r : (long)at;
}
