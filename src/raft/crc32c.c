/*
 * CRC-32C: the processor's instruction where there is one (SSE 4.2), else a table.
 * The table is computed by the first caller; every thread computes the same values.
 */
#include "raft/crc32c.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static uint32_t table[256];
static atomic_bool table_made;

static uint32_t by_table(uint32_t c, const unsigned char *p, size_t len)
{
    if (!atomic_load_explicit(&table_made, memory_order_acquire)) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t v = i;
            for (int k = 0; k < 8; k++)
                v = v >> 1 ^ (v & 1 ? UINT32_C(0x82f63b78) : 0);
            __atomic_store_n(&table[i], v, __ATOMIC_RELAXED);
        }
        atomic_store_explicit(&table_made, true, memory_order_release);
    }
    while (len-- > 0)
        c = c >> 8 ^ __atomic_load_n(&table[(c ^ *p++) & 255], __ATOMIC_RELAXED);
    return c;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t c, const unsigned char *p,
                                                                 size_t len)
{
    uint64_t wide = c, v;
    for (; len >= sizeof v; p += sizeof v, len -= sizeof v) {
        memcpy(&v, p, sizeof v);
        wide = _mm_crc32_u64(wide, v);
    }
    for (c = (uint32_t)wide; len > 0; len--)
        c = _mm_crc32_u8(c, *p++);
    return c;
}

#else

static uint32_t by_instruction(uint32_t c, const unsigned char *p, size_t len)
{
    return by_table(c, p, len);
}

#endif

static bool has_instruction(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#else
    return false;
#endif
}

uint32_t crc32c(uint32_t crc, const void *p, size_t len)
{
    return ~(has_instruction() ? by_instruction : by_table)(~crc, p, len);
}

uint32_t crc32c_by_table(uint32_t crc, const void *p, size_t len)
{
    return ~by_table(~crc, p, len);
}
