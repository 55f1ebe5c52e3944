/*
 * A batch as one transaction:
 *
 *     BEGIN; role; keys: insert, look up; rows: insert, leave alone what is there; COMMIT
 *
 * All of it is sent at once. Under READ COMMITTED an insert that meets the same ID or key of a
 * transaction that is still open (our own, of a connection that we lost) waits for its end, so a
 * repetition never overtakes the commit that it repeats. In the first try an ID that is there
 * belongs to another row: the transaction fails, and neither a key nor a part of a request is left.
 * In a repetition it may be ours, and then it is equal in every column.
 * Tested in tests/unit/auditlog/commit.c and tests/integration/auditlog.py.
 */
#include "auditlog/commit.h"

#include <stdlib.h>

enum { STATEMENTS_MAX = 8 };

enum commit_end commit_end_of(const char *sqlstate)
{
    static const struct {
        const char *begins;
        enum commit_end end;
    } rows
        [] = {
            { "23514", COMMIT_NO_PARTITION }, { "23505", COMMIT_DUPLICATE },
            { "22", COMMIT_DIVIDE },          { "23", COMMIT_DIVIDE },
            { "54", COMMIT_DIVIDE }, /* a program's limit, such as a row that fits no index page */
            { "40", COMMIT_AGAIN },  /* deadlock, serialization */
            { "55P03", COMMIT_AGAIN },        { "57014", COMMIT_AGAIN },
        };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(sqlstate, rows[i].begins, strlen(rows[i].begins)) == 0)
            return rows[i].end;
    return COMMIT_AWAY;
}

static struct write_job *next_of(const struct write_job *w)
{
    return (struct write_job *)w->base.next;
}

/* ---- keys ---- */

static enum outcome copy_ids(struct write_job *w, const char *p, size_t len)
{
    uint64_t *ids = len % 8 == 0 && len > 0 ? malloc(len) : NULL;
    if (!ids)
        return OUTCOME_NO_MEMORY;
    for (size_t i = 0; i < len / 8; i++)
        ids[i] = pg_read_int8(p + 8 * i);
    free(w->ids);
    w->ids = ids;
    w->ids_n = len / 8;
    return OUTCOME_REPEATED;
}

/* Row `i` has what is stored under the key of `w`. */
static enum outcome judge_key(struct write_job *w, const PGresult *res, int i)
{
    if (pg_read_int8(PQgetvalue(res, i, 0)) == w->rows[0].id)
        return OUTCOME_DONE; /* its own */
    const int len = PQgetlength(res, i, 2);
    if (len != DIGEST_BYTES || memcmp(PQgetvalue(res, i, 2), w->digest, DIGEST_BYTES) != 0)
        return OUTCOME_REUSED;
    return copy_ids(w, PQgetvalue(res, i, 1), (size_t)PQgetlength(res, i, 1));
}

static bool judge_keys(struct write_job *batch, const PGresult *res, size_t keys)
{
    int i = 0;
    if ((size_t)PQntuples(res) != keys)
        return false;
    for (struct write_job *w = batch; w; w = next_of(w))
        if (w->key.p)
            w->base.outcome = judge_key(w, res, i++);
    return true;
}

/* ---- rows ---- */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* IDs of an answer, sorted; each is taken once. */
struct id_set {
    uint64_t *id;
    bool *taken;
    size_t n;
};

static bool id_set_read(struct id_set *s, const PGresult *res)
{
    const size_t n = (size_t)PQntuples(res);
    *s = (struct id_set){ calloc(n + 1, sizeof *s->id), calloc(n + 1, sizeof *s->taken), n };
    if (!s->id || !s->taken)
        return false;
    for (size_t i = 0; i < n; i++)
        s->id[i] = pg_read_int8(PQgetvalue(res, (int)i, 0));
    qsort(s->id, n, sizeof *s->id, compare);
    return true;
}

static void id_set_done(struct id_set *s)
{
    free(s->id);
    free(s->taken);
}

static bool id_set_take(struct id_set *s, uint64_t id)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->id[mid] < id)
            low = mid + 1;
        else
            high = mid;
    }
    while (low < s->n && s->id[low] == id && s->taken[low])
        low++;
    if (low == s->n || s->id[low] != id)
        return false;
    return s->taken[low] = true;
}

/* Marks the writes of which a row is in neither of the answers. `present` may be NULL. */
static bool judge_rows(struct write_job *batch, const PGresult *inserted, const PGresult *present)
{
    struct id_set in, there = { NULL, NULL, 0 };
    bool ok = id_set_read(&in, inserted) && (!present || id_set_read(&there, present));
    for (struct write_job *w = batch; ok && w; w = next_of(w)) {
        for (size_t i = 0; i < w->rows_n && w->base.outcome == OUTCOME_DONE; i++)
            if (!id_set_take(&in, w->rows[i].id) && !id_set_take(&there, w->rows[i].id))
                w->base.outcome = OUTCOME_DUPLICATE;
    }
    id_set_done(&in);
    id_set_done(&there);
    return ok;
}

/* How many rows the database should have inserted. */
static size_t expected(const struct write_job *batch)
{
    size_t n = 0;
    for (const struct write_job *w = batch; w; w = next_of(w))
        n += w->base.outcome == OUTCOME_DONE ? w->rows_n : 0;
    return n;
}

static bool keep_ids(struct write_job *w)
{
    if (w->base.outcome != OUTCOME_DONE)
        return true;
    w->ids = w->ids ? w->ids : calloc(w->rows_n, sizeof *w->ids);
    for (size_t i = 0; w->ids && i < w->rows_n; i++)
        w->ids[i] = w->rows[i].id;
    w->ids_n = w->rows_n;
    return w->ids != NULL;
}

/* The transaction is committed: sets the outcome of every write. */
static enum commit_end judge(struct session *s, struct columns *c, struct write_job *batch,
                             const struct commit_opts *o, const PGresult *keys, size_t keys_n,
                             const PGresult *rows, struct session_why *why)
{
    PGresult *present = NULL;
    for (struct write_job *w = batch; w; w = next_of(w))
        w->base.outcome = OUTCOME_DONE;
    if (keys_n > 0 && !judge_keys(batch, keys, keys_n))
        return COMMIT_UNKNOWN; /* somebody removed keys meanwhile: try again */
    if ((size_t)PQntuples(rows) != expected(batch)) {
        if (o->repeated) {
            struct query q = statement_present(c, batch, o->legacy);
            if (session_run(s, &q, 1, &present, o->until_ms, why) != SESSION_OK)
                return COMMIT_UNKNOWN;
        }
        bool ok = judge_rows(batch, rows, present);
        PQclear(present);
        if (!ok)
            return COMMIT_UNKNOWN;
    }
    for (struct write_job *w = batch; w; w = next_of(w))
        if (!keep_ids(w))
            w->base.outcome = OUTCOME_NO_MEMORY;
    return COMMIT_DONE;
}

enum commit_end commit_batch(struct session *s, struct columns *c, struct write_job *batch,
                             const struct commit_opts *o, struct session_why *why)
{
    struct query q[STATEMENTS_MAX];
    PGresult *res[STATEMENTS_MAX];
    int n = 0;
    q[n++] = statement_begin();
    q[n++] = statement_role();
    const size_t keys_n = statement_keys(c, batch, &q[n]);
    const int keys = keys_n > 0 ? n + 1 : 0; /* the look-up */
    n += keys_n > 0 ? 2 : 0;
    const int rows = n;
    q[n++] = statement_rows(c, batch, o->map_version, o->legacy, o->repeated);
    /* The head of the batch's hash chain belongs here, between the rows and the commit: one more
     * statement of the same transaction. */
    const int commit = n;
    q[n++] = statement_commit();
    for (size_t i = 0; i < sizeof c->v / sizeof c->v[0]; i++)
        if (c->v[i].failed)
            return COMMIT_AGAIN; /* no memory for the parameters */
    switch (session_run(s, q, n, res, o->until_ms, why)) {
    case SESSION_LOST:
        return COMMIT_UNKNOWN;
    case SESSION_REFUSED:
        return commit_end_of(why->sqlstate);
    case SESSION_OK:
        break;
    }
    enum commit_end end = strcmp(PQcmdStatus(res[commit]), "COMMIT") == 0
                              ? judge(s, c, batch, o, res[keys], keys_n, res[rows], why)
                              : COMMIT_AGAIN;
    session_clear(res, n);
    return end;
}
