/*
 * Lists of IDs as HTTP answers. The length of a body must be known before it. Octets and padded
 * codecs have a fixed one. If the least and the greatest of some numbers have as many digits, all
 * have: then the length follows, and the texts can be written without one waiting for the length of
 * the other. Otherwise the head is finished afterwards, which moves the body by a few bytes.
 */
#include "server/answer.h"

#include <stdlib.h>

#define NO_STORE "Cache-Control: no-store\r\n"

#define REPLAYED "Idempotent-Replayed: true\r\n"
#define BOTH(type)                                                                            \
    {                                                                                         \
        "Content-Type: " type "\r\n" NO_STORE, "Content-Type: " type "\r\n" NO_STORE REPLAYED \
    }

static const char *const fields[][2] = {
    [ANSWER_JSON] = BOTH("application/json"),
    [ANSWER_TEXT] = BOTH("text/plain; charset=utf-8"),
    [ANSWER_OCTETS] = BOTH("application/octet-stream"),
    [ANSWER_RUNS] = BOTH("application/vnd.firn.runs"),
};

enum { RUN_BYTES = 24 };

enum { FRAME_BYTES = sizeof "{\"ids\":[]}\n" - 1, NUMBER_CHUNK = 512 };

enum answer_format answer_format(struct slice accept)
{
    if (!accept.p || (accept.len == 3 && memcmp(accept.p, "*/*", 3) == 0))
        return ANSWER_JSON;
    if (http_names_type(accept, "application/json"))
        return ANSWER_JSON;
    if (http_names_type(accept, "application/vnd.firn.runs"))
        return ANSWER_RUNS;
    if (http_names_type(accept, "application/octet-stream"))
        return ANSWER_OCTETS;
    return http_names_type(accept, "text/plain") ? ANSWER_TEXT : ANSWER_JSON;
}

/* The longest text of a 64-bit number written so. */
static size_t answer_number_max(const struct answer *a)
{
    return (a->codec ? a->codec->width64 : FIRN_U64_TEXT_BUF - 1) +
           (a->prefix ? a->prefix_len + 1 : 0);
}

uint64_t answer_bytes(const struct answer *a, uint64_t n, size_t text_max)
{
    uint64_t each = a->format == ANSWER_OCTETS ? 8
                    : a->format == ANSWER_RUNS ? RUN_BYTES
                                               : text_max + (a->format == ANSWER_JSON ? 3 : 1);
    return n * each + FRAME_BYTES;
}

/* --- the frame around texts --- */

static void open_frame(struct buf *b, const struct answer *a)
{
    if (a->format == ANSWER_JSON)
        buf_add_str(b, a->list ? "{\"ids\":[" : "{\"id\":");
}

/* Takes the comma of the last text back. */
static void close_frame(struct buf *b, const struct answer *a)
{
    if (a->format != ANSWER_JSON)
        return;
    if (b->len && b->p[b->len - 1] == ',')
        b->len--;
    buf_add_str(b, a->list ? "]}\n" : "}\n");
}

/* --- numbers --- */

static char *put_text(char *p, const struct answer *a, uint64_t id)
{
    if (a->prefix) {
        memcpy(p, a->prefix, a->prefix_len);
        p += a->prefix_len;
        *p++ = '_';
    }
    size_t len = 0;
    if (!a->codec)
        len = firn_u64_format(id, p);
    else if (firn_codec_encode64(a->codec, id, p, FIRN_CODEC_TEXT_BUF, &len) != 0)
        abort(); /* a row of the table and room for every text */
    return p + len;
}

static char *put_even(char *p, enum answer_format f, const uint64_t *ids, size_t n, size_t digits)
{
    size_t step = digits + (f == ANSWER_TEXT ? 1 : 3);
    for (size_t i = 0; i < n; i++, p += step) {
        if (f == ANSWER_TEXT) {
            firn_u64_format(ids[i], p);
            p[digits] = '\n';
        } else {
            *p = '"';
            firn_u64_format(ids[i], p + 1);
            memcpy(p + 1 + digits, "\",", 2);
        }
    }
    return p;
}

static char *put_decimals(char *p, enum answer_format f, const uint64_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (f == ANSWER_JSON)
            *p++ = '"';
        p += firn_u64_format(ids[i], p);
        memcpy(p, f == ANSWER_JSON ? "\"," : "\n", 2);
        p += f == ANSWER_JSON ? 2 : 1;
    }
    return p;
}

static char *put_octets(char *p, const uint64_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) { /* no call, no branch: the compiler swaps by vectors */
        uint64_t v = __builtin_bswap64(ids[i]);
        memcpy(p + i * 8, &v, 8);
    }
    return p + n * 8;
}

static char *put_run(char *p, uint64_t first, uint64_t step, uint64_t count)
{
    return put_octets(p, (const uint64_t[]){ first, step, count }, 3);
}

static char *put_runs(char *p, const uint64_t *ids, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t step = i + 1 < n && ids[i + 1] > ids[i] ? ids[i + 1] - ids[i] : 1;
        for (end = i + 1; end < n && ids[end] > ids[end - 1] && ids[end] - ids[end - 1] == step;)
            end++;
        p = put_run(p, ids[i], step, end - i);
    }
    return p;
}

/* Texts with their separators behind each other; there is room. `digits` as even_digits() says. */
static char *put_numbers(char *p, const struct answer *a, const uint64_t *ids, size_t n,
                         size_t digits)
{
    if (a->format == ANSWER_OCTETS)
        return put_octets(p, ids, n);
    if (a->format == ANSWER_RUNS)
        return put_runs(p, ids, n);
    if (!a->codec && !a->prefix)
        return digits ? put_even(p, a->format, ids, n, digits) : put_decimals(p, a->format, ids, n);
    bool json = a->format == ANSWER_JSON;
    for (size_t i = 0; i < n; i++) {
        if (json)
            *p++ = '"';
        p = put_text(p, a, ids[i]);
        if (json)
            *p++ = '"';
        *p++ = json ? ',' : '\n';
    }
    return p;
}

/* How many characters every number between these has, or 0 if that differs. */
static size_t even_digits(const struct answer *a, uint64_t least, uint64_t greatest)
{
    char text[FIRN_U64_TEXT_BUF];
    if (a->codec)
        return a->codec->padded ? a->codec->width64 : 0;
    size_t digits = firn_u64_format(least, text);
    return firn_u64_format(greatest, text) == digits ? digits : 0;
}

/* The body's length if it is known before the body is written, else 0. */
static uint64_t body_length(const struct answer *a, uint64_t n, size_t digits)
{
    if (a->format == ANSWER_OCTETS)
        return n * 8;
    if (digits == 0 || a->format == ANSWER_RUNS)
        return 0;
    if (a->prefix)
        digits += a->prefix_len + 1;
    if (a->format == ANSWER_TEXT)
        return n * (digits + 1);
    return n * (digits + 2) +
           (a->list ? n - 1 + sizeof "{\"ids\":[]}\n" - 1 : sizeof "{\"id\":}\n" - 1);
}

/* Room behind a text that its writer may touch: a NUL, a codec's whole buffer. */
enum { SLACK_BYTES = FIRN_CODEC_TEXT_BUF };

static void begin(struct reply *r, const struct answer *a, uint64_t length)
{
    const char *f = fields[a->format][a->replayed];
    if (length)
        reply_head(r, 200, f, length);
    else
        reply_begin(r, 200, f);
    open_frame(r->out, a);
}

static void end(struct reply *r, const struct answer *a, uint64_t length)
{
    close_frame(r->out, a);
    if (!length)
        reply_end(r);
}

void answer_numbers(struct reply *r, const struct answer *a, const uint64_t *ids, size_t n)
{
    uint64_t least = UINT64_MAX, greatest = 0;
    for (size_t i = 0; i < n && !answer_is_binary(a->format);
         i++) { /* a layout's IDs need not rise */
        least = ids[i] < least ? ids[i] : least;
        greatest = ids[i] > greatest ? ids[i] : greatest;
    }
    size_t digits = even_digits(a, least, greatest);
    uint64_t length = body_length(a, n, digits);
    begin(r, a, length);
    char *p = buf_room(r->out, answer_bytes(a, n, answer_number_max(a)) + SLACK_BYTES);
    if (p)
        buf_commit(r->out, (size_t)(put_numbers(p, a, ids, n, digits) - p));
    end(r, a, length);
}

void answer_one(struct reply *r, uint64_t id)
{
    static const char head[] = "Content-Type: application/json\r\n" NO_STORE;
    char body[8 + FIRN_U64_TEXT_BUF + 3] = "{\"id\":\"";
    size_t len = 7 + firn_u64_format(id, body + 7);
    memcpy(body + len, "\"}\n", 3);
    reply_ok(r, head, sizeof head - 1, body, len + 3);
}

static void answer_run(struct reply *r, const struct answer *a, const struct seq_range *range)
{
    begin(r, a, RUN_BYTES);
    char *p = buf_room(r->out, RUN_BYTES);
    if (p)
        buf_commit(r->out, (size_t)(put_run(p, range->first, range->step, range->count) - p));
}

void answer_range(struct reply *r, const struct answer *a, const struct seq_range *range)
{
    if (range->count == 1 && a->format == ANSWER_JSON && !a->list && !a->replayed && !a->codec &&
        !a->prefix) {
        answer_one(r, range->first);
        return;
    }
    if (a->format == ANSWER_RUNS) {
        answer_run(r, a, range);
        return;
    }
    uint64_t ids[NUMBER_CHUNK], next = range->first;
    size_t digits = even_digits(a, range->first, seq_range_last(range));
    uint64_t length = body_length(a, range->count, digits);
    begin(r, a, length);
    char *start = buf_room(r->out,
                           answer_bytes(a, range->count, answer_number_max(a)) + SLACK_BYTES);
    char *p = start;
    for (uint64_t left = range->count; p && left > 0;) {
        size_t n = left < NUMBER_CHUNK ? left : NUMBER_CHUNK;
        for (size_t i = 0; i < n; i++, next += range->step)
            ids[i] = next;
        p = put_numbers(p, a, ids, n, digits);
        left -= n;
    }
    if (p)
        buf_commit(r->out, (size_t)(p - start));
    end(r, a, length);
}

int answer_texts(struct reply *r, const struct answer *a, size_t n, answer_text_fn *write,
                 void *user)
{
    struct buf *b = r->out;
    size_t before = b->len;
    bool json = a->format == ANSWER_JSON;
    begin(r, a, 0);
    for (size_t i = 0; i < n; i++) {
        char *p = buf_room(b, FIRN_MINT_TEXT_BUF + 3), *start = p;
        if (!p)
            return 0; /* the buffer says that it failed; the connection ends */
        if (json)
            *p++ = '"';
        int len = write(user, i, p);
        if (len < 0) {
            b->len = before;
            r->body_at = 0;
            return len;
        }
        p += len;
        if (json)
            *p++ = '"';
        *p++ = json ? ',' : '\n';
        buf_commit(b, (size_t)(p - start));
    }
    end(r, a, 0);
    return 0;
}
