/* The record px-member: what is written is read again; a floor beyond all ballots is refused. */
#include "t.h"

#include "store/quorum_acceptor.h"

static struct quorum_member member(uint64_t floor)
{
    struct quorum_member m = { .state = MEMBER_FORMED, .acceptors = 3, .floor = floor };
    memset(m.quorum.b, 0xab, sizeof m.quorum.b);
    memset(m.self.b, 0x01, sizeof m.self.b);
    strcpy(m.store, "store-1");
    return m;
}

static int read_again(uint64_t floor, struct quorum_member *out)
{
    struct quorum_member m = member(floor);
    char text[MEMBER_TEXT_MAX];
    return quorum_member_parse(text, quorum_member_encode(&m, text), out, NULL);
}

T_TEST(quorum_member_round_trip)
{
    struct quorum_member out;
    T_EQ(read_again(7, &out), 0);
    T_EQ(out.floor, 7);
    T_EQ(out.acceptors, 3);
    T_EQ(out.state, MEMBER_FORMED);
    T_STR(out.store, "store-1");
    T_EQ(read_again(MEMBER_FLOOR_MAX, &out), 0);
}

/* Such a floor would leave no ballot above it: it is input, and no reason to stop the process. */
T_TEST(quorum_member_refuses_a_floor_without_ballots_above)
{
    struct quorum_member out;
    T_EQ(read_again(MEMBER_FLOOR_MAX + 1, &out), FIRN_EFORMAT);
    T_EQ(read_again(UINT64_MAX, &out), FIRN_EFORMAT);
}
