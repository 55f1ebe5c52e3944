/* scale.h - a thousand nodes over days: the default layout, a window of 60 s. */
#ifndef SIM_SCALE_H
#define SIM_SCALE_H

#include <stdbool.h>

bool scale_run(unsigned nodes, double hours);

#endif
