/* Header fields on their way through the gateway. */
#include "proxy/fields.h"
#include "wire/http_line.h"

static bool same_name(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        unsigned char x = (unsigned char)a.p[i], y = (unsigned char)b.p[i];
        x = x >= 'A' && x <= 'Z' ? x | 0x20 : x;
        y = y >= 'A' && y <= 'Z' ? y | 0x20 : y;
        if (x != y)
            return false;
    }
    return true;
}

/* What a server may take for the same name: CGI and its heirs (WSGI, PHP, Rack) make variables of
 * fields, in which '_' and, with some, every other mark cannot be told from '-'. */
static uint8_t folded(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint8_t)(c | 0x20);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? (uint8_t)c : '-';
}

bool field_alike(struct slice name, struct slice other)
{
    if (name.len != other.len)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (folded(name.p[i]) != folded(other.p[i]))
            return false;
    return true;
}

static bool names(struct slice list, struct slice name)
{
    struct slice part;
    while (http_part(&list, ',', &part))
        if (same_name(part, name))
            return true;
    return false;
}

static bool stays_behind(struct slice name, bool request)
{
    static const char *const hop[] = { "connection",
                                       "keep-alive",
                                       "proxy-connection",
                                       "proxy-authenticate",
                                       "proxy-authorization",
                                       "te",
                                       "trailer",
                                       "transfer-encoding",
                                       "upgrade",
                                       "content-length" };
    for (size_t i = 0; i < sizeof hop / sizeof hop[0]; i++)
        if (http_word_is(name, hop[i]))
            return true;
    /* "Proxy" would be the variable HTTP_PROXY of CGI and its heirs, which sets their own proxy. */
    return request && (http_word_is(name, "expect") || http_word_is(name, "proxy"));
}

void fields_take(struct fields *f, const struct http_header *from, size_t n, bool request)
{
    struct slice
        named[8]; /* values of Connection; one is usual, and what is beyond is dropped too */
    size_t connections = 0;
    f->n = 0;
    f->failed = false;
    for (size_t i = 0; i < n; i++)
        if (http_word_is(from[i].name, "connection")) {
            if (connections == sizeof named / sizeof named[0]) {
                f->failed = true;
                return;
            }
            named[connections++] = from[i].value;
        }
    for (size_t i = 0; i < n; i++) {
        bool drop = stays_behind(from[i].name, request);
        for (size_t k = 0; k < connections && !drop; k++)
            drop = names(named[k], from[i].name);
        if (!drop)
            fields_add(f, from[i].name, from[i].value);
    }
}

void fields_add(struct fields *f, struct slice name, struct slice value)
{
    if (f->n == FIELDS_MAX)
        f->failed = true;
    else
        f->v[f->n++] = (struct http_header){ name, value };
}

void fields_remove(struct fields *f, struct slice name)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++)
        if (!field_alike(f->v[i].name, name))
            f->v[kept++] = f->v[i];
    f->n = kept;
}

void fields_set(struct fields *f, struct slice name, struct slice value)
{
    for (size_t i = 0; i < f->n; i++) {
        if (!field_alike(f->v[i].name, name))
            continue;
        struct http_header first = { name, value };
        size_t kept = i + 1;
        f->v[i] = first;
        for (size_t k = i + 1; k < f->n; k++)
            if (!field_alike(f->v[k].name, name))
                f->v[kept++] = f->v[k];
        f->n = kept;
        return;
    }
    fields_add(f, name, value);
}

struct slice fields_get(const struct fields *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (http_word_is(f->v[i].name, name))
            return f->v[i].value;
    return (struct slice){ NULL, 0 };
}

void fields_write(const struct fields *f, struct buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        buf_add(out, f->v[i].name.p, f->v[i].name.len);
        buf_add(out, ": ", 2);
        buf_add(out, f->v[i].value.p, f->v[i].value.len);
        buf_add(out, "\r\n", 2);
    }
}
