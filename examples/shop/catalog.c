/* The shop's data; see catalog.h. */
#include "catalog.h"
#include "wire/json_read.h"
#include "wire/json_write.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>

static const struct catalog catalogs[] = {
    { .name = "users",
      .users = true,
      .member = { { "name", MEMBER_TEXT, NULL },
                  { "email", MEMBER_TEXT, NULL },
                  { "tier", MEMBER_TEXT, "standard" } },
      .first = { { .id = 456, .value = { "User 456", "user456@shop.example", "gold" } },
                 { .id = 457, .value = { "User 457", "user457@shop.example", "standard" } } } },
    { .name = "orders",
      .member = { { "user_id", MEMBER_OWNER, NULL },
                  { "product_id", MEMBER_TEXT, "123" },
                  { "amount", MEMBER_NUMBER, NULL },
                  { "status", MEMBER_TEXT, "new" } },
      .first = { { .id = 123, .value = { "user_456", "123", "10000", "paid" } },
                 { .id = 124, .value = { "user_457", "124", "3000", "shipped" } } } },
    { .name = "products",
      .shared = true,
      .member = { { "name", MEMBER_TEXT, NULL },
                  { "price", MEMBER_NUMBER, NULL },
                  { "stock", MEMBER_NUMBER, "0" },
                  { "supplier_cost", MEMBER_NUMBER, "0" } }, /* not for clients: gateway.yaml */
      .first = { { .id = 123, .value = { "Cast-iron teapot", "10000", "12", "6100" } },
                 { .id = 124, .value = { "Tea cup", "1500", "80", "420" } },
                 { .id = 125, .value = { "Green tea, 100 g", "900", "200", "310" } } } },
    { .name = "payments",
      .member = { { "user_id", MEMBER_OWNER, NULL },
                  { "order_id", MEMBER_TEXT, NULL },
                  { "amount", MEMBER_NUMBER, NULL },
                  { "status", MEMBER_TEXT, "authorized" } },
      .first = { { .id = 123, .value = { "user_456", "123", "10000", "captured" } },
                 { .id = 124, .value = { "user_457", "124", "3000", "captured" } } } },
    { .name = "notifications",
      .member = { { "user_id", MEMBER_OWNER, NULL },
                  { "text", MEMBER_TEXT, NULL },
                  { "channel", MEMBER_TEXT, "mail" } },
      .first = { { .id = 123, .value = { "user_456", "Order 123 is paid", "mail" } },
                 { .id = 124, .value = { "user_457", "Order 124 is on its way", "push" } } } },
};

static const struct catalog *here;
static struct row rows[ROWS_MAX];
static size_t rows_n; /* in use, from the first on */

const struct catalog *catalog_find(const char *name)
{
    for (size_t i = 0; i < sizeof catalogs / sizeof catalogs[0]; i++)
        if (strcmp(catalogs[i].name, name) == 0)
            return &catalogs[i];
    return NULL;
}

void catalog_begin(const struct catalog *c)
{
    here = c;
    for (rows_n = 0; c->first[rows_n].id; rows_n++)
        rows[rows_n] = c->first[rows_n];
}

static const char *owner_of(const struct row *r)
{
    for (size_t i = 0; here->member[i].name; i++)
        if (here->member[i].kind == MEMBER_OWNER)
            return r->value[i];
    return "";
}

bool row_is_for(const struct row *r, const char *user)
{
    const char *owner = owner_of(r);
    char id[VALUE_BUF];
    if (*user && here->users) {
        snprintf(id, sizeof id, "%llu", (unsigned long long)r->id);
        return strcmp(id, user) == 0;
    }
    return !*user || !*owner || (strncmp(owner, "user_", 5) == 0 && strcmp(owner + 5, user) == 0);
}

struct row *row_find(uint64_t id)
{
    for (size_t i = 0; i < rows_n && id; i++)
        if (rows[i].id == id)
            return &rows[i];
    return NULL;
}

struct row *row_of_key(const char *key, const char *user)
{
    for (size_t i = 0; i < rows_n && *key; i++)
        if (strcmp(rows[i].key, key) == 0 && row_is_for(&rows[i], user))
            return &rows[i];
    return NULL;
}

struct row *row_next(const struct row *after)
{
    size_t i = after ? (size_t)(after - rows) + 1 : 0;
    return i < rows_n ? &rows[i] : NULL;
}

/* The place of a member, or MEMBERS_MAX. */
static size_t place_of(const char *name)
{
    for (size_t i = 0; here->member[i].name; i++)
        if (strcmp(here->member[i].name, name) == 0)
            return i;
    return MEMBERS_MAX;
}

/* NULL: read; else what is wrong. */
static const char *read_members(struct row *r, struct slice json)
{
    struct json_reader j;
    char name[VALUE_BUF];
    json_start(&j, json.p, json.len, NULL);
    int s = json_object(&j);
    while (s == 0 && (s = json_member(&j, name, sizeof name)) > 0) {
        size_t at = place_of(name), len;
        uint64_t n;
        if (at == MEMBERS_MAX)
            return "the object has a member that is not known here";
        if (here->member[at].kind == MEMBER_NUMBER) {
            s = json_u64(&j, &n);
            if (s == 0)
                snprintf(r->value[at], VALUE_BUF, "%llu", (unsigned long long)n);
        } else {
            s = json_string(&j, r->value[at], VALUE_BUF, &len);
        }
    }
    return s < 0 || json_finish(&j) != 0
               ? "the body is not a JSON object of texts (at most 63 bytes) and whole numbers"
               : NULL;
}

struct row *row_new(struct slice json, const char *user, const char *key, const char **why,
                    unsigned *out_status)
{
    size_t at = 0;
    while (at < rows_n && (rows[at].id || rows[at].key[0])) /* one that row_remove() left */
        at++;
    *out_status = 503;
    *why = "the shop is full: restart it";
    if (at == ROWS_MAX)
        return NULL;
    struct row *r = &rows[at];
    *r = (struct row){ .id = 0 };
    *out_status = 400;
    *why = read_members(r, json);
    for (size_t i = 0; !*why && here->member[i].name; i++) {
        const struct member *m = &here->member[i];
        if (m->kind == MEMBER_OWNER && *user)
            snprintf(r->value[i], VALUE_BUF, "user_%.50s", user);
        if (!r->value[i][0] && m->initial)
            snprintf(r->value[i], VALUE_BUF, "%s", m->initial);
        if (!r->value[i][0])
            *why = "a member is missing: see examples/shop/catalog.c";
    }
    if (*why)
        return NULL;
    snprintf(r->key, sizeof r->key, "%s", *key ? key : "-"); /* "-": taken, by no key */
    rows_n += at == rows_n;
    return r;
}

void row_remove(struct row *r)
{
    r->key[0] = '\0';
}

bool row_fits(const struct row *r, struct slice query)
{
    struct slice name, value;
    char n[VALUE_BUF], v[VALUE_BUF];
    size_t len;
    while (url_query_next(&query, &name, &value)) {
        size_t at = url_decode(name, true, n, sizeof n, &len) == 0 ? place_of(n) : MEMBERS_MAX;
        if (at < MEMBERS_MAX &&
            (url_decode(value, true, v, sizeof v, &len) != 0 || strcmp(v, r->value[at]) != 0))
            return false;
    }
    return true;
}

void row_write(const struct row *r, struct buf *out)
{
    json_begin(out, NULL, '{');
    json_id(out, "id", r->id);
    for (size_t i = 0; here->member[i].name; i++) {
        if (here->member[i].kind == MEMBER_NUMBER) {
            json_key(out, here->member[i].name);
            buf_add_str(out, r->value[i]);
        } else {
            json_text(out, here->member[i].name, r->value[i]);
        }
    }
    json_end(out, '}');
}
