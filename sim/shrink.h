/* shrink.h - the shortest list of faults that still breaks the same rule (ddmin). */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "world.h"

/* `p` is known to fail with `oracle`; leaves the shortened plan in it. Returns the number of
 * runs. */
int shrink(struct world *w, struct plan *p, const char *oracle);

#endif
