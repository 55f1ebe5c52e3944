/* Secrets by their names (redact.h). Tested in tests/unit/proxy/redact.c. */
#include "proxy/redact.h"
#include "id/hex.h"

#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 64 };

/* The byte at name[*i], which may be written as %XX; *i goes to its last one. */
static char decoded(struct slice name, size_t *i)
{
    const size_t at = *i;
    if (name.p[at] != '%' || name.len - at < 3)
        return name.p[at];
    const int high = hex_digit(name.p[at + 1]), low = hex_digit(name.p[at + 2]);
    if (high < 0 || low < 0)
        return name.p[at];
    *i += 2;
    return (char)(high * 16 + low);
}

/* A name without case, '-' and '_': "Access-Token" and "access_token" are one. */
static size_t plain(struct slice name, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < name.len && n < NAME_MAX_BYTES - 1; i++) {
        const char c = decoded(name, &i);
        if (c == '\0' || c == '-' || c == '_' || c == '.')
            continue;
        out[n++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    out[n] = '\0';
    return n;
}

static bool asked(const struct redact *r, const char *name)
{
    for (size_t i = 0; r->more && i < r->more->n; i++) {
        char own[NAME_MAX_BYTES];
        plain((struct slice){ r->more->v[i], strlen(r->more->v[i]) }, own);
        if (strcmp(own, name) == 0)
            return true;
    }
    return false;
}

static bool has_part(const char *name, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

/* Longer names that end with a secret's name are one, too: "newPassword". */
static const char *const parts[] = {
    "password",      "passwd",       "passphrase",      "passcode",      "secret",     "token",
    "apikey",        "authkey",      "accesskey",       "privatekey",    "masterkey",  "sharedkey",
    "signingkey",    "functionskey", "subscriptionkey", "encryptionkey", "credential", "signature",
    "authorization", "cookie",       "sessionid",       "csrf",          "xsrf",       "jwt",
};

bool redact_field(const struct redact *r, struct slice name)
{
    char n[NAME_MAX_BYTES];
    plain(name, n);
    return has_part(n, parts, sizeof parts / sizeof parts[0]) || strcmp(n, "xauth") == 0 ||
           asked(r, n);
}

bool redact_member(const struct redact *r, struct slice name)
{
    static const char *const whole[] = { "sig", "key", "code", "auth",    "pin",      "cvv",
                                         "cvc", "otp", "pwd",  "session", "assertion" };
    char n[NAME_MAX_BYTES];
    plain(name, n);
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(n, whole[i]) == 0)
            return true;
    return has_part(n, parts, sizeof parts / sizeof parts[0]) || asked(r, n);
}

static const char *first_of(const char *p, const char *end, const char *marks)
{
    while (p < end && (*p == '\0' || !strchr(marks, *p)))
        p++;
    return p;
}

/* Servers differ about ';', and a parameter may be a URL with parameters of its own, so a name also
 * begins behind these; but a secret goes on to the next '&'. */
void redact_query(const struct redact *r, struct slice query, struct buf *out)
{
    if (query.len == 0)
        return;
    const char *p = query.p, *end = query.p + query.len;
    const char *whole = p; /* the name for servers that know '&' only; NULL behind its '=' */
    for (;;) {
        const char *stop = first_of(p, end, "&;?#");
        const char *is = memchr(p, '=', (size_t)(stop - p));
        if (is && (redact_member(r, (struct slice){ p, (size_t)(is - p) }) ||
                   (whole && redact_member(r, (struct slice){ whole, (size_t)(is - whole) })))) {
            buf_add(out, p, (size_t)(is + 1 - p));
            buf_add_str(out, REDACTED);
            stop = first_of(stop, end, "&");
        } else {
            buf_add(out, p, (size_t)(stop - p));
        }
        if (stop == end)
            return;
        buf_add(out, stop, 1);
        p = stop + 1;
        whole = *stop == '&' ? p : is ? NULL : whole;
    }
}

/* Behind the string whose opening quote is at `p`; `end` if it is not closed. */
static const char *string_end(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == '"')
            return p + 1;
    }
    return end;
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Behind a value with all that is in it. */
static const char *value_end(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = string_end(p, end);
            if (depth == 0)
                return p;
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        else if (depth == 0 && (*p == ',' || *p == '}' || *p == ']'))
            return p;
        else if ((*p == '}' || *p == ']') && --depth == 0)
            return p + 1;
        p++;
    }
    return end;
}

void redact_json(const struct redact *r, struct slice text, struct buf *out)
{
    if (text.len == 0)
        return;
    const char *p = text.p, *end = text.p + text.len;
    while (p < end) {
        const char *quote = memchr(p, '"', (size_t)(end - p));
        if (!quote) {
            buf_add(out, p, (size_t)(end - p));
            return;
        }
        const char *after = string_end(quote, end), *colon = skip_space(after, end);
        bool member = colon < end && *colon == ':' && after[-1] == '"' && after > quote + 1;
        const char *value = member ? skip_space(colon + 1, end) : after;
        buf_add(out, p, (size_t)(value - p));
        p = value;
        if (!member || value == end)
            continue;
        if (redact_member(r, (struct slice){ quote + 1, (size_t)(after - quote - 2) })) {
            buf_add_str(out, "\"" REDACTED "\"");
            p = value_end(value, end);
        } else if (*value != '{' && *value != '[') { /* its quotes begin no name */
            p = value_end(value, end);
            buf_add(out, value, (size_t)(p - value));
        }
    }
}
