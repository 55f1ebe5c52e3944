/* For tests/differential/jsonb: each line of JSON becomes its form (auditlog/canon.h) in
 * hexadecimal digits, or "-" if it has none. */
#include "auditlog/canon.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static char *line;
    static size_t cap;
    struct canon canon = { .members = { 0 } };
    struct buf out = { .max = 1 << 24 };
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        out.len = 0;
        size_t len = (size_t)n - (line[n - 1] == '\n');
        if (canon_json(&canon, (struct slice){ line, len }, &out) != 0)
            putchar('-');
        for (size_t i = 0; i < out.len; i++)
            printf("%02x", (unsigned char)out.p[i]);
        putchar('\n');
    }
    free(line);
    buf_done(&out);
    canon_done(&canon);
    return 0;
}
