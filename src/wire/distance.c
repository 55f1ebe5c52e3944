/* Edit distance: Damerau-Levenshtein with adjacent transpositions, three rows at a time. */
#include "wire/distance.h"
#include "id/minmax.h"

size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    uint8_t rows[3][NEAREST_LEN_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];
    a_len = min64(a_len, NEAREST_LEN_MAX);
    b_len = min64(b_len, NEAREST_LEN_MAX);
    for (size_t k = 0; k <= b_len; k++)
        before[k] = last[k] = (uint8_t)k;
    for (size_t i = 1; i <= a_len; i++) {
        now[0] = (uint8_t)i;
        for (size_t k = 1; k <= b_len; k++) {
            size_t d = min64(last[k] + 1u, now[k - 1] + 1u);
            d = min64(d, last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                d = min64(d, before[k - 2] + 1u);
            now[k] = (uint8_t)d;
        }
        uint8_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b_len];
}

int edit_is_slip(size_t distance, size_t len)
{
    return distance <= 1 || distance <= len / 3;
}
