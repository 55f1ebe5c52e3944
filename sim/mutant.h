/*
 * mutant.h - rules that can be switched off, one at a time, to see that an oracle notices. The list
 * is in coord/mutant.h; SIM_MUTANT() marks rules that the simulator itself implements for a
 * process: its generators, its batches, its store.
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
