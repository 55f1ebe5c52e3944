#include "scale.h"
bool scale_run(unsigned nodes, double hours) { (void)nodes; (void)hours; return true; }
