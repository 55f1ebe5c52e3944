/*
 * lab_page.h - all labs as one page: web/lab.html with the traces of all faults inside, or the
 * traces alone, which firnd serves beside its own copy of the page.
 */
#ifndef FIRN_CLI_LAB_LAB_PAGE_H
#define FIRN_CLI_LAB_LAB_PAGE_H

#include "wire/json_write.h"
#include "cli/lab/lab.h"

extern const unsigned char lab_page_html[], lab_page_css[],
    lab_page_js[]; /* by cmake/embed.cmake */
extern const size_t lab_page_html_len, lab_page_css_len, lab_page_js_len;

/* Play every lab with every combination of its faults, from o->seed, as one JSON object. The page
 * opens on `open` (NULL: the first), with o's faults switched on. A lab that this build lacks is
 * named in "missing". FIRN_EIO, FIRN_ENOMEM: d says what failed. */
FIRN_MUSTUSE int lab_data(struct buf *j, const struct lab *open, const struct lab_opts *o,
                          struct firn_diag *d);

/* The page with that data inside. The caller frees *out_page. */
FIRN_MUSTUSE int lab_page(const struct lab *open, const struct lab_opts *o, char **out_page,
                          size_t *out_len, struct firn_diag *d);

#endif
