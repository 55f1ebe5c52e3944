/* Without memory: an input is refused or dropped as a whole, or its first entries are taken; when
 * it comes again, all is as if there had been memory. The N-th allocation fails, for every N. */
#include "raft/core/core.h"
#include "t.h"

#include <stdlib.h>

static unsigned countdown; /* 0: none fails */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static bool fails(void)
{
    return countdown > 0 && --countdown == 0;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return fails() ? NULL : __real_reallocarray(p, n, size);
}

static const struct core_config one = { 1, { { 1, CORE_VOTER, "a" } } };

/* Takes and reports every save. */
static void settle(struct core *c, uint64_t now)
{
    struct core_save s;
    struct core_message m;
    struct core_applying a;
    while (core_save(c, &s))
        core_saved(c, s.number, now);
    while (core_send(c, &m)) {
    }
    while (core_apply(c, &a) != APPLY_NONE) {
    }
}

static int open_with(unsigned failing, struct core **out)
{
    static const struct core_entry e[2] = { { 6, 2, ENTRY_DATA, "abc", 3 },
                                            { 7, 2, ENTRY_DATA, "def", 3 } };
    struct core_snapshot snapshot = { 5, 1, one, "state", 5 };
    struct core_opts o = { .id = 1, .election_ms = 100 };
    struct core_saved_state s = {
        .term = 2, .snapshot = &snapshot, .first = 6, .entry = e, .entries = 2
    };
    countdown = failing;
    int r = core_new(&o, &s, 0, out);
    countdown = 0;
    T_OK(r == 0 || r == FIRN_ENOMEM);
    return r;
}

T_TEST(opening_without_memory)
{
    struct core *c;
    unsigned n = 1;
    while (open_with(n, &c) != 0)
        n++;
    T_OK(n > 4, "%u", n);
    T_EQ(core_last(c), 7);
    core_free(c);
}

T_TEST(an_append_without_memory)
{
    struct core_entry e[3] = { { 8, 3, ENTRY_DATA, "x", 1 },
                               { 9, 3, ENTRY_DATA, "y", 1 },
                               { 10, 3, ENTRY_DATA, "z", 1 } };
    struct core_message m = { .type = MESSAGE_APPEND,
                              .from = 2,
                              .to = 1,
                              .term = 3,
                              .index = 7,
                              .index_term = 2,
                              .commit = 10,
                              .entry = e,
                              .entries = 3 };
    for (unsigned n = 1; n <= 4; n++) {
        struct core *c;
        T_EQ(open_with(0, &c), 0);
        countdown = n;
        core_receive(c, &m, 1);
        countdown = 0;
        T_EQ(core_last(c), n <= 3 ? 6 + n : 10);
        T_EQ(core_committed(c), core_last(c));
        settle(c, 1);
        core_receive(c, &m, 2);
        settle(c, 2);
        T_EQ(core_applied(c), 10);
        core_free(c);
    }
}

T_TEST(a_leader_without_memory)
{
    struct core *c;
    uint64_t index;
    T_EQ(open_with(0, &c), 0);
    core_tick(c, 1); /* the only voter */
    settle(c, 1);
    T_EQ(core_state(c), CORE_LEADER);
    T_EQ(core_last(c), 8);
    countdown = 1;
    T_EQ(core_propose(c, "a", 1, &index), FIRN_ENOMEM);
    T_EQ(core_last(c), 8);
    countdown = 1;
    T_EQ(core_snapshot(c, "a", 1, 0), FIRN_ENOMEM);
    T_EQ(core_snapshot(c, "a", 1, 0), 0);
    T_EQ(core_snapshot(c, "a", 1, 0), FIRN_EAGAIN);
    settle(c, 2);
    T_EQ(core_snapshot_index(c), 8);
    T_EQ(core_propose(c, "a", 1, &index), 0);
    settle(c, 3);
    T_EQ(core_applied(c), 9);
    core_free(c);
}

T_TEST(a_snapshot_chunk_without_memory)
{
    struct core_message m = { .type = MESSAGE_SNAPSHOT,
                              .from = 2,
                              .to = 1,
                              .term = 3,
                              .index = 20,
                              .index_term = 3,
                              .total = 2,
                              .bytes = "ab",
                              .len = 2,
                              .config = &one };
    struct core *c;
    T_EQ(open_with(0, &c), 0);
    countdown = 1;
    core_receive(c, &m, 1);
    settle(c, 1);
    T_EQ(core_last(c), 7);
    core_receive(c, &m, 2);
    settle(c, 2);
    T_EQ(core_applied(c), 20);
    core_free(c);
}
