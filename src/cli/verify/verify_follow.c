/* firn verify --follow: checks lines as they are written. */
#include "cli/verify/verify_follow.h"
#include "cli/duration.h"
#include "cli/escape.h"
#include "cli/verify/follow.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/verify/seen.h"
#include "cli/verify/spelling.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 100, DRAW_MS = 500, TURN_BITS = 48 };

struct watch {
    const struct verify_follow *v;
    struct follow follow;
    struct seen seen;
    uint64_t turn; /* number of the file of this name: grows when it is truncated or replaced */
    uint64_t ids, duplicates, unsorted, longs;
    char last[LINES_TEXT_MAX];
    size_t last_len;
    uint64_t last_line;
    uint64_t draw_ms, drawn_ids;
    bool told_memory, terminal, drawn;
};

static volatile sig_atomic_t ended;

static void on_end(int signal_)
{
    (void)signal_;
    ended = 1;
}

static bool is_number(const char *p, size_t len)
{
    static const char last[] = "18446744073709551615";
    for (size_t i = 0; i < len; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    return len > 0 && len <= 20 && (p[0] != '0' || len == 1) &&
           (len < 20 || memcmp(p, last, 20) <= 0);
}

/* Numbers by value and before texts, texts by their bytes: as verify without --follow. */
static int order(const char *a, size_t a_len, const char *b, size_t b_len)
{
    bool a_number = is_number(a, a_len), b_number = is_number(b, b_len);
    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number && a_len != b_len)
        return a_len < b_len ? -1 : 1;
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c != 0 ? c : (a_len > b_len) - (a_len < b_len);
}

static const char *name_of(const struct watch *w)
{
    return strcmp(w->v->path, "-") == 0 ? "(stdin)" : w->v->path;
}

static void undraw(struct watch *w)
{
    if (w->drawn)
        fputs("\r\033[K", stderr);
    w->drawn = false;
}

static void put_text(const char *p, size_t len)
{
    escape_put(stdout, p, len);
}

static void put_json(const char *what, const char *p, size_t len, uint64_t line, uint64_t other)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_text(&j, "found", what);
    json_bytes(&j, "id", p, len);
    json_count(&j, "line", line);
    json_count(&j, "other_line", other);
    json_end(&j, '}');
    output_json(&j, stdout);
}

static void tell_duplicate(struct watch *w, const char *p, size_t len, uint64_t where)
{
    uint64_t line = where & ((UINT64_C(1) << TURN_BITS) - 1);
    bool same_file = where >> TURN_BITS == w->turn;
    undraw(w);
    if (w->v->json) {
        put_json("duplicate", p, len, w->follow.line, line);
    } else {
        put_text(name_of(w), strlen(name_of(w)));
        printf(":%" PRIu64 ": ", w->follow.line);
        put_text(p, len);
        printf(" came before, in line %" PRIu64 "%s\n", line,
               same_file ? "" : " of an earlier file");
    }
}

static void tell_unsorted(struct watch *w, const char *p, size_t len)
{
    undraw(w);
    if (w->v->json) {
        put_json("unsorted", p, len, w->follow.line, w->last_line);
        return;
    }
    put_text(name_of(w), strlen(name_of(w)));
    printf(":%" PRIu64 ": ", w->follow.line);
    put_text(p, len);
    fputs(" is not above ", stdout);
    put_text(w->last, w->last_len);
    printf(" of line %" PRIu64 "\n", w->last_line);
}

static int take(struct watch *w, const char *p, size_t len)
{
    uint64_t where = w->turn << TURN_BITS | w->follow.line, first;
    char one[FIRN_UUID_TEXT_BUF];
    if (w->follow.line == 1 && spelling_mark(p, len) == SPELLING_UTF8) {
        p += SPELLING_UTF8_BYTES;
        len -= SPELLING_UTF8_BYTES;
        if (len == 0)
            return -1;
    }
    p = spelling_one(p, len, one);
    w->ids++;
    if (w->v->unique) {
        int r = seen_add(&w->seen, p, len, where, &first);
        if (r < 0)
            return say_trouble("out of memory: lower --memory");
        if (r == 0) {
            w->duplicates++;
            tell_duplicate(w, p, len, first);
        }
    }
    if (w->v->sorted) {
        if (w->last_len > 0 && order(p, len, w->last, w->last_len) <= 0) {
            w->unsorted++;
            tell_unsorted(w, p, len);
        }
        memcpy(w->last, p, len);
        w->last_len = len;
        w->last_line = w->follow.line;
    }
    return -1;
}

/* A progress line, on a terminal that shows nothing else. */
static void draw(struct watch *w)
{
    char ids[GROUPED_BUF], bad[GROUPED_BUF], rate[GROUPED_BUF];
    uint64_t now = mono_ms(), took = now - w->draw_ms;
    if (!w->terminal || took < DRAW_MS)
        return;
    fprintf(stderr, "\r\033[K%s IDs, %s/s, %s wrong", grouped_text(w->ids, ids),
            grouped_text((w->ids - w->drawn_ids) * 1000 / took, rate),
            grouped_text(w->duplicates + w->unsorted + w->longs, bad));
    fflush(stderr);
    w->draw_ms = now;
    w->drawn_ids = w->ids;
    w->drawn = true;
}

static void note_memory(struct watch *w)
{
    if (w->seen.forgotten == 0 || w->told_memory)
        return;
    undraw(w);
    say_warning("memory is full: the oldest IDs are forgotten, so that duplicates may be missed "
                "from now on; raise --memory, or use firn audit, which records all IDs");
    w->told_memory = true;
}

/* -1: it ended as it should. */
static int read_on(struct watch *w)
{
    const char *p;
    size_t len;
    uint64_t last_ms = mono_ms();
    while (!ended) {
        int r = follow_next(&w->follow, &p, &len);
        if (r < 0)
            return say_trouble("%s: cannot read: %s", name_of(w), w->follow.why);
        if (r == FOLLOW_END)
            return -1;
        if (r == FOLLOW_NOTHING) {
            draw(w);
            if (output_gone() || (w->v->idle_ms && mono_ms() - last_ms >= w->v->idle_ms))
                return -1;
            follow_wait(&w->follow, WAIT_MS);
            continue;
        }
        last_ms = mono_ms();
        if (r == FOLLOW_AGAIN) {
            undraw(w);
            say_note("%s was truncated or replaced: continuing with the new file", name_of(w));
            w->turn++;
            w->last_len = 0;
        } else if (r == FOLLOW_LONG) {
            w->longs++;
        } else if (len > 0) {
            int status = take(w, p, len);
            if (status >= 0)
                return status;
            note_memory(w);
        }
    }
    return -1;
}

static int finish(struct watch *w)
{
    bool holds = w->duplicates == 0 && w->unsorted == 0 && w->longs == 0;
    undraw(w);
    if (w->v->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        json_begin(&j, NULL, '{');
        json_count(&j, "ids", w->ids);
        if (w->v->unique)
            json_count(&j, "duplicates", w->duplicates);
        if (w->v->sorted)
            json_count(&j, "unsorted", w->unsorted);
        json_count(&j, "malformed", w->longs);
        json_bool(&j, "exact", w->seen.forgotten == 0);
        json_bool(&j, "holds", holds);
        json_end(&j, '}');
        output_json(&j, stdout);
    } else {
        char n[GROUPED_BUF];
        printf("%s IDs", grouped_text(w->ids, n));
        if (w->v->unique)
            printf(", %s duplicate%s", grouped_text(w->duplicates, n),
                   w->duplicates == 1 ? "" : "s");
        if (w->v->sorted)
            printf(", %s out of order", grouped_text(w->unsorted, n));
        if (w->longs)
            printf(", %s lines that are too long for an ID", grouped_text(w->longs, n));
        putchar('\n');
    }
    return holds ? STATUS_OK : STATUS_FAILED;
}

int verify_follow(const struct verify_follow *v)
{
    struct watch w = { .v = v, .terminal = isatty(STDERR_FILENO) == 1, .draw_ms = mono_ms() };
    char shown[SAY_TEXT_BUF];
    struct sigaction act = { .sa_handler = on_end };
    int status = STATUS_TROUBLE;
    if (follow_open(&w.follow, v->path, true) != 0) {
        say_trouble("%s: %s: check the name and its permissions",
                    say_text(v->path, strlen(v->path), shown), w.follow.why);
    } else if (seen_init(&w.seen, (size_t)v->memory_bytes) != 0) {
        say_trouble("out of memory");
    } else {
        setvbuf(stdout, NULL, _IOLBF, 0); /* results appear at once */
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
        status = read_on(&w);
        if (status < 0)
            status = finish(&w);
    }
    seen_done(&w.seen);
    follow_close(&w.follow);
    return output_finish(status);
}
