/*
 * period.h - dated sequences: the note in their record, and the registers of their periods. Pure.
 */
#ifndef FIRN_COORD_PERIOD_H
#define FIRN_COORD_PERIOD_H

#include "coord/record.h"

/* How a dated sequence keeps its form in the record's note: "dated:day:6". */
FIRN_MUSTUSE int dated_note_parse(const char *note, uint32_t *out_reset, uint32_t *out_digits);
void dated_note_format(uint32_t reset, uint32_t digits, char out[RECORD_NOTE_MAX + 1]);

/* The name of a period's register: "orders@20261116". Returns its length; 0: the sequence's name is
 * too long for that. */
#define PERIOD_NAME_BUF (RECORD_NAME_MAX + 1 + 16)
size_t period_name(const char *name, uint32_t period, char out[PERIOD_NAME_BUF]);

/* The earlier periods in which a key that is still kept may have got its numbers, latest first. */
struct period_walk {
    uint32_t reset, last;
    int64_t at_s, since_s;
};

/* From `period`, the one at `now_s`, back as far as `retention_s`. */
void period_walk_init(struct period_walk *w, uint32_t reset, uint32_t period, int64_t now_s,
                      uint64_t retention_s);

/* 1 with the next one; 0: that was all. FIRN_E...: no date. */
FIRN_MUSTUSE int period_walk_next(struct period_walk *w, uint32_t *out_period);

#endif
