/* The page of firn lab --html: every combination of faults, played and embedded in web/lab.html. */
#include "cli/lab/lab_page.h"
#include "cli/output.h"
#include "cli/lab/lab_json.h"
#include "cli/page.h"
#include "id/diag.h"

#include <stdio.h>
#include <stdlib.h>

/* One trace; the faults that are not the lab's are skipped by the caller. */
static int put_trace(struct buf *j, const struct lab *lab, const struct lab_opts *o,
                     struct firn_diag *d)
{
    struct lab_trace t;
    int r = lab->play(o, &t, d);
    if (r == 0)
        lab_json(j, o, &t);
    lab_trace_done(&t);
    return r;
}

static int put_all(struct buf *j, const struct lab *lab, const struct lab_opts *o,
                   struct firn_diag *d)
{
    int links = 0, r = 0;
    json_begin(j, NULL, '{');
    json_text(j, "lab", lab->name);
    json_begin(j, "switches", '[');
    for (unsigned f = 1; f <= LAB_LOSE; f <<= 1)
        if (lab->faults & f)
            json_text(j, NULL, lab_fault_name((enum lab_fault)f));
    json_end(j, ']');
    json_begin(j, "on", '[');
    for (unsigned f = 1; f <= LAB_LOSE; f <<= 1)
        if (o->faults & f)
            json_text(j, NULL, lab_fault_name((enum lab_fault)f));
    json_end(j, ']');
    json_begin(j, "links", '[');
    while (lab->links[links])
        json_text(j, NULL, lab->links[links++]);
    json_end(j, ']');
    json_text(j, "cut", o->cut < 0 ? NULL : lab->links[o->cut]);
    json_begin(j, "traces", '[');
    for (unsigned faults = 0; faults < 2 * LAB_LOSE && r == 0; faults++)
        for (int cut = -1; cut < links && r == 0 && !(faults & ~lab->faults); cut++)
            r = put_trace(j, lab, &(struct lab_opts){ o->seed, faults, cut }, d);
    json_end(j, ']');
    json_end(j, '}');
    return r;
}

int lab_page(const struct lab *lab, const struct lab_opts *o, char **out_page, size_t *out_len,
             struct firn_diag *d)
{
    struct buf json;
    size_t len = 0;
    buf_init(&json, OUTPUT_JSON_MAX);
    int r = put_all(&json, lab, o, d);
    char *page = r == 0 && !json.failed
                     ? page_fill(lab_page_html, lab_page_html_len, json.p, json.len, &len)
                     : NULL;
    buf_done(&json);
    if (r == 0 && !page)
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (r != 0)
        return r;
    *out_page = page;
    *out_len = len;
    return 0;
}
