/* Each mode is a bug that a store could really have. */
#include "broken.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum mode {
    LOSE_ACK, /* every fourth write is acknowledged and not done */
    LAZY,     /* a write is done at the next call: acknowledged before it is durable */
    ABA, /* compares a counter that starts again with each life of a register, as engines have it */
    BLIND,  /* replaces whatever is there */
    SPLIT,  /* compares first, writes then: others come in between */
    STALE,  /* a fresh read may show the value before the last write */
    CACHED, /* the same read again is answered from memory */
    SHORT,  /* a scan ends after its first page */
    CALM,   /* an unknown outcome is reported as "nothing was written" */
    RETRY,  /* an unknown outcome is tried again, and the second answer is given */
    DEAF,   /* takes the store that it finds for the one that it opened */
};
static const char *const mode_name[] = { "lose-ack", "lazy",  "aba",  "blind", "split", "stale",
                                         "cached",   "short", "calm", "retry", "deaf" };
const char broken_modes[] = "lose-ack|lazy|aba|blind|split|stale|cached|short|calm|retry|deaf";

enum {
    PAGE = 1000,
    SEEN_MAX = 1 << 16,
    LOST_EACH = 50, /* CALM, RETRY: of so many changes one loses its answer, fault or no fault */
};

struct broken {
    struct firn_store base;
    struct firn_store *inner;
    enum mode mode;
    unsigned writes;

    struct firn_cas late; /* LAZY: key.p NULL means none */
    char late_key[STORE_KEY_MAX], late_old[STORE_VALUE_MAX], late_value[STORE_VALUE_MAX];

    char last_key[STORE_KEY_MAX]; /* STALE: what the last write replaced. CACHED: what was read */
    size_t last_key_len;
    struct firn_record before;
    bool before_absent;

    uint64_t
        seen[SEEN_MAX]; /* ABA: hash of key and value -> the counter when it was written, plus 1 */
};

static uint64_t hash(struct firn_slice key, struct firn_slice value)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < key.len; i++)
        h = (h ^ (unsigned char)key.p[i]) * 1099511628211u;
    h = (h ^ 256) * 1099511628211u;
    for (size_t i = 0; i < value.len; i++)
        h = (h ^ (unsigned char)value.p[i]) * 1099511628211u;
    return h % SEEN_MAX;
}

static struct firn_slice copy(char *to, struct firn_slice from)
{
    if (from.p)
        memcpy(to, from.p, from.len);
    return firn_slice(from.p ? to : NULL, from.len);
}

static void catch_up(struct broken *b)
{
    if (b->late.key.p && firn_store_cas(b->inner, &b->late, NULL) != 0)
        abort(); /* one handle writes to a register in the cases that this mode is for */
    b->late.key.p = NULL;
}

static int lazy_cas(struct broken *b, const struct firn_cas *want, struct firn_diag *d)
{
    struct firn_record now;
    int r = firn_store_read(b->inner, want->key, true, &now, d);
    if (r != 0 && r != FIRN_ENOENT)
        return r;
    bool same = r == FIRN_ENOENT ? !want->old.p
                                 : want->old.p && now.len == want->old.len &&
                                       memcmp(now.value, want->old.p, now.len) == 0;
    if (!same)
        return FIRN_ECONFLICT;
    b->late.key = copy(b->late_key, want->key);
    b->late.old = copy(b->late_old, want->old);
    b->late.value = copy(b->late_value, want->value);
    return 0;
}

/* The write goes on top of whatever value is there now. */
static int write_over(struct broken *b, const struct firn_cas *want, struct firn_record *now,
                      struct firn_diag *d)
{
    struct firn_cas real = { want->key, firn_slice(now->value, now->len), want->value };
    return firn_store_cas(b->inner, &real, d);
}

static int aba_cas(struct broken *b, const struct firn_cas *want, struct firn_diag *d)
{
    struct firn_record now;
    int r = firn_store_read(b->inner, want->key, true, &now, d);
    uint64_t count = 0;
    if (r == 0) {
        count = b->seen[hash(want->key, firn_slice(now.value, now.len))];
        if (!want->old.p || count == 0 || b->seen[hash(want->key, want->old)] != count)
            return FIRN_ECONFLICT;
        r = write_over(b, want, &now, d);
    } else if (r == FIRN_ENOENT) {
        r = firn_store_cas(b->inner, want, d);
    }
    if (r == 0 && want->value.p)
        b->seen[hash(want->key, want->value)] = count + 1;
    return r;
}

static int blind_cas(struct broken *b, const struct firn_cas *want, struct firn_diag *d)
{
    struct firn_record now;
    int r = want->old.p ? firn_store_read(b->inner, want->key, true, &now, d) : FIRN_ENOENT;
    return r == 0 ? write_over(b, want, &now, d) : firn_store_cas(b->inner, want, d);
}

static int split_cas(struct broken *b, const struct firn_cas *want, struct firn_diag *d)
{
    struct firn_record now;
    int r = firn_store_read(b->inner, want->key, true, &now, d);
    if (r != 0 || !want->old.p || now.len != want->old.len ||
        memcmp(now.value, want->old.p, now.len) != 0)
        return firn_store_cas(b->inner, want, d);
    nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
    do {
        r = firn_store_read(b->inner, want->key, true, &now, d);
        if (r == 0)
            r = write_over(b, want, &now, d);
    } while (r == FIRN_ECONFLICT);
    return r;
}

/* A change whose answer is lost now and then, as a connection that breaks loses it. */
static int unsure_cas(struct broken *b, const struct firn_cas *want, struct firn_diag *d)
{
    int r = firn_store_cas(b->inner, want, d);
    return ++b->writes % LOST_EACH == 0 && r == 0 ? FIRN_EUNKNOWN : r;
}

static int broken_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    struct broken *b = (struct broken *)s;
    int r;
    catch_up(b);
    switch (b->mode) {
    case LOSE_ACK:
        if (++b->writes % 4 == 0)
            return 0;
        break;
    case LAZY:
        return lazy_cas(b, want, d);
    case ABA:
        return aba_cas(b, want, d);
    case BLIND:
        return blind_cas(b, want, d);
    case SPLIT:
        return split_cas(b, want, d);
    case STALE:
        b->last_key_len = want->key.len;
        memcpy(b->last_key, want->key.p, want->key.len);
        b->before_absent = firn_store_read(b->inner, want->key, true, &b->before, NULL) != 0;
        break;
    case CALM:
        r = unsure_cas(b, want, d);
        return r == FIRN_EUNKNOWN ? FIRN_EIO : r;
    case RETRY:
        do
            r = unsure_cas(b, want, d);
        while (r == FIRN_EUNKNOWN);
        return r;
    case DEAF:
        r = firn_store_cas(b->inner, want, d);
        char id[STORE_ID_TEXT_BUF];
        if (r == FIRN_ESTORE && firn_store_identity(b->inner, id, d) == 0)
            r = firn_store_cas(b->inner, want, d);
        return r;
    case CACHED:
    case SHORT:
        break;
    }
    return firn_store_cas(b->inner, want, d);
}

static int broken_cas_many(struct firn_store *s, const struct firn_cas *want, size_t count,
                           int *result, struct firn_diag *d)
{
    return firn_store_cas_many(((struct broken *)s)->inner, want, count, result, d);
}

static int broken_read(struct firn_store *s, struct firn_slice key, bool fresh,
                       struct firn_record *out, struct firn_diag *d)
{
    struct broken *b = (struct broken *)s;
    catch_up(b);
    if (b->mode == STALE && key.len == b->last_key_len &&
        memcmp(key.p, b->last_key, key.len) == 0) {
        b->last_key_len = 0; /* the next one is right again */
        *out = b->before;
        return b->before_absent ? FIRN_ENOENT : 0;
    }
    int r = 0;
    if (b->mode != CACHED || key.len != b->last_key_len || memcmp(key.p, b->last_key, key.len) != 0)
        r = firn_store_read(b->inner, key, fresh, &b->before, d);
    if (r != 0)
        return r;
    *out = b->before;
    if (b->mode == CACHED) {
        memcpy(b->last_key, key.p, key.len);
        b->last_key_len = key.len;
    }
    return 0;
}

struct page {
    firn_record_fn *each;
    void *user;
    size_t left;
    bool over;
};

static int one_page(void *user, struct firn_slice key, struct firn_slice value)
{
    struct page *p = user;
    p->over = p->left-- == 0;
    return p->over ? FIRN_EAGAIN : p->each(p->user, key, value);
}

static int broken_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                       void *user, struct firn_diag *d)
{
    struct broken *b = (struct broken *)s;
    catch_up(b);
    struct page page = { each, user, b->mode == SHORT ? PAGE : SIZE_MAX, false };
    int r = firn_store_scan(b->inner, prefix, one_page, &page, d);
    return page.over ? 0 : r;
}

static int broken_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    return firn_store_identity(((struct broken *)s)->inner, out, d);
}

static void broken_close(struct firn_store *s)
{
    struct broken *b = (struct broken *)s;
    catch_up(b);
    firn_store_close(b->inner);
    free(b);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "broken",
    .read = broken_read,
    .cas = broken_cas,
    .cas_many = broken_cas_many,
    .scan = broken_scan,
    .identity = broken_identity,
    .close = broken_close,
};

struct firn_store *broken_new(struct firn_store *inner, const char *mode)
{
    for (size_t i = 0; i < sizeof mode_name / sizeof mode_name[0]; i++)
        if (strcmp(mode, mode_name[i]) == 0) {
            struct broken *b = calloc(1, sizeof *b);
            if (!b)
                return NULL;
            b->base.ops = &ops;
            b->inner = inner;
            b->mode = (enum mode)i;
            return &b->base;
        }
    return NULL;
}
