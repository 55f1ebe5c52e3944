/* Puts the shield around libraft: replaces functions of its I/O interface and repairs its files. */
#include "raft/node_in.h"
#include "raft/shield/closed_segment.h"
#include "raft/shield/segment.h"
#include "raft/shield/truncation.h"

#include <stdio.h>

/* libraft's own generator has no seed: members that start together would time out together again
 * and again. */
static int on_random(struct raft_io *io, int min, int max)
{
    (void)io;
    uint32_t v = 0;
    if (uv_random(NULL, NULL, &v, sizeof v, 0, NULL) != 0)
        v = (uint32_t)uv_hrtime();
    return max > min ? min + (int)(v % (uint32_t)(max - min)) : min;
}

void shield_install(struct node *n)
{
    n->io.random = on_random;
    load_watch(n);
    io_order_watch(n);
    append_failure_watch(n);
    install_snapshot_watch(n);
    append_result_watch(n);
}

int shield_repair(struct node *n, const char *log, struct firn_diag *d)
{
    char *note = n->shield.truncation_path;
    snprintf(note, sizeof n->shield.truncation_path, "%s/cut", n->self.dir);
    int r = closed_repair(log, d);
    if (r == 0)
        r = truncation_finish(note, log, d);
    if (r == 0)
        r = closed_drop_replaced(log, d);
    return r ? r : segment_check(log, d);
}
