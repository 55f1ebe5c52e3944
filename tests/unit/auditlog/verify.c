/* A shard with several writers: an intact one is found intact, every change is named first. */
#include "auditlog/verify.h"
#include "audit.h"

#include <stdio.h>
#include <stdlib.h>

enum { WRITERS = 3, BATCHES = 60, ROWS_MAX = 4000, SHARD = 3 };

/* --- a log --- */

static struct chain_batch batch;
static struct head_signer *signer;
static struct head_keys *keys;

static struct kept {
    struct head head;
    struct head_sig sig;
    char *index;
    size_t index_len;
} log_[BATCHES];
static size_t batches;
static struct chain_row rows[ROWS_MAX + 1];
static size_t rows_n;
static char users[ROWS_MAX + 1][16];

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct chain_row *)a)->id, y = ((const struct chain_row *)b)->id;
    return (x > y) - (x < y);
}

static int by_first(const void *a, const void *b)
{
    uint64_t x = ((const struct kept *)a)->head.first, y = ((const struct kept *)b)->head.first;
    return (x > y) - (x < y);
}

static int by_writer(const void *a, const void *b)
{
    const struct head *x = &((const struct kept *)a)->head, *y = &((const struct kept *)b)->head;
    int c = strcmp(x->writer, y->writer);
    return c ? c : (x->seq > y->seq) - (x->seq < y->seq);
}

/* Writers take IDs that lie among those of the others, and commit batches of any size. */
static void build(void)
{
    struct chain chain[WRITERS];
    static uint64_t waiting[WRITERS][ROWS_MAX];
    size_t n[WRITERS] = { 0 };
    uint64_t id = 1 + t_random_below(1000);
    T_EQ(chain_batch_open(&batch), 0);
    signer = signer_of(1);
    T_EQ(head_keys_new(&keys), 0);
    add_key(keys, 1);
    rows_n = batches = 0;
    for (unsigned w = 0; w < WRITERS; w++) {
        char name[16];
        snprintf(name, sizeof name, "app-%u", w);
        T_EQ(chain_start(&chain[w], SHARD, name), 0);
    }
    while (batches < BATCHES && rows_n < ROWS_MAX) {
        size_t w = t_random_below(WRITERS);
        for (uint64_t k = t_random_below(20); k > 0 && rows_n < ROWS_MAX; k--) {
            id += 1 + t_random_below(5);
            rows[rows_n] = row_of(id);
            snprintf(users[rows_n], sizeof users[0], "user-%u", (unsigned)t_random_below(100));
            rows[rows_n].user = text_of(users[rows_n]);
            waiting[w][n[w]++] = rows_n++;
        }
        if (n[w] == 0 || t_random_below(2))
            continue;
        struct kept *k = &log_[batches++];
        chain_batch_clear(&batch);
        for (size_t i = 0; i < n[w]; i++)
            T_EQ(chain_batch_add(&batch, &rows[waiting[w][i]]), 0);
        n[w] = 0;
        T_EQ(chain_batch_end(&batch), 0);
        T_EQ(chain_head(&chain[w], &batch, 1000, &k->head), 0);
        chain_advance(&chain[w], &batch.hasher.sha, &k->head);
        T_EQ(head_sign(signer, &k->head, &k->sig), 0);
        k->index_len = batch.index.len;
        k->index = malloc(k->index_len);
        memcpy(k->index, batch.index.p, k->index_len);
    }
    size_t left = 0; /* rows that were not committed were never there */
    for (size_t i = 0; i < rows_n; i++) {
        bool there = true;
        for (unsigned w = 0; w < WRITERS; w++)
            for (size_t k = 0; k < n[w]; k++)
                there = there && waiting[w][k] != i;
        if (there)
            rows[left++] = rows[i];
    }
    rows_n = left;
}

static void drop(void)
{
    for (size_t i = 0; i < batches; i++)
        free(log_[i].index);
    chain_batch_close(&batch);
    head_signer_free(signer);
    head_keys_free(keys);
}

/* --- what is found --- */

static struct finding first;
static char first_writer[64];
static size_t found_n, enough;

static bool found(void *user, const struct finding *f)
{
    T_OK(user == &found_n);
    if (found_n++ == 0) {
        first = *f;
        snprintf(first_writer, sizeof first_writer, "%s", f->writer);
        first.writer = first_writer;
    }
    T_OK(finding_title(f->kind)[0] && finding_text(f->kind)[0]);
    return found_n != enough;
}

/* The heads of all writers, `checkpoint` of app-0. */
static void check_heads(const struct head *checkpoint)
{
    struct verify_heads v;
    found_n = 0;
    qsort(log_, batches, sizeof log_[0], by_writer);
    for (size_t i = 0; i < batches;) {
        char writer[64];
        snprintf(writer, sizeof writer, "%s", log_[i].head.writer);
        verify_heads_start(&v, &batch.hasher.sha, keys, NULL, found, &found_n);
        for (; i < batches && strcmp(log_[i].head.writer, writer) == 0; i++)
            verify_heads_next(&v, &log_[i].head, &log_[i].sig);
        verify_heads_end(&v, strcmp(writer, "app-0") == 0 ? checkpoint : NULL);
    }
}

/* Returns how many rows were right. */
static uint64_t check_rows_of(uint64_t from, uint64_t to)
{
    struct verify_rows *v;
    size_t h = 0;
    int r = 0;
    found_n = 0;
    qsort(log_, batches, sizeof log_[0], by_first);
    T_EQ(verify_rows_new(SHARD, from, to, found, &found_n, &v), 0);
    for (size_t i = 0; i < rows_n && r == 0; i++) {
        if (rows[i].id < from || rows[i].id > to)
            continue;
        for (; r == 0 && h < batches && log_[h].head.first <= rows[i].id; h++)
            r = verify_rows_head(v, &log_[h].head,
                                 (struct slice){ log_[h].index, log_[h].index_len });
        if (r == 0)
            r = verify_rows_row(v, &rows[i]);
    }
    for (; r == 0 && h < batches; h++)
        r = verify_rows_head(v, &log_[h].head, (struct slice){ log_[h].index, log_[h].index_len });
    if (r == 0)
        r = verify_rows_end(v);
    T_EQ(r, enough && found_n == enough ? FIRN_ECLOSED : 0);
    uint64_t n = verify_rows_compared(v);
    verify_rows_free(v);
    return n;
}

static uint64_t check_rows(void)
{
    return check_rows_of(0, UINT64_MAX);
}

static const struct kept *batch_of(uint64_t id)
{
    for (size_t i = 0; i < batches; i++)
        for (size_t k = 0; k < log_[i].head.rows; k++)
            if (chain_index_id(log_[i].index, k) == id)
                return &log_[i];
    return NULL;
}

/* --- tests --- */

T_TEST(an_intact_log_is_found_intact)
{
    for (uint64_t i = 0; i < t_scale(20); i++) {
        build();
        check_heads(NULL);
        T_EQ(found_n, 0, "%s of %s %" PRIu64, finding_title(first.kind), first.writer, first.seq);
        T_EQ(check_rows(), rows_n);
        T_EQ(found_n, 0, "%s: %" PRIu64, finding_title(first.kind), first.id);
        uint64_t from = rows[t_random_below(rows_n)].id, to = from + t_random_below(500), want = 0;
        for (size_t k = 0; k < rows_n; k++)
            want += rows[k].id >= from && rows[k].id <= to;
        T_EQ(check_rows_of(from, to), want); /* a part of it, through the middle of batches */
        T_EQ(found_n, 0, "%s: %" PRIu64, finding_title(first.kind), first.id);
        drop();
    }
}

static void change(struct chain_row *r)
{
    static const char *const detail[] = { "{\"new\":\"c@x\",\"old\":\"a@x\",\"n\":1}", "{}", "[",
                                          "" };
    switch (t_random_below(8)) {
    case 0:
        r->at_us++;
        break;
    case 1:
        r->map_version--;
        break;
    case 2:
        r->tenant = text_of("acne");
        break;
    case 3:
        r->user = text_of("user-x");
        break;
    case 4:
        r->actor = text_of("");
        break;
    case 5:
        r->action = text_of("email.read");
        break;
    default:
        r->detail = text_of(detail[t_random_below(T_LEN(detail))]);
        break;
    }
}

T_TEST(the_row_is_named)
{
    for (uint64_t i = 0; i < t_scale(60); i++) {
        build();
        size_t at = t_random_below(rows_n);
        uint64_t id = rows[at].id;
        enum finding_kind want = FINDING_ROW_CHANGED;
        if (i % 3 == 0) {
            change(&rows[at]);
        } else if (i % 3 == 1) {
            want = FINDING_ROW_MISSING;
            memmove(&rows[at], &rows[at + 1], (--rows_n - at) * sizeof rows[0]);
        } else {
            want = FINDING_ROW_ADDED;
            do
                id = t_random_below(rows[rows_n - 1].id + 10);
            while (batch_of(id));
            rows[rows_n++] = row_of(id);
            qsort(rows, rows_n, sizeof rows[0], by_id);
        }
        check_rows();
        T_EQ(found_n, 1);
        T_EQ(first.kind, want, "%s instead of %s", finding_title(first.kind), finding_title(want));
        T_EQ(first.id, id);
        T_EQ(first.shard, SHARD);
        const struct kept *of = batch_of(id);
        T_EQ(of == NULL, want == FINDING_ROW_ADDED);
        T_STR(first.writer, of ? of->head.writer : "");
        T_EQ(first.seq, of ? of->head.seq : 0);
        check_rows_of(id, id);
        T_EQ(found_n, 1);
        T_EQ(first.id, id);
        drop();
    }
}

/* With several changes the callback has them in the order of the IDs, and may have enough. */
T_TEST(the_first_comes_first)
{
    for (uint64_t i = 0; i < t_scale(20); i++) {
        build();
        uint64_t lowest = UINT64_MAX;
        for (int k = 0; k < 5; k++) {
            size_t at = t_random_below(rows_n);
            lowest = rows[at].id < lowest ? rows[at].id : lowest;
            rows[at].actor = text_of("somebody else");
        }
        enough = 1;
        check_rows();
        T_EQ(found_n, 1);
        T_EQ(first.id, lowest);
        enough = 0;
        check_rows();
        T_OK(found_n >= 1 && found_n <= 5);
        T_EQ(first.id, lowest);
        drop();
    }
}

/* A row whose digest begins as the index says, but is another: the root has the last word. */
T_TEST(the_index_cannot_lie)
{
    build();
    qsort(log_, batches, sizeof log_[0], by_first);
    struct kept *k = &log_[t_random_below(batches)];
    k->index[t_random_below(k->index_len)] ^= 1;
    check_rows();
    T_EQ(first.kind, FINDING_INDEX_CHANGED);
    T_EQ(first.seq, k->head.seq);
    k->index_len -= CHAIN_INDEX_BYTES;
    check_rows();
    T_EQ(first.kind, FINDING_INDEX_CHANGED);
    drop();

    build(); /* index and head rewritten, with another row: the signature does not fit */
    qsort(log_, batches, sizeof log_[0], by_first);
    k = &log_[batches / 2];
    for (size_t i = 0; i < rows_n; i++)
        if (rows[i].id == k->head.first)
            rows[i].actor = text_of("somebody else");
    chain_batch_clear(&batch);
    for (size_t i = 0; i < rows_n; i++)
        if (batch_of(rows[i].id) == k)
            T_EQ(chain_batch_add(&batch, &rows[i]), 0);
    T_EQ(chain_batch_end(&batch), 0);
    memcpy(k->index, batch.index.p, k->index_len);
    memcpy(k->head.index, batch.index_digest, sizeof k->head.index);
    struct head told = k->head;
    check_rows();
    T_EQ(found_n, 1);
    T_EQ(first.kind, FINDING_BATCH_CHANGED, "%s", finding_title(first.kind));
    for (size_t i = 0; i < batches; i++)
        if (log_[i].head.seq == told.seq && strcmp(log_[i].head.writer, told.writer) == 0)
            memcpy(log_[i].head.root, batch.root, sizeof batch.root);
    check_rows();
    T_EQ(found_n, 0, "rows, index and root agree");
    check_heads(NULL);
    T_EQ(first.kind, FINDING_SIGNATURE_WRONG);
    T_EQ(first.seq, told.seq);
    T_STR(first.writer, told.writer);
    drop();
}

T_TEST(heads_are_named)
{
    for (uint64_t i = 0; i < t_scale(40); i++) {
        build();
        check_heads(NULL);
        size_t first_of_1 = 0, n = 0;
        for (size_t k = 0; k < batches; k++)
            if (strcmp(log_[k].head.writer, "app-1") == 0 && n++ == 0)
                first_of_1 = k;
        size_t at = first_of_1 + t_random_below(n - 1);
        uint64_t seq = log_[at].head.seq;
        enum finding_kind want;
        struct kept gone = log_[at];
        switch (i % 5) {
        case 0: /* changed, and the signature with it lost: the next one's link tells */
            want = FINDING_HEAD_CHANGED;
            log_[at].head.time_us++;
            log_[at].sig.there = false;
            break;
        case 1:
            want = FINDING_SIGNATURE_WRONG;
            log_[at].head.time_us++;
            break;
        case 2:
            want = FINDING_HEAD_MISSING;
            memmove(&log_[at], &log_[at + 1], (--batches - at) * sizeof log_[0]);
            break;
        case 3:
            want = FINDING_KEY_UNKNOWN;
            log_[at].sig.key[0] ^= 1;
            break;
        default: /* the last ones are not signed */
            want = FINDING_HEAD_UNSIGNED;
            at = first_of_1 + n - 2;
            seq = log_[at].head.seq;
            log_[at].sig.there = log_[at + 1].sig.there = false;
            break;
        }
        check_heads(NULL);
        T_OK(found_n >= 1, "%s", finding_title(want));
        T_EQ(first.kind, want, "%s instead of %s", finding_title(first.kind), finding_title(want));
        T_EQ(first.seq, seq);
        T_STR(first.writer, "app-1");
        T_EQ(first.id, 0);
        if (i % 5 == 2)
            free(gone.index);
        drop();
    }
}

T_TEST(a_checkpoint_sees_the_end_that_was_cut_off)
{
    build();
    check_heads(NULL);
    size_t n = 0;
    while (strcmp(log_[n].head.writer, "app-0") == 0)
        n++;
    T_OK(n > 2);
    struct kept last = log_[n - 1];
    check_heads(&last.head);
    T_EQ(found_n, 0);
    memmove(&log_[n - 1], &log_[n], (--batches - (n - 1)) * sizeof log_[0]);
    check_heads(NULL);
    T_EQ(found_n, 0, "by itself it does not show");
    check_heads(&last.head);
    T_EQ(found_n, 1);
    T_EQ(first.kind, FINDING_CHAIN_SHORT);
    T_EQ(first.seq, last.head.seq);
    struct head other = log_[n - 2].head;
    other.time_us++;
    check_heads(&other);
    T_EQ(first.kind, FINDING_HEAD_CHANGED);
    struct verify_heads v; /* and from a head that is trusted on */
    found_n = 0;
    verify_heads_start(&v, &batch.hasher.sha, keys, &log_[n - 2].head, found, &found_n);
    T_OK(verify_heads_next(&v, &last.head, &last.sig));
    T_OK(verify_heads_end(&v, &last.head));
    T_EQ(found_n, 0);
    free(last.index);
    drop();
}

T_TEST(two_batches_with_one_row)
{
    build();
    qsort(log_, batches, sizeof log_[0], by_first);
    struct kept twice = log_[batches / 2];
    struct verify_rows *v;
    found_n = 0;
    T_EQ(verify_rows_new(SHARD, twice.head.first, twice.head.first, found, &found_n, &v), 0);
    struct slice index = { twice.index, twice.index_len };
    T_EQ(verify_rows_head(v, &twice.head, index), 0);
    T_EQ(verify_rows_head(v, &twice.head, index), 0);
    for (size_t i = 0; i < rows_n; i++)
        if (rows[i].id == twice.head.first)
            T_EQ(verify_rows_row(v, &rows[i]), 0);
    T_EQ(verify_rows_end(v), 0);
    T_EQ(found_n, 1);
    T_EQ(first.kind, FINDING_ROW_TWICE);
    T_EQ(first.id, twice.head.first);
    verify_rows_free(v);
    drop();
}

T_TEST(what_is_not_in_order_is_refused)
{
    struct verify_rows *v;
    build();
    qsort(log_, batches, sizeof log_[0], by_first);
    struct slice one = { log_[1].index, log_[1].index_len },
                 zero = { log_[0].index, log_[0].index_len };
    T_EQ(verify_rows_new(SHARD, 0, UINT64_MAX, found, &found_n, &v), 0);
    T_EQ(verify_rows_head(v, &log_[1].head, one), 0);
    T_EQ(verify_rows_head(v, &log_[0].head, zero), FIRN_EINVAL);
    struct head other = log_[2].head;
    other.shard++;
    T_EQ(verify_rows_head(v, &other, one), FIRN_EINVAL);
    found_n = 0;
    T_EQ(verify_rows_row(v, &rows[5]), 0);
    T_EQ(verify_rows_row(v, &rows[5]), FIRN_EINVAL);
    T_EQ(verify_rows_row(v, &rows[4]), FIRN_EINVAL);
    verify_rows_free(v);
    verify_rows_free(NULL);
    drop();
}
