/* lab_page.h - a lab as one self-contained page: web/lab.html with the traces of all its faults
 * inside. */
#ifndef FIRN_CLI_LAB_LAB_PAGE_H
#define FIRN_CLI_LAB_LAB_PAGE_H

#include "cli/lab/lab.h"

extern const unsigned char lab_page_html[]; /* made by cmake/embed.cmake */
extern const size_t lab_page_html_len;

typedef int lab_player(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d);

struct lab {
    const char *name;
    lab_player *play;
    unsigned faults;          /* those that it has */
    const char *const *links; /* ends with NULL */
};

/* Play `lab` with every combination of its faults, from o->seed, and make the page, on which o's
 * faults are switched on. The caller frees *out_page. FIRN_EIO, FIRN_ENOMEM: d says what failed. */
FIRN_MUSTUSE int lab_page(const struct lab *lab, const struct lab_opts *o, char **out_page,
                          size_t *out_len, struct firn_diag *d);

#endif
