/* Encodes and decodes the frames of cluster members and their clients (raft_frame.h). */
#include "store/raft_frame.h"
#include "id/bytes.h"
#include "platform/assert.h"

#include <string.h>

enum { ABSENT = 0xffff };
static const char magic[4] = { 'f', 'i', 'r', 'n' };

ssize_t frame_parse(const char *p, size_t len, struct frame *out)
{
    if (len < 4)
        return 0;
    uint32_t rest = load_be32(p);
    if (rest < FRAME_HEAD - 4 || rest > FRAME_RAFT_MAX - 4)
        return FIRN_EFORMAT;
    if (len < FRAME_HEAD)
        return 0;
    uint8_t type = (uint8_t)p[4];
    if (type < FRAME_HELLO || type > FRAME_RAFT || p[6] || p[7] ||
        (rest > FRAME_MAX - 4 && type != FRAME_RAFT))
        return FIRN_EFORMAT;
    if (len < (size_t)rest + 4)
        return 0;
    *out = (struct frame){ .type = (enum frame_type)type,
                           .flags = (uint8_t)p[5],
                           .budget_ms = load_be32(p + 8),
                           .number = load_be64(p + 12),
                           .body = p + FRAME_HEAD,
                           .len = rest + 4 - FRAME_HEAD };
    return (ssize_t)rest + 4;
}

/* ---- writing ---- */

static char *room(struct frame_out *o, size_t n)
{
    firn_assert(o->len <= o->cap, "len=%zu cap=%zu", o->len, o->cap);
    if (o->full || o->cap - o->len < n) {
        o->full = true;
        return NULL;
    }
    o->len += n;
    return o->p + o->len - n;
}

void frame_u8(struct frame_out *o, uint8_t v)
{
    char *p = room(o, 1);
    if (p)
        *p = (char)v;
}

void frame_u32(struct frame_out *o, uint32_t v)
{
    char *p = room(o, 4);
    if (p)
        store_be32(p, v);
}

void frame_u64(struct frame_out *o, uint64_t v)
{
    char *p = room(o, 8);
    if (p)
        store_be64(p, v);
}

void frame_text(struct frame_out *o, struct firn_slice s)
{
    size_t len = s.p ? s.len : ABSENT;
    firn_assert(!s.p || len < ABSENT, "len=%zu", len); /* a longer one would lose its upper bits */
    frame_u8(o, (uint8_t)(len >> 8));
    frame_u8(o, (uint8_t)len);
    char *p = s.p && s.len ? room(o, s.len) : NULL;
    if (p)
        memcpy(p, s.p, s.len);
}

void frame_begin(struct frame_out *o, enum frame_type type, uint8_t flags, uint32_t budget_ms,
                 uint64_t number)
{
    o->len = 0;
    o->full = false;
    frame_u32(o, 0);
    frame_u8(o, (uint8_t)type);
    frame_u8(o, flags);
    frame_u8(o, 0);
    frame_u8(o, 0);
    frame_u32(o, budget_ms);
    frame_u64(o, number);
}

void frame_end(struct frame_out *o)
{
    firn_assert(o->full || (o->len >= FRAME_HEAD && o->len <= FRAME_RAFT_MAX), "len=%zu", o->len);
    if (o->len >= 4)
        store_be32(o->p, (uint32_t)o->len - 4);
}

void frame_hello(struct frame_out *o, enum frame_kind kind, uint64_t member, const char *address)
{
    frame_begin(o, FRAME_HELLO, 0, 0, 0);
    for (size_t i = 0; i < sizeof magic; i++)
        frame_u8(o, (uint8_t)magic[i]);
    frame_u8(o, kind == FRAME_MEMBER ? FRAME_MEMBER_VERSION : FRAME_VERSION);
    frame_u8(o, (uint8_t)kind);
    frame_u64(o, member);
    frame_text(o, firn_slice(address, strlen(address)));
    frame_end(o);
}

void frame_cas(struct frame_out *o, const struct firn_cas *want, size_t count)
{
    firn_assert(count > 0 && count <= FRAME_WRITES_MAX, "count=%zu", count);
    frame_u32(o, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        frame_text(o, want[i].key);
        frame_text(o, want[i].old);
        frame_text(o, want[i].value);
    }
}

void frame_reply(struct frame_out *o, uint64_t number, int result, uint64_t index, uint64_t now_ms)
{
    frame_begin(o, FRAME_REPLY, 0, 0, number);
    frame_u32(o, (uint32_t)result);
    frame_u64(o, index);
    frame_u64(o, now_ms);
}

void frame_refuse(struct frame_out *o, uint64_t number, int result, uint64_t index, const char *why)
{
    frame_reply(o, number, result, index, 0);
    frame_text(o, firn_slice(why, strlen(why)));
    frame_end(o);
}

/* ---- reading ---- */

static const char *take(struct frame_in *i, size_t n)
{
    if (i->bad || i->len < n) {
        i->bad = true;
        return NULL;
    }
    i->p += n;
    i->len -= n;
    return i->p - n;
}

uint8_t frame_get_u8(struct frame_in *i)
{
    const char *p = take(i, 1);
    return p ? (uint8_t)*p : 0;
}

uint32_t frame_get_u32(struct frame_in *i)
{
    const char *p = take(i, 4);
    return p ? load_be32(p) : 0;
}

uint64_t frame_get_u64(struct frame_in *i)
{
    const char *p = take(i, 8);
    return p ? load_be64(p) : 0;
}

struct firn_slice frame_get_text(struct frame_in *i, size_t max)
{
    unsigned high = frame_get_u8(i), len = high << 8 | frame_get_u8(i);
    if (len == ABSENT || i->bad)
        return firn_slice(NULL, 0);
    if (len > max)
        i->bad = true;
    const char *p = take(i, len);
    return firn_slice(p, p ? len : 0);
}

int frame_get_hello(const struct frame *f, struct frame_greeting *out)
{
    struct frame_in i = { f->body, f->len, false };
    const char *word = take(&i, sizeof magic);
    if (f->type != FRAME_HELLO || !word || memcmp(word, magic, sizeof magic) != 0)
        return FIRN_EFORMAT;
    uint8_t version = frame_get_u8(&i), kind = frame_get_u8(&i);
    if (version != (kind == FRAME_MEMBER ? FRAME_MEMBER_VERSION : FRAME_VERSION))
        return FIRN_ENOTSUP;
    out->kind = (enum frame_kind)kind;
    out->member = frame_get_u64(&i);
    struct firn_slice address = frame_get_text(&i, FRAME_ADDRESS_MAX);
    if (i.bad || i.len || !address.p || (kind != FRAME_MEMBER && kind != FRAME_CLIENT) ||
        memchr(address.p, 0, address.len))
        return FIRN_EFORMAT;
    memcpy(out->address, address.p, address.len);
    out->address[address.len] = '\0';
    return 0;
}

int frame_get_cas(struct frame_in *i, struct firn_cas *want, size_t *out_n)
{
    uint32_t count = frame_get_u32(i);
    if (count == 0 || count > FRAME_WRITES_MAX)
        return FIRN_EFORMAT;
    for (uint32_t k = 0; k < count; k++) {
        want[k].key = frame_get_text(i, MAP_KEY_MAX);
        want[k].old = frame_get_text(i, STORE_VALUE_MAX);
        want[k].value = frame_get_text(i, STORE_VALUE_MAX);
        if (i->bad || !want[k].key.p || (!want[k].old.p && !want[k].value.p))
            return FIRN_EFORMAT;
    }
    *out_n = count;
    return 0;
}

int frame_get_reply(struct frame_in *i, struct frame_answer *out)
{
    out->result = (int)(int32_t)frame_get_u32(i);
    out->index = frame_get_u64(i);
    out->now_ms = frame_get_u64(i);
    return i->bad || out->result > 0 ? FIRN_EFORMAT : 0;
}
