/* The note in a dated sequence's record: when it begins anew, and how many digits its numbers have.
 * Tested in tests/unit/server/http.c. */
#include "firn/dated.h"
#include "server/coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const reset_names[] = { "day", "month", "year" };

void dated_note_format(uint32_t reset, uint32_t digits, char out[RECORD_NOTE_MAX + 1])
{
    snprintf(out, RECORD_NOTE_MAX + 1, "dated:%s:%u", reset_names[reset], digits);
}

int dated_note_parse(const char *note, uint32_t *out_reset, uint32_t *out_digits)
{
    for (uint32_t i = 0; i < 3; i++) {
        char prefix[16];
        int n = snprintf(prefix, sizeof prefix, "dated:%s:", reset_names[i]);
        if (strncmp(note, prefix, (size_t)n) != 0)
            continue;
        uint32_t digits = (uint32_t)strtoul(note + n, NULL, 10);
        if (digits < 1 || digits > FIRN_DATED_DIGITS_MAX)
            return FIRN_EFORMAT;
        *out_reset = i;
        *out_digits = digits;
        return 0;
    }
    return FIRN_EFORMAT;
}
