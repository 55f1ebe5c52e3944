/*
 * store_probe [--break MODE | --closed] URL TIMEOUT_MS - one handle on a store, driven by lines:
 * the hand of every store test.
 *
 * One command a line on stdin, one answer a line on stdout, flushed. The first answer is that of
 * opening the store (none with --closed); `reopen` tries again where that failed.
 *   read KEY [fresh]                 0 VALUE STORE_MS MS
 *   cas KEY OLD NEW                  0 MS
 *   many KEY OLD NEW [KEY OLD NEW..] 0 RESULT [RESULT..] MS
 *   instead I                        0 VALUE STORE_MS MS   (what write I of the refused cas or many
 *                                                          met)
 *   scan PREFIX [MAX [AFTER]]        0 COUNT [KEY=VALUE..] MS   (after MAX registers it ends by
 *                                                               itself)
 *   wait KEY OLD WAIT_MS             0 VALUE STORE_MS MS
 *   identity                         0 TEXT MS
 *   reopen                           0 SCHEME MS
 *   quit                             (none, exit status 0; so does the end of stdin)
 * An error is `FIRN_E... [text for people] MS`. The first word is always the result and the last
 * one the milliseconds that the call took. A line that is no command is answered with `? what is
 * wrong 0`.
 *
 * Keys and values are percent-encoded, in answers every byte but letters, digits and _./: so. `%`
 * alone is the empty text, `-` alone is "absent": as OLD the register must not exist, as NEW it is
 * removed.
 */
#include "broken.h"
#include "store/store.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY_MAX = 256, WORDS_MAX = 3 * MANY_MAX + 1 };

struct probe {
    const char *url, *mode; /* mode: of broken.h, or NULL */
    uint32_t timeout_ms;
    struct firn_store *store; /* NULL: not open */
    struct firn_diag diag;
    uint64_t began_ns;
    struct firn_slice word[WORDS_MAX]; /* of the command line, decoded in place */
    size_t words;
};

/* ---- text ---- */

static int hex(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decode a word where it stands; false: not percent-encoded. */
static bool decode(char *p, struct firn_slice *out)
{
    if (strcmp(p, "-") == 0) {
        *out = firn_slice(NULL, 0);
        return true;
    }
    if (strcmp(p, "%") == 0) {
        *out = firn_slice(p, 0);
        return true;
    }
    char *to = p;
    for (const char *from = p; *from; to++) {
        if (*from != '%') {
            *to = *from++;
            continue;
        }
        int hi = hex(from[1]), lo = hi < 0 ? -1 : hex(from[2]);
        if (lo < 0)
            return false;
        *to = (char)(hi * 16 + lo);
        from += 3;
    }
    *out = firn_slice(p, (size_t)(to - p));
    return true;
}

static void print_encoded(const char *p, size_t len)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:";
    if (len == 0)
        putchar('%');
    for (size_t i = 0; i < len; i++) {
        if (p[i] && strchr(plain, p[i]))
            putchar(p[i]);
        else
            printf("%%%02X", (unsigned char)p[i]);
    }
}

/* ---- answers ---- */

static const char *name(int r)
{
    return r == 0 ? "0" : firn_error_name(r);
}

/* The end of every answer. An answer that is an error says why. */
static void finish(const struct probe *p, int r, uint64_t took_ns)
{
    if (r != 0)
        printf("%s %s", firn_error_name(r), p->diag.text);
    printf(" %" PRIu64 "\n", took_ns / 1000000);
    fflush(stdout);
}

static void refuse(const char *why)
{
    printf("? %s 0\n", why);
    fflush(stdout);
}

static void answer_record(const struct probe *p, int r, const struct firn_record *rec)
{
    uint64_t took_ns = mono_ns() - p->began_ns;
    if (r == 0) {
        printf("0 ");
        print_encoded(rec->value, rec->len);
        printf(" %" PRIu64, rec->store_ms);
    }
    finish(p, r, took_ns);
}

/* ---- commands ---- */

static void do_read(struct probe *p)
{
    struct firn_record rec;
    int r = firn_store_read(p->store, p->word[1], p->words > 2, &rec, &p->diag);
    answer_record(p, r, &rec);
}

static void do_cas(struct probe *p)
{
    struct firn_cas want = { p->word[1], p->word[2], p->word[3] };
    int r = firn_store_cas(p->store, &want, &p->diag);
    uint64_t took_ns = mono_ns() - p->began_ns;
    if (r == 0)
        putchar('0');
    finish(p, r, took_ns);
}

static void do_many(struct probe *p)
{
    static struct firn_cas want[MANY_MAX];
    static int result[MANY_MAX];
    size_t count = (p->words - 1) / 3;
    if (p->words != 1 + 3 * count) {
        refuse("many takes KEY OLD NEW, again and again");
        return;
    }
    for (size_t i = 0; i < count; i++)
        want[i] = (struct firn_cas){ p->word[1 + 3 * i], p->word[2 + 3 * i], p->word[3 + 3 * i] };
    int r = firn_store_cas_many(p->store, want, count, result, &p->diag);
    uint64_t took_ns = mono_ns() - p->began_ns;
    if (r == 0)
        putchar('0');
    for (size_t i = 0; r == 0 && i < count; i++)
        printf(" %s", name(result[i]));
    finish(p, r, took_ns);
}

static void do_instead(struct probe *p)
{
    struct firn_record rec;
    const struct firn_store_ops *ops = p->store->ops;
    int r = ops->instead ? ops->instead(p->store, strtoul(p->word[1].p, NULL, 10), &rec)
                         : FIRN_ENOTSUP;
    answer_record(p, r, &rec);
}

struct found { /* what a scan met: copied, since the slices do not outlive the call */
    size_t count, max, room, len;
    char *bytes; /* key length, key, value length, value, and so on */
};

static bool keep(struct found *f, struct firn_slice s)
{
    size_t need = f->len + sizeof s.len + s.len;
    if (need > f->room) {
        char *bytes = realloc(f->bytes, need * 2);
        if (!bytes)
            return false;
        f->bytes = bytes;
        f->room = need * 2;
    }
    memcpy(f->bytes + f->len, &s.len, sizeof s.len);
    if (s.len > 0)
        memcpy(f->bytes + f->len + sizeof s.len, s.p, s.len);
    f->len = need;
    return true;
}

static int see(void *user, struct firn_slice key, struct firn_slice value)
{
    struct found *f = user;
    if (f->count == f->max)
        return FIRN_EAGAIN;
    f->count++;
    return keep(f, key) && keep(f, value) ? 0 : FIRN_ENOMEM;
}

static void do_scan(struct probe *p)
{
    struct found f = { .max = p->words > 2 ? strtoul(p->word[2].p, NULL, 10) : SIZE_MAX };
    int r = p->words > 3
                ? firn_store_scan_after(p->store, p->word[1], p->word[3], see, &f, &p->diag)
                : firn_store_scan(p->store, p->word[1], see, &f, &p->diag);
    uint64_t took_ns = mono_ns() - p->began_ns;
    if (r == FIRN_EAGAIN && f.count == f.max)
        r = 0;
    if (r == 0)
        printf("0 %zu", f.count);
    for (size_t at = 0, i = 0, len; r == 0 && at < f.len; at += sizeof len + len, i++) {
        memcpy(&len, f.bytes + at, sizeof len);
        putchar(i % 2 == 0 ? ' ' : '=');
        print_encoded(f.bytes + at + sizeof len, len);
    }
    finish(p, r, took_ns);
    free(f.bytes);
}

static void do_wait(struct probe *p)
{
    struct firn_record rec;
    int r = firn_store_wait(p->store, p->word[1], p->word[2],
                            (uint32_t)strtoul(p->word[3].p, NULL, 10), &rec, &p->diag);
    answer_record(p, r, &rec);
}

static void do_identity(struct probe *p)
{
    char id[STORE_ID_TEXT_BUF];
    int r = firn_store_identity(p->store, id, &p->diag);
    uint64_t took_ns = mono_ns() - p->began_ns;
    if (r == 0) {
        printf("0 ");
        print_encoded(id, strlen(id));
    }
    finish(p, r, took_ns);
}

static void do_reopen(struct probe *p)
{
    firn_store_close(p->store);
    p->store = NULL;
    int r = firn_store_open(p->url, p->timeout_ms, &p->store, &p->diag);
    uint64_t took_ns = mono_ns() - p->began_ns;
    if (r == 0)
        printf("0 %s", p->store->ops->scheme);
    else
        p->store = NULL;
    if (r == 0 && p->mode && !(p->store = broken_new(p->store, p->mode))) {
        fprintf(stderr, "store_probe: no mode '%s'; there are %s\n", p->mode, broken_modes);
        exit(2);
    }
    finish(p, r, took_ns);
}

static const struct command {
    const char *name;
    size_t words_min, words_max; /* with the name */
    size_t number;               /* the word that is a number or a flag, not a text; 0: none */
    void (*run)(struct probe *p);
} commands[] = {
    { "read", 2, 3, 2, do_read },         { "cas", 4, 4, 0, do_cas },
    { "many", 4, WORDS_MAX, 0, do_many }, { "scan", 2, 4, 2, do_scan },
    { "wait", 4, 4, 3, do_wait },         { "identity", 1, 1, 0, do_identity },
    { "reopen", 1, 1, 0, do_reopen },     { "instead", 2, 2, 1, do_instead },
};

static void execute(struct probe *p, char *line)
{
    char *rest = line;
    p->words = 0;
    for (char *w; (w = strsep(&rest, " \n")) != NULL;) {
        if (*w == '\0')
            continue;
        if (p->words == WORDS_MAX || !decode(w, &p->word[p->words])) {
            refuse(p->words == WORDS_MAX ? "too many words" : "a word is not percent-encoded");
            return;
        }
        p->words++;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && p->words > 0; i++) {
        const struct command *c = &commands[i];
        size_t len = strlen(c->name);
        if (!p->word[0].p || p->word[0].len != len || memcmp(p->word[0].p, c->name, len) != 0)
            continue;
        bool right = p->words >= c->words_min && p->words <= c->words_max;
        for (size_t w = 1; w < p->words;
             w++) /* a key is never absent; numbers end at a NUL or space */
            if (!p->word[w].p && (w == 1 || w == c->number))
                right = false;
        if (!right) {
            refuse("wrong arguments");
        } else if (!p->store && c->run != do_reopen) {
            refuse("the store is not open");
        } else {
            p->diag = (struct firn_diag){ 0 };
            p->began_ns = mono_ns();
            c->run(p);
        }
        return;
    }
    refuse("no such command");
}

int main(int argc, char **argv)
{
    static struct probe p;
    char *line = NULL;
    size_t room = 0;
    bool closed = argc == 4 && strcmp(argv[1], "--closed") == 0;
    if (argc == 5 && strcmp(argv[1], "--break") == 0)
        p.mode = argv[2];
    if (!p.mode && !closed && argc != 3) {
        fprintf(stderr, "usage: store_probe [--break %s | --closed] URL TIMEOUT_MS\n",
                broken_modes);
        return 2;
    }
    p.url = argv[argc - 2];
    p.timeout_ms = (uint32_t)strtoul(argv[argc - 1], NULL, 10);
    p.began_ns = mono_ns();
    if (!closed)
        do_reopen(&p);
    while (getline(&line, &room, stdin) > 0 && strcmp(line, "quit\n") != 0)
        execute(&p, line);
    free(line);
    firn_store_close(p.store);
    return 0;
}
