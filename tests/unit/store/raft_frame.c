/* The frames of a cluster: what is written is read, and nothing else is. */
#include "t.h"

#include "store/raft_frame.h"

#include <stdlib.h>

T_TEST(a_frame_in_pieces)
{
    char room[512];
    struct frame_out o = { .p = room, .cap = sizeof room };
    struct frame f;
    frame_hello(&o, FRAME_MEMBER, 0x1122334455667788, "10.0.0.1:9003");
    for (size_t n = 0; n < o.len; n++)
        T_EQ(frame_parse(room, n, &f), 0, "%zu bytes", n);
    T_EQ(frame_parse(room, o.len, &f), (ssize_t)o.len);
    T_EQ(f.type, FRAME_HELLO);
    struct frame_greeting g;
    T_EQ(frame_get_hello(&f, &g), 0);
    T_EQ(g.kind, FRAME_MEMBER);
    T_EQ(g.member, 0x1122334455667788);
    T_STR(g.address, "10.0.0.1:9003");
    room[FRAME_HEAD + 4]++; /* the version */
    T_EQ(frame_get_hello(&f, &g), FIRN_ENOTSUP);
    room[FRAME_HEAD]++;
    T_EQ(frame_get_hello(&f, &g), FIRN_EFORMAT);
}

T_TEST(no_frames)
{
    struct frame f;
    char p[FRAME_HEAD] = { 0, 0, 0, 16, FRAME_READ };
    T_EQ(frame_parse(p, sizeof p, &f), FRAME_HEAD);
    p[4] = 0;
    T_EQ(frame_parse(p, sizeof p, &f), FIRN_EFORMAT);
    p[4] = FRAME_RAFT + 1;
    T_EQ(frame_parse(p, sizeof p, &f), FIRN_EFORMAT);
    p[4] = FRAME_READ;
    p[7] = 1;
    T_EQ(frame_parse(p, sizeof p, &f), FIRN_EFORMAT);
    T_EQ(frame_parse("\0\0\0\x0f", 4, &f), FIRN_EFORMAT); /* shorter than a head */
    T_EQ(frame_parse("\0\x20\0\0", 4, &f), FIRN_EFORMAT); /* longer than FRAME_RAFT_MAX */
    char head[FRAME_HEAD] = "\0\x10\0";                   /* longer than FRAME_MAX */
    head[4] = FRAME_REPLY;
    T_EQ(frame_parse(head, sizeof head, &f), FIRN_EFORMAT);
    head[4] = FRAME_RAFT;
    T_EQ(frame_parse(head, sizeof head, &f), 0, "members may send it");
    T_EQ(frame_parse("GET / HTTP/1.1\r\n\r\n", 18, &f), FIRN_EFORMAT);
}

T_TEST(writes_come_back)
{
    char room[8192];
    struct frame_out o = { .p = room, .cap = sizeof room };
    struct firn_cas want[3] = { { { "a", 1 }, { NULL, 0 }, { "1", 1 } },
                                { { "", 0 }, { "", 0 }, { NULL, 0 } },
                                { { "c", 1 }, { "2", 1 }, { "", 0 } } },
                    got[FRAME_WRITES_MAX];
    size_t n = 0;
    frame_cas(&o, want, 3);
    struct frame_in in = { room, o.len, false };
    T_EQ(frame_get_cas(&in, got, &n), 0);
    T_EQ(n, 3);
    T_EQ(in.len, 0);
    for (size_t i = 0; i < 3; i++) {
        T_EQ(got[i].key.len, want[i].key.len);
        T_EQ(!got[i].old.p, !want[i].old.p);
        T_EQ(!got[i].value.p, !want[i].value.p);
    }
    for (size_t cut = 0; cut < o.len; cut++) {
        in = (struct frame_in){ room, cut, false };
        T_EQ(frame_get_cas(&in, got, &n), FIRN_EFORMAT, "cut at %zu", cut);
    }
    want[0].value.p = NULL; /* neither old nor new: nothing to write */
    o.len = 0;
    frame_cas(&o, want, 1);
    in = (struct frame_in){ room, o.len, false };
    T_EQ(frame_get_cas(&in, got, &n), FIRN_EFORMAT);
}

T_TEST(what_does_not_fit_is_noticed)
{
    char room[64];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_refuse(&o, 1, FIRN_EIO, 2, "too long for sixty-four bytes, as every reader can count");
    T_OK(o.full);
    T_OK(o.len <= sizeof room);
    frame_refuse(&o, 1, FIRN_EIO, 2, "short");
    T_OK(!o.full);
}
