/* The reader of RESP replies, for the clients. */
#include "wire/resp_reply.h"
#include "firn/text.h"

/* The number in the line of a length; -1 stands for RESP2's null. */
static int read_length(struct slice line, uint64_t max, int64_t *out)
{
    uint64_t n;
    if (slice_is(line, "-1")) {
        *out = -1;
        return 0;
    }
    if (firn_u64_parse(line.p, line.len, &n) != 0 || n > max)
        return FIRN_EFORMAT;
    *out = (int64_t)n;
    return 0;
}

static ssize_t read_bulk(const char *p, size_t len, size_t line, struct resp_value *out)
{
    int64_t n;
    if (read_length(out->text, RESP_REPLY_BULK_MAX, &n) != 0)
        return FIRN_EFORMAT;
    if (n < 0) {
        *out = (struct resp_value){ .type = RESP_NULL };
        return (ssize_t)line;
    }
    size_t size = (size_t)n;
    if (len - line < size + 2)
        return FIRN_EAGAIN;
    if (memcmp(p + line + size, "\r\n", 2) != 0)
        return FIRN_EFORMAT;
    out->text = (struct slice){ p + line, size };
    return (ssize_t)(line + size + 2);
}

ssize_t resp_reply(const char *p, size_t len, struct resp_value *out)
{
    const char *nl = len ? memchr(p, '\n', len) : NULL;
    if (!nl)
        return len > RESP_REPLY_LINE_MAX ? FIRN_EFORMAT : FIRN_EAGAIN;
    if (nl - p < 2 || nl[-1] != '\r')
        return FIRN_EFORMAT;
    size_t line = (size_t)(nl + 1 - p);
    int64_t n;
    *out = (struct resp_value){ .text = { p + 1, line - 3 } };
    switch (p[0]) {
    case ':':
        out->type = RESP_NUMBER;
        return (ssize_t)line;
    case '-':
        out->type = RESP_FAILURE;
        return (ssize_t)line;
    case '+':
    case '_':
    case '#':
    case ',':
    case '(':
        out->type = RESP_SIMPLE;
        return (ssize_t)line;
    case '$':
    case '=':
    case '!':
        out->type = p[0] == '!' ? RESP_FAILURE : RESP_TEXT;
        return read_bulk(p, len, line, out);
    case '*':
    case '~':
    case '>':
    case '%':
        if (read_length(out->text, RESP_REPLY_ELEMENTS_MAX, &n) != 0)
            return FIRN_EFORMAT;
        *out = (struct resp_value){ .type = RESP_CONTAINER };
        if (n > 0)
            out->members = (uint64_t)n << (p[0] == '%');
        return (ssize_t)line;
    default:
        return FIRN_EFORMAT;
    }
}
