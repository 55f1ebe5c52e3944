/* Networks of IP addresses. Tested in tests/unit/proxy/config.c. */
#include "proxy/network.h"
#include "id/diag.h"
#include "proxy/config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

int ip_network_parse(const char *text, struct ip_network *out)
{
    char host[64];
    if (strcmp(text, "unix") == 0) {
        *out = (struct ip_network){ .local = true };
        return 0;
    }
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    struct ip_network n = { .local = false };
    if (len >= sizeof host)
        return FIRN_EFORMAT;
    memcpy(host, text, len);
    host[len] = '\0';
    unsigned most = 128, base = 0;
    if (inet_pton(AF_INET, host, n.address + 12) == 1) {
        memcpy(n.address, mapped, sizeof mapped);
        most = 32;
        base = 96;
    } else if (inet_pton(AF_INET6, host, n.address) != 1) {
        return FIRN_EFORMAT;
    }
    unsigned long bits = most;
    if (slash) {
        char *end;
        bits = strtoul(slash + 1, &end, 10);
        if (slash[1] < '0' || slash[1] > '9' || *end || bits > most)
            return FIRN_EFORMAT;
    }
    n.bits = (uint8_t)(base + bits);
    for (unsigned i = n.bits; i < 128; i++)
        if (n.address[i / 8] & 0x80 >> i % 8)
            return FIRN_EFORMAT;
    *out = n;
    return 0;
}

bool ip_network_has(const struct ip_network *n, const struct sockaddr *sa)
{
    uint8_t a[16];
    if (n->local || sa->sa_family == AF_UNIX)
        return n->local && sa->sa_family == AF_UNIX;
    if (sa->sa_family == AF_INET) {
        memcpy(a, mapped, sizeof mapped);
        memcpy(a + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        memcpy(a, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
    } else {
        return false;
    }
    unsigned whole = n->bits / 8u, rest = n->bits % 8u;
    return memcmp(a, n->address, whole) == 0 &&
           (rest == 0 || (uint8_t)((a[whole] ^ n->address[whole]) >> (8 - rest)) == 0);
}

int config_check_network(const char *value, struct firn_diag *why)
{
    struct ip_network n;
    char show[CONFIG_SHOWN_BUF];
    return ip_network_parse(value, &n) == 0
               ? 0
               : firn__diag(why, FIRN_EFORMAT, 0,
                            "'%s' is no network; write 10.0.0.0/8, fd00::/8, one address or unix",
                            config_shown(value, show));
}
