/* duration.h - lengths of time: formats 873 ns, 41.2 us, 3.07 ms; parses 10s, 5m. */
#ifndef FIRN_CLI_DURATION_H
#define FIRN_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#define DURATION_BUF 24

/* Three significant digits. Returns `out`. */
const char *duration_text(uint64_t ns, char out[DURATION_BUF]);

/* 500ms, 10s, 5m, 2h, 1d; a number alone is seconds. False: something else, or more than a year. */
bool duration_parse(const char *text, uint64_t *out_ms);

/* A count with a comma between thousands, as in 1,234,567. Returns `out`. */
#define GROUPED_BUF 28
const char *grouped_text(uint64_t n, char out[GROUPED_BUF]);

#endif
