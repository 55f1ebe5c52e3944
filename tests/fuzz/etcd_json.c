/* Whatever etcd, or what stands in its place, answers: it is read or refused. A register that was
 * read fits, and keys rise. */
#include "store/etcd_json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct last {
    char key[STORE_KEY_MAX];
    size_t len, count;
};

static int see(void *user, struct firn_slice key, struct firn_slice value)
{
    struct last *l = user;
    if (key.len > STORE_KEY_MAX || value.len > STORE_VALUE_MAX)
        abort();
    size_t n = key.len < l->len ? key.len : l->len;
    int c = memcmp(l->key, key.p, n);
    if (l->count++ > 0 && (c > 0 || (c == 0 && l->len >= key.len)))
        abort();
    memcpy(l->key, key.p, key.len);
    l->len = key.len;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct firn_slice body = { (const char *)data, size };
    struct firn_slice x = { "x", 1 }, none = { NULL, 0 };
    struct firn_cas want[2] = { { x, none, x }, { x, x, none } };
    struct etcd_head head = { 0, 0 };
    struct last last = { .count = 0 };
    struct etcd_range range = { .root = { "/firn/", 6 }, .each = see, .user = &last };
    char token[ETCD_TOKEN_BUF], message[100];
    unsigned version[3];
    int result[2];
    for (int remove = 0; remove < 2; remove++) {
        int r = etcd_decode_cas(body, remove, &head);
        if ((r == 0 || r == FIRN_ECONFLICT) != (r != FIRN_EFORMAT) ||
            (r != FIRN_EFORMAT && (head.cluster == 0 || head.revision == 0)))
            abort();
    }
    if (etcd_decode_cas_many(body, want, 2, result, &head) == 0)
        for (int i = 0; i < 2; i++)
            if (result[i] != 0 && result[i] != FIRN_ECONFLICT)
                abort();
    for (int page = 0; page < 2; page++)
        if (etcd_decode_range(body, &range) == 0 && range.count != last.count)
            abort();
    if (etcd_decode_login(body, token) == 0 && strpbrk(token, " \r\n"))
        abort();
    (void)etcd_decode_status(body, version);
    (void)etcd_decode_error(body, message, sizeof message);
    return 0;
}
