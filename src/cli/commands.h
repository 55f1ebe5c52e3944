/* commands.h - the table of commands, which main.c defines, and the entry point of each. */
#ifndef FIRN_CLI_COMMANDS_H
#define FIRN_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct command commands[]; /* ends with a NULL name */

/* The row of that name, or NULL. */
const struct command *command_find(const char *name);

/* argv[0] is the command's name; the return value is the exit status. */
int cmd_admin(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_choose(int argc, char **argv);
int cmd_cluster(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_elect(int argc, char **argv);
int cmd_gen(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_lab(int argc, char **argv);
int cmd_layout(int argc, char **argv);
int cmd_lock(int argc, char **argv);
int cmd_nodes(int argc, char **argv);
int cmd_seal(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_unseal(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_version(int argc, char **argv);

extern const struct usage admin_usage, audit_usage, bench_usage, choose_usage, cluster_usage,
    compare_usage, completion_usage, config_usage, convert_usage, doctor_usage, elect_usage,
    gen_usage, help_usage, inspect_usage, lab_usage, layout_usage, lock_usage, nodes_usage,
    seal_usage, top_usage, unseal_usage, up_usage, verify_usage, version_usage;

#endif
