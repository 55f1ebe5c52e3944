/* verify.h - `firn verify`: are these IDs unique, sorted, without holes? */
#ifndef FIRN_CLI_VERIFY_H
#define FIRN_CLI_VERIFY_H

/* argv[0] is "verify". The exit status: 0 all checks hold, 1 one failed, 2 usage or I/O. */
int cmd_verify(int argc, char **argv);

#endif
