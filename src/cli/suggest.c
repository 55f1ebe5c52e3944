/* Finds the candidate nearest to a mistyped word. */
#include "cli/suggest.h"
#include "wire/distance.h"

#include <stdint.h>
#include <string.h>

enum { WORD_MAX = 32 }; /* longer words are not mistyped commands */

void suggest_init(struct suggest *s, const char *typed)
{
    *s = (struct suggest){ .typed = typed, .distance = SIZE_MAX };
}

void suggest_try(struct suggest *s, const char *candidate)
{
    size_t typed_len = strlen(s->typed), len = strlen(candidate);
    if (typed_len == 0 || typed_len > WORD_MAX || len > WORD_MAX)
        return;
    size_t d = edit_distance(s->typed, typed_len, candidate, len);
    /* The beginning of a word is as good as a near miss. */
    if (d > (len + 2) / 3 && (typed_len < 2 || strncmp(candidate, s->typed, typed_len) != 0))
        return;
    if (d < s->distance) {
        s->best = candidate;
        s->distance = d;
    }
}
