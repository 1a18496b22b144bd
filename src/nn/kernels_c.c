/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for any CPU: vectors of four floats, which compilers turn into what the baseline of the architecture has (SSE2,
 * NEON), or into plain arithmetic. */
#include <string.h>

#define LANES 4
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));

/* One accumulator for each of ROWS tiles and COLUMNS vectors of outputs. */
#define ROWS 2
#define COLUMNS 4
#define TILES(inputs) 30
#define TABLE lns_nn_kernels_c
#define TABLE_NAME "c"

static inline vec vec_all(float x) {
    return (vec){x, x, x, x};
}

#if defined(__aarch64__)
#include <arm_neon.h>
static inline vec vec_fma(vec a, vec b, vec c) {
    return vfmaq_f32(c, a, b);
}
static inline vec vec_max(vec a, vec b) {
    return vmaxq_f32(a, b);
}
#else
static inline vec vec_fma(vec a, vec b, vec c) {
    return a * b + c;
}
static inline vec vec_max(vec a, vec b) {
    const ivec a_larger = a > b;
    return (vec)(((ivec)a & a_larger) | ((ivec)b & ~a_larger));
}
#endif

/* Nearest whole number, for |x| < 2^22. */
static inline ivec vec_round(vec x) {
    const vec magic = vec_all(12582912.0f); /* 1.5 * 2^23: the sum has no room for a fraction */
    return (ivec)(x + magic) - (ivec)magic;
}

static inline vec vec_from_int(ivec x) {
    return __builtin_convertvector(x, vec);
}

#include "nn/elements_float32.h"

#include "nn/kernels_tmpl.h"
