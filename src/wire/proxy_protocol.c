/* The PROXY protocol. Tested in tests/unit/wire/proxy_protocol.c, tests/fuzz/proxy_protocol.c. */
#include "wire/proxy_protocol.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum {
    V1_MAX = 107, /* with its CR LF, as the specification has it */
    V2_FIXED = 16,
    V2_IN4 = 12,
    V2_IN6 = 36,
    LOCAL = 0x20,
    PROXY = 0x21,
    TCP4 = 0x11,
    TCP6 = 0x21,
    FAMILY_MAX = 3, /* none, IPv4, IPv6, Unix */
    KIND_MAX = 2,   /* none, stream, datagram */
};

static const char signature[12] = "\r\n\r\n\0\r\nQUIT\n";
static const char v1_begin[6] = "PROXY ";

static void set_in4(struct sockaddr_storage *sa, const void *address, in_port_t port)
{
    struct sockaddr_in *in = (struct sockaddr_in *)sa;
    in->sin_family = AF_INET;
    memcpy(&in->sin_addr, address, 4);
    in->sin_port = port;
}

static void set_in6(struct sockaddr_storage *sa, const void *address, in_port_t port)
{
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)sa;
    in->sin6_family = AF_INET6;
    memcpy(&in->sin6_addr, address, 16);
    in->sin6_port = port;
}

/* --- version 1: "PROXY TCP4 10.0.0.1 10.0.0.2 1111 80\r\n" --- */

/* Copies the word at *p and steps over the space behind it. */
static bool word(const char **p, const char *end, char *out, size_t cap)
{
    const char *space = memchr(*p, ' ', (size_t)(end - *p));
    size_t n = (size_t)((space ? space : end) - *p);
    if (n == 0 || n >= cap)
        return false;
    memcpy(out, *p, n);
    out[n] = '\0';
    *p = space ? space + 1 : end;
    return true;
}

static bool port_of(const char *text, in_port_t *out)
{
    unsigned v = 0;
    size_t n = strlen(text);
    if (n > 5 || (n > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        v = v * 10 + (unsigned)(text[i] - '0');
    }
    *out = htons((uint16_t)v);
    return v <= 65535;
}

static bool read_words(const char *p, const char *end, struct proxy_header *out)
{
    char family[8], text[2][INET6_ADDRSTRLEN], ports[2][8];
    unsigned char address[2][16];
    in_port_t port[2];
    if (!word(&p, end, family, sizeof family))
        return false;
    if (strcmp(family, "UNKNOWN") == 0)
        return true;
    const bool six = strcmp(family, "TCP6") == 0;
    if (!six && strcmp(family, "TCP4") != 0)
        return false;
    if (!word(&p, end, text[0], sizeof text[0]) || !word(&p, end, text[1], sizeof text[1]) ||
        !word(&p, end, ports[0], sizeof ports[0]) || !word(&p, end, ports[1], sizeof ports[1]) ||
        p != end || end[-1] == ' ')
        return false;
    for (int i = 0; i < 2; i++)
        if (inet_pton(six ? AF_INET6 : AF_INET, text[i], address[i]) != 1 ||
            !port_of(ports[i], &port[i]))
            return false;
    out->told = true;
    (six ? set_in6 : set_in4)(&out->from, address[0], port[0]);
    (six ? set_in6 : set_in4)(&out->to, address[1], port[1]);
    return true;
}

static ssize_t read_v1(const char *p, size_t len, struct proxy_header *out)
{
    const char *end = memchr(p, '\n', len < V1_MAX ? len : V1_MAX);
    if (!end)
        return len < V1_MAX ? FIRN_EAGAIN : FIRN_EFORMAT;
    if (end[-1] != '\r' || !read_words(p + sizeof v1_begin, end - 1, out))
        return FIRN_EFORMAT;
    return end + 1 - p;
}

/* --- version 2 --- */

static ssize_t read_v2(const unsigned char *p, size_t len, struct proxy_header *out)
{
    in_port_t port[2];
    if (len > 12 && p[12] != LOCAL && p[12] != PROXY)
        return FIRN_EFORMAT;
    if (len > 13 && (p[13] >> 4 > FAMILY_MAX || (p[13] & 15) > KIND_MAX))
        return FIRN_EFORMAT;
    if (len < V2_FIXED)
        return FIRN_EAGAIN;
    const size_t more = (size_t)p[14] << 8 | p[15];
    const size_t want = p[12] != PROXY ? 0 : p[13] == TCP4 ? V2_IN4 : p[13] == TCP6 ? V2_IN6 : 0;
    if (more < want || V2_FIXED + more > PROXY_READ_MAX)
        return FIRN_EFORMAT;
    if (len < V2_FIXED + more)
        return FIRN_EAGAIN;
    if (want > 0) {
        const size_t size = want == V2_IN4 ? 4 : 16;
        const unsigned char *at = p + V2_FIXED;
        memcpy(port, at + 2 * size, sizeof port);
        out->told = true;
        (size == 4 ? set_in4 : set_in6)(&out->from, at, port[0]);
        (size == 4 ? set_in4 : set_in6)(&out->to, at + size, port[1]);
    }
    return (ssize_t)(V2_FIXED + more);
}

static bool begins(const char *p, size_t len, const char *with, size_t n)
{
    return memcmp(p, with, len < n ? len : n) == 0;
}

ssize_t proxy_header_read(const char *p, size_t len, struct proxy_header *out)
{
    memset(out, 0, sizeof *out);
    if (len == 0)
        return FIRN_EAGAIN;
    if (begins(p, len, signature, sizeof signature))
        return read_v2((const unsigned char *)p, len, out);
    if (!begins(p, len, v1_begin, sizeof v1_begin))
        return FIRN_EFORMAT;
    return len < sizeof v1_begin ? FIRN_EAGAIN : read_v1(p, len, out);
}

/* --- writing --- */

static bool is_ip(const struct sockaddr *sa)
{
    return sa && (sa->sa_family == AF_INET || sa->sa_family == AF_INET6);
}

/* The address as IPv6, and its port. */
static void as_in6(const struct sockaddr *sa, unsigned char out[16], in_port_t *port)
{
    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)sa;
        memcpy(out, &in->sin6_addr, 16);
        *port = in->sin6_port;
        return;
    }
    const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
    memset(out, 0, 10);
    memset(out + 10, 0xff, 2);
    memcpy(out + 12, &in->sin_addr, 4);
    *port = in->sin_port;
}

size_t proxy_header_write(const struct sockaddr *from, const struct sockaddr *to,
                          char out[PROXY_WRITE_MAX])
{
    unsigned char address[2][16];
    in_port_t port[2];
    size_t at = V2_FIXED;
    memcpy(out, signature, sizeof signature);
    memset(out + sizeof signature, 0, V2_FIXED - sizeof signature);
    out[12] = LOCAL;
    if (!is_ip(from) || !is_ip(to))
        return at;
    const bool four = from->sa_family == AF_INET && to->sa_family == AF_INET;
    const size_t size = four ? 4 : 16;
    as_in6(from, address[0], &port[0]);
    as_in6(to, address[1], &port[1]);
    out[12] = PROXY;
    out[13] = four ? TCP4 : TCP6;
    out[15] = four ? V2_IN4 : V2_IN6;
    for (int i = 0; i < 2; i++, at += size)
        memcpy(out + at, address[i] + 16 - size, size);
    memcpy(out + at, port, sizeof port);
    return at + sizeof port;
}
