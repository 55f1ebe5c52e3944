/* Configurations as bytes: what is written is read, everything else is refused. */
#include "raft/core/core_in.h"
#include "t.h"

static struct core_config three(void)
{
    return (struct core_config){
        .count = 3,
        .member = { { 1, CORE_VOTER, "10.0.0.1:7411" },
                    { 2, CORE_VOTER, "" },
                    { 3, CORE_STANDBY, "c:1" } },
    };
}

T_TEST(config_round_trip)
{
    struct core_config c = three(), back;
    char bytes[CORE_CONFIG_BYTES_MAX];
    size_t len = config_write(&c, bytes, sizeof bytes);
    T_OK(len > 0);
    T_EQ(config_read(bytes, len, &back), 0);
    T_EQ(config_differences(&c, &back), 0);
    T_EQ(back.count, 3);
    for (size_t n = 0; n < len; n++) { /* every prefix is refused, and too little room */
        T_EQ(config_read(bytes, n, &back), FIRN_EFORMAT, "%d", (int)n);
        T_EQ(config_write(&c, bytes, n), 0);
    }
    for (unsigned i = 0; i < CORE_MEMBERS_MAX; i++) {
        c.member[i] = (struct core_member){ i + 1, CORE_VOTER, "" };
        memset(c.member[i].address, 'a', CORE_ADDRESS_MAX);
    }
    c.count = CORE_MEMBERS_MAX;
    len = config_write(&c, bytes, sizeof bytes);
    T_OK(len > 0 && config_read(bytes, len, &back) == 0 && back.count == CORE_MEMBERS_MAX);
}

T_TEST(config_refused)
{
    struct core_config c = three(), back;
    char bytes[CORE_CONFIG_BYTES_MAX];
    c.member[0].role = c.member[1].role = CORE_STANDBY;
    T_EQ(config_write(&c, bytes, sizeof bytes), 0, "no voter");
    c = three();
    c.member[2].id = 1;
    T_EQ(config_write(&c, bytes, sizeof bytes), 0, "a member twice");
    c = three();
    size_t len = config_write(&c, bytes, sizeof bytes);
    bytes[9] = 2; /* of the first member: id 1 becomes 2, twice */
    T_EQ(config_read(bytes, len, &back), FIRN_EFORMAT);
    len = config_write(&c, bytes, sizeof bytes);
    bytes[10] = 2; /* a role that does not exist */
    T_EQ(config_read(bytes, len, &back), FIRN_EFORMAT);
    len = config_write(&c, bytes, sizeof bytes);
    bytes[len - 1] = 0; /* within an address */
    T_EQ(config_read(bytes, len, &back), FIRN_EFORMAT);
}

T_TEST(config_one_difference)
{
    struct core_config a = three(), b = three();
    b.member[2].role = CORE_VOTER;
    T_EQ(config_differences(&a, &b), 1);
    b = three();
    b.count--;
    T_EQ(config_differences(&a, &b), 1);
    T_EQ(config_differences(&b, &a), 1);
    b.member[0].id = 9;
    T_EQ(config_differences(&a, &b), 3);
    T_EQ(config_voters(&a), 2);
    T_OK(config_votes(&a, 2) && !config_votes(&a, 3) && !config_votes(&a, 7));
}
