/*
 * firn's side of the differential tests: one request a line on stdin, one answer a line on stdout.
 *
 *   parse KIND TEXT            ok HEX MS          MS is - where the ID carries no time
 *   format KIND HEX            ok TEXT
 *   make KIND MS               ok TEXT            with this time and seeded random bits
 *   name VERSION HEX NAMEHEX   ok TEXT            UUID of a namespace and a name
 *   gregorian TEXT             ok TICKS SEQ HEX   of a UUID version 1 or 6
 *   alphabet CHARS             ok                 for nanoid from now on; nothing: the default
 *   random KIND LENGTH         ok TEXT            nanoid, cuid2
 *   check KIND TEXT            ok
 *   compose LAYOUT T D N Q     ok TEXT            time in ticks, dc, node, seq
 *   issue LAYOUT MS SLOT       ok TEXT            by a generator on a virtual clock
 *   fields LAYOUT TEXT         ok MS D N Q
 *
 * Any request can be answered with "error NAME". TEXT is the rest of the line, as it is. A TypeID's
 * bytes are its UUID's, followed by the prefix.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firn/cuid2.h"
#include "firn/gen.h"
#include "firn/ksuid.h"
#include "firn/nanoid.h"
#include "firn/objectid.h"
#include "firn/text.h"
#include "firn/typeid.h"
#include "firn/ulid.h"
#include "firn/uuid.h"
#include "firn/xid.h"

enum { BYTES_MAX = 16 + FIRN_TYPEID_PREFIX_MAX, TEXT_MAX = 512 };

struct value {
    uint8_t b[BYTES_MAX + 1];
    size_t len;
};

static struct firn_rng rng;
static struct firn_cuid2_gen cuid2;
static struct firn_nanoid_alphabet alphabet;

/* --- kinds with bytes: one row each --- */

#define FIXED(kind, bytes_)                                           \
    static int parse_##kind(const char *p, size_t n, struct value *v) \
    {                                                                 \
        struct firn_##kind id;                                        \
        int r = firn_##kind##_parse(p, n, &id);                       \
        if (r == 0) {                                                 \
            memcpy(v->b, id.b, bytes_);                               \
            v->len = bytes_;                                          \
        }                                                             \
        return r;                                                     \
    }                                                                 \
    static int format_##kind(const struct value *v, char *out)        \
    {                                                                 \
        struct firn_##kind id;                                        \
        if (v->len != bytes_)                                         \
            return FIRN_EINVAL;                                       \
        memcpy(id.b, v->b, bytes_);                                   \
        firn_##kind##_format(&id, out);                               \
        return 0;                                                     \
    }

#define TIMED(kind, bytes_)                                    \
    FIXED(kind, bytes_)                                        \
    static int ms_##kind(const struct value *v, uint64_t *out) \
    {                                                          \
        struct firn_##kind id;                                 \
        memcpy(id.b, v->b, bytes_);                            \
        *out = firn_##kind##_unix_ms(&id);                     \
        return 0;                                              \
    }

FIXED(uuid, 16)
TIMED(ulid, 16)
TIMED(ksuid, 20)
TIMED(xid, 12)
TIMED(objectid, 12)

static int ms_uuid(const struct value *v, uint64_t *out)
{
    struct firn_uuid id;
    memcpy(id.b, v->b, sizeof id.b);
    return firn_uuid_unix_ms(&id, out);
}

/* Each ID by a generator of its own: one that goes on would not let time go back. */
static int make_uuid(int version, uint64_t ms, char *out)
{
    struct firn_uuid_v7_gen v7 = FIRN_UUID_V7_GEN_INIT;
    struct firn_uuid_gregorian_gen gregorian;
    struct firn_uuid id;
    int r = 0;
    firn_uuid_gregorian_init(&gregorian, NULL, &rng);
    if (version == 4)
        firn_uuid_v4(&rng, &id);
    else
        r = version == 1   ? firn_uuid_v1(&gregorian, ms * 10000, &id)
            : version == 6 ? firn_uuid_v6(&gregorian, ms * 10000, &id)
                           : firn_uuid_v7(&v7, ms, &rng, &id);
    if (r == 0)
        firn_uuid_format(&id, out);
    return r;
}

static int make_uuidv1(uint64_t ms, char *out)
{
    return make_uuid(1, ms, out);
}

static int make_uuidv4(uint64_t ms, char *out)
{
    return make_uuid(4, ms, out);
}

static int make_uuidv6(uint64_t ms, char *out)
{
    return make_uuid(6, ms, out);
}

static int make_uuidv7(uint64_t ms, char *out)
{
    return make_uuid(7, ms, out);
}

static int make_ulid(uint64_t ms, char *out)
{
    struct firn_ulid id;
    int r = firn_ulid_make(ms, &rng, &id);
    if (r == 0)
        firn_ulid_format(&id, out);
    return r;
}

static int make_ksuid(uint64_t ms, char *out)
{
    struct firn_ksuid id;
    int r = firn_ksuid_make(ms, &rng, &id);
    if (r == 0)
        firn_ksuid_format(&id, out);
    return r;
}

static int make_xid(uint64_t ms, char *out)
{
    struct firn_xid_gen g;
    struct firn_xid id;
    uint8_t machine[3];
    firn_rng_bytes(&rng, machine, sizeof machine);
    firn_xid_gen_init(&g, machine, (uint16_t)firn_rng_u64(&rng), (uint32_t)firn_rng_u64(&rng));
    int r = firn_xid_next(&g, ms, &id);
    if (r == 0)
        firn_xid_format(&id, out);
    return r;
}

static int make_objectid(uint64_t ms, char *out)
{
    struct firn_objectid_gen g;
    struct firn_objectid id;
    firn_objectid_gen_init(&g, &rng);
    int r = firn_objectid_next(&g, ms, &id);
    if (r == 0)
        firn_objectid_format(&id, out);
    return r;
}

static int make_typeid(uint64_t ms, char *out)
{
    struct firn_uuid_v7_gen v7 = FIRN_UUID_V7_GEN_INIT;
    struct firn_typeid id;
    int r = firn_typeid_new("some_type", 9, &v7, ms, &rng, &id);
    if (r == 0)
        firn_typeid_format(&id, out);
    return r;
}

static int parse_typeid(const char *p, size_t n, struct value *v)
{
    struct firn_typeid id;
    int r = firn_typeid_parse(p, n, &id);
    if (r == 0) {
        size_t prefix_len = strlen(id.prefix);
        memcpy(v->b, id.uuid.b, 16);
        memcpy(v->b + 16, id.prefix, prefix_len);
        v->len = 16 + prefix_len;
    }
    return r;
}

static int format_typeid(const struct value *v, char *out)
{
    struct firn_uuid uuid;
    struct firn_typeid id;
    if (v->len < 16)
        return FIRN_EINVAL;
    memcpy(uuid.b, v->b, 16);
    int r = firn_typeid_from_uuid((const char *)v->b + 16, v->len - 16, &uuid, &id);
    if (r == 0)
        firn_typeid_format(&id, out);
    return r;
}

static const struct kind {
    const char *name;
    int (*parse)(const char *p, size_t n, struct value *v);
    int (*format)(const struct value *v, char *out);
    int (*unix_ms)(const struct value *v, uint64_t *out);
    int (*make)(uint64_t ms, char *out);
} kinds[] = {
    { "uuid", parse_uuid, format_uuid, ms_uuid, make_uuidv7 },
    { "uuidv1", parse_uuid, format_uuid, ms_uuid, make_uuidv1 },
    { "uuidv4", parse_uuid, format_uuid, ms_uuid, make_uuidv4 },
    { "uuidv6", parse_uuid, format_uuid, ms_uuid, make_uuidv6 },
    { "uuidv7", parse_uuid, format_uuid, ms_uuid, make_uuidv7 },
    { "ulid", parse_ulid, format_ulid, ms_ulid, make_ulid },
    { "ksuid", parse_ksuid, format_ksuid, ms_ksuid, make_ksuid },
    { "xid", parse_xid, format_xid, ms_xid, make_xid },
    { "objectid", parse_objectid, format_objectid, ms_objectid, make_objectid },
    { "typeid", parse_typeid, format_typeid, ms_uuid, make_typeid },
};

/* --- the requests --- */

/* Cut the next word off `*line`. */
static const char *word(char **line)
{
    char *w = *line;
    char *end = strchr(w, ' ');
    *line = end ? end + 1 : w + strlen(w);
    if (end)
        *end = '\0';
    return w;
}

static uint64_t number(char **line)
{
    return strtoull(word(line), NULL, 10);
}

static int unhex(const char *hex, uint8_t *out, size_t cap, size_t *out_len)
{
    size_t n = strlen(hex) / 2;
    if (n > cap)
        return FIRN_EINVAL;
    for (size_t i = 0; i < n; i++) {
        char pair[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    *out_len = n;
    return 0;
}

static size_t put_hex(const uint8_t *p, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", p[i]);
    return 2 * n;
}

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static int do_parse(char *args, char *out)
{
    const struct kind *k = find_kind(word(&args));
    struct value v = { { 0 }, 0 };
    uint64_t ms;
    int r = k ? k->parse(args, strlen(args), &v) : FIRN_ENOENT;
    if (r)
        return r;
    size_t at = put_hex(v.b, v.len, out);
    if (k->unix_ms(&v, &ms) == 0)
        snprintf(out + at, TEXT_MAX - at, " %" PRIu64, ms);
    else
        snprintf(out + at, TEXT_MAX - at, " -");
    return 0;
}

static int do_format(char *args, char *out)
{
    const struct kind *k = find_kind(word(&args));
    struct value v;
    int r = k ? unhex(args, v.b, BYTES_MAX, &v.len) : FIRN_ENOENT;
    return r ? r : k->format(&v, out);
}

static int do_make(char *args, char *out)
{
    const struct kind *k = find_kind(word(&args));
    return k ? k->make(number(&args), out) : FIRN_ENOENT;
}

static int do_name(char *args, char *out)
{
    struct firn_uuid ns, id;
    uint8_t name[TEXT_MAX];
    size_t len;
    uint64_t version = number(&args);
    int r = unhex(word(&args), ns.b, sizeof ns.b, &len);
    if (r == 0)
        r = unhex(args, name, sizeof name, &len);
    if (r)
        return r;
    (version == 3 ? firn_uuid_v3 : firn_uuid_v5)(&ns, name, len, &id);
    firn_uuid_format(&id, out);
    return 0;
}

static int do_gregorian(char *args, char *out)
{
    struct firn_uuid id;
    uint64_t ticks;
    uint16_t seq;
    uint8_t node[6];
    int r = firn_uuid_parse(args, strlen(args), &id);
    if (r == 0)
        r = firn_uuid_ticks(&id, &ticks);
    if (r == 0)
        r = firn_uuid_clock_seq(&id, &seq);
    if (r == 0)
        r = firn_uuid_node(&id, node);
    if (r == 0) {
        int at = snprintf(out, TEXT_MAX, "%" PRIu64 " %u ", ticks, seq);
        put_hex(node, sizeof node, out + at);
    }
    return r;
}

static int do_alphabet(char *args, char *out)
{
    out[0] = '\0';
    if (args[0] == '\0') {
        alphabet = firn_nanoid_default;
        return 0;
    }
    return firn_nanoid_alphabet_init(&alphabet, args, strlen(args));
}

static int do_random(char *args, char *out)
{
    const char *kind = word(&args);
    uint64_t len = number(&args);
    return strcmp(kind, "nanoid") == 0 ? firn_nanoid(&alphabet, len, &rng, out)
                                       : firn_cuid2(&cuid2, len, 1700000000000, &rng, out);
}

static int do_check(char *args, char *out)
{
    const char *kind = word(&args);
    out[0] = '\0';
    return strcmp(kind, "nanoid") == 0 ? firn_nanoid_check(args, strlen(args), &alphabet)
                                       : firn_cuid2_check(args, strlen(args));
}

static int find_layout(char **args, struct firn_layout *l)
{
    const char *name = word(args);
    return firn_layout_parse(name, strlen(name), 0, l, NULL);
}

static int do_compose(char *args, char *out)
{
    static const enum firn_field order[] = { FIRN_FIELD_TIME, FIRN_FIELD_DC, FIRN_FIELD_NODE,
                                             FIRN_FIELD_SEQ };
    struct firn_layout l;
    struct firn_parts parts = { { 0 } };
    uint64_t id;
    int r = find_layout(&args, &l);
    for (int i = 0; i < 4; i++)
        parts.field[order[i]] = number(&args);
    if (r == 0)
        r = firn_layout_compose(&l, &parts, &id, NULL);
    if (r == 0)
        firn_u64_format(id, out);
    return r;
}

static int do_issue(char *args, char *out)
{
    struct firn_layout l;
    struct firn_clock_virtual clock;
    struct firn_gen g;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    uint64_t id;
    int r = find_layout(&args, &l);
    uint64_t ms = number(&args);
    opts.clock = &clock.base;
    opts.slot = (uint32_t)number(&args);
    firn_clock_virtual_init(&clock, (ms - 1) * 1000000); /* it begins with the next tick */
    if (r == 0)
        r = firn_gen_init(&g, &l, &opts);
    if (r == 0)
        r = firn_gen_next(&g, &id);
    if (r == 0)
        firn_u64_format(id, out);
    return r;
}

static int do_fields(char *args, char *out)
{
    struct firn_layout l;
    struct firn_parts parts;
    uint64_t id;
    int r = find_layout(&args, &l);
    if (r == 0)
        r = firn_u64_parse(args, strlen(args), &id);
    if (r == 0)
        r = firn_layout_decompose(&l, id, &parts);
    if (r == 0)
        snprintf(out, TEXT_MAX, "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                 firn_layout_unix_us(&l, parts.field[FIRN_FIELD_TIME]) / 1000,
                 parts.field[FIRN_FIELD_DC], parts.field[FIRN_FIELD_NODE],
                 parts.field[FIRN_FIELD_SEQ]);
    return r;
}

static const struct {
    const char *name;
    int (*run)(char *args, char *out);
} requests[] = {
    { "parse", do_parse },   { "format", do_format },       { "make", do_make },
    { "name", do_name },     { "gregorian", do_gregorian }, { "alphabet", do_alphabet },
    { "random", do_random }, { "check", do_check },         { "compose", do_compose },
    { "issue", do_issue },   { "fields", do_fields },
};

static int run(char *line, char *out)
{
    const char *name = word(&line);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (strcmp(requests[i].name, name) == 0)
            return requests[i].run(line, out);
    return FIRN_ENOENT;
}

int main(int argc, char **argv)
{
    static char line[4096], out[2 * TEXT_MAX];
    uint8_t seed[FIRN_RNG_SEED_BYTES] = { 0 };
    if (argc > 1)
        memcpy(seed, argv[1], strnlen(argv[1], sizeof seed));
    firn_rng_init(&rng, seed);
    firn_cuid2_init(&cuid2, NULL, 0, &rng);
    alphabet = firn_nanoid_default;
    setvbuf(stdout, NULL, _IOLBF, 1 << 16); /* the other side waits for whole lines */
    while (fgets(line, sizeof line, stdin)) {
        size_t len = strlen(line);
        if (len > 0 && line[len - 1] == '\n')
            line[len - 1] = '\0';
        int r = run(line, out);
        if (r)
            printf("error %s\n", firn_error_name(r));
        else
            printf("ok %s\n", out);
    }
    return 0;
}
