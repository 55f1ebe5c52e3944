/* Any text as the gateway's YAML file: it is refused with a reason, or what it sets can be printed,
 * loaded again and printed the same. */
#include <stdlib.h>
#include <string.h>

#include "proxy/config.h"
#include "daemon/config_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

/* Only the settings that came from the file: the others have no value here. */
static char *values(const struct config *c)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    check(f != NULL);
    for (size_t i = 0; i < proxy_config.settings_n; i++) {
        if (c->base.source[i].from != CONFIG_FILE)
            continue;
        const char *name = proxy_config.settings[i].name;
        size_t len = setting_section_len(name);
        bool first = len > 0;
        for (size_t k = 0; k < i && first; k++)
            first = c->base.source[k].from != CONFIG_FILE ||
                    strncmp(proxy_config.settings[k].name, name, len + 1) != 0;
        if (first)
            fprintf(f, "%.*s:\n", (int)len, name);
        fprintf(f, len ? "  %s: " : "%s: ", name + (len ? len + 1 : 0));
        setting_write(&c->base, &proxy_config.settings[i], f);
        fputc('\n', f);
    }
    check(fclose(f) == 0);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c = { .base = { .program = &proxy_config, .file = strdup("fuzz.yaml") } },
                  again = c;
    again.base.file = strdup("fuzz.yaml");
    struct firn_diag diag = { 0 };
    int r = config_yaml_read(&c.base, (const char *)data, size, &diag);
    if (r != 0) {
        check(r < 0 && diag.text[0] != '\0');
    } else {
        char *first = values(&c);
        check(config_yaml_read(&again.base, first, strlen(first), &diag) == 0);
        char *second = values(&again);
        check(strcmp(first, second) == 0);
        free(first);
        free(second);
    }
    config_free(&c.base);
    config_free(&again.base);
    return 0;
}
