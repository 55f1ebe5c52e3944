/* Strict base64url: RFC 4648's values, one spelling of each text, and every length. */
#include "proxy/base64url.h"
#include "t.h"

static int text_of(const char *text, char out[64], size_t *len)
{
    return base64url_read((struct slice){ text, strlen(text) }, out, 64, len);
}

T_TEST(rfc_values)
{
    static const struct {
        const char *text, *bytes;
    } row[] = { { "", "" },
                { "Zg", "f" },
                { "Zm8", "fo" },
                { "Zm9v", "foo" },
                { "Zm9vYg", "foob" },
                { "Zm9vYmE", "fooba" },
                { "Zm9vYmFy", "foobar" },
                { "-_-_", "\xfb\xff\xbf" } };
    for (size_t i = 0; i < T_LEN(row); i++) {
        char out[64];
        size_t len = 99;
        T_EQ(text_of(row[i].text, out, &len), 0, "%s", row[i].text);
        T_EQ(len, strlen(row[i].bytes), "%s", row[i].text);
        T_OK(memcmp(out, row[i].bytes, len) == 0, "%s", row[i].text);
    }
}

T_TEST(other_spellings_are_refused)
{
    static const char *const bad[] = { "Z",       "Zg==",  "Zm8=", "Zm9v\n",  " Zm9v",
                                       "Zm 9v",   "+/+/",  "Zh",   "Zm9",     "Zm9vYh",
                                       "Zm9vYmF", "Zm9vY", "Z.",   "\xc3\xa9" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char out[64];
        size_t len = 99;
        T_EQ(text_of(bad[i], out, &len), FIRN_EFORMAT, "%s", bad[i]);
        T_EQ(len, 99);
    }
}

T_TEST(too_long)
{
    char out[3];
    size_t len = 0;
    T_EQ(base64url_read((struct slice){ "Zm9vYg", 6 }, out, 3, &len), FIRN_ENOSPC);
    T_EQ(base64url_read((struct slice){ "Zm9v", 4 }, out, 3, &len), 0);
    T_EQ(len, 3);
}

/* A changed character gives other bytes or an error: no two texts mean the same. */
T_TEST(one_text_per_value)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (uint64_t i = 0; i < t_scale(20000); i++) {
        char a[24], b[24], bytes_a[24], bytes_b[24];
        size_t n = 2 + t_random_below(20), len_a = 0, len_b = 0;
        for (size_t k = 0; k < n; k++)
            a[k] = set[t_random_below(64)];
        memcpy(b, a, n);
        size_t at = t_random_below(n);
        b[at] = set[t_random_below(64)];
        if (a[at] == b[at] || base64url_read((struct slice){ a, n }, bytes_a, 24, &len_a) ||
            base64url_read((struct slice){ b, n }, bytes_b, 24, &len_b))
            continue;
        T_OK(memcmp(bytes_a, bytes_b, len_a) != 0, "%.*s and %.*s", (int)n, a, (int)n, b);
    }
}
