/* SQL, and rows as columns. Tested in tests/unit/auditlog/statement.c. */
#include "auditlog/statement.h"

enum {
    COLUMNS = sizeof((struct columns *)0)->v / sizeof(struct buf),
    KEY_COLUMNS = 10, /* where those of statement_keys() begin */
    COLUMN_BYTES_MAX = 256 * 1024 * 1024,
    VERSION_COLUMN = 9,
};

void columns_init(struct columns *c)
{
    for (size_t i = 0; i < COLUMNS; i++)
        buf_init(&c->v[i], COLUMN_BYTES_MAX);
}

void columns_done(struct columns *c)
{
    for (size_t i = 0; i < COLUMNS; i++)
        buf_done(&c->v[i]);
}

struct query statement_begin(void)
{
    return (struct query){ .sql = "BEGIN" };
}

struct query statement_role(void)
{
    return (struct query){
        .sql = "SELECT set_config('role', 'firn_audit_writer', true),"
               " set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit')"
               " IN ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END,"
               " true)"
    };
}

struct query statement_commit(void)
{
    return (struct query){ .sql = "COMMIT" };
}

static const struct write_job *next_of(const struct write_job *w)
{
    return (const struct write_job *)w->base.next;
}

static void set(struct query *q, int i, Oid type, const struct buf *b)
{
    q->type[i] = type;
    q->value[i] = b->p;
    q->len[i] = (int)b->len;
    q->n = i + 1;
}

static void begin(struct columns *c, size_t column, uint32_t element, size_t n)
{
    c->v[column].len = 0;
    pg_array_begin(&c->v[column], element, n);
}

/* ---- keys ---- */

static void add_ids(struct buf *b, const struct write_job *w)
{
    unsigned char *p = (unsigned char *)buf_room(b, 4 + 8 * w->rows_n);
    if (!p)
        return;
    const uint32_t len = (uint32_t)(8 * w->rows_n);
    for (int i = 0; i < 4; i++)
        *p++ = (unsigned char)(len >> (24 - 8 * i));
    for (size_t k = 0; k < w->rows_n; k++)
        for (int i = 0; i < 8; i++)
            *p++ = (unsigned char)(w->rows[k].id >> (56 - 8 * i));
    buf_commit(b, 4 + 8 * w->rows_n);
}

size_t statement_keys(struct columns *c, const struct write_job *w, struct query out[2])
{
    static const uint32_t element[] = { PG_TEXT, PG_TEXT, PG_INT8, PG_BYTEA, PG_BYTEA };
    static const Oid array[] = { PG_TEXT_ARRAY, PG_TEXT_ARRAY, PG_INT8_ARRAY, PG_BYTEA_ARRAY,
                                 PG_BYTEA_ARRAY };
    struct buf *v = &c->v[KEY_COLUMNS];
    size_t n = 0;
    for (const struct write_job *j = w; j; j = next_of(j))
        n += j->key.p != NULL;
    if (n == 0)
        return 0;
    for (size_t i = 0; i < 5; i++)
        begin(c, KEY_COLUMNS + i, element[i], n);
    for (const struct write_job *j = w; j; j = next_of(j)) {
        if (!j->key.p)
            continue;
        pg_array_bytes(&v[0], j->tenant.p, j->tenant.len);
        pg_array_bytes(&v[1], j->key.p, j->key.len);
        pg_array_int8(&v[2], j->rows[0].id);
        add_ids(&v[3], j);
        pg_array_bytes(&v[4], j->digest, sizeof j->digest);
    }
    out[0] = (struct query){
        .sql = "INSERT INTO firn_audit.key (tenant, key, first, ids, digest)"
               " SELECT * FROM unnest($1, $2, $3, $4, $5) AS r (tenant, key, first, ids, digest)"
               " ON CONFLICT (tenant, key) DO NOTHING"
    };
    out[1] = (struct query){ .sql = "SELECT k.first, k.ids, k.digest"
                                    " FROM unnest($1, $2) WITH ORDINALITY AS r (tenant, key, n)"
                                    " JOIN firn_audit.key k USING (tenant, key) ORDER BY r.n" };
    for (int i = 0; i < 5; i++)
        set(&out[0], i, array[i], &v[i]);
    for (int i = 0; i < 2; i++)
        set(&out[1], i, array[i], &v[i]);
    return n;
}

/* ---- rows ---- */

enum {
    ROW_ID,
    ROW_TENANT,
    ROW_USER,
    ROW_ACTOR,
    ROW_ACTION,
    ROW_AT,
    ROW_DETAIL,
    ROW_KEY,
    ROW_FIRST
};

static const struct {
    uint32_t element;
    Oid array;
} row_type[] = {
    [ROW_ID] = { PG_INT8, PG_INT8_ARRAY },     [ROW_TENANT] = { PG_TEXT, PG_TEXT_ARRAY },
    [ROW_USER] = { PG_TEXT, PG_TEXT_ARRAY },   [ROW_ACTOR] = { PG_TEXT, PG_TEXT_ARRAY },
    [ROW_ACTION] = { PG_TEXT, PG_TEXT_ARRAY }, [ROW_AT] = { PG_TIMESTAMPTZ, PG_TIMESTAMPTZ_ARRAY },
    [ROW_DETAIL] = { PG_TEXT, PG_TEXT_ARRAY }, [ROW_KEY] = { PG_TEXT, PG_TEXT_ARRAY },
    [ROW_FIRST] = { PG_INT8, PG_INT8_ARRAY },
};

static void add_row(struct buf *v, const struct write_job *w, const struct row *row)
{
    pg_array_int8(&v[ROW_ID], row->id);
    pg_array_bytes(&v[ROW_TENANT], w->tenant.p, w->tenant.len);
    pg_array_bytes(&v[ROW_USER], w->user.p, w->user.len);
    pg_array_bytes(&v[ROW_ACTOR], row->actor.p, row->actor.len);
    pg_array_bytes(&v[ROW_ACTION], row->action.p, row->action.len);
    pg_array_time(&v[ROW_AT], w->at_us);
    pg_array_bytes(&v[ROW_DETAIL], row->detail.p, row->detail.len);
    if (w->key.p)
        pg_array_bytes(&v[ROW_KEY], w->key.p, w->key.len);
    else
        pg_array_null(&v[ROW_KEY]);
    pg_array_int8(&v[ROW_FIRST], w->rows[0].id);
}

static struct query rows_query(struct columns *c, const struct write_job *w, const char *sql,
                               int columns)
{
    struct query q = { .sql = sql };
    size_t n = 0;
    for (const struct write_job *j = w; j; j = next_of(j))
        n += j->rows_n;
    for (size_t i = 0; i <= ROW_FIRST; i++)
        begin(c, i, row_type[i].element, n);
    for (const struct write_job *j = w; j; j = next_of(j))
        for (size_t i = 0; i < j->rows_n; i++)
            add_row(c->v, j, &j->rows[i]);
    for (int i = 0; i < columns; i++)
        set(&q, i, row_type[i].array, &c->v[i]);
    return q;
}

#define LEAVE_ALONE " ON CONFLICT (id) DO NOTHING"
#define INSERT_INTO(table, conflict)                                                   \
    "INSERT INTO firn_audit." table                                                    \
    " (id, tenant, user_id, actor, action, at, detail, map_version)"                   \
    " SELECT r.id, r.tenant, r.user_id, r.actor, r.action, r.at, r.detail::jsonb, $10" \
    " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)"                                 \
    " AS r (id, tenant, user_id, actor, action, at, detail, key, first)"               \
    " WHERE r.key IS NULL OR EXISTS (SELECT 1 FROM firn_audit.key k"                   \
    " WHERE k.tenant = r.tenant AND k.key = r.key AND k.first = r.first)" conflict " RETURNING id"

struct query statement_rows(struct columns *c, const struct write_job *w, uint64_t map_version,
                            bool legacy, bool repeated)
{
    static const char *const sql[2][2] = {
        { INSERT_INTO("log", ""), INSERT_INTO("log", LEAVE_ALONE) },
        { INSERT_INTO("legacy", ""), INSERT_INTO("legacy", LEAVE_ALONE) },
    };
    struct query q = rows_query(c, w, sql[legacy][repeated], ROW_FIRST + 1);
    struct buf *v = &c->v[VERSION_COLUMN];
    v->len = 0;
    for (int i = 0; i < 8; i++)
        buf_add(v, &(char){ (char)(map_version >> (56 - 8 * i)) }, 1);
    set(&q, VERSION_COLUMN, PG_INT8, v);
    return q;
}

#define SAME_ROWS(table)                                                            \
    "SELECT l.id FROM unnest($1, $2, $3, $4, $5, $6, $7)"                           \
    " AS r (id, tenant, user_id, actor, action, at, detail) JOIN firn_audit." table \
    " l ON l.id = r.id AND l.tenant = r.tenant AND l.user_id = r.user_id"           \
    " AND l.actor = r.actor AND l.action = r.action AND l.at = r.at"                \
    " AND l.detail = r.detail::jsonb"

struct query statement_present(struct columns *c, const struct write_job *w, bool legacy)
{
    return rows_query(c, w, legacy ? SAME_ROWS("legacy") : SAME_ROWS("log"), ROW_DETAIL + 1);
}

/* ---- reading ---- */

static void put_int8(char out[8], uint64_t v)
{
    for (int i = 0; i < 8; i++)
        out[i] = (char)(v >> (56 - 8 * i));
}

static void give(struct query *q, Oid type, const char *p, size_t len)
{
    q->type[q->n] = type;
    q->value[q->n] = p;
    q->len[q->n++] = (int)len;
}

static void give_number(struct query *q, struct read_params *p, Oid type, uint64_t v)
{
    char *at = p->v[q->n - 1]; /* $1 is the tenant, which is no number */
    put_int8(at, v);
    give(q, type, at, 8);
}

#define READ_COLUMNS \
    "SELECT id, user_id, actor, action, at, detail::text, map_version FROM firn_audit."
#define OF_ID(table) READ_COLUMNS table " WHERE tenant = $1 AND id = $2"
#define OF_USER(table)                                                                          \
    READ_COLUMNS table                                                                          \
        " WHERE tenant = $1 AND id >= $2 AND id < $3 AND at >= $4 AND at < $5 AND user_id = $7" \
        " ORDER BY id DESC LIMIT $6"

struct query statement_read(const struct read_job *r, struct read_params *p, bool legacy)
{
    const int64_t pg_epoch_us = INT64_C(946684800000000);
    struct query q = { .sql = r->id    ? legacy ? OF_ID("legacy") : OF_ID("log")
                                 : legacy ? OF_USER("legacy")
                                       : OF_USER("log") };
    give(&q, PG_TEXT, r->tenant.p, r->tenant.len);
    if (r->id) {
        give_number(&q, p, PG_INT8, r->id);
        return q;
    }
    give_number(&q, p, PG_INT8, r->from);
    give_number(&q, p, PG_INT8, r->before);
    give_number(&q, p, PG_TIMESTAMPTZ, (uint64_t)(r->since_us - pg_epoch_us));
    give_number(&q, p, PG_TIMESTAMPTZ, (uint64_t)(r->until_us - pg_epoch_us));
    give_number(&q, p, PG_INT8, (uint64_t)r->limit + 1); /* one more says whether there are more */
    give(&q, PG_TEXT, r->user.p, r->user.len);
    return q;
}

struct query statement_check(const char days[4])
{
    struct query q = { .sql = "SELECT (SELECT max(version) FROM firn_audit.migration)::text,"
                              " current_setting('fsync'), pg_is_in_recovery()::text,"
                              " (SELECT database || '/' || databases FROM firn_audit.place),"
                              " firn_audit.ahead($1)::text" };
    give(&q, 23, days, 4); /* int4 */
    return q;
}
