/* verify.h - the state of `firn verify`: options, inputs, results. */
#ifndef FIRN_CLI_VERIFY_VERIFY_H
#define FIRN_CLI_VERIFY_VERIFY_H

#include "cli/verify/lines.h"
#include "cli/verify/offenders.h"
#include "cli/progress.h"
#include "cli/verify/sortfile.h"

enum { VERIFY_UNIQUE = 1, VERIFY_SORTED = 2, VERIFY_GAPLESS = 4 };

struct hole {
    uint64_t from, to;
};

struct verify {
    bool unique, sorted, gapless, follow, json;
    const char *memory;
    uint64_t shown_max, idle_ms;

    unsigned checks;
    uint64_t memory_bytes;
    char *const *names;
    size_t names_len;
    uint64_t *first_where; /* per file: the ordinal of its first line */

    struct lines lines;
    struct progress progress;
    struct sortfile numbers, texts;
    uint64_t bytes_done; /* of the files before this one */

    uint64_t lines_read, empty, numbers_len, texts_len, distinct;
    struct id last; /* for --sorted: the ID before; its line is last_where */
    uint64_t last_where;
    uint64_t value_min, value_max;
    struct id text_min, text_max;
    struct offenders repeated, unsorted, malformed;
    struct hole *holes; /* the first shown_max */
    uint64_t holes_len, missing;
};

static inline uint64_t verify_ids(const struct verify *v)
{
    return v->numbers_len + v->texts_len;
}

static inline bool verify_is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

static inline const char *verify_shown_name(const char *name)
{
    return verify_is_stdin(name) ? "(stdin)" : name;
}

/* On standard output, as a table or as JSON. An exit status. */
int verify_report(struct verify *v);

#endif
