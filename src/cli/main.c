/* firn, the command line: the table of commands, and main(), which finds and runs one. */
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/words.h"
#include "wire/variables.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

const struct command commands[] = {
    { "gen", "make IDs of any kind", cmd_gen, &gen_usage },
    { "inspect", "show the kind, time and fields of an ID", cmd_inspect, &inspect_usage },
    { "convert", "write a value in another encoding", cmd_convert, &convert_usage },
    { "layout", "list, explain and check layouts of 64-bit IDs", cmd_layout, &layout_usage },
    { "verify", "check that IDs are unique, sorted and without gaps", cmd_verify, &verify_usage },
    { "audit", "record IDs in a database and report duplicates", cmd_audit, &audit_usage },
    { "seal", "encrypt IDs for public use", cmd_seal, &seal_usage },
    { "unseal", "decrypt sealed IDs", cmd_unseal, &unseal_usage },
    { "choose", "recommend a kind of ID for given requirements", cmd_choose, &choose_usage },
    { "compare", "query a Snowflake and a ticket server in turn, and compare them", cmd_compare,
      &compare_usage },
    { "up", "start three servers, a load balancer and a client on this machine", cmd_up,
      &up_usage },
    { "admin", "initialize, inspect and repair the store that servers share", cmd_admin,
      &admin_usage },
    { "cluster", "show and change the members of a cluster of firnds", cmd_cluster,
      &cluster_usage },
    { "bench", "measure the library, or a server", cmd_bench, &bench_usage },
    { "doctor", "check servers: clocks, stores, slots that two use", cmd_doctor, &doctor_usage },
    { "top", "watch servers: rates, windows, clocks", cmd_top, &top_usage },
    { "nodes", "list the servers and commands that share a store", cmd_nodes, &nodes_usage },
    { "elect", "run a command on one of many machines", cmd_elect, &elect_usage },
    { "lock", "run a command under a lock", cmd_lock, &lock_usage },
    { "config", "get, set and watch shared configuration values", cmd_config, &config_usage },
    { "lab", "play Raft, Paxos and elections step by step, with faults", cmd_lab, &lab_usage },
    { "completion", "print a completion script for bash, zsh or fish", cmd_completion,
      &completion_usage },
    { "help", "show the help of firn, or of a command", cmd_help, &help_usage },
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

/* A mistyped variable would be ignored without a word. -1: go on. */
static int check_variables(void)
{
    extern char **environ;
    for (char **e = environ; *e; e++) {
        char name[128], shown[SAY_TEXT_BUF];
        size_t len = strcspn(*e, "=");
        if (strncmp(*e, VARIABLES_PREFIX, strlen(VARIABLES_PREFIX)) != 0 || (*e)[len] == '\0' ||
            (*e)[len + 1] == '\0')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)len, *e);
        if (variable_common(name) || variable_of_firnd(name) ||
            variable_of_service(name, *e + len + 1))
            continue;
        const char *guess = variable_nearest(name);
        say_text(name, strlen(name), shown);
        return guess ? say_trouble("unknown variable %s: did you mean %s?", shown, guess)
                     : say_trouble("unknown variable %s: unset it; firn reads those that firn(1) "
                                   "lists, and leaves the settings of firnd alone",
                                   shown);
    }
    return -1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *option, *command;
    } also[] = {
        { "--help", "help" }, { "-h", "help" }, { "--version", "version" }, { "-V", "version" }
    };
    signal(SIGPIPE, SIG_IGN); /* writing then fails with EPIPE, which output.c treats as the end */

    const char *word = argc > 1 ? argv[1] : "help";
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++)
        if (strcmp(word, also[i].option) == 0)
            word = also[i].command;
    const struct command *c = command_find(word);
    if (!c)
        return words_unknown("unknown command", word, "@commands", "firn help lists them");
    say_as(c->name);
    bool works_anyhow = c->run == cmd_help || c->run == cmd_version || c->run == cmd_completion;
    int wrong = works_anyhow ? -1 : check_variables();
    if (wrong >= 0)
        return wrong;
    return argc > 1 ? c->run(argc - 1, argv + 1) : c->run(argc, argv);
}
