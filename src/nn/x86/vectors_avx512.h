/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of the kernel sets for AVX-512: 32 registers of sixteen floats. */
#define LANES 16
typedef __m512 vec;
typedef int ivec __attribute__((vector_size(4 * LANES)));

static inline vec vec_all(float x) {
    return _mm512_set1_ps(x);
}
static inline vec vec_fma(vec a, vec b, vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
static inline vec vec_max(vec a, vec b) {
    return _mm512_max_ps(a, b);
}
static inline ivec vec_round(vec x) {
    return (ivec)_mm512_cvtps_epi32(x);
}
static inline vec vec_from_int(ivec x) {
    return _mm512_cvtepi32_ps((__m512i)x);
}
