/* The PROXY header for servers. Tested in tests/integration/gateway_net.py. */
#include "proxy/proxied.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* An address without a port. */
static bool address_of(const char *text, struct sockaddr_storage *sa)
{
    struct sockaddr_in *in = (struct sockaddr_in *)sa;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
    memset(sa, 0, sizeof *sa);
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        sa->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
        sa->ss_family = AF_INET6;
    return sa->ss_family != AF_UNSPEC;
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *x = (const struct sockaddr_in *)a, *y = (const struct sockaddr_in *)b;
    const struct sockaddr_in6 *x6 = (const struct sockaddr_in6 *)a,
                              *y6 = (const struct sockaddr_in6 *)b;
    if (a->ss_family != b->ss_family)
        return false;
    return a->ss_family == AF_INET
               ? x->sin_addr.s_addr == y->sin_addr.s_addr
               : memcmp(&x6->sin6_addr, &y6->sin6_addr, sizeof x6->sin6_addr) == 0;
}

size_t proxied_header(const struct call *c, char out[PROXY_WRITE_MAX])
{
    struct sockaddr_storage peer, told, own;
    char text[PEER_ADDRESS_BUF];
    while (c->outer)
        c = c->outer;
    if (!c->q)
        return proxy_header_write(NULL, NULL, out);
    edge_address(c->q, text, &peer);
    edge_own_address(c->q, &own);
    bool other = address_of(c->client, &told) && !same_host(&told, &peer);
    return proxy_header_write((struct sockaddr *)(other ? &told : &peer), (struct sockaddr *)&own,
                              out);
}
