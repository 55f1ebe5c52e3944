/* Reads the IDs in a server's answer: JSON, lines, integers, replies of the Redis protocol. */
#include "cli/id_body.h"
#include "id/bytes.h"
#include "wire/json_read.h"
#include "wire/resp_reply.h"

#include <string.h>

/* Decimal digits only, without leading zeros, within 64 bits. */
static bool number(const char *p, size_t len, uint64_t *out)
{
    uint64_t n = 0;
    if (len == 0 || len > 20 || (p[0] == '0' && len > 1))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned d = (unsigned)(p[i] - '0');
        if (d > 9)
            return false;
        if (len == 20 && (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, d, &n)))
            return false;
        if (len < 20) /* cannot overflow */
            n = 10 * n + d;
    }
    *out = n;
    return true;
}

/* ---- JSON: just the two shapes ---- */

/* A string without escapes, or the digits of a number; borrowed. */
static bool value(struct json_reader *j, struct slice *out)
{
    uint64_t n;
    if (json_next(j) != JSON_STRING)
        return json_numeral(j, out) == 0 && number(out->p, out->len, &n);
    return json_slice(j, out) == 0;
}

/* Printable ASCII, of a length that an ID may have. */
static bool is_text(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)(p[i] - ' ') > '~' - ' ')
            return false;
    return len > 0 && len <= ID_BODY_TEXT_MAX;
}

static bool ends(struct json_reader *j)
{
    char none[1];
    return json_member(j, none, sizeof none) == 0 && json_finish(j) == 0;
}

/* Steps into an object whose first member is `id` or `ids`; 0: it is neither. */
static int key(struct json_reader *j)
{
    char name[4];
    if (json_object(j) != 0 || json_member(j, name, sizeof name) != 1)
        return 0;
    return strcmp(name, "id") == 0 ? 1 : strcmp(name, "ids") == 0 ? 2 : 0;
}

int id_body_one(const char *p, size_t len, char out[ID_BODY_TEXT_BUF])
{
    struct json_reader j;
    struct slice s;
    json_start(&j, p, len, NULL);
    if (key(&j) != 1 || !value(&j, &s) || !ends(&j) || !is_text(s.p, s.len))
        return FIRN_EFORMAT;
    memcpy(out, s.p, s.len);
    out[s.len] = '\0';
    return 0;
}

/* The callback that gets the IDs: one of the two. */
struct seer {
    id_body_fn *number;
    id_body_text_fn *text;
    void *user;
};

static bool show(const struct seer *s, const char *p, size_t len)
{
    uint64_t id;
    if (s->text) {
        if (len == 0 || len > ID_BODY_TEXT_MAX)
            return false;
        s->text(p, len, s->user);
        return true;
    }
    if (!number(p, len, &id))
        return false;
    s->number(id, s->user);
    return true;
}

static bool show_json(const struct seer *s, struct slice id)
{
    return (!s->text || is_text(id.p, id.len)) && show(s, id.p, id.len);
}

static int each_json(const char *p, size_t len, const struct seer *s)
{
    struct json_reader j;
    struct slice id;
    json_start(&j, p, len, NULL);
    int which = key(&j), more, n = 0;
    if (which == 1)
        return value(&j, &id) && ends(&j) && show_json(s, id) ? 0 : FIRN_EFORMAT;
    if (which == 0 || json_array(&j) != 0)
        return FIRN_EFORMAT;
    for (; (more = json_element(&j)) > 0; n = 1)
        if (!value(&j, &id) || !show_json(s, id))
            return FIRN_EFORMAT;
    return n == 1 && more == 0 && ends(&j) ? 0 : FIRN_EFORMAT;
}

/* ---- lines and integers ---- */

static int each_line(const char *p, size_t len, const struct seer *s)
{
    for (const char *end = p + len; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl || !show(s, p, (size_t)(nl - p)))
            return FIRN_EFORMAT; /* also a last line that is incomplete */
        p = nl + 1;
    }
    return len ? 0 : FIRN_EFORMAT;
}

static int each_bytes(const char *p, size_t len, id_body_fn *each, void *user)
{
    if (len == 0 || len % 8 != 0)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < len; i += 8)
        each(load_be64(p + i), user);
    return 0;
}

static int each_of(enum id_body_form form, const char *p, size_t len, const struct seer *s)
{
    switch (form) {
    case ID_BODY_JSON:
        return each_json(p, len, s);
    case ID_BODY_LINES:
        return each_line(p, len, s);
    case ID_BODY_BYTES:
        return s->number ? each_bytes(p, len, s->number, s->user) : FIRN_EFORMAT;
    }
    return FIRN_EINVAL;
}

int id_body_each(enum id_body_form form, const char *p, size_t len, id_body_fn *each, void *user)
{
    return each_of(form, p, len, &(struct seer){ .number = each, .user = user });
}

int id_body_each_text(enum id_body_form form, const char *p, size_t len, id_body_text_fn *each,
                      void *user)
{
    return each_of(form, p, len, &(struct seer){ .text = each, .user = user });
}

/* ---- the Redis protocol ---- */

struct resp_at {
    const char *p;
    size_t len, at;
    uint64_t open; /* elements still to come */
    struct seer seer;
    bool tell, texts;
    struct resp_answer answer;
};

static void text(struct resp_at *r, const char *p, size_t len)
{
    uint64_t id;
    bool good = r->texts ? len > 0 && len <= ID_BODY_TEXT_MAX : number(p, len, &id);
    if (!good) {
        r->answer.other = true;
        return;
    }
    r->answer.count++;
    if (r->tell)
        show(&r->seer, p, len);
}

/* One element: what it opens is added to r->open. */
static int element(struct resp_at *r)
{
    struct resp_value v;
    ssize_t used = resp_reply(r->p + r->at, r->len - r->at, &v);
    if (used < 0)
        return (int)used;
    switch (v.type) {
    case RESP_NUMBER:
    case RESP_TEXT:
        text(r, v.text.p, v.text.len);
        break;
    case RESP_FAILURE:
        r->answer.error = true;
        break;
    case RESP_SIMPLE:
    case RESP_NULL:
        r->answer.other = true;
        break;
    case RESP_CONTAINER:
        r->open += v.members;
        if (r->open > 2 * RESP_REPLY_ELEMENTS_MAX)
            return FIRN_EFORMAT;
        break;
    }
    r->at += (size_t)used;
    return 0;
}

static int whole(struct resp_at *r)
{
    for (r->open = 1; r->open > 0; r->open--) {
        int error = element(r);
        if (error)
            return error;
    }
    return 0;
}

static ssize_t resp(const char *p, size_t len, const struct seer *s, struct resp_answer *out)
{
    const struct resp_at begin = { .p = p, .len = len, .seer = *s, .texts = s->text != NULL };
    struct resp_at r = begin;
    int error = 0;
    bool plain = len > 0 && p[0] != '*' && p[0] != '~' && p[0] != '>' && p[0] != '%';
    bool tell = s->number || s->text;
    if (tell && !plain) { /* a container may be incomplete: check before `each` is called */
        if ((error = whole(&r)) != 0)
            return error;
        r = begin;
    }
    r.tell = tell;
    if ((error = whole(&r)) != 0)
        return error;
    *out = r.answer;
    return (ssize_t)r.at;
}

ssize_t id_body_resp(const char *p, size_t len, id_body_fn *each, void *user,
                     struct resp_answer *out)
{
    return resp(p, len, &(struct seer){ .number = each, .user = user }, out);
}

ssize_t id_body_resp_text(const char *p, size_t len, id_body_text_fn *each, void *user,
                          struct resp_answer *out)
{
    return resp(p, len, &(struct seer){ .text = each, .user = user }, out);
}
