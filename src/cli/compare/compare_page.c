/* The page of firn compare: the figures as JSON, and the file. */
#include "cli/compare/compare_page.h"
#include "cli/compare/compare_report.h"
#include "cli/page.h"
#include "cli/say.h"
#include "cli/when.h"

#include <stdio.h>
#include <stdlib.h>

static char *make_json(const struct compare_row *row, size_t *out_len)
{
    char when[WHEN_BUF], *json = NULL;
    struct json j;
    FILE *f = open_memstream(&json, out_len);
    if (!f)
        return NULL;
    when_utc(when_now_us(), when);
    json_init(&j, f);
    json_begin(&j, NULL, '{');
    json_text(&j, "at", when);
    compare_put_json(&j, row);
    json_end(&j, '}');
    bool whole = !ferror(f);
    if (fclose(f) == 0 && whole)
        return json;
    free(json);
    return NULL;
}

int compare_page(const char *path, const struct compare_row row[COMPARE_KINDS])
{
    size_t json_len, len = 0;
    char *json = make_json(row, &json_len);
    char *page = json ? page_fill(compare_page_html, compare_page_html_len, json, json_len, &len)
                      : NULL;
    int status = page ? page_write(path, page, len) : say_trouble("--html: out of memory");
    free(json);
    free(page);
    return status;
}
