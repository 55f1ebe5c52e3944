/* firn/version.h - which libfirn this is: macros of the headers, a function of the library. */
#ifndef FIRN_VERSION_H
#define FIRN_VERSION_H

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_VERSION_MAJOR 0
#define FIRN_VERSION_MINOR 1
#define FIRN_VERSION_PATCH 0

/* For #if: 0.1.0 is 100, 1.2.3 is 10203. */
#define FIRN_VERSION_NUMBER \
    (FIRN_VERSION_MAJOR * 10000 + FIRN_VERSION_MINOR * 100 + FIRN_VERSION_PATCH)

/* The library that the program runs with, such as "0.1.0". From any thread. */
FIRN_API const char *firn_version(void);

#ifdef __cplusplus
}
#endif
#endif
