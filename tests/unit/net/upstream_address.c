/* Addresses of servers: IP and Unix sockets. */
#include "t.h"

#include "net/upstream_address.h"

#include <string.h>
#include <sys/un.h>

T_TEST(upstream_addresses)
{
    static const struct {
        const char *text, *host; /* NULL: refused */
        int family;
    } cases[] = {
        { "10.0.0.1:80", "10.0.0.1", AF_INET },
        { "[::1]:80", "::1", AF_INET6 },
        { "unix:/run/a", "localhost", AF_UNIX },
        { "unix:run/a", NULL, 0 },
        { "unix:", NULL, 0 },
        { "10.0.0.1", NULL, 0 },
        { "name:80", NULL, 0 },
        { "::1:80", NULL, 0 },
    };
    struct sockaddr_storage to;
    char host[HOST_BYTES_MAX + 1], text[200] = "unix:/";
    for (size_t i = 0; i < T_LEN(cases); i++) {
        int r = upstream_address(cases[i].text, &to, host);
        T_EQ(r, cases[i].host ? 0 : FIRN_EINVAL, "%s", cases[i].text);
        if (!cases[i].host)
            continue;
        T_STR(host, cases[i].host);
        T_EQ(to.ss_family, cases[i].family);
    }
    T_EQ(upstream_address("unix:/run/a", &to, host), 0);
    T_STR(((struct sockaddr_un *)&to)->sun_path, "/run/a");
    memset(text + 6, 'x', 150);
    T_EQ(upstream_address(text, &to, host), FIRN_EINVAL);
}
