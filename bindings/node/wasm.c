/*
 * What firn.mjs calls in WebAssembly: src/id with numbers and NUL-terminated texts as arguments.
 * Time and random bytes are imports. A module instance belongs to one JavaScript thread, so static
 * state is that thread's. Answers lie in `out` until the next call; `shape` says where.
 */
#include "firn/firn.h"
#include "coord/lease_ticks.h"
#include "id/mint.h"
#include "id/rng_take.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name))) name
#define IMPORT(name) __attribute__((import_module("firn"), import_name(#name))) name

enum { READINGS_MAX = 24, FILL_MAX = 1024, NUMBERS = 16 };

static struct {
    struct firn_diag diag;
    char text[FIRN_MINT_TEXT_BUF];
    uint64_t number[NUMBERS];
    uint64_t ids[FILL_MAX];
    struct firn_reading reading[READINGS_MAX];
} out;

#define AT(type, member) offsetof(type, member)
static const uint32_t shape[] = {
    AT(struct firn_diag, text),         sizeof(struct firn_reading),
    AT(struct firn_reading, kind),      AT(struct firn_reading, layout),
    AT(struct firn_reading, has_time),  AT(struct firn_reading, score),
    AT(struct firn_reading, unix_us),   AT(struct firn_reading, number),
    AT(struct firn_reading, text),      AT(struct firn_reading, bytes),
    AT(struct firn_reading, bytes_len), AT(struct firn_reading, fields_n),
    AT(struct firn_reading, field),     sizeof(struct firn_read_field),
    AT(struct firn_read_field, value),  AT(struct firn_read_field, bit),
    AT(struct firn_read_field, bits),   sizeof(struct firn_codec),
};

/* --- the world --- */

void IMPORT(entropy)(void *p, size_t len);
double IMPORT(wall_ms)(void);
double IMPORT(mono_ms)(void);

void firn__entropy(void *p, size_t len)
{
    entropy(p, len);
}

uint64_t firn__entropy_era(void)
{
    return (uint64_t)wall_ms() / 4;
}

struct firn_rng *firn_rng_thread(void)
{
    static struct firn_rng rng; /* all 0: it seeds itself */
    return &rng;
}

struct js_clock {
    struct firn_clock base;
    bool mono;
    int64_t off_ns; /* of a leased generator: the server's time less the monotonic clock */
};

static uint64_t now_ns(const struct firn_clock *base)
{
    const struct js_clock *c = (const struct js_clock *)base;
    return (uint64_t)((int64_t)((c->mono ? mono_ms() : wall_ms()) * 1e6) + c->off_ns);
}

/* JavaScript cannot sleep in a call: at most a millisecond is spun through. */
static void spin_ns(const struct firn_clock *base, uint64_t ns)
{
    (void)base;
    double end = mono_ms() + (double)ns / 1e6;
    while (mono_ms() < end) {
    }
}

static const struct js_clock wall = { { now_ns, now_ns, spin_ns }, false, 0 };

/* --- texts, in place of libc's, which would bring files and floating point along --- */

struct writer {
    char *p;
    size_t cap, len; /* len may pass cap: what there was no room for is counted, too */
};

static void put(struct writer *w, char c)
{
    if (w->len + 1 < w->cap)
        w->p[w->len] = c;
    w->len++;
}

static void put_number(struct writer *w, uint64_t v, unsigned base, int width, char pad)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    for (int i = n; i < width; i++)
        put(w, pad);
    while (n > 0)
        put(w, digits[--n]);
}

/* What src/id uses of it: %s, %.*s, %c, %d, %u, %x with a width, %zu, %llu. Anything else stops. */
int vsnprintf(char *to, size_t cap, const char *fmt, va_list args)
{
    struct writer w = { to, cap, 0 };
    for (; *fmt; fmt++) {
        if (*fmt != '%') {
            put(&w, *fmt);
            continue;
        }
        int width = 0, longs = 0;
        size_t max = SIZE_MAX;
        char pad = fmt[1] == '0' ? '0' : ' ';
        while (*++fmt >= '0' && *fmt <= '9')
            width = width * 10 + *fmt - '0';
        if (fmt[0] == '.' && fmt[1] == '*') {
            max = (size_t)va_arg(args, int);
            fmt += 2;
        }
        for (; *fmt == 'l'; fmt++)
            longs++;
        fmt += *fmt == 'z'; /* size_t is unsigned int here */
        if (*fmt == 's') {
            for (const char *s = va_arg(args, const char *); max-- > 0 && *s; s++)
                put(&w, *s);
        } else if (*fmt == 'c') {
            put(&w, (char)va_arg(args, int));
        } else if (*fmt == 'd' && longs == 0) {
            int v = va_arg(args, int);
            if (v < 0)
                put(&w, '-');
            put_number(&w, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10, width, pad);
        } else if (*fmt == 'u' || *fmt == 'x') {
            uint64_t v = longs == 2 ? va_arg(args, unsigned long long) : va_arg(args, unsigned);
            put_number(&w, v, *fmt == 'u' ? 10 : 16, width, pad);
        } else {
            __builtin_trap();
        }
    }
    if (cap > 0)
        to[w.len < cap ? w.len : cap - 1] = 0;
    return (int)w.len;
}

int snprintf(char *to, size_t cap, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(to, cap, fmt, args);
    va_end(args);
    return n;
}

/* --- tables and answers --- */

const void *EXPORT(answer)(int part)
{
    switch (part) {
    case 0:
        return shape;
    case 1:
        return &out.diag;
    case 2:
        return out.text;
    case 3:
        return out.number;
    case 4:
        return out.ids;
    default:
        return out.reading;
    }
}

const void *EXPORT(table)(int which)
{
    size_t n;
    const void *rows = which == 0   ? (const void *)firn_kinds(&n)
                       : which == 1 ? (const void *)firn_layout_presets(&n)
                                    : (const void *)firn_codec_list(&n);
    out.number[0] = n;
    return rows;
}

const char *EXPORT(error_name)(int error)
{
    return firn_error_name(error);
}

const char *EXPORT(error_message)(int error)
{
    return firn_error_message(error);
}

const char *EXPORT(version)(void)
{
    return firn_version();
}

static const struct firn_kind *kind_of(const char *name)
{
    return firn_kind_find(name, strlen(name));
}

static int layout_of(const char *text, struct firn_layout *l)
{
    return firn_layout_parse(text, strlen(text), 0, l, &out.diag);
}

/* --- texts --- */

int EXPORT(encode)(const char *codec, uint64_t hi, uint64_t lo, int bits)
{
    const struct firn_codec *c = firn_codec_find(codec, strlen(codec));
    size_t len;
    if (!c)
        return FIRN_ENOENT;
    int r = bits == 64 ? firn_codec_encode64(c, lo, out.text, sizeof out.text, &len)
                       : firn_codec_encode128(c, (struct firn_u128){ hi, lo }, out.text,
                                              sizeof out.text, &len);
    return r ? r : (int)len;
}

int EXPORT(decode)(const char *codec, const char *text, size_t len, int bits)
{
    const struct firn_codec *c = firn_codec_find(codec, strlen(codec));
    struct firn_u128 v = { 0, 0 };
    if (!c)
        return FIRN_ENOENT;
    int r = bits == 64 ? firn_codec_decode64(c, text, len, &v.lo)
                       : firn_codec_decode128(c, text, len, &v);
    out.number[0] = v.hi;
    out.number[1] = v.lo;
    return r;
}

int EXPORT(read_id)(const char *kind, const char *text, size_t len, const char *layout)
{
    struct firn_layout l;
    const struct firn_kind *k = kind_of(kind);
    int r = k ? layout_of(layout, &l) : FIRN_ENOENT;
    return r ? r : firn_read(k, text, len, &l, out.reading, &out.diag);
}

int EXPORT(inspect)(const char *text, size_t len)
{
    size_t n;
    int r = firn_detect(text, len, (int64_t)wall_ms(), out.reading, READINGS_MAX, &n);
    return r ? r : (int)n;
}

/* --- layouts --- */

/* Numbers: slots, tick in us, epoch, end in Unix us, sortable, flags; then width and shift of each
 * field. The canonical text. */
int EXPORT(layout)(const char *text)
{
    struct firn_layout l;
    int r = layout_of(text, &l);
    if (r)
        return r;
    uint64_t *n = out.number;
    *n++ = firn_layout_slots(&l);
    *n++ = l.tick_us;
    *n++ = (uint64_t)l.epoch_ms;
    *n++ = (uint64_t)firn_layout_end_us(&l);
    *n++ = (uint64_t)firn_layout_sortable(&l);
    *n++ = l.flags;
    for (int i = 0; i < FIRN_FIELDS; i++)
        *n++ = (uint64_t)l.field[i].width << 8 | l.field[i].shift;
    return (int)firn_layout_format(&l, out.text);
}

/* The parts are taken from, and given in, `number`, in the order of enum firn_field. */
int EXPORT(compose)(const char *text)
{
    struct firn_layout l;
    struct firn_parts parts;
    memcpy(parts.field, out.number, sizeof parts.field);
    int r = layout_of(text, &l);
    return r ? r : firn_layout_compose(&l, &parts, out.number, &out.diag);
}

int EXPORT(decompose)(const char *text, uint64_t id)
{
    struct firn_layout l;
    struct firn_parts parts;
    int r = layout_of(text, &l);
    if (r == 0)
        r = firn_layout_decompose(&l, id, &parts);
    if (r == 0)
        memcpy(out.number, parts.field, sizeof parts.field);
    return r;
}

/* --- mints --- */

struct firn_mint *EXPORT(mint_new)(const char *kind, uint32_t slot, uint32_t policy,
                                   uint32_t length, const char *layout, const char *codec,
                                   const char *prefix, const char *alphabet, const char *name_space,
                                   const char *name, uint64_t first, uint64_t shard, uint32_t reset)
{
    struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
    struct firn_layout l;
    const struct firn_kind *k = kind_of(kind);
    int r = k ? 0 : FIRN_ENOENT;
    if (r == 0 && layout) {
        r = layout_of(layout, &l);
        o.layout = &l;
    }
    if (r == 0 && codec) {
        o.codec = firn_codec_find(codec, strlen(codec));
        r = o.codec ? 0 : FIRN_ENOENT;
    }
    o.slot = slot;
    o.policy = policy;
    o.length = length;
    o.prefix = prefix;
    o.alphabet = alphabet;
    o.name_space = name_space;
    o.name = name;
    o.first = first;
    o.shard = shard;
    o.reset = reset;
    struct firn_mint *m = r ? NULL : calloc(1, sizeof *m);
    if (r == 0)
        r = m ? firn__mint_init(m, k, &o, &wall.base, firn_rng_thread, &out.diag) : FIRN_ENOMEM;
    if (r) {
        free(m);
        m = NULL;
    }
    out.number[0] = (uint64_t)(int64_t)r;
    return m;
}

int EXPORT(mint_next)(struct firn_mint *m)
{
    size_t len;
    int r = firn_mint_text(m, out.text, &len);
    return r ? r : (int)len;
}

/* --- generators --- */

struct js_gen {
    struct firn_gen gen;
    struct js_clock clock;
    struct firn_layout layout, ticks; /* the IDs', and a lease's: milliseconds of the same epoch */
    uint64_t stamped;                 /* highest tick of the layout that an earlier grant used */
    bool open;
    int error; /* of the last gen_next() */
};

struct js_gen *EXPORT(gen_new)(const char *layout)
{
    struct js_gen *g = calloc(1, sizeof *g);
    int r = g ? layout_of(layout, &g->layout) : FIRN_ENOMEM;
    out.number[0] = (uint64_t)(int64_t)r;
    if (r) {
        free(g);
        return NULL;
    }
    g->clock = wall;
    g->ticks = g->layout;
    g->ticks.tick_us = 1000;
    return g;
}

static int gen_open(struct js_gen *g, struct firn_gen_opts *o)
{
    o->clock = &g->clock.base;
    int r = firn_gen_init(&g->gen, &g->layout, o);
    g->open = r == 0;
    return r;
}

/* A slot that the caller vouches for, without a window. */
int EXPORT(gen_start)(struct js_gen *g, uint32_t slot, uint32_t policy)
{
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    o.slot = slot;
    o.policy = policy;
    return gen_open(g, &o);
}

void EXPORT(gen_close)(struct js_gen *g)
{
    uint64_t last = 0;
    if (!g->open)
        return;
    firn_gen_close(&g->gen, &last);
    g->stamped = last > g->stamped ? last : g->stamped;
}

/* A leased slot: ticks are milliseconds of the layout's epoch. The earlier grant's generator is
 * closed first, and the new one begins above all that it stamped. */
int EXPORT(gen_lease)(struct js_gen *g, uint32_t slot, uint64_t from, uint64_t until,
                      uint32_t drift_ms)
{
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    gen_close(g);
    g->open = false;
    g->clock.mono = true;
    o.slot = slot;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = drift_ms;
    o.from = lease_ticks_from(&g->layout, &g->ticks, from);
    o.from = o.from > g->stamped ? o.from : g->stamped + 1;
    o.until = lease_ticks_until(&g->layout, &g->ticks, until);
    return o.until <= o.from ? FIRN_EWINDOW : gen_open(g, &o);
}

/* The server's clock showed `now` when this process's monotonic one showed `mono`. */
void EXPORT(gen_clock)(struct js_gen *g, uint64_t now, double mono)
{
    g->clock.off_ns = firn_layout_unix_us(&g->ticks, now) * 1000 - (int64_t)(mono * 1e6);
}

void EXPORT(gen_extend)(struct js_gen *g, uint64_t until, uint64_t floor)
{
    if (!g->open)
        return;
    firn_gen_extend(&g->gen, lease_ticks_until(&g->layout, &g->ticks, until));
    if (floor)
        firn_gen_set_floor(&g->gen, lease_ticks_until(&g->layout, &g->ticks, floor));
}

/* The highest tick of the lease that may have been stamped. */
uint64_t EXPORT(gen_last)(const struct js_gen *g)
{
    uint64_t last = g->open && g->gen.tick_ > g->stamped ? g->gen.tick_ : g->stamped;
    return lease_ticks_stamped(&g->layout, &g->ticks, last);
}

/* An ID, or 0 and gen_error(): no generator makes 0, its ticks begin at 1. */
uint64_t EXPORT(gen_next)(struct js_gen *g)
{
    uint64_t id;
    g->error = g->open ? firn_gen_next(&g->gen, &id) : FIRN_EWINDOW;
    return g->error ? 0 : id;
}

uint64_t EXPORT(gen_next_shard)(struct js_gen *g, uint64_t shard)
{
    uint64_t id;
    g->error = firn_gen_next_shard(&g->gen, shard, &id);
    return g->error ? 0 : id;
}

int EXPORT(gen_error)(const struct js_gen *g)
{
    return g->error;
}

int EXPORT(gen_fill)(struct js_gen *g, size_t n)
{
    size_t got;
    int r = g->open ? firn_gen_fill(&g->gen, out.ids, n < FILL_MAX ? n : FILL_MAX, &got)
                    : FIRN_EWINDOW;
    return r ? r : (int)got;
}
