/*
 * Any text, read as every kind and by firn_detect(). What is read must read the same again from its
 * canonical text, and what is refused must leave the output alone.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "firn/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CAP = 40 }; /* more than there are kinds and presets */

#define NOW_MS INT64_C(1800000000000) /* 2027: fixed, so that a finding replays */

static void check(int ok)
{
    if (!ok)
        abort();
}

static void check_same(const struct firn_reading *a, const struct firn_reading *b)
{
    check(a->kind == b->kind && strcmp(a->layout, b->layout) == 0 && strcmp(a->text, b->text) == 0);
    check(a->has_time == b->has_time && a->unix_us == b->unix_us && a->number == b->number);
    check(a->bytes_len == b->bytes_len && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0);
    check(a->fields_n == b->fields_n);
    for (uint32_t i = 0; i < a->fields_n; i++) {
        const struct firn_read_field *f = &a->field[i], *g = &b->field[i];
        check(strcmp(f->name, g->name) == 0 && strcmp(f->value, g->value) == 0);
        check(f->bit == g->bit && f->bits == g->bits);
    }
}

/* Every string ends inside its array, and every field lies inside the binary form. */
static void check_sound(const struct firn_reading *r)
{
    check(memchr(r->text, 0, sizeof r->text) && memchr(r->layout, 0, sizeof r->layout));
    check(r->bytes_len <= FIRN_READ_BYTES_MAX && r->fields_n <= FIRN_READ_FIELDS_MAX);
    check(r->kind->bits == 0 || r->bytes_len * 8 == r->kind->bits);
    for (uint32_t i = 0; i < r->fields_n; i++) {
        const struct firn_read_field *f = &r->field[i];
        check(memchr(f->name, 0, sizeof f->name) && f->name[0]);
        check(memchr(f->value, 0, sizeof f->value) && f->value[0]);
        check(f->bit + f->bits <= (int)r->bytes_len * 8);
    }
}

static void read_as(const struct firn_kind *kind, const struct firn_layout *l, const char *p,
                    size_t len)
{
    struct firn_reading r, again;
    struct firn_diag diag = { 0, "" };
    r.kind = NULL;
    int e = firn_read(kind, p, len, l, &r, &diag);
    if (e != 0) {
        check(r.kind == NULL && (e == FIRN_EFORMAT || e == FIRN_ERANGE));
        check(diag.text[0] && memchr(diag.text, 0, sizeof diag.text) && diag.column <= len + 1);
        return;
    }
    bool any_uuid = strcmp(kind->name, "uuid") == 0; /* it is told as the kind of its version */
    check(r.kind == kind || (any_uuid && strncmp(r.kind->name, "uuidv", 5) == 0));
    check_sound(&r);
    check(firn_read(kind, r.text, strlen(r.text), l, &again, NULL) == 0);
    check_same(&r, &again);
}

static void detect(const char *p, size_t len)
{
    static struct firn_reading found[CAP], best;
    size_t n = CAP + 1, one = 2;
    check(firn_detect(p, len, NOW_MS, found, CAP, &n) == 0 && n < CAP);
    for (size_t i = 0; i < n; i++) {
        check(found[i].score >= 0 && found[i].score <= 100);
        check(i == 0 || found[i].score <= found[i - 1].score);
        check_sound(&found[i]);
    }
    check(firn_detect(p, len, NOW_MS, &best, 1, &one) == 0 && one == (n > 0));
    if (n > 0)
        check_same(&best, &found[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    size_t n;
    const struct firn_kind *kind = firn_kinds(&n);
    for (size_t i = 0; i < n; i++)
        read_as(&kind[i], NULL, p, size);

    const struct firn_preset *preset = firn_layout_presets(&n);
    for (size_t i = 0; i < n; i++) {
        struct firn_layout l;
        check(firn_layout_parse(preset[i].name, strlen(preset[i].name), 0, &l, NULL) == 0);
        read_as(firn_kind_find("snowflake", 9), &l, p, size);
    }
    detect(p, size);
    return 0;
}
