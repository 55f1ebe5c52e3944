/* keyfile.h - reads the keys of `firn seal` and `firn unseal` from a file that only its owner
 * should read. */
#ifndef FIRN_CLI_GEN_KEYFILE_H
#define FIRN_CLI_GEN_KEYFILE_H

#include "firn/seal.h"

/* -1, and the caller frees *out; or STATUS_TROUBLE after a message. `path` NULL: none was given. */
int keyfile_open(const char *path, struct firn_seal **out);

#endif
