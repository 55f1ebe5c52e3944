/* The messages and the event queue of a quorum's world. */
#include "quorum_in.h"

static bool before(const struct qevent *a, const struct qevent *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

void q_at(int64_t ms, enum qevent_kind kind, unsigned who, uint64_t token)
{
    size_t i = q.events++;
    if (q.events > EVENTS_MAX)
        abort();
    q.event[i] = (struct qevent){ ms, q.order++, kind, who, token };
    for (; i > 0 && before(&q.event[i], &q.event[(i - 1) / 2]); i = (i - 1) / 2) {
        struct qevent e = q.event[i];
        q.event[i] = q.event[(i - 1) / 2];
        q.event[(i - 1) / 2] = e;
    }
}

struct qevent q_take(void)
{
    struct qevent first = q.event[0];
    q.event[0] = q.event[--q.events];
    for (size_t i = 0, k; (k = 2 * i + 1) < q.events; i = k) {
        if (k + 1 < q.events && before(&q.event[k + 1], &q.event[k]))
            k++;
        if (!before(&q.event[k], &q.event[i]))
            break;
        struct qevent e = q.event[i];
        q.event[i] = q.event[k];
        q.event[k] = e;
    }
    return first;
}

int64_t q_soon(void)
{
    return q_now_ms() + 1 + (int64_t)rand_below(&q.rng, q.latency_ms);
}

static void put_on_way(const struct envelope *e, int64_t ms)
{
    for (size_t i = 0; i < ENVELOPES_MAX; i++)
        if (!q.envelope[i].used) {
            q.envelope[i] = *e;
            q.envelope[i].used = true;
            q_at(ms, Q_DELIVER, (unsigned)i, 0);
            return;
        }
    abort(); /* far more than all proposers can have under way */
}

void q_send(struct envelope *e)
{
    unsigned *lose = e->is_answer ? &q.lose_answer[e->acceptor] : &q.lose[e->acceptor];
    int64_t ms = q_soon();
    if (*lose > 0) {
        --*lose;
        sometimes.px_lost++;
        return;
    }
    if (q.late_ms[e->acceptor] > 0) {
        ms += q.late_ms[e->acceptor];
        q.late_ms[e->acceptor] = 0;
        sometimes.px_late++;
    }
    put_on_way(e, ms);
    if (q.repeat_ms[e->acceptor] > 0) {
        e->again = true;
        put_on_way(e, ms + q.repeat_ms[e->acceptor]);
        q.repeat_ms[e->acceptor] = 0;
        sometimes.px_repeated++;
    }
}
