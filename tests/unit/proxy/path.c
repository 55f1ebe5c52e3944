/* Canonical paths, prefixes and rewrites. */
#include "t.h"

#include "proxy/path.h"

static struct slice text(const char *s)
{
    return (struct slice){ s, strlen(s) };
}

T_TEST(path_canonical_forms)
{
    static const struct {
        const char *in, *out; /* NULL: refused */
    } cases[] = {
        { "/", "/" },
        { "//", "/" },
        { "/a//b///", "/a/b/" },
        { "/a/./b", "/a/b" },
        { "/a/.", "/a/" },
        { "/a/..", "/" },
        { "/a/../b", "/b" },
        { "/a/b/../..", "/" },
        { "/a/%2e%2E/b", "/b" },
        { "/a/.%2e/", "/" },
        { "/...", "/..." },
        { "/a/..b", "/a/..b" },
        { "/%61%5F%7e-", "/a_~-" },
        { "/%c3%a9", "/%C3%A9" },
        { "/a%20b%3f", "/a%20b%3F" },
        { "/a;b=c/d", "/a;b=c/d" },
        { "/a;/...;b/.c;d/e;", "/a;/...;b/.c;d/e;" },
        { "/;a/b", NULL },
        { "/a/;b", NULL },
        { "/a/;/b", NULL },
        { "/%3Bx/b", NULL },
        { "/%3bx/b", NULL },
        { "/;", NULL },
        { "/a/%252e%252e/b", "/a/%252e%252e/b" },
        { "/a/..;/b", NULL },
        { "/a/.;x=y/b", NULL },
        { "/a/%2e%2e;", NULL },
        { "/.;", NULL },
        { "/.", "/" },
        { "/..;/a", NULL },
        { "/a/..;x=y/b", NULL },
        { "/a/.;/b", NULL },
        { "/a/%2e.;", NULL },
        { "/a/..%3b/b", NULL },
        { "/a/...;/b", "/a/...;/b" },
        { "/a/x..;/b", "/a/x..;/b" },
        { "/..", NULL },
        { "/a/../..", NULL },
        { "/%2e%2e/", NULL },
        { "/a%2fb", NULL },
        { "/a%5Cb", NULL },
        { "/%00", NULL },
        { "/%0a", NULL },
        { "/%7f", NULL },
        { "/%", NULL },
        { "/%2", NULL },
        { "/%zz", NULL },
        { "", NULL },
        { "a", NULL },
        { "*", NULL },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        char out[64];
        const char *why = NULL;
        size_t len = 0;
        int r = path_canonical(text(cases[i].in), out, sizeof out, &len, &why);
        if (!cases[i].out) {
            T_EQ(r, FIRN_EFORMAT, "%s", cases[i].in);
            T_OK(why != NULL);
            continue;
        }
        T_EQ(r, 0, "%s: %s", cases[i].in, why ? why : "");
        out[len] = '\0';
        T_STR(out, cases[i].out, "%s", cases[i].in);
        /* What is canonical stays as it is. */
        char again[64];
        size_t len2 = 0;
        T_EQ(path_canonical(text(out), again, sizeof again, &len2, &why), 0);
        again[len2] = '\0';
        T_STR(again, out);
    }
    char small[2];
    const char *why;
    size_t len;
    T_EQ(path_canonical(text("/abc"), small, sizeof small, &len, &why), FIRN_ENOSPC);
}

T_TEST(path_canonical_of_any_bytes)
{
    for (uint64_t i = t_scale(200000); i-- > 0;) {
        static const char some[] = "/..//%2e%2Fab%5c%41%;;";
        char in[40], out[40], again[40];
        const char *why;
        size_t n = 1 + (size_t)t_random_below(30), len, len2;
        in[0] = '/';
        for (size_t k = 1; k < n; k++)
            in[k] = some[t_random_below(sizeof some - 1)];
        if (path_canonical((struct slice){ in, n }, out, sizeof out, &len, &why) != 0)
            continue;
        struct slice c = { out, len };
        T_OK(len > 0 && len <= n && out[0] == '/');
        T_OK(!memmem(out, len, "//", 2) && !memmem(out, len, "/../", 4) &&
             !memmem(out, len, "/./", 3) && !memmem(out, len, "/.;", 3) &&
             !memmem(out, len, "/..;", 4));
        T_OK(!(len >= 3 && memcmp(out + len - 3, "/..", 3) == 0), "%.*s", (int)n, in);
        T_EQ(path_canonical(c, again, sizeof again, &len2, &why), 0);
        T_OK(len2 == len && memcmp(out, again, len) == 0, "%.*s", (int)n, in);
    }
}

T_TEST(path_prefixes_and_rewrites)
{
    static const struct {
        const char *path, *prefix, *to, *out; /* to NULL: not below */
    } cases[] = {
        { "/api/products/1", "/api/products", "/products", "/products/1" },
        { "/api/products", "/api/products", "/products", "/products" },
        { "/api/products/", "/api/products", "/products", "/products/" },
        { "/api/productsx", "/api/products", NULL, NULL },
        { "/api/x", "/api", "/", "/x" },
        { "/api", "/api", "/", "/" },
        { "/api/", "/api/", "/", "/" },
        { "/api/x", "/api/", "/v1", "/v1/x" },
        { "/api", "/api/", NULL, NULL },
        { "/x", "/", "/v1", "/v1/x" },
        { "/", "/", "/v1", "/v1/" },
        { "/api;v=1/x", "/api", "/v2", "/v2/x" },
        { "/api;v=1", "/api", "/v2", "/v2" },
        { "/api/x;v=1", "/api", "/v2", "/v2/x;v=1" },
        { "/a;b/c;d/e;f", "/a/c", "/v2", "/v2/e;f" },
        { "/a;b/c", "/a;b", "/v2", "/v2/c" },
        { "/a;b/;c/d", "/a/", "/", "/;c/d" },
        { "/a;b/c", "/a/d", NULL, NULL },
        { "/api%3Bv/x", "/api", "/v2", "/v2/x" },
        { "/apix;b/c", "/api", NULL, NULL },
        { "/api;b", "/api/", NULL, NULL },
        { "/ap;i/x", "/api", NULL, NULL },
        { "/;x/api", "/api", NULL, NULL },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        char out[64];
        size_t len = 0;
        T_EQ(path_below(text(cases[i].path), text(cases[i].prefix)), cases[i].to != NULL, "%s",
             cases[i].path);
        if (!cases[i].to)
            continue;
        T_EQ(path_rewrite(text(cases[i].path), text(cases[i].prefix), text(cases[i].to), out,
                          sizeof out - 1, &len),
             0);
        out[len] = '\0';
        if (strcmp(cases[i].path, "/") != 0)
            T_STR(out, cases[i].out, "%s", cases[i].path);
    }
}

T_TEST(path_segment_finds)
{
    static const struct {
        const char *path;
        uint32_t n;
        const char *is; /* NULL: absent */
    } cases[] = { { "/tenants/7/x", 1, "tenants" }, { "/tenants/7/x", 2, "7" },
                  { "/tenants/7;v=1/x", 2, "7" },   { "/tenants/7", 3, NULL },
                  { "/tenants/", 2, NULL },         { "/", 1, NULL },
                  { "/tenants/7", 0, NULL },        { "/a/;x=1", 2, NULL } };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        struct slice s = path_segment(text(cases[i].path), cases[i].n);
        T_EQ(s.p != NULL, cases[i].is != NULL, "%s", cases[i].path);
        if (s.p)
            T_OK(slice_is(s, cases[i].is), "%s: %.*s", cases[i].path, (int)s.len, s.p);
    }
}
