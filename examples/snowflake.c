/*
 * Snowflake IDs: choose a layout, make IDs, look inside one.
 *
 *     cc snowflake.c $(pkg-config --cflags --libs libfirn) -o snowflake && ./snowflake
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <firn/gen.h>
#include <firn/layout.h>
#include <firn/read.h>
#include <firn/text.h>

int main(void)
{
    /* A layout is text: the name of a preset such as "twitter", or fields of your own. 5 bits for
     * the data centre and 5 for the worker make 1,024 generators; 12 bits count 4,096 IDs a
     * millisecond. */
    static const char text[] =
        "unused:1,time:41@1ms,dc:5,worker:5,seq:12;epoch=2024-01-01T00:00:00Z";
    struct firn_layout layout;
    struct firn_diag diag; /* says what is wrong, and in which column */
    if (firn_layout_parse(text, strlen(text), 0, &layout, &diag) != 0) {
        fprintf(stderr, "layout, column %zu: %s\n", diag.column, diag.text);
        return 1;
    }

    /* The slot is dc and worker joined. Stand-alone, make sure that no other process uses
     * the same one. */
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    opts.slot = 3 << 5 | 7; /* dc 3, worker 7 */

    /* A generator belongs to one thread. In the child of a fork() it refuses with FIRN_EFORKED. */
    struct firn_gen *gen;
    int r = firn_gen_new(&layout, &opts, &gen);
    if (r != 0) {
        fprintf(stderr, "generator: %s\n", firn_error_message(r));
        return 1;
    }

    uint64_t id;
    r = firn_gen_next(gen, &id);
    if (r == 0)
        printf("one ID:  %" PRIu64 "\n", id);

    /* Many at once are much faster than one by one. You may get fewer than you asked for. */
    uint64_t ids[1000];
    size_t n = 0;
    if (r == 0)
        r = firn_gen_fill(gen, ids, 1000, &n);
    if (r == 0)
        printf("%zu more: %" PRIu64 " to %" PRIu64 "\n", n, ids[0], ids[n - 1]);
    firn_gen_free(gen);
    if (r != 0) {
        fprintf(stderr, "no ID: %s\n", firn_error_message(r));
        return 1;
    }

    /* What an ID says: its fields as numbers ... */
    struct firn_parts parts;
    if (firn_layout_decompose(&layout, id, &parts) != 0)
        return 1;
    printf("parts:   dc %" PRIu64 ", worker %" PRIu64 ", seq %" PRIu64 "\n",
           parts.field[FIRN_FIELD_DC], parts.field[FIRN_FIELD_NODE], parts.field[FIRN_FIELD_SEQ]);

    /* ... or for people, from its text. */
    char decimal[FIRN_U64_TEXT_BUF];
    size_t len = firn_u64_format(id, decimal);
    struct firn_reading reading;
    if (firn_read(firn_kind_find("snowflake", 9), decimal, len, &layout, &reading, &diag) != 0) {
        fprintf(stderr, "%s: %s\n", decimal, diag.text);
        return 1;
    }
    for (uint32_t i = 0; i < reading.fields_n; i++)
        printf("         %-5s %s\n", reading.field[i].name, reading.field[i].value);
    return 0;
}
