/*
 * variables.h - which FIRN_... environment variables firn and firnd know, so that a mistyped one is
 * an error and not ignored. firnd compares with its own settings, firn with what either program
 * reads, since both may run in one environment.
 */
#ifndef FIRN_WIRE_VARIABLES_H
#define FIRN_WIRE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

#define VARIABLES_PREFIX "FIRN_"

/* Read by firn, set by it for the commands that it runs, or used by the scripts of the source tree:
 * no program minds them. */
bool variable_common(const char *name);

/* A setting of firnd, or at least in a section of them: firn leaves it to firnd. */
bool variable_of_firnd(const char *name);

/* Set by Kubernetes (or Docker links) for a service whose name begins with firn: FIRN_SERVICE_HOST,
 * FIRN_PORT=tcp://..., FIRN_PORT_9000_TCP_ADDR, FIRN_HOME_SERVICE_PORT and so on. */
bool variable_of_service(const char *name, const char *value);

/* The variable of firn nearest to a mistyped one, or NULL. */
const char *variable_nearest(const char *name);

#endif
