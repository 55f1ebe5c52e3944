/* The table of sequences under one lock. */
#include "server/ranges.h"
#include "drive/ticket.h"

#include <stdlib.h>

int ranges_init(struct ranges *r)
{
    *r = (struct ranges){ .mutex = PTHREAD_MUTEX_INITIALIZER,
                          .table = tickets_table_new(SEQ_TABLE_MAX) };
    return r->table ? 0 : FIRN_ENOMEM;
}

void ranges_done(struct ranges *r)
{
    pthread_mutex_destroy(&r->mutex);
    free(r->table);
    r->table = NULL;
}

enum seq_hand ranges_take(struct ranges *r, const char *name, size_t len, uint64_t want, bool some,
                          uint64_t now_ms, struct seq_range *out, struct seq_record *out_record,
                          bool *out_fetch)
{
    pthread_mutex_lock(&r->mutex);
    enum seq_hand hand = seq_table_take(r->table, name, len, want, some, now_ms, out, out_record,
                                        out_fetch);
    pthread_mutex_unlock(&r->mutex);
    return hand;
}

int ranges_peek(struct ranges *r, const char *name, size_t len, uint64_t *out)
{
    pthread_mutex_lock(&r->mutex);
    int error = seq_table_peek(r->table, name, len, out);
    pthread_mutex_unlock(&r->mutex);
    return error;
}

void ranges_lock(void *ranges)
{
    pthread_mutex_lock(&((struct ranges *)ranges)->mutex);
}

void ranges_unlock(void *ranges)
{
    pthread_mutex_unlock(&((struct ranges *)ranges)->mutex);
}

void ranges_close(struct ranges *r, const char *name, size_t len)
{
    pthread_mutex_lock(&r->mutex);
    seq_table_forget(r->table, name, len);
    pthread_mutex_unlock(&r->mutex);
}
