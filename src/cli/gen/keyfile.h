/* keyfile.h - the keys of `firn seal` and `firn unseal`, from a file that only its owner should see. */
#ifndef FIRN_CLI_GEN_KEYFILE_H
#define FIRN_CLI_GEN_KEYFILE_H

#include "firn/seal.h"

/* -1, and *out is the caller's to free; or STATUS_TROUBLE, said. `path` NULL: none was given. */
int keyfile_open(const char *path, struct firn_seal **out);

#endif
