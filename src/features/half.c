/* SPDX-License-Identifier: Apache-2.0 */
#include "features/half.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cpu.h"

/* All bits, or none. Selecting with these instead of branches, the loop below can be made of vectors. */
static inline uint32_t bits_if(int condition) {
    return 0 - (uint32_t)condition;
}

/* Adding a power of two pushes the bits that do not fit out of the mantissa, rounded by the processor's own rule. */
static inline __attribute__((always_inline)) uint16_t half_from_bits(uint32_t bits) {
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t size = bits & 0x7fffffff;
    /* Normal results: rebias the exponent, add half of the last kept place, less one when it is even already. */
    const uint32_t normal = (size - (UINT32_C(112) << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    /* Results below 2^-14 count in steps of 2^-24, which is the last place of a number in [0.5, 1). */
    float value;
    memcpy(&value, &size, sizeof value);
    value += 0.5f;
    uint32_t small;
    memcpy(&small, &value, sizeof small);
    small -= UINT32_C(0x3f000000);
    const uint32_t special = 0x7c00 | (bits_if(size > 0x7f800000) & (0x200 | (size >> 13 & 0x3ff)));
    const uint32_t is_small = bits_if(size < (UINT32_C(113) << 23));
    /* 65520 and above round to infinity. */
    const uint32_t is_special = bits_if(size >= 0x477ff000);
    const uint32_t result = (special & is_special) | (small & is_small) | (normal & ~is_special & ~is_small);
    return (uint16_t)(sign | result);
}

static void convert_c(const float *restrict from, size_t count, uint16_t *restrict to) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        to[i] = half_from_bits(bits);
    }
}

#if defined(__x86_64__)
/* Returns how many it has converted. */
__attribute__((target("avx2,f16c"))) static size_t convert_avx2(const float *from, size_t count, uint16_t *to) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return i;
}
#endif

void lns_half_from_float(const float *from, size_t count, uint16_t *to) {
    size_t done = 0;
#if defined(__x86_64__)
    lns_cpu_level level;
    if (lns_cpu_choose_level(&level) == LNS_OK && level >= LNS_CPU_AVX2)
        done = convert_avx2(from, count, to);
#endif
    convert_c(from + done, count - done, to + done);
}
