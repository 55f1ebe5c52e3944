/* config_round.h - any text as a YAML file: it is refused with a reason, or what it sets can be
 * printed, loaded again and printed the same. For the fuzz targets of programs. */
#ifndef FIRN_TESTS_FUZZ_CONFIG_ROUND_H
#define FIRN_TESTS_FUZZ_CONFIG_ROUND_H

#include "daemon/config_in.h"

#include <stdlib.h>
#include <string.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

/* Only the settings that came from the file: the others have no value here. */
static char *values(const struct config_base *c)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    check(f != NULL);
    for (size_t i = 0; i < c->program->settings_n; i++) {
        if (c->source[i].from != CONFIG_FILE)
            continue;
        const char *name = c->program->settings[i].name;
        size_t len = setting_section_len(name);
        bool first = len > 0;
        for (size_t k = 0; k < i && first; k++)
            first = c->source[k].from != CONFIG_FILE ||
                    strncmp(c->program->settings[k].name, name, len + 1) != 0;
        if (first)
            fprintf(f, "%.*s:\n", (int)len, name);
        fprintf(f, len ? "  %s: " : "%s: ", name + (len ? len + 1 : 0));
        setting_write(c, &c->program->settings[i], f);
        fputc('\n', f);
    }
    check(fclose(f) == 0);
    return text;
}

/* `c` and `again` are two empty configurations of a program. */
static void config_round(struct config_base *c, struct config_base *again, const uint8_t *data,
                         size_t size)
{
    struct firn_diag diag = { 0 };
    int r = config_yaml_read(c, (const char *)data, size, &diag);
    if (r != 0) {
        check(r < 0 && diag.text[0] != '\0');
    } else {
        char *first = values(c);
        check(config_yaml_read(again, first, strlen(first), &diag) == 0);
        char *second = values(again);
        check(strcmp(first, second) == 0);
        free(first);
        free(second);
    }
    config_free(c);
    config_free(again);
}

#endif
