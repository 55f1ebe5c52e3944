/* The Raft lab in a build without libraft: an error text; see src/cli/CMakeLists.txt. */
#include "cli/lab/lab.h"
#include "id/diag.h"

const char *const lab_raft_links[] = { "A-B", "A-C", "B-C", NULL };

const char *lab_raft_missing(void)
{
    return "this firn was built without libraft: install libraft-dev and build it again";
}

int lab_raft(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d)
{
    lab_trace_init(out, "raft", o->seed);
    return firn__diag(d, FIRN_ENOTSUP, 0, "%s", lab_raft_missing());
}
