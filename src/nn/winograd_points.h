/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of Winograd F(4x4, 3x3) along one side of a tile. Included behind BLOCK, vec, vec_all and vec_fma.
 *
 * With points p = 0, a, -a, b, -b, infinity (a = sqrt(1/2), b = sqrt(2), so that a b = 1):
 *   inputs   row i: coefficients of the product over k != i of (x - p_k); last row: of the product over all
 *   weights  row i: p_i^j / product over k != i of (p_i - p_k); last row: 0 0 1
 *   outputs  row k: p_i^k; last column: 0 0 0 1
 */

#define POINT_A 0.70710678118654752440
#define POINT_B 1.41421356237309504880

/* Transform of 3 weights, for BLOCK outputs side by side. */
INLINE void transform_weights(double out[LNS_TILE_INPUT][BLOCK], const double in[3][BLOCK]) {
    const double a2 = POINT_A * POINT_A, b2 = POINT_B * POINT_B;
    const double over_zero = 1.0 / (a2 * b2), over_a = 1.0 / (2 * a2 * (a2 - b2)), over_b = 1.0 / (2 * b2 * (b2 - a2));
    for (int k = 0; k < BLOCK; k++) {
        const double even_a = (in[0][k] + a2 * in[2][k]) * over_a, odd_a = POINT_A * in[1][k] * over_a;
        const double even_b = (in[0][k] + b2 * in[2][k]) * over_b, odd_b = POINT_B * in[1][k] * over_b;
        out[0][k] = in[0][k] * over_zero;
        out[1][k] = even_a + odd_a;
        out[2][k] = even_a - odd_a;
        out[3][k] = even_b + odd_b;
        out[4][k] = even_b - odd_b;
        out[5][k] = in[2][k];
    }
}

INLINE void transform_inputs(vec *out, const vec *in) {
    const vec a = vec_all((float)POINT_A), b = vec_all((float)POINT_B);
    const vec minus_a2 = vec_all(-0.5f), minus_b2 = vec_all(-2.0f), minus_both = vec_all(-2.5f);
    const vec even_a = vec_fma(minus_b2, in[2], in[4]), odd_a = a * vec_fma(minus_b2, in[1], in[3]);
    const vec even_b = vec_fma(minus_a2, in[2], in[4]), odd_b = b * vec_fma(minus_a2, in[1], in[3]);
    out[0] = in[0] + vec_fma(minus_both, in[2], in[4]);
    out[1] = even_a + odd_a;
    out[2] = even_a - odd_a;
    out[3] = even_b + odd_b;
    out[4] = even_b - odd_b;
    out[5] = in[1] + vec_fma(minus_both, in[3], in[5]);
}

INLINE void transform_outputs(vec *out, const vec *in) {
    const vec a = vec_all((float)POINT_A), a2 = vec_all(0.5f), a3 = vec_all((float)(POINT_A * 0.5));
    const vec b = vec_all((float)POINT_B), b2 = vec_all(2.0f), b3 = vec_all((float)(POINT_B * 2.0));
    const vec even_a = in[1] + in[2], odd_a = in[1] - in[2];
    const vec even_b = in[3] + in[4], odd_b = in[3] - in[4];
    out[0] = in[0] + even_a + even_b;
    out[1] = vec_fma(b, odd_b, a * odd_a);
    out[2] = vec_fma(b2, even_b, a2 * even_a);
    out[3] = vec_fma(b3, odd_b, vec_fma(a3, odd_a, in[5]));
}
