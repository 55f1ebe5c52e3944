/* A plugin that carries libfirn.a inside, for tests/unit/platform/unload.c. */
#include "firn/random.h"

__attribute__((visibility("default"))) unsigned long long plugin_draw(void);

unsigned long long plugin_draw(void)
{
    return firn_rng_u64(firn_rng_thread());
}
