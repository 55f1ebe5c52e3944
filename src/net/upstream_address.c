/* Addresses of servers. Tested in tests/unit/net/upstream_address.c. */
#include "net/upstream_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

const char *upstream_path(const char *text)
{
    return strncmp(text, "unix:", 5) == 0 ? text + 5 : NULL;
}

static int unix_address(const char *path, struct sockaddr_storage *to, char *host)
{
    struct sockaddr_un *un = (struct sockaddr_un *)to;
    const size_t n = strlen(path);
    if (path[0] != '/' || n >= sizeof un->sun_path)
        return FIRN_EINVAL;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, n + 1);
    memcpy(host, "localhost", sizeof "localhost");
    return 0;
}

int upstream_address(const char *text, struct sockaddr_storage *to, char host[HOST_BYTES_MAX + 1])
{
    struct sockaddr_in *in = (struct sockaddr_in *)to;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
    struct host_port h;
    memset(to, 0, sizeof *to);
    if (upstream_path(text))
        return unix_address(upstream_path(text), to, host);
    if (host_port_read((struct slice){ text, strlen(text) }, &h) != HOST_OK || !h.has_port)
        return FIRN_EINVAL;
    if (inet_pton(AF_INET, h.host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(h.port);
    } else if (inet_pton(AF_INET6, h.host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(h.port);
    } else {
        return FIRN_EINVAL;
    }
    memcpy(host, h.host, sizeof h.host);
    return 0;
}
