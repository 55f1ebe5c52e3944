/*
 * fields.h - header fields of a message on its way through the gateway: a list of names and values
 * that borrow their bytes, which links change and which is written as lines in the end. Also which
 * fields never pass a proxy. Pure; one thread.
 */
#ifndef FIRN_PROXY_FIELDS_H
#define FIRN_PROXY_FIELDS_H

#include "wire/http_line.h"

enum { FIELDS_MAX = HTTP_FIELDS_MAX + 96 }; /* those of a message, and what the gateway adds */

struct fields {
    size_t n;
    bool failed; /* there were more than FIELDS_MAX */
    struct http_header v[FIELDS_MAX];
};

/* The fields of a message without those that belong to its connection: Connection, what it names,
 * Keep-Alive, Proxy-Connection, Proxy-Authenticate, Proxy-Authorization, TE, Trailer,
 * Transfer-Encoding, Upgrade, Content-Length (framing is written anew), and with `request` Expect,
 * which the gateway answers itself. */
void fields_take(struct fields *f, const struct http_header *from, size_t n, bool request);

/* Whether a server may take one name for the other: the case of letters does not count, nor which
 * mark stands between them ("X_User.ID" is X-User-ID in CGI's variables). */
bool field_alike(struct slice name, struct slice other);

/* Names are written as given. Those that are removed or replaced are all that are alike. */
void fields_add(struct fields *f, struct slice name, struct slice value);
void fields_remove(struct fields *f, struct slice name);
void fields_set(struct fields *f, struct slice name, struct slice value); /* in their place */
struct slice fields_get(const struct fields *f, const char *name); /* the first of exactly that
                                                                    * lower-case name, or absent */

/* Lines, each with its CR LF. */
void fields_write(const struct fields *f, struct buf *out);

static inline struct slice slice_of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

#endif
