/* firn, the command line: the table of commands, and finding the one that is meant. */
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/words.h"

#include <signal.h>
#include <string.h>

const struct command commands[] = {
    { "gen", "make IDs of any kind", cmd_gen, &gen_usage },
    { "inspect", "what an ID says: its kind, time and fields", cmd_inspect, &inspect_usage },
    { "convert", "write a value in another encoding", cmd_convert, &convert_usage },
    { "layout", "list, explain and check layouts of 64-bit IDs", cmd_layout, &layout_usage },
    { "verify", "check that IDs are unique, sorted, without holes", cmd_verify, &verify_usage },
    { "audit", "record IDs in a database and count those that come twice", cmd_audit,
      &audit_usage },
    { "seal", "hide IDs in texts that the public may see", cmd_seal, &seal_usage },
    { "unseal", "open sealed IDs", cmd_unseal, &unseal_usage },
    { "choose", "which kind of ID suits you, and why", cmd_choose, &choose_usage },
    { "compare", "ask a Snowflake and a ticket server in turn, and compare them", cmd_compare,
      &compare_usage },
    { "up", "three servers, a balancer and a client on this machine, to try", cmd_up, &up_usage },
    { "admin", "set up, look at and mend the store that servers share", cmd_admin, &admin_usage },
    { "cluster", "who belongs to a cluster of firnds, and changes of that", cmd_cluster,
      &cluster_usage },
    { "bench", "measure the library, or a server", cmd_bench, &bench_usage },
    { "top", "servers as they are now: rates, windows, clocks", cmd_top, &top_usage },
    { "nodes", "who takes part: servers and commands that share a store", cmd_nodes, &nodes_usage },
    { "elect", "run a command on one of many machines", cmd_elect, &elect_usage },
    { "lock", "run a command while nobody else runs one", cmd_lock, &lock_usage },
    { "config", "get, set and watch values that all share", cmd_config, &config_usage },
    { "lab", "Raft and Paxos step by step, with faults to switch on", cmd_lab, &lab_usage },
    { "completion", "print a completion script for bash, zsh or fish", cmd_completion,
      &completion_usage },
    { "help", "how to use firn, or one of its commands", cmd_help, &help_usage },
    { "version", "print the version", cmd_version, &version_usage },
    { NULL, NULL, NULL, NULL },
};

const struct command *command_find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int unknown(const char *word)
{
    char shown[SAY_TEXT_BUF];
    const char *near = words_nearest("@commands", word);
    say_text(word, strlen(word), shown);
    if (near)
        return say_trouble("unknown command '%s': did you mean firn %s?", shown, near);
    return say_trouble("unknown command '%s': firn help lists them", shown);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *option, *command;
    } also[] = {
        { "--help", "help" }, { "-h", "help" }, { "--version", "version" }, { "-V", "version" }
    };
    signal(SIGPIPE, SIG_IGN); /* writing then answers EPIPE, which output.c takes quietly */

    const char *word = argc > 1 ? argv[1] : "help";
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++)
        if (strcmp(word, also[i].option) == 0)
            word = also[i].command;
    const struct command *c = command_find(word);
    if (!c)
        return unknown(word);
    say_as(c->name);
    return argc > 1 ? c->run(argc - 1, argv + 1) : c->run(argc, argv);
}
