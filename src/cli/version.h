/* version.h - the version that `firn version` prints; the build may set it, the tests compare it with
 * the project's. */
#ifndef FIRN_CLI_VERSION_H
#define FIRN_CLI_VERSION_H

#ifndef FIRN_VERSION
#define FIRN_VERSION "0.1.0"
#endif

#endif
