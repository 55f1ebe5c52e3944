/*
 * words.h - the words that an option's value or an operand can be, for completions and suggestions.
 * A list is written as words with blanks between them. A word that begins with '@' stands for a
 * table: @kinds (that can be made), @readable, @layouts, @encodings, @commands; @files stands for
 * the names of files and is left to the shell.
 */
#ifndef FIRN_CLI_WORDS_H
#define FIRN_CLI_WORDS_H

#include <stdbool.h>

typedef void words_fn(const char *word, void *user);

/* Call `each` for every word of the list. */
void words_each(const char *list, words_fn *each, void *user);

/* The list has @files. */
bool words_has_files(const char *list);

/* The word of the list that is nearest to a mistyped one, or NULL. */
const char *words_nearest(const char *list, const char *typed);

/* Report a value that is not in the list: "WHAT 'typed': did you mean WORD?", or without a near
 * word "WHAT 'typed': OTHERWISE". Returns STATUS_TROUBLE. */
int words_unknown(const char *what, const char *typed, const char *list, const char *otherwise);

#endif
