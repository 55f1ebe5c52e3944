/* The queue of a database: bounds, batches, away, end. */
#include "t.h"

#include "auditlog/queue.h"

static const struct batch_limits limits = { 3, 1000 };

static struct job job(size_t rows)
{
    return (struct job){ .rows = rows, .bytes = 10, .began_ns = 1 };
}

T_TEST(queue_in_order_and_bounded)
{
    struct queue q;
    struct job a = job(1), b = job(2), c = job(2), d = job(1);
    size_t rows;
    uint64_t since;
    bool away;
    queue_init(&q, 5, 1000);
    T_EQ(queue_add(&q, &a), 0);
    T_EQ(queue_add(&q, &b), 0);
    T_EQ(queue_add(&q, &c), 0);
    T_EQ(queue_add(&q, &d), FIRN_EAGAIN);
    queue_look(&q, &rows, &since, &away);
    T_OK(rows == 5 && since == 1 && !away);
    T_OK(queue_take(&q, &limits, 0) == &a && a.next == &b && !b.next); /* three rows */
    T_EQ(queue_add(&q, &d), 0);
    T_OK(queue_take(&q, &limits, 0) == &c && c.next == &d && !d.next);
    T_OK(!queue_take(&q, &limits, 0));
    queue_done(&q);
}

T_TEST(queue_bounded_by_bytes)
{
    struct queue q;
    struct job a = job(1), b = job(1);
    queue_init(&q, 5, 15);
    T_EQ(queue_add(&q, &a), 0);
    T_EQ(queue_add(&q, &b), FIRN_EAGAIN);
    T_OK(queue_take(&q, &limits, 0) == &a);
    queue_done(&q);
}

T_TEST(queue_of_a_database_that_is_away)
{
    struct queue q;
    struct job a = job(3), b = job(2);
    queue_init(&q, 5, 1000);
    T_EQ(queue_add(&q, &a), 0);
    T_EQ(queue_add(&q, &b), 0);
    T_OK(queue_set_away(&q, true) == &a && a.next == &b && !b.next); /* all that waits */
    T_EQ(queue_add(&q, &a), FIRN_EIO);
    T_OK(!queue_set_away(&q, true));
    T_OK(!queue_set_away(&q, false));
    T_EQ(queue_add(&q, &a), 0);
    T_OK(queue_take(&q, &limits, 0) == &a);
    queue_done(&q);
}

T_TEST(queue_end_leaves_what_is_there)
{
    struct queue q;
    struct job a = job(1), b = job(1);
    queue_init(&q, 5, 1000);
    T_EQ(queue_add(&q, &a), 0);
    queue_end(&q);
    T_EQ(queue_add(&q, &b), FIRN_ECLOSED);
    T_OK(!queue_ended(&q));
    T_OK(queue_take(&q, &limits, UINT64_MAX / 2) == &a);
    T_OK(queue_ended(&q));
    T_OK(!queue_take(&q, &limits, UINT64_MAX / 2)); /* it does not wait */
    queue_done(&q);
}
