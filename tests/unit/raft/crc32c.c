/* CRC-32C: the known value, in pieces, and the table's result equals the instruction's. */
#include "t.h"

#include "raft/crc32c.h"

T_TEST(known_value)
{
    T_EQ(crc32c(0, "123456789", 9), 0xe3069283);
    T_EQ(crc32c_by_table(0, "123456789", 9), 0xe3069283);
    T_EQ(crc32c(0, "", 0), 0);
}

T_TEST(pieces_and_ways_agree)
{
    char p[300];
    t_random_bytes(p, sizeof p);
    for (size_t len = 0; len < sizeof p; len++) {
        uint32_t whole = crc32c(0, p, len);
        T_EQ(crc32c_by_table(0, p, len), whole, "len=%zu", len);
        T_EQ(crc32c(crc32c(0, p, len / 3), p + len / 3, len - len / 3), whole, "len=%zu", len);
    }
}
