/* Which requests of web pages are served: a table of what browsers and other clients send. */
#include "t.h"

#include "server/browser.h"

#include <string.h>

static char ids[] = "ids.example.com", app[] = "https://app.example.com",
            dev[] = "http://localhost:3000", star[] = "*";
static char *hosts[] = { ids }, *origins[] = { app, dev }, *all[] = { star };
static const struct config_strings none = { NULL, 0 }, some_hosts = { hosts, 1 },
                                   some_origins = { origins, 2 }, any = { all, 1 };

static struct slice slice(const char *text)
{
    return (struct slice){ text, text ? strlen(text) : 0 };
}

T_TEST(browser_hosts)
{
    static const struct {
        const char *host;
        enum host_rank rank;
    } rows[] = {
        { NULL, HOST_OWN },
        { "", HOST_OWN },
        { "127.0.0.1", HOST_OWN },
        { "127.0.0.1:9000", HOST_OWN },
        { "10.1.2.3:9000", HOST_OWN },
        { "[::1]", HOST_OWN },
        { "[::1]:9000", HOST_OWN },
        { "localhost", HOST_OWN },
        { "LocalHost:9000", HOST_OWN },
        { "localhost.", HOST_OWN },
        { "app.localhost:1", HOST_OWN },
        { "box.lan:9000", HOST_OWN },
        { "BOX.LAN", HOST_OWN },
        { "ids.example.com", HOST_OWN },
        { "IDS.example.com.:443", HOST_OWN },
        { "firn", HOST_SHORT },
        { "firn.", HOST_SHORT },
        { "a:80", HOST_SHORT },
        { "0x7f000001", HOST_SHORT },
        { "evil.example", HOST_FOREIGN },
        { "evil.example:9000", HOST_FOREIGN },
        { "localhost.evil.example", HOST_FOREIGN },
        { "127.0.0.1.nip.io", HOST_FOREIGN },
        { "xids.example.com", HOST_FOREIGN },
        { "ids.example.com.evil.example", HOST_FOREIGN },
        { "evillocalhost.example", HOST_FOREIGN },
    };
    struct browser b;
    T_EQ(browser_init(&b, "box.lan", &some_hosts, &none), 0);
    T_OK(b.everywhere);
    for (size_t i = 0; i < T_LEN(rows); i++)
        T_EQ(browser_host(&b, slice(rows[i].host)), rows[i].rank, "%s", rows[i].host);
    browser_done(&b);
    T_EQ(browser_init(&b, "", &none, &none), 0);
    T_OK(!b.everywhere);
    T_EQ(browser_host(&b, slice("ids.example.com")), HOST_FOREIGN);
    browser_done(&b);
    browser_done(&b);
}

T_TEST(browser_pages)
{
    static const struct {
        const char *site, *origin, *host;
        bool foreign;
    } rows[] = {
        { NULL, NULL, "localhost:9000", false },   /* curl, wrk, a library */
        { "none", NULL, "localhost:9000", false }, /* typed by its user */
        { "same-origin", NULL, "localhost:9000", false },
        { "same-origin", "http://localhost:9000", "localhost:9000", false },
        { "same-origin", "https://ids.example.com", "firn", false }, /* a proxy changed Host */
        { "cross-site", NULL, "localhost:9000", true }, /* <img>, <a>, fetch with no-cors */
        { "cross-site", "https://evil.example", "localhost:9000", true },
        { "cross-site", "null", "localhost:9000", true },
        { "same-site", NULL, "localhost:9000", true }, /* another port of this machine */
        { "same-site", "http://localhost:8080", "localhost:9000", true },
        { "Same-Origin", NULL, "localhost:9000", false },
        { "", NULL, "localhost:9000", true },
        { "new-word", NULL, "localhost:9000", true },
        { "cross-site", "https://app.example.com", "localhost:9000", false },
        { "same-site", "http://localhost:3000", "localhost:9000", false },
        { NULL, "http://localhost:9000", "localhost:9000", false },
        { NULL, "https://LOCALHOST:9000", "localhost:9000", false },
        { NULL, "http://localhost:9001", "localhost:9000", true },
        { NULL, "http://localhost", "localhost:9000", true },
        { NULL, "null", "null", true },
        { NULL, "", "localhost:9000", true },
        { NULL, "https://evil.example", "localhost:9000", true },
        { NULL, "https://app.example.com", "localhost:9000", false },
        { NULL, "https://app.example.com.evil.example", "localhost:9000", true },
        { NULL, "http://app.example.com", "localhost:9000", true }, /* another scheme */
    };
    struct browser b;
    T_EQ(browser_init(&b, "", &none, &some_origins), 0);
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct http_request req = { .fetch_site = slice(rows[i].site),
                                    .origin = slice(rows[i].origin),
                                    .host = slice(rows[i].host) };
        T_EQ(browser_foreign(&b, &req), rows[i].foreign, "row %zu: %s %s", i, rows[i].site,
             rows[i].origin);
    }
    browser_done(&b);
}

T_TEST(browser_answers)
{
    struct browser b;
    T_EQ(browser_init(&b, "", &none, &some_origins), 0);
    T_STR(browser_allowed(&b, slice("https://app.example.com")),
          "Access-Control-Allow-Origin: https://app.example.com\r\nVary: Origin\r\n"
          "Access-Control-Expose-Headers: *\r\n");
    T_OK(!browser_allowed(&b, slice("https://evil.example")));
    T_OK(!browser_allowed(&b, slice(NULL)));
    T_STR(browser_others(&b), "Vary: Origin\r\n");
    browser_done(&b);
    T_EQ(browser_init(&b, "", &none, &any), 0);
    T_STR(browser_allowed(&b, slice("https://evil.example")),
          "Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: *\r\n");
    browser_done(&b);
    T_OK(!browser_allowed(&b, slice("https://app.example.com")) && !browser_others(&b));
}

T_TEST(browser_settings)
{
    static const char *const good_hosts[] = { "ids.example.com", "firn", "a-b_c.d" },
                             *const bad_hosts[] = { "",         ".",   "a.", ".a", "a:80",
                                                    "http://a", "a b", "*",  "a/b" },
                             *const good_origins[] = { "*", "https://a.example",
                                                       "http://[::1]:3000", "http://localhost:3000",
                                                       "chrome-extension://abc" },
                             *const bad_origins[] = { "",         "a.example",
                                                      "https://", "https://a/",
                                                      "://a",     "https://*.a",
                                                      "null",     "http://a\r\nX: 1" };
    struct firn_diag d;
    for (size_t i = 0; i < T_LEN(good_hosts); i++)
        T_EQ(browser_check_host(good_hosts[i], &d), 0, "%s", good_hosts[i]);
    for (size_t i = 0; i < T_LEN(bad_hosts); i++)
        T_EQ(browser_check_host(bad_hosts[i], &d), FIRN_EFORMAT, "%s", bad_hosts[i]);
    for (size_t i = 0; i < T_LEN(good_origins); i++)
        T_EQ(browser_check_origin(good_origins[i], &d), 0, "%s", good_origins[i]);
    for (size_t i = 0; i < T_LEN(bad_origins); i++)
        T_EQ(browser_check_origin(bad_origins[i], &d), FIRN_EFORMAT, "%s", bad_origins[i]);
}
