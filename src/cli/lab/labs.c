/* The table of the labs. Tested by tests/integration/cli.sh, which plays each of them. */
#include "cli/lab/lab.h"

#include <string.h>

static const char *const no_links[] = { NULL };

static const struct lab table[] = {
    { "raft", lab_raft, LAB_KILL_LEADER | LAB_NO_PRE_VOTE | LAB_LOSE, lab_raft_links,
      lab_raft_missing },
    { "paxos", lab_paxos, LAB_DUEL | LAB_KILL_PROPOSER | LAB_LOSE, lab_paxos_links, NULL },
    { "multi-paxos", lab_multi_paxos, LAB_DUEL | LAB_LOSE | LAB_PLAIN, lab_paxos_links, NULL },
    { "election", lab_election, LAB_HERD, no_links, NULL },
    { "queue", lab_queue, 0, no_links, NULL },
};

const struct lab *lab_all(size_t *out_n)
{
    *out_n = sizeof table / sizeof table[0];
    return table;
}

const struct lab *lab_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}
