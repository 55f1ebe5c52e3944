/* The addresses of stores: what is taken, what is refused and with which words. */
#include "t.h"

#include "store/store.h"
#include "store/url.h"

#include <string.h>

T_TEST(takes_a_url_apart)
{
    struct store_url u;
    struct firn_diag d = { 0 };
    T_EQ(store_url_parse("etcd://us%65r:p%40ss:w@a,b:99,[::1]:7/pre/fix?tls=yes&ca=%2Fx", 2379,
                         "tls ca", &u, &d),
         0, "%s", d.text);
    T_STR(u.scheme, "etcd");
    T_STR(u.user, "user");
    T_STR(u.password, "p@ss:w");
    T_EQ(u.host_n, 3);
    T_STR(u.host[0].name, "a");
    T_EQ(u.host[0].port, 2379);
    T_STR(u.host[1].name, "b");
    T_EQ(u.host[1].port, 99);
    T_STR(u.host[2].name, "::1");
    T_EQ(u.host[2].port, 7);
    T_STR(u.path, "pre/fix");
    T_STR(store_url_param(&u, "ca"), "/x");
    T_OK(!store_url_param(&u, "key"));
    T_EQ(store_url_parse("etcd://a", 1, "", &u, &d), 0);
    T_STR(u.path, "");
}

T_TEST(refuses)
{
    static const struct {
        const char *url, *says;
    } bad[] = {
        { "etcd", "no scheme" },
        { "etcd://", "empty or broken host" },
        { "etcd://a,", "empty or broken host" },
        { "etcd://a:0", "no port" },
        { "etcd://a:65536", "no port" },
        { "etcd://a:", "no port" },
        { "etcd://[::1", "closing bracket" },
        { "etcd://[::1]x", "between" },
        { "etcd://a%0", "broken host" },
        { "etcd://a/%00", "badly escaped" },
        { "etcd://a/b?tls", "not name=value" },
        { "etcd://a/b?tle=1", "no parameter 'tle'; it takes: tls ca" },
        { "etcd://a/b#c", "'#'" },
        { "etcd://1,2,3,4,5,6,7,8,9,10", "too many hosts" },
    };
    struct store_url u;
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_diag d = { 0 };
        T_EQ(store_url_parse(bad[i].url, 2379, "tls ca", &u, &d), FIRN_EFORMAT, "%s", bad[i].url);
        T_OK(strstr(d.text, bad[i].says), "%s: %s", bad[i].url, d.text);
    }
}

T_TEST(hides_the_password)
{
    char out[100];
    store_url_redact("redis://u:secret@h:1/0", out, sizeof out);
    T_STR(out, "redis://u:***@h:1/0");
    store_url_redact("quorum:redis://u:secret@h/0?a=b|sqlite:x|redis://:other@i:2", out,
                     sizeof out);
    T_STR(out, "quorum:redis://u:***@h/0?a=b|sqlite:x|redis://:***@i:2");
    store_url_redact("sqlite:a@b", out, sizeof out);
    T_STR(out, "sqlite:a@b");
    store_url_redact("etcd://u@h", out, sizeof out);
    T_STR(out, "etcd://u@h");
}

T_TEST(knows_the_engines)
{
    struct firn_diag d = { 0 };
    T_EQ(firn_store_url_check("memory:", &d), 0);
    T_EQ(firn_store_url_check("sqlite:x.db", &d), 0);
    T_EQ(firn_store_url_check("sqlite:", &d), FIRN_EFORMAT);
    T_EQ(firn_store_url_check("mysql://h/x", &d), FIRN_EFORMAT);
    T_OK(strstr(d.text, "etcd://"), "%s", d.text);
}
