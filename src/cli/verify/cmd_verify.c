/*
 * firn verify: reads IDs, one per line, and checks them as a whole.
 * Reading is one pass: it counts, finds the smallest and largest, and checks --sorted on the way.
 * --unique and --gapless look at the IDs in ascending order, from a sorter in bounded memory
 * (sortfile.h): one for numbers, one for texts. Numbers come before texts.
 *
 * A line is identified by its ordinal over all files; the file and the line in it are looked up
 * only for the few lines that are reported.
 */
#include "cli/commands.h"
#include "cli/verify/number.h"
#include "cli/verify/spelling.h"
#include "cli/say.h"
#include "cli/verify/verify.h"
#include "cli/verify/verify_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_DEFAULT_BYTES (UINT64_C(256) << 20)
#define MEMORY_MIN_BYTES     (UINT64_C(1) << 20)
#define MEMORY_MAX_BYTES     (UINT64_C(1) << 40)
enum { SHOWN_DEFAULT = 10, SHOWN_MAX = 10000 }; /* offenders are held in memory until the end */

_Static_assert((int)SORT_TEXT_MAX == (int)LINES_TEXT_MAX, "every line that is read can be sorted");

/* ---- reading ---- */

static int bytes_cmp(const char *a, size_t alen, const char *b, size_t blen)
{
    int c = memcmp(a, b, alen < blen ? alen : blen);
    return c != 0 ? c : (alen > blen) - (alen < blen);
}

/* --sorted, for an ID that does not rise above v->last. */
static void note_unsorted(struct verify *v, const struct id *id, uint64_t where)
{
    struct offender *o = offenders_room(&v->unsorted, where);
    if (!o)
        return;
    o->id = *id;
    o->other = v->last;
    o->other_where = v->last_where;
}

static inline int take_number(struct verify *v, uint64_t value, uint64_t where, struct firn_diag *d)
{
    bool first = v->numbers_len == 0;
    if (first || value < v->value_min)
        v->value_min = value;
    if (first || value > v->value_max)
        v->value_max = value;
    if (v->checks & VERIFY_SORTED) {
        if (v->last.len > 0 || (!first && value <= v->last.value))
            note_unsorted(v, &(struct id){ .value = value }, where);
        v->last.len = 0;
        v->last.value = value;
        v->last_where = where;
    }
    v->numbers_len++;
    return v->checks & (VERIFY_UNIQUE | VERIFY_GAPLESS)
               ? sortfile_add_number(&v->numbers, value, where, d)
               : 0;
}

static int take_text(struct verify *v, const char *p, size_t len, uint64_t where,
                     struct firn_diag *d)
{
    bool first = v->texts_len == 0;
    if (first || bytes_cmp(p, len, v->text_min.text, v->text_min.len) < 0)
        id_set_text(&v->text_min, p, len);
    if (first || bytes_cmp(p, len, v->text_max.text, v->text_max.len) > 0)
        id_set_text(&v->text_max, p, len);
    if (v->checks & VERIFY_SORTED) {
        struct id id = { 0 };
        id_set_text(&id, p, len);
        if (v->last.len > 0 && bytes_cmp(p, len, v->last.text, v->last.len) <= 0)
            note_unsorted(v, &id, where);
        v->last = id;
        v->last_where = where;
    }
    v->texts_len++;
    if (!(v->checks & VERIFY_UNIQUE))
        return 0;
    return sortfile_add_text(&v->texts, p, len, where, d);
}

/* From now on there are numbers and texts: they share the memory. */
static int share_memory(struct verify *v, struct firn_diag *d)
{
    int r = sortfile_shrink(&v->numbers, v->memory_bytes / 2, d);
    return r != 0 ? r : sortfile_shrink(&v->texts, v->memory_bytes / 2, d);
}

/* Read all lines of the current file of v->lines. Returns an exit status. */
static int read_lines(struct verify *v, const char *name)
{
    struct firn_diag d;
    uint64_t seen_bytes = 0, line = 0, value;
    const char *p;
    size_t len;
    int got;
    while ((got = lines_next(&v->lines, &p, &len)) > 0) {
        uint64_t where = v->lines_read++;
        int r;
        line++;
        if (v->lines.bytes_read != seen_bytes) {
            seen_bytes = v->lines.bytes_read;
            progress_step(&v->progress, v->bytes_done + seen_bytes, v->lines_read);
        }
        if (got == LINES_LONG) {
            offenders_room(&v->malformed, where);
            continue;
        }
        enum spelling_mark mark = line == 1 ? spelling_mark(p, len) : SPELLING_PLAIN;
        if (mark == SPELLING_UTF16) {
            progress_clear(&v->progress);
            return say_trouble("%s: is UTF-16: convert it first, iconv -f UTF-16 -t UTF-8", name);
        }
        if (mark == SPELLING_UTF8) {
            p += SPELLING_UTF8_BYTES;
            len -= SPELLING_UTF8_BYTES;
        }
        if (len == 0) {
            v->empty++;
            continue;
        }
        char one[FIRN_UUID_TEXT_BUF];
        bool is_number = number_parse(p, len, &value);
        if (!is_number)
            p = spelling_one(p, len, one);
        if (!is_number && v->checks & VERIFY_GAPLESS) {
            progress_clear(&v->progress);
            return say_trouble("%s:%" PRIu64 ": not a decimal number of 64 bits: --gapless needs "
                               "numbers only, leave it out or filter the input",
                               name, line);
        }
        if ((is_number ? v->texts_len > 0 && v->numbers_len == 0
                       : v->numbers_len > 0 && v->texts_len == 0) &&
            (r = share_memory(v, &d)) != 0)
            goto failed;
        r = is_number ? take_number(v, value, where, &d) : take_text(v, p, len, where, &d);
        if (r == 0)
            continue;
    failed:
        progress_clear(&v->progress);
        return say_trouble("%s", d.text);
    }
    v->bytes_done += v->lines.bytes_read;
    if (got == LINES_END)
        return STATUS_OK;
    progress_clear(&v->progress);
    return say_trouble("%s: cannot read after line %" PRIu64 ": %s", name, line, v->lines.why);
}

/* Files that cannot be read are reported before the others are processed, which may take hours. */
static int inputs_check(const struct verify *v, uint64_t *out_bytes)
{
    uint64_t total = 0;
    bool known = true;
    for (size_t i = 0; i < v->names_len; i++) {
        const char *name = v->names[i];
        struct stat st;
        bool in = verify_is_stdin(name);
        if ((in ? fstat(STDIN_FILENO, &st) : stat(name, &st)) != 0 ||
            (!in && access(name, R_OK) != 0))
            return say_trouble("%s: %s: check the name and its permissions",
                               verify_shown_name(name), strerror(errno));
        if (S_ISDIR(st.st_mode))
            return say_trouble("%s: is a folder: name the files in it", verify_shown_name(name));
        known = known && S_ISREG(st.st_mode);
        total += known ? (uint64_t)st.st_size : 0;
    }
    *out_bytes = known ? total : 0;
    return STATUS_OK;
}

static int read_all(struct verify *v)
{
    uint64_t total = 0;
    int status = inputs_check(v, &total);
    if (status != STATUS_OK)
        return status;
    progress_phase(&v->progress, "reading", total);
    for (size_t i = 0; i < v->names_len && status == STATUS_OK; i++) {
        const char *name = v->names[i];
        int fd = verify_is_stdin(name) ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return say_trouble("%s: %s: check the name and its permissions", name, strerror(errno));
        if (isatty(fd) == 1 && isatty(STDERR_FILENO) == 1)
            fputs("firn verify: reading IDs from the terminal; end with Ctrl-D\n", stderr);
        v->first_where[i] = v->lines_read;
        lines_start(&v->lines, fd);
        status = read_lines(v, verify_shown_name(name));
        if (fd != STDIN_FILENO)
            close(fd);
    }
    return status;
}

/* ---- the IDs in order ---- */

static void note_repeated(struct verify *v, const struct sort_item *it, uint64_t first_where)
{
    struct offender *o = offenders_room(&v->repeated, it->where);
    if (!o)
        return;
    o->other_where = first_where;
    o->id = (struct id){ .value = it->value };
    if (it->text)
        id_set_text(&o->id, it->text, it->len);
}

static void note_hole(struct verify *v, uint64_t from, uint64_t to)
{
    if (v->holes_len < v->shown_max)
        v->holes[v->holes_len] = (struct hole){ from, to };
    v->holes_len++;
    v->missing += to - from + 1;
}

static int scan_sorted(struct verify *v, struct sortfile *s, uint64_t *done)
{
    struct firn_diag d;
    struct sort_item it;
    struct id last = { 0 };
    uint64_t first_where = 0, distinct = 0;
    int r = sortfile_finish(s, &d);
    while (r == 0 && (r = sortfile_next(s, &it, &d)) > 0) {
        r = 0;
        if ((++*done & 0xffff) == 0)
            progress_step(&v->progress, *done, *done);
        bool again = distinct > 0 &&
                     (it.text ? it.len == last.len && memcmp(it.text, last.text, it.len) == 0
                              : it.value == last.value);
        if (again) {
            note_repeated(v, &it, first_where);
            continue;
        }
        if (v->checks & VERIFY_GAPLESS && distinct > 0 && it.value - last.value > 1)
            note_hole(v, last.value + 1, it.value - 1);
        distinct++;
        first_where = it.where;
        last.value = it.value;
        if (it.text)
            id_set_text(&last, it.text, it.len);
    }
    v->distinct += distinct;
    sortfile_done(s);
    progress_clear(&v->progress);
    return r == 0 ? STATUS_OK : say_trouble("%s", d.text);
}

static int scan_all(struct verify *v)
{
    uint64_t done = 0;
    progress_phase(&v->progress, "checking", v->numbers_len + v->texts_len);
    int status = scan_sorted(v, &v->numbers, &done);
    return status != STATUS_OK ? status : scan_sorted(v, &v->texts, &done);
}

/* ---- the command ---- */

/* Digits and an optional K, M or G (KiB ...). */
static bool size_parse(const char *text, uint64_t *out)
{
    static const char unit[] = "KMG";
    size_t len = strlen(text);
    unsigned shift = 0;
    uint64_t n;
    if (len > 0) {
        char last = text[len - 1] >= 'a' ? (char)(text[len - 1] - 'a' + 'A') : text[len - 1];
        const char *u = last ? strchr(unit, last) : NULL;
        if (u) {
            shift = 10 * (unsigned)(u - unit + 1);
            len--;
        }
    }
    if (len == 0 || !number_parse(text, len, &n) || n > UINT64_MAX >> shift)
        return false;
    *out = n << shift;
    return true;
}

static const struct opt opts[] = {
    { "unique", 'u', OPT_FLAG, offsetof(struct verify, unique), NULL, NULL, 0, 0,
      "no ID occurs twice (the default check)" },
    { "sorted", 's', OPT_FLAG, offsetof(struct verify, sorted), NULL, NULL, 0, 0,
      "every ID is greater than the one before it; needs no memory" },
    { "gapless", 'g', OPT_FLAG, offsetof(struct verify, gapless), NULL, NULL, 0, 0,
      "the sorted numbers have no gaps; numbers only" },
    { "memory", 'm', OPT_TEXT, offsetof(struct verify, memory), "SIZE", NULL, 0, 0,
      "for sorting: 1M or more, with K, M or G (default 256M); data that does not fit "
      "goes to temporary files in $TMPDIR" },
    { "max", 'n', OPT_NUMBER, offsetof(struct verify, shown_max), "N", NULL, 0, SHOWN_MAX,
      "show the first N offenders of each check (default 10)" },
    { "follow", 'f', OPT_FLAG, offsetof(struct verify, follow), NULL, NULL, 0, 0,
      "keep reading while the file grows, as tail -f does, and report at once; --memory "
      "limits how many IDs are remembered" },
    { "idle", 0, OPT_TIME, offsetof(struct verify, idle_ms), "TIME", NULL, 1, UINT64_C(31536000000),
      "with --follow: end when no line came for this long" },
    OPT_JSON(struct verify, json),
    { .name = NULL },
};

const struct usage verify_usage = {
    .name = "verify",
    .examples =
        "  firn verify ids.txt                      does any ID occur twice?\n"
        "  firn gen ulid -n 1000000 | firn verify   the same, from a pipe\n"
        "  firn verify --sorted node1.log           is each ID greater than the one before?\n"
        "  firn verify --unique --gapless tickets*  do the tickets have no gaps?\n"
        "  firn verify --memory 2G --json big.txt   more memory for sorting; results as JSON\n"
        "  firn verify ids-*.txt.gz                 compressed by gzip\n"
        "  firn verify --follow ids.log             the same while it grows\n",
    .synopsis = "firn verify [--unique] [--sorted] [--gapless] [--memory SIZE] [--max N] [--json]\n"
                "                   [FILE...|-]\n"
                "       firn verify --follow [--unique] [--sorted] [--memory SIZE] [--idle TIME] "
                "[--json] [FILE|-]",
    .about =
        "Checks IDs, one per line; several files are one input; none or - is standard input.\n"
        "Decimal numbers of 64 bits are compared as numbers, everything else as bytes: texts of\n"
        "up to 128 bytes, also +1, 007 and numbers beyond 64 bits. Numbers sort before texts.\n"
        "A UUID is the same in capitals and in small letters. Empty lines are skipped; a \\r\n"
        "before the line's end and a byte order mark are not part of the ID. Files that gzip\n"
        "compressed are read as they are (not with --follow).\n",
    .operands = "@files",
    .opts = opts,
};

/* -1: go on. Otherwise the exit status. */
static int set_options(struct verify *v)
{
    char shown[SAY_TEXT_BUF];
    v->checks = (v->unique ? VERIFY_UNIQUE : 0u) | (v->sorted ? VERIFY_SORTED : 0u) |
                (v->gapless ? VERIFY_GAPLESS : 0u);
    if (v->checks == 0)
        v->checks = VERIFY_UNIQUE;
    v->memory_bytes = MEMORY_DEFAULT_BYTES;
    if (v->memory && (!size_parse(v->memory, &v->memory_bytes) ||
                      v->memory_bytes < MEMORY_MIN_BYTES || v->memory_bytes > MEMORY_MAX_BYTES))
        return say_trouble("--memory %s: give a size from 1M to 1024G, such as 512M",
                           say_text(v->memory, strlen(v->memory), shown));
    return -1;
}

static int follow(const struct verify *v)
{
    if (v->checks & VERIFY_GAPLESS)
        return say_trouble("--gapless needs the complete file: check it without --follow");
    if (v->names_len > 1)
        return say_trouble(
            "--follow takes one file: merge the files, or run one firn verify per file");
    struct verify_follow f = { .path = v->names[0],
                               .unique = v->checks & VERIFY_UNIQUE,
                               .sorted = v->checks & VERIFY_SORTED,
                               .json = v->json,
                               .memory_bytes = v->memory_bytes,
                               .idle_ms = v->idle_ms };
    return verify_follow(&f);
}

int cmd_verify(int argc, char **argv)
{
    static char dash[] = "-";
    static char *const only_stdin[] = { dash };
    struct verify v = { .shown_max = SHOWN_DEFAULT };
    int n, status = options_parse(&verify_usage, argc, argv, &v, &n);
    if (status >= 0 || (status = set_options(&v)) >= 0)
        return status;
    v.names = n > 0 ? argv + 1 : only_stdin;
    v.names_len = n > 0 ? (size_t)n : 1;
    if (v.follow)
        return follow(&v);
    if (v.idle_ms)
        return say_trouble("--idle works with --follow only");

    sortfile_init(&v.numbers, SORT_NUMBERS, (size_t)v.memory_bytes);
    sortfile_init(&v.texts, SORT_TEXTS, (size_t)v.memory_bytes);
    progress_init(&v.progress);
    v.first_where = calloc(v.names_len, sizeof *v.first_where);
    v.holes = calloc(v.shown_max + 1, sizeof *v.holes);
    bool memory = lines_init(&v.lines) == 0;
    memory = offenders_init(&v.repeated, v.shown_max) == 0 && memory;
    memory = offenders_init(&v.unsorted, v.shown_max) == 0 && memory;
    memory = offenders_init(&v.malformed, v.shown_max) == 0 && memory;
    if (memory && v.first_where && v.holes) {
        status = read_all(&v);
        progress_clear(&v.progress);
        if (status == STATUS_OK && v.checks & (VERIFY_UNIQUE | VERIFY_GAPLESS))
            status = scan_all(&v);
        else if (status == STATUS_OK)
            v.distinct = verify_ids(&v);
        if (status == STATUS_OK)
            status = verify_report(&v);
    } else {
        status = say_trouble("out of memory: lower --max");
    }

    offenders_done(&v.malformed);
    offenders_done(&v.unsorted);
    offenders_done(&v.repeated);
    lines_done(&v.lines);
    free(v.holes);
    free(v.first_where);
    sortfile_done(&v.texts);
    sortfile_done(&v.numbers);
    return status;
}
