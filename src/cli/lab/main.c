/* firn-lab, the program behind firn lab, which is the only command that needs libraft. */
#include "wire/json_write.h"
#include "cli/lab/lab_command.h"
#include "cli/lab/lab_json.h"
#include "cli/lab/lab_page.h"
#include "cli/lab/lab_text.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/say.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEED = 54 }; /* with this seed B is the first candidate, as in textbooks */

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

static int write_page(const struct lab *lab, const struct lab_opts *o, const char *path)
{
    struct firn_diag d;
    char *page;
    size_t len;
    if (lab_page(lab, o, &page, &len, &d) != 0)
        return say_trouble("%s", d.text);
    int r = strcmp(path, "-") == 0 ? output_block(page, len) : page_write(path, page, len);
    free(page);
    return r < 0 ? STATUS_OK : r;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* as in firn: output.c handles EPIPE */
    say_as("lab");
    struct lab_command c = { .seed = SEED };
    char shown[SAY_TEXT_BUF];
    int n, r = options_parse(&lab_usage, argc, argv, &c, &n);
    if (r >= 0)
        return r;
    if (n != 1)
        return say_trouble("missing operand: write firn lab raft or firn lab paxos");
    const struct lab *lab = lab_find(argv[1]);
    if (!lab)
        return say_trouble("no lab '%s': choose raft or paxos",
                           say_text(argv[1], strlen(argv[1]), shown));
    if (c.json && c.html)
        return say_trouble("--json and --html exclude each other: choose one");
    struct lab_opts o = LAB_OPTS_INIT;
    o.seed = c.seed;
    r = read_faults(lab, &c, &o);
    if (r >= 0)
        return r;
    if (lab->play == lab_raft && lab_raft_missing())
        return say_trouble("%s; firn lab paxos works without it", lab_raft_missing());
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
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        lab_json(&j, &o, &t);
        output_json(&j, stdout);
    } else if (c.all || isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1) {
        lab_text(&t);
    } else {
        lab_text_play(&t);
    }
    lab_trace_done(&t);
    return output_finish(STATUS_OK);
}
