/*
 * http_start.h - what the two readers of requests (http.c, http_head.c) share about the first line,
 * so that they cannot differ: an empty line before it, the target's parts, the version. Inline,
 * because firnd reads it on each request. Pure; any thread.
 */
#ifndef FIRN_WIRE_HTTP_START_H
#define FIRN_WIRE_HTTP_START_H

#include "wire/http_line.h"

/* Where the first line begins: RFC 9112 lets one empty line pass, which some clients send after a
 * body. NULL: then *why says what is wrong, or is NULL when more bytes are needed. */
static inline const char *http_start(const char *q, const char *end, const char **why)
{
    if (q == end || *q != '\r')
        return q;
    *why = NULL;
    if (end - q < 2)
        return NULL;
    if (q[1] == '\n')
        return q + 2;
    *why = "a CR is not followed by LF";
    return NULL;
}

/* "http://host:80/path?query", as proxies send it: the authority there replaces Host (RFC 9112).
 * Returns its path with the query; `authority` is absent if it is refused with 400, for *why. */
struct slice http_split_absolute(struct slice target, struct slice *authority, const char **why);

/* The parts of a target, which has HTTP_TARGET bytes, at least one. `query` and `authority` are
 * absent before. NULL, or why it is refused with 400. */
static inline const char *http_split_target(struct slice target, bool options, struct slice *path,
                                            struct slice *query, struct slice *authority)
{
    const char *why;
    *path = target;
    if (target.p[0] != '/') {
        if (target.len == 1 && target.p[0] == '*')
            return options ? NULL : "the request target '*' is for OPTIONS only";
        *path = http_split_absolute(target, authority, &why);
        if (!authority->p)
            return why;
    }
    const char *mark = memchr(path->p, '?', path->len);
    if (mark) {
        *query = (struct slice){ mark + 1, (size_t)(path->p + path->len - mark - 1) };
        path->len = (size_t)(mark - path->p);
        if (path->len == 0)
            *path = (struct slice){ "/", 1 };
    }
    return NULL;
}

/* "HTTP/1.1\r\n". Returns what follows, or NULL. */
static inline const char *http_version(const char *q, const char *end, uint8_t *minor)
{
    if (end - q < 10 || memcmp(q, "HTTP/1.", 7) != 0 || (q[7] != '0' && q[7] != '1') ||
        q[8] != '\r' || q[9] != '\n')
        return NULL;
    *minor = (uint8_t)(q[7] - '0');
    return q + 10;
}

/* Then: what is wrong with it, refused with *status; NULL: nothing, it is not whole yet. */
const char *http_version_trouble(const char *q, const char *end, uint16_t *status);

#endif
