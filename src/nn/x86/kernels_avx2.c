/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for AVX2 with FMA: 16 registers of eight floats. */
#include <immintrin.h>
#include <string.h>

#define LANES 8
typedef __m256 vec;
typedef int ivec __attribute__((vector_size(4 * LANES)));

#define ROWS 6
#define COLUMNS 2
/* As many tiles as leave the transformed input in a level 2 cache of 512 KB. */
#define TILES(inputs) ((inputs) <= 64 ? 30 : 18)
#define TABLE lns_nn_kernels_avx2
#define TABLE_NAME "avx2"

static inline vec vec_all(float x) {
    return _mm256_set1_ps(x);
}
static inline vec vec_fma(vec a, vec b, vec c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline vec vec_max(vec a, vec b) {
    return _mm256_max_ps(a, b);
}
static inline ivec vec_round(vec x) {
    return (ivec)_mm256_cvtps_epi32(x);
}
static inline vec vec_from_int(ivec x) {
    return _mm256_cvtepi32_ps((__m256i)x);
}

#include "nn/elements_float32.h"

#include "nn/kernels_tmpl.h"
