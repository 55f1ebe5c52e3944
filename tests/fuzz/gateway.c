/* Any text as the gateway's YAML file: see config_round.h. */
#include "proxy/config.h"

#include "config_round.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c = { .base = { .program = &proxy_config, .file = strdup("fuzz.yaml") } };
    struct config again = { .base = { .program = &proxy_config, .file = strdup("fuzz.yaml") } };
    config_round(&c.base, &again.base, data, size);
    return 0;
}
