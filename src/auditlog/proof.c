/* Writes, reads and checks proofs. */
#include "auditlog/proof.h"
#include "id/diag.h"
#include "id/hex.h"
#include "wire/json_read.h"
#include "wire/json_write.h"
#include "wire/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROOF_NAME "firn-audit-proof-1"

enum { NAME_BUF = 16, HEX_BUF = 2 * SHA256_BYTES + 1 };

/* --- writing --- */

static void put_row(struct buf *b, const struct chain_row *r)
{
    char time[24];
    int n = snprintf(time, sizeof time, "%" PRId64, r->at_us);
    json_begin(b, "row", '{');
    json_id(b, "id", r->id);
    json_bytes(b, "tenant", r->tenant.p, r->tenant.len);
    json_bytes(b, "user", r->user.p, r->user.len);
    json_bytes(b, "actor", r->actor.p, r->actor.len);
    json_bytes(b, "action", r->action.p, r->action.len);
    json_bytes(b, "at_us", time, (size_t)n);
    json_id(b, "map_version", r->map_version);
    json_bytes(b, "detail", r->detail.p, r->detail.len);
    json_end(b, '}');
}

void proof_write(const struct proof *p, struct buf *b)
{
    char hex[HEX_BUF], head[HEAD_TEXT_BUF];
    json_begin(b, NULL, '{');
    json_text(b, "proof", PROOF_NAME);
    put_row(b, &p->row);
    json_id(b, "place", p->place);
    json_begin(b, "path", '[');
    for (size_t i = 0; i < p->path_n; i++) {
        trace_hex(p->path[i], SHA256_BYTES, hex);
        json_text(b, NULL, hex);
    }
    json_end(b, ']');
    json_begin(b, "heads", '[');
    for (size_t i = 0; i < p->heads_n; i++) {
        head_write(&p->heads[i].head, &p->heads[i].sig, head);
        json_text(b, NULL, head);
    }
    json_end(b, ']');
    json_end(b, '}');
}

/* --- reading --- */

struct reading {
    struct json_reader j;
    struct proof *p;
    struct firn_diag *diag;
    char *room, *end; /* for texts: as many bytes as the JSON has, which they cannot exceed */
    size_t heads_cap;
};

static int read_text(struct reading *r, struct slice *out)
{
    size_t len;
    int e = json_string(&r->j, r->room, (size_t)(r->end - r->room), &len);
    if (e)
        return e;
    *out = (struct slice){ r->room, len };
    r->room += len + 1;
    return 0;
}

static int read_i64(struct reading *r, int64_t *out)
{
    struct slice s;
    char text[24], *end;
    int e = json_slice(&r->j, &s);
    if (e)
        return e;
    bool minus = s.len > 0 && *s.p == '-';
    if (s.len == (size_t)minus || s.len >= sizeof text ||
        (s.p[minus] == '0' && (minus || s.len > 1)))
        return FIRN_EFORMAT;
    for (size_t i = minus; i < s.len; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return FIRN_EFORMAT;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    long long n = strtoll(text, &end, 10);
    char again[24];
    snprintf(again, sizeof again, "%lld", n);
    *out = n;
    return strcmp(text, again) == 0 ? 0 : FIRN_EFORMAT; /* beyond 64 bits */
}

static int read_row(struct reading *r)
{
    struct chain_row *row = &r->p->row;
    const struct {
        const char *name;
        struct slice *text;
        uint64_t *number;
    } members[] = {
        { "id", NULL, &row->id },         { "tenant", &row->tenant, NULL },
        { "user", &row->user, NULL },     { "actor", &row->actor, NULL },
        { "action", &row->action, NULL }, { "detail", &row->detail, NULL },
        { "at_us", NULL, NULL },          { "map_version", NULL, &row->map_version },
    };
    enum { N = sizeof members / sizeof members[0] };
    char name[NAME_BUF];
    unsigned seen = 0;
    int e = json_object(&r->j);
    while (e == 0 && (e = json_member(&r->j, name, sizeof name)) > 0) {
        unsigned i = 0;
        while (i < N && strcmp(name, members[i].name) != 0)
            i++;
        if (i == N || seen >> i & 1)
            return firn__diag(r->diag, FIRN_EFORMAT, 0, "row: %s: unknown, or there twice", name);
        seen |= 1u << i;
        e = members[i].text     ? read_text(r, members[i].text)
            : members[i].number ? json_u64(&r->j, members[i].number)
                                : read_i64(r, &row->at_us);
    }
    if (e == 0 && seen != (1u << N) - 1)
        return firn__diag(r->diag, FIRN_EFORMAT, 0, "row: a member is missing");
    return e;
}

static int read_path(struct reading *r)
{
    struct proof *p = r->p;
    struct slice s;
    int e = json_array(&r->j);
    while (e == 0 && (e = json_element(&r->j)) > 0) {
        e = json_slice(&r->j, &s);
        if (e == 0 && (p->path_n == MERKLE_PATH_MAX || s.len != HEX_BUF - 1 ||
                       !hex_bytes(s.p, SHA256_BYTES, p->path[p->path_n++])))
            e = firn__diag(r->diag, FIRN_EFORMAT, 0,
                           "path: at most %d digests of 64 hexadecimal digits", MERKLE_PATH_MAX);
    }
    return e;
}

static int add_head(struct reading *r, struct slice text)
{
    struct proof *p = r->p;
    if (p->heads_n == PROOF_HEADS_MAX)
        return firn__diag(r->diag, FIRN_ERANGE, 0, "heads: at most %d", PROOF_HEADS_MAX);
    if (p->heads_n == r->heads_cap) {
        size_t cap = r->heads_cap ? r->heads_cap * 2 : 4;
        struct proof_head *grown = realloc(p->heads, cap * sizeof *grown);
        if (!grown)
            return FIRN_ENOMEM;
        p->heads = grown;
        r->heads_cap = cap;
    }
    struct proof_head *h = &p->heads[p->heads_n];
    int e = head_read(text, &h->head, &h->sig, r->diag);
    p->heads_n += e == 0;
    return e;
}

static int read_heads(struct reading *r)
{
    struct slice s;
    int e = json_array(&r->j);
    while (e == 0 && (e = json_element(&r->j)) > 0) {
        e = json_slice(&r->j, &s);
        if (e == 0)
            e = add_head(r, s);
    }
    if (e == 0 && r->p->heads_n == 0)
        return firn__diag(r->diag, FIRN_EFORMAT, 0, "heads: there is none");
    return e;
}

static int read_name(struct reading *r)
{
    struct slice s;
    int e = json_slice(&r->j, &s);
    if (e == 0 && !slice_is(s, PROOF_NAME))
        return firn__diag(r->diag, FIRN_EFORMAT, 0, "proof: it is not " PROOF_NAME);
    return e;
}

static int read_place(struct reading *r)
{
    return json_u64(&r->j, &r->p->place);
}

static int read_all(struct reading *r)
{
    static const struct {
        const char *name;
        int (*read)(struct reading *r);
    } members[] = { { "proof", read_name },
                    { "row", read_row },
                    { "place", read_place },
                    { "path", read_path },
                    { "heads", read_heads } };
    enum { N = sizeof members / sizeof members[0] };
    char name[NAME_BUF];
    unsigned seen = 0;
    int e = json_object(&r->j);
    while (e == 0 && (e = json_member(&r->j, name, sizeof name)) > 0) {
        unsigned i = 0;
        while (i < N && strcmp(name, members[i].name) != 0)
            i++;
        if (i == N || seen >> i & 1)
            return firn__diag(r->diag, FIRN_EFORMAT, 0, "%s: unknown, or there twice", name);
        seen |= 1u << i;
        e = members[i].read(r);
    }
    if (e == 0)
        e = json_finish(&r->j);
    if (e == 0 && seen != (1u << N) - 1)
        return firn__diag(r->diag, FIRN_EFORMAT, 0,
                          "a member is missing: proof, row, place, path and heads are needed");
    return e;
}

int proof_read(struct slice json, struct proof *out, struct firn_diag *diag)
{
    struct proof p = { .place = 0 };
    struct reading r = { .p = &p, .diag = diag };
    if (diag)
        *diag = (struct firn_diag){ 0, "" };
    p.text = malloc(json.len + 1);
    if (!p.text)
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    r.room = p.text;
    r.end = p.text + json.len + 1;
    json_start(&r.j, json.p, json.len, diag);
    int e = read_all(&r);
    if (e == 0) {
        *out = p;
        return 0;
    }
    proof_done(&p);
    if (diag && diag->text[0] == '\0')
        firn__diag(diag, e, 0, "the proof is malformed");
    return e == FIRN_ENOMEM || e == FIRN_ERANGE ? e : FIRN_EFORMAT;
}

void proof_done(struct proof *p)
{
    free(p->heads);
    free(p->text);
    *p = (struct proof){ .place = 0 };
}

/* --- checking --- */

/* The row is a leaf of the first head's tree. */
static int check_row(const struct proof *p, struct chain_hasher *hasher, struct firn_diag *d)
{
    const struct head *h = &p->heads[0].head;
    digest_t leaf, root;
    int r = chain_row_digest(hasher, &p->row, leaf);
    if (r == FIRN_ENOMEM)
        return firn__diag(d, r, 0, "out of memory, or the row is too long");
    if (r)
        return firn__diag(d, FIRN_EAUTH, 0, "the row's detail is no JSON");
    if (p->row.id < h->first || p->row.id > h->last)
        return firn__diag(d, FIRN_EAUTH, 0, "the row's ID is not in its batch's range");
    if (merkle_climb(&hasher->sha, leaf, p->place, h->rows, p->path, p->path_n, root) != 0)
        return firn__diag(d, FIRN_EAUTH, 0, "the path does not fit a batch of %u rows", h->rows);
    if (memcmp(root, h->root, sizeof root) != 0)
        return firn__diag(d, FIRN_EAUTH, 0,
                          "the row, its place or its path was changed: they do not lead to the "
                          "root of its batch");
    return 0;
}

int proof_check(const struct proof *p, const struct head_keys *keys, struct firn_diag *d)
{
    struct chain_hasher hasher;
    struct chain chain;
    if (p->heads_n == 0)
        return firn__diag(d, FIRN_EAUTH, 0, "there is no head");
    const struct proof_head *last = &p->heads[p->heads_n - 1];
    int r = chain_hasher_open(&hasher);
    if (r) {
        firn__diag(d, r, 0, "out of memory");
        goto close;
    }
    r = check_row(p, &hasher, d);
    for (size_t i = 1; r == 0 && i < p->heads_n; i++) {
        chain_resume(&chain, &hasher.sha, &p->heads[i - 1].head);
        if (!chain_follows(&chain, &p->heads[i].head))
            r = firn__diag(d, FIRN_EAUTH, 0,
                           "head %" PRIu64 " does not follow head %" PRIu64 ": one was changed",
                           p->heads[i].head.seq, p->heads[i - 1].head.seq);
    }
    if (r)
        goto close;
    r = head_check(keys, &last->head, &last->sig);
    if (r == FIRN_ENOENT)
        firn__diag(d, r, 0,
                   last->sig.there ? "the last head is signed by a key that is not among yours"
                                   : "the last head is not signed");
    else if (r)
        firn__diag(d, r, 0, "the last head's signature is not of this head");
close:
    chain_hasher_close(&hasher);
    return r;
}
