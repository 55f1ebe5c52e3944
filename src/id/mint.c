/*
 * Any kind by name: one row a kind, with how to set it up and how to make the next text. The state
 * of all kinds lies side by side in struct firn_mint; a mint uses the part of its kind.
 */
#include "id/mint.h"
#include "firn/ksuid.h"
#include "firn/tsid.h"
#include "id/diag.h"
#include "id/gen_setup.h"

#include <string.h>

static uint64_t now_ms(struct firn_mint *m)
{
    return m->clock->now_ns(m->clock) / 1000000;
}

/* --- makers: the next text, without the prefix --- */

static int make_number(struct firn_mint *m, uint64_t id, char *out, size_t *out_len)
{
    if (m->codec)
        return firn_codec_encode64(m->codec, id, out, FIRN_CODEC_TEXT_BUF, out_len);
    *out_len = firn_u64_format(id, out);
    return 0;
}

static int make_snowflake(struct firn_mint *m, char *out, size_t *out_len)
{
    uint64_t id;
    int r = m->shard ? firn_gen_next_shard(&m->gen, m->shard, &id) : firn_gen_next(&m->gen, &id);
    return r ? r : make_number(m, id, out, out_len);
}

static int make_tsid(struct firn_mint *m, char *out, size_t *out_len)
{
    uint64_t id;
    int r = firn_gen_next(&m->gen, &id);
    if (r)
        return r;
    struct firn_tsid tsid = firn_tsid_from_u64(id);
    firn_tsid_format(&tsid, out);
    *out_len = FIRN_TSID_TEXT_LEN;
    return 0;
}

static int put_uuid(int r, const struct firn_uuid *u, char *out, size_t *out_len)
{
    if (r)
        return r;
    firn_uuid_format(u, out);
    *out_len = FIRN_UUID_TEXT_LEN;
    return 0;
}

static int make_uuidv1(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_uuid u;
    int r = firn_uuid_v1(&m->gregorian, m->clock->fine_ns(m->clock) / 100, &u);
    return put_uuid(r, &u, out, out_len);
}

static int make_uuidv4(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_uuid u;
    firn_uuid_v4(m->rng, &u);
    return put_uuid(0, &u, out, out_len);
}

static int make_uuid_of_name(struct firn_mint *m, char *out, size_t *out_len)
{
    return put_uuid(0, &m->name_based, out, out_len);
}

static int make_uuidv6(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_uuid u;
    int r = firn_uuid_v6(&m->gregorian, m->clock->fine_ns(m->clock) / 100, &u);
    return put_uuid(r, &u, out, out_len);
}

static int make_uuidv7(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_uuid u;
    int r = firn_uuid_v7(&m->v7, now_ms(m), m->rng, &u);
    return put_uuid(r, &u, out, out_len);
}

static int make_uuidv8(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_uuid u;
    uint8_t custom[16];
    firn_rng_bytes(m->rng, custom, sizeof custom);
    firn_uuid_v8(custom, &u);
    return put_uuid(0, &u, out, out_len);
}

static int make_ulid(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_ulid u;
    int r = firn_ulid_next(&m->ulid, now_ms(m), m->rng, &u);
    if (r)
        return r;
    firn_ulid_format(&u, out);
    *out_len = FIRN_ULID_TEXT_LEN;
    return 0;
}

static int make_ksuid(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_ksuid k;
    int r = firn_ksuid_make(now_ms(m), m->rng, &k);
    if (r)
        return r;
    firn_ksuid_format(&k, out);
    *out_len = FIRN_KSUID_TEXT_LEN;
    return 0;
}

static int make_xid(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_xid x;
    int r = firn_xid_next(&m->xid, now_ms(m), &x);
    if (r)
        return r;
    firn_xid_format(&x, out);
    *out_len = FIRN_XID_TEXT_LEN;
    return 0;
}

static int make_objectid(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_objectid o;
    int r = firn_objectid_next(&m->objectid, now_ms(m), &o);
    if (r)
        return r;
    firn_objectid_format(&o, out);
    *out_len = FIRN_OBJECTID_TEXT_LEN;
    return 0;
}

static int make_typeid(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_typeid t;
    int r = firn_typeid_new(m->prefix, m->prefix_len, &m->v7, now_ms(m), m->rng, &t);
    if (r == 0)
        *out_len = firn_typeid_format(&t, out);
    return r;
}

static int make_nanoid(struct firn_mint *m, char *out, size_t *out_len)
{
    *out_len = m->length;
    return firn_nanoid(&m->alphabet, m->length, m->rng, out);
}

static int make_cuid2(struct firn_mint *m, char *out, size_t *out_len)
{
    *out_len = m->length;
    return firn_cuid2(&m->cuid2, m->length, now_ms(m), m->rng, out);
}

static int make_ticket(struct firn_mint *m, char *out, size_t *out_len)
{
    if (m->ticket == 0 || m->ticket > FIRN_TICKET_MAX)
        return FIRN_EOVERFLOW;
    return make_number(m, m->ticket++, out, out_len);
}

static int make_dated(struct firn_mint *m, char *out, size_t *out_len)
{
    struct firn_dated d;
    int r = firn_dated_next(&m->dated, (int64_t)(now_ms(m) / 1000), &d);
    if (r == 0)
        *out_len = firn_dated_format(&d, out);
    return r;
}

/* --- set-up --- */

typedef int setup(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag);

static int setup_generator(struct firn_mint *m, const struct firn_layout *l,
                           const struct firn_mint_opts *o, struct firn_diag *diag)
{
    struct firn_gen_opts g = FIRN_GEN_OPTS_INIT;
    g.slot = o->slot;
    g.policy = o->policy;
    g.clock = m->clock;
    if (l->flags & FIRN_LAYOUT_DECODE_ONLY)
        return firn__diag(diag, FIRN_ENOTSUP, 0,
                          "this layout is decode-only: it has no node field that keeps IDs apart");
    if (o->slot >= firn_layout_slots(l))
        return firn__diag(diag, FIRN_ERANGE, 0, "worker %u is above %llu, the last of this layout",
                          o->slot, (unsigned long long)firn_layout_slots(l) - 1);
    int r = firn_gen_init(&m->gen, l, &g);
    if (r == FIRN_EEXHAUSTED)
        return firn__diag(diag, r, 0, "the layout's time has run out: choose a later epoch");
    if (r)
        return firn__diag(diag, r, 0, "%s", firn_error_message(r));
    if (o->shard > m->gen.shard_max_)
        return firn__diag(diag, FIRN_ERANGE, 0,
                          m->gen.shard_max_ ? "the shard does not fit the layout's shard field"
                                            : "this layout has no shard field beside its identity");
    m->shard = o->shard;
    m->has_gen = 1;
    return 0;
}

static int setup_preset(struct firn_mint *m, const char *name, const struct firn_mint_opts *o,
                        struct firn_diag *diag)
{
    struct firn_layout l;
    int r = firn_layout_parse(name, strlen(name), 0, &l, diag);
    return r ? r : setup_generator(m, &l, o, diag);
}

static int setup_snowflake(struct firn_mint *m, const struct firn_mint_opts *o,
                           struct firn_diag *diag)
{
    return o->layout ? setup_generator(m, o->layout, o, diag) : setup_preset(m, "firn", o, diag);
}

static int setup_sonyflake(struct firn_mint *m, const struct firn_mint_opts *o,
                           struct firn_diag *diag)
{
    return setup_preset(m, "sonyflake", o, diag);
}

static int setup_tsid(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    return setup_preset(m, "tsid", o, diag);
}

static int setup_gregorian(struct firn_mint *m, const struct firn_mint_opts *o,
                           struct firn_diag *diag)
{
    (void)o;
    (void)diag;
    firn_uuid_gregorian_init(&m->gregorian, NULL, m->rng);
    return 0;
}

static int find_namespace(const char *text, struct firn_uuid *out)
{
    static const struct {
        const char *name;
        const struct firn_uuid *uuid;
    } known[] = { { "dns", &firn_uuid_ns_dns },
                  { "url", &firn_uuid_ns_url },
                  { "oid", &firn_uuid_ns_oid },
                  { "x500", &firn_uuid_ns_x500 } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i].name) == 0) {
            *out = *known[i].uuid;
            return 0;
        }
    return firn_uuid_parse_any(text, strlen(text), out);
}

typedef void hash_name(const struct firn_uuid *ns, const void *name, size_t len,
                       struct firn_uuid *out);

static int setup_name(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag,
                      hash_name *hash)
{
    struct firn_uuid ns;
    if (!o->name || !o->name_space)
        return firn__diag(diag, FIRN_EINVAL, 0, "this kind needs a namespace and a name");
    if (find_namespace(o->name_space, &ns) != 0)
        return firn__diag(diag, FIRN_EFORMAT, 0,
                          "the namespace must be dns, url, oid, x500 or a UUID");
    hash(&ns, o->name, strlen(o->name), &m->name_based);
    return 0;
}

static int setup_uuidv3(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    return setup_name(m, o, diag, firn_uuid_v3);
}

static int setup_uuidv5(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    return setup_name(m, o, diag, firn_uuid_v5);
}

static int setup_xid(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    (void)o;
    (void)diag;
    uint64_t random = firn_rng_u64(
        m->rng); /* machine and pid at random: no host is asked its name */
    const uint8_t machine[3] = { (uint8_t)random, (uint8_t)(random >> 8), (uint8_t)(random >> 16) };
    firn_xid_gen_init(&m->xid, machine, (uint16_t)(random >> 24), (uint32_t)(random >> 40));
    return 0;
}

static int setup_objectid(struct firn_mint *m, const struct firn_mint_opts *o,
                          struct firn_diag *diag)
{
    (void)o;
    (void)diag;
    firn_objectid_gen_init(&m->objectid, m->rng);
    return 0;
}

static int setup_typeid(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    (void)o;
    struct firn_typeid t;
    if (firn_typeid_from_uuid(m->prefix, m->prefix_len, &firn_uuid_nil, &t) != 0)
        return firn__diag(diag, FIRN_EFORMAT, 0,
                          "a type has at most 63 of a-z and _, and no _ at either end");
    return 0;
}

static int setup_length(struct firn_mint *m, const struct firn_mint_opts *o, uint32_t usual,
                        uint32_t min, uint32_t max, struct firn_diag *diag)
{
    m->length = o->length ? o->length : usual;
    if (m->length < min || m->length > max)
        return firn__diag(diag, FIRN_ERANGE, 0, "the length must be between %u and %u", min, max);
    return 0;
}

static int setup_nanoid(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    m->alphabet = firn_nanoid_default;
    if (o->alphabet &&
        firn_nanoid_alphabet_init(&m->alphabet, o->alphabet, strlen(o->alphabet)) != 0)
        return firn__diag(diag, FIRN_EINVAL, 0,
                          "an alphabet has 2 to 256 characters, each of one byte and only once");
    return setup_length(m, o, FIRN_NANOID_LEN, 1, FIRN_NANOID_LEN_MAX, diag);
}

static int setup_cuid2(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    firn_cuid2_init(&m->cuid2, NULL, 0, m->rng);
    return setup_length(m, o, FIRN_CUID2_LEN, FIRN_CUID2_LEN_MIN, FIRN_CUID2_LEN_MAX, diag);
}

static int setup_ticket(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    m->ticket = o->first ? o->first : 1;
    if (m->ticket > FIRN_TICKET_MAX)
        return firn__diag(diag, FIRN_ERANGE, 0, "the first number is above 2^63 - 1");
    return 0;
}

static int setup_dated(struct firn_mint *m, const struct firn_mint_opts *o, struct firn_diag *diag)
{
    struct firn_dated last = { o->reset, 0, o->length ? o->length : FIRN_DATED_DIGITS, 0, 0 };
    if (firn_dated_gen_init(&m->dated, o->reset, o->length) != 0)
        return firn__diag(diag, FIRN_ERANGE, 0, "the counter has 1 to %d digits",
                          FIRN_DATED_DIGITS_MAX);
    if (o->first <= 1)
        return 0;
    last.number = o->first - 1;
    if (firn_dated_period(o->reset, (int64_t)(now_ms(m) / 1000), &last.period) != 0 ||
        firn_dated_gen_resume(&m->dated, &last) != 0)
        return firn__diag(diag, FIRN_ERANGE, 0, "the first number has at most 18 digits");
    return 0;
}

/* --- the table --- */

static const struct {
    const char *kind;
    setup *setup;
    mint_maker *make;
} rows[] = {
    { "snowflake", setup_snowflake, make_snowflake },
    { "sonyflake", setup_sonyflake, make_snowflake },
    { "tsid", setup_tsid, make_tsid },
    { "uuidv1", setup_gregorian, make_uuidv1 },
    { "uuidv3", setup_uuidv3, make_uuid_of_name },
    { "uuidv4", NULL, make_uuidv4 },
    { "uuidv5", setup_uuidv5, make_uuid_of_name },
    { "uuidv6", setup_gregorian, make_uuidv6 },
    { "uuidv7", NULL, make_uuidv7 },
    { "uuidv8", NULL, make_uuidv8 },
    { "uuid", NULL, make_uuidv4 },
    { "ulid", NULL, make_ulid },
    { "ksuid", NULL, make_ksuid },
    { "xid", setup_xid, make_xid },
    { "objectid", setup_objectid, make_objectid },
    { "typeid", setup_typeid, make_typeid },
    { "nanoid", setup_nanoid, make_nanoid },
    { "cuid2", setup_cuid2, make_cuid2 },
    { "ticket", setup_ticket, make_ticket },
    { "dated", setup_dated, make_dated },
};

/* A TypeID's type is its own; for every other kind the prefix stands in front with an
 * underscore. */
static int setup_prefix(struct firn_mint *m, const char *kind, const char *prefix,
                        struct firn_diag *diag)
{
    size_t len = prefix ? strlen(prefix) : 0;
    if (len == 0)
        return 0;
    if (len >= sizeof m->prefix)
        return firn__diag(diag, FIRN_ERANGE, 0, "the prefix is longer than 63 characters");
    memcpy(m->prefix, prefix, len);
    m->prefix_len = len;
    if (strcmp(kind, "typeid") == 0)
        return 0;
    int r = firn_prefix_check(prefix, len, diag);
    m->prefix[m->prefix_len++] = '_';
    return r;
}

int firn__mint_init(struct firn_mint *m, const struct firn_kind *kind,
                    const struct firn_mint_opts *opts, const struct firn_clock *clock,
                    struct firn_rng *(*rng_of)(void), struct firn_diag *diag)
{
    struct firn_mint_opts o;
    if (!kind || !opts)
        return FIRN_EINVAL;
    int r = firn__sized_copy(&o, sizeof o, opts, opts->size,
                             SIZE_UP_TO(struct firn_mint_opts, reserved));
    if (r)
        return firn__diag(diag, r, 0,
                          r == FIRN_EINVAL ? "opts.size is not set: start from FIRN_MINT_OPTS_INIT"
                                           : "the options are newer than this library");
    size_t i = 0;
    while (i < sizeof rows / sizeof rows[0] && strcmp(rows[i].kind, kind->name) != 0)
        i++;
    if (i == sizeof rows / sizeof rows[0])
        return firn__diag(diag, FIRN_ENOTSUP, 0, "%s can be read, not made", kind->name);
    if (o.codec && !(kind->flags & FIRN_KIND_NUMBER))
        return firn__diag(diag, FIRN_ENOTSUP, 0, "%s has a text of its own: no encoding applies",
                          kind->name);
    m->clock = clock;
    m->rng_of = rng_of;
    m->rng = rng_of();
    m->codec = o.codec;
    r = setup_prefix(m, kind->name, o.prefix, diag);
    if (r == 0 && rows[i].setup)
        r = rows[i].setup(m, &o, diag);
    if (r == 0)
        m->make = rows[i].make;
    return r;
}

int firn_mint_text(struct firn_mint *m, char out[FIRN_MINT_TEXT_BUF], size_t *out_len)
{
    if (!m || !out || !out_len)
        return FIRN_EINVAL;
    if (!m->make)
        return FIRN_EFORKED;
    m->rng = m->rng_of();
    size_t len, skip = m->make == make_typeid ? 0 : m->prefix_len;
    memcpy(out, m->prefix, skip);
    int r = m->make(m, out + skip, &len);
    if (r == 0)
        *out_len = skip + len;
    return r;
}

/* Decimal snowflakes without shard or prefix, by far the most wanted at high rates. */
static int number_lines(struct firn_mint *m, size_t n, char end, char *out, size_t cap,
                        size_t *out_n, size_t *out_len)
{
    size_t done = 0, len = 0;
    while (done < n && cap - len >= FIRN_U64_TEXT_BUF + 1) {
        size_t room = (cap - len) / (FIRN_U64_TEXT_BUF + 1), got = 0;
        size_t want = n - done < MINT_BATCH ? n - done : MINT_BATCH;
        int r = firn_gen_fill(&m->gen, m->batch, want < room ? want : room, &got);
        if (r && done == 0)
            return r;
        if (r)
            break;
        for (size_t i = 0; i < got; i++) {
            len += firn_u64_format(m->batch[i], out + len);
            out[len++] = end;
        }
        done += got;
    }
    *out_n = done;
    *out_len = len;
    return 0;
}

int firn_mint_lines(struct firn_mint *m, size_t n, char end, char *out, size_t cap, size_t *out_n,
                    size_t *out_len)
{
    if (!m || !out || !out_n || !out_len)
        return FIRN_EINVAL;
    if (!m->make)
        return FIRN_EFORKED;
    if (cap <= FIRN_MINT_TEXT_BUF)
        return FIRN_ENOSPC;
    if (m->make == make_snowflake && !m->codec && !m->shard && m->prefix_len == 0)
        return number_lines(m, n, end, out, cap, out_n, out_len);
    size_t done = 0, len = 0;
    while (done < n && cap - len > FIRN_MINT_TEXT_BUF) {
        size_t one;
        int r = firn_mint_text(m, out + len, &one);
        if (r && done == 0)
            return r;
        if (r)
            break;
        len += one;
        out[len++] = end;
        done++;
    }
    *out_n = done;
    *out_len = len;
    return 0;
}
