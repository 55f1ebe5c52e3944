/* Arrays of PostgreSQL in binary form. Tested in tests/unit/auditlog/pg_array.c. */
#include "auditlog/pg_array.h"

#define PG_EPOCH_US INT64_C(946684800000000) /* 2000-01-01, where its times count from */

static void add_u32(struct buf *b, uint32_t v)
{
    const unsigned char p[4] = { (unsigned char)(v >> 24), (unsigned char)(v >> 16),
                                 (unsigned char)(v >> 8), (unsigned char)v };
    buf_add(b, p, sizeof p);
}

void pg_array_begin(struct buf *b, uint32_t element_type, size_t n)
{
    add_u32(b, n > 0); /* dimensions */
    add_u32(b, 1);     /* there may be nulls */
    add_u32(b, element_type);
    if (n > 0) {
        add_u32(b, (uint32_t)n);
        add_u32(b, 1); /* the first index */
    }
}

void pg_array_bytes(struct buf *b, const void *p, size_t len)
{
    add_u32(b, (uint32_t)len);
    buf_add(b, p, len);
}

void pg_array_null(struct buf *b)
{
    add_u32(b, UINT32_MAX);
}

void pg_array_int8(struct buf *b, uint64_t v)
{
    add_u32(b, 8);
    add_u32(b, (uint32_t)(v >> 32));
    add_u32(b, (uint32_t)v);
}

void pg_array_time(struct buf *b, int64_t unix_us)
{
    pg_array_int8(b, (uint64_t)(unix_us - PG_EPOCH_US));
}

uint64_t pg_read_int8(const char *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

int64_t pg_read_time(const char *p)
{
    return (int64_t)pg_read_int8(p) + PG_EPOCH_US;
}
