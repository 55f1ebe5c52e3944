/* Parts of keys: what is encoded, and that different bytes give different keys. */
#include "proxy/key.h"
#include "t.h"

static const char *part(const char *p, size_t len)
{
    static char text[1024];
    struct buf b;
    buf_init(&b, sizeof text - 1);
    key_part(&b, p, len);
    T_OK(!b.failed && b.len <= KEY_PART_BYTES_MAX);
    if (b.len)
        memcpy(text, b.p, b.len);
    text[b.len] = '\0';
    buf_done(&b);
    return text;
}

T_TEST(encoding)
{
    T_STR(part("products", 8), "products");
    T_STR(part("a:b", 3), "a%3Ab");
    T_STR(part("100%", 4), "100%25");
    T_STR(part("\0\r\n\xff ~{}", 8), "%00%0D%0A%FF%20%7E%7B%7D");
    T_STR(part("2001:db8::1", 11), "2001%3Adb8%3A%3A1");
    T_STR(part("", 0), "");
}

T_TEST(long_ones_become_a_digest)
{
    char a[2000], first[128];
    memset(a, 'a', sizeof a);
    T_EQ(strlen(part(a, KEY_PART_BYTES_MAX)), KEY_PART_BYTES_MAX);
    strcpy(first, part(a, KEY_PART_BYTES_MAX + 1));
    T_EQ(strlen(first), 65);
    T_EQ(first[0], '~');
    a[100] = 'b';
    T_OK(strcmp(part(a, KEY_PART_BYTES_MAX + 1), first) != 0);
}

T_TEST(different_bytes_different_keys)
{
    for (uint64_t i = 0; i < t_scale(20000); i++) {
        static const char set[] = "a:%3A~2";
        char a[4], b[4], first[128];
        size_t n = t_random_below(5), m = t_random_below(5);
        for (int k = 0; k < 4; k++) {
            a[k] = set[t_random_below(7)];
            b[k] = set[t_random_below(7)];
        }
        strcpy(first, part(a, n));
        T_EQ(strcmp(first, part(b, m)) == 0, n == m && memcmp(a, b, n) == 0);
    }
}
