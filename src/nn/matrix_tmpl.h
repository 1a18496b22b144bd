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
#define LOAD_WEIGHT(r, c) const operand weight##c = load_weights(panel + (c) * LANES * STEP);
#define MULTIPLY(r, c) sum##r##c = multiply_add(x##r, weight##c, sum##r##c);
#define MULTIPLY_ROW(r)                                                                                                \
    const operand x##r = repeat_elements(rows + (size_t)(r) * row_stride + i);                                         \
    EACH_COLUMN(MULTIPLY, r)
#define STORE(r, c) vec_store(out + (size_t)(r) * out_stride + (c) * LANES, sum##r##c);
#define STORE_ROW(r) EACH_COLUMN(STORE, r)

/* out[r][k] = sum over i < inputs of rows[r][i] * panel[i][k], for ROWS rows and BLOCK outputs k. */
INLINE void multiply(const element *rows, size_t row_stride, const element *panel, int inputs, float *out,
                     size_t out_stride) {
    EACH_ROW(CLEAR_ROW)
#pragma GCC unroll 4
    for (int i = 0; i < inputs; i += STEP) {
        EACH_COLUMN(LOAD_WEIGHT, 0)
        EACH_ROW(MULTIPLY_ROW)
        panel += BLOCK * STEP;
    }
    EACH_ROW(STORE_ROW)
}

/* For multiply_in_registers(), of which a compiler would leave little: hides that a vector keeps its value, so that
 * products with it are not taken out of loops, and that memory is not read or written elsewhere. */
#if defined(__x86_64__)
#define FORGET(x) __asm__ volatile("" : "+v"(x))
#elif defined(__aarch64__)
#define FORGET(x) __asm__ volatile("" : "+w"(x))
#else
#define FORGET(x) __asm__ volatile("" : "+m"(x))
#endif
#define EXPOSE(array) __asm__ volatile("" : : "r"(array) : "memory")
#define REPEAT(r, c) sum##r##c = multiply_add(x, weight##c, sum##r##c);
#define REPEAT_ROW(r)                                                                                                  \
    FORGET(x);                                                                                                         \
    EACH_COLUMN(REPEAT, r)

static double multiply_in_registers(size_t rounds) {
    element panel[BLOCK * STEP] __attribute__((aligned(LNS_KERNEL_ALIGNMENT)));
    float out[ROWS * BLOCK] __attribute__((aligned(LNS_KERNEL_ALIGNMENT)));
    const size_t out_stride = BLOCK;
    for (size_t i = 0; i < BLOCK * STEP; i++)
        panel[i] = to_element(1.0f);
    EXPOSE(panel);
    operand x = repeat_elements(panel);
    EACH_COLUMN(LOAD_WEIGHT, 0)
    EACH_ROW(CLEAR_ROW)
    for (size_t i = 0; i < rounds; i++) {
        EACH_ROW(REPEAT_ROW)
    }
    EACH_ROW(STORE_ROW)
    EXPOSE(out);
    return 2.0 * STEP * ROWS * BLOCK * (double)rounds;
}

/* Place of an input and an output of a block in its panel [inputs / STEP][BLOCK][STEP]. */
INLINE size_t panel_place(size_t input, size_t output) {
    return (input - input % STEP) * BLOCK + output * STEP + input % STEP;
}

/* weights (outputs x inputs) -> a panel for each block of outputs. */
static void pack_conv1x1(const float *weights, int outputs, int inputs, void *packed) {
    element *panel = packed;
    for (size_t block = 0; block < (size_t)outputs / BLOCK; block++, panel += (size_t)inputs * BLOCK)
        for (size_t k = 0; k < BLOCK; k++)
            for (size_t i = 0; i < (size_t)inputs; i++)
                panel[panel_place(i, k)] = to_element(*weights++);
}
