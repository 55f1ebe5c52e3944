/* Log and snapshot files as bytes: round trips, and a torn end told from damage, at every byte. */
#include "t.h"

#include "raft/log_format.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 16 * 1024, MAX = 8 << 20 };

static char text[4096]; /* bytes of entries, none of them 0 */

struct log { /* a file as a disk would have it, and where its last batch begins and ends */
    struct log_file f;
    char *p;
    size_t len, last, end;
    struct buf b;
};

static void put(struct log *l)
{
    uint64_t at;
    T_EQ(log_batch_end(&l->f, &l->b, &at), 0);
    T_OK(at % LOG_SECTOR == 0 && l->b.len % LOG_SECTOR == 0 && at + l->b.len == l->f.end);
    T_OK(l->f.end + LOG_SECTOR <= l->len, "the test's file is too small");
    memcpy(l->p + at, l->b.p, l->b.len);
    l->last = (size_t)at;
    l->end = (size_t)l->f.end;
    log_batch_begin(&l->b);
}

static void begin(struct log *l, size_t len)
{
    *l = (struct log){ .p = calloc(1, len), .len = len };
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(1 + i % 250);
    buf_init(&l->b, MAX);
    log_begin(&l->f, &l->b, 7, 0x1234567890abcdef);
    log_add_term(&l->b, 3, 11);
    log_add_snapshot(&l->b, &(struct log_snapshot){ 0 }, 1);
    log_add_ready(&l->b);
    put(l);
}

static void entry(struct log *l, uint64_t index, uint64_t term, size_t len)
{
    log_add_entry(&l->b, &(struct core_entry){ index, term, ENTRY_DATA, text, len });
}

static void done(struct log *l)
{
    free(l->p);
    buf_done(&l->b);
}

/* 'w': whole, 't': torn, 'd': damaged; *entries: how many were read. */
static char look(const char *p, size_t len, size_t *entries)
{
    struct log_content c;
    struct firn_diag d;
    int r = log_read(p, len, &c, &d);
    T_OK(r == 0 || r == FIRN_EFORMAT, "r=%d", r);
    *entries = r == 0 ? c.entries : 0;
    bool torn = r == 0 && c.torn;
    if (r == 0)
        log_content_done(&c);
    return r != 0 ? 'd' : torn ? 't' : 'w';
}

T_TEST(round_trip)
{
    struct log l;
    struct log_content c;
    begin(&l, ROOM);
    entry(&l, 1, 2, 10);
    entry(&l, 2, 3, 0);
    put(&l);
    log_add_term(&l.b, 5, 0);
    log_add_term(&l.b, 5, 12);
    log_add_entry(&l.b, &(struct core_entry){ 3, 5, ENTRY_CONFIG, text, 3000 });
    put(&l);
    T_EQ(log_read(l.p, l.len, &c, NULL), 0);
    T_OK(c.number == 7 && c.term == 5 && c.vote == 12 && c.first == 1 && c.entries == 3 && !c.torn);
    T_OK(c.snapshot.number == 0 && c.at.end == l.end && c.at.batches == 3);
    for (size_t i = 0; i < 3; i++) {
        T_OK(c.entry[i].index == i + 1 && memcmp(c.entry[i].bytes, text, c.entry[i].len) == 0);
        T_EQ(c.entry[i].type, i == 2 ? ENTRY_CONFIG : ENTRY_DATA);
    }
    T_OK(c.entry[0].len == 10 && c.entry[1].len == 0 && c.entry[2].len == 3000);
    T_OK(c.entry[0].term == 2 && c.entry[1].term == 3 && c.entry[2].term == 5);
    struct core_saved_state s;
    log_state(&c, NULL, &s);
    T_OK(s.term == 5 && s.vote == 12 && s.first == 1 && s.entries == 3 && s.entry == c.entry);
    log_content_done(&c);
    done(&l);
}

T_TEST(truncation_and_snapshots)
{
    struct log l;
    struct log_content c;
    begin(&l, 2 * ROOM);
    for (uint64_t i = 1; i <= 10; i++)
        entry(&l, i, 2, 8);
    log_add_truncate(&l.b, 8); /* 8, 9, 10 go */
    entry(&l, 8, 3, 9);
    put(&l);
    T_EQ(log_read(l.p, l.len, &c, NULL), 0);
    T_OK(c.entries == 8 && c.entry[7].term == 3 && c.entry[7].len == 9 && c.entry[6].term == 2);
    log_content_done(&c);

    log_add_snapshot(&l.b, &(struct log_snapshot){ 9, 6, 2, 100, 1 }, 5); /* 5 and 6 are kept */
    put(&l);
    T_EQ(log_read(l.p, l.len, &c, NULL), 0);
    T_OK(c.first == 5 && c.entries == 4 && c.entry[0].index == 5 && c.snapshot.number == 9);
    log_content_done(&c);

    log_add_term(&l.b, 7, 0); /* another one's snapshot: nothing of the log stays */
    log_add_snapshot(&l.b, &(struct log_snapshot){ 10, 50, 7, 100, 1 }, 51);
    put(&l);
    T_EQ(log_read(l.p, l.len, &c, NULL), 0);
    T_OK(c.first == 51 && c.entries == 0 && c.snapshot.index == 50);
    log_content_done(&c);

    entry(&l, 51, 7, 8);
    entry(&l, 52, 7, 8);
    put(&l);
    log_add_snapshot(&l.b, &(struct log_snapshot){ 11, 60, 7, 100, 1 }, 40);
    log_add_truncate(&l.b, 30); /* all of it; what follows the snapshot is next */
    entry(&l, 61, 7, 8);
    put(&l);
    T_EQ(log_read(l.p, l.len, &c, NULL), 0);
    T_OK(c.first == 61 && c.entries == 1 && c.snapshot.index == 60);
    log_content_done(&c);
    done(&l);
}

T_TEST(holes_and_terms_that_go_back_are_refused)
{
    for (int what = 0; what < 12; what++) {
        struct log l;
        size_t n;
        begin(&l, ROOM);
        entry(&l, 1, 2, 8);
        entry(&l, 2, 3, 8);
        put(&l);
        T_EQ(look(l.p, l.len, &n), 'w');
        switch (what) {
        case 0:
            entry(&l, 4, 3, 8);
            break;
        case 1:
            entry(&l, 2, 3, 8);
            break;
        case 2:
            entry(&l, 3, 2, 8);
            break;
        case 3:
            entry(&l, 3, 4, 8);
            break; /* later than the term itself */
        case 4:
            log_add_term(&l.b, 2, 11);
            break;
        case 5:
            log_add_term(&l.b, 3, 12);
            break; /* a second vote in one term */
        case 6:
            log_add_truncate(&l.b, 4);
            break;
        case 7:
            log_add_snapshot(&l.b, &(struct log_snapshot){ 2, 9, 3, 1, 1 }, 11);
            break;
        case 8:
            log_add_snapshot(&l.b, &(struct log_snapshot){ 2, 9, 3, 1, 1 }, 2);
            break;
        case 9:
            log_add_snapshot(&l.b, &(struct log_snapshot){ 2, 2, 2, 1, 1 }, 2);
            break;
        case 10:
            log_add_snapshot(&l.b, &(struct log_snapshot){ 0, 2, 3, 1, 1 }, 2);
            break;
        case 11:
            log_add_ready(&l.b);
            break;
        }
        put(&l);
        T_EQ(look(l.p, l.len, &n), 'd', "case %d", what);
        done(&l);
    }
}

T_TEST(a_file_without_ready_is_damaged)
{
    struct log l = { .p = calloc(1, ROOM), .len = ROOM };
    size_t n;
    T_EQ(look(l.p, ROOM, &n), 'd');
    buf_init(&l.b, MAX);
    log_begin(&l.f, &l.b, 1, 5);
    put(&l);
    T_EQ(look(l.p, ROOM, &n), 'd');
    log_add_ready(&l.b);
    put(&l);
    T_EQ(look(l.p, ROOM, &n), 'w');
    done(&l);
}

/* Three batches; the second has a sector that is zeros although it was written. */
static void three(struct log *l, size_t last_len)
{
    static char some[2000];
    begin(l, ROOM);
    entry(l, 1, 3, 40);
    put(l);
    log_add_entry(&l->b, &(struct core_entry){ 2, 3, ENTRY_DATA, some, sizeof some });
    put(l);
    entry(l, 3, 3, last_len);
    put(l);
}

T_TEST(every_flipped_byte_is_damage)
{
    struct log l;
    size_t n;
    three(&l, 1500);
    T_EQ(look(l.p, l.len, &n), 'w');
    T_EQ(n, 3);
    for (size_t i = 0; i < l.end; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            l.p[i] = (char)(l.p[i] ^ 1 << bit);
            T_EQ(look(l.p, l.len, &n), 'd', "byte %zu of %zu", i, l.end);
            l.p[i] = (char)(l.p[i] ^ 1 << bit);
        }
    done(&l);
}

/* The same in a last batch that has sectors of zeros itself. */
T_TEST(every_flipped_byte_of_a_batch_of_zeros_is_damage)
{
    static char some[2000];
    struct log l;
    size_t n;
    begin(&l, ROOM);
    log_add_entry(&l.b, &(struct core_entry){ 1, 3, ENTRY_DATA, some, sizeof some });
    put(&l);
    for (size_t i = l.last; i < l.end; i++) {
        l.p[i] ^= 4;
        T_EQ(look(l.p, l.len, &n), 'd', "byte %zu of %zu", i, l.end);
        l.p[i] ^= 4;
    }
    memset(l.p + l.last, 0, LOG_SECTOR); /* the head did not reach the disk: zeros remain */
    T_EQ(look(l.p, l.len, &n), 'w');
    T_EQ(n, 0);
    done(&l);
}

T_TEST(any_lost_sectors_of_the_last_batch_are_torn)
{
    struct log l;
    size_t n;
    three(&l, 3000);
    unsigned sectors = (unsigned)((l.end - l.last) / LOG_SECTOR);
    char *q = malloc(l.len);
    T_EQ(sectors, 6);
    for (unsigned lost = 1; lost < 1u << sectors; lost++) {
        memcpy(q, l.p, l.len);
        for (unsigned i = 0; i < sectors; i++)
            if (lost >> i & 1)
                memset(q + l.last + i * LOG_SECTOR, 0, LOG_SECTOR);
        char state = look(q, l.len, &n);
        T_EQ(state, lost + 1 == 1u << sectors ? 'w' : 't', "lost %x", lost);
        T_EQ(n, 2);
    }
    free(q);
    done(&l);
}

/* A disk does not write half a sector: what ends within one is torn only if a later one is lost. */
T_TEST(every_length_of_the_last_batch)
{
    struct log l;
    size_t n;
    three(&l, 3000);
    char *q = malloc(l.len);
    for (size_t cut = l.last; cut <= l.end; cut++) {
        memcpy(q, l.p, cut);
        memset(q + cut, 0, l.len - cut);
        size_t written = cut - l.last;
        bool whole = written >= 40 + 24 + 3000; /* what follows is zeros anyway */
        bool lost = l.end - cut >= LOG_SECTOR;
        bool head = written >= 36; /* the last four bytes of it are zeros */
        char expect = whole ? 'w' : written == 0 ? 'w' : lost && head ? 't' : 'd';
        T_EQ(look(q, l.len, &n), expect, "cut %zu", cut);
        T_EQ(n, expect == 'd' ? 0 : whole ? 3 : 2);
    }
    free(q);
    done(&l);
}

T_TEST(nothing_comes_behind_a_torn_batch)
{
    struct log l;
    size_t n;
    three(&l, 3000);
    size_t hole = l.last;
    entry(&l, 4, 3, 8);
    put(&l);
    for (size_t at = hole; at < l.last; at += LOG_SECTOR) {
        char kept[LOG_SECTOR];
        memcpy(kept, l.p + at, sizeof kept);
        memset(l.p + at, 0, sizeof kept);
        T_EQ(look(l.p, l.len, &n), 'd', "hole at %zu", at);
        memcpy(l.p + at, kept, sizeof kept);
    }
    memset(l.p + hole, 0, l.last - hole); /* all of it, too */
    T_EQ(look(l.p, l.len, &n), 'd');
    done(&l);
}

T_TEST(every_truncated_file_is_damaged)
{
    struct log l;
    size_t n;
    three(&l, 3000);
    for (size_t len = 0; len < l.end + LOG_SECTOR; len++)
        T_EQ(look(l.p, len, &n), 'd', "len %zu", len);
    T_EQ(look(l.p, l.end + LOG_SECTOR, &n), 'w');
    done(&l);
}

T_TEST(stale_bytes_are_no_batch)
{
    struct log l, old;
    size_t n;
    three(&l, 300);
    begin(&old, ROOM); /* the same bytes but for the salt */
    old.f.salt = 99;
    old.f.batches = l.f.batches;
    old.f.end = l.f.end;
    log_add_entry(&old.b, &(struct core_entry){ 4, 3, ENTRY_DATA, text, 30 });
    put(&old);
    memcpy(l.p + old.last, old.p + old.last, old.end - old.last);
    T_EQ(look(l.p, l.len, &n), 'd');
    done(&l);
    done(&old);
}

T_TEST(random_bytes_end)
{
    char p[2048];
    size_t n;
    for (uint64_t i = t_scale(20000); i > 0; i--) {
        t_random_bytes(p, sizeof p);
        T_EQ(look(p, (size_t)t_random_below(sizeof p + 1), &n), 'd');
    }
}

T_TEST(room_behind_a_batch)
{
    T_EQ(log_room(0), LOG_CHUNK);
    T_EQ(log_room(LOG_CHUNK - LOG_SECTOR), LOG_CHUNK);
    T_EQ(log_room(LOG_CHUNK), 2 * LOG_CHUNK);
    T_EQ(log_room(LOG_CHUNK - LOG_SECTOR + 1), 2 * LOG_CHUNK);
}

T_TEST(snapshot_round_trip_and_every_flipped_byte)
{
    struct core_snapshot s = { .index = 77, .term = 4, .bytes = text, .len = 1000 }, back;
    struct log_snapshot named, other;
    struct buf b;
    s.config.count = 1;
    s.config.member[0] = (struct core_member){ .id = 5, .role = CORE_VOTER, .address = "a:1" };
    buf_init(&b, MAX);
    T_EQ(snapshot_head(&b, 12, &s, &named), 0);
    buf_add(&b, s.bytes, s.len);
    T_EQ(snapshot_read(b.p, b.len, &named, &back, NULL), 0);
    T_OK(back.index == 77 && back.term == 4 && back.len == 1000);
    T_OK(memcmp(back.bytes, text, 1000) == 0);
    T_OK(back.config.count == 1 && back.config.member[0].id == 5);
    T_STR(back.config.member[0].address, "a:1");
    for (size_t i = 0; i < b.len; i++) {
        b.p[i] ^= 16;
        T_EQ(snapshot_read(b.p, b.len, NULL, &back, NULL), FIRN_EFORMAT, "byte %zu", i);
        b.p[i] ^= 16;
        T_EQ(snapshot_read(b.p, i, NULL, &back, NULL), FIRN_EFORMAT, "length %zu", i);
    }
    other = named;
    other.number++;
    T_EQ(snapshot_read(b.p, b.len, &other, &back, NULL), FIRN_EFORMAT);
    other = named;
    other.crc++;
    T_EQ(snapshot_read(b.p, b.len, &other, &back, NULL), FIRN_EFORMAT);
    buf_done(&b);
}
