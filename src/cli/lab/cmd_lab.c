/*
 * firn lab: the options, and exec of firn-lab, which does the work. The lab is a separate program
 * so that no other command loads libraft.
 */
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/lab/lab_command.h"
#include "cli/say.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const struct opt opts[] = {
    { .name = "kill-leader",
      .at = offsetof(struct lab_command, kill_leader),
      .about = "raft: the leader crashes right after it answered" },
    { .name = "no-pre-vote",
      .at = offsetof(struct lab_command, no_pre_vote),
      .about = "raft: candidates increase the term without a pre-vote" },
    { .name = "duel",
      .at = offsetof(struct lab_command, duel),
      .about = "paxos, multi-paxos: a second proposer at the same time" },
    { .name = "kill-proposer",
      .at = offsetof(struct lab_command, kill_proposer),
      .about = "paxos: the proposer crashes when one acceptor has its value" },
    { .name = "lose",
      .at = offsetof(struct lab_command, lose),
      .about = "raft: the first AppendEntries are lost; paxos: the first Accepted; multi-paxos: "
               "the first Accept of slot 3" },
    { .name = "plain",
      .at = offsetof(struct lab_command, plain),
      .about = "multi-paxos: a Prepare for each slot, as plain Paxos has it" },
    { .name = "herd",
      .at = offsetof(struct lab_command, herd),
      .about = "election: all candidates watch the leader" },
    { .name = "cut",
      .type = OPT_TEXT,
      .at = offsetof(struct lab_command, cut),
      .value = "LINK",
      .words = "A-B A-C B-C P1-A1 P1-A2 P1-A3",
      .about = "cut a link: A-B, A-C, B-C; paxos, multi-paxos: P1-A1, P1-A2, P1-A3" },
    { .name = "seed",
      .type = OPT_NUMBER,
      .at = offsetof(struct lab_command, seed),
      .value = "N",
      .max = UINT64_MAX - 1,
      .about = "seed of timeouts and delays (default 54)" },
    { .name = "html",
      .type = OPT_TEXT,
      .at = offsetof(struct lab_command, html),
      .value = "FILE",
      .words = "@files",
      .about = "write a page with all labs, on which all faults can be switched on; - is stdout" },
    { .name = "all",
      .letter = 'a',
      .at = offsetof(struct lab_command, all),
      .about = "do not wait between steps" },
    OPT_JSON(struct lab_command, json),
    { .name = "no-color",
      .at = offsetof(struct lab_command, no_color),
      .about = "no colours, as with NO_COLOR" },
    { .name = NULL },
};

const struct usage lab_usage = {
    .name = "lab",
    .examples =
        "  firn lab raft                        x = 5 is agreed on, then an election\n"
        "  firn lab raft --kill-leader          nothing that was answered is lost\n"
        "  firn lab paxos --duel                two proposers, one value\n"
        "  firn lab multi-paxos                 a stable leader skips Prepare\n"
        "  firn lab election --herd             ZooKeeper's recipe, all woken at once\n"
        "  firn lab raft --html raft.html       the same as a page, with all labs and faults\n",
    .synopsis =
        "firn lab raft [--kill-leader] [--no-pre-vote] [--lose] [--cut LINK] [OPTION...]\n"
        "       firn lab paxos [--duel] [--kill-proposer] [--lose] [--cut LINK] [OPTION...]\n"
        "       firn lab multi-paxos [--duel] [--lose] [--plain] [--cut LINK] [OPTION...]\n"
        "       firn lab election [--herd] [OPTION...]\n"
        "       firn lab queue [OPTION...]\n"
        "       firn lab all --html FILE | --json [--seed N]",
    .about =
        "Plays consensus step by step, and explains each step. The steps are recorded while you\n"
        "wait: raft from three nodes of libraft itself, without firnd's additions\n"
        "(docs/cluster.md), paxos and multi-paxos from the proposer and acceptors of quorum:\n"
        "stores, election from a model of ZooKeeper's znodes, sessions and watches, queue from the\n"
        "candidates of firn elect; all on a simulated network, disk and clock. On a terminal Enter shows the next step, s the\n"
        "state of all, a the rest; q quits.\n",
    .operands = "raft paxos multi-paxos election queue all",
    .opts = opts,
};

int cmd_lab(int argc, char **argv)
{
    char program[CHILD_PATH_BUF];
    (void)argc;
    if (!child_find("firn-lab", program))
        return say_trouble(
            "the program firn-lab is missing: install it beside firn, or install all "
            "of firn again (cmake --install)");
    execv(program, argv);
    return say_trouble("cannot run %s: %s", program, strerror(errno));
}
