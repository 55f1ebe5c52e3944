/* The page of firn compare: the figures as JSON, and the file. */
#include "cli/compare/compare_page.h"
#include "cli/compare/compare_report.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/say.h"
#include "cli/when.h"

#include <stdlib.h>

int compare_page(const char *path, const struct compare_row row[COMPARE_KINDS])
{
    char when[WHEN_BUF], *page = NULL;
    size_t len = 0;
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_text(&j, "at", when_utc(when_now_us(), when));
    compare_put_json(&j, row);
    json_end(&j, '}');
    if (!j.failed)
        page = page_fill(compare_page_html, compare_page_html_len, j.p, j.len, &len);
    int status = page ? page_write(path, page, len) : say_trouble("--html: out of memory");
    buf_done(&j);
    free(page);
    return status;
}
