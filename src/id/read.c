/*
 * One table of kinds, each with a reader that turns a text into a struct firn_reading: canonical
 * text, bytes, time and fields with their places. What the CLI draws and the server answers comes
 * from here.
 */
#include "firn/read.h"
#include "firn/cuid2.h"
#include "firn/dated.h"
#include "firn/ksuid.h"
#include "firn/nanoid.h"
#include "firn/objectid.h"
#include "firn/prefixed.h"
#include "firn/stamp17.h"
#include "firn/text.h"
#include "firn/ticket.h"
#include "firn/tsid.h"
#include "firn/typeid.h"
#include "firn/ulid.h"
#include "firn/uuid.h"
#include "firn/xid.h"
#include "id/civil.h"
#include "id/diag.h"
#include "id/layout_same.h"
#include "id/read.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef int reader(const char *p, size_t len, const struct firn_layout *l, struct firn_reading *out,
                   struct firn_diag *diag);

/* --- building a reading --- */

__attribute__((format(printf, 5, 6))) static void add_field(struct firn_reading *r,
                                                            const char *name, unsigned bit,
                                                            unsigned bits, const char *fmt, ...)
{
    if (r->fields_n == FIRN_READ_FIELDS_MAX)
        return;
    struct firn_read_field *f = &r->field[r->fields_n++];
    va_list args;
    va_start(args, fmt);
    snprintf(f->name, sizeof f->name, "%s", name);
    vsnprintf(f->value, sizeof f->value, fmt, args);
    va_end(args);
    f->bit = (uint8_t)bit;
    f->bits = (uint8_t)bits;
}

static void add_number(struct firn_reading *r, const char *name, unsigned bit, unsigned bits,
                       uint64_t value)
{
    add_field(r, name, bit, bits, "%llu", (unsigned long long)value);
}

static void add_hex(struct firn_reading *r, const char *name, unsigned bit, unsigned bits,
                    const uint8_t *p, size_t len)
{
    char hex[41];
    for (size_t i = 0; i < len && i < 20; i++)
        snprintf(hex + 2 * i, 3, "%02x", p[i]);
    add_field(r, name, bit, bits, "%s", hex);
}

/* The time field; its fraction is as fine as the format's tick. */
static void add_time(struct firn_reading *r, unsigned bit, unsigned bits, int64_t unix_us,
                     unsigned fraction_digits)
{
    char text[FIRN__RFC3339_BUF] = "beyond the year 9999";
    int64_t s = unix_us / 1000000, us = unix_us % 1000000;
    if (us < 0) {
        s--;
        us += 1000000;
    }
    struct firn__time t = { s, (uint32_t)us * 1000 };
    firn__rfc3339_format(t, fraction_digits, text, sizeof text);
    add_field(r, "time", bit, bits, "%s", text);
    r->has_time = 1;
    r->unix_us = unix_us;
}

static void set_bytes(struct firn_reading *r, const uint8_t *p, size_t len)
{
    memcpy(r->bytes, p, len);
    r->bytes_len = (uint32_t)len;
}

static void set_number(struct firn_reading *r, uint64_t v)
{
    r->number = v;
    r->bytes_len = 8;
    for (int i = 0; i < 8; i++)
        r->bytes[i] = (uint8_t)(v >> (56 - 8 * i));
}

static void set_text(struct firn_reading *r, const char *p, size_t len)
{
    if (len >= sizeof r->text)
        len = sizeof r->text - 1;
    memcpy(r->text, p, len);
    r->text[len] = '\0';
}

/* --- readers --- */

/* The fields of each version, in the order of their bits; variant and version stand in all of
 * them. */
static void uuid_fields(const struct firn_uuid *u, int version, struct firn_reading *r)
{
    uint64_t ms, ticks;
    uint16_t clock_seq;
    uint8_t node[6], low[8];
    unsigned middle = (u->b[6] & 0x0fu) << 8 | u->b[7]; /* the 12 bits behind the version */
    memcpy(low, u->b + 8, sizeof low);
    low[0] &= 0x3f; /* the 62 bits behind the variant */
    if (version == 7 && firn_uuid_unix_ms(u, &ms) == 0) {
        add_time(r, 0, 48, (int64_t)ms * 1000, 3);
        add_number(r, "version", 48, 4, 7);
        add_field(r, "rand_a", 52, 12, "%03x", middle);
        add_number(r, "variant", 64, 2, u->b[8] >> 6);
        add_hex(r, "rand_b", 66, 62, low, sizeof low);
    } else if (firn_uuid_ticks(u, &ticks) == 0 && firn_uuid_clock_seq(u, &clock_seq) == 0 &&
               firn_uuid_node(u, node) == 0) {
        int64_t since = (int64_t)ticks - (int64_t)FIRN_UUID_UNIX_EPOCH_TICKS;
        int64_t us = since / 10 - (since % 10 < 0); /* towards the past, before 1970, too */
        add_time(r, 0, 48, us, 6);
        add_number(r, "version", 48, 4, (uint64_t)version);
        add_field(r, version == 6 ? "time_low" : "time_high", 52, 12, "%03x", middle);
        add_number(r, "variant", 64, 2, u->b[8] >> 6);
        add_number(r, "clock_seq", 66, 14, clock_seq);
        add_hex(r, "node", 80, 48, node, 6);
    } else {
        static const char *const what[9] = {
            [3] = "md5", [4] = "random", [5] = "sha1", [8] = "custom"
        };
        const char *name = version <= 8 && what[version] ? what[version] : "bits";
        add_hex(r, name, 0, 48, u->b, 6);
        add_number(r, "version", 48, 4, (uint64_t)version);
        add_field(r, name, 52, 12, "%03x", middle);
        add_number(r, "variant", 64, 2, u->b[8] >> 6);
        add_hex(r, name, 66, 62, low, sizeof low);
    }
}

static int read_uuid(const char *p, size_t len, const struct firn_layout *l,
                     struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    struct firn_uuid u;
    int r = firn_uuid_parse_any(p, len, &u);
    if (r)
        return r;
    set_bytes(out, u.b, sizeof u.b);
    firn_uuid_format(&u, out->text);
    int version = firn_uuid_version(&u); /* negative: not the RFC's variant */
    if (firn_uuid_cmp(&u, &firn_uuid_nil) == 0)
        add_field(out, "nil", 0, 128, "all zeros: no ID");
    else if (firn_uuid_cmp(&u, &firn_uuid_max) == 0)
        add_field(out, "max", 0, 128, "all ones: after every ID");
    else if (version < 0)
        add_hex(out, "bits", 0, 128, u.b, sizeof u.b);
    else
        uuid_fields(&u, version, out);
    return 0;
}

static int read_ulid(const char *p, size_t len, const struct firn_layout *l,
                     struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    struct firn_ulid u;
    int r = firn_ulid_parse(p, len, &u);
    if (r)
        return r;
    set_bytes(out, u.b, sizeof u.b);
    firn_ulid_format(&u, out->text);
    add_time(out, 0, 48, (int64_t)firn_ulid_unix_ms(&u) * 1000, 3);
    add_hex(out, "random", 48, 80, firn_ulid_random(&u), 10);
    return 0;
}

static int read_ksuid(const char *p, size_t len, const struct firn_layout *l,
                      struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    struct firn_ksuid k;
    int r = firn_ksuid_parse(p, len, &k);
    if (r)
        return r;
    set_bytes(out, k.b, sizeof k.b);
    firn_ksuid_format(&k, out->text);
    add_time(out, 0, 32, (int64_t)firn_ksuid_unix_ms(&k) * 1000, 0);
    add_hex(out, "random", 32, 128, firn_ksuid_payload(&k), FIRN_KSUID_PAYLOAD_BYTES);
    return 0;
}

static int read_xid(const char *p, size_t len, const struct firn_layout *l,
                    struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    struct firn_xid x;
    int r = firn_xid_parse(p, len, &x);
    if (r)
        return r;
    set_bytes(out, x.b, sizeof x.b);
    firn_xid_format(&x, out->text);
    add_time(out, 0, 32, (int64_t)firn_xid_unix_ms(&x) * 1000, 0);
    add_hex(out, "machine", 32, 24, firn_xid_machine(&x), 3);
    add_number(out, "pid", 56, 16, firn_xid_pid(&x));
    add_number(out, "counter", 72, 24, firn_xid_counter(&x));
    return 0;
}

static int read_objectid(const char *p, size_t len, const struct firn_layout *l,
                         struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    struct firn_objectid o;
    int r = firn_objectid_parse(p, len, &o);
    if (r)
        return r;
    set_bytes(out, o.b, sizeof o.b);
    firn_objectid_format(&o, out->text);
    add_time(out, 0, 32, (int64_t)firn_objectid_unix_ms(&o) * 1000, 0);
    add_hex(out, "random", 32, 40, firn_objectid_random(&o), FIRN_OBJECTID_RANDOM_BYTES);
    add_number(out, "counter", 72, 24, firn_objectid_counter(&o));
    return 0;
}

static int read_nanoid(const char *p, size_t len, const struct firn_layout *l,
                       struct firn_reading *out, struct firn_diag *diag)
{
    (void)diag;
    (void)l;
    int r = firn_nanoid_check(p, len, NULL);
    if (r)
        return r;
    set_text(out, p, len);
    add_field(out, "random", 0, 0, "%zu characters of 64", len);
    return 0;
}

static int read_cuid2(const char *p, size_t len, const struct firn_layout *l,
                      struct firn_reading *out, struct firn_diag *diag)
{
    (void)diag;
    (void)l;
    int r = firn_cuid2_check(p, len);
    if (r)
        return r;
    set_text(out, p, len);
    add_field(out, "hash", 0, 0, "%zu characters of 36", len);
    return 0;
}

static int read_typeid(const char *p, size_t len, const struct firn_layout *l,
                       struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    struct firn_typeid t;
    int r = firn_typeid_parse(p, len, &t);
    if (r)
        return r;
    set_bytes(out, t.uuid.b, sizeof t.uuid.b);
    firn_typeid_format(&t, out->text);
    add_field(out, "type", 0, 0, "%s", t.prefix[0] ? t.prefix : "(none)");
    char uuid[FIRN_UUID_TEXT_BUF];
    firn_uuid_format(&t.uuid, uuid);
    add_field(out, "uuid", 0, 0, "%s", uuid);
    if (firn_uuid_version(&t.uuid) >= 0)
        uuid_fields(&t.uuid, firn_uuid_version(&t.uuid), out);
    return 0;
}

/* The fields of a 64-bit layout, high bit first. */
static int read_number(uint64_t id, const struct firn_layout *l, struct firn_reading *out,
                       struct firn_diag *diag)
{
    struct firn_parts parts;
    if (firn_layout_decompose(l, id, &parts) != 0)
        return firn__diag(diag, FIRN_ERANGE, 0, "bits are set that this layout does not use");
    set_number(out, id);
    for (int top = 64; top > 0;) {
        int f = 0;
        while (f < FIRN_FIELDS &&
               !(l->field[f].width && l->field[f].shift + l->field[f].width == top))
            f++;
        if (f == FIRN_FIELDS) { /* an unused bit */
            top--;
            continue;
        }
        struct firn_bits b = l->field[f];
        if (f == FIRN_FIELD_TIME)
            add_time(out, 64u - (unsigned)top, b.width, firn_layout_unix_us(l, parts.field[f]),
                     l->tick_us % 1000000 == 0 ? 0
                     : l->tick_us % 1000 == 0  ? 3
                                               : 6);
        else
            add_number(out, firn_field_name((enum firn_field)f), 64u - (unsigned)top, b.width,
                       parts.field[f]);
        top = b.shift;
    }
    return 0;
}

static void name_layout(const struct firn_layout *l, struct firn_reading *out)
{
    size_t n;
    const struct firn_preset *presets = firn_layout_presets(&n);
    snprintf(out->layout, sizeof out->layout, "custom");
    for (size_t i = 0; i < n; i++) {
        struct firn_layout preset;
        if (firn_layout_parse(presets[i].text, strlen(presets[i].text), 0, &preset, NULL) == 0 &&
            layout_same(&preset, l)) {
            snprintf(out->layout, sizeof out->layout, "%s", presets[i].name);
            return;
        }
    }
}

static int read_snowflake(const char *p, size_t len, const struct firn_layout *l,
                          struct firn_reading *out, struct firn_diag *diag)
{
    struct firn_layout standard;
    uint64_t id;
    if (!l) {
        int r = firn_layout_parse("firn", 4, 0, &standard, diag);
        if (r)
            return r;
        l = &standard;
    }
    int r = firn_u64_parse(p, len, &id);
    if (r)
        return r;
    set_text(out, p, len);
    name_layout(l, out);
    return read_number(id, l, out, diag);
}

static int read_sonyflake(const char *p, size_t len, const struct firn_layout *l,
                          struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    struct firn_layout sonyflake;
    int r = firn_layout_parse("sonyflake", 9, 0, &sonyflake, diag);
    return r ? r : read_snowflake(p, len, &sonyflake, out, diag);
}

static int read_tsid(const char *p, size_t len, const struct firn_layout *l,
                     struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    struct firn_layout layout;
    struct firn_tsid id;
    int r = firn_tsid_parse(p, len, &id);
    if (r == 0)
        r = firn_layout_parse("tsid", 4, 0, &layout, diag);
    if (r)
        return r;
    firn_tsid_format(&id, out->text);
    return read_number(firn_tsid_u64(&id), &layout, out, diag);
}

static int read_ticket(const char *p, size_t len, const struct firn_layout *l,
                       struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    uint64_t n;
    int r = firn_ticket_parse(p, len, &n);
    if (r)
        return r;
    set_text(out, p, len);
    set_number(out, n);
    add_number(out, "number", 0, 64, n);
    return 0;
}

static int read_dated(const char *p, size_t len, const struct firn_layout *l,
                      struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    static const char *const reset[] = { "day", "month", "year" };
    struct firn_dated d;
    int r = firn_dated_parse(p, len, 0, &d);
    if (r)
        return r;
    firn_dated_format(&d, out->text);
    /* The period's first day is when the earliest of its IDs can have been made. */
    static const uint32_t to_day[] = { 1, 100, 10000 }, first[] = { 0, 1, 101 };
    uint32_t ymd = d.period * to_day[d.reset] + first[d.reset];
    struct firn__date date = { (int32_t)(ymd / 10000), ymd / 100 % 100, ymd % 100 };
    add_time(out, 0, 0, firn__date_to_days(date) * FIRN__DAY_S * 1000000, 0);
    add_field(out, "period", 0, 0, "%u", d.period);
    add_field(out, "resets", 0, 0, "each %s", reset[d.reset]);
    add_number(out, "number", 0, 0, d.number);
    return 0;
}

static int read_stamp17(const char *p, size_t len, const struct firn_layout *l,
                        struct firn_reading *out, struct firn_diag *diag)
{
    (void)l;
    (void)diag;
    int64_t ms;
    int r = firn_stamp17_parse(p, len, &ms);
    if (r)
        return r;
    set_text(out, p, len);
    add_time(out, 0, 0, ms * 1000, 3);
    add_field(out, "warning", 0, 0, "unsafe: two in one millisecond are equal");
    return 0;
}

static reader read_prefixed;

/* --- the table --- */

#define TIMED  (FIRN_KIND_TIME | FIRN_KIND_SORTS)
#define MAKES  FIRN_KIND_MAKES
#define NUMBER FIRN_KIND_NUMBER

#define KINDS(X)                                                                                  \
    X("snowflake", "64-bit number of any layout: time, node, sequence", TIMED | MAKES | NUMBER,   \
      64, read_snowflake)                                                                         \
    X("sonyflake", "64-bit number: 10 ms ticks, sequence, machine", TIMED | MAKES | NUMBER, 64,   \
      read_sonyflake)                                                                             \
    X("tsid", "64-bit number as 13 characters of base32", TIMED | MAKES, 64, read_tsid)           \
    X("uuidv1", "UUID: Gregorian time, clock sequence, node", FIRN_KIND_TIME | MAKES, 128,        \
      read_uuid)                                                                                  \
    X("uuidv3", "UUID: MD5 of a namespace and a name", MAKES, 128, read_uuid)                     \
    X("uuidv4", "UUID: 122 random bits", MAKES, 128, read_uuid)                                   \
    X("uuidv5", "UUID: SHA-1 of a namespace and a name", MAKES, 128, read_uuid)                   \
    X("uuidv6", "UUID: as version 1, in an order that sorts", TIMED | MAKES, 128, read_uuid)      \
    X("uuidv7", "UUID: Unix milliseconds, counter, random bits", TIMED | MAKES, 128, read_uuid)   \
    X("uuidv8", "UUID: bits of your own; made with random ones", MAKES, 128, read_uuid)           \
    X("uuid", "UUID of any version, nil and max; made as version 4", MAKES, 128, read_uuid)       \
    X("ulid", "milliseconds and 80 random bits, 26 characters", TIMED | MAKES, 128, read_ulid)    \
    X("ksuid", "seconds and 128 random bits, 27 characters", TIMED | MAKES, 160, read_ksuid)      \
    X("xid", "seconds, machine, process, counter, 20 characters", TIMED | MAKES, 96, read_xid)    \
    X("objectid", "MongoDB: seconds, random bytes, counter", TIMED | MAKES, 96, read_objectid)    \
    X("typeid", "a type and a UUID version 7: user_01h4…", TIMED | MAKES, 128, read_typeid)       \
    X("nanoid", "21 random characters of A-Za-z0-9_-", MAKES, 0, read_nanoid)                     \
    X("cuid2", "24 characters of a hash, no time to be seen", MAKES, 0, read_cuid2)               \
    X("ticket", "a plain number that counts up", MAKES | NUMBER, 64, read_ticket)                 \
    X("dated", "a date and a counter: 20261115-000042", TIMED | MAKES, 0, read_dated)             \
    X("prefixed", "a business prefix and another ID: ord_…", 0, 0, read_prefixed)                 \
    X("stamp17", "yyyyMMddHHmmssSSS; two in one millisecond are equal", TIMED | FIRN_KIND_UNSAFE, \
      0, read_stamp17)

static const struct firn_kind kinds[] = {
#define X(name, about, flags, bits, read) { name, about, flags, bits },
    KINDS(X)
#undef X
};

static reader *const readers[] = {
#define X(name, about, flags, bits, read) read,
    KINDS(X)
#undef X
};

enum { KINDS_N = sizeof kinds / sizeof kinds[0] };

const struct firn_kind *firn_kinds(size_t *out_n)
{
    *out_n = KINDS_N;
    return kinds;
}

const struct firn_kind *firn_kind_find(const char *name, size_t len)
{
    for (size_t i = 0; name && i < KINDS_N; i++)
        if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0)
            return &kinds[i];
    return NULL;
}

/* "uuidv4" asks for more than a UUID: the version must be that one. A reading as "uuid" is told the
 * kind of its version, where there is one. */
static int settle_version(const struct firn_kind *kind, struct firn_reading *r,
                          struct firn_diag *diag)
{
    if (strncmp(kind->name, "uuid", 4) != 0)
        return 0;
    struct firn_uuid u;
    memcpy(u.b, r->bytes, sizeof u.b);
    int version = firn_uuid_version(&u);
    char name[8] = "uuidv?";
    name[5] = version >= 0 && version <= 9 ? (char)('0' + version) : '?';
    const struct firn_kind *exact = firn_kind_find(name, 6);
    if (strcmp(kind->name, "uuid") == 0) {
        r->kind = exact ? exact : kind;
        return 0;
    }
    if (exact == kind)
        return 0;
    return version < 0 ? firn__diag(diag, FIRN_EFORMAT, 0, "a UUID without a version")
                       : firn__diag(diag, FIRN_EFORMAT, 0, "a UUID of version %d", version);
}

int firn_read(const struct firn_kind *kind, const char *p, size_t len,
              const struct firn_layout *layout, struct firn_reading *out, struct firn_diag *diag)
{
    if (!kind || kind < kinds || kind >= kinds + KINDS_N || !p || !out)
        return FIRN_EINVAL;
    if (len >= FIRN_READ_TEXT_BUF)
        return firn__diag(diag, FIRN_EFORMAT, 0, "longer than %d characters",
                          FIRN_READ_TEXT_BUF - 1);
    struct firn_diag why = { 0, "" };
    struct firn_reading r;
    memset(&r, 0, sizeof r);
    r.kind = kind;
    int e = readers[kind - kinds](p, len, layout, &r, &why);
    if (e == 0)
        e = settle_version(kind, &r, &why);
    if (e == 0)
        *out = r;
    else
        firn__diag(diag, e, why.column, "not of kind %s%s%s", kind->name, why.text[0] ? ": " : "",
                   why.text);
    return e;
}

int firn__read_usual_length(const struct firn_kind *kind, size_t len)
{
    if (strcmp(kind->name, "nanoid") == 0)
        return len == FIRN_NANOID_LEN;
    return strcmp(kind->name, "cuid2") != 0 || len == FIRN_CUID2_LEN;
}

/* A prefix says what the ID is of, not which kind it is: the rest is read as the first kind that
 * fits, in this order, from the most to the least particular. */
static int read_prefixed(const char *p, size_t len, const struct firn_layout *l,
                         struct firn_reading *out, struct firn_diag *diag)
{
    static const char *const inner[] = { "uuid", "ulid",  "ksuid",  "objectid",  "xid",
                                         "tsid", "dated", "nanoid", "snowflake", "cuid2" };
    struct firn_prefixed split;
    int r = firn_prefixed_split(p, len, &split, diag);
    if (r)
        return r;
    struct firn_reading rest;
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        const struct firn_kind *kind = firn_kind_find(inner[i], strlen(inner[i]));
        if (!firn__read_usual_length(kind, split.rest_len) ||
            firn_read(kind, split.rest, split.rest_len, l, &rest, NULL) != 0)
            continue;
        set_text(out, p, split.prefix_len + 1);
        size_t at = split.prefix_len + 1;
        snprintf(out->text + at, sizeof out->text - at, "%.*s", (int)(sizeof out->text - at - 1),
                 rest.text);
        memcpy(out->bytes, rest.bytes, sizeof out->bytes);
        memcpy(out->layout, rest.layout, sizeof out->layout);
        out->bytes_len = rest.bytes_len;
        out->number = rest.number;
        out->has_time = rest.has_time;
        out->unix_us = rest.unix_us;
        add_field(out, "prefix", 0, 0, "%.*s", (int)split.prefix_len, split.prefix);
        add_field(out, "kind", 0, 0, "%s", inner[i]);
        for (uint32_t f = 0; f < rest.fields_n && out->fields_n < FIRN_READ_FIELDS_MAX; f++)
            out->field[out->fields_n++] = rest.field[f];
        return 0;
    }
    return firn__diag(diag, FIRN_EFORMAT, split.prefix_len + 2,
                      "the part after the prefix is no ID");
}
