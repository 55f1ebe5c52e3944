/* page.h - self-contained pages: a template of web/ with JSON in the place of its mark, @DATA@. */
#ifndef FIRN_CLI_PAGE_H
#define FIRN_CLI_PAGE_H

#include <stddef.h>

/* The template with the JSON in it, which the caller frees, and its length; NULL: out of memory. */
char *page_fill(const unsigned char *html, size_t html_len, const char *json, size_t json_len,
                size_t *out_len);

/* Write a page to a file. -1: written; otherwise the status to exit with, after an error
 * message. */
int page_write(const char *path, const char *page, size_t len);

#endif
