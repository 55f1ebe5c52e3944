/* suggest.h - finds the known word that is nearest to a mistyped one. */
#ifndef FIRN_CLI_SUGGEST_H
#define FIRN_CLI_SUGGEST_H

#include <stddef.h>

struct suggest {
    const char *typed, *best; /* borrowed; best is NULL while nothing is near */
    size_t distance;
};

void suggest_init(struct suggest *s, const char *typed);

/* Consider a candidate, borrowed. The nearest by edit distance wins, the first among equals; one
 * that differs in more than a third of its letters is ignored. */
void suggest_try(struct suggest *s, const char *candidate);

#endif
