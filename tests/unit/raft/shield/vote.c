/* Term and vote, kept twice. */
#include "t.h"

#include "raft/shield/vote.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

T_TEST(comes_back_or_is_refused)
{
    char path[] = "/tmp/firn-vote-XXXXXX";
    int fd = mkstemp(path);
    struct vote v = { 0, 0 };
    T_OK(fd >= 0);
    T_EQ(vote_read(path, &v), FIRN_ENOENT); /* empty */
    T_EQ(vote_write(path, &(struct vote){ 5, 77 }), 0);
    T_EQ(vote_write(path, &(struct vote){ 6, 0 }), 0);
    T_EQ(vote_read(path, &v), 0);
    T_EQ(v.term, 6);
    T_EQ(v.candidate, 0);
    for (off_t i = 0; i < 32; i++) {
        char c;
        T_EQ(pread(fd, &c, 1, i), 1);
        c ^= 1;
        T_EQ(pwrite(fd, &c, 1, i), 1);
        T_EQ(vote_read(path, &v), FIRN_EFORMAT, "byte %d", (int)i);
        c ^= 1;
        T_EQ(pwrite(fd, &c, 1, i), 1);
    }
    T_EQ(vote_read(path, &v), 0);
    close(fd);
    unlink(path);
    T_EQ(vote_read(path, &v), FIRN_ENOENT);
}

T_TEST(what_may_follow)
{
    static const struct {
        struct vote ours, rafts;
        bool may;
    } rows[] = {
        { { 5, 1 }, { 5, 1 }, true },  { { 5, 0 }, { 5, 0 }, true },  { { 5, 0 }, { 5, 1 }, true },
        { { 5, 1 }, { 6, 0 }, true },  { { 5, 1 }, { 6, 2 }, true },  { { 5, 1 }, { 5, 2 }, false },
        { { 5, 1 }, { 5, 0 }, false }, { { 5, 1 }, { 4, 1 }, false },
    };
    for (size_t i = 0; i < T_LEN(rows); i++)
        T_EQ(vote_follows(&rows[i].ours, &rows[i].rafts), rows[i].may, "row %zu", i);
}
