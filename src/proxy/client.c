/*
 * Addresses of clients, read from the right: each proxy adds its peer at the end, so what stands
 * before an address that no trusted proxy has is the client's own invention. Tested in
 * tests/unit/proxy/client.c and tests/integration/gateway.py.
 */
#include "proxy/client.h"
#include "proxy/worker.h"
#include "wire/http_line.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

enum { HOPS_MAX = 32 }; /* of a Forwarded: each costs a look at all of it */

bool client_address(struct slice text, struct sockaddr_storage *sa, char out[PEER_ADDRESS_BUF])
{
    char t[PEER_ADDRESS_BUF];
    struct sockaddr_in *in = (struct sockaddr_in *)sa;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
    text = http_trim(text);
    if (text.len > 1 && text.p[0] == '[') {
        const char *end = memchr(text.p, ']', text.len);
        text = (struct slice){ text.p + 1, end ? (size_t)(end - text.p - 1) : 0 };
    } else if (text.len > 0) {
        const char *colon = memchr(text.p, ':', text.len);
        bool one = colon && !memchr(colon + 1, ':', text.len - (size_t)(colon + 1 - text.p));
        text.len = one ? (size_t)(colon - text.p) : text.len;
    }
    if (text.len == 0 || text.len >= sizeof t)
        return false;
    memcpy(t, text.p, text.len);
    t[text.len] = '\0';
    memset(sa, 0, sizeof *sa);
    if (inet_pton(AF_INET, t, &in->sin_addr) == 1)
        in->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, t, &in6->sin6_addr) == 1)
        in6->sin6_family = AF_INET6;
    else
        return false;
    snprintf(out, PEER_ADDRESS_BUF, "%s", t);
    return true;
}

/* The end of the text up to the last `mark` outside quotes; the text becomes what is before it.
 * False: a quote is open, perhaps one that a client left open to hide what proxies added. */
static bool last_part(struct slice *text, char mark, struct slice *out)
{
    const char *at = NULL;
    bool quoted = false;
    for (size_t i = 0; i < text->len; i++) {
        char ch = text->p[i];
        if (ch == '\\' && quoted)
            i++;
        else if (ch == '"')
            quoted = !quoted;
        else if (ch == mark && !quoted)
            at = text->p + i;
    }
    *out = at ? (struct slice){ at + 1, text->len - (size_t)(at + 1 - text->p) } : *text;
    text->len = at ? (size_t)(at - text->p) : 0;
    return !quoted;
}

/* The value of "for" among the pairs of an element, without quotes; absent if it cannot be read. */
static struct slice for_of(struct slice element)
{
    struct slice pair, found = { NULL, 0 };
    while (element.len > 0 && last_part(&element, ';', &pair)) {
        pair = http_trim(pair);
        const char *equals = pair.len > 0 ? memchr(pair.p, '=', pair.len) : NULL;
        size_t n = equals ? (size_t)(equals - pair.p) : 0;
        struct slice v = { equals + (equals != NULL), equals ? pair.len - n - 1 : 0 };
        if (!http_word_is((struct slice){ pair.p, n }, "for"))
            continue;
        if (found.p)
            return (struct slice){ NULL, 0 }; /* two of them */
        if (v.len > 1 && v.p[0] == '"' && v.p[v.len - 1] == '"')
            v = (struct slice){ v.p + 1, v.len - 2 };
        found = v;
    }
    return found;
}

bool client_hop(struct slice *list, bool forwarded, struct slice *out)
{
    struct slice element;
    if (!forwarded) {
        const char *comma = list->len > 0 ? memrchr(list->p, ',', list->len) : NULL;
        *out = comma ? (struct slice){ comma + 1, list->len - (size_t)(comma + 1 - list->p) }
                     : *list;
        list->len = comma ? (size_t)(comma - list->p) : 0;
        return out->len > 0;
    }
    if (!last_part(list, ',', &element))
        return false;
    *out = for_of(element);
    return out->p != NULL;
}

struct slice client_host(const char *peer)
{
    const char *colon = strrchr(peer, ':');
    size_t len = colon ? (size_t)(colon - peer) : strlen(peer);
    bool v6 = len > 1 && peer[0] == '[' && peer[len - 1] == ']';
    return (struct slice){ peer + v6, len - (v6 ? 2 : 0) };
}

void client_find(struct call *c)
{
    const struct http_head *h = c->head;
    const struct plan *plan = c->view->plan;
    struct sockaddr_storage sa;
    char text[PEER_ADDRESS_BUF];
    edge_address(c->q, c->peer, &sa);
    struct slice host = client_host(c->peer), hop;
    memcpy(c->client, host.p, host.len);
    c->client[host.len] = '\0';
    c->trusted = plan_trusts(plan, (struct sockaddr *)&sa);
    if (!c->trusted)
        return;
    bool forwarded = !http_head_value(h, "x-forwarded-for").p;
    const char *name = forwarded ? "forwarded" : "x-forwarded-for";
    unsigned hops = 0;
    for (size_t i = h->headers; i-- > 0;) {
        struct slice list = h->header[i].value;
        if (!http_word_is(h->header[i].name, name))
            continue;
        while (list.len > 0) {
            if ((forwarded && hops++ == HOPS_MAX) || !client_hop(&list, forwarded, &hop) ||
                !client_address(hop, &sa, text))
                return;
            snprintf(c->client, sizeof c->client, "%s", text);
            if (!plan_trusts(plan, (struct sockaddr *)&sa))
                return;
        }
    }
}

/* What the fields of that name list, then `last`, in one field. */
static void join(struct call *c, const char *name, const char *lower, struct slice last)
{
    struct fields *f = &c->request;
    struct buf list;
    buf_init(&list, HTTP_HEAD_BYTES_MAX);
    for (size_t i = 0; i < f->n; i++)
        if (http_word_is(f->v[i].name, lower)) {
            buf_add(&list, f->v[i].value.p, f->v[i].value.len);
            buf_add_str(&list, ", ");
        }
    buf_add(&list, last.p, last.len);
    struct slice all = call_copy(c, (struct slice){ list.p, list.len });
    f->failed |= list.failed || !all.p;
    buf_done(&list);
    fields_remove(f, slice_of(name));
    fields_add(f, slice_of(name), all);
}

/* The peer as an element of RFC 7239. A quote that is open would take it in: then it stands
 * alone. */
static void tell_forwarded(struct call *c, struct slice host, bool none)
{
    const struct http_head *h = c->head;
    bool whole = true;
    for (size_t i = 0; i < c->request.n; i++) {
        struct slice list = c->request.v[i].value, last;
        if (http_word_is(c->request.v[i].name, "forwarded"))
            whole &= last_part(&list, ',', &last);
    }
    if (!whole)
        fields_remove(&c->request, slice_of("Forwarded"));
    char element[PEER_ADDRESS_BUF + 320];
    bool v6 = !none && memchr(host.p, ':', host.len) != NULL, named = h->host.len < 256;
    int n = snprintf(element, sizeof element, "for=%s%.*s%s;proto=%s", v6 ? "\"[" : "",
                     (int)host.len, host.p, v6 ? "]\"" : "", c->q->tls ? "https" : "http");
    if (h->host.len > 0 && named)
        n += snprintf(element + n, sizeof element - (size_t)n, ";host=\"%.*s\"", (int)h->host.len,
                      h->host.p);
    join(c, "Forwarded", "forwarded", (struct slice){ element, (size_t)n });
}

void client_tell(struct call *c)
{
    struct fields *f = &c->request;
    const struct http_head *h = c->head;
    bool none = c->peer[0] == '?' || c->peer[0] == 'u'; /* "unix" */
    struct slice host = none ? slice_of("unknown") : client_host(c->peer);
    if (fields_get(f, "x-forwarded-for").p)
        join(c, "X-Forwarded-For", "x-forwarded-for", host);
    else
        fields_add(f, slice_of("X-Forwarded-For"), host);
    if (fields_get(f, "forwarded").p)
        tell_forwarded(c, host, none);
    if (!fields_get(f, "x-forwarded-proto").p)
        fields_add(f, slice_of("X-Forwarded-Proto"), slice_of(c->q->tls ? "https" : "http"));
    if (!fields_get(f, "x-forwarded-host").p && h->host.p)
        fields_add(f, slice_of("X-Forwarded-Host"), h->host);
}
