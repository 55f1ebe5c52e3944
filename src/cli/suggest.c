#include "cli/suggest.h"

#include <stdint.h>
#include <string.h>

enum { WORD_MAX = 32 }; /* longer words are not mistyped commands */

/* Edits (insert, delete, change, swap neighbours) that turn one word into the other. */
static size_t edits(const char *a, size_t alen, const char *b, size_t blen)
{
    size_t row[3][WORD_MAX + 1]; /* of the table: i-2, i-1 and i, taking turns */
    for (size_t j = 0; j <= blen; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= alen; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= blen; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[alen % 3][blen];
}

void suggest_init(struct suggest *s, const char *typed)
{
    *s = (struct suggest){ .typed = typed, .distance = SIZE_MAX };
}

void suggest_try(struct suggest *s, const char *candidate)
{
    size_t typed_len = strlen(s->typed), len = strlen(candidate);
    if (typed_len == 0 || typed_len > WORD_MAX || len > WORD_MAX)
        return;
    size_t d = edits(s->typed, typed_len, candidate, len);
    /* The beginning of a word is as good as a near miss. */
    if (d > (len + 2) / 3 && (typed_len < 2 || strncmp(candidate, s->typed, typed_len) != 0))
        return;
    if (d < s->distance) {
        s->best = candidate;
        s->distance = d;
    }
}
