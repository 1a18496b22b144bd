/* SPDX-License-Identifier: Apache-2.0 */
#include "features/matching.h"

#include <lensing/features.h>

#define PANEL LNS_MATCH_PANEL

/* Adds one product to each number of sum `n`, which belongs to row n / columns and to part n % columns of the panel. */
#define ADD(n, columns) sum##n += descriptors[((n) / (columns)) * LNS_DESCRIPTOR_SIZE + k] * column[(n) % (columns)];
#define STORE(n) out[n] = sum##n;

/* Defines multiply_<name>() for vectors of `width` numbers. Eight sums fit into the registers of every CPU, and are
 * enough to hide the time that an addition takes; `rows` of them cover the width of a panel. */
#define KERNEL(name, target, width)                                                                                    \
    typedef float vector_##name __attribute__((vector_size((width) * sizeof(float))));                                 \
    typedef vector_##name unaligned_##name __attribute__((aligned(sizeof(float)), may_alias));                         \
    target static inline __attribute__((always_inline)) void some_rows_##name(const float *descriptors,                \
                                                                              const float *panel, float *products) {   \
        vector_##name sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};                                                  \
        vector_##name sum4 = {0}, sum5 = {0}, sum6 = {0}, sum7 = {0};                                                  \
        for (size_t k = 0; k < LNS_DESCRIPTOR_SIZE; k++) {                                                             \
            const unaligned_##name *column = (const unaligned_##name *)(panel + k * PANEL);                            \
            ADD(0, PANEL / (width))                                                                                    \
            ADD(1, PANEL / (width))                                                                                    \
            ADD(2, PANEL / (width))                                                                                    \
            ADD(3, PANEL / (width))                                                                                    \
            ADD(4, PANEL / (width))                                                                                    \
            ADD(5, PANEL / (width))                                                                                    \
            ADD(6, PANEL / (width))                                                                                    \
            ADD(7, PANEL / (width))                                                                                    \
        }                                                                                                              \
        unaligned_##name *out = (unaligned_##name *)products;                                                          \
        STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7)                                        \
    }                                                                                                                  \
    target static void multiply_##name(const float *descriptors, const float *panel, float *products) {                \
        const size_t rows = 8 * (width) / PANEL;                                                                       \
        for (size_t r = 0; r < LNS_MATCH_ROWS; r += rows)                                                              \
            some_rows_##name(descriptors + r * LNS_DESCRIPTOR_SIZE, panel, products + r * PANEL);                      \
    }

KERNEL(c, , 4)

#if defined(__x86_64__)
/* Without FMA, which would round differently. */
KERNEL(avx2, __attribute__((target("avx2"))), 8)
KERNEL(avx512, __attribute__((target("avx512f"))), 16)
#endif

lns_match_kernel lns_match_kernel_get(lns_cpu_level level) {
#if defined(__x86_64__)
    if (level >= LNS_CPU_AVX512)
        return multiply_avx512;
    if (level >= LNS_CPU_AVX2)
        return multiply_avx2;
#endif
    (void)level;
    return multiply_c;
}
