/* The peer port: listens, and gives each connection to the member (member_events). */
#include "raft/node_in.h"
#include "id/diag.h"
#include "wire/url.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

static void on_connection(uv_stream_t *listener, int status)
{
    struct node *n = listener->data;
    if (status == 0 && n->member)
        (void)wire_accept(&n->wires, listener, &member_events, n->member, &n->unaccepted);
}

void listen_tick(struct node *n)
{
    if (n->unaccepted)
        on_connection((uv_stream_t *)&n->listener, 0);
}

int node_listen(struct node *n, const char *address, struct firn_diag *d)
{
    struct host_port at;
    char port[8];
    enum host_error e = host_port_read((struct slice){ address, strlen(address) }, &at);
    if ((e != HOST_OK && e != HOST_EMPTY && e != HOST_COLONS) || !at.has_port)
        return firn__diag(d, FIRN_EINVAL, 0, "cluster.listen: '%.80s' is no host:port", address);
    snprintf(port, sizeof port, "%u", at.port);
    struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found;
    bool any = e == HOST_EMPTY || strcmp(at.host, "*") == 0;
    int wrong = getaddrinfo(any ? NULL : at.host, port, &want, &found);
    if (wrong)
        return firn__diag(d, FIRN_EINVAL, 0, "cluster.listen: %.80s: %s", address,
                          gai_strerror(wrong));
    uv_tcp_init(&n->loop, &n->listener);
    n->listener.data = n;
    int r = uv_tcp_bind(&n->listener, found->ai_addr, 0);
    freeaddrinfo(found);
    if (r == 0)
        r = uv_listen((uv_stream_t *)&n->listener, 64, on_connection);
    return r < 0 ? firn__diag(d, FIRN_EIO, 0, "cluster.listen: %.80s: %s", address, uv_strerror(r))
                 : 0;
}
