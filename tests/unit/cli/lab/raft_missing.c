/* A build without libraft names the package, and Paxos plays all the same. */
#include "cli/lab/raft_missing.c" /* in the place of cli/lab/raft.c */
#include "t.h"

T_TEST(says_which_package)
{
    struct lab_opts o = LAB_OPTS_INIT;
    struct lab_trace t;
    struct firn_diag d = { 0 };
    T_OK(strstr(lab_raft_missing(), "libraft-dev"));
    T_EQ(lab_raft(&o, &t, &d), FIRN_ENOTSUP);
    T_STR(d.text, lab_raft_missing());
    lab_trace_done(&t);
    T_EQ(lab_paxos(&o, &t, &d), 0, "%s", d.text);
    lab_trace_done(&t);
}
