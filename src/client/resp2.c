#include "client/resp2.h"

#include <stdio.h>
#include <string.h>

/* --- asking --- */

static size_t command(char *out, size_t cap, const char *const *words, size_t n)
{
    size_t len = (size_t)snprintf(out, cap, "*%zu\r\n", n);
    for (size_t i = 0; i < n && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    return len < cap ? len : 0;
}

size_t resp2_auth(const struct client_opts *o, char *out, size_t cap)
{
    return o->token[0] ? command(out, cap, (const char *[]){ "AUTH", o->token }, 2) : 0;
}

size_t resp2_ask(const struct client_opts *o, const struct question *q, char *out, size_t cap)
{
    const char *words[8] = { "FIRN.NEXT", o->kind };
    size_t n = 2;
    char count[24];
    if (o->seq[0]) {
        words[n++] = "SEQ";
        words[n++] = o->seq;
    }
    if (q->what == ASK_NUMBERS && q->n > 1) {
        snprintf(count, sizeof count, "%llu", (unsigned long long)q->n);
        words[n++] = "COUNT";
        words[n++] = count;
    }
    if (q->key[0]) {
        words[n++] = "KEY";
        words[n++] = q->key;
    }
    return command(out, cap, words, n);
}

/* --- hearing --- */

/* One value: a line, and for '$' the bytes behind it. */
struct value {
    char type;     /* + - : $ * */
    const char *p; /* the text; of '*' and of a null none */
    size_t len;
    int64_t count; /* ':' the number, '*' how many follow, '$' the length; -1 is null */
};

static int read_signed(const char *p, size_t len, int64_t *out)
{
    bool minus = len && *p == '-';
    int64_t n = 0;
    if (len == minus)
        return FIRN_EFORMAT;
    for (size_t i = minus; i < len; i++)
        if (p[i] < '0' || p[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, p[i] - '0', &n))
            return FIRN_EFORMAT;
    *out = minus ? -n : n;
    return 0;
}

static long read_value(const char *p, size_t len, struct value *v)
{
    const char *cr = memmem(p, len, "\r\n", 2);
    if (!cr)
        return len > 16 * 1024 ? FIRN_EFORMAT : FIRN_EAGAIN;
    size_t line = (size_t)(cr - p);
    *v = (struct value){ .type = line ? p[0] : 0, .p = p + 1, .len = line ? line - 1 : 0 };
    switch (v->type) {
    case '+':
    case '-':
        return (long)line + 2;
    case ':':
        return read_signed(v->p, v->len, &v->count) ? FIRN_EFORMAT : (long)line + 2;
    case '*':
    case '$':
        if (read_signed(v->p, v->len, &v->count) || v->count < -1 || v->count > ANSWER_BYTES_MAX_)
            return FIRN_EFORMAT;
        v->p = NULL;
        v->len = 0;
        if (v->type == '*' || v->count < 0)
            return (long)line + 2;
        if (len < line + 2 + (size_t)v->count + 2)
            return FIRN_EAGAIN;
        v->p = cr + 2;
        v->len = (size_t)v->count;
        return (long)line + 2 + (long)v->count + 2;
    default:
        return FIRN_EFORMAT;
    }
}

static bool begins(const struct value *v, const char *word)
{
    return v->len >= strlen(word) && memcmp(v->p, word, strlen(word)) == 0;
}

static void hear_refusal(const struct value *v, struct answer_in *out)
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
        { "ERR the key was used", FIRN_EREUSED, false },
    };
    out->error = FIRN_EINVAL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (begins(v, rows[i].words)) {
            out->error = rows[i].error;
            out->again = rows[i].again;
            break;
        }
    snprintf(out->text, sizeof out->text, "%.*s", (int)(v->len < 300 ? v->len : 300), v->p);
}

static int hear_number(const struct value *v, const struct question *q, struct runs *out)
{
    int64_t n = v->count;
    if (v->type == '$') {
        uint64_t u = 0;
        if (!v->p || v->len == 0 || v->len > 20)
            return FIRN_EFORMAT;
        for (size_t i = 0; i < v->len; i++)
            if (v->p[i] < '0' || v->p[i] > '9' || __builtin_mul_overflow(u, 10, &u) ||
                __builtin_add_overflow(u, v->p[i] - '0', &u))
                return FIRN_EFORMAT;
        return out->numbers < q->n ? runs_add(out, u) : FIRN_EFORMAT;
    }
    return v->type == ':' && n >= 0 && out->numbers < q->n ? runs_add(out, (uint64_t)n)
                                                           : FIRN_EFORMAT;
}

static int hear_text(const struct value *v, struct answer_in *out)
{
    if (v->type != '$' || !v->p || v->len == 0 || v->len >= sizeof out->text)
        return FIRN_EFORMAT;
    memcpy(out->text, v->p, v->len);
    out->text[v->len] = '\0';
    return 0;
}

/* The members of a list from out->at on. */
static long hear_list(const char *p, size_t len, const struct question *q, struct answer_in *out)
{
    struct value v;
    while (out->missing > 0) {
        long used = read_value(p + out->at, len - out->at, &v);
        if (used < 0)
            return used;
        int r = hear_number(&v, q, &out->numbers);
        if (r)
            return r;
        out->at += (size_t)used;
        out->missing--;
    }
    return out->numbers.numbers ? (long)out->at : FIRN_EFORMAT;
}

long resp2_hear(const char *p, size_t len, bool auth, const struct question *q,
                struct answer_in *out)
{
    struct value v;
    size_t at = 0;
    if (out->missing > 0)
        return hear_list(p, len, q, out);
    long used = read_value(p, len, &v);
    if (auth && used > 0) {
        if (v.type == '-') { /* what the command answers then says no more */
            hear_refusal(&v, out);
            out->close = true;
            return (long)len;
        }
        at = (size_t)used;
        used = read_value(p + at, len - at, &v);
    }
    if (used < 0)
        return used;
    at += (size_t)used;
    if (v.type == '-') {
        hear_refusal(&v, out);
        return (long)at;
    }
    if (q->what == ASK_TEXT)
        return hear_text(&v, out) ? FIRN_EFORMAT : (long)at;
    if (v.type == '*') {
        out->at = at;
        out->missing = v.count;
        return hear_list(p, len, q, out);
    }
    int r = hear_number(&v, q, &out->numbers);
    return r ? r : (long)at;
}
