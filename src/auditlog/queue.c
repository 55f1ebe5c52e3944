/* The queue of a database. Tested in tests/unit/auditlog/queue.c. */
#include "auditlog/queue.h"
#include "platform/mono.h"

void queue_init(struct queue *q, size_t rows_max, size_t bytes_max)
{
    *q = (struct queue){ .rows_max = rows_max, .bytes_max = bytes_max };
    q->last = &q->first;
    pthread_mutex_init(&q->mutex, NULL);
    mono_cond_init(&q->cond);
}

void queue_done(struct queue *q)
{
    firn_assert(!q->first);
    pthread_cond_destroy(&q->cond);
    pthread_mutex_destroy(&q->mutex);
}

int queue_add(struct queue *q, struct job *j)
{
    int r = 0;
    j->next = NULL;
    pthread_mutex_lock(&q->mutex);
    if (q->ending)
        r = FIRN_ECLOSED;
    else if (q->away)
        r = FIRN_EIO;
    else if (j->rows > q->rows_max - q->rows || j->bytes > q->bytes_max - q->bytes)
        r = FIRN_EAGAIN;
    const bool wake = r == 0 && !q->first;
    if (r == 0) {
        *q->last = j;
        q->last = &j->next;
        q->rows += j->rows;
        q->bytes += j->bytes;
    }
    if (wake)
        pthread_cond_signal(&q->cond);
    pthread_mutex_unlock(&q->mutex);
    return r;
}

/* The jobs from the first on that make a batch. */
static struct job *take_out(struct queue *q, const struct batch_limits *l)
{
    struct job *first = q->first, *last = NULL;
    size_t rows = 0, bytes = 0;
    while (q->first && batch_fits(l, rows, bytes, q->first->rows, q->first->bytes)) {
        last = q->first;
        rows += last->rows;
        bytes += last->bytes;
        q->first = last->next;
    }
    if (!last)
        return NULL;
    last->next = NULL;
    if (!q->first)
        q->last = &q->first;
    firn_assert(rows <= q->rows && bytes <= q->bytes, "rows=%zu of %zu", rows, q->rows);
    q->rows -= rows;
    q->bytes -= bytes;
    return first;
}

struct job *queue_take(struct queue *q, const struct batch_limits *l, uint64_t until_ns)
{
    const struct timespec until = mono_timespec(until_ns);
    pthread_mutex_lock(&q->mutex);
    while (!q->first && !q->ending && mono_ns() < until_ns)
        pthread_cond_timedwait(&q->cond, &q->mutex, &until);
    struct job *found = take_out(q, l);
    pthread_mutex_unlock(&q->mutex);
    return found;
}

struct job *queue_set_away(struct queue *q, bool away)
{
    static const struct batch_limits all = { SIZE_MAX, SIZE_MAX };
    pthread_mutex_lock(&q->mutex);
    q->away = away;
    struct job *left = away ? take_out(q, &all) : NULL;
    pthread_mutex_unlock(&q->mutex);
    return left;
}

void queue_end(struct queue *q)
{
    pthread_mutex_lock(&q->mutex);
    q->ending = true;
    pthread_cond_broadcast(&q->cond);
    pthread_mutex_unlock(&q->mutex);
}

bool queue_ended(struct queue *q)
{
    pthread_mutex_lock(&q->mutex);
    bool ended = q->ending && !q->first;
    pthread_mutex_unlock(&q->mutex);
    return ended;
}

void queue_look(struct queue *q, size_t *rows, uint64_t *since_ns, bool *away)
{
    pthread_mutex_lock(&q->mutex);
    *rows = q->rows;
    *since_ns = q->first ? q->first->began_ns : 0;
    *away = q->away;
    pthread_mutex_unlock(&q->mutex);
}
