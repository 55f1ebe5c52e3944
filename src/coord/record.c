/*
 * Records as text: meta, slot, seq and idem, and the encoder and parser that all records share
 * (record_form.h).
 * Tests: tests/unit/coord/record.c; tests/fuzz/record.c.
 */
#include "coord/record_form.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const hold_name[] = { "free", "held", "retired", NULL };
static const char *const mode_name[] = { "gapless", "range", NULL };

_Static_assert(sizeof(enum slot_hold) == sizeof(unsigned) && sizeof(enum seq_mode) == 4, "CHOICE");

static const struct record_field meta_field[] = {
    F(struct meta_record, cluster, NONCE),   FT(struct meta_record, layout, NOTE),
    F(struct meta_record, slot_lo, NUMBER),  F(struct meta_record, slot_hi, NUMBER),
    F(struct meta_record, window, NUMBER),   F(struct meta_record, max_drift, NUMBER),
    F(struct meta_record, skew_max, NUMBER), F(struct meta_record, floor, NUMBER),
    FT(struct meta_record, store_inc, TEXT), F(struct meta_record, req, NONCE),
};

static const struct record_field slot_field[] = {
    F(struct slot_record, cluster, NONCE),    F(struct slot_record, epoch, NUMBER),
    FC(struct slot_record, state, hold_name), F(struct slot_record, owner, NONCE),
    FT(struct slot_record, name, TEXT),       F(struct slot_record, from, NUMBER),
    F(struct slot_record, until, NUMBER),     F(struct slot_record, at, NUMBER),
    F(struct slot_record, req, NONCE),
};

static const struct record_field seq_field[] = {
    FC(struct seq_record, mode, mode_name), F(struct seq_record, start, NUMBER),
    F(struct seq_record, step, NUMBER),     F(struct seq_record, offset, NUMBER),
    F(struct seq_record, max, NUMBER),      F(struct seq_record, next, NUMBER),
    FT(struct seq_record, note, NOTE),      F(struct seq_record, req, NONCE),
};

static const struct record_field idem_field[] = {
    F(struct idem_record, args, NUMBER),   F(struct idem_record, first, NUMBER),
    F(struct idem_record, step, NUMBER),   F(struct idem_record, count, NUMBER),
    F(struct idem_record, period, NUMBER), F(struct idem_record, at, NUMBER),
    FT(struct idem_record, ids, NOTE),     F(struct idem_record, req, NONCE),
};

static const struct record_form meta_form = { "firn=meta 1\n", meta_field,
                                              sizeof meta_field / sizeof meta_field[0] };
static const struct record_form slot_form = { "firn=slot 1\n", slot_field,
                                              sizeof slot_field / sizeof slot_field[0] };
/* The version tells which lines follow: its number less one is a sum of these. */
enum { SEQ_KEYED = 1, SEQ_WRITTEN = 2 };
#define SEQ_FIELDS seq_field, sizeof seq_field / sizeof seq_field[0]
static const struct record_form seq_form[] = { { "firn=seq 1\n", SEQ_FIELDS },
                                               { "firn=seq 2\n", SEQ_FIELDS },
                                               { "firn=seq 3\n", SEQ_FIELDS },
                                               { "firn=seq 4\n", SEQ_FIELDS } };
static const struct record_form idem_form = { "firn=idem 1\n", idem_field,
                                              sizeof idem_field / sizeof idem_field[0] };

/* The longest record fits: 12 + lines of at most 10 + 1 + value + 1 bytes. */
_Static_assert(12 + 10 * 12 + 2 * 32 + RECORD_LAYOUT_MAX + 6 * 20 + RECORD_INC_MAX <=
                   RECORD_TEXT_MAX,
               "meta");
_Static_assert(12 + 8 * 8 + 8 + 5 * 19 + RECORD_NOTE_MAX + 32 + 9 + 17 * SEQ_WRITERS + 3 + 19 + 6 +
                       81 <=
                   RECORD_TEXT_MAX,
               "seq, with room for a key");
_Static_assert(12 + 8 * 8 + 6 * 19 + IDEM_IDS_MAX + 32 <= RECORD_TEXT_MAX, "idem");

static size_t put_text(char *out, const char *text)
{
    size_t n = strlen(text);
    memcpy(out, text, n);
    return n;
}

size_t record_put_number(char *out, uint64_t v)
{
    char digit[20];
    size_t n = 0;
    do
        digit[n++] = (char)('0' + v % 10);
    while (v /= 10);
    for (size_t i = 0; i < n; i++)
        out[i] = digit[n - 1 - i];
    return n;
}

static size_t put_hex(char *out, const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = "0123456789abcdef"[b[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[b[i] & 15];
    }
    return 2 * n;
}

static size_t put_nonce(char *out, const struct nonce *v)
{
    return put_hex(out, v->b, sizeof v->b);
}

void nonce_text(const struct nonce *n, char out[NONCE_TEXT_BUF])
{
    out[put_nonce(out, n)] = '\0';
}

static const char *choice_name(const struct record_field *f, unsigned value)
{
    for (unsigned i = 0; i <= value; i++)
        firn_assert(f->choice[i], "%s=%u", f->name, value);
    return f->choice[value];
}

size_t record_encode(const struct record_form *form, const void *record, char *out)
{
    char *p = out + put_text(out, form->head);
    for (size_t i = 0; i < form->count; i++) {
        const struct record_field *f = &form->field[i];
        const void *v = (const char *)record + f->offset;
        p += put_text(p, f->name);
        *p++ = '=';
        switch (f->type) {
        case NUMBER:
            p += record_put_number(p, *(const uint64_t *)v);
            break;
        case NONCE:
            p += put_nonce(p, v);
            break;
        case TEXT:
        case NOTE:
            firn_assert(strnlen(v, f->max + 1) <= f->max, "%s", f->name);
            p += put_text(p, v);
            break;
        case CHOICE:
            p += put_text(p, choice_name(f, *(const unsigned *)v));
            break;
        }
        *p++ = '\n';
    }
    firn_assert((size_t)(p - out) <= RECORD_TEXT_MAX, "%zu bytes", (size_t)(p - out));
    return (size_t)(p - out);
}

/* Each reads the bytes of one value; false: not the text that encode() would write. */
bool record_get_number(const char *p, size_t len, uint64_t *out)
{
    uint64_t v = 0;
    if (len == 0 || len > 19 || (p[0] == '0' && len > 1))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(unsigned char)p[i] - '0';
        if (digit > 9)
            return false;
        v = v * 10 + digit; /* 19 digits stay below 2^64 */
    }
    *out = v;
    return v <= INT64_MAX;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool get_hex(const char *p, size_t len, uint8_t *out, size_t n)
{
    if (len != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int hi = hex(p[2 * i]), lo = hex(p[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        out[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

static bool get_nonce(const char *p, size_t len, struct nonce *out)
{
    return get_hex(p, len, out->b, sizeof out->b);
}

static bool get_text(const char *p, size_t len, char lowest, size_t max, char *out)
{
    if (len > max)
        return false;
    for (size_t i = 0; i < len; i++)
        if (p[i] < lowest || p[i] > 0x7e)
            return false;
    memset(out, 0, max + 1);
    memcpy(out, p, len);
    return true;
}

static bool get_choice(const char *p, size_t len, const char *const *choice, unsigned *out)
{
    for (unsigned i = 0; choice[i]; i++)
        if (strlen(choice[i]) == len && memcmp(choice[i], p, len) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool get(const struct record_field *f, const char *p, size_t len, void *record)
{
    void *v = (char *)record + f->offset;
    switch (f->type) {
    case NUMBER:
        return record_get_number(p, len, v);
    case NONCE:
        return get_nonce(p, len, v);
    case TEXT:
        return get_text(p, len, '!', f->max, v);
    case NOTE:
        return get_text(p, len, ' ', f->max, v);
    case CHOICE:
        return get_choice(p, len, f->choice, v);
    }
    return false;
}

int record_parse_head(const struct record_form *form, const char *p, size_t len, void *record,
                      size_t *out_used, struct firn_diag *d)
{
    size_t at = strlen(form->head);
    if (len > RECORD_TEXT_MAX || len < at || memcmp(p, form->head, at) != 0)
        return firn__diag(d, FIRN_EFORMAT, 1, "not a record that begins with '%.*s'", (int)(at - 1),
                          form->head);
    for (size_t i = 0; i < form->count; i++) {
        const struct record_field *f = &form->field[i];
        size_t name = strlen(f->name);
        const char *end = at < len ? memchr(p + at, '\n', len - at) : NULL;
        if (!end || (size_t)(end - p) - at < name + 1 || memcmp(p + at, f->name, name) != 0 ||
            p[at + name] != '=')
            return firn__diag(d, FIRN_EFORMAT, at + 1, "the record has no line '%s=' here",
                              f->name);
        const char *value = p + at + name + 1;
        if (!get(f, value, (size_t)(end - value), record))
            return firn__diag(d, FIRN_EFORMAT, (size_t)(value - p) + 1, "bad value of '%s'",
                              f->name);
        at = (size_t)(end - p) + 1;
        firn_assert(at <= len, "%zu of %zu", at, len);
    }
    *out_used = at;
    return 0;
}

int record_parse(const struct record_form *form, const char *p, size_t len, void *record,
                 struct firn_diag *d)
{
    size_t at;
    int r = record_parse_head(form, p, len, record, &at, d);
    if (r == 0 && at != len)
        return firn__diag(d, FIRN_EFORMAT, at + 1, "the record goes on after its last line");
    return r;
}

size_t meta_encode(const struct meta_record *r, char out[RECORD_TEXT_MAX])
{
    firn_assert(r->slot_lo < r->slot_hi && r->window > 0, "slots %" PRIu64 " to %" PRIu64,
                r->slot_lo, r->slot_hi);
    return record_encode(&meta_form, r, out);
}

size_t slot_encode(const struct slot_record *r, char out[RECORD_TEXT_MAX])
{
    static const struct nonce none;
    firn_assert(r->from <= r->until, "from %" PRIu64 " until %" PRIu64, r->from, r->until);
    firn_assert((r->state == SLOT_HELD) != nonce_eq(&r->owner, &none), "state %d", (int)r->state);
    return record_encode(&slot_form, r, out);
}

size_t seq_encode(const struct seq_record *r, char out[RECORD_TEXT_MAX])
{
    static const struct seq_keys none;
    return seq_encode_keyed(r, &none, out);
}

/* Behind the lines of a sequence "writers=" with 16 hex digits each, then "at=1700000000", "keys="
 * with entries "key:args:first:count"; a space between two of them. */
enum { KEY_BYTES_MAX = 32 + 1 + 15 + 1 + 19 + 1 + 7 + 1, KEY_COUNT_MAX = 9999999 };

size_t seq_encode_keyed(const struct seq_record *r, const struct seq_keys *keys,
                        char out[RECORD_TEXT_MAX])
{
    int parts = (r->writers ? SEQ_WRITTEN : 0) + (keys->n ? SEQ_KEYED : 0);
    char *p = out + record_encode(&seq_form[parts], r, out), *end = out + RECORD_TEXT_MAX;
    firn_assert(r->step > 0 && r->offset < r->step && r->next % r->step == r->offset &&
                    r->next >= r->start,
                "next %" PRIu64 " step %" PRIu64 " offset %" PRIu64, r->next, r->step, r->offset);
    firn_assert(r->writers <= SEQ_WRITERS && keys->n <= SEQ_KEYS_MAX, "%u writers, %u keys",
                r->writers, keys->n);
    if (r->writers)
        p += put_text(p, "writers=");
    for (uint32_t i = 0; i < r->writers; i++) {
        p += put_hex(p, r->writer[i].b, sizeof r->writer[i].b);
        *p++ = i + 1 < r->writers ? ' ' : '\n';
    }
    if (keys->n == 0)
        return (size_t)(p - out);
    p += put_text(p, "at=");
    p += record_put_number(p, keys->at);
    p += put_text(p, "\nkeys=");
    for (uint32_t i = 0; i < keys->n; i++) {
        const struct seq_keyed *k = &keys->key[i];
        if (end - p < KEY_BYTES_MAX)
            return 0;
        firn_assert(k->args <= RECORD_ARGS_MAX && k->count > 0 && k->count <= KEY_COUNT_MAX);
        firn_assert(k->first + k->count * r->step <= r->next, "key %" PRIu64 " next %" PRIu64,
                    k->first, r->next);
        p += put_nonce(p, &k->key);
        *p++ = ':';
        p += record_put_number(p, k->args);
        *p++ = ':';
        p += record_put_number(p, k->first);
        *p++ = ':';
        p += record_put_number(p, k->count);
        *p++ = i + 1 < keys->n ? ' ' : '\n';
    }
    firn_assert(p <= end, "%zu bytes", (size_t)(p - out));
    return (size_t)(p - out);
}

size_t idem_encode(const struct idem_record *r, char out[RECORD_TEXT_MAX])
{
    firn_assert(r->count > 0 && r->args <= RECORD_ARGS_MAX);
    firn_assert((r->step == 0) == (r->ids[0] != '\0'), "step %" PRIu64, r->step);
    return record_encode(&idem_form, r, out);
}

int meta_parse(const char *p, size_t len, struct meta_record *out, struct firn_diag *d)
{
    struct meta_record m = { 0 };
    int r = record_parse(&meta_form, p, len, &m, d);
    if (r != 0)
        return r;
    if (m.slot_lo >= m.slot_hi || m.slot_hi > UINT32_MAX || m.window == 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "the meta record has no slots or no window");
    *out = m;
    return 0;
}

int slot_parse(const char *p, size_t len, struct slot_record *out, struct firn_diag *d)
{
    static const struct nonce none;
    struct slot_record s = { 0 };
    int r = record_parse(&slot_form, p, len, &s, d);
    if (r != 0)
        return r;
    if (s.from > s.until || (s.state == SLOT_HELD) == nonce_eq(&s.owner, &none))
        return firn__diag(d, FIRN_EFORMAT, 0, "the slot record contradicts itself");
    *out = s;
    return 0;
}

struct piece { /* a piece of a line */
    const char *p;
    size_t len;
};

/* Consumes the bytes up to `stop`, and `stop`; false: it is not there. */
static bool until(const char **p, const char *end, char stop, struct piece *out)
{
    const char *at = memchr(*p, stop, (size_t)(end - *p));
    if (!at)
        return false;
    *out = (struct piece){ *p, (size_t)(at - *p) };
    *p = at + 1;
    return true;
}

static bool get_key(struct piece entry, const struct seq_record *s, struct seq_keyed *k)
{
    const char *p = entry.p, *end = p + entry.len;
    struct piece key, args, first;
    if (!until(&p, end, ':', &key) || !until(&p, end, ':', &args) || !until(&p, end, ':', &first) ||
        !get_nonce(key.p, key.len, &k->key) || !record_get_number(args.p, args.len, &k->args) ||
        !record_get_number(first.p, first.len, &k->first) ||
        !record_get_number(p, (size_t)(end - p), &k->count))
        return false;
    return k->args <= RECORD_ARGS_MAX && k->count > 0 && k->count <= KEY_COUNT_MAX &&
           k->first >= s->start && k->first % s->step == s->offset && k->first < s->next &&
           k->count <= (s->next - k->first) / s->step;
}

static bool get_writers(const char **p, const char *end, struct seq_record *s)
{
    struct piece line, entry;
    if (end - *p < 8 || memcmp(*p, "writers=", 8) != 0)
        return false;
    *p += 8;
    if (!until(p, end, '\n', &line))
        return false;
    for (const char *at = line.p, *stop = line.p + line.len; s->writers < SEQ_WRITERS;) {
        struct seq_writer *w = &s->writer[s->writers];
        bool more = until(&at, stop, ' ', &entry);
        if (!more)
            entry = (struct piece){ at, (size_t)(stop - at) };
        if (!get_hex(entry.p, entry.len, w->b, sizeof w->b))
            return false;
        for (uint32_t i = 0; i < s->writers; i++)
            if (memcmp(s->writer[i].b, w->b, SEQ_WRITER_NAME) == 0)
                return false;
        s->writers++;
        if (!more)
            return true;
    }
    return false;
}

static bool get_keys(const char *p, const char *end, const struct seq_record *s,
                     struct seq_keys *keys)
{
    struct piece line, entry;
    if (end - p < 3 || memcmp(p, "at=", 3) != 0)
        return false;
    p += 3;
    if (!until(&p, end, '\n', &line) || !record_get_number(line.p, line.len, &keys->at) ||
        end - p < 5 || memcmp(p, "keys=", 5) != 0)
        return false;
    p += 5;
    while (keys->n < SEQ_KEYS_MAX) {
        bool more = until(&p, end, ' ', &entry);
        if ((!more && !until(&p, end, '\n', &entry)) || !get_key(entry, s, &keys->key[keys->n]))
            return false;
        for (uint32_t i = 0; i < keys->n; i++)
            if (nonce_eq(&keys->key[i].key, &keys->key[keys->n].key))
                return false;
        keys->n++;
        if (!more)
            return p == end;
    }
    return false;
}

int seq_parse_keyed(const char *p, size_t len, struct seq_record *out, struct seq_keys *out_keys,
                    struct firn_diag *d)
{
    struct seq_record s = { 0 };
    struct seq_keys keys = { 0 };
    size_t head = strlen(seq_form[0].head), at = 0;
    int parts = SEQ_KEYED + SEQ_WRITTEN;
    while (parts > 0 && (len < head || memcmp(p, seq_form[parts].head, head) != 0))
        parts--;
    int r = parts ? record_parse_head(&seq_form[parts], p, len, &s, &at, d)
                  : record_parse(&seq_form[0], p, len, &s, d);
    if (r != 0)
        return r;
    const char *rest = p + at, *end = p + len;
    if ((parts & SEQ_WRITTEN) &&
        (!get_writers(&rest, end, &s) || (parts == SEQ_WRITTEN && rest != end)))
        return firn__diag(d, FIRN_EFORMAT, at + 1, "bad list of writers in the sequence record");
    if (s.step == 0 || s.offset >= s.step || s.next % s.step != s.offset || s.next < s.start)
        return firn__diag(d, FIRN_EFORMAT, 0, "the sequence record contradicts itself");
    if ((parts & SEQ_KEYED) && !get_keys(rest, end, &s, &keys))
        return firn__diag(d, FIRN_EFORMAT, (size_t)(rest - p) + 1,
                          "bad list of keys in the sequence record");
    *out = s;
    *out_keys = keys;
    return 0;
}

int seq_parse(const char *p, size_t len, struct seq_record *out, struct firn_diag *d)
{
    struct seq_keys keys;
    return seq_parse_keyed(p, len, out, &keys, d);
}

int idem_parse(const char *p, size_t len, struct idem_record *out, struct firn_diag *d)
{
    struct idem_record i = { 0 };
    int r = record_parse(&idem_form, p, len, &i, d);
    if (r != 0)
        return r;
    if (i.count == 0 || (i.step == 0) != (i.ids[0] != '\0') || i.args > RECORD_ARGS_MAX ||
        i.period > UINT32_MAX)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "the record of an idempotency key is inconsistent: remove its register");
    *out = i;
    return 0;
}

size_t record_number_key(const char *prefix, uint32_t n, char out[RECORD_KEY_BUF])
{
    int len = snprintf(out, RECORD_KEY_BUF, "%s%05u", prefix, n);
    firn_assert(len > 0 && len < RECORD_KEY_BUF);
    return (size_t)len;
}

int record_number_key_parse(const char *prefix, const char *p, size_t len, uint32_t *out)
{
    uint32_t v = 0;
    size_t at = strlen(prefix);
    if (len != at + 5 || memcmp(p, prefix, at) != 0)
        return FIRN_EFORMAT;
    for (size_t i = at; i < len; i++) {
        unsigned digit = (unsigned)(unsigned char)p[i] - '0';
        if (digit > 9)
            return FIRN_EFORMAT;
        v = v * 10 + digit;
    }
    *out = v;
    return 0;
}

size_t record_name_key(const char *prefix, const char *name, size_t len, char out[RECORD_KEY_BUF])
{
    size_t at = strlen(prefix);
    firn_assert(len <= RECORD_NAME_MAX && at + len < RECORD_KEY_BUF, "%s and %zu bytes", prefix,
                len);
    memcpy(out, prefix, at);
    memcpy(out + at, name, len);
    out[at + len] = '\0';
    return at + len;
}

size_t slot_key(uint32_t slot, char out[RECORD_KEY_BUF])
{
    return record_number_key("slot/", slot, out);
}

int slot_key_parse(const char *p, size_t len, uint32_t *out_slot)
{
    return record_number_key_parse("slot/", p, len, out_slot);
}

size_t idem_key(const struct nonce *key, char out[RECORD_KEY_BUF])
{
    size_t n = put_text(out, "idem/");
    n += put_nonce(out + n, key);
    out[n] = '\0';
    return n;
}

size_t seq_key(const char *name, size_t len, char out[RECORD_KEY_BUF])
{
    return record_name_key("seq/", name, len, out);
}

bool record_name_ok(const char *p, size_t len)
{
    if (len == 0 || len > RECORD_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '.' && c != '_' && c != ':' && c != '-' && c != RECORD_INNER)
            return false;
    }
    return true;
}

bool record_user_name_ok(const char *p, size_t len)
{
    return record_name_ok(p, len) && !memchr(p, RECORD_INNER, len);
}

int record_user_name_check(const char *name, struct firn_diag *d)
{
    if (record_user_name_ok(name, strlen(name)))
        return 0;
    return firn__diag(d, FIRN_EINVAL, 0, "a name is 1 to %d of A-Z a-z 0-9 . _ : and -",
                      RECORD_NAME_MAX);
}
