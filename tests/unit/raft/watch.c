/* Time as the core sees it, and what is said about the lead. */
#include "raft/watch.c"

#include "t.h"

#include <stdio.h>
#include <string.h>

static struct {
    enum core_state state;
    uint64_t term, leader;
    uint32_t election_ms;
    char said[64]; /* the last event */
} world;

static struct core_config config = { 2, { { 1, CORE_STANDBY, "a:1" }, { 2, CORE_VOTER, "b:1" } } };

enum core_state core_state(const struct core *c)
{
    (void)c;
    return world.state;
}

uint64_t core_term(const struct core *c)
{
    (void)c;
    return world.term;
}

uint64_t core_leader(const struct core *c)
{
    (void)c;
    return world.leader;
}

uint64_t core_last(const struct core *c)
{
    (void)c;
    return 9;
}

uint32_t core_election_ms(const struct core *c)
{
    (void)c;
    return world.election_ms;
}

void core_set_election(struct core *c, uint32_t ms)
{
    (void)c;
    world.election_ms = ms;
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

void member_say(const struct member *m, enum node_level level, const char *event, const char *fmt,
                ...)
{
    (void)m, (void)level, (void)fmt;
    snprintf(world.said, sizeof world.said, "%s", event);
}

void wire_close(struct wire *w)
{
    (void)w;
}

void member_leader_lost(struct member *m)
{
    (void)m;
}

static struct member member;

static void begin(void)
{
    memset(&member, 0, sizeof member);
    memset(&world, 0, sizeof world);
    world.election_ms = 100;
    world.term = 3;
    world.leader = 2;
    member.self.id = 1;
    member.now_ms = 1000;
    watch_begin(&member, 100);
}

static void at(uint64_t ms)
{
    watch_time(&member, ms);
    member.now_ms = ms;
}

T_TEST(time_in_which_the_process_did_not_run_does_not_exist_for_the_core)
{
    begin();
    uint64_t before = core_ms(&member);
    at(1010);
    T_EQ(core_ms(&member), before + 10);
    at(1025); /* a tick that is a little late counts */
    T_EQ(core_ms(&member), before + 25);
    at(6025);
    T_EQ(core_ms(&member), before + 35, "one tick");
    at(6025);
    T_EQ(core_ms(&member), before + 35);
    at(6035);
    T_EQ(core_ms(&member), before + 45);
}

T_TEST(a_lead_that_was_handed_over_is_not_lost)
{
    begin();
    for (int handed = 0; handed < 2; handed++) {
        uint64_t lost = member.election.lost;
        world.state = CORE_LEADER;
        member.change.transferring = handed;
        watch_tick(&member);
        world.state = CORE_FOLLOWER;
        watch_tick(&member);
        T_EQ(member.election.lost, lost + !handed);
    }
}

T_TEST(a_standby_says_that_its_leader_is_silent)
{
    begin();
    uint64_t now = 1000;
    for (; now < 1000 + SILENT_MS + 900; now += 10) {
        at(now);
        watch_tick(&member);
        T_OK(!member.election.silent);
    }
    for (; now < 1000 + SILENT_MS + 1100; now += 10) {
        at(now);
        watch_tick(&member);
    }
    T_OK(member.election.silent);
    T_OK(strcmp(world.said, "leader_silent") == 0, "%s", world.said);
    watch_heard(&member, &(struct core_message){ .type = MESSAGE_APPEND, .term = 3 });
    watch_tick(&member);
    T_OK(!member.election.silent);
    T_OK(strcmp(world.said, "leader_heard") == 0, "%s", world.said);
}
