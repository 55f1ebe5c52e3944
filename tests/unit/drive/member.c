#include "drive/member.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

enum { TTL = 9000 };

/* ---- a world with a clock that the test moves ---- */

static uint64_t now_ms;

static uint64_t fake_now(void *user)
{
    (void)user;
    return now_ms;
}

static uint64_t fake_unix(void *user)
{
    (void)user;
    return 1700000000000u + now_ms;
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

static const struct member_world world = { NULL, fake_now, fake_unix, fake_random, fake_sleep };

static struct firn_store *new_store(void)
{
    struct firn_store *s;
    now_ms = 1000;
    T_EQ(firn_store_memory_new(&s), 0);
    return s;
}

static struct member *new_member(struct firn_store *s, const char *name, bool keep_house)
{
    struct member *m = malloc(sizeof *m);
    struct member_params p = { .kind = "test",
                               .name = name,
                               .address = "127.0.0.1:9000",
                               .version = "1",
                               .ttl_ms = TTL,
                               .keep_house = keep_house };
    T_OK(m != NULL);
    T_EQ(member_open(m, s, &p, &world, NULL), 0);
    return m;
}

/* Steps until there is nothing to do; returns in how many ms there is. */
static uint64_t settle(struct member *m)
{
    uint64_t wait = 0;
    for (int i = 0; i < 5000 && wait == 0; i++)
        wait = member_step(m);
    return wait;
}

static struct member_record record_of(struct firn_store *s, uint32_t n)
{
    struct firn_record rec;
    struct member_record r;
    char key[RECORD_KEY_BUF];
    size_t len = member_key(n, key);
    T_EQ(firn_store_read(s, firn_slice(key, len), true, &rec, NULL), 0, "member %u", n);
    T_EQ(member_parse(rec.value, rec.len, &r, NULL), 0);
    return r;
}

static void put_record(struct firn_store *s, uint32_t n, const struct member_record *r)
{
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_cas cas = { firn_slice(key, member_key(n, key)),
                            { NULL, 0 },
                            firn_slice(text, member_encode(r, text)) };
    T_EQ(firn_store_cas(s, &cas, NULL), 0);
}

/* ---- records ---- */

static struct member_record longest(void)
{
    struct member_record r = { .epoch = MEMBER_EPOCH_MAX,
                               .state = MEMBER_UP,
                               .beat = INT64_MAX,
                               .ttl_ms = MEMBER_TTL_MS_MAX,
                               .at = INT64_MAX };
    memset(&r.cluster, 0xff, sizeof r.cluster);
    memset(&r.owner, 0xff, sizeof r.owner);
    memset(&r.req, 0xff, sizeof r.req);
    memset(r.name, 'n', RECORD_NAME_MAX);
    memset(r.kind, 'k', MEMBER_KIND_MAX);
    memset(r.address, 'a', MEMBER_ADDRESS_MAX);
    memset(r.slots, '1', MEMBER_SLOTS_MAX);
    memset(r.version, 'v', MEMBER_VERSION_MAX);
    return r;
}

T_TEST(member_record_round_trip)
{
    struct member_record r = longest(), back;
    char text[RECORD_TEXT_MAX], again[RECORD_TEXT_MAX];
    size_t len = member_encode(&r, text);
    T_OK(len <= RECORD_TEXT_MAX);
    T_EQ(member_parse(text, len, &back, NULL), 0);
    T_EQ(member_encode(&back, again), len);
    T_OK(memcmp(text, again, len) == 0);
    for (size_t cut = 0; cut < len; cut++)
        T_EQ(member_parse(text, cut, &back, NULL), FIRN_EFORMAT, "cut at %zu", cut);
}

T_TEST(member_record_refuses_contradictions)
{
    static const char *const bad[][2] = {
        { "state=up", "state=free" }, /* but it has an owner */
        { "epoch=99999999999", "epoch=0" }, { "epoch=99999999999", "epoch=100000000000" },
        { "ttl_ms=86400000", "ttl_ms=0" },  { "ttl_ms=86400000", "ttl_ms=86400001" },
    };
    struct member_record r = longest(), back;
    char good[RECORD_TEXT_MAX + 1], text[RECORD_TEXT_MAX + 16];
    good[member_encode(&r, good)] = '\0';
    T_EQ(member_parse(good, strlen(good), &back, NULL), 0);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        const char *at = strstr(good, bad[i][0]);
        T_OK(at != NULL, "row %zu", i);
        int len = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, bad[i][1],
                           at + strlen(bad[i][0]));
        T_EQ(member_parse(text, (size_t)len, &back, NULL), FIRN_EFORMAT, "row %zu", i);
    }
}

/* ---- a member's life ---- */

T_TEST(claims_the_lowest_and_beats)
{
    struct firn_store *s = new_store();
    struct member *a = new_member(s, "a", false), *b = new_member(s, "b", false);
    T_EQ(settle(a), TTL / 3);
    T_EQ(settle(b), TTL / 3);
    T_EQ(a->self.number, 0);
    T_EQ(b->self.number, 1);
    T_EQ(a->self.valid_until_ms, now_ms + TTL);
    struct member_record r = record_of(s, 0);
    T_STR(r.name, "a");
    T_STR(r.address, "127.0.0.1:9000");
    T_EQ(r.epoch, 1);
    T_EQ(r.beat, 0);
    for (int i = 1; i <= 10; i++) {
        now_ms += TTL / 3;
        T_EQ(settle(a), TTL / 3);
        T_EQ(record_of(s, 0).beat, i);
        T_EQ(a->self.valid_until_ms, now_ms + TTL);
    }
    T_EQ(a->self.unbroken, 1, "never lapsed since the claim");
    member_describe(a, NULL, "3,7");
    settle(a);
    T_STR(record_of(s, 0).slots, "3,7");
    T_STR(record_of(s, 0).address, "127.0.0.1:9000");
    T_EQ(member_leave(a, 1000), 0);
    r = record_of(s, 0);
    T_EQ(r.state, MEMBER_FREE);
    T_EQ(r.epoch, 1);
    T_STR(r.name, "a");
    struct member *c = new_member(s, "c", false);
    settle(c);
    T_EQ(c->self.number, 0);
    T_EQ(c->self.epoch, 2);
    free(a), free(b), free(c);
    firn_store_close(s);
}

T_TEST(many_at_once_get_different_numbers)
{
    enum { N = 40 };
    struct firn_store *s = new_store();
    struct member *m[N];
    bool taken[MEMBERS_MAX] = { false };
    int steps = 0;
    for (int i = 0; i < N; i++)
        m[i] = new_member(s, "x", false);
    for (int up = 0; up < N && steps < 100000; steps++) {
        struct member *one = m[t_random_below(N)];
        bool was = one->self.state == MEMBERSHIP_UP;
        member_step(one);
        up += !was && one->self.state == MEMBERSHIP_UP;
    }
    for (int i = 0; i < N; i++) {
        T_EQ(m[i]->self.state, MEMBERSHIP_UP);
        T_OK(!taken[m[i]->self.number]);
        taken[m[i]->self.number] = true;
        T_OK(m[i]->self.number < 2 * 64 + N, "low numbers");
        free(m[i]);
    }
    firn_store_close(s);
}

T_TEST(ten_idle_nodes_write_little)
{
    struct firn_store *s = new_store();
    struct member *m[10];
    struct member_params p = { .kind = "firnd",
                               .name = "n",
                               .keep_house = true }; /* ttl: default */
    for (int i = 0; i < 10; i++) {
        m[i] = malloc(sizeof *m[i]);
        T_EQ(member_open(m[i], s, &p, &world, NULL), 0);
        settle(m[i]);
    }
    for (int second = 0; second < 600; second++) {
        now_ms += 1000;
        for (int i = 0; i < 10; i++)
            settle(m[i]);
    }
    uint64_t beats = 0;
    for (uint32_t i = 0; i < 10; i++) {
        beats += record_of(s, i).beat;
        free(m[i]);
    }
    T_EQ(beats, 10 * 600 / 15, "one write every 15 s each");
    firn_store_close(s);
}

T_TEST(the_dead_are_freed_after_one_and_a_half_ttl)
{
    struct firn_store *s = new_store();
    struct member *dead = new_member(s, "dead", false), *house = new_member(s, "house", true);
    settle(dead);
    settle(house);
    uint64_t last = now_ms;
    while (record_of(s, 0).state == MEMBER_UP && now_ms < last + 10 * TTL) {
        now_ms += 100;
        settle(house);
    }
    T_EQ(record_of(s, 0).state, MEMBER_FREE);
    T_OK(now_ms >= last + member_dead_after(TTL), "not before");
    T_OK(now_ms >= dead->self.valid_until_ms + TTL / 2);
    T_EQ(record_of(s, 1).state, MEMBER_UP);
    /* The dead one was only asleep: it finds out, and comes back as another. */
    T_EQ(dead->self.state, MEMBERSHIP_UP);
    T_OK(!membership_valid(&dead->self, now_ms));
    settle(dead);
    T_EQ(dead->self.lost, 1);
    T_EQ(dead->self.number, 0);
    T_EQ(dead->self.epoch, 2);
    T_OK(membership_valid(&dead->self, now_ms));
    free(dead), free(house);
    firn_store_close(s);
}

T_TEST(full_until_one_is_dead)
{
    struct firn_store *s = new_store();
    struct member_record r = longest();
    r.epoch = 7;
    r.ttl_ms = TTL;
    for (uint32_t n = 0; n < MEMBERS_MAX; n++) {
        t_random_bytes(r.req.b, sizeof r.req.b);
        put_record(s, n, &r);
    }
    struct member *m = new_member(s, "late", false);
    T_OK(settle(m) > 0);
    T_OK(m->self.full);
    T_EQ(m->error, FIRN_ENOSLOT);
    uint64_t start = now_ms;
    while (m->self.state != MEMBERSHIP_UP && now_ms < start + 10 * TTL) {
        now_ms += 500;
        settle(m);
    }
    T_EQ(m->self.state, MEMBERSHIP_UP);
    T_OK(now_ms >= start + member_dead_after(TTL));
    T_EQ(m->self.number, 0);
    T_EQ(m->self.epoch, 8);
    free(m);
    firn_store_close(s);
}

T_TEST(an_unreadable_register_is_left_alone)
{
    struct firn_store *s = new_store();
    struct firn_cas cas = { firn_slice("member/00000", 12), { NULL, 0 }, firn_slice("junk", 4) };
    T_EQ(firn_store_cas(s, &cas, NULL), 0);
    struct member *m = new_member(s, "m", true);
    settle(m);
    T_EQ(m->self.number, 1);
    free(m);
    firn_store_close(s);
}

/* ---- outcomes, step by step ---- */

static struct roster roster;

/* The action points into the membership, which must therefore stay where it is. */
static void claim(struct membership *m, struct membership_action *a)
{
    struct membership_params p = { .ttl_ms = TTL, .backoff_min_ms = 10, .backoff_max_ms = 100 };
    struct membership_now now = { 1000, 1 };
    struct nonce n;
    memset(&roster, 0, sizeof roster);
    T_EQ(membership_init(m, &p, &roster, NULL), 0);
    t_random_bytes(n.b, sizeof n.b);
    membership_next(m, &now, &n, a);
    T_EQ(a->what, MEMBERSHIP_DO_SCAN);
    membership_scan_done(m, &now, 0);
    membership_next(m, &now, &n, a);
    T_EQ(a->what, MEMBERSHIP_DO_READ);
    membership_read_done(m, &now, FIRN_ENOENT, NULL, 0);
    membership_next(m, &now, &n, a);
    T_EQ(a->what, MEMBERSHIP_DO_CAS);
    T_OK(a->old == NULL);
}

T_TEST(valid_from_the_sending_not_from_the_answer)
{
    struct membership_action a;
    struct membership m;
    claim(&m, &a);
    membership_cas_done(&m, &(struct membership_now){ 5000, 1 }, 0);
    T_EQ(m.state, MEMBERSHIP_UP);
    T_EQ(m.valid_until_ms, 1000 + TTL);
}

T_TEST(a_write_of_unknown_outcome_is_known_by_its_nonce)
{
    struct membership_action a;
    struct membership m;
    claim(&m, &a);
    struct membership_now now = { 3000, 1 };
    struct nonce n = { { 9 } };
    char text[RECORD_TEXT_MAX];
    size_t len = a.value_len;
    memcpy(text, a.value, len);
    membership_cas_done(&m, &now, FIRN_EUNKNOWN);
    T_EQ(m.state, MEMBERSHIP_OUT);
    now.ms = 3500;
    membership_next(&m, &now, &n, &a);
    T_EQ(a.what, MEMBERSHIP_DO_READ);
    T_OK(a.fresh);
    membership_read_done(&m, &now, 0, text, len);
    T_EQ(m.state, MEMBERSHIP_UP);
    T_EQ(m.valid_until_ms, 1000 + TTL);
}

T_TEST(a_late_beat_renews_but_breaks)
{
    struct membership_action a;
    struct membership m;
    claim(&m, &a);
    struct membership_now now = { 1000, 1 };
    struct nonce n = { { 9 } };
    membership_cas_done(&m, &now, 0);
    uint64_t unbroken = m.unbroken;
    now.ms = 1000 + TTL - 1;
    membership_next(&m, &now, &n, &a);
    T_EQ(a.what, MEMBERSHIP_DO_CAS);
    now.ms = 1000 + TTL;
    T_OK(!membership_valid(&m, now.ms));
    membership_cas_done(&m, &now, 0);
    T_OK(membership_valid(&m, now.ms), "the store has it");
    T_OK(m.unbroken != unbroken, "but its user must know");
}

T_TEST(another_owner_and_a_twin_are_a_loss)
{
    for (int twin = 0; twin < 2; twin++) {
        struct membership_action a;
        struct membership m;
        claim(&m, &a);
        struct membership_now now = { 1000, 1 };
        struct nonce n = { { 9 } };
        struct member_record r;
        char text[RECORD_TEXT_MAX];
        T_EQ(member_parse(a.value, a.value_len, &r, NULL), 0);
        membership_cas_done(&m, &now, 0);
        now.ms += TTL / 3;
        membership_next(&m, &now, &n, &a);
        membership_cas_done(&m, &now, FIRN_ECONFLICT);
        membership_next(&m, &now, &n, &a);
        T_EQ(a.what, MEMBERSHIP_DO_READ);
        r.epoch += !twin;
        r.req = (struct nonce){ { 77 } };
        membership_read_done(&m, &now, 0, text, member_encode(&r, text));
        T_EQ(m.state, MEMBERSHIP_OUT);
        T_EQ(m.lost, 1);
    }
}

T_TEST(keeping_house_does_not_hold_up_beats)
{
    struct membership_action a;
    struct membership m;
    claim(&m, &a);
    struct membership_now now = { 1000, 1 };
    struct nonce n = { { 9 } };
    m.params.keep_house = true;
    membership_cas_done(&m, &now, 0);
    m.house_due_ms_ = now.ms + 10;
    now.ms += 10;
    membership_next(&m, &now, &n, &a);
    T_EQ(a.what, MEMBERSHIP_DO_SCAN);
    membership_scan_done(&m, &now, FIRN_EIO);
    now.ms = 1000 + TTL / 3;
    membership_next(&m, &now, &n, &a);
    T_EQ(a.what, MEMBERSHIP_DO_CAS);
}

/* ---- listing ---- */

static int count_dead(void *user, const struct member_view *v)
{
    int *dead = user;
    *dead += v->dead;
    return 0;
}

struct shown {
    unsigned n;
    char name[8][RECORD_NAME_MAX + 1], state[8][8];
    uint32_t number[8];
};

static int show(void *user, const struct member_view *v)
{
    struct shown *s = user;
    uint64_t now = world.unix_ms(NULL), at = v->record->at;
    T_OK(s->n < 8);
    snprintf(s->name[s->n], sizeof s->name[0], "%s", v->record->name);
    snprintf(s->state[s->n], sizeof s->state[0], "%s",
             member_state_name(v, now > at ? now - at : 0));
    s->number[s->n++] = v->number;
    return 0;
}

/* What an operator sees after kill -9 and a restart: one row, not two; and of a node that stays
 * dead that it is silent after its ttl and one interval. */
T_TEST(a_list_has_each_process_once)
{
    struct firn_store *s = new_store();
    struct member *old = new_member(s, "a", false), *other = new_member(s, "b", false);
    static struct roster mine;
    memset(&mine, 0, sizeof mine);
    settle(old);
    settle(other);
    now_ms += 1;
    struct member *again = new_member(s, "a", false); /* `old` was killed */
    settle(again);
    struct shown l = { 0 };
    T_EQ(members_current(s, &mine, &world, show, &l, NULL), 0);
    T_EQ(l.n, 2);
    T_STR(l.name[0], "b");
    T_STR(l.name[1], "a");
    T_EQ(l.number[1], again->self.number);
    l = (struct shown){ 0 };
    T_EQ(members_list(s, &mine, &world, show, &l, NULL), 0);
    T_EQ(l.n, 3, "the whole list has all of them");

    now_ms += TTL + TTL / 3 - 2; /* none of them beats any more */
    l = (struct shown){ 0 };
    T_EQ(members_current(s, &mine, &world, show, &l, NULL), 0);
    T_STR(l.state[1], "up");
    now_ms += 2;
    l = (struct shown){ 0 };
    T_EQ(members_current(s, &mine, &world, show, &l, NULL), 0);
    T_STR(l.state[0], "silent");
    T_STR(l.state[1], "silent");
    now_ms += TTL;
    l = (struct shown){ 0 };
    T_EQ(members_current(s, &mine, &world, show, &l, NULL), 0);
    T_STR(l.state[1], "dead");
    T_EQ(member_leave(other, TTL), 0);
    l = (struct shown){ 0 };
    T_EQ(members_current(s, &mine, &world, show, &l, NULL), 0);
    T_EQ(l.n, 1, "one has left");
    free(old);
    free(other);
    free(again);
    firn_store_close(s);
}

T_TEST(a_list_says_dead_only_of_what_it_watched)
{
    struct firn_store *s = new_store();
    struct member *m = new_member(s, "m", false);
    settle(m);
    static struct roster mine;
    memset(&mine, 0, sizeof mine);
    int dead = 0;
    now_ms += 10 * TTL;
    T_EQ(members_list(s, &mine, &world, count_dead, &dead, NULL), 0);
    T_EQ(dead, 0, "seen for the first time");
    now_ms += member_dead_after(TTL);
    T_EQ(members_list(s, &mine, &world, count_dead, &dead, NULL), 0);
    T_EQ(dead, 1);
    free(m);
    firn_store_close(s);
}
