/* Reads the URL and options of a client: firn://a:9001,b:9001/?mode=prefetch. */
#include "client/url.h"
#include "id/diag.h"
#include "wire/url.h"
#include "wire/distance.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_type { OPTION_TEXT, OPTION_CHOICE, OPTION_BOOL, OPTION_COUNT, OPTION_TIME };

struct option {
    const char *name;
    enum option_type type;
    size_t offset;
    const char *preset;
    const char *choices; /* OPTION_CHOICE: "a|b", in the order of the enum */
    uint64_t min, max;
};

#define AT(field) offsetof(struct client_opts, field)
#define HOUR_MS   (UINT64_C(3600) * 1000)

static const struct option options[] = {
    { "mode", OPTION_CHOICE, AT(mode), "remote", "remote|prefetch|leased", 0, 0 },
    { "proto", OPTION_CHOICE, AT(proto), "http", "http|resp", 0, 0 },
    { "kind", OPTION_TEXT, AT(kind), "", NULL, 0, 0 },
    { "seq", OPTION_TEXT, AT(seq), "", NULL, 0, 0 },
    { "token", OPTION_TEXT, AT(token), "", NULL, 0, 0 },
    { "token_file", OPTION_TEXT, AT(token_file), "", NULL, 0, 0 },
    { "timeout", OPTION_TIME, AT(timeout_ms), "2s", NULL, 1, HOUR_MS },
    { "retries", OPTION_COUNT, AT(retries), "3", NULL, 0, 100 },
    { "retry_delay", OPTION_TIME, AT(retry_delay_ms), "1s", NULL, 0, HOUR_MS },
    { "deadline", OPTION_TIME, AT(deadline_ms), "0s", NULL, 0, 24 * HOUR_MS },
    { "fresh", OPTION_TIME, AT(fresh_ms), "1s", NULL, 0, 24 * HOUR_MS },
    { "block", OPTION_COUNT, AT(block), "100000", NULL, 1, 10000000 },
    { "tls", OPTION_BOOL, AT(tls), "0", NULL, 0, 0 },
    { "ca", OPTION_TEXT, AT(ca), "", NULL, 0, 0 },
    { "cert", OPTION_TEXT, AT(cert), "", NULL, 0, 0 },
    { "key", OPTION_TEXT, AT(key), "", NULL, 0, 0 },
    { "discover", OPTION_BOOL, AT(discover), "0", NULL, 0, 0 },
    { "background", OPTION_BOOL, AT(background), "0", NULL, 0, 0 },
};

enum { OPTIONS_N = sizeof options / sizeof options[0], OPTION_FRESH = 10, NAME_MAX_ = 32 };

/* --- names that are nearly right --- */

static int unknown_option(const char *url, struct slice name, struct firn_diag *d)
{
    const char *near = options[0].name;
    size_t best = (size_t)-1;
    for (size_t i = 0; i < OPTIONS_N; i++) {
        size_t far = edit_distance(name.p, name.len, options[i].name, strlen(options[i].name));
        if (far < best) {
            best = far;
            near = options[i].name;
        }
    }
    return firn__diag(d, FIRN_EINVAL, (size_t)(name.p - url) + 1,
                      "unknown option '%.*s': did you mean %s? (libfirn-client(3) lists all)",
                      (int)(name.len < NAME_MAX_ ? name.len : NAME_MAX_), name.p, near);
}

/* --- values --- */

/* Percent-decoded; a line break has no business in a header field or a file's name. */
static int decode(struct slice v, char *out, size_t cap)
{
    int r = url_decode(v, false, out, cap, NULL);
    for (const char *c = out; r == 0 && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            r = FIRN_EFORMAT;
    return r == FIRN_ENOSPC ? FIRN_ERANGE : r;
}

static int read_number(const char *p, uint64_t *out, const char **end)
{
    uint64_t n = 0;
    if (*p < '0' || *p > '9')
        return FIRN_EFORMAT;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return FIRN_ERANGE;
    *out = n;
    *end = p;
    return 0;
}

/* "2s", "250ms", "1m": a bare number would leave the unit to be guessed. */
static int read_time(const char *p, uint64_t *out)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", HOUR_MS } };
    const char *unit;
    int r = read_number(p, out, &unit);
    if (r)
        return r;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0)
            return __builtin_mul_overflow(*out, units[i].ms, out) ? FIRN_ERANGE : 0;
    return FIRN_EFORMAT;
}

/* The place of `p` in "a|b|c", or -1. */
static int read_choice(const char *choices, const char *p)
{
    size_t len = strlen(p);
    for (int i = 0;; i++) {
        size_t n = strcspn(choices, "|");
        if (n == len && memcmp(choices, p, n) == 0)
            return i;
        if (choices[n] == '\0')
            return -1;
        choices += n + 1;
    }
}

/* Reads a value; *want describes what is expected, for the error. */
static int set(const struct option *o, const char *value, struct client_opts *c, const char **want)
{
    void *at = (char *)c + o->offset;
    const char *end = "";
    uint64_t n = 0;
    int r = 0, i;
    switch (o->type) {
    case OPTION_TEXT:
        memcpy(at, value, strlen(value) + 1);
        return 0;
    case OPTION_CHOICE:
    case OPTION_BOOL:
        *want = o->type == OPTION_BOOL ? "0|1" : o->choices;
        i = read_choice(*want, value);
        if (i >= 0)
            memcpy(at, &(uint32_t){ (uint32_t)i }, sizeof(uint32_t));
        return i >= 0 ? 0 : FIRN_EFORMAT;
    case OPTION_COUNT:
        *want = "a whole number";
        r = read_number(value, &n, &end);
        if (r == 0 && *end)
            r = FIRN_EFORMAT;
        break;
    case OPTION_TIME:
        *want = "a time with its unit, such as 250ms, 2s or 1m";
        r = read_time(value, &n);
        break;
    }
    if (r == 0 && (n < o->min || n > o->max))
        r = FIRN_ERANGE;
    if (r == 0)
        memcpy(at, &n, sizeof n);
    return r;
}

static int read_option(const char *url, struct slice name, struct slice raw, struct client_opts *c,
                       uint32_t *seen, struct firn_diag *d)
{
    size_t column = (size_t)(name.p - url) + 1;
    char value[VALUE_BUF];
    for (size_t i = 0; i < OPTIONS_N; i++) {
        const struct option *o = &options[i];
        const char *want = "a text without line breaks";
        if (!slice_is(name, o->name))
            continue;
        if (*seen >> i & 1)
            return firn__diag(d, FIRN_EINVAL, column, "%s is given twice", o->name);
        *seen |= UINT32_C(1) << i;
        int r = decode(raw, value, sizeof value);
        if (r == 0)
            r = set(o, value, c, &want);
        if (r == FIRN_ERANGE)
            return firn__diag(d, r, column, "the value of %s is out of range", o->name);
        return r ? firn__diag(d, r, column, "%s must be %s", o->name, want) : 0;
    }
    return unknown_option(url, name, d);
}

/* --- servers --- */

static int not_in_a_host(char c, size_t column, struct firn_diag *d)
{
    return firn__diag(
        d, FIRN_EFORMAT, column,
        "'%c' is not allowed in a host name; give a token as ?token=", c > ' ' ? c : ' ');
}

static int read_server(const char *url, struct slice t, struct server_name *out,
                       struct firn_diag *d)
{
    static const char *const trouble[] = {
        [HOST_OPEN_BRACKET] = "']' is missing: write [::1]:9001",
        [HOST_AFTER_BRACKET] = "after ']' comes a port: [::1]:9001",
        [HOST_BAD_PORT] = "a port is a number from 1 to 65535",
        [HOST_LONG] = "a server is HOST or HOST:PORT, as in a:9001",
        [HOST_COLONS] = "an IPv6 address needs brackets: [::1]:9001",
        [HOST_EMPTY] = "a server is HOST or HOST:PORT, as in a:9001",
    };
    struct host_port h;
    size_t column = (size_t)(t.p - url) + 1;
    enum host_error e = host_port_read(t, &h);
    if (e == HOST_OK && h.has_port && h.port == 0)
        e = HOST_BAD_PORT;
    if (e != HOST_OK)
        return firn__diag(d, FIRN_EFORMAT, column, "%s", trouble[e]);
    for (const char *p = h.host; *p; p++)
        if ((unsigned char)*p <= ' ' || strchr("@\"\\<>#", *p))
            return not_in_a_host(*p, column, d);
    snprintf(out->host, sizeof out->host, "%s", h.host);
    out->port = h.has_port ? h.port : PORT_DEFAULT;
    return 0;
}

static int read_servers(const char *url, struct slice hosts, struct client_opts *c,
                        struct firn_diag *d)
{
    struct slice one;
    while (url_host_next(&hosts, &one)) {
        if (c->servers == SERVERS_MAX)
            return firn__diag(d, FIRN_ERANGE, (size_t)(one.p - url) + 1,
                              "too many servers (at most %d)", SERVERS_MAX);
        int r = read_server(url, one, &c->server[c->servers], d);
        if (r)
            return r;
        c->servers++;
    }
    return 0;
}

/* --- all options together --- */

/* Defaults that depend on other options, and options that exclude each other. */
static int check(struct client_opts *c, struct firn_diag *d)
{
    if (c->kind[0] == '\0')
        snprintf(c->kind, sizeof c->kind, "%s", c->seq[0] ? "ticket" : "snowflake");
    bool ticket = strcmp(c->kind, "ticket") == 0, dated = strcmp(c->kind, "dated") == 0;
    if (c->seq[0] && !ticket && !dated)
        return firn__diag(d, FIRN_EINVAL, 0, "seq is for tickets: leave out kind=%.40s, or seq",
                          c->kind);
    if (ticket && c->seq[0] == '\0')
        snprintf(c->seq, sizeof c->seq, "default");
    if (strspn(c->kind, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(c->kind) ||
        strspn(c->seq, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-") !=
            strlen(c->seq) ||
        strlen(c->seq) > 64 || strlen(c->kind) > 32)
        return firn__diag(
            d, FIRN_EFORMAT, 0,
            "a kind has letters and digits, a sequence up to 64 of A-Z a-z 0-9 . _ : -");
    bool snowflake = strcmp(c->kind, "snowflake") == 0;
    if (c->mode == MODE_LEASED && !snowflake)
        return firn__diag(d, FIRN_EINVAL, 0, "mode=leased makes Snowflake IDs, not kind=%.40s",
                          c->kind);
    if (c->mode == MODE_PREFETCH && !snowflake && !ticket && strcmp(c->kind, "sonyflake") != 0)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "mode=prefetch is for snowflake, sonyflake and range tickets; make "
                          "kind=%.40s with mode=remote, or with libfirn",
                          c->kind);
    if (c->token[0] && c->token_file[0])
        return firn__diag(d, FIRN_EINVAL, 0, "token and token_file exclude each other: give one");
    if (!c->tls && (c->ca[0] || c->cert[0] || c->key[0]))
        return firn__diag(d, FIRN_EINVAL, 0, "ca, cert and key need TLS: use firns://, or tls=1");
    if (!c->cert[0] != !c->key[0])
        return firn__diag(d, FIRN_EINVAL, 0, "cert and key need each other: give both");
    if (c->proto == PROTO_RESP && c->block > RESP_BLOCK_MAX)
        c->block = RESP_BLOCK_MAX;
    if (c->fresh_ms && c->fresh_ms < FRESH_MIN_MS)
        return firn__diag(d, FIRN_ERANGE, 0,
                          "fresh must be at least %d ms, or 0s for any age; for fresher IDs "
                          "use mode=remote",
                          FRESH_MIN_MS);
    if (c->deadline_ms == 0)
        c->deadline_ms = c->timeout_ms + c->retries * (c->timeout_ms + c->retry_delay_ms);
    return 0;
}

int client_url_parse(const char *url, struct client_opts *out, struct firn_diag *d)
{
    struct client_opts c = { .servers = 0 };
    uint32_t seen = 0;
    const char *want;
    struct url_parts p;
    struct slice name, value;
    bool split = url_split((struct slice){ url, strlen(url) }, &p);
    bool tls = split && slice_is(p.scheme, "firns");
    if (!tls && !(split && slice_is(p.scheme, "firn")))
        return firn__diag(d, FIRN_EFORMAT, 1,
                          "a URL begins with firn:// or firns://, as in firn://a:9001,b:9001");
    for (size_t i = 0; i < OPTIONS_N; i++)
        if (set(&options[i], options[i].preset, &c, &want) != 0)
            abort(); /* a row of the table */
    if (p.user.p || p.target.p[0] == '#')
        return not_in_a_host(p.user.p ? '@' : '#', p.scheme.len + 4, d);
    int r = read_servers(url, p.hosts, &c, d);
    if (r)
        return r;
    if (p.path.len > 0 || (p.path.p && *p.path.p == '#'))
        return firn__diag(d, FIRN_EFORMAT, (size_t)(p.path.p - url) + 1,
                          "a path is not allowed: options follow the servers as /?OPTION=VALUE");
    while (url_query_next(&p.query, &name, &value))
        if ((r = read_option(url, name, value, &c, &seen, d)) != 0)
            return r;
    c.tls |= tls;
    if (c.seq[0] && !(seen >> OPTION_FRESH & 1))
        c.fresh_ms = 0; /* a ticket says nothing about time: it may wait, and a gap costs more */
    r = check(&c, d);
    if (r == 0)
        *out = c;
    return r;
}
