/* Which route a request takes: the most particular one, whatever the order of the file. */
#include "t.h"

#include "proxy/route.h"

#include <stdio.h>
#include <stdlib.h>

static struct config_strings list(const char *const *v, size_t n)
{
    return (struct config_strings){ (char **)(uintptr_t)v, n };
}

T_TEST(route_the_most_particular)
{
    static const char *const exact[] = { "shop.example" }, *const wild[] = { "*.example" },
                             *const get[] = { "GET", "HEAD" }, *const post[] = { "POST" };
    static struct config_field beta = { (char *)"X-Beta", (char *)"*" },
                               beta2 = { (char *)"x-beta", (char *)"2" };
    struct config_route r[] = {
        { .name = (char *)"all", .path = (char *)"/" },
        { .name = (char *)"api", .path = (char *)"/api" },
        { .name = (char *)"post", .path = (char *)"/api", .methods = list(post, 1) },
        { .name = (char *)"beta", .path = (char *)"/api", .headers = { &beta, 1 } },
        { .name = (char *)"beta2", .path = (char *)"/api", .headers = { &beta2, 1 } },
        { .name = (char *)"deep", .path = (char *)"/api/deep" },
        { .name = (char *)"wild", .path = (char *)"/", .hosts = list(wild, 1) },
        { .name = (char *)"exact", .path = (char *)"/", .hosts = list(exact, 1) },
        { .name = (char *)"get",
          .path = (char *)"/only",
          .hosts = list(exact, 1),
          .methods = list(get, 2) },
    };
    const struct config_route *order[T_LEN(r)];
    route_sort(r, T_LEN(r), order);
    static const struct {
        const char *host, *path, *method, *header, *value, *want;
    } cases[] = {
        { "a", "/", "GET", "", "", "all" },
        { "a", "/apix", "GET", "", "", "all" },
        { "a", "/api/1", "GET", "", "", "api" },
        { "a", "/api", "POST", "", "", "post" },
        { "a", "/api", "GET", "x-BETA", "1", "beta" },
        { "a", "/api", "POST", "X-Beta", "1", "beta" },
        { "a", "/api/deep/x", "POST", "X-Beta", "1", "deep" },
        { "b.example", "/api", "GET", "", "", "wild" },
        { "example", "/api", "GET", "", "", "api" },
        { "xexample", "/api", "GET", "", "", "api" },
        { "SHOP.example:80", "/api", "GET", "", "", "exact" },
        { "shop.example.", "/api", "GET", "", "", "exact" },
        { "[::1]:80", "/api", "GET", "", "", "api" },
        { "", "/api", "GET", "", "", "api" },
        { "shop.example", "/only", "GET", "", "", "get" },
        { "shop.example", "/only", "PUT", "", "", "exact" },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        struct http_header h = { { cases[i].header, strlen(cases[i].header) },
                                 { cases[i].value, strlen(cases[i].value) } };
        struct route_query q = { { cases[i].host, strlen(cases[i].host) },
                                 { cases[i].path, strlen(cases[i].path) },
                                 { cases[i].method, strlen(cases[i].method) },
                                 &h,
                                 1 };
        bool wrong;
        const struct config_route *found = route_find(order, T_LEN(r), &q, &wrong);
        T_OK(found != NULL);
        T_STR(found->name, cases[i].want, "case %zu", i);
    }
}

T_TEST(route_none)
{
    static const char *const get[] = { "GET" };
    struct config_route r = { .name = (char *)"a", .path = (char *)"/a", .methods = list(get, 1) };
    const struct config_route *order[1];
    route_sort(&r, 1, order);
    struct route_query q = { .path = { "/a", 2 }, .method = { "PUT", 3 } };
    bool wrong;
    T_OK(!route_find(order, 1, &q, &wrong));
    T_OK(wrong);
    q.path = (struct slice){ "/b", 2 };
    T_OK(!route_find(order, 1, &q, &wrong));
    T_OK(!wrong);
    T_OK(!route_find(order, 0, &q, &wrong));
}

T_TEST(route_methods_that_are_allowed)
{
    static const char *const read[] = { "GET", "HEAD" }, *const write[] = { "PUT", "GET", "POST" };
    struct config_route r[] = {
        { .name = (char *)"a", .path = (char *)"/a", .methods = list(read, 2) },
        { .name = (char *)"b", .path = (char *)"/a/b", .methods = list(write, 3) },
        { .name = (char *)"c", .path = (char *)"/c", .methods = list(write, 3) },
    };
    const struct config_route *order[T_LEN(r)];
    route_sort(r, T_LEN(r), order);
    struct route_query q = { .path = { "/a/b", 4 }, .method = { "DELETE", 6 } };
    char allow[ROUTE_ALLOW_BUF];
    route_allow(order, T_LEN(r), &q, allow);
    T_STR(allow, "PUT, GET, POST, HEAD");
    q.path = (struct slice){ "/a/x", 4 };
    route_allow(order, T_LEN(r), &q, allow);
    T_STR(allow, "GET, HEAD");
    q.path = (struct slice){ "/x", 2 };
    route_allow(order, T_LEN(r), &q, allow);
    T_STR(allow, "");
}

T_TEST(route_allow_has_room_for_some)
{
    static char names[40][CONFIG_METHOD_MAX + 1];
    static char *methods[T_LEN(names)];
    for (size_t i = 0; i < T_LEN(names); i++)
        snprintf(methods[i] = names[i], sizeof names[i], "METHOD-%zu", i);
    struct config_route r = { .path = (char *)"/", .methods = { methods, T_LEN(names) } };
    const struct config_route *order[] = { &r };
    struct route_query q = { .path = { "/", 1 }, .method = { "GET", 3 } };
    char allow[ROUTE_ALLOW_BUF];
    route_allow(order, 1, &q, allow);
    T_OK(strlen(allow) < sizeof allow && strlen(allow) > sizeof allow - 16, "%s", allow);
    T_OK(allow[strlen(allow) - 1] != ' ' && allow[strlen(allow) - 1] != ',', "%s", allow);
}

T_TEST(route_hosts)
{
    static const struct {
        const char *host;
        bool ok;
    } cases[] = {
        { "", true },         { "a", true },         { "A-b_c.example.:8080", true },
        { "10.0.0.1", true }, { "[::1]", true },     { "[fe80::1]:65535", true },
        { "a:", true },       { "a:b", false },      { "a:80:90", false },
        { "a,b", false },     { "a;b", false },      { "a=b", false },
        { "[::1", false },    { "[a]", true },       { "[::1]x", false },
        { "[x]", false },     { "a:123456", false }, { "a:+1", false },
        { "a(b)", false },    { "a%2eb", false },    { "[::1]:80:", false },
        { "::1", false },
    };
    for (size_t i = 0; i < T_LEN(cases); i++)
        T_EQ(route_host_ok((struct slice){ cases[i].host, strlen(cases[i].host) }), cases[i].ok,
             "%s", cases[i].host);
}
