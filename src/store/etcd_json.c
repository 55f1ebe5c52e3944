/*
 * etcd's JSON. An answer is read once as a whole, which leaves a copy of the reader in front of
 * each member that is wanted; these are read afterwards, in the order that suits.
 */
#include "store/etcd_json.h"
#include "store/check.h"
#include "platform/assert.h"
#include "wire/json_read.h"
#include "wire/json_write.h"
#include "wire/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FULL_KEY_MAX = ETCD_ROOT_MAX + STORE_KEY_MAX + 1,
    TEXT_BYTES_MAX = 16 << 20, /* far above the longest request */
    NAME_BUF = 256,            /* of a member's name */
    BASE64_BUF = (STORE_VALUE_MAX + 2) / 3 * 4 +
                 5, /* a value and some more, which is refused later */
    MESSAGE_BUF = 4096,
};

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- writing ---- */

void etcd_text_done(struct etcd_text *t)
{
    buf_done(&t->out);
    *t = (struct etcd_text){ .compares = 0 };
}

static void begin(struct etcd_text *t)
{
    t->out.max = TEXT_BYTES_MAX;
    t->out.len = t->compares = 0;
    t->out.failed = false;
}

static void put(struct etcd_text *t, const char *p, size_t len)
{
    buf_add(&t->out, p, len);
}

static void put_text(struct etcd_text *t, const char *p)
{
    buf_add_str(&t->out, p);
}

/* With the quotes. */
static void put_base64(struct etcd_text *t, const char *p, size_t len)
{
    put(t, "\"", 1);
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)p[i + k] : 0);
        char four[4] = { alphabet[v >> 18], alphabet[v >> 12 & 63],
                         n > 1 ? alphabet[v >> 6 & 63] : '=', n > 2 ? alphabet[v & 63] : '=' };
        put(t, four, 4);
    }
    put(t, "\"", 1);
}

static size_t full_key(char out[FULL_KEY_MAX], struct firn_slice root, struct firn_slice key)
{
    firn_assert(root.len <= ETCD_ROOT_MAX && key.len <= STORE_KEY_MAX, "root=%zu key=%zu", root.len,
                key.len); /* checked when the store was opened, and before every call */
    memcpy(out, root.p, root.len);
    if (key.len > 0)
        memcpy(out + root.len, key.p, key.len);
    return root.len + key.len;
}

static void put_key(struct etcd_text *t, struct firn_slice root, struct firn_slice key)
{
    char full[FULL_KEY_MAX];
    put_text(t, "\"key\":");
    put_base64(t, full, full_key(full, root, key));
}

static void put_txn(struct etcd_text *t, struct firn_slice root, const struct firn_cas *want)
{
    put_text(t, "{\"compare\":[{");
    put_key(t, root, want->key);
    if (want->old.p) {
        put_text(t, ",\"target\":\"VALUE\",\"result\":\"EQUAL\",\"value\":");
        put_base64(t, want->old.p, want->old.len);
    } else {
        put_text(t, ",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"");
    }
    t->compares++;
    put_text(t, want->value.p ? "}],\"success\":[{\"request_put\":{"
                              : "}],\"success\":[{\"request_delete_range\":{");
    put_key(t, root, want->key);
    if (want->value.p) {
        put_text(t, ",\"value\":");
        put_base64(t, want->value.p, want->value.len);
    }
    put_text(t, "}}]}");
}

bool etcd_encode_cas(struct etcd_text *t, struct firn_slice root, const struct firn_cas *want)
{
    begin(t);
    put_txn(t, root, want);
    firn_assert(t->compares == 1); /* without one it would be a blind write */
    return !t->out.failed;
}

/* The outer transaction has nothing to compare: it always takes its success branch, whose
 * operations are transactions with one compare each. */
bool etcd_encode_cas_many(struct etcd_text *t, struct firn_slice root, const struct firn_cas *want,
                          size_t count)
{
    begin(t);
    put_text(t, "{\"success\":[");
    for (size_t i = 0; i < count; i++) {
        put_text(t, i ? ",{\"request_txn\":" : "{\"request_txn\":");
        put_txn(t, root, &want[i]);
        put_text(t, "}");
    }
    put_text(t, "]}");
    firn_assert(t->compares == count, "compares=%zu count=%zu", t->compares, count);
    return !t->out.failed;
}

bool etcd_encode_read(struct etcd_text *t, struct firn_slice root, struct firn_slice key,
                      bool fresh)
{
    begin(t);
    put_text(t, "{");
    put_key(t, root, key);
    put_text(t, fresh ? "}" : ",\"serializable\":true}");
    return !t->out.failed;
}

bool etcd_encode_scan(struct etcd_text *t, struct firn_slice root, struct firn_slice prefix,
                      struct firn_slice after, unsigned limit)
{
    char full[FULL_KEY_MAX];
    begin(t);
    put_text(t, "{\"key\":");
    size_t len = full_key(full, root, after.p ? after : prefix);
    if (after.p)
        full[len++] = '\0'; /* the very next key */
    put_base64(t, full, len);
    len = full_key(full, root, prefix);
    while (len > 0 && (unsigned char)full[len - 1] == 0xff)
        len--;
    firn_assert(len > 0); /* the root begins with a slash */
    full[len - 1]++;      /* the first key that no longer has the prefix */
    put_text(t, ",\"range_end\":");
    put_base64(t, full, len);
    buf_addf(&t->out, ",\"limit\":\"%u\"}", limit);
    return !t->out.failed;
}

bool etcd_encode_watch(struct etcd_text *t, struct firn_slice root, struct firn_slice key,
                       uint64_t revision)
{
    begin(t);
    put_text(t, "{\"create_request\":{");
    put_key(t, root, key);
    buf_addf(&t->out, ",\"start_revision\":\"%" PRIu64 "\"}}", revision);
    return !t->out.failed;
}

bool etcd_encode_status(struct etcd_text *t)
{
    begin(t);
    put_text(t, "{}");
    return !t->out.failed;
}

static bool is_utf8(const char *p)
{
    for (size_t left = strlen(p), n; left > 0; p += n, left -= n)
        if ((n = utf8_next(p, left)) == 0)
            return false;
    return true;
}

bool etcd_encode_login(struct etcd_text *t, const char *user, const char *password)
{
    begin(t);
    json_begin(&t->out, NULL, '{');
    json_text(&t->out, "name", user);
    json_text(&t->out, "password", password);
    json_end(&t->out, '}');
    return !t->out.failed && is_utf8(user) && is_utf8(password);
}

/* ---- reading ---- */

struct member {
    const char *name;
    struct json_reader at; /* in front of its value */
    bool there;
};

/* Read a whole object and remember where the members in `m` are. FIRN_EFORMAT: not an object, or
 * one of them is there twice. */
static int read_members(struct json_reader *j, struct member *m, size_t n)
{
    char name[NAME_BUF];
    int r = json_object(j);
    while (r == 0 && (r = json_member(j, name, sizeof name)) > 0) {
        for (size_t i = 0; i < n; i++)
            if (strcmp(name, m[i].name) == 0) {
                if (m[i].there)
                    return FIRN_EFORMAT;
                m[i].there = true;
                m[i].at = *j;
            }
        r = json_skip(j);
    }
    return r ? FIRN_EFORMAT : 0;
}

/* A whole answer. */
static int read_body(struct firn_slice body, struct member *m, size_t n)
{
    struct json_reader j;
    json_start(&j, body.p, body.len, NULL);
    int r = read_members(&j, m, n);
    return r || json_finish(&j) ? FIRN_EFORMAT : 0;
}

/* 64-bit integers come as strings. */
static bool number(struct member *m, uint64_t *out)
{
    return m->there && json_next(&m->at) == JSON_STRING && json_u64(&m->at, out) == 0;
}

/* A field that is absent is false. */
static bool flag(struct member *m, bool *out)
{
    *out = false;
    return !m->there || json_boolean(&m->at, out) == 0;
}

static bool text(struct member *m, char *out, size_t size, size_t *len)
{
    return m->there && json_string(&m->at, out, size, len) == 0;
}

static bool read_head(struct member *header, struct etcd_head *out)
{
    struct member m[] = { { .name = "cluster_id" }, { .name = "revision" } };
    struct etcd_head head;
    if (!header->there || read_members(&header->at, m, 2) || !number(&m[0], &head.cluster) ||
        !number(&m[1], &head.revision) || head.cluster == 0 || head.revision == 0)
        return false;
    *out = head;
    return true;
}

static int digit(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

/* An absent field is an empty one. Only what the encoder would write is taken: whole groups, and
 * zeroes in the bits that are left over. */
static bool read_base64(struct member *m, char *out, size_t max, size_t *len)
{
    char p[BASE64_BUF] = "";
    size_t n = 0, got = 0;
    if ((m->there && !text(m, p, sizeof p, &n)) || n % 4 != 0)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        size_t pad = i + 4 < n ? 0u
                               : (size_t)(p[i + 3] == '=') + (p[i + 3] == '=' && p[i + 2] == '=');
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = k < 4 - pad ? digit(p[i + k]) : 0;
            if (d < 0)
                return false;
            bits = bits << 6 | (uint32_t)d;
        }
        if ((pad == 1 && (bits & 0xff)) || (pad == 2 && (bits & 0xffff)) || got + 3 - pad > max)
            return false;
        for (size_t k = 0; k < 3 - pad; k++)
            out[got++] = (char)(bits >> (16 - 8 * k) & 0xff);
    }
    firn_assert(got <= max, "got=%zu max=%zu", got, max);
    *len = got;
    return true;
}

/* The outcome of one compare: 0, FIRN_ECONFLICT, or FIRN_EFORMAT. A refused one has neither a
 * `succeeded` nor responses; a granted one did exactly what it was asked. */
static int read_txn(struct member *succeeded, struct member *responses, bool remove)
{
    struct json_reader *j = &responses->at;
    struct member done = { .name = remove ? "response_delete_range" : "response_put" };
    struct member deleted = { .name = "deleted" };
    uint64_t count = 0;
    bool granted;
    int more = 0;
    if (!flag(succeeded, &granted) ||
        (responses->there && (json_array(j) || (more = json_element(j)) < 0)))
        return FIRN_EFORMAT;
    if (!granted)
        return more ? FIRN_EFORMAT : FIRN_ECONFLICT;
    if (!more || read_members(j, &done, 1) || json_element(j) != 0 || !done.there ||
        read_members(&done.at, &deleted, 1))
        return FIRN_EFORMAT;
    return !remove || (number(&deleted, &count) && count == 1) ? 0 : FIRN_EFORMAT;
}

/* The members of every answer to a transaction. */
#define TXN_MEMBERS                                    \
    {                                                  \
        { .name = "header" }, { .name = "succeeded" }, \
        {                                              \
            .name = "responses"                        \
        }                                              \
    }

int etcd_decode_cas(struct firn_slice body, bool remove, struct etcd_head *head)
{
    struct member m[] = TXN_MEMBERS;
    int r = read_body(body, m, 3);
    if (r == 0)
        r = read_txn(&m[1], &m[2], remove);
    return r != FIRN_EFORMAT && !read_head(&m[0], head) ? FIRN_EFORMAT : r;
}

static int read_inner(struct json_reader *j, bool remove)
{
    struct member txn = { .name = "response_txn" }, m[] = TXN_MEMBERS;
    if (read_members(j, &txn, 1) || !txn.there || read_members(&txn.at, m, 3))
        return FIRN_EFORMAT;
    return read_txn(&m[1], &m[2], remove);
}

int etcd_decode_cas_many(struct firn_slice body, const struct firn_cas *want, size_t count,
                         int *result, struct etcd_head *head)
{
    struct member m[] = TXN_MEMBERS;
    struct json_reader *j = &m[2].at;
    int each[ETCD_MANY_MAX];
    bool succeeded;
    if (count > ETCD_MANY_MAX || read_body(body, m, 3) || !flag(&m[1], &succeeded) || !succeeded ||
        !m[2].there || json_array(j))
        return FIRN_EFORMAT;
    for (size_t i = 0; i < count; i++) {
        each[i] = json_element(j) > 0 ? read_inner(j, !want[i].value.p) : FIRN_EFORMAT;
        if (each[i] == FIRN_EFORMAT)
            return FIRN_EFORMAT;
    }
    if (json_element(j) != 0 || !read_head(&m[0], head))
        return FIRN_EFORMAT;
    memcpy(result, each, count * sizeof *result);
    return 0;
}

static int read_register(struct json_reader *j, struct etcd_range *range)
{
    char full[FULL_KEY_MAX], value[STORE_VALUE_MAX];
    struct member m[] = { { .name = "key" }, { .name = "value" } };
    size_t full_len, len;
    if (read_members(j, m, 2) || !read_base64(&m[0], full, sizeof full, &full_len) ||
        !read_base64(&m[1], value, sizeof value, &len) ||
        !store_begins(firn_slice(full, full_len), range->root))
        return FIRN_EFORMAT;
    struct firn_slice key = { full + range->root.len, full_len - range->root.len };
    if (key.len > STORE_KEY_MAX || !store_begins(key, range->prefix) ||
        (range->count > 0 && store_compare(key, firn_slice(range->last, range->last_len)) <= 0))
        return FIRN_EFORMAT;
    firn_assert(key.len <= sizeof range->last, "key_len=%zu", key.len);
    memcpy(range->last, key.p, key.len);
    range->last_len = key.len;
    range->count++;
    int r = range->each(range->user, key, firn_slice(value, len));
    range->stopped = r != 0;
    return r;
}

int etcd_decode_range(struct firn_slice body, struct etcd_range *range)
{
    struct member m[] = { { .name = "header" }, { .name = "more" }, { .name = "kvs" } };
    struct json_reader *j = &m[2].at;
    bool more;
    int r = read_body(body, m, 3), next = 0;
    if (r || !flag(&m[1], &more) ||
        (m[2].there && (json_array(j) || (next = json_element(j)) < 0)) || (more && !next) ||
        !read_head(&m[0], &range->head))
        return FIRN_EFORMAT;
    if (range->cluster != 0 && range->head.cluster != range->cluster)
        return FIRN_ESTORE;
    for (; r == 0 && next > 0; next = r ? 0 : json_element(j))
        r = read_register(j, range);
    if (r == 0 && next < 0)
        r = FIRN_EFORMAT;
    if (r == 0)
        range->more = more;
    return r;
}

int etcd_decode_login(struct firn_slice body, char token[ETCD_TOKEN_BUF])
{
    struct member m = { .name = "token" };
    char p[ETCD_TOKEN_BUF];
    size_t len;
    if (read_body(body, &m, 1) || !text(&m, p, sizeof p, &len) || len == 0)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < len; i++)
        if (p[i] <= ' ' || p[i] > '~') /* it becomes a header field */
            return FIRN_EFORMAT;
    memcpy(token, p, len + 1);
    return 0;
}

int etcd_decode_status(struct firn_slice body, unsigned version[3])
{
    struct member m = { .name = "version" };
    char room[NAME_BUF], *p = room;
    unsigned v[3] = { 0 };
    int r = read_body(body, &m, 1) || !text(&m, room, sizeof room, NULL) ? FIRN_EFORMAT : 0;
    for (size_t i = 0; r == 0 && i < 3; i++) { /* behind the third there may be "-rc.1" */
        if (*p < '0' || *p > '9')
            r = FIRN_EFORMAT;
        for (; r == 0 && *p >= '0' && *p <= '9' && v[i] < 100000; p++)
            v[i] = v[i] * 10 + (unsigned)(*p - '0');
        if (r == 0 && i < 2 && *p++ != '.')
            r = FIRN_EFORMAT;
    }
    if (r == 0)
        memcpy(version, v, sizeof v);
    return r;
}

int etcd_decode_error(struct firn_slice body, char *message, size_t size)
{
    struct member m[] = { { .name = "code" }, { .name = "message" } };
    char p[MESSAGE_BUF] = "";
    uint64_t n = 0;
    bool good = read_body(body, m, 2) == 0;
    if (good && m[0].there && json_next(&m[0].at) == JSON_NUMBER && json_u64(&m[0].at, &n) != 0)
        n = 0;
    snprintf(message, size, "%s", good && text(&m[1], p, sizeof p, NULL) ? p : "");
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return n > 0 && n < 1000 ? (int)n : 0;
}
