/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for AVX-512 with BF16: pairs of bfloat16 are multiplied and added to float32. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define ROWS 6
#define COLUMNS 4
#define TILES(inputs) 30
#define TABLE lns_nn_kernels_avx512_bf16
#define TABLE_NAME "avx512_bf16"
#include "nn/x86/vectors_avx512.h"

#include "nn/vectors.h"

typedef uint16_t element; /* the upper half of a float32 */
#define STEP 2
typedef __m512bh operand;

INLINE vec load_elements(const element *p) {
    const __m256i halves = _mm256_load_si256((const __m256i *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

INLINE void store_elements(element *p, vec x) {
    _mm256_store_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(x));
}

/* To the nearest, ties to even; not for NaN. */
INLINE element to_element(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (element)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* STEP elements, the same in all lanes. */
INLINE operand repeat_elements(const element *p) {
    int pair;
    memcpy(&pair, p, sizeof pair);
    return (operand)_mm512_set1_epi32(pair);
}

INLINE operand load_weights(const element *p) {
    return (operand)_mm512_load_si512(p);
}

INLINE vec multiply_add(operand inputs, operand weights, vec sum) {
    return _mm512_dpbf16_ps(sum, inputs, weights);
}

#include "nn/kernels_tmpl.h"
