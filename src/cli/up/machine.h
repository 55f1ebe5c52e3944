/*
 * machine.h - what firn up needs of this machine to run the programs of others: where a program is,
 * and their configurations with the ports moved. Any thread. Tested in tests/integration/up.py.
 */
#ifndef FIRN_CLI_UP_MACHINE_H
#define FIRN_CLI_UP_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MACHINE_PATH_BUF = 4096 };

/* In PATH, and where Debian puts daemons: a user's PATH often lacks that. */
bool machine_find(const char *program, char out[MACHINE_PATH_BUF]);

/* The text with 127.0.0.1:90xx as 127.0.0.1:(base + xx), and var/shop as `dir` unless that is
 * NULL. */
void machine_put_moved(FILE *to, const char *p, size_t len, uint32_t base, const char *dir);

#endif
