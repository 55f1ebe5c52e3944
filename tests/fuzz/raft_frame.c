/* Frames of a cluster from anybody, entries and snapshots from a disk: taken whole or refused. */
#include "store/raft_frame.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct firn_cas want[FRAME_WRITES_MAX];
    struct frame f;
    struct frame_greeting g;
    struct frame_answer a;
    size_t n = 0;
    ssize_t used = frame_parse((const char *)data, size, &f);
    if (used > (ssize_t)size)
        abort();
    if (used <= 0)
        return 0;
    (void)!frame_get_hello(&f, &g);
    struct frame_in in = { f.body, f.len, false };
    if (frame_get_reply(&in, &a) == 0)
        (void)frame_get_text(&in, STORE_VALUE_MAX);
    in = (struct frame_in){ f.body, f.len, false };
    if (frame_get_cas(&in, want, &n) == 0) { /* then it is exactly what would be written */
        char *room = malloc(FRAME_MAX);
        struct frame_out o = { .p = room, .cap = FRAME_MAX };
        frame_cas(&o, want, n);
        if (!room || o.full || o.len != f.len - in.len || memcmp(room, f.body, o.len) != 0)
            abort();
        free(room);
    }
    return 0;
}
