/*
 * mutant.h - rules that can be taken away, one at a time, to see that somebody notices. Those of
 * src/coord are in coord/mutant.h; these are in what the simulator itself does for a process: its
 * generators, its batches, its store.
 */
#ifndef SIM_MUTANT_H
#define SIM_MUTANT_H

#include "coord/mutant.h"

#ifdef FIRN_MUTANTS
#define SIM_MUTANT(name) FIRN_MUTANT(name)
#else
#define SIM_MUTANT(name) 0
#endif

#endif
