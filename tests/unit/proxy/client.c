/* Addresses of clients in X-Forwarded-For and Forwarded, from the right. */
#include "t.h"

#include "proxy/client.h"

#include <stdio.h>

static const char *hops(const char *list, bool forwarded)
{
    static char out[256];
    struct slice at = slice_of(list), hop;
    size_t n = 0;
    out[0] = '\0';
    while (at.len > 0) {
        char text[PEER_ADDRESS_BUF];
        struct sockaddr_storage sa;
        if (!client_hop(&at, forwarded, &hop) || !client_address(hop, &sa, text)) {
            snprintf(out + n, sizeof out - n, "|");
            break;
        }
        n += (size_t)snprintf(out + n, sizeof out - n, "%s ", text);
    }
    return out;
}

T_TEST(client_hops_of_x_forwarded_for)
{
    T_STR(hops("1.2.3.4", false), "1.2.3.4 ");
    T_STR(hops("1.2.3.4, 10.0.0.1:99 ,\t::1", false), "::1 10.0.0.1 1.2.3.4 ");
    T_STR(hops("[2001:db8::7]:443", false), "2001:db8::7 ");
    T_STR(hops("1.2.3.4, unknown", false), "|");
    T_STR(hops("1.2.3.4,", false), "|");
}

T_TEST(client_hops_of_forwarded)
{
    T_STR(hops("for=192.0.2.60;proto=http;by=203.0.113.43", true), "192.0.2.60 ");
    T_STR(hops("for=192.0.2.43, for=198.51.100.17", true), "198.51.100.17 192.0.2.43 ");
    T_STR(hops("proto=https ; For=\"[2001:db8:cafe::17]:4711\"", true), "2001:db8:cafe::17 ");
    T_STR(hops("by=\"a,b;for=6.6.6.6\";for=10.0.0.9", true), "10.0.0.9 ");
    T_STR(hops("by=\"a\\\",for=6.6.6.6\";for=10.0.0.9", true), "10.0.0.9 ");
}

/* What cannot be read ends the walk, and nothing before it counts. */
T_TEST(client_hops_that_cannot_be_read)
{
    static const char *const bad[] = {
        "for=_hidden",
        "for=unknown",
        "proto=http",
        "for=",
        "for=\"",
        "for=1.2.3",
        "for=1.2.3.4x",
        "for=1.2.3.4;for=5.6.7.8",
        /* a client left a quote open, to hide what the proxy adds */
        "for=6.6.6.6;x=\", for=10.0.0.1",
        "for=6.6.6.6;x=\"\\, for=\"[::1]\"",
        "for=6.6.6.6;x=\", for=\"[::1]\", for=\"[::2]\"",
    };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_STR(hops(bad[i], true), "|", "%s", bad[i]);
}

T_TEST(client_hops_of_anything)
{
    static const char pieces[][8] = { "for=", "\"", "\\", ",", ";", "1.2.3.4", "[::1]", " ", "=" };
    for (uint64_t i = t_scale(100000); i > 0; i--) {
        char text[160];
        size_t n = 0;
        for (uint64_t k = t_random_below(16); k > 0; k--)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s",
                                  pieces[t_random_below(T_LEN(pieces))]);
        struct slice at = { text, n }, hop;
        for (size_t before = n + 1; at.len > 0 && client_hop(&at, true, &hop); before = at.len)
            T_OK(at.len < before && hop.p >= text && hop.p + hop.len <= text + n);
    }
}
