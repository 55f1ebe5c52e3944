/* Messages between members and configurations, from anybody: taken whole or refused, and what is
 * taken is written as the same bytes. */
#include "raft/core/core.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char again[CORE_MESSAGE_BYTES_MAX];
    static struct core_message_room room;
    struct core_message m;
    struct core_config config;
    if (message_read((const char *)data, size, &m, &room) == 0 &&
        (message_write(&m, again, sizeof again) != size || memcmp(again, data, size) != 0))
        abort();
    if (config_read((const char *)data, size, &config) == 0 &&
        (config_write(&config, again, sizeof again) != size || memcmp(again, data, size) != 0))
        abort();
    return 0;
}
