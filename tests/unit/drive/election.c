#include "drive/election.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

enum { TTL = 9000 };

static uint64_t now_ms;

static uint64_t fake_now(void *user)
{
    (void)user;
    return now_ms;
}

static void fake_random(void *user, void *out, size_t len)
{
    (void)user;
    t_random_bytes(out, len);
}

static void fake_sleep(void *user, uint64_t ms)
{
    (void)user;
    now_ms += ms;
}

static const struct member_world world = { NULL, fake_now, fake_now, fake_random, fake_sleep };

struct one {
    struct member m;
    struct election e;
};

static struct firn_store *new_store(void)
{
    struct firn_store *s;
    now_ms = 1000;
    T_EQ(firn_store_memory_new(&s), 0);
    return s;
}

static struct one *stand(struct firn_store *s)
{
    struct one *o = malloc(sizeof *o);
    struct member_params p = { .kind = "test", .name = "x", .ttl_ms = TTL };
    T_OK(o != NULL);
    T_EQ(member_open(&o->m, s, &p, &world, NULL), 0);
    T_EQ(election_open(&o->e, &o->m, "job", 0, NULL), 0);
    return o;
}

/* All that can be done at this moment. */
static void settle(struct one *o)
{
    for (int i = 0; i < 200 && election_step(&o->e, 1) == 0; i++)
        if (o->e.line.at_ == CANDIDATE_AT_WATCH && o->e.line.seen_.len > 0)
            break; /* it only waits from here on */
}

static struct queue_record queue_of(struct firn_store *s)
{
    struct firn_record rec;
    struct queue_record q;
    T_EQ(firn_store_read(s, firn_slice("queue/job", 9), true, &rec, NULL), 0);
    T_EQ(queue_parse(rec.value, rec.len, &q, NULL), 0);
    return q;
}

/* ---- the record ---- */

T_TEST(queue_record_round_trip)
{
    struct queue_record q = { .next = (uint64_t)QUEUE_TOKEN_MAX + 1 - QUEUE_MAX }, back;
    char text[RECORD_TEXT_MAX], again[RECORD_TEXT_MAX];
    t_random_bytes(q.req.b, sizeof q.req.b);
    T_EQ(queue_parse(text, queue_encode(&q, text), &back, NULL), 0, "an empty line");
    for (uint32_t i = 0; i < QUEUE_MAX; i++)
        T_EQ(queue_append(&q, MEMBERS_MAX - 1 - i, MEMBER_EPOCH_MAX), 0);
    T_EQ(queue_append(&q, 0, 1), FIRN_ENOSLOT);
    size_t len = queue_encode(&q, text);
    T_OK(len <= RECORD_TEXT_MAX, "%zu", len);
    T_EQ(queue_parse(text, len, &back, NULL), 0);
    T_EQ(back.count, QUEUE_MAX);
    T_EQ(queue_encode(&back, again), len);
    T_OK(memcmp(text, again, len) == 0);
    for (size_t cut = 0; cut < len; cut++)
        T_EQ(queue_parse(text, cut, &back, NULL), FIRN_EFORMAT, "cut at %zu", cut);
    queue_remove(&back, 0);
    T_EQ(queue_append(&back, 0, 1), FIRN_EOVERFLOW);
}

T_TEST(queue_record_refuses)
{
    static const char *const bad[] = {
        "line=\n\n",
        "line=,\n",
        "line=1.1.1,\n",
        "line=,1.1.1\n",
        "line=1.1\n",
        "line=1.1.1.1\n",
        "line=1.1.5\n",
        "line=1.1.0\n",
        "line=1.0.1\n",
        "line=1024.1.1\n",
        "line=01.1.1\n",
        "line=1.1.2,2.1.1\n",
        "line=1.1.1,2.1.1\n",
        "line=1.1.1,1.1.2\n",
        "line=1.1.1 \n",
        "line=-1.1.1\n",
        "line=1.1.1",
        "line=1.1.1\nx",
        "line=1.100000000000.1\n",
        "",
        "line",
        "line=",
    };
    struct queue_record q;
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char text[256];
        int n = snprintf(text, sizeof text, "firn=queue 1\nnext=5\nreq=%032d\n%s", 0, bad[i]);
        T_EQ(queue_parse(text, (size_t)n, &q, NULL), FIRN_EFORMAT, "'%s'", bad[i]);
    }
    char text[256];
    int n = snprintf(text, sizeof text, "firn=queue 1\nnext=5\nreq=%032d\nline=1.1.1,2.1.4\n", 0);
    T_EQ(queue_parse(text, (size_t)n, &q, NULL), 0);
    n = snprintf(text, sizeof text, "firn=queue 1\nnext=0\nreq=%032d\nline=\n", 0);
    T_EQ(queue_parse(text, (size_t)n, &q, NULL), FIRN_EFORMAT);
}

/* ---- candidates ---- */

T_TEST(first_come_first_served)
{
    struct firn_store *s = new_store();
    struct one *o[3];
    for (int i = 0; i < 3; i++) {
        o[i] = stand(s);
        settle(o[i]);
        T_EQ(o[i]->e.line.token, i + 1);
    }
    T_OK(election_leads(&o[0]->e));
    T_EQ(o[1]->e.line.state, CANDIDATE_WAITING);
    T_EQ(o[2]->e.line.ahead, 2);
    T_EQ(o[2]->e.line.before_.number, o[1]->m.self.number,
         "watches the one before, not the leader");
    T_EQ(election_valid_until_ms(&o[1]->e), 0);
    for (int i = 0; i < 3; i++) {
        T_OK(election_leads(&o[i]->e));
        T_EQ(election_leave(&o[i]->e, 1000), 0);
        T_EQ(member_leave(&o[i]->m, 1000), 0);
        for (int k = i + 1; k < 3; k++)
            settle(o[k]);
    }
    T_EQ(queue_of(s).count, 0);
    T_EQ(queue_of(s).next, 4);
    for (int i = 0; i < 3; i++)
        free(o[i]);
    firn_store_close(s);
}

T_TEST(a_dead_leader_is_replaced_when_its_time_is_over)
{
    struct firn_store *s = new_store();
    struct one *a = stand(s), *b = stand(s);
    settle(a);
    settle(b);
    uint64_t until = election_valid_until_ms(&a->e), start = now_ms;
    while (!election_leads(&b->e) && now_ms < start + 10 * TTL) {
        now_ms += 100;
        settle(b);
    }
    T_OK(election_leads(&b->e));
    T_OK(now_ms >= until + TTL / 2);
    T_EQ(b->e.line.token, 2);
    T_EQ(queue_of(s).count, 1);
    /* The old one was asleep. It must not lead, and gets a new token at the end of the line. */
    T_OK(!election_leads(&a->e));
    T_EQ(a->e.line.state, CANDIDATE_LOST);
    settle(a);
    T_EQ(a->e.line.state, CANDIDATE_LOST, "until it says that its work has stopped");
    candidate_again(&a->e.line);
    settle(a);
    T_EQ(a->e.line.state, CANDIDATE_WAITING);
    T_EQ(a->e.line.token, 3);
    T_EQ(election_leave(&b->e, 1000), 0);
    settle(b); /* its beat wakes a */
    settle(a);
    T_OK(election_leads(&a->e));
    free(a), free(b);
    firn_store_close(s);
}

T_TEST(a_leader_that_could_not_renew_gets_a_new_token)
{
    struct firn_store *s = new_store();
    struct one *a = stand(s);
    settle(a);
    T_OK(election_leads(&a->e));
    now_ms += TTL; /* no other candidate is there, its register and its place are as they were */
    settle(a);
    T_OK(membership_valid(&a->m.self, now_ms));
    T_OK(!election_leads(&a->e));
    candidate_again(&a->e.line);
    settle(a);
    T_OK(election_leads(&a->e));
    T_EQ(a->e.line.token, 2);
    T_EQ(queue_of(s).count, 1);
    free(a);
    firn_store_close(s);
}

T_TEST(a_dead_one_in_the_middle_is_passed_over)
{
    struct firn_store *s = new_store();
    struct one *a = stand(s), *b = stand(s), *c = stand(s);
    settle(a);
    settle(b);
    settle(c);
    for (int i = 0; i < 2 * TTL / 100; i++) {
        now_ms += 100;
        settle(a);
        settle(c);
    }
    T_OK(election_leads(&a->e));
    T_EQ(c->e.line.ahead, 1);
    T_EQ(c->e.line.before_.number, a->m.self.number);
    T_EQ(queue_of(s).count, 2);
    free(a), free(b), free(c);
    firn_store_close(s);
}

T_TEST(a_full_line)
{
    struct firn_store *s = new_store();
    struct one *o[QUEUE_MAX + 1];
    for (int i = 0; i <= QUEUE_MAX; i++) {
        o[i] = stand(s);
        settle(o[i]);
    }
    struct one *last = o[QUEUE_MAX];
    T_EQ(last->e.line.state, CANDIDATE_OUT);
    T_OK(last->e.line.full);
    T_EQ(queue_of(s).count, QUEUE_MAX);
    /* The last in line dies, and no candidate stands behind it: the one outside removes it. */
    for (int i = 0; i < 3 * TTL / 100 && last->e.line.state == CANDIDATE_OUT; i++) {
        now_ms += 100;
        for (int k = 0; k <= QUEUE_MAX; k++)
            if (k != QUEUE_MAX - 1)
                settle(o[k]);
    }
    T_EQ(last->e.line.state, CANDIDATE_WAITING);
    T_EQ(last->e.line.token, QUEUE_MAX + 1);
    T_EQ(queue_of(s).count, QUEUE_MAX);
    T_OK(election_leads(&o[0]->e));
    for (int i = 0; i <= QUEUE_MAX; i++)
        free(o[i]);
    firn_store_close(s);
}

T_TEST(tokens_go_on_when_the_store_forgot)
{
    struct firn_store *s = new_store();
    struct one *a = stand(s);
    for (int i = 1; i <= 5; i++) {
        settle(a);
        T_EQ(a->e.line.token, i);
        candidate_again(&a->e.line);
    }
    uint64_t seen = a->e.line.next_seen;
    firn_store_close(s);
    T_EQ(firn_store_memory_new(&s), 0);
    struct member_params p = { .kind = "test", .name = "x", .ttl_ms = TTL };
    T_EQ(member_open(&a->m, s, &p, &world, NULL), 0);
    T_EQ(election_open(&a->e, &a->m, "job", seen, NULL), 0);
    settle(a);
    T_OK(election_leads(&a->e));
    T_EQ(a->e.line.token, 6);
    free(a);
    firn_store_close(s);
}

T_TEST(an_unreadable_queue_is_an_error)
{
    struct firn_store *s = new_store();
    struct firn_cas cas = { firn_slice("queue/job", 9), { NULL, 0 }, firn_slice("junk", 4) };
    T_EQ(firn_store_cas(s, &cas, NULL), 0);
    struct one *a = stand(s);
    settle(a);
    T_EQ(a->e.error, FIRN_EFORMAT);
    T_EQ(a->e.line.state, CANDIDATE_OUT);
    T_EQ(election_open(&a->e, &a->m, "no/name", 0, NULL), FIRN_EINVAL);
    free(a);
    firn_store_close(s);
}
