/* firn lab: Raft and Paxos played step by step, from traces of the real code. */
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/lab/lab_json.h"
#include "cli/lab/lab_page.h"
#include "cli/lab/lab_text.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEED = 54 }; /* B stands first, as in the books */

struct lab_command {
    bool kill_leader, no_pre_vote, duel, kill_proposer, lose;
    const char *cut, *html;
    uint64_t seed;
    bool all, json, no_color;
};

static const struct opt opts[] = {
    { .name = "kill-leader",
      .at = offsetof(struct lab_command, kill_leader),
      .about = "raft: the leader dies right after it answered" },
    { .name = "no-pre-vote",
      .at = offsetof(struct lab_command, no_pre_vote),
      .about = "raft: candidates raise the term without asking first" },
    { .name = "duel",
      .at = offsetof(struct lab_command, duel),
      .about = "paxos: a second proposer at the same time" },
    { .name = "kill-proposer",
      .at = offsetof(struct lab_command, kill_proposer),
      .about = "paxos: it dies when one acceptor has its value" },
    { .name = "lose",
      .at = offsetof(struct lab_command, lose),
      .about = "the first AppendEntries, or the first Accepted, get lost" },
    { .name = "cut",
      .type = OPT_TEXT,
      .at = offsetof(struct lab_command, cut),
      .value = "LINK",
      .words = "A-B A-C B-C P1-A1 P1-A2 P1-A3",
      .about = "cut a link: A-B, A-C, B-C; paxos: P1-A1, P1-A2, P1-A3" },
    { .name = "seed",
      .type = OPT_NUMBER,
      .at = offsetof(struct lab_command, seed),
      .value = "N",
      .max = UINT64_MAX - 1,
      .about = "other time-outs and delays (default 54)" },
    { .name = "html",
      .type = OPT_TEXT,
      .at = offsetof(struct lab_command, html),
      .value = "FILE",
      .words = "@files",
      .about = "write a page with all faults to switch on; - is stdout" },
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
        "  firn lab raft --html raft.html       the same to click through, with all faults\n",
    .synopsis =
        "firn lab raft [--kill-leader] [--no-pre-vote] [--lose] [--cut LINK] [OPTION...]\n"
        "       firn lab paxos [--duel] [--kill-proposer] [--lose] [--cut LINK] [OPTION...]",
    .about =
        "Plays consensus step by step, and says at each step why it happens. What is shown is\n"
        "recorded while you wait: raft from three nodes of libraft itself, without what firnd adds\n"
        "around it (docs/cluster.md), paxos from the proposer and acceptors of quorum: stores; both\n"
        "on a simulated network, disk and clock.\n"
        "On a terminal Enter goes on, s shows the state of all, a the rest, q quits.\n",
    .operands = "raft paxos",
    .opts = opts,
};

static const struct lab all_labs[] = {
    { "raft", lab_raft, LAB_KILL_LEADER | LAB_NO_PRE_VOTE | LAB_LOSE, lab_raft_links },
    { "paxos", lab_paxos, LAB_DUEL | LAB_KILL_PROPOSER | LAB_LOSE, lab_paxos_links },
};

static const struct lab *lab_find(const char *name)
{
    for (size_t i = 0; i < sizeof all_labs / sizeof all_labs[0]; i++)
        if (strcmp(all_labs[i].name, name) == 0)
            return &all_labs[i];
    return NULL;
}

/* -1: go on. */
static int read_faults(const struct lab *lab, const struct lab_command *c, struct lab_opts *o)
{
    char shown[SAY_TEXT_BUF];
    o->faults = (c->kill_leader ? LAB_KILL_LEADER : 0u) | (c->no_pre_vote ? LAB_NO_PRE_VOTE : 0u) |
                (c->duel ? LAB_DUEL : 0u) | (c->kill_proposer ? LAB_KILL_PROPOSER : 0u) |
                (c->lose ? LAB_LOSE : 0u);
    for (unsigned f = 1; f <= LAB_LOSE; f <<= 1)
        if (o->faults & f & ~lab->faults)
            return say_trouble("--%s is a fault of firn lab %s", lab_fault_name((enum lab_fault)f),
                               lab == &all_labs[0] ? "paxos" : "raft");
    if (!c->cut)
        return -1;
    for (int i = 0; lab->links[i]; i++)
        if (strcmp(lab->links[i], c->cut) == 0)
            o->cut = i;
    if (o->cut < 0)
        return say_trouble("--cut %s: the links of firn lab %s are %s, %s and %s",
                           say_text(c->cut, strlen(c->cut), shown), lab->name, lab->links[0],
                           lab->links[1], lab->links[2]);
    return -1;
}

static int write_file(const char *path, const char *p, size_t len)
{
    char shown[SAY_TEXT_BUF];
    FILE *f = fopen(path, "we");
    say_text(path, strlen(path), shown);
    bool ok = f && fwrite(p, 1, len, f) == len && fflush(f) == 0;
    int why = errno;
    if (f && fclose(f) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (!ok)
        return say_trouble("%s: %s", shown, strerror(why));
    say_note("%s: open it in a browser", shown);
    return STATUS_OK;
}

static int write_page(const struct lab *lab, const struct lab_opts *o, const char *path)
{
    struct firn_diag d;
    char *page;
    size_t len;
    if (lab_page(lab, o, &page, &len, &d) != 0)
        return say_trouble("%s", d.text);
    int r = strcmp(path, "-") == 0 ? output_block(page, len) : write_file(path, page, len);
    free(page);
    return r < 0 ? STATUS_OK : r;
}

int cmd_lab(int argc, char **argv)
{
    struct lab_command c = { .seed = SEED };
    char shown[SAY_TEXT_BUF];
    int n, r = options_parse(&lab_usage, argc, argv, &c, &n);
    if (r >= 0)
        return r;
    if (n != 1)
        return say_trouble("which lab? Write firn lab raft or firn lab paxos");
    const struct lab *lab = lab_find(argv[1]);
    if (!lab)
        return say_trouble("no lab '%s': there is raft and paxos",
                           say_text(argv[1], strlen(argv[1]), shown));
    if (c.json && c.html)
        return say_trouble("--json and --html: choose one");
    struct lab_opts o = LAB_OPTS_INIT;
    o.seed = c.seed;
    r = read_faults(lab, &c, &o);
    if (r >= 0)
        return r;
    if (lab->play == lab_raft && lab_raft_missing())
        return say_trouble("%s; firn lab paxos works without", lab_raft_missing());
    if (c.no_color)
        setenv("NO_COLOR", "1", 1);
    if (c.html)
        return write_page(lab, &o, c.html);

    struct lab_trace t;
    struct firn_diag d;
    r = lab->play(&o, &t, &d);
    if (r != 0) {
        lab_trace_done(&t);
        return say_trouble("%s", d.text);
    }
    if (c.json) {
        struct json j;
        json_init(&j, stdout);
        lab_json(&j, &o, &t);
        json_done(&j);
    } else if (c.all || isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1) {
        lab_text(&t);
    } else {
        lab_text_play(&t);
    }
    lab_trace_done(&t);
    return output_finish(STATUS_OK);
}
