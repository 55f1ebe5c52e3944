/* Messages as bytes: what is written is read, everything else is refused. */
#include "raft/core/core_in.h"
#include "t.h"

#include <stdlib.h>

static char bytes[CORE_MESSAGE_BYTES_MAX], again[CORE_MESSAGE_BYTES_MAX];
static struct core_message_room room;

static void round_trip(const struct core_message *m)
{
    struct core_message back;
    size_t len = message_write(m, bytes, sizeof bytes);
    T_OK(len > 0);
    T_EQ(message_read(bytes, len, &back, &room), 0);
    T_EQ(back.type, m->type);
    T_EQ(back.entries, m->entries);
    T_EQ(message_write(&back, again, sizeof again), len);
    T_OK(memcmp(bytes, again, len) == 0);
    for (size_t n = 0; n < len && n < 300; n++)
        T_EQ(message_read(bytes, n, &back, &room), FIRN_EFORMAT, "%d", (int)n);
}

T_TEST(message_round_trip)
{
    struct core_config config = { 1, { { 7, CORE_VOTER, "a:1" } } };
    struct core_entry e[2] = { { 6, 2, ENTRY_DATA, "hello", 5 }, { 7, 3, ENTRY_NOTHING, "", 0 } };
    round_trip(&(struct core_message){ .type = MESSAGE_VOTE,
                                       .from = 1,
                                       .to = 2,
                                       .term = 4,
                                       .pre = true,
                                       .transfer = true,
                                       .index = 5,
                                       .index_term = 3 });
    round_trip(&(struct core_message){
        .type = MESSAGE_VOTE_RESULT, .from = 1, .to = 2, .term = 4, .ok = true });
    round_trip(&(struct core_message){ .type = MESSAGE_APPEND,
                                       .from = 1,
                                       .to = 2,
                                       .term = 4,
                                       .index = 5,
                                       .index_term = 2,
                                       .commit = 5,
                                       .round = 9,
                                       .entry = e,
                                       .entries = 2 });
    round_trip(&(struct core_message){ .type = MESSAGE_SNAPSHOT,
                                       .from = 1,
                                       .to = 2,
                                       .term = 4,
                                       .index = 5,
                                       .index_term = 2,
                                       .offset = 3,
                                       .total = 8,
                                       .bytes = "bytes",
                                       .len = 5,
                                       .config = &config });
}

T_TEST(message_largest)
{
    struct core_message m = { .type = MESSAGE_APPEND, .from = 1, .to = 2, .term = 4 };
    struct core_entry e = { 1, 1, ENTRY_DATA, calloc(1, CORE_ENTRY_BYTES_MAX),
                            CORE_ENTRY_BYTES_MAX };
    T_OK(e.bytes);
    m.entry = &e;
    m.entries = 1;
    round_trip(&m);
    free((char *)e.bytes);
}

T_TEST(message_refused)
{
    struct core_entry e[2] = { { 6, 3, ENTRY_DATA, "hello", 5 }, { 7, 2, ENTRY_NOTHING, "", 0 } };
    struct core_message back, m = { .type = MESSAGE_APPEND,
                                    .from = 1,
                                    .to = 2,
                                    .term = 4,
                                    .index = 5,
                                    .index_term = 2,
                                    .entry = e,
                                    .entries = 2 };
    T_EQ(message_read(bytes, message_write(&m, bytes, sizeof bytes), &back, &room), FIRN_EFORMAT,
         "terms go back");
    m.entries = 1;
    T_EQ(message_read(bytes, message_write(&m, bytes, sizeof bytes), &back, &room), 0);
    e[0].type = ENTRY_CONFIG;
    T_EQ(message_read(bytes, message_write(&m, bytes, sizeof bytes), &back, &room), FIRN_EFORMAT,
         "no configuration");
    m.entries = 0;
    m.from = 0;
    T_EQ(message_read(bytes, message_write(&m, bytes, sizeof bytes), &back, &room), FIRN_EFORMAT);
}
