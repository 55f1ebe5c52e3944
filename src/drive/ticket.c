/* Runs the group commit (coord/batch.h) and the other calls on sequences against a store. */
#include "drive/ticket.h"
#include "coord/retry.h"
#include "drive/real.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"

#include <stdlib.h>

struct seq_table *tickets_table_new(size_t max)
{
    struct sized {
        struct seq_table table;
        struct seq_entry entry[];
    } *t = calloc(1, sizeof *t + max * sizeof t->entry[0]);
    if (!t)
        return NULL;
    seq_table_init(&t->table, t->entry, max);
    return &t->table;
}

void tickets_init_table(struct tickets *t, struct firn_store *store, struct seq_table *table,
                        void (*random)(void *user, void *out, size_t len), void *user)
{
    *t = (struct tickets){
        .store = store, .random = random ? random : real_random, .random_user = user, .table = table
    };
}

int tickets_init(struct tickets *t, struct firn_store *store,
                 void (*random)(void *user, void *out, size_t len), void *user)
{
    struct seq_table *table = tickets_table_new(SEQ_TABLE_MAX);
    if (!table)
        return FIRN_ENOMEM;
    tickets_init_table(t, store, table, random, user);
    t->own = true;
    return 0;
}

void tickets_done(struct tickets *t)
{
    if (t->own)
        free(t->table);
    t->table = NULL;
}

static void draw(struct tickets *t, struct nonce *out)
{
    t->random(t->random_user, out->b, sizeof out->b);
}

/* One durable transaction if the store has them; else the sequences one after the other, each with
 * a result of its own. */
static void write_batch(struct tickets *t, struct batch *b, struct firn_diag *d)
{
    const struct firn_store_ops *ops = t->store->ops;
    int result[TICKET_JOBS_MAX], r = 0;
    bool apart = b->n + b->extra == 1 || !ops->cas_many;
    firn_assert(b->n > 0 && b->n + b->extra <= TICKET_JOBS_MAX);
    if (!apart)
        r = firn_store_cas_many(t->store, b->cas, b->n + b->extra, result, d);
    for (size_t i = 0; i < b->n; i++)
        result[i] = apart ? firn_store_cas(t->store, &b->cas[i], d) : r ? r : result[i];
    for (size_t i = 0; i < b->n; i++) {
        struct firn_record rec;
        if (batch_answered(b, result[i], d) && ops->cas_many && ops->instead &&
            ops->instead(t->store, i, &rec) == 0)
            batch_instead(b, rec.value, rec.len, d);
    }
}

int ticket_commit(struct tickets *t, struct ticket_job *job, size_t count, struct firn_diag *d)
{
    struct batch b;
    struct firn_record rec;
    struct idem_record kept;
    int r, result;
    if (count > TICKET_JOBS_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "at most %d sequences in one commit", TICKET_JOBS_MAX);
    batch_init(&b, t->table, job, count, t->store->ops->cas_many != NULL, t->now_s);
    for (;;)
        switch (batch_next(&b, &result, d)) {
        case BATCH_READ:
            r = firn_store_read(t->store, firn_slice(b.key, b.key_len), true, &rec, d);
            batch_read_done(&b, r, rec.value, r ? 0 : rec.len, d);
            break;
        case BATCH_READ_KEY:
            r = keyed_read(t->store, b.client_key, &kept, d);
            batch_key_done(&b, r, &kept, d);
            break;
        case BATCH_KEEP_LIST:
            batch_list_done(&b, keyed_flush(t->store, b.record, b.list, b.period, d));
            break;
        case BATCH_DRAW:
            draw(t, &b.fresh);
            break;
        case BATCH_WRITE:
            write_batch(t, &b, d);
            break;
        case BATCH_DONE:
            return result;
        }
}

static int read_sequence(struct tickets *t, const char *name, size_t name_len,
                         struct firn_record *rec, struct seq_record *out, struct seq_keys *keys,
                         struct firn_diag *d)
{
    char key[RECORD_KEY_BUF];
    if (!record_name_ok(name, name_len))
        return FIRN_ENOENT;
    size_t len = seq_key(name, name_len, key);
    int r = firn_store_read(t->store, firn_slice(key, len), true, rec, d);
    return r ? r : seq_parse_keyed(rec->value, rec->len, out, keys, d);
}

int ticket_flush(struct tickets *t, const char *name, size_t name_len, uint64_t since_s,
                 struct firn_diag *d)
{
    struct firn_record rec;
    struct seq_record r;
    struct seq_keys keys;
    int error = read_sequence(t, name, name_len, &rec, &r, &keys, d);
    if (error == FIRN_ENOENT)
        return 0;
    if (error || keys.n == 0 || keys.at < since_s)
        return error;
    return keyed_flush(t->store, &r, &keys, keyed_period(name, name_len), d);
}

uint64_t ticket_give_back(struct tickets *t, uint64_t until_ms)
{
    uint64_t given = 0;
    for (size_t i = 0; i < t->table->count && mono_ms() < until_ms; i++) {
        struct seq_entry *e = &t->table->entry[i];
        struct seq_range rest = e->ahead ? seq_cache_empty(&e->cache) : e->left;
        struct nonce req;
        char key[RECORD_KEY_BUF];
        e->left.count = 0; /* whatever the answer is: none of them is given any more */
        if (rest.count == 0)
            continue;
        draw(t, &req);
        if (!seq_op_give_back(&e->op, &rest, &req))
            continue;
        struct firn_cas cas = { firn_slice(key, seq_key(e->name, e->name_len, key)),
                                firn_slice(e->op.base_text, e->op.base_len),
                                firn_slice(e->op.value, e->op.value_len) };
        int r = firn_store_cas(t->store, &cas, NULL);
        e->op.base_len = 0;
        given += r == 0 ? rest.count : 0;
        if (r != 0 && r != FIRN_ECONFLICT)
            break;
    }
    return given;
}

/* Replaces a record that was read by `next`. FIRN_EAGAIN: another process wrote, or the outcome is
 * open: read again. */
static int replace(struct tickets *t, const char *name, size_t name_len,
                   const struct firn_record *rec, const struct seq_record *next,
                   struct firn_diag *d)
{
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_cas cas = { firn_slice(key, seq_key(name, name_len, key)),
                            firn_slice(rec->value, rec->len),
                            firn_slice(text, seq_encode(next, text)) };
    int r = firn_store_cas(t->store, &cas, d);
    if (r == 0)
        batch_forget(t->table, name, name_len);
    return r == FIRN_ECONFLICT || r == FIRN_EUNKNOWN ? FIRN_EAGAIN : r;
}

static int busy(struct firn_diag *d)
{
    return firn__diag(d, FIRN_EAGAIN, 0, "other processes keep taking numbers: try again");
}

/* Create a deleted sequence again. */
static int renew(struct tickets *t, const char *name, size_t name_len, const struct seq_spec *spec,
                 struct seq_record *out, struct firn_diag *d)
{
    struct firn_record rec;
    struct seq_record there, next;
    struct seq_keys keys;
    struct nonce req;
    draw(t, &req);
    for (int i = 0; i < RETRY_ROUNDS_MAX; i++) {
        int r = read_sequence(t, name, name_len, &rec, &there, &keys, d);
        if (r != 0)
            return r;
        if (out)
            *out = there;
        if (!seq_deleted(&there))
            return nonce_eq(&there.req, &req)
                       ? 0
                       : firn__diag(d, FIRN_ECONFLICT, 0, "the sequence '%.*s' exists",
                                    (int)name_len, name);
        r = seq_renew(&there, spec, &req, &next, d);
        if (r == 0)
            r = replace(t, name, name_len, &rec, &next, d);
        if (r == 0 && out)
            *out = next;
        if (r != FIRN_EAGAIN)
            return r;
    }
    return busy(d);
}

int ticket_delete(struct tickets *t, const char *name, size_t name_len, struct seq_record *out,
                  struct firn_diag *d)
{
    struct firn_record rec;
    struct seq_keys keys;
    struct nonce req;
    bool sent = false;
    draw(t, &req);
    for (int i = 0; i < RETRY_ROUNDS_MAX; i++) {
        *out = (struct seq_record){ .step = 0 };
        int r = read_sequence(t, name, name_len, &rec, out, &keys, d);
        if (r == 0 && seq_deleted(out))
            return sent && nonce_eq(&out->req, &req) ? 0 : FIRN_ENOENT;
        if (r == 0)
            r = keyed_flush(t->store, out, &keys, keyed_period(name, name_len), d);
        if (r != 0)
            return r;
        seq_delete(out, &req);
        sent = true;
        r = replace(t, name, name_len, &rec, out, d);
        if (r != FIRN_EAGAIN)
            return r;
    }
    return busy(d);
}

int ticket_create(struct tickets *t, const char *name, size_t name_len, const struct seq_spec *spec,
                  struct seq_record *out, struct firn_diag *d)
{
    if (!record_name_ok(name, name_len))
        return firn__diag(d, FIRN_EINVAL, 0,
                          "a sequence's name is 1 to %d of A-Z a-z 0-9 . _ : and -",
                          RECORD_NAME_MAX);
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct seq_record made, there;
    struct nonce req;
    draw(t, &req);
    int r = seq_new(spec, &req, &made, d);
    if (r != 0)
        return r;
    size_t key_len = seq_key(name, name_len, key), len = seq_encode(&made, text);
    struct firn_cas cas = { firn_slice(key, key_len), { NULL, 0 }, firn_slice(text, len) };
    r = firn_store_cas(t->store, &cas, d);
    if (r == FIRN_EUNKNOWN || r == FIRN_ECONFLICT) {
        /* Ours after all? The nonce tells, as long as no number has been taken. */
        int got = ticket_describe(t, name, name_len, &there, d);
        if (got != 0)
            return got == FIRN_ENOENT ? r : got;
        r = nonce_eq(&there.req, &req) ? 0 : FIRN_ECONFLICT;
        made = there;
        if (seq_deleted(&there))
            return renew(t, name, name_len, spec, out, d);
    }
    if (out && (r == 0 || r == FIRN_ECONFLICT))
        *out = made;
    return r == FIRN_ECONFLICT
               ? firn__diag(d, r, 0, "the sequence '%.*s' exists", (int)name_len, name)
               : r;
}

int ticket_describe(struct tickets *t, const char *name, size_t name_len, struct seq_record *out,
                    struct firn_diag *d)
{
    struct firn_record rec;
    struct seq_keys keys;
    return read_sequence(t, name, name_len, &rec, out, &keys, d);
}

int ticket_skip(struct tickets *t, const char *name, size_t name_len, uint64_t n,
                struct seq_record *out, struct firn_diag *d)
{
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_record rec;
    struct seq_keys keys;
    struct nonce req;
    for (int i = 0; i < RETRY_ROUNDS_MAX; i++) {
        int r = read_sequence(t, name, name_len, &rec, out, &keys, d);
        if (r == 0)
            r = keyed_flush(t->store, out, &keys, keyed_period(name, name_len), d);
        if (r != 0)
            return r;
        draw(t, &req);
        if (!seq_skip(out, n, &req))
            return 0;
        struct firn_cas cas = { firn_slice(key, seq_key(name, name_len, key)),
                                firn_slice(rec.value, rec.len),
                                firn_slice(text, seq_encode(out, text)) };
        r = firn_store_cas(t->store, &cas, d);
        if (r != FIRN_ECONFLICT)
            return r;
    }
    return busy(d);
}

struct listing {
    ticket_each_fn *each;
    void *user;
    struct firn_diag *d;
};

static int read_listed(struct firn_slice key, struct firn_slice value, struct seq_record *out,
                       struct firn_diag *d)
{
    if (key.len < 5 || key.len > 4 + RECORD_NAME_MAX)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "the store has a register that is not firn's, remove it: %.*s",
                          (int)(key.len < 100 ? key.len : 100), key.p);
    return seq_parse(value.p, value.len, out, d);
}

static int list_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct listing *l = user;
    struct seq_record r;
    int error = read_listed(key, value, &r, l->d);
    return error ? error : l->each(l->user, key.p + 4, key.len - 4, &r);
}

int ticket_list(struct tickets *t, ticket_each_fn *each, void *user, struct firn_diag *d)
{
    struct listing l = { each, user, d };
    return firn_store_scan(t->store, firn_slice("seq/", 4), list_one, &l, d);
}

enum { PAGE_ENDS = 1 }; /* of a scan, by itself */

struct page {
    struct listing listing;
    char *at;
    size_t left, looks; /* sequences to show, registers to look at */
    bool jump, full;
};

/* Registers of periods ("invoice@20261116") come in one piece: '~' is in no name, so behind
 * "invoice@~" there are none of them. */
static int page_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct page *p = user;
    struct seq_record r;
    p->full = p->left == 0 || p->looks == 0;
    if (p->full)
        return PAGE_ENDS;
    int error = read_listed(key, value, &r, p->listing.d);
    if (error)
        return error;
    const char *name = key.p + 4, *inner = memchr(name, RECORD_INNER, key.len - 4);
    size_t len = inner ? (size_t)(inner + 1 - name) : key.len - 4;
    firn_assert(len < TICKET_CURSOR_MAX);
    memcpy(p->at, name, len);
    memcpy(p->at + len, "~", 2);
    p->looks--;
    p->jump = inner != NULL;
    if (inner)
        return PAGE_ENDS;
    p->at[len] = '\0';
    if (seq_deleted(&r))
        return 0;
    p->left--;
    return p->listing.each(p->listing.user, name, len, &r);
}

static int page_of(struct tickets *t, struct firn_slice prefix, char at[TICKET_CURSOR_MAX + 1],
                   size_t max, ticket_each_fn *each, void *user, bool *out_more,
                   struct firn_diag *d)
{
    struct page p = { { each, user, d }, at, max, TICKET_PAGE_LOOKS, false, false };
    char after[4 + TICKET_CURSOR_MAX] = "seq/";
    int r, jumps = 0;
    do {
        size_t len = strnlen(at, TICKET_CURSOR_MAX);
        memcpy(after + 4, at, len);
        p.jump = false;
        r = firn_store_scan_after(t->store, prefix, firn_slice(after, 4 + len), page_one, &p, d);
    } while (r == PAGE_ENDS && p.jump && ++jumps < TICKET_PAGE_JUMPS);
    if (r != 0 && r != PAGE_ENDS)
        return r;
    *out_more = r == PAGE_ENDS;
    return 0;
}

int ticket_page(struct tickets *t, char at[TICKET_CURSOR_MAX + 1], size_t max, ticket_each_fn *each,
                void *user, bool *out_more, struct firn_diag *d)
{
    return page_of(t, firn_slice("seq/", 4), at, max, each, user, out_more, d);
}

static int count_one(void *user, const char *name, size_t len, const struct seq_record *r)
{
    (void)name, (void)len, (void)r;
    ++*(uint64_t *)user;
    return 0;
}

int ticket_count(struct tickets *t, const char *prefix, size_t len, uint64_t max, uint64_t *out,
                 struct firn_diag *d)
{
    char key[4 + RECORD_NAME_MAX] = "seq/", at[TICKET_CURSOR_MAX + 1] = "";
    bool more = len <= RECORD_NAME_MAX;
    uint64_t n = 0;
    int r = 0;
    memcpy(key + 4, prefix, more ? len : 0);
    while (r == 0 && more && n < max)
        r = page_of(t, firn_slice(key, 4 + len), at, max - n, count_one, &n, &more, d);
    *out = n;
    return r;
}
