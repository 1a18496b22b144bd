/* SPDX-License-Identifier: Apache-2.0 */
/* The product of a few rows with a panel of weights: where nearly all of the time goes. Included by kernels_tmpl.h. */

/* The accumulators have names, not indices: clang 14 keeps arrays of them in memory, which takes 3.5 times as long. */
#if ROWS == 2
#define EACH_ROW(F) F(0) F(1)
#elif ROWS == 6
#define EACH_ROW(F) F(0) F(1) F(2) F(3) F(4) F(5)
#endif
#if COLUMNS == 2
#define EACH_COLUMN(F, r) F(r, 0) F(r, 1)
#elif COLUMNS == 4
#define EACH_COLUMN(F, r) F(r, 0) F(r, 1) F(r, 2) F(r, 3)
#endif

#define CLEAR(r, c) vec sum##r##c = vec_all(0.0f);
#define CLEAR_ROW(r) EACH_COLUMN(CLEAR, r)
#define LOAD_WEIGHT(r, c) const vec weight##c = vec_load(panel + (c) * LANES);
#define MULTIPLY(r, c) sum##r##c = vec_fma(x##r, weight##c, sum##r##c);
#define MULTIPLY_ROW(r)                                                                                                \
    const vec x##r = vec_all(rows[(size_t)(r) * row_stride + i]);                                                      \
    EACH_COLUMN(MULTIPLY, r)
#define STORE(r, c) vec_store(out + (size_t)(r) * out_stride + (c) * LANES, sum##r##c);
#define STORE_ROW(r) EACH_COLUMN(STORE, r)

/* out[r][k] = sum over i < inputs of rows[r][i] * panel[i][k], for ROWS rows and BLOCK outputs k. */
INLINE void multiply(const float *rows, size_t row_stride, const float *panel, int inputs, float *out,
                     size_t out_stride) {
    EACH_ROW(CLEAR_ROW)
#pragma GCC unroll 4
    for (int i = 0; i < inputs; i++) {
        EACH_COLUMN(LOAD_WEIGHT, 0)
        EACH_ROW(MULTIPLY_ROW)
        panel += BLOCK;
    }
    EACH_ROW(STORE_ROW)
}

/* weights (outputs x inputs) -> for each block of outputs a panel [inputs][BLOCK]. */
static void pack_conv1x1(const float *weights, int outputs, int inputs, float *packed) {
    for (int block = 0; block < outputs / BLOCK; block++)
        for (int i = 0; i < inputs; i++)
            for (int k = 0; k < BLOCK; k++)
                *packed++ = weights[(size_t)(block * BLOCK + k) * (size_t)inputs + (size_t)i];
}
