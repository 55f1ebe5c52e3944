#include "cli/lab_page.h"
#include "cli/json.h"
#include "cli/lab_json.h"
#include "id/diag.h"

#include <stdlib.h>
#include <string.h>

static const char mark[] =
    "@TRACES@"; /* once in web/lab.html, inside a script of type application/json */

/* One trace; the faults that are not the lab's are skipped by the caller. */
static int put_trace(struct json *j, const struct lab *lab, const struct lab_opts *o,
                     struct firn_diag *d)
{
    struct lab_trace t;
    int r = lab->play(o, &t, d);
    if (r == 0)
        lab_json(j, o, &t);
    lab_trace_done(&t);
    return r;
}

static int put_all(struct json *j, const struct lab *lab, const struct lab_opts *o,
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

/* Inside a script element a '<' could end it; JSON has it in strings only, where it can be written so. */
static void put_safely(FILE *out, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] == '<')
            fputs("\\u003c", out);
        else
            putc(p[i], out);
}

int lab_page(const struct lab *lab, const struct lab_opts *o, FILE *out, struct firn_diag *d)
{
    const char *html = (const char *)lab_page_html;
    const char *at = memmem(html, lab_page_html_len, mark, sizeof mark - 1);
    char *text = NULL;
    size_t len = 0;
    FILE *memory = at ? open_memstream(&text, &len) : NULL;
    if (!memory)
        return firn__diag(d, FIRN_ENOMEM, 0,
                          at ? "out of memory" : "the page has no place for traces");
    struct json j;
    json_init(&j, memory);
    int r = put_all(&j, lab, o, d);
    bool whole = !ferror(memory);
    whole = fclose(memory) == 0 && whole;
    if (r == 0 && !whole)
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (r == 0) {
        fwrite(html, 1, (size_t)(at - html), out);
        put_safely(out, text, len);
        at += sizeof mark - 1;
        fwrite(at, 1, lab_page_html_len - (size_t)(at - html), out);
    }
    free(text);
    return r;
}
