#include "wire/json_write.h"
#include "wire/utf8.h"

#include <stdio.h>
#include <time.h>

void json_add_string(struct buf *b, const char *p, size_t len)
{
    const char *end = p + len;
    buf_add(b, "\"", 1);
    while (p < end) {
        size_t n = utf8_next(p, (size_t)(end - p));
        uint8_t c = (uint8_t)*p;
        if (n == 0)
            buf_add_str(b, "\\ufffd");
        else if (c == '"' || c == '\\')
            buf_add(b, (char[2]){ '\\', (char)c }, 2);
        else if (c < 0x20)
            buf_addf(b, "\\u%04x", c);
        else
            buf_add(b, p, n);
        p += n ? n : 1;
    }
    buf_add(b, "\"", 1);
}

void json_add_str(struct buf *b, const char *s)
{
    json_add_string(b, s, strlen(s));
}

void json_add_comma(struct buf *b)
{
    char last = b->len ? b->p[b->len - 1] : '{';
    if (last != '{' && last != '[')
        buf_add(b, ",", 1);
}

void json_add_name(struct buf *b, const char *name)
{
    json_add_comma(b);
    json_add_str(b, name);
    buf_add(b, ":", 1);
}

void json_add_member(struct buf *b, const char *name, const char *value)
{
    json_add_name(b, name);
    json_add_str(b, value);
}

void json_add_number(struct buf *b, const char *name, uint64_t value)
{
    json_add_name(b, name);
    buf_add_u64(b, value);
}

void json_add_big(struct buf *b, const char *name, uint64_t value)
{
    json_add_name(b, name);
    buf_add(b, "\"", 1);
    buf_add_u64(b, value);
    buf_add(b, "\"", 1);
}

void json_add_bool(struct buf *b, const char *name, bool value)
{
    json_add_name(b, name);
    buf_add_str(b, value ? "true" : "false");
}

void json_add_time(struct buf *b, const char *name, int64_t unix_us)
{
    int64_t s = unix_us / 1000000, us = unix_us % 1000000;
    if (us < 0) {
        us += 1000000;
        s--;
    }
    struct tm tm;
    time_t t = (time_t)s;
    json_add_name(b, name);
    if (!gmtime_r(&t, &tm) || tm.tm_year < -1899 || tm.tm_year > 8099) {
        buf_add_str(b, "null");
        return;
    }
    buf_addf(b, "\"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ\"", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(us / 1000));
}
