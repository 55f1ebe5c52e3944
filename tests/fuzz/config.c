/* Any text as firnd's YAML file: see config_round.h. */
#include "server/config.h"

#include "config_round.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c = { .base = { .program = &firnd_config, .file = strdup("fuzz.yaml") } };
    struct config again = { .base = { .program = &firnd_config, .file = strdup("fuzz.yaml") } };
    config_round(&c.base, &again.base, data, size);
    return 0;
}
