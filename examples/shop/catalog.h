/*
 * catalog.h - what the five services of the shop keep: a table of members for each service, and the
 * rows that it begins with. All in memory; belongs to one thread. Tested in
 * tests/integration/gateway_shop.py.
 */
#ifndef FIRN_SHOP_CATALOG_H
#define FIRN_SHOP_CATALOG_H

#include "wire/buf.h"

enum {
    MEMBERS_MAX = 6,
    VALUE_BUF = 64,
    KEY_BUF = 128,    /* of an Idempotency-Key */
    ROWS_MAX = 10000, /* 503 beyond: the shop forgets nothing while it runs */
};

enum member_kind {
    MEMBER_TEXT,
    MEMBER_NUMBER,
    MEMBER_OWNER, /* "user_456": from X-User-ID; other users do not see the row */
};

struct member {
    const char *name;
    enum member_kind kind;
    const char *initial; /* where a client does not give it; NULL: it must */
};

struct row {
    uint64_t id; /* 0: its ID is on the way from firnd; nobody sees the row */
    char value[MEMBERS_MAX][VALUE_BUF];
    char key[KEY_BUF]; /* Idempotency-Key of the request that made it; "": none */
};

struct catalog {
    const char *name;                      /* "orders", also the first segment of its paths */
    bool users;                            /* a row's owner is the user of its ID */
    bool shared;                           /* the same for every user: caches may keep it */
    struct member member[MEMBERS_MAX + 1]; /* ends with one that has no name */
    struct row first[4];                   /* ends with ID 0 */
};

/* "users", "orders", "products", "payments" or "notifications"; NULL: none of them. */
const struct catalog *catalog_find(const char *name);

/* The rows begin as catalog->first. */
void catalog_begin(const struct catalog *c);

/* Whether the user ("" : a request inside the shop, which sees all) may see a row. */
bool row_is_for(const struct row *r, const char *user);

struct row *row_find(uint64_t id);
struct row *row_of_key(const char *key, const char *user);
struct row *row_next(const struct row *after); /* NULL: the first; by ID, and rows without one */

/* A new row without an ID, from a JSON object. NULL: *why says what is wrong, *out_status how to
 * answer. */
struct row *row_new(struct slice json, const char *user, const char *key, const char **why,
                    unsigned *out_status);
void row_remove(struct row *r); /* of one that has no ID */

/* Whether every `member=value` of a query that names one of its members is so. */
bool row_fits(const struct row *r, struct slice query);

void row_write(const struct row *r, struct buf *out);

#endif
