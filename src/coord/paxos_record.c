/*
 * An acceptor's memory as text:
 *     firn=px 1
 *     promised=12.00f1e2d3c4b5a697
 *     accepted=11.00f1e2d3c4b5a697
 *     tag=11.00f1e2d3c4b5a697
 *     before=9.00f1e2d3c4b5a697 0
 *     value=5
 *     bytes
 * "0" is no ballot, `value=-` an absent register. The bytes are the register's value.
 * Tests: tests/unit/coord/paxos.c; tests/fuzz/paxos.c.
 */
#include "coord/paxos.h"
#include "coord/record_form.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <string.h>

enum { DIGITS_MAX = 19, ID_DIGITS = 16, BALLOT_MAX = DIGITS_MAX + 1 + ID_DIGITS };

static const char head[] = "firn=px 1\n";

_Static_assert(sizeof head - 1 + 2 * (9 + BALLOT_MAX + 1) + 4 + BALLOT_MAX + 1 + 7 +
                       PAXOS_BEFORE_MAX * (BALLOT_MAX + 1) + 6 + 4 + 1 + PAXOS_VALUE_MAX <=
                   PAXOS_TEXT_MAX,
               "the longest record");

static char *put_text(char *p, const char *text)
{
    size_t n = strlen(text);
    memcpy(p, text, n);
    return p + n;
}

static char *put_number(char *p, uint64_t v)
{
    return p + record_put_number(p, v);
}

static char *put_ballot(char *p, struct ballot b)
{
    p = put_number(p, b.round);
    if (b.round == 0)
        return p;
    *p++ = '.';
    for (int shift = 60; shift >= 0; shift -= 4)
        *p++ = "0123456789abcdef"[b.id >> shift & 15];
    return p;
}

size_t paxos_encode(const struct paxos_acceptor *a, char out[PAXOS_TEXT_MAX])
{
    const struct paxos_value *v = &a->value;
    firn_assert(ballot_cmp(a->promised, a->accepted) >= 0 && ballot_cmp(v->tag, a->accepted) <= 0,
                "promised %" PRIu64 " accepted %" PRIu64 " tag %" PRIu64, a->promised.round,
                a->accepted.round, v->tag.round);
    firn_assert(v->before_n <= PAXOS_BEFORE_MAX && v->len <= PAXOS_VALUE_MAX);
    char *p = put_text(out, head);
    p = put_ballot(put_text(p, "promised="), a->promised);
    p = put_ballot(put_text(p, "\naccepted="), a->accepted);
    p = put_ballot(put_text(p, "\ntag="), v->tag);
    p = put_text(p, "\nbefore=");
    for (uint32_t i = 0; i < v->before_n; i++) {
        if (i > 0)
            *p++ = ' ';
        p = put_ballot(p, v->before[i]);
    }
    p = put_text(p, "\nvalue=");
    p = v->present ? put_number(p, v->len) : put_text(p, "-");
    *p++ = '\n';
    if (v->present && v->len > 0)
        memcpy(p, v->bytes, v->len);
    size_t len = (size_t)(p - out) + (v->present ? v->len : 0);
    firn_assert(len <= PAXOS_TEXT_MAX, "%zu bytes", len);
    return len;
}

struct text { /* the bytes that are not read yet */
    const char *p, *end;
};

static bool skip(struct text *t, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
        return false;
    t->p += n;
    return true;
}

/* Digits as put_number() writes them, at most DIGITS_MAX - 1: far above any round that is ever
 * reached. */
static bool get_number(struct text *t, uint64_t *out)
{
    const char *from = t->p;
    uint64_t v = 0;
    while (t->p < t->end && *t->p >= '0' && *t->p <= '9' && t->p - from < DIGITS_MAX)
        v = v * 10 + (uint64_t)(*t->p++ - '0');
    *out = v;
    return t->p > from && t->p - from < DIGITS_MAX && (*from != '0' || t->p - from == 1);
}

static bool get_ballot(struct text *t, struct ballot *out)
{
    *out = (struct ballot){ 0 };
    if (!get_number(t, &out->round))
        return false;
    if (out->round == 0)
        return true;
    if (!skip(t, ".") || t->end - t->p < ID_DIGITS)
        return false;
    for (int i = 0; i < ID_DIGITS; i++) {
        char c = *t->p++;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        out->id = out->id << 4 | (uint64_t)digit;
    }
    return true;
}

static bool get_before(struct text *t, struct paxos_value *v)
{
    if (skip(t, "\n"))
        return true;
    do {
        if (v->before_n == PAXOS_BEFORE_MAX || !get_ballot(t, &v->before[v->before_n++]))
            return false;
    } while (skip(t, " "));
    return skip(t, "\n");
}

static bool get_bytes(struct text *t, struct paxos_value *v)
{
    uint64_t len;
    if (skip(t, "-\n"))
        return t->p == t->end;
    if (!get_number(t, &len) || !skip(t, "\n") || len > PAXOS_VALUE_MAX ||
        len != (uint64_t)(t->end - t->p))
        return false;
    v->present = true;
    v->len = (uint32_t)len;
    if (len > 0)
        memcpy(v->bytes, t->p, len);
    return true;
}

int paxos_parse(const char *p, size_t len, struct paxos_acceptor *out, struct firn_diag *d)
{
    struct text t = { p, p + len };
    struct paxos_acceptor a = { 0 };
    struct paxos_value *v = &a.value;
    bool ok = skip(&t, head) && skip(&t, "promised=") && get_ballot(&t, &a.promised) &&
              skip(&t, "\naccepted=") && get_ballot(&t, &a.accepted) && skip(&t, "\ntag=") &&
              get_ballot(&t, &v->tag) && skip(&t, "\nbefore=") && get_before(&t, v) &&
              skip(&t, "value=") && get_bytes(&t, v);
    if (!ok)
        return firn__diag(d, FIRN_EFORMAT, (size_t)(t.p - p) + 1,
                          "not the record of an acceptor, from byte %zu on", (size_t)(t.p - p));
    if (ballot_cmp(a.promised, a.accepted) < 0 || ballot_cmp(v->tag, a.accepted) > 0 ||
        (v->tag.round == 0) != (v->before_n == 0) || (v->tag.round == 0 && v->present))
        return firn__diag(d, FIRN_EFORMAT, 0, "the record of the acceptor contradicts itself");
    *out = a;
    return 0;
}
