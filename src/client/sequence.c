/*
 * Learns whether a sequence is gapless.
 * A number of a gapless sequence that was taken and never arrived is a hole. So before the first
 * ticket the client asks for the sequence's mode, which never changes.
 */
#include "client/internal.h"
#include "id/diag.h"
#include "wire/json_read.h"

#include <stdio.h>
#include <string.h>

void sequence_request(const struct core *c, struct request *out)
{
    *out = (struct request){ .kind = REQUEST_GET };
    snprintf(out->path, sizeof out->path, "/v1/sequences/%.64s", c->opts->seq);
}

enum sequence sequence_read(const char *body, size_t len)
{
    struct json_reader j;
    struct slice mode = { NULL, 0 };
    json_start(&j, body, len, NULL);
    if (json_object(&j) != 0 || json_find(&j, "mode") != 1 || json_slice(&j, &mode) != 0)
        return SEQUENCE_GAPLESS; /* the careful assumption */
    return slice_is(mode, "range") ? SEQUENCE_RANGE : SEQUENCE_GAPLESS;
}

int sequence_learn(struct core *c, struct firn_diag *d)
{
    struct request q;
    struct trip t;
    if (c->opts->seq[0] == '\0' || atomic_load(&c->sequence) != SEQUENCE_UNKNOWN)
        return 0;
    sequence_request(c, &q);
    trip_start(&t, c, &q);
    int r = trip_run(&t);
    if (r == 0)
        atomic_store(&c->sequence, sequence_read(t.body, t.body_len));
    else
        firn__diag(d, r, 0, "%s", t.why);
    trip_done(&t);
    return r;
}
