/* Targets of firn bench: schemes, hosts on this machine, the bytes of a request. */
#include "cli/bench/bench_target.h"
#include "cli/say.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { REQUEST_BYTES_MAX = 64 * 1024, WORDS_MAX = 64, ADDRESS_MAX = 300 };

/* Puts the message where the caller wants it. */
__attribute__((format(printf, 2, 3))) static int trouble(const struct bench_ask *ask,
                                                         const char *fmt, ...)
{
    char text[BENCH_WHY_BUF];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (!ask->why)
        return say_trouble("%s", text);
    memcpy(ask->why, text, sizeof text);
    return STATUS_TROUBLE;
}

static bool loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* The addresses of a host, all of them on this machine unless `ask->remote`. -1: in `*out_list`;
 * otherwise the status after a message. */
static int addresses(const char *host, const char *port, const char *text,
                     const struct bench_ask *ask, struct addrinfo **out_list)
{
    char shown[SAY_TEXT_BUF];
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list;
    int r = getaddrinfo(host, port, &hints, &list);
    say_text(text, strlen(text), shown);
    if (r != 0)
        return trouble(ask, "%s: %s", shown, gai_strerror(r));
    for (const struct addrinfo *a = list; a && !ask->remote; a = a->ai_next)
        if (!loopback(a->ai_addr)) {
            freeaddrinfo(list);
            return trouble(ask,
                           "%s is not on this machine, and load on a machine that is not yours is "
                           "an attack: add --allow-remote if it is yours",
                           shown);
        }
    *out_list = list;
    return -1;
}

int bench_target_is_local(const char *host)
{
    const struct bench_ask ask = { 0 };
    struct addrinfo *list = NULL;
    int r = addresses(host, NULL, host, &ask, &list);
    if (list)
        freeaddrinfo(list);
    return r;
}

static int resolve(struct bench_target *t, const struct bench_ask *ask)
{
    struct addrinfo *list = NULL;
    int status = addresses(t->url.host, t->url.port, t->text, ask, &list);
    if (status >= 0)
        return status;
    const struct addrinfo *best = list; /* localhost is ::1, too, where few servers listen */
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        if (a->ai_family == AF_INET && best->ai_family != AF_INET)
            best = a;
    memcpy(&t->load.address, best->ai_addr, best->ai_addrlen);
    t->load.address_len = best->ai_addrlen;
    freeaddrinfo(list);
    return -1;
}

/* The words of a command, with `gap` between them, as an array of bulk strings. */
static int format_command(struct bench_target *t, const struct bench_ask *ask, const char *command,
                          const char *gap)
{
    const char *word[WORDS_MAX], *p = command;
    size_t len[WORDS_MAX], n = 0, total = 0, what = 0;
    for (; *(p += strspn(p, gap)); p += len[n - 1]) {
        if (n == WORDS_MAX)
            return trouble(ask, "a command has at most %d words", WORDS_MAX);
        word[n] = p;
        len[n++] = strcspn(p, gap);
    }
    if (n == 0)
        return trouble(ask, "the command is empty: for instance --command \"INCR x\"");
    if (strlen(command) > REQUEST_BYTES_MAX / 2)
        return trouble(ask, "the command is too long");
    total = (size_t)snprintf(t->request, REQUEST_BYTES_MAX, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        total += (size_t)snprintf(t->request + total, REQUEST_BYTES_MAX - total, "$%zu\r\n%.*s\r\n",
                                  len[i], (int)len[i], word[i]);
        if (what + len[i] + 2 < sizeof t->what)
            what += (size_t)snprintf(t->what + what, sizeof t->what - what, "%s%.*s", i ? " " : "",
                                     (int)len[i], word[i]);
    }
    t->load.resp = true;
    t->load.request_len = total;
    return -1;
}

static int format_get(struct bench_target *t, const struct bench_ask *ask)
{
    const char *accept = ask->accept;
    static const struct {
        const char *type;
        enum id_body_form form;
    } forms[] = { { "text/plain", ID_BODY_LINES }, { "application/octet-stream", ID_BODY_BYTES } };
    size_t accept_len = accept ? strlen(accept) : 0;
    if (accept_len > 256 || strcspn(accept ? accept : "", "\r\n") != accept_len)
        return trouble(ask, "--accept: give a media type, such as text/plain");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (accept && strcmp(accept, forms[i].type) == 0)
            t->load.form = forms[i].form;
    t->load.request_len = (size_t)snprintf(
        t->request, REQUEST_BYTES_MAX, "GET %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", t->url.target,
        t->url.authority, accept ? "Accept: " : "", accept ? accept : "", accept ? "\r\n" : "");
    return -1;
}

static int init(struct bench_target *t, const char *text, const struct bench_ask *ask)
{
    *t = (struct bench_target){ .text = text, .request = malloc(REQUEST_BYTES_MAX) };
    t->load.request = t->request;
    return t->request ? -1 : trouble(ask, "out of memory");
}

static int wrong_address(const struct bench_target *t, const struct bench_ask *ask, const char *why)
{
    char shown[SAY_TEXT_BUF];
    return trouble(ask, "%s: %s", say_text(t->text, strlen(t->text), shown), why);
}

static int open_http(struct bench_target *t, const struct bench_ask *ask)
{
    const char *wrong = url_parse(t->text, &t->url);
    if (!wrong && t->url.https)
        wrong = URL_NO_HTTPS;
    if (wrong)
        return wrong_address(t, ask, wrong);
    int r = format_get(t, ask);
    return r >= 0 ? r : resolve(t, ask);
}

static int open_resp(struct bench_target *t, const char *address, const char *path,
                     const struct bench_ask *ask)
{
    const char *wrong = url_parse_address(address, &t->url);
    if (wrong)
        return wrong_address(t, ask, wrong);
    bool own = path && path[strspn(path, "/")] != '\0';
    const char *command = own ? path : ask->command ? ask->command : ask->otherwise;
    int r = format_command(t, ask, command, own ? "/" : " ");
    return r >= 0 ? r : resolve(t, ask);
}

static int open_redis(struct bench_target *t, const struct bench_ask *ask)
{
    char address[ADDRESS_MAX];
    const char *p = strstr(t->text, "://") + 3;
    size_t len = strcspn(p, "/");
    if (len >= sizeof address)
        return wrong_address(t, ask, "the host is too long");
    if (memchr(p, '@', len))
        return wrong_address(t, ask, "user and password are not supported here");
    memcpy(address, p, len);
    address[len] = '\0';
    return open_resp(t, address, p + len, ask);
}

/* The drivers. A further protocol is a row here. */
static const struct {
    const char *scheme;
    int (*open)(struct bench_target *t, const struct bench_ask *ask);
} drivers[] = {
    { "http://", open_http },
    { "https://", open_http }, /* which reports why not */
    { "redis://", open_redis },
    { "resp://", open_redis },
};

bool bench_target_known(const char *address)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strncmp(address, drivers[i].scheme, strlen(drivers[i].scheme)) == 0)
            return true;
    return false;
}

int bench_target_init(struct bench_target *t, const char *address, const struct bench_ask *ask)
{
    int r = init(t, address, ask);
    if (r >= 0)
        return r;
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strncmp(address, drivers[i].scheme, strlen(drivers[i].scheme)) == 0)
            return drivers[i].open(t, ask);
    return wrong_address(t, ask, "an address must begin with http:// or redis://");
}

int bench_target_init_resp(struct bench_target *t, const char *address, const struct bench_ask *ask)
{
    int r = init(t, address, ask);
    return r >= 0 ? r : open_resp(t, address, NULL, ask);
}

void bench_target_done(struct bench_target *t)
{
    free(t->request);
    t->request = NULL;
}

int bench_raise_fd_limit(uint64_t need)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= need)
        return -1;
    l.rlim_cur = l.rlim_max < need ? l.rlim_max : need;
    if (l.rlim_cur < need || setrlimit(RLIMIT_NOFILE, &l) != 0)
        return say_trouble("%" PRIu64 " open files are needed and the limit is %" PRIu64
                           ": raise it with ulimit -n, or ask for fewer connections",
                           need, (uint64_t)l.rlim_max);
    return -1;
}
