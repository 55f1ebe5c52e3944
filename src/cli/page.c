/* Pages: fill a template, write a file. */
#include "cli/page.h"
#include "cli/say.h"
#include "platform/assert.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mark[] = "@DATA@"; /* once, inside a script of type application/json */

char *page_fill(const unsigned char *html, size_t html_len, const char *json, size_t json_len,
                size_t *out_len)
{
    const char *p = (const char *)html, *at = memmem(p, html_len, mark, sizeof mark - 1);
    char *page = NULL;
    firn_assert(at, "template of %zu bytes has no mark", html_len);
    size_t before = (size_t)(at - p), after = before + sizeof mark - 1;
    FILE *f = open_memstream(&page, out_len);
    if (!f)
        return NULL;
    fwrite(p, 1, before, f);
    for (size_t i = 0; i < json_len; i++)
        if (json[i] == '<') /* could end the script element; JSON has it in strings only */
            fputs("\\u003c", f);
        else
            putc(json[i], f);
    fwrite(p + after, 1, html_len - after, f);
    bool whole = !ferror(f);
    if (fclose(f) == 0 && whole)
        return page;
    free(page);
    return NULL;
}

int page_write(const char *path, const char *page, size_t len)
{
    char shown[SAY_TEXT_BUF];
    FILE *f = fopen(path, "we");
    bool ok = f && fwrite(page, 1, len, f) == len && fflush(f) == 0;
    int error = errno;
    if (f && fclose(f) != 0 && ok) {
        ok = false;
        error = errno;
    }
    say_text(path, strlen(path), shown);
    if (!ok)
        return say_trouble("--html %s: %s: check the folder and its permissions", shown,
                           strerror(error));
    say_note("open %s in a browser", shown);
    return -1;
}
