/* The page of firn lab --html: every combination of faults of every lab, played and embedded in
 * web/lab.html with its style and its script. */
#include "cli/lab/lab_page.h"
#include "cli/lab/lab_json.h"
#include "cli/output.h"
#include "cli/page.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* web/lab.html names its files, which firnd serves, on these lines; a page that stands alone has
 * them inside. */
static const char style_line[] = "<link rel=\"stylesheet\" href=\"/web/lab.css\">";
static const char script_line[] = "<script src=\"/web/lab.js\"></script>";
static const char style_begin[] =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<style>\n";
static const char style_end[] = "</style>";
static const char script_begin[] =
    "<script type=\"application/json\" id=\"traces\">@DATA@</script>\n<script>\n";
static const char script_end[] = "</script>";

static void put_names(struct buf *j, const char *name, unsigned faults)
{
    json_begin(j, name, '[');
    for (unsigned f = 1; f <= LAB_FAULT_LAST; f <<= 1)
        if (faults & f)
            json_text(j, NULL, lab_fault_name((enum lab_fault)f));
    json_end(j, ']');
}

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

static int put_lab(struct buf *j, const struct lab *lab, uint64_t seed, struct firn_diag *d)
{
    int links = 0, r = 0;
    json_begin(j, NULL, '{');
    json_text(j, "lab", lab->name);
    put_names(j, "switches", lab->faults);
    json_begin(j, "links", '[');
    while (lab->links[links])
        json_text(j, NULL, lab->links[links++]);
    json_end(j, ']');
    json_begin(j, "traces", '[');
    for (unsigned faults = 0; faults < 2 * LAB_FAULT_LAST && r == 0; faults++)
        for (int cut = -1; cut < links && r == 0 && !(faults & ~lab->faults); cut++)
            r = put_trace(j, lab, &(struct lab_opts){ seed, faults, cut }, d);
    json_end(j, ']');
    json_end(j, '}');
    return r;
}

int lab_data(struct buf *j, const struct lab *open, const struct lab_opts *o, struct firn_diag *d)
{
    size_t n;
    const struct lab *all = lab_all(&n);
    int r = 0;
    json_begin(j, NULL, '{');
    json_text(j, "open", open ? open->name : NULL);
    put_names(j, "on", o->faults);
    json_text(j, "cut", o->cut < 0 ? NULL : open->links[o->cut]);
    json_begin(j, "missing", '[');
    for (size_t i = 0; i < n; i++)
        if (all[i].missing && all[i].missing()) {
            json_begin(j, NULL, '{');
            json_text(j, "lab", all[i].name);
            json_text(j, "why", all[i].missing());
            json_end(j, '}');
        }
    json_end(j, ']');
    json_begin(j, "labs", '[');
    for (size_t i = 0; i < n && r == 0; i++)
        if (!all[i].missing || !all[i].missing())
            r = put_lab(j, &all[i], o->seed, d);
    json_end(j, ']');
    json_end(j, '}');
    return r == 0 && j->failed ? firn__diag(d, FIRN_ENOMEM, 0, "out of memory") : r;
}

/* The template, with its files in place of the lines that name them. */
static char *template(size_t *out_len)
{
    const char *p = (const char *)lab_page_html, *end = p + lab_page_html_len;
    const char *style = memmem(p, lab_page_html_len, style_line, sizeof style_line - 1);
    const char *script = memmem(p, lab_page_html_len, script_line, sizeof script_line - 1);
    char *page = NULL;
    firn_assert(style && script && style < script, "template of %zu bytes", lab_page_html_len);
    FILE *f = open_memstream(&page, out_len);
    if (!f)
        return NULL;
    fwrite(p, 1, (size_t)(style - p), f);
    fputs(style_begin, f);
    fwrite(lab_page_css, 1, lab_page_css_len, f);
    fputs(style_end, f);
    style += sizeof style_line - 1;
    fwrite(style, 1, (size_t)(script - style), f);
    fputs(script_begin, f);
    fwrite(lab_page_js, 1, lab_page_js_len, f);
    fputs(script_end, f);
    script += sizeof script_line - 1;
    fwrite(script, 1, (size_t)(end - script), f);
    bool whole = !ferror(f);
    if (fclose(f) == 0 && whole)
        return page;
    free(page);
    return NULL;
}

int lab_page(const struct lab *open, const struct lab_opts *o, char **out_page, size_t *out_len,
             struct firn_diag *d)
{
    struct buf json;
    size_t len = 0, html_len = 0;
    char *page = NULL, *html = template(&html_len);
    buf_init(&json, OUTPUT_JSON_MAX);
    int r = lab_data(&json, open, o, d);
    if (r == 0 && html)
        page = page_fill((const unsigned char *)html, html_len, json.p, json.len, &len);
    buf_done(&json);
    free(html);
    if (r == 0 && !page)
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (r != 0)
        return r;
    *out_page = page;
    *out_len = len;
    return 0;
}
