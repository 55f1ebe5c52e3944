#include "store/etcd_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULL_KEY_MAX = ETCD_ROOT_MAX + STORE_KEY_MAX + 1 };

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- writing ---- */

void etcd_text_done(struct etcd_text *t)
{
    free(t->p);
    *t = (struct etcd_text){ 0 };
}

static void begin(struct etcd_text *t)
{
    t->len = t->compares = 0;
    t->failed = false;
}

static void put(struct etcd_text *t, const char *p, size_t len)
{
    if (t->failed)
        return;
    if (t->room - t->len < len) {
        size_t room = (t->len + len) * 2;
        char *bigger = realloc(t->p, room);
        if (!bigger) {
            t->failed = true;
            return;
        }
        t->p = bigger;
        t->room = room;
    }
    memcpy(t->p + t->len, p, len);
    t->len += len;
}

static void put_text(struct etcd_text *t, const char *p)
{
    put(t, p, strlen(p));
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
    if (root.len > ETCD_ROOT_MAX || key.len > STORE_KEY_MAX)
        abort(); /* checked when the store was opened, and before every call */
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
    if (t->compares != 1) /* without one it would be a blind write */
        abort();
    return !t->failed;
}

/* The outer transaction has nothing to compare: it always takes its success branch, whose operations
 * are transactions with one compare each. */
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
    if (t->compares != count)
        abort();
    return !t->failed;
}

bool etcd_encode_read(struct etcd_text *t, struct firn_slice root, struct firn_slice key,
                      bool fresh)
{
    begin(t);
    put_text(t, "{");
    put_key(t, root, key);
    put_text(t, fresh ? "}" : ",\"serializable\":true}");
    return !t->failed;
}

bool etcd_encode_scan(struct etcd_text *t, struct firn_slice root, struct firn_slice prefix,
                      struct firn_slice after, unsigned limit)
{
    char full[FULL_KEY_MAX], number[32];
    begin(t);
    put_text(t, "{\"key\":");
    size_t len = full_key(full, root, after.p ? after : prefix);
    if (after.p)
        full[len++] = '\0'; /* the very next key */
    put_base64(t, full, len);
    len = full_key(full, root, prefix);
    while (len > 0 && (unsigned char)full[len - 1] == 0xff)
        len--;
    if (len == 0) /* cannot be: root begins with a slash */
        abort();
    full[len - 1]++; /* the first key that no longer has the prefix */
    put_text(t, ",\"range_end\":");
    put_base64(t, full, len);
    snprintf(number, sizeof number, ",\"limit\":\"%u\"}", limit);
    put_text(t, number);
    return !t->failed;
}

bool etcd_encode_watch(struct etcd_text *t, struct firn_slice root, struct firn_slice key,
                       uint64_t revision)
{
    char number[64];
    begin(t);
    put_text(t, "{\"create_request\":{");
    put_key(t, root, key);
    snprintf(number, sizeof number, ",\"start_revision\":\"%" PRIu64 "\"}}", revision);
    put_text(t, number);
    return !t->failed;
}

bool etcd_encode_status(struct etcd_text *t)
{
    begin(t);
    put_text(t, "{}");
    return !t->failed;
}

bool etcd_encode_login(struct etcd_text *t, const char *user, const char *password)
{
    begin(t);
    json_t *o = json_pack("{s:s,s:s}", "name", user, "password", password);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL; /* NULL also for what is not UTF-8 */
    if (text) {
        put_text(t, text);
        explicit_bzero(text, strlen(text));
    } else {
        t->failed = true;
    }
    free(text);
    json_decref(o);
    return !t->failed;
}

/* ---- reading ---- */

static json_t *load(struct firn_slice body)
{
    json_t *root = json_loadb(body.p, body.len, JSON_REJECT_DUPLICATES, NULL);
    if (root && !json_is_object(root)) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

/* 64-bit integers come as strings. */
static bool number(const json_t *object, const char *name, uint64_t *out)
{
    const json_t *v = json_object_get(object, name);
    const char *p = json_string_value(v);
    size_t len = json_string_length(v);
    uint64_t n = 0;
    if (!p || len == 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if (p[i] < '0' || p[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(p[i] - '0'), &n))
            return false;
    *out = n;
    return true;
}

/* A field that is absent is false. */
static bool flag(const json_t *object, const char *name, bool *out)
{
    const json_t *v = json_object_get(object, name);
    *out = json_is_true(v);
    return !v || json_is_boolean(v);
}

static bool read_head(const json_t *root, struct etcd_head *out)
{
    const json_t *h = json_object_get(root, "header");
    struct etcd_head head;
    if (!number(h, "cluster_id", &head.cluster) || !number(h, "revision", &head.revision) ||
        head.cluster == 0 || head.revision == 0)
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
static bool read_base64(const json_t *object, const char *name, char *out, size_t max, size_t *len)
{
    const json_t *v = json_object_get(object, name);
    const char *p = v ? json_string_value(v) : "";
    size_t n = json_string_length(v), got = 0;
    if (!p || n % 4 != 0)
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
    *len = got;
    return true;
}

/* The outcome of one compare: 0, FIRN_ECONFLICT, or FIRN_EFORMAT. A refused one has neither a
 * `succeeded` nor responses; a granted one did exactly what it was asked. */
static int read_txn(const json_t *txn, bool remove)
{
    const json_t *responses = json_object_get(txn, "responses");
    bool succeeded;
    if (!json_is_object(txn) || !flag(txn, "succeeded", &succeeded) ||
        (responses && !json_is_array(responses)))
        return FIRN_EFORMAT;
    size_t n = json_array_size(responses);
    if (!succeeded)
        return n == 0 ? FIRN_ECONFLICT : FIRN_EFORMAT;
    const json_t *done = json_object_get(json_array_get(responses, 0),
                                         remove ? "response_delete_range" : "response_put");
    uint64_t deleted = 0;
    bool right = n == 1 && json_is_object(done) &&
                 (!remove || (number(done, "deleted", &deleted) && deleted == 1));
    return right ? 0 : FIRN_EFORMAT;
}

int etcd_decode_cas(struct firn_slice body, bool remove, struct etcd_head *head)
{
    json_t *root = load(body);
    int r = root ? read_txn(root, remove) : FIRN_EFORMAT;
    if (r != FIRN_EFORMAT && !read_head(root, head))
        r = FIRN_EFORMAT;
    json_decref(root);
    return r;
}

int etcd_decode_cas_many(struct firn_slice body, const struct firn_cas *want, size_t count,
                         int *result, struct etcd_head *head)
{
    json_t *root = load(body);
    const json_t *responses = json_object_get(root, "responses");
    int each[ETCD_MANY_MAX], r = FIRN_EFORMAT;
    bool succeeded;
    if (count > ETCD_MANY_MAX || !flag(root, "succeeded", &succeeded) || !succeeded ||
        json_array_size(responses) != count)
        goto end;
    for (size_t i = 0; i < count; i++) {
        const json_t *txn = json_object_get(json_array_get(responses, i), "response_txn");
        each[i] = read_txn(txn, !want[i].value.p);
        if (each[i] == FIRN_EFORMAT)
            goto end;
    }
    if (!read_head(root, head))
        goto end;
    memcpy(result, each, count * sizeof *result);
    r = 0;
end:
    json_decref(root);
    return r;
}

static int compare(struct firn_slice a, struct firn_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static bool begins(struct firn_slice s, struct firn_slice with)
{
    return s.len >= with.len && (with.len == 0 || memcmp(s.p, with.p, with.len) == 0);
}

static int read_register(const json_t *kv, struct etcd_range *range)
{
    char full[FULL_KEY_MAX], value[STORE_VALUE_MAX];
    size_t full_len, len;
    if (!json_is_object(kv) || !read_base64(kv, "key", full, sizeof full, &full_len) ||
        !read_base64(kv, "value", value, sizeof value, &len) ||
        !begins(firn_slice(full, full_len), range->root))
        return FIRN_EFORMAT;
    struct firn_slice key = { full + range->root.len, full_len - range->root.len };
    if (key.len > STORE_KEY_MAX || !begins(key, range->prefix) ||
        (range->count > 0 && compare(key, firn_slice(range->last, range->last_len)) <= 0))
        return FIRN_EFORMAT;
    memcpy(range->last, key.p, key.len);
    range->last_len = key.len;
    range->count++;
    int r = range->each(range->user, key, firn_slice(value, len));
    range->stopped = r != 0;
    return r;
}

int etcd_decode_range(struct firn_slice body, struct etcd_range *range)
{
    json_t *root = load(body);
    const json_t *kvs = json_object_get(root, "kvs");
    bool more;
    int r = 0;
    if (!root || (kvs && !json_is_array(kvs)) || !flag(root, "more", &more) ||
        (more && json_array_size(kvs) == 0) || !read_head(root, &range->head))
        r = FIRN_EFORMAT;
    else if (range->cluster != 0 && range->head.cluster != range->cluster)
        r = FIRN_ESTORE;
    for (size_t i = 0, n = json_array_size(kvs); r == 0 && i < n; i++)
        r = read_register(json_array_get(kvs, i), range);
    if (r == 0)
        range->more = more;
    json_decref(root);
    return r;
}

int etcd_decode_login(struct firn_slice body, char token[ETCD_TOKEN_BUF])
{
    json_t *root = load(body);
    const json_t *v = json_object_get(root, "token");
    const char *p = json_string_value(v);
    size_t len = json_string_length(v);
    int r = p && len > 0 && len < ETCD_TOKEN_BUF ? 0 : FIRN_EFORMAT;
    for (size_t i = 0; r == 0 && i < len; i++)
        if (p[i] <= ' ' || p[i] > '~') /* it becomes a header field */
            r = FIRN_EFORMAT;
    if (r == 0)
        memcpy(token, p, len + 1);
    json_decref(root);
    return r;
}

int etcd_decode_status(struct firn_slice body, unsigned version[3])
{
    json_t *root = load(body);
    const char *p = json_string_value(json_object_get(root, "version"));
    unsigned v[3] = { 0 };
    int r = p ? 0 : FIRN_EFORMAT;
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
    json_decref(root);
    return r;
}

int etcd_decode_error(struct firn_slice body, char *message, size_t size)
{
    json_t *root = load(body);
    const json_t *code = json_object_get(root, "code");
    const char *p = json_string_value(json_object_get(root, "message"));
    json_int_t n = json_integer_value(code);
    snprintf(message, size, "%s", p ? p : "");
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    json_decref(root);
    return n > 0 && n < 1000 ? (int)n : 0;
}
