/* lab_json.h - a trace as JSON, for programs and for the page. */
#ifndef FIRN_CLI_LAB_LAB_JSON_H
#define FIRN_CLI_LAB_LAB_JSON_H

#include "wire/json_write.h"
#include "cli/lab/lab.h"

/* The name of a fault as its option has it, "kill-leader". */
const char *lab_fault_name(enum lab_fault fault);

/* A step's "state" has the parties whose state it changed. */
void lab_json(struct buf *j, const struct lab_opts *o, const struct lab_trace *t);

#endif
