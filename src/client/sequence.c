/*
 * A number of a gapless sequence that was taken and never arrived is a hole. So before the first ticket the
 * client asks what the sequence is like; a mode never changes.
 */
#include "client/parts.h"

#include <stdio.h>
#include <string.h>

void sequence_question(const struct core *c, struct question *out)
{
    *out = (struct question){ .what = ASK_GET };
    snprintf(out->path, sizeof out->path, "/v1/sequences/%.64s", c->opts->seq);
}

enum sequence sequence_read(const char *body, size_t len)
{
    size_t n;
    const char *mode = json_pick(body, len, "mode", &n);
    return mode && n == 5 && memcmp(mode, "range", 5) == 0 ? SEQUENCE_RANGE : SEQUENCE_GAPLESS;
}

int sequence_learn(struct core *c)
{
    struct question q;
    struct trip t;
    if (c->opts->seq[0] == '\0' || atomic_load(&c->sequence) != SEQUENCE_UNKNOWN)
        return 0;
    sequence_question(c, &q);
    trip_start(&t, c, &q);
    int r = trip_run(&t);
    if (r == 0)
        atomic_store(&c->sequence, sequence_read(t.body, t.body_len));
    else
        trouble(r, t.trouble);
    trip_done(&t);
    return r;
}
