/* The JSON writer: one value after the other into a struct buf. */
#include "wire/json_write.h"
#include "platform/assert.h"
#include "wire/utf8.h"

#include <stdio.h>
#include <time.h>

/* Whether eight bytes are ASCII that a string may have as it is. */
static bool all_plain(const char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    uint64_t v, other;
    memcpy(&v, p, sizeof v);
    /* A byte's high bit is set where it is one of those that need a look; a borrow from the byte
     * below only adds some, and only when there is one already. */
    other = v | (v - ones * ' ') | ((v ^ ones * '"') - ones) | ((v ^ ones * '\\') - ones) |
            ((v ^ ones * 0x7f) - ones);
    return (other & high) == 0;
}

static bool plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* The usual string is copied while it is looked at. False: not all of it is plain. */
static bool string_plain(struct buf *b, const char *p, size_t len)
{
    char *to = buf_room(b, len + 2);
    size_t i = 0;
    if (!to)
        return true; /* no room for anything that is longer, either */
    *to++ = '"';
    for (; len - i >= 8 && all_plain(p + i); i += 8)
        memcpy(to + i, p + i, 8);
    for (; i < len && plain(p[i]); i++)
        to[i] = p[i];
    if (i < len)
        return false;
    to[len] = '"';
    buf_commit(b, len + 2);
    return true;
}

static void string(struct buf *b, const char *p, size_t len)
{
    if (string_plain(b, p, len))
        return;
    const char *end = p + len, *from = p; /* from: bytes that are not in the buffer yet */
    buf_add(b, "\"", 1);
    while (p < end) {
        size_t n = utf8_next(p, (size_t)(end - p));
        uint8_t c = (uint8_t)*p;
        bool control = n && utf8_is_control(p, n);
        if (n && !control && c != '"' && c != '\\') {
            p += n;
            continue;
        }
        buf_add(b, from, (size_t)(p - from));
        if (n == 0)
            buf_add_str(b, "\\ufffd");
        else if (control)
            buf_addf(b, "\\u%04x", n == 2 ? (uint8_t)p[1] : c);
        else
            buf_add(b, (char[2]){ '\\', (char)c }, 2);
        from = p += n ? n : 1;
    }
    buf_add(b, from, (size_t)(p - from));
    buf_add(b, "\"", 1);
}

void json_key(struct buf *b, const char *key)
{
    char last = b->len ? b->p[b->len - 1] : '\n';
    if (last != '{' && last != '[' && last != ':' && last != '\n')
        buf_add(b, ",", 1);
    if (key) {
        string(b, key, strlen(key));
        buf_add(b, ":", 1);
    }
}

void json_begin(struct buf *b, const char *key, char bracket)
{
    firn_assert(bracket == '{' || bracket == '[');
    json_key(b, key);
    buf_add(b, &bracket, 1);
}

void json_end(struct buf *b, char bracket)
{
    firn_assert(b->failed || (b->len > 0 && b->p[b->len - 1] != ':' && b->p[b->len - 1] != ','));
    buf_add(b, &bracket, 1);
}

void json_bytes(struct buf *b, const char *key, const char *p, size_t len)
{
    json_key(b, key);
    string(b, p, len);
}

void json_text(struct buf *b, const char *key, const char *text)
{
    if (text)
        json_bytes(b, key, text, strlen(text));
    else
        json_null(b, key);
}

void json_bool(struct buf *b, const char *key, bool value)
{
    json_key(b, key);
    buf_add_str(b, value ? "true" : "false");
}

void json_null(struct buf *b, const char *key)
{
    json_key(b, key);
    buf_add(b, "null", 4);
}

void json_count(struct buf *b, const char *key, uint64_t n)
{
    json_key(b, key);
    buf_add_u64(b, n);
}

void json_signed(struct buf *b, const char *key, int64_t n)
{
    json_key(b, key);
    buf_add_i64(b, n);
}

void json_id(struct buf *b, const char *key, uint64_t id)
{
    json_key(b, key);
    buf_add(b, "\"", 1);
    buf_add_u64(b, id);
    buf_add(b, "\"", 1);
}

/* v with leading zeros. */
static void digits(char *to, size_t n, int v)
{
    for (; n-- > 0; v /= 10)
        to[n] = (char)('0' + v % 10);
}

void json_time(struct buf *b, const char *key, int64_t unix_us)
{
    int64_t s = unix_us / 1000000, us = unix_us % 1000000;
    if (us < 0) {
        us += 1000000;
        s--;
    }
    struct tm tm;
    time_t t = (time_t)s;
    json_key(b, key);
    if (!gmtime_r(&t, &tm) || tm.tm_year < -1899 || tm.tm_year > 8099) {
        buf_add(b, "null", 4);
        return;
    }
    char text[] = "\"0000-00-00T00:00:00.000Z\"";
    digits(text + 1, 4, tm.tm_year + 1900);
    digits(text + 6, 2, tm.tm_mon + 1);
    digits(text + 9, 2, tm.tm_mday);
    digits(text + 12, 2, tm.tm_hour);
    digits(text + 15, 2, tm.tm_min);
    digits(text + 18, 2, tm.tm_sec);
    digits(text + 21, 3, (int)(us / 1000));
    buf_add(b, text, sizeof text - 1);
}
