/*
 * lab_text.h - a trace as a sequence diagram on a terminal: a column for each party, an arrow for
 * each message, a sentence below each step. One thread.
 */
#ifndef FIRN_CLI_LAB_LAB_TEXT_H
#define FIRN_CLI_LAB_LAB_TEXT_H

#include "cli/lab/trace.h"

/* All of it. */
void lab_text(const struct lab_trace *t);

/* Step by step: Enter for the next, s for the state of all, a for all the rest, q to stop. Keys
 * come from stdin. */
void lab_text_play(const struct lab_trace *t);

#endif
