/*
 * span_sample.h - which requests begin a trace of their own: a share of them, as if a coin were
 * tossed for each, with one random number per sampled request. Any thread.
 */
#ifndef FIRN_DAEMON_SPAN_SAMPLE_H
#define FIRN_DAEMON_SPAN_SAMPLE_H

#include "firn/error.h"

#include <stdint.h>

/* A setting like "0.01" as a number; below 0: it is none from 0 to 1. */
double span_sample_read(const char *text);

/* For the check of a setting. FIRN_EFORMAT: it is no ratio. */
FIRN_MUSTUSE int span_sample_check(const char *text, struct firn_diag *why);

/* How many requests pass before the next one that is sampled; UINT64_MAX: none ever is. */
uint64_t span_sample_next(double ratio);

#endif
