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

/* The first lab that has this fault. */
static const char *owner_of(unsigned fault)
{
    size_t n;
    const struct lab *all = lab_all(&n);
    for (size_t i = 0; i < n; i++)
        if (all[i].faults & fault)
            return all[i].name;
    return "?";
}

/* "raft, paxos, multi-paxos, election or all" */
static const char *names(char out[SAY_TEXT_BUF])
{
    size_t n, len = 0;
    const struct lab *all = lab_all(&n);
    for (size_t i = 0; i < n && len < SAY_TEXT_BUF; i++)
        len += (size_t)snprintf(out + len, SAY_TEXT_BUF - len, "%s%s", i == 0 ? "" : ", ",
                                all[i].name);
    if (len < SAY_TEXT_BUF)
        snprintf(out + len, SAY_TEXT_BUF - len, " or all");
    return out;
}

/* -1: go on. */
static int read_faults(const struct lab *lab, const struct lab_command *c, struct lab_opts *o)
{
    char shown[SAY_TEXT_BUF];
    o->faults = (c->kill_leader ? LAB_KILL_LEADER : 0u) | (c->no_pre_vote ? LAB_NO_PRE_VOTE : 0u) |
                (c->duel ? LAB_DUEL : 0u) | (c->kill_proposer ? LAB_KILL_PROPOSER : 0u) |
                (c->lose ? LAB_LOSE : 0u) | (c->plain ? LAB_PLAIN : 0u) | (c->herd ? LAB_HERD : 0u);
    for (unsigned f = 1; f <= LAB_FAULT_LAST; f <<= 1)
        if (o->faults & f & ~lab->faults)
            return say_trouble("firn lab %s has no --%s: that is an option of firn lab %s",
                               lab->name, lab_fault_name((enum lab_fault)f), owner_of(f));
    if (!c->cut)
        return -1;
    if (!lab->links[0])
        return say_trouble("firn lab %s has no links to cut: omit --cut", lab->name);
    for (int i = 0; lab->links[i]; i++)
        if (strcmp(lab->links[i], c->cut) == 0)
            o->cut = i;
    if (o->cut < 0)
        return say_trouble("--cut %s: the links of firn lab %s are %s, %s and %s",
                           say_text(c->cut, strlen(c->cut), shown), lab->name, lab->links[0],
                           lab->links[1], lab->links[2]);
    return -1;
}

/* lab NULL: all of them. */
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

/* firn lab all: what the page has. firnd's build embeds the JSON. */
static int all_labs(const struct lab_command *c, const struct lab_opts *o)
{
    struct firn_diag d;
    struct buf j;
    if (c->kill_leader || c->no_pre_vote || c->duel || c->kill_proposer || c->lose || c->plain ||
        c->herd || c->cut)
        return say_trouble("firn lab all plays every combination of faults: omit theirs");
    if (c->html)
        return write_page(NULL, o, c->html);
    if (!c->json)
        return say_trouble("firn lab all needs --html FILE or --json");
    buf_init(&j, OUTPUT_JSON_MAX);
    if (lab_data(&j, NULL, o, &d) != 0)
        return say_trouble("%s", d.text);
    output_json(&j, stdout);
    return output_finish(STATUS_OK);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* as in firn: output.c handles EPIPE */
    say_as("lab");
    struct lab_command c = { .seed = SEED };
    char shown[SAY_TEXT_BUF], all[SAY_TEXT_BUF];
    int n, r = options_parse(&lab_usage, argc, argv, &c, &n);
    if (r >= 0)
        return r;
    if (n != 1)
        return say_trouble("missing operand: write firn lab %s", names(all));
    const struct lab *lab = lab_find(argv[1]);
    bool every = strcmp(argv[1], "all") == 0;
    if (!lab && !every)
        return say_trouble("no lab '%s': choose %s", say_text(argv[1], strlen(argv[1]), shown),
                           names(all));
    if (c.json && c.html)
        return say_trouble("--json and --html exclude each other: choose one");
    struct lab_opts o = LAB_OPTS_INIT;
    o.seed = c.seed;
    if (every)
        return all_labs(&c, &o);
    r = read_faults(lab, &c, &o);
    if (r >= 0)
        return r;
    if (lab->missing && lab->missing())
        return say_trouble("%s; the other labs work without it", lab->missing());
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
