/* SipHash-2-4 against the values that its authors published: key 00 01 .. 0f, input 00 01 .. */
#include "proxy/siphash.h"
#include "t.h"

T_TEST(published_values)
{
    static const uint64_t want[] = {
        UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd), UINT64_C(0x0d6c8009d9a94f5a),
        UINT64_C(0x85676696d7fb7e2d), UINT64_C(0xcf2794e0277187b7), UINT64_C(0x18765564cd99a68d),
        UINT64_C(0xcbc9466e58fee3ce), UINT64_C(0xab0200f58b01d137), UINT64_C(0x93f5f5799a932462),
    };
    const struct siphash_key key = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
    uint8_t in[16];
    for (uint8_t i = 0; i < 16; i++)
        in[i] = i;
    for (size_t n = 0; n < T_LEN(want); n++)
        T_OK(siphash(key, in, n) == want[n], "length %zu", n);
    T_OK(siphash(key, in, 15) == UINT64_C(0xa129ca6149be45e5)); /* of the paper's appendix */
}
