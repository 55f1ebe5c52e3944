/*
 * The forms that people write: tickets, dated counters, prefixes, 17-digit stamps, RFC 3339 times.
 * What parses must be written back, to the same text where a value has one text.
 */
#include <stdlib.h>
#include <string.h>

#include "firn/dated.h"
#include "firn/prefixed.h"
#include "firn/stamp17.h"
#include "firn/ticket.h"
#include "id/civil.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

static void ticket(const char *p, size_t len)
{
    char text[FIRN_TICKET_TEXT_BUF];
    uint64_t n = 0;
    int r = firn_ticket_parse(p, len, &n);
    if (r) {
        check(n == 0 && (r == FIRN_EFORMAT || r == FIRN_ERANGE));
        return;
    }
    check(firn_ticket_format(n, text) == len && memcmp(text, p, len) == 0);
    check(firn_ticket_check(n, n % 7, 7) == 0);
    check(firn_ticket_check(n, (n + 1) % 7, 7) == FIRN_ERANGE);
}

static void dated(const char *p, size_t len)
{
    struct firn_dated d, again, next;
    struct firn_dated_gen g;
    char text[FIRN_DATED_TEXT_BUF];
    if (firn_dated_parse(p, len, 0, &d) != 0) {
        for (unsigned digits = 1; digits <= FIRN_DATED_DIGITS_MAX; digits++)
            check(firn_dated_parse(p, len, digits, &d) == FIRN_EFORMAT);
        return;
    }
    check(firn_dated_format(&d, text) == len && memcmp(text, p, len) == 0);
    check(firn_dated_parse(p, len, d.digits, &again) == 0 && firn_dated_cmp(&d, &again) == 0);
    /* The counter goes on from any ID, at any time: never the same, never back. */
    check(firn_dated_gen_resume(&g, &d) == 0);
    int r = firn_dated_next(&g, (int64_t)(d.number % FIRN__UNIX_S_MAX), &next);
    check(r == FIRN_EOVERFLOW || (r == 0 && firn_dated_cmp(&next, &d) > 0));
}

static void prefixed(const char *p, size_t len)
{
    struct firn_prefixed s = { NULL, 0, NULL, 0 };
    struct firn_diag diag = { 0, "" };
    if (firn_prefixed_split(p, len, &s, &diag) != 0) {
        check(s.prefix == NULL && diag.text[0] && diag.column <= len + 1);
        return;
    }
    check(s.prefix == p && s.rest == p + s.prefix_len + 1 && s.prefix_len + 1 + s.rest_len == len);
    check(firn_prefix_check(s.prefix, s.prefix_len, NULL) == 0);
    const char *rest;
    size_t rest_len, out_len;
    check(firn_prefixed_strip(p, len, s.prefix, s.prefix_len, &rest, &rest_len, NULL) == 0);
    check(rest == s.rest && rest_len == s.rest_len);
    check(firn_prefixed_strip(p, len, "zz9plural", 9, &rest, &rest_len, NULL) == FIRN_EFORMAT ||
          (s.prefix_len == 9 && memcmp(s.prefix, "zz9plural", 9) == 0));
    char *out = malloc(len + 1);
    check(out != NULL);
    check(firn_prefixed_join(s.prefix, s.prefix_len, s.rest, s.rest_len, out, len, &out_len,
                             NULL) == FIRN_ENOSPC);
    check(firn_prefixed_join(s.prefix, s.prefix_len, s.rest, s.rest_len, out, len + 1, &out_len,
                             NULL) == 0);
    check(out_len == len && memcmp(out, p, len) == 0 && out[len] == '\0');
    free(out);
}

/* A stamp is the digits of an RFC 3339 time with milliseconds, in UTC. */
static void stamp17(const char *p, size_t len)
{
    int64_t ms = INT64_MAX;
    int r = firn_stamp17_parse(p, len, &ms);
    if (r) {
        check(r == FIRN_EFORMAT && ms == INT64_MAX);
        return;
    }
    char text[FIRN__RFC3339_BUF], digits[FIRN__RFC3339_BUF];
    int64_t s = ms / 1000 - (ms % 1000 < 0);
    struct firn__time t = { s, (uint32_t)(ms - s * 1000) * 1000000 };
    size_t n = 0, text_len = firn__rfc3339_format(t, 3, text, sizeof text);
    for (size_t i = 0; i < text_len; i++)
        if (text[i] >= '0' && text[i] <= '9')
            digits[n++] = text[i];
    check(len == FIRN_STAMP17_TEXT_LEN && n == len && memcmp(digits, p, len) == 0);
}

static void rfc3339(const char *p, size_t len)
{
    struct firn__time t = { 0, 77 }, again;
    int r = firn__rfc3339_parse(p, len, &t);
    if (r) {
        check(t.ns == 77 && (r == FIRN_EFORMAT || r == FIRN_ERANGE));
        return;
    }
    char text[FIRN__RFC3339_BUF];
    check(t.ns <= 999999999 && t.unix_s >= FIRN__UNIX_S_MIN && t.unix_s <= FIRN__UNIX_S_MAX);
    size_t text_len = firn__rfc3339_format(t, 9, text, sizeof text);
    check(text_len == sizeof text - 1 && firn__rfc3339_parse(text, text_len, &again) == 0);
    check(again.unix_s == t.unix_s && again.ns == t.ns);
    /* With fewer digits time is cut: it stays in the same second. */
    text_len = firn__rfc3339_format(t, 0, text, sizeof text);
    check(firn__rfc3339_parse(text, text_len, &again) == 0);
    check(again.unix_s == t.unix_s && again.ns == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    ticket(p, size);
    dated(p, size);
    prefixed(p, size);
    stamp17(p, size);
    rfc3339(p, size);
    return 0;
}
