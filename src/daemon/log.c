/*
 * Structured log lines. A line is built in a buffer on the stack and sent with one write(2). The
 * format is parsed here, word by word, instead of by one vsnprintf(): only then is it known where a
 * value begins and ends, so that a value with spaces, quotes or line breaks stays one value.
 */
#include "daemon/log.h"
#include "id/fnv.h"
#include "wire/utf8.h"
#include "platform/mono.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 4096, /* PIPE_BUF: what a pipe takes in one piece */
    TAIL_BYTES = 64,       /* kept free for repeated=, lost= and the end of the line */
    VALUE_MAX_BYTES = 1024,
    EVENTS = 64, /* names that are counted apart; there are fewer */
    BURST = 20,  /* lines of one event in a window */
    WINDOW_NS = 1000000000,
};

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static atomic_int wanted = LOG_LEVEL_INFO, wanted_format = LOG_FORMAT_TEXT;
static atomic_int out_fd = STDERR_FILENO;

/* Lines of one event, written and held back. The name is compared by content: the same literal may
 * have several addresses. */
struct counted {
    const char *event;
    enum log_level level;
    uint64_t hash; /* of the last line's fields */
    uint64_t since_ns;
    unsigned lines;
    uint64_t held_back;
};

static pthread_mutex_t counted_lock = PTHREAD_MUTEX_INITIALIZER;
static struct counted counted[EVENTS];

struct line {
    bool json;
    size_t len, fields_from;
    unsigned left_out; /* fields that found no room */
    char text[LINE_MAX_BYTES];
};

static void put(struct line *l, const char *p, size_t n)
{
    if (n > sizeof l->text - l->len)
        n = sizeof l->text - l->len;
    memcpy(l->text + l->len, p, n);
    l->len += n;
}

static void put_text(struct line *l, const char *text)
{
    put(l, text, strlen(text));
}

/* Inside quotes. JSON knows no \x; both show what is not UTF-8 in their own way. */
static void put_escaped(struct line *l, const char *p, size_t len)
{
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)p[i];
        size_t n = utf8_next(p + i, len - i);
        char code[8] = { '\\' };
        if (c == '"' || c == '\\')
            code[1] = (char)c;
        else if (c == '\n')
            code[1] = 'n';
        else if (c == '\t')
            code[1] = 't';
        else if (n == 0)
            snprintf(code, sizeof code, l->json ? "\\ufffd" : "\\x%02x", c);
        else if (utf8_is_control(p + i, n))
            snprintf(code, sizeof code, l->json ? "\\u%04x" : "\\x%02x",
                     n == 2 ? (unsigned char)p[i + 1]
                            : c); /* terminals obey U+0080 to U+009F too */
        else
            code[0] = '\0';
        if (code[0])
            put_text(l, code);
        else
            put(l, p + i, n);
        i += n ? n : 1;
    }
}

static bool needs_quotes(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)p[i] <= ' ' || (unsigned char)p[i] >= 0x7f || strchr("\"\\=", p[i]))
            return true;
    return len == 0;
}

/* A field goes in whole or not at all, so that the line stays well formed. */
static void put_field(struct line *l, const char *key, size_t key_len, const char *value,
                      size_t len, bool bare)
{
    size_t before = l->len;
    bool quote = l->json ? !bare : needs_quotes(value, len);
    put_text(l, l->json ? ",\"" : " ");
    put(l, key, key_len);
    put_text(l, l->json ? "\":" : "=");
    if (quote)
        put_text(l, "\"");
    if (quote)
        put_escaped(l, value, len);
    else
        put(l, value, len);
    if (quote)
        put_text(l, "\"");
    if (l->len > sizeof l->text - TAIL_BYTES) {
        l->len = before;
        l->left_out++;
    }
}

struct value {
    char text[VALUE_MAX_BYTES];
    size_t len;
    bool number; /* nothing but one number that every JSON reader keeps */
};

static void add(struct value *v, const char *p, size_t n)
{
    size_t room = sizeof v->text - v->len;
    if (n > room) {
        memcpy(v->text + v->len, p, room);
        memcpy(v->text + sizeof v->text - 3, "...", 3);
        n = room;
    } else {
        memcpy(v->text + v->len, p, n);
    }
    v->len += n;
}

_Static_assert(sizeof(long) == sizeof(long long) && sizeof(size_t) == sizeof(long long),
               "integers are taken as int or as long long");

/* One conversion, from '%' to its letter. Returns the character after it. va_list comes by address,
 * so that what one call takes is gone for the next. */
static const char *add_conversion(struct value *v, const char *fmt, va_list *args)
{
    char spec[32], text[VALUE_MAX_BYTES];
    size_t n = strspn(fmt + 1, "-+ #0123456789.") + 1;
    int precision = -1, len = 0, longs = 0;
    bool star = fmt[n] == '*';
    if (star) {
        precision = va_arg(*args, int);
        n++;
    }
    size_t length = strspn(fmt + n, "hlzjt");
    char conversion = fmt[n + length];
    bool wide = length && (fmt[n] == 'z' || fmt[n] == 'j' || fmt[n] == 't');
    if (length && fmt[n] == 'l')
        longs = (int)length;
    const char *end = fmt + n + length + (conversion != '\0');

    /* The same flags and width, always with the length of intmax_t. */
    int prefix = (int)(n < 16 ? n : 16);
    switch (conversion) {
    case 'd':
    case 'i': {
        intmax_t i = longs || wide ? (intmax_t)va_arg(*args, long long) : va_arg(*args, int);
        snprintf(spec, sizeof spec, "%.*sj%c", prefix, fmt, conversion);
        len = snprintf(text, sizeof text, spec, i);
        v->number = i >= -(INT64_C(1) << 53) && i <= INT64_C(1) << 53;
        break;
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
        uintmax_t u = longs || wide ? (uintmax_t)va_arg(*args, unsigned long long)
                                    : va_arg(*args, unsigned);
        snprintf(spec, sizeof spec, "%.*sj%c", prefix, fmt, conversion);
        len = snprintf(text, sizeof text, spec, u);
        v->number = conversion == 'u' && u <= UINT64_C(1) << 53;
        break;
    }
    case 'f':
    case 'e':
    case 'g': {
        double d = va_arg(*args, double);
        snprintf(spec, sizeof spec, "%.*s%c", prefix, fmt, conversion);
        len = snprintf(text, sizeof text, spec, d);
        v->number = d - d == 0; /* neither infinite nor NaN, which JSON has no words for */
        break;
    }
    case 's': { /* no copy through `text`: it may be long, and end at the precision without a NUL */
        const char *s = va_arg(*args, const char *);
        if (!s)
            s = "(null)";
        if (!star && n > 1 && fmt[1] == '.')
            sscanf(fmt + 2, "%d", &precision);
        add(v, s, precision >= 0 ? strnlen(s, (size_t)precision) : strlen(s));
        return end;
    }
    case 'c':
        text[0] = (char)va_arg(*args, int);
        len = 1;
        break;
    case 'p':
        len = snprintf(text, sizeof text, "%p", va_arg(*args, void *));
        break;
    case '%':
        text[0] = '%';
        len = 1;
        break;
    default: /* the compiler checks formats; this is a conversion that we do not do */
        len = snprintf(text, sizeof text, "?");
        break;
    }
    if (v->number && (n != 1 || text[0] == '+'))
        v->number = false; /* padding and signs are for people */
    add(v, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
    return end;
}

/* Formats up to a space of the format (or to its end). Returns where it stopped. */
static const char *add_word(struct value *v, const char *fmt, bool to_end, va_list *args)
{
    const char *from = fmt;
    bool pure = *fmt == '%';
    v->len = 0;
    v->number = false;
    while (*fmt && (to_end || *fmt != ' ')) {
        pure &= fmt == from;
        if (*fmt == '%')
            fmt = add_conversion(v, fmt, args);
        else
            add(v, fmt++, 1);
    }
    v->number &= pure;
    return fmt;
}

static void put_fields(struct line *l, const char *fmt, va_list *args)
{
    struct value v;
    while (*(fmt += strspn(fmt, " "))) {
        const char *key = fmt;
        size_t len = strcspn(fmt, "= %");
        bool message = len == 0 || fmt[len] != '=';
        fmt = add_word(&v, message ? fmt : fmt + len + 1, message, args);
        if (message)
            put_field(l, "msg", 3, v.text, v.len, false);
        else
            put_field(l, key, len, v.text, v.len, v.number);
    }
}

static _Thread_local const struct log_request *request;

void log_request(const struct log_request *r)
{
    request = r;
}

static void put_request(struct line *l)
{
    if (request && request->id[0])
        put_field(l, "request_id", 10, request->id, strlen(request->id), false);
    if (request && request->trace[0])
        put_field(l, "trace_id", 8, request->trace, strlen(request->trace), false);
}

/* The event's row; a new one, or the one that was quiet for longest if all are taken. What that one
 * held back is written to `*lost`. */
static struct counted *row_of(enum log_level level, const char *event, struct counted *lost)
{
    struct counted *quiet = &counted[0]; /* an empty row has been quiet since time 0 */
    for (size_t i = 0; i < EVENTS; i++) {
        struct counted *c = &counted[i];
        if (c->event && c->level == level && strcmp(c->event, event) == 0)
            return c;
        if (c->since_ns < quiet->since_ns)
            quiet = c;
    }
    *lost = *quiet;
    *quiet = (struct counted){ .event = event, .level = level };
    return quiet;
}

/* Whether to write a line with these fields now; if so, how many before it were not written. */
static bool admit(enum log_level level, const char *event, uint64_t hash, uint64_t *held_back,
                  struct counted *lost)
{
    uint64_t now = mono_ns();
    pthread_mutex_lock(&counted_lock);
    struct counted *c = row_of(level, event, lost);
    if (c->lines == 0 || now - c->since_ns >= WINDOW_NS) {
        c->since_ns = now;
        c->lines = 0;
    }
    bool repeats = c->lines > 0 && c->hash == hash;
    bool ok = !repeats && c->lines < BURST;
    if (ok) {
        *held_back = c->held_back;
        c->held_back = 0;
        c->hash = hash;
        c->lines++;
    } else {
        c->held_back++;
    }
    pthread_mutex_unlock(&counted_lock);
    return ok;
}

static void line_begin(struct line *l, enum log_level level, const char *event)
{
    uint64_t ns = clock_read_ns(CLOCK_REALTIME);
    time_t s = (time_t)(ns / 1000000000u);
    struct tm t;
    char time[40], head[160];
    gmtime_r(&s, &t);
    size_t n = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(time + n, sizeof time - n, ".%03uZ", (unsigned)(ns / 1000000u % 1000u));
    l->json = atomic_load_explicit(&wanted_format, memory_order_relaxed) == LOG_FORMAT_JSON;
    l->len = 0;
    l->left_out = 0;
    snprintf(head, sizeof head,
             l->json ? "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"" : "%s %-5s %s", time,
             level_names[level], event);
    put_text(l, head);
    l->fields_from = l->len;
}

static void line_end(struct line *l, uint64_t held_back)
{
    /* These and the end fit into TAIL_BYTES, which put_field() has left free. */
    char tail[TAIL_BYTES] = "";
    size_t n = 0;
    if (held_back)
        n += (size_t)snprintf(tail, sizeof tail,
                              l->json ? ",\"repeated\":%" PRIu64 : " repeated=%" PRIu64, held_back);
    if (l->left_out)
        snprintf(tail + n, sizeof tail - n, l->json ? ",\"left_out\":%u" : " left_out=%u",
                 l->left_out);
    put_text(l, tail);
    put_text(l, l->json ? "}\n" : "\n");
    int fd = atomic_load_explicit(&out_fd, memory_order_relaxed);
    while (write(fd, l->text, l->len) < 0 && errno == EINTR)
        ; /* a log that cannot be written has no place to say so */
}

static void say_held_back(const struct counted *c)
{
    if (!c->event || !c->held_back)
        return;
    struct line l;
    line_begin(&l, c->level, c->event);
    line_end(&l, c->held_back);
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    int saved_errno = errno;
    struct line l;
    uint64_t held_back = 0;
    struct counted lost = { 0 };
    if (!log_wants(level))
        return;
    va_list args;
    va_start(args, fmt);
    line_begin(&l, level, event);
    put_fields(&l, fmt, &args);
    put_request(&l);
    va_end(args);
    if (level == LOG_LEVEL_DEBUG ||
        admit(level, event, fnv(FNV_BEGIN, l.text + l.fields_from, l.len - l.fields_from),
              &held_back, &lost)) {
        say_held_back(&lost);
        line_end(&l, held_back);
    }
    errno = saved_errno; /* so that logging between a call and the look at errno does no harm */
}

void log_audit(const char *event, const char *fmt, ...)
{
    int saved_errno = errno;
    struct line l;
    va_list args;
    va_start(args, fmt);
    line_begin(&l, LOG_LEVEL_INFO, event);
    put_fields(&l, fmt, &args);
    put_request(&l);
    va_end(args);
    line_end(&l, 0);
    errno = saved_errno;
}

void log_flush(void)
{
    for (size_t i = 0; i < EVENTS; i++) {
        pthread_mutex_lock(&counted_lock);
        struct counted c = counted[i];
        counted[i].held_back = 0;
        pthread_mutex_unlock(&counted_lock);
        say_held_back(&c);
    }
}

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store_explicit(&wanted, (int)level, memory_order_relaxed);
    atomic_store_explicit(&wanted_format, (int)format, memory_order_relaxed);
}

void log_to(int fd)
{
    atomic_store_explicit(&out_fd, fd, memory_order_relaxed);
}

bool log_wants(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&wanted, memory_order_relaxed);
}
