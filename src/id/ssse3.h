/*
 * ssse3.h - alphabets as table look-ups, for x86-64 processors with SSSE3 (all since about 2008).
 * The instruction pshufb looks sixteen bytes up in a table of sixteen; an index with its top bit
 * set gives 0. So a larger alphabet is several tables whose answers are joined by OR, each asked
 * with an index that is moved out of range for what it does not have. Callers have a portable
 * path, too, and ask HAS_SSSE3() which to take: nothing is compiled for more than the
 * baseline.
 */
#ifndef FIRN_ID_SSSE3_H
#define FIRN_ID_SSSE3_H

#if defined(__x86_64__)

#include <tmmintrin.h>

#define SSSE3        __attribute__((target("ssse3")))
#define SSSE3_INLINE static inline SSSE3 __attribute__((always_inline))
#define HAS_SSSE3()  __builtin_cpu_supports("ssse3")

/* table[c - first] for the sixteen characters from `first` on, 0 for all others. */
SSSE3_INLINE __m128i ssse3_row(__m128i c, char first, __m128i table)
{
    __m128i at = _mm_sub_epi8(c, _mm_set1_epi8(first));
    return _mm_shuffle_epi8(table, _mm_adds_epu8(at, _mm_set1_epi8(0x70)));
}

/* Characters of digits 0..31. */
SSSE3_INLINE __m128i ssse3_chars(__m128i digits, __m128i first_16, __m128i last_16)
{
    __m128i low = _mm_shuffle_epi8(first_16, _mm_adds_epu8(digits, _mm_set1_epi8(0x70)));
    __m128i high = _mm_shuffle_epi8(last_16, _mm_sub_epi8(digits, _mm_set1_epi8(16)));
    return _mm_or_si128(low, high);
}

enum { SSSE3_FOUND = 0x40 }; /* in a table of digit values: this character is one */

/* Do all bytes have SSSE3_FOUND? */
SSSE3_INLINE int ssse3_all_found(__m128i v)
{
    return _mm_movemask_epi8(_mm_slli_epi16(v, 1)) == 0xffff;
}

#else

#define HAS_SSSE3() 0

#endif
#endif
