/* The replicated state machine: entries, snapshots, and what of both is refused. */
#include "t.h"

#include "raft/fsm.h"

#include <stdio.h>
#include <stdlib.h>

static struct firn_slice text(const char *s)
{
    return s ? firn_slice(s, strlen(s)) : firn_slice(NULL, 0);
}

/* The body of a CAS behind `seen`: incarnation and one write. */
static uint64_t nonce, since; /* of the next request */
static bool again;

static size_t request(char *to, size_t cap, uint64_t incarnation, const char *key, const char *old,
                      const char *value)
{
    struct frame_out o = { .p = to, .cap = cap };
    struct firn_cas want = { text(key), text(old), text(value) };
    frame_u64(&o, incarnation);
    frame_u64(&o, 1);
    frame_u64(&o, ++nonce);
    frame_u64(&o, since);
    frame_u8(&o, again);
    frame_cas(&o, &want, 1);
    T_OK(!o.full);
    return o.len;
}

static void name(struct fsm *f, uint64_t old, uint64_t new)
{
    char room[64];
    size_t n = fsm_entry_incarnation(room, sizeof room, old, new);
    T_EQ(n, FSM_NAME_BYTES);
    T_EQ(fsm_apply(f, room, n), 0);
}

static void write_one(struct fsm *f, const char *key, const char *old, const char *value)
{
    char room[4096], body[2048];
    struct fsm_entry e;
    fsm_entry_begin(&e, room, sizeof room);
    T_OK(fsm_entry_add(&e, body, request(body, sizeof body, 7, key, old, value)));
    T_EQ(fsm_apply(f, room, fsm_entry_end(&e)), 0);
}

static const char *value(const struct fsm *f, const char *key, char out[STORE_VALUE_MAX + 1])
{
    struct firn_record r;
    if (map_read(&f->map, text(key), &r) != 0)
        return "(absent)";
    memcpy(out, r.value, r.len);
    out[r.len] = '\0';
    return out;
}

T_TEST(requests_of_an_entry_are_judged_one_by_one)
{
    struct fsm f = { 0 };
    struct fsm_entry e;
    char room[4096], body[2048], v[STORE_VALUE_MAX + 1];
    name(&f, 0, 7);
    name(&f, 0, 9); /* only the first one counts */
    T_EQ(f.incarnation, 7);
    fsm_entry_begin(&e, room, sizeof room);
    T_OK(fsm_entry_add(&e, body, request(body, sizeof body, 7, "a", NULL, "1")));
    T_OK(fsm_entry_add(&e, body, request(body, sizeof body, 7, "a", NULL, "2")));
    T_OK(fsm_entry_add(&e, body, request(body, sizeof body, 8, "b", NULL, "3")));
    T_OK(fsm_entry_add(&e, body, request(body, sizeof body, 7, "a", "1", "4")));
    size_t len = fsm_entry_end(&e);
    T_EQ(len % 8, 0);
    T_EQ(fsm_apply(&f, room, len), 0);
    static const uint8_t should[] = { 0, 0, 0, 1, 1, 1, 0, 0 };
    T_EQ(f.result_len, sizeof should);
    T_EQ(memcmp(f.result, should, sizeof should), 0);
    T_STR(value(&f, "a", v), "4");
    T_STR(value(&f, "b", v), "(absent)");
    fsm_done(&f);
}

T_TEST(an_entry_takes_what_fits)
{
    struct fsm f = { 0 };
    struct fsm_entry e;
    char body[2048], *room = malloc(FSM_ENTRY_MAX);
    size_t n = request(body, sizeof body, 7, "key", NULL, "value"), added = 0;
    fsm_entry_begin(&e, room, 200);
    while (fsm_entry_add(&e, body, n))
        added++;
    T_OK(added > 2 && added < 10);
    T_OK(fsm_entry_end(&e) <= 200);
    fsm_entry_begin(&e, room, FSM_ENTRY_MAX);
    for (added = 0; fsm_entry_add(&e, body, n);)
        added++;
    T_EQ(added, FSM_REQUESTS_MAX);
    name(&f, 0, 7);
    T_EQ(fsm_apply(&f, room, fsm_entry_end(&e)), 0);
    T_EQ(f.map.count, 1);
    free(room);
    fsm_done(&f);
}

T_TEST(a_broken_entry_changes_nothing)
{
    struct fsm f = { 0 };
    struct fsm_entry e;
    char room[4096], body[2048];
    name(&f, 0, 7);
    fsm_entry_begin(&e, room, sizeof room);
    T_OK(fsm_entry_add(&e, body, request(body, sizeof body, 7, "a", NULL, "1")));
    T_OK(fsm_entry_add(&e, body, request(body, sizeof body, 7, "b", NULL, "2")));
    size_t len = fsm_entry_end(&e);
    for (size_t cut = 0; cut + 8 < len; cut++) { /* the last eight may be the filling */
        T_OK(fsm_apply(&f, room, cut) != 0, "cut at %zu", cut);
        T_EQ(f.map.count, 0);
    }
    room[0] ^= 1;
    T_EQ(fsm_apply(&f, room, len), FIRN_EFORMAT);
    T_EQ(f.map.count, 0);
    fsm_done(&f);
}

T_TEST(snapshots_come_back_whole_or_not_at_all)
{
    struct fsm f = { 0 }, g = { 0 };
    char v[STORE_VALUE_MAX + 1];
    name(&f, 0, 7);
    write_one(&f, "a", NULL, "1");
    write_one(&f, "bb", NULL, "");
    write_one(&f, "c", NULL, "3");
    write_one(&f, "a", "1", NULL);
    size_t size = fsm_snapshot_size(&f);
    char *p = malloc(size);
    T_EQ(fsm_snapshot(&f, p, size), 0);
    T_EQ(fsm_snapshot(&f, p, size - 1), FIRN_ENOSPC);
    T_EQ(fsm_snapshot(&f, p, size), 0);
    T_EQ(fsm_restore(&g, p, size), 0);
    T_EQ(g.incarnation, 7);
    T_EQ(g.map.count, 2);
    T_STR(value(&g, "bb", v), "");
    T_STR(value(&g, "c", v), "3");
    for (size_t i = 0; i < size; i++) {
        p[i] ^= 0x20;
        T_EQ(fsm_restore(&g, p, size), FIRN_EFORMAT, "byte %zu", i);
        p[i] ^= 0x20;
        T_EQ(fsm_restore(&g, p, i), FIRN_EFORMAT, "cut at %zu", i);
        T_EQ(g.map.count, 2);
    }
    free(p);
    fsm_done(&f);
    fsm_done(&g);
}

T_TEST(what_was_done_is_answered_again)
{
    struct fsm f = { 0 }, g = { 0 };
    char v[STORE_VALUE_MAX + 1], text_[24];
    name(&f, 0, 7);
    nonce = 0;
    since = 0;
    write_one(&f, "a", NULL, "1"); /* nonce 1, done */
    write_one(&f, "a", NULL, "2"); /* nonce 2, a conflict */
    write_one(&f, "a", "1", "3");
    again = true;
    nonce = 0;
    write_one(&f, "a", NULL, "1");
    T_EQ(f.result[0], FSM_DONE);
    T_EQ(f.result[1], 0);
    write_one(&f, "a", NULL, "2");
    T_EQ(f.result[1], 1);
    T_STR(value(&f, "a", v), "3");
    nonce = 10; /* was never there: now it is */
    write_one(&f, "b", NULL, "1");
    T_EQ(f.result[1], 0);
    nonce = 10;
    write_one(&f, "b", NULL, "1");
    T_EQ(f.result[1], 0);
    size_t size = fsm_snapshot_size(&f); /* and the memory goes with the snapshot */
    char *p = malloc(size);
    T_EQ(fsm_snapshot(&f, p, size), 0);
    T_EQ(fsm_restore(&g, p, size), 0);
    nonce = 10;
    write_one(&g, "b", NULL, "1");
    T_EQ(g.result[1], 0);
    again = false;
    for (int i = 0; i < DEDUP_MAX; i++) {
        snprintf(text_, sizeof text_, "k%d", i);
        nonce = 1000 + (uint64_t)i;
        write_one(&g, text_, NULL, "x");
    }
    again = true;
    nonce = 10; /* forgotten: it may have been done */
    write_one(&g, "b", NULL, "1");
    T_EQ(g.result[0], FSM_UNKNOWN);
    again = false;
    free(p);
    fsm_done(&f);
    fsm_done(&g);
}

/* Over two connections the one that asks again may come first. */
T_TEST(whichever_comes_first_is_done_and_the_other_is_not)
{
    struct fsm f = { 0 };
    char v[STORE_VALUE_MAX + 1];
    name(&f, 0, 7);
    nonce = 0, since = 0;
    again = true;
    write_one(&f, "a", NULL, "1"); /* nonce 1 */
    T_EQ(f.result[1], 0);
    again = false;
    write_one(&f, "a", "1", NULL); /* nonce 2: removed, so that the next one would fit again */
    T_EQ(f.result[1], 0);
    nonce = 0;
    write_one(&f, "a", NULL, "1");
    T_EQ(f.result[0], FSM_DONE);
    T_EQ(f.result[1], 0, "as it was answered before");
    T_STR(value(&f, "a", v), "(absent)", "and not done again");
    T_EQ(f.requests, 2);
    fsm_done(&f);
}

T_TEST(the_sum_tells_states_apart)
{
    struct fsm f = { 0 }, g = { 0 };
    name(&f, 0, 7);
    name(&g, 0, 7);
    again = false;
    nonce = 0;
    write_one(&f, "a", NULL, "1");
    T_OK(fsm_sum(&f) != fsm_sum(&g));
    nonce = 0;
    write_one(&g, "a", NULL, "1");
    T_EQ(fsm_sum(&f), fsm_sum(&g));
    write_one(&f, "a", "1", "2"); /* one has it, the other one refuses it */
    nonce = 1;
    write_one(&g, "a", "0", "2");
    T_OK(fsm_sum(&f) != fsm_sum(&g));
    size_t size = fsm_snapshot_size(&f);
    char *p = malloc(size);
    T_EQ(fsm_snapshot(&f, p, size), 0);
    T_EQ(fsm_restore(&g, p, size), 0);
    T_EQ(fsm_sum(&f), fsm_sum(&g));
    free(p);
    fsm_done(&f);
    fsm_done(&g);
}

T_TEST(an_entry_knows_its_place)
{
    char room[FSM_NAME_BYTES];
    struct fsm f = { 0 };
    T_EQ(fsm_entry_incarnation(room, sizeof room, 0, 7), sizeof room);
    fsm_entry_place(room, 42);
    T_OK(fsm_entry_at(room, sizeof room, 42));
    T_OK(!fsm_entry_at(room, sizeof room, 43) && !fsm_entry_at(room, 15, 42));
    T_EQ(fsm_apply(&f, room, sizeof room), 0);
    T_EQ(f.incarnation, 7);
    fsm_done(&f);
}
