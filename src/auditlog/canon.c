/*
 * Writes JSON in its one form: members are written as they come, and moved if they came in another
 * order. The reader bounds the nesting, and with it the recursion.
 */
#include "auditlog/canon.h"
#include "id/bytes.h"
#include "platform/assert.h"
#include "wire/json_read.h"

#include <stdlib.h>

enum { LEN_BYTES = 4, SCRATCH_MAX = 64 * 1024 * 1024 };

struct member { /* in `out`: from its k to its end; its name */
    size_t at, end, name_len;
    const char *name; /* set for sorting only: `out` moves when it grows */
};

struct writing {
    struct canon *c;
    struct json_reader j;
    struct buf *out;
    size_t text_max; /* no string of the text is longer */
};

static int value(struct writing *w);

static void put_len(struct buf *out, char tag, size_t len)
{
    uint8_t head[1 + LEN_BYTES] = { (uint8_t)tag };
    store_be32(head + 1, (uint32_t)len);
    buf_add(out, head, sizeof head);
}

static int full(const struct writing *w)
{
    return w->out->failed || w->c->members.failed || w->c->order.failed ? FIRN_ENOMEM : 0;
}

/* --- numbers --- */

/* -012.50e1 as digits 125, exponent 0. */
static int put_numeral(struct writing *w)
{
    struct slice n;
    int r = json_numeral(&w->j, &n);
    if (r)
        return r;
    const char *p = n.p, *end = n.p + n.len;
    bool minus = *p == '-', point = false;
    p += minus;
    char *to = buf_room(w->out, 1 + LEN_BYTES + n.len + 32);
    if (!to)
        return FIRN_ENOMEM;
    char *digits = to + 1 + LEN_BYTES + 1, *d = digits;
    int64_t exponent = 0, zeros = 0; /* zeros: behind the last other digit */
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        exponent -= point;
        if (*p == '0') {
            zeros += d > digits;
            continue;
        }
        for (; zeros > 0; zeros--)
            *d++ = '0';
        *d++ = *p;
    }
    exponent += zeros;
    if (p < end) {
        bool below = p[1] == '-';
        int64_t given = 0;
        p += 1 + (below || p[1] == '+');
        while (p < end && *p == '0')
            p++;
        if (end - p > CANON_EXPONENT_DIGITS_MAX)
            return FIRN_EFORMAT;
        for (; p < end; p++)
            given = given * 10 + (*p - '0');
        exponent += below ? -given : given;
    }
    char *from = digits;
    if (d == digits) {
        *d++ = '0';
    } else {
        char text[20];
        bool below = exponent < 0;
        if (minus)
            *--from = '-';
        *d++ = 'e';
        if (below)
            *d++ = '-';
        char *first = digits_before(text + sizeof text, (uint64_t)(below ? -exponent : exponent));
        size_t len = (size_t)(text + sizeof text - first);
        memcpy(d, first, len);
        d += len;
    }
    size_t len = (size_t)(d - from);
    memmove(to + 1 + LEN_BYTES, from, len);
    to[0] = 'n';
    store_be32(to + 1, (uint32_t)len);
    buf_commit(w->out, 1 + LEN_BYTES + len);
    return 0;
}

/* --- strings --- */

static int put_string(struct writing *w)
{
    struct slice s;
    size_t len = 0;
    int r = json_slice(&w->j, &s);
    if (r == 0) {
        put_len(w->out, 's', s.len);
        buf_add(w->out, s.p, s.len);
        return full(w);
    }
    if (r != FIRN_ENOTSUP)
        return r;
    char *to = buf_room(w->out, 1 + LEN_BYTES + w->text_max + 1);
    if (!to)
        return FIRN_ENOMEM;
    r = json_string(&w->j, to + 1 + LEN_BYTES, w->text_max + 1, &len);
    if (r)
        return r;
    to[0] = 's';
    store_be32(to + 1, (uint32_t)len);
    buf_commit(w->out, 1 + LEN_BYTES + len);
    return 0;
}

/* --- objects --- */

static int by_name(const struct member *a, const struct member *b)
{
    if (a->name_len != b->name_len)
        return a->name_len < b->name_len ? -1 : 1;
    return memcmp(a->name, b->name, a->name_len);
}

/* Of one name the last comes first. */
static int compare(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int c = by_name(x, y);
    return c ? c : x->at > y->at ? -1 : 1;
}

/* Moves the members from `first` on into order; of one name the last stays. */
static int sort(struct writing *w, size_t first)
{
    struct buf *out = w->out, *order = &w->c->order;
    size_t n = w->c->members.len / sizeof(struct member) - first;
    if (n == 0)
        return 0;
    struct member *m = (struct member *)(void *)w->c->members.p + first;
    size_t from = m[0].at;
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        m[i].name = out->p + m[i].at + 1 + LEN_BYTES;
        sorted = sorted && (i == 0 || by_name(&m[i - 1], &m[i]) < 0);
    }
    if (sorted)
        return 0;
    qsort(m, n, sizeof *m, compare);
    order->len = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_name(&m[i - 1], &m[i]) != 0)
            buf_add(order, out->p + m[i].at, m[i].end - m[i].at);
    if (order->failed)
        return FIRN_ENOMEM;
    memcpy(out->p + from, order->p, order->len);
    out->len = from + order->len;
    return 0;
}

static int object(struct writing *w)
{
    struct buf *members = &w->c->members;
    size_t first = members->len / sizeof(struct member);
    int r = json_object(&w->j), more;
    if (r)
        return r;
    buf_add(w->out, "o", 1);
    for (;;) {
        struct member m = { .at = w->out->len };
        char *to = buf_room(w->out, 1 + LEN_BYTES + w->text_max + 1);
        if (!to)
            return FIRN_ENOMEM;
        more = json_member(&w->j, to + 1 + LEN_BYTES, w->text_max + 1);
        if (more <= 0)
            break;
        m.name_len = strlen(to + 1 + LEN_BYTES);
        to[0] = 'k';
        store_be32(to + 1, (uint32_t)m.name_len);
        buf_commit(w->out, 1 + LEN_BYTES + m.name_len);
        r = value(w);
        if (r)
            return r;
        m.end = w->out->len;
        buf_add(members, &m, sizeof m);
        if (full(w))
            return FIRN_ENOMEM;
    }
    if (more < 0)
        return more;
    r = sort(w, first);
    members->len = first * sizeof(struct member);
    buf_add(w->out, "e", 1);
    return r;
}

static int array(struct writing *w)
{
    int r = json_array(&w->j);
    buf_add(w->out, "a", 1);
    while (r == 0 && (r = json_element(&w->j)) > 0)
        r = value(w);
    buf_add(w->out, "e", 1);
    return r;
}

/* --- values --- */

static int value(struct writing *w)
{
    bool yes = false;
    int r = FIRN_EFORMAT;
    switch (json_next(&w->j)) {
    case JSON_OBJECT:
        r = object(w);
        break;
    case JSON_ARRAY:
        r = array(w);
        break;
    case JSON_STRING:
        r = put_string(w);
        break;
    case JSON_NUMBER:
        r = put_numeral(w);
        break;
    case JSON_BOOL:
        r = json_boolean(&w->j, &yes);
        buf_add(w->out, yes ? "t" : "f", 1);
        break;
    case JSON_NULL:
        r = json_skip(&w->j);
        buf_add(w->out, "z", 1);
        break;
    case JSON_OTHER:
        break;
    }
    return r ? r : full(w);
}

int canon_json(struct canon *c, struct slice json, struct buf *out)
{
    struct writing w = { .c = c, .out = out, .text_max = json.len };
    size_t before = out->len;
    if (json.len > UINT32_MAX / 2)
        return FIRN_EFORMAT;
    c->members.max = c->order.max = SCRATCH_MAX;
    c->members.len = 0;
    json_start(&w.j, json.p, json.len, NULL);
    int r = value(&w);
    if (r == 0)
        r = json_finish(&w.j);
    if (r == 0)
        return 0;
    out->len = before;
    out->failed = c->members.failed = c->order.failed = false;
    return r == FIRN_ENOMEM ? r : FIRN_EFORMAT;
}

void canon_done(struct canon *c)
{
    buf_done(&c->members);
    buf_done(&c->order);
}
