/* Files that grow, are truncated and replaced; and the set of IDs seen. */
#include "cli/verify/follow.c"
#include "cli/verify/seen.c"
#include "t.h"

static char path[] = "/tmp/firn-follow-XXXXXX";

static void put(const char *text, const char *mode)
{
    FILE *f = fopen(path, mode);
    T_OK(f && fputs(text, f) >= 0);
    fclose(f);
}

static void expect_line(struct follow *f, const char *text, uint64_t number)
{
    const char *p;
    size_t len;
    T_EQ(follow_next(f, &p, &len), FOLLOW_LINE, "for '%s'", text);
    T_OK(len == strlen(text) && memcmp(p, text, len) == 0, "'%.*s', not '%s'", (int)len, p, text);
    T_EQ(f->line, number);
}

static int expect(struct follow *f)
{
    const char *p;
    size_t len;
    return follow_next(f, &p, &len);
}

T_TEST(a_file_that_grows)
{
    struct follow f;
    int fd = mkstemp(path);
    T_OK(fd >= 0);
    close(fd);
    put("1\n2\r\n3", "w");
    T_EQ(follow_open(&f, path, true), 0);
    expect_line(&f, "1", 1);
    expect_line(&f, "2", 2);
    T_EQ(expect(&f), FOLLOW_NOTHING); /* the third has no end yet */
    T_EQ(f.offset, 5);
    T_EQ(follow_lag(&f), 1);
    put("4\n\n", "a");
    expect_line(&f, "34", 3);
    expect_line(&f, "", 4);
    T_EQ(expect(&f), FOLLOW_NOTHING);
    uint64_t identity = follow_identity(&f), offset = f.offset;
    T_OK(identity != 0 && identity <= INT64_MAX);
    follow_close(&f);

    put("5\n", "a"); /* behind what was read before */
    T_EQ(follow_open(&f, path, true), 0);
    T_EQ(follow_identity(&f), identity);
    follow_resume(&f, identity, offset, 4);
    expect_line(&f, "5", 5);
    put("6\n", "w"); /* cut; the inode stays, the first line differs */
    T_EQ(expect(&f), FOLLOW_AGAIN);
    T_OK(follow_identity(&f) != identity);
    expect_line(&f, "6", 1);
    T_EQ(expect(&f), FOLLOW_NOTHING);

    char old[sizeof path + 4];
    snprintf(old, sizeof old, "%s.1", path);
    put("7\n", "a"); /* rotated: the old one is read to its end */
    T_EQ(rename(path, old), 0);
    expect_line(&f, "7", 2);
    T_EQ(expect(&f), FOLLOW_NOTHING);
    put("8\n", "w");
    T_EQ(expect(&f), FOLLOW_AGAIN);
    expect_line(&f, "8", 1);
    T_OK(follow_identity(&f) != identity);
    follow_resume(&f, identity, 0, 0); /* another file: it stays where it is */
    T_EQ(f.offset, 2);
    follow_close(&f);
    unlink(path);
    unlink(old);
    T_EQ(follow_open(&f, path, true), FIRN_EIO);
    T_OK(f.why[0]);
    follow_close(&f);
    T_EQ(follow_open(&f, "/", false), FIRN_EIO);
    follow_close(&f);
}

/* Files made one after another have inodes that differ by little, and so do their first lines. */
T_TEST(neighbours_have_identities_of_their_own)
{
    struct follow f;
    put("1\n", "w");
    T_EQ(follow_open(&f, path, true), 0);
    uint64_t inode = f.inode, identity = follow_identity(&f);
    put("8\n", "w");
    for (uint64_t near = 0; near < 64; near++) {
        f.inode = inode ^ near;
        f.identity_ = 0;
        T_OK(follow_identity(&f) != identity, "%" PRIu64, near);
    }
    follow_close(&f);
    unlink(path);
}

T_TEST(a_file_that_does_not)
{
    struct follow f;
    char *text = malloc(3 * BUF_BYTES);
    memset(text, 'x', 3 * BUF_BYTES);
    memcpy(text, "a\n", 2);
    snprintf(text + 2 * BUF_BYTES, BUF_BYTES, "\n%0200d\nlast", 0);
    put(text, "w");
    T_EQ(follow_open(&f, path, false), 0);
    expect_line(&f, "a", 1);
    T_EQ(expect(&f), FOLLOW_LONG);
    T_EQ(expect(&f), FOLLOW_LONG);
    T_EQ(f.line, 3);
    expect_line(&f, "last", 4);
    T_EQ(f.offset, strlen(text));
    T_EQ(expect(&f), FOLLOW_END);
    T_EQ(expect(&f), FOLLOW_END);
    follow_close(&f);
    unlink(path);
    free(text);
}

T_TEST(seen_is_exact_within_its_memory)
{
    struct seen s;
    char id[32];
    uint64_t where = 0;
    T_EQ(seen_init(&s, 64 << 20), 0);
    for (uint64_t i = 0; i < t_scale(200000); i++) {
        size_t len = (size_t)snprintf(id, sizeof id, "%" PRIx64, i * 7);
        T_EQ(seen_add(&s, id, len, i, &where), 1);
    }
    T_EQ(s.forgotten, 0);
    for (uint64_t i = 0; i < t_scale(200000); i += 3) {
        size_t len = (size_t)snprintf(id, sizeof id, "%" PRIx64, i * 7);
        T_EQ(seen_add(&s, id, len, 0, &where), 0);
        T_EQ(where, i);
    }
    T_EQ(seen_add(&s, "", 0, 77, &where), 1);
    T_EQ(seen_add(&s, "", 0, 78, &where), 0);
    T_EQ(where, 77);
    seen_done(&s);
}

T_TEST(seen_forgets_the_oldest)
{
    struct seen s;
    char id[32];
    uint64_t where = 0, n = 100000;
    T_EQ(seen_init(&s, 1 << 20), 0);
    for (uint64_t i = 0; i < n; i++) {
        size_t len = (size_t)snprintf(id, sizeof id, "%" PRIu64, i);
        T_EQ(seen_add(&s, id, len, i, &where), 1);
        T_EQ(seen_add(&s, id, len, i, &where), 0); /* the newest is always known */
        T_OK(part_bytes(s.now.slots, s.now.texts_room) <= s.bytes_max);
    }
    T_OK(s.forgotten > 0 && s.forgotten < n);
    for (uint64_t i = n - 6000; i < n; i++) { /* and so is half of what fits */
        size_t len = (size_t)snprintf(id, sizeof id, "%" PRIu64, i);
        T_EQ(seen_add(&s, id, len, i, &where), 0, "%" PRIu64, i);
    }
    seen_done(&s);
}
