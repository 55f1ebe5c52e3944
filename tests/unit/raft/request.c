/*
 * What is said about a write whose leader was lost: with the core and the wires played by this
 * program. The member under test follows; the test is its leader, by the name that core_leader()
 * gives, and answers, goes away or stays silent.
 */
#include "raft/propose.c"
#include "raft/request.c"

#include "t.h"

/* ---- the world ---- */

static struct {
    bool leads;
    const struct wire_events *events; /* of the connection to the leader; NULL: none */
    void *user;
    unsigned connects, applies;
    uint64_t asked, shown; /* questions for the lead */
    bool asks;             /* they may be asked */
    size_t len;            /* of the last frame that was sent */
    char sent[4096];
} world;

static struct core_config config = {
    2, { { 1, CORE_VOTER, "member:1" }, { 2, CORE_VOTER, "leader:1" } }
};

enum core_state core_state(const struct core *c)
{
    (void)c;
    return world.leads ? CORE_LEADER : CORE_FOLLOWER;
}

bool core_leads(const struct core *c)
{
    (void)c;
    return world.leads;
}

bool core_settled(const struct core *c)
{
    (void)c;
    return world.leads;
}

uint64_t core_leader(const struct core *c)
{
    (void)c;
    return world.leads ? 1 : 2;
}

uint64_t core_term(const struct core *c)
{
    (void)c;
    return 7;
}

uint64_t core_last(const struct core *c)
{
    (void)c;
    return 100;
}

uint64_t core_committed(const struct core *c)
{
    (void)c;
    return 100;
}

uint64_t core_applied(const struct core *c)
{
    (void)c;
    return 100;
}

uint32_t core_election_ms(const struct core *c)
{
    (void)c;
    return 150;
}

const struct core_config *core_config(const struct core *c)
{
    (void)c;
    return &config;
}

const struct core_member *config_member(const struct core_config *c, uint64_t id)
{
    return id == 1 || id == 2 ? &c->member[id - 1] : NULL;
}

int core_propose(struct core *c, const char *bytes, size_t len, uint64_t *out_index)
{
    (void)c, (void)bytes, (void)len;
    *out_index = 101;
    world.applies++;
    return 0;
}

uint64_t core_ask(struct core *c)
{
    (void)c;
    return world.asks ? ++world.asked : 0;
}

uint64_t core_shown(const struct core *c)
{
    (void)c;
    return world.shown;
}

void member_drain(struct member *m)
{
    (void)m;
}

/* All have the same registers here. */
bool check_passed(const struct member *m)
{
    (void)m;
    return true;
}

bool check_proved(const struct member *m)
{
    (void)m;
    return true;
}

bool check_differs(const struct member *m)
{
    (void)m;
    return false;
}

void check_propose(struct member *m)
{
    (void)m;
}

void check_said(struct member *m, uint64_t index, bool applied)
{
    (void)m, (void)index, (void)applied;
}

struct wire *wire_connect(struct wire_host *h, const char *to, const struct wire_events *e,
                          void *user)
{
    (void)h, (void)to;
    world.events = e;
    world.user = user;
    world.connects++;
    return (struct wire *)&world;
}

void *wire_user(const struct wire *w)
{
    (void)w;
    return world.user;
}

void wire_send(struct wire *w, const char *p, size_t len)
{
    (void)w;
    T_OK(len <= sizeof world.sent);
    memcpy(world.sent, p, len);
    world.len = len;
}

bool wire_works(const struct wire *w)
{
    (void)w;
    return true;
}

void wire_close(struct wire *w)
{
    (void)w;
    world.events = NULL;
}

void membership_change(struct member *m, struct request *q)
{
    request_wait(m, q, RETRY_MS); /* as one that waits for another change */
}

void membership_stepped(struct member *m, const struct proposal *p, bool applied)
{
    (void)m, (void)p, (void)applied;
}

void member_status(struct member *m, bool lines, struct buf *to)
{
    (void)m, (void)lines, (void)to;
}

/* ---- the member, and who asked it ---- */

static struct member node;
static char address[] = "member:1";
static int told, result;
static uint64_t seen; /* by who writes: an index of the log */
static char why[256]; /* of a refusal */

static void came(void *user, const char *p, size_t len)
{
    (void)user;
    struct frame f;
    struct frame_answer a;
    told++;
    T_OK(p && frame_parse(p, len, &f) == (ssize_t)len);
    struct frame_in in = { f.body, f.len, false };
    T_EQ(frame_get_reply(&in, &a), 0);
    result = a.result;
    struct firn_slice text = result ? frame_get_text(&in, FRAME_MAX) : firn_slice("", 0);
    snprintf(why, sizeof why, "%.*s", (int)text.len, text.p ? text.p : "");
}

static void begin(void)
{
    memset(&node, 0, sizeof node);
    memset(&world, 0, sizeof world);
    node.requests.room = malloc(FRAME_RAFT_MAX);
    node.proposals.last = &node.proposals.first;
    node.now_ms = 1000;
    node.self.id = 1;
    node.self.address = address;
    node.fsm.incarnation = 9;
    told = result = 0;
    seen = 0;
}

static void end(void)
{
    member_end_requests(&node);
    proposals_free(&node);
    free(node.requests.room);
}

static void pump(void)
{
    do {
        node.dirty = false;
        member_pump(&node);
    } while (node.dirty);
}

static void later(uint64_t ms)
{
    node.now_ms += ms;
    pump();
    member_expire(&node);
}

/* A write, with a second of time. */
static void write_from(struct wire *w, uint8_t flags)
{
    char room[512];
    struct frame_out o = { .p = room, .cap = sizeof room };
    struct firn_cas want = { firn_slice("k", 1), firn_slice("a", 1), firn_slice("b", 1) };
    frame_begin(&o, FRAME_CAS, flags, 1000, 77);
    frame_u64(&o, seen);
    for (int i = 8; i < CAS_COUNT; i++)
        frame_u8(&o, 0);
    frame_cas(&o, &want, 1);
    frame_end(&o);
    request_take(&node, o.p, o.len, w, w ? NULL : came, NULL);
    pump();
}

/* Of this process. */
static void ask_write(uint8_t flags)
{
    write_from(NULL, flags);
}

static void ask_change(enum frame_change what, uint8_t flags)
{
    char room[64];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_begin(&o, FRAME_CHANGE, flags, 1000, 77);
    frame_u8(&o, (uint8_t)what);
    frame_u64(&o, 5);
    frame_text(&o, firn_slice("", 0));
    frame_end(&o);
    request_take(&node, o.p, o.len, NULL, came, NULL);
    pump();
}

static void leader_welcomes(void)
{
    struct frame f = { .type = FRAME_WELCOME };
    T_OK(world.events);
    world.events->up((struct wire *)&world);
    world.len = 0;
    world.events->frame((struct wire *)&world, &f);
    pump();
}

static struct frame sent(void)
{
    struct frame f;
    T_EQ(frame_parse(world.sent, world.len, &f), world.len);
    return f;
}

static void leader_refuses(int error)
{
    char room[256];
    struct frame_out o = { .p = room, .cap = sizeof room };
    struct frame f;
    frame_refuse(&o, sent().number, error, 0, "no");
    T_OK(frame_parse(o.p, o.len, &f) > 0);
    world.events->frame((struct wire *)&world, &f);
}

static void leader_goes(void)
{
    const struct wire_events *e = world.events;
    world.events = NULL;
    e->gone((struct wire *)&world, "gone");
}

/* ---- the laws ---- */

T_TEST(a_leader_that_did_nothing_is_believed)
{
    begin();
    ask_write(0);
    leader_welcomes();
    T_EQ(sent().flags, FRAME_FORWARDED);
    T_EQ(sent().body[CAS_AGAIN], 0);
    leader_refuses(FIRN_EIO);
    T_EQ(told, 1);
    T_EQ(result, FIRN_EIO);
    end();
}

/* The first leader may have done it. What the second one did not do says nothing about that. */
T_TEST(a_write_in_doubt_is_never_said_not_to_be)
{
    static const int no[] = { FIRN_EIO, FIRN_EAGAIN, FIRN_EUNKNOWN, FIRN_ENOMEM, FIRN_EINVAL };
    for (size_t i = 0; i < T_LEN(no); i++) {
        begin();
        ask_write(0);
        leader_welcomes();
        leader_goes();
        later(RETRY_MS);
        leader_welcomes();
        T_EQ(sent().body[CAS_AGAIN], 1, "the next leader is asked again");
        leader_refuses(no[i]);
        T_OK(told == 0 || result == FIRN_EUNKNOWN, "after %d it is said to be %d", no[i], result);
        later(2000);
        T_EQ(told, 1);
        T_EQ(result, FIRN_EUNKNOWN, "after %d", no[i]);
        end();
    }
}

T_TEST(a_write_in_doubt_is_asked_about_until_somebody_knows)
{
    begin();
    ask_write(0);
    leader_welcomes();
    leader_goes();
    later(RETRY_MS);
    leader_welcomes();
    leader_refuses(FIRN_EIO);
    world.len = 0;
    later(RETRY_MS);
    T_OK(world.len > 0, "asked once more");
    T_EQ(sent().body[CAS_AGAIN], 1);
    char room[256];
    struct frame_out o = { .p = room, .cap = sizeof room };
    struct frame f;
    frame_reply(&o, sent().number, 0, 5, 0);
    frame_u32(&o, 1);
    frame_u8(&o, 0);
    frame_end(&o);
    T_OK(frame_parse(o.p, o.len, &f) > 0);
    world.events->frame((struct wire *)&world, &f);
    T_EQ(told, 1);
    T_EQ(result, 0);
    end();
}

/* What a leader that was lost may have removed need not be there any more. */
T_TEST(a_removal_in_doubt_is_done_when_the_member_is_gone)
{
    static const struct {
        enum frame_change what;
        int before; /* the first leader's answer; 0: it goes away */
        int result;
    } c[] = { { CHANGE_REMOVE, 0, 0 },
              { CHANGE_REMOVE, FIRN_EUNKNOWN, 0 },
              { CHANGE_REMOVE, FIRN_EAGAIN, FIRN_ENOENT }, /* it did nothing */
              { CHANGE_PROMOTE, 0, FIRN_ENOENT } };
    for (size_t i = 0; i < T_LEN(c); i++) {
        begin();
        ask_change(c[i].what, 0);
        leader_welcomes();
        if (c[i].before)
            leader_refuses(c[i].before);
        else
            leader_goes();
        later(RETRY_MS);
        if (!c[i].before)
            leader_welcomes();
        T_EQ(told, 0, "case %zu", i);
        leader_refuses(FIRN_ENOENT);
        T_EQ(told, 1, "case %zu", i);
        T_EQ(result, c[i].result, "case %zu", i);
        end();
    }
}

T_TEST(a_removal_of_nobody_is_refused)
{
    begin();
    ask_change(CHANGE_REMOVE, 0);
    leader_welcomes();
    leader_refuses(FIRN_ENOENT);
    T_EQ(told, 1);
    T_EQ(result, FIRN_ENOENT);
    end();
}

/* Another member's change that was in our log when we lost the lead: it hears that it may be
 * done. */
T_TEST(a_change_in_our_log_is_handed_back_in_doubt)
{
    for (int maybe = 0; maybe < 2; maybe++) {
        begin();
        world.leads = true;
        ask_change(CHANGE_REMOVE, FRAME_FORWARDED);
        node.requests.first->maybe = maybe;
        world.leads = false;
        later(0);
        T_EQ(told, 1);
        T_EQ(result, maybe ? FIRN_EUNKNOWN : FIRN_EAGAIN);
        end();
    }
}

/* Another member's write that was in our log when we lost the lead: that member asks on. */
T_TEST(a_forwarded_write_whose_lead_was_lost_is_unknown)
{
    begin();
    world.leads = true;
    ask_write(FRAME_FORWARDED);
    T_EQ(world.applies, 1);
    world.leads = false;
    proposals_watch(&node);
    T_EQ(told, 1);
    T_EQ(result, FIRN_EUNKNOWN);
    end();
}

/* The first entry under way is applied; each of its writes is refused, but for the `won`th. */
static void applied(uint32_t won)
{
    const struct proposal *p = node.proposals.first;
    uint8_t outcome[2 * FSM_REQUESTS_MAX];
    for (uint32_t i = 0; i < p->count; i++) {
        outcome[2 * i] = FSM_DONE;
        outcome[2 * i + 1] = i != won;
    }
    node.fsm.result = outcome;
    node.fsm.result_len = 2 * (size_t)p->count;
    proposals_applied(&node, &(struct core_entry){ .index = 101, .term = 7 });
    node.fsm.result = NULL;
    node.fsm.result_len = 0;
    pump();
}

static uint32_t under_way(void)
{
    return node.proposals.first->count;
}

/* Who lost has the next turn; the leader's own waits, and goes behind it. */
T_TEST(who_was_too_slow_is_next)
{
    struct wire *other = (struct wire *)&world;
    begin();
    world.leads = true;
    write_from(other, FRAME_FORWARDED);
    applied(1);
    T_EQ(world.applies, 1);
    struct frame_in in = { sent().body, sent().len, false };
    struct frame_answer a;
    T_EQ(frame_get_reply(&in, &a), 0);
    T_EQ(frame_get_u32(&in), 1);
    T_EQ(frame_get_u8(&in), 1, "refused");
    T_OK(!frame_get_text(&in, 8).p && !in.bad, "and nothing is there instead");
    ask_write(0);
    T_EQ(world.applies, 1, "it waits");
    write_from(other, FRAME_FORWARDED);
    T_EQ(world.applies, 2);
    T_EQ(under_way(), 2);
    const struct proposal *p = node.proposals.first;
    T_OK(p->part[0].number > p->part[1].number, "the later one comes first");
    applied(0);
    T_EQ(told, 1, "the leader's own hears that it lost");
    write_from(other, FRAME_FORWARDED);
    T_EQ(world.applies, 2, "and now the other one waits for it");
    ask_write(0);
    T_EQ(world.applies, 3);
    applied(0);
    end();
}

/* A leader whose log is slow: while the loser's write is under way, its own must not go behind
 * it. */
T_TEST(no_later_entry_overtakes_a_turn)
{
    struct wire *other = (struct wire *)&world;
    begin();
    world.leads = true;
    write_from(other, FRAME_FORWARDED);
    applied(1);
    write_from(other, FRAME_FORWARDED); /* its turn */
    T_EQ(world.applies, 2);
    ask_write(0);
    T_EQ(world.applies, 2, "there is room for another entry, but it waits");
    applied(0);
    T_EQ(world.applies, 3, "now it goes");
    applied(0);
    T_EQ(result, 0);
    end();
}

/* What is refused is told with what is there; a creation that lost gives no turn. */
T_TEST(what_is_there_instead)
{
    struct firn_cas put = { firn_slice("k", 1), { NULL, 0 }, firn_slice("there", 5) };
    int done;
    begin();
    world.leads = true;
    T_EQ(map_cas(&node.fsm.map, &put, 1, &done), 0);
    write_from((struct wire *)&world, FRAME_FORWARDED);
    applied(1);
    struct frame_in in = { sent().body, sent().len, false };
    struct frame_answer a;
    T_EQ(frame_get_reply(&in, &a), 0);
    T_EQ(frame_get_u32(&in), 1);
    T_EQ(frame_get_u8(&in), 1);
    struct firn_slice is = frame_get_text(&in, 8);
    T_OK(is.len == 5 && memcmp(is.p, "there", 5) == 0 && in.len == 0);
    T_EQ(node.proposals.turns.used, 1);
    member_forget(&node, (struct wire *)&world);
    ask_write(0);
    T_EQ(world.applies, 2, "nobody waits for who went away");
    applied(0);
    map_done(&node.fsm.map);
    end();
}

T_TEST(a_turn_that_nobody_takes_ends)
{
    begin();
    world.leads = true;
    write_from((struct wire *)&world, FRAME_FORWARDED);
    applied(1);
    ask_write(0);
    T_EQ(world.applies, 1);
    later(15);
    T_EQ(world.applies, 2);
    applied(0);
    T_EQ(result, 0);
    end();
}

/* A leader that does not have what the client saw elsewhere is one no more, or its cluster has
 * forgotten. */
T_TEST(who_seems_to_have_forgotten_shows_first_that_it_leads)
{
    begin();
    world.leads = world.asks = true;
    seen = 101; /* the log ends with 100 */
    ask_write(0);
    T_EQ(told, 0);
    T_EQ(world.applies, 0, "nothing is written");
    T_EQ(world.asked, 1);
    world.leads = world.asks = false; /* there was another leader */
    member_read_done(&node);
    later(RETRY_MS);
    T_EQ(told, 0);
    T_EQ(world.connects, 1, "which is asked");
    later(2000);
    T_EQ(result, FIRN_EIO, "it was not done");
    T_EQ(told, 1);

    world.leads = world.asks = true;
    ask_write(0);
    member_read_done(&node);
    T_EQ(told, 1, "it is not shown yet");
    world.shown = world.asked; /* there is no other */
    member_read_done(&node);
    T_EQ(told, 2);
    T_EQ(result, FIRN_ESTORE);
    ask_write(0);
    later(2000); /* nobody confirms */
    T_EQ(told, 3);
    T_EQ(result, FIRN_EIO);
    T_EQ(world.applies, 0);
    seen = 100;
    ask_write(0);
    T_EQ(world.applies, 1);
    applied(0);
    T_EQ(result, 0);
    end();
}

T_TEST(without_a_leader_for_long_it_is_told_at_once)
{
    begin();
    node.election.leaderless_ms = node.now_ms;
    ask_write(0);
    later(900); /* an election may be going on */
    T_EQ(told, 0);
    later(200);
    T_EQ(told, 1, "its time has passed");
    later(500);
    ask_write(0);
    later(0);
    T_EQ(told, 2, "at once");
    T_EQ(result, FIRN_EIO);
    node.election.leaderless_ms = 0;
    ask_write(0);
    later(0);
    T_EQ(told, 2);
    later(2000);
    end();
}

T_TEST(a_write_that_nobody_took_was_not_done)
{
    begin();
    ask_write(0);
    later(2000); /* never connected */
    T_EQ(told, 1);
    T_EQ(result, FIRN_EIO);
    end();
}

/* What waits at a leader until its time is over is told what it waited for. */
T_TEST(what_comes_too_late_hears_why)
{
    static const struct {
        enum frame_type type;
        const char *why;
    } c[] = { { FRAME_IDENTITY, "did not hear from a quorum" },
              { FRAME_CHANGE, "another membership change" } };
    for (size_t i = 0; i < T_LEN(c); i++) {
        begin();
        world.leads = true;
        if (c[i].type == FRAME_CHANGE) {
            node.change.under_way = true;
            ask_change(CHANGE_REMOVE, 0);
        } else {
            char room[64];
            struct frame_out o = { .p = room, .cap = sizeof room };
            frame_begin(&o, c[i].type, 0, 1000, 77);
            frame_end(&o);
            request_take(&node, o.p, o.len, NULL, came, NULL);
        }
        later(2000);
        T_EQ(told, 1);
        T_EQ(result, FIRN_EIO);
        T_OK(strstr(why, c[i].why), "%s", why);
        end();
    }
}

/* Whoever asks and asks, without a leader to answer: it is refused before the memory is full. */
T_TEST(what_waits_is_bounded)
{
    enum { KEY = 200, BIG = 256 };
    static char room[FRAME_MAX], value[STORE_VALUE_MAX];
    struct frame_out o = { .p = room, .cap = sizeof room };
    struct firn_cas want[BIG];
    begin();
    for (size_t i = 0; i < BIG; i++)
        want[i] = (struct firn_cas){ firn_slice(value, KEY), firn_slice(value, sizeof value),
                                     firn_slice(value, sizeof value) };
    frame_begin(&o, FRAME_CAS, 0, 1000, 77);
    for (int i = 0; i < CAS_COUNT; i++)
        frame_u8(&o, 0);
    frame_cas(&o, want, BIG);
    frame_end(&o);
    T_OK(!o.full);
    size_t taken = 0;
    for (; told == 0 && taken < 100000; taken++)
        request_take(&node, o.p, o.len, NULL, came, NULL);
    T_EQ(result, FIRN_EIO, "nothing was written");
    T_OK(taken * o.len <= REQUEST_BYTES_MAX + o.len && taken > 10, "%zu of them", taken);
    later(2000);
    T_EQ(told, taken, "the others have ended");
    T_EQ(node.requests.bytes, 0);
    told = 0;
    for (taken = 0; told == 0 && taken < 100000; taken++)
        ask_write(0);
    T_EQ(result, FIRN_EIO, "nothing was written");
    T_EQ(taken, REQUESTS_MAX + 1);
    later(2000);
    T_EQ(node.requests.count, 0);
    told = 0;
    ask_write(0);
    T_EQ(told, 0, "there is room again");
    later(2000);
    end();
}
