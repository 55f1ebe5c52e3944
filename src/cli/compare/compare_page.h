/* compare_page.h - the page of firn compare --html: web/compare.html with all figures inside. */
#ifndef FIRN_CLI_COMPARE_COMPARE_PAGE_H
#define FIRN_CLI_COMPARE_COMPARE_PAGE_H

#include "cli/compare/compare_kinds.h"

extern const unsigned char compare_page_html[]; /* made by cmake/embed.cmake */
extern const size_t compare_page_html_len;

/* Write the page. -1: written; otherwise the status to exit with, after an error message. */
int compare_page(const char *path, const struct compare_row row[COMPARE_KINDS]);

#endif
