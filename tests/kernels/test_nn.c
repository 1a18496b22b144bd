/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel set of this CPU against plain loops in double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "nn/kernels.h"

static uint64_t random_state;

static double random_unit(void) { /* in [-1, 1) */
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(random_state >> 11) * 0x1p-52 - 1.0;
}

static float *random_array(size_t count, double scale) {
    float *array = lns_aligned_alloc(count * sizeof *array);
    for (size_t i = 0; i < count; i++)
        array[i] = (float)(random_unit() * scale);
    return array;
}

static float *zeros(size_t count) {
    float *array = lns_aligned_alloc(count * sizeof *array);
    memset(array, 0, count * sizeof *array);
    return array;
}

/* Leaves 8 bits, as many as bfloat16 holds: what is stored in it is then the same. */
static void shorten(float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int exponent;
        const double fraction = frexp(values[i], &exponent);
        values[i] = (float)ldexp(nearbyint(fraction * 256), exponent - 8);
    }
}

/* ---- 3 x 3 layers ------------------------------------------------------------------------------- */

typedef struct layer_case {
    int height, width, inputs, outputs, pool, first;
    double scale; /* of the inputs */
} layer_case;

typedef struct layer_data {
    layer_case shape;
    float *input;   /* (height + 2) x (width + 2) x inputs, zero border; for `first` computed from the picture */
    float *picture; /* (height + 4) x (width + 4) */
    float *first_weights, *first_bias, *weights, *bias;
    double *expected; /* out_height x out_width x outputs */
    double bound;     /* largest sum of absolute products: the scale of rounding errors */
} layer_data;

static float *input_at(const layer_data *d, int y, int x, int c) {
    return d->input + ((size_t)(y + 1) * (size_t)(d->shape.width + 2) + (size_t)(x + 1)) * (size_t)d->shape.inputs + c;
}

static void fill_inputs(layer_data *d) {
    const layer_case *s = &d->shape;
    const size_t picture_row = (size_t)s->width + 4;
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++)
            d->picture[(size_t)(y + 2) * picture_row + (size_t)(x + 2)] = (float)((random_unit() + 1) / 2 * s->scale);
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++)
            for (int c = 0; c < s->inputs; c++) {
                double value = random_unit() * s->scale;
                if (s->first) {
                    value = d->first_bias[c];
                    for (int i = 0; i < 9; i++)
                        value += (double)d->first_weights[i * 64 + c] *
                                 d->picture[(size_t)(y + 1 + i / 3) * picture_row + (size_t)(x + 1 + i % 3)];
                    value = value > 0 ? value : 0;
                }
                *input_at(d, y, x, c) = (float)value;
            }
    if (!s->first)
        shorten(d->input, (size_t)(s->height + 2) * (size_t)(s->width + 2) * (size_t)s->inputs);
}

static double convolve_plain(layer_data *d, int y, int x, int k) {
    const int inputs = d->shape.inputs;
    double sum = d->bias[k], size = fabs(d->bias[k]);
    for (int c = 0; c < inputs; c++)
        for (int i = 0; i < 9; i++) {
            const double product = (double)d->weights[((size_t)k * (size_t)inputs + (size_t)c) * 9 + (size_t)i] *
                                   *input_at(d, y + i / 3 - 1, x + i % 3 - 1, c);
            sum += product;
            size += fabs(product);
        }
    d->bound = size > d->bound ? size : d->bound;
    return sum > 0 ? sum : 0;
}

static layer_data make_layer(layer_case shape) {
    layer_data d = {.shape = shape};
    d.input = zeros((size_t)(shape.height + 2) * (size_t)(shape.width + 2) * (size_t)shape.inputs);
    d.picture = zeros((size_t)(shape.height + 4) * (size_t)(shape.width + 4));
    d.first_weights = random_array(9 * 64, 0.5);
    d.first_bias = random_array(64, 0.1);
    d.weights = random_array((size_t)shape.outputs * (size_t)shape.inputs * 9, 0.06);
    d.bias = random_array((size_t)shape.outputs, 0.1);
    fill_inputs(&d);
    const int step = shape.pool ? 2 : 1;
    const int out_height = shape.height / step, out_width = shape.width / step;
    d.expected = calloc((size_t)out_height * (size_t)out_width * (size_t)shape.outputs, sizeof(double));
    double *out = d.expected;
    for (int y = 0; y < out_height; y++)
        for (int x = 0; x < out_width; x++)
            for (int k = 0; k < shape.outputs; k++) {
                double best = 0;
                for (int i = 0; i < step * step; i++) {
                    const double value = convolve_plain(&d, y * step + i / step, x * step + i % step, k);
                    best = value > best ? value : best;
                }
                *out++ = best;
            }
    return d;
}

static void free_layer(layer_data *d) {
    lns_aligned_free(d->input);
    lns_aligned_free(d->picture);
    lns_aligned_free(d->first_weights);
    lns_aligned_free(d->first_bias);
    lns_aligned_free(d->weights);
    lns_aligned_free(d->bias);
    free(d->expected);
}

/* Elements of a kernel set: float32, or bfloat16, which is the upper half of one that was shortened. */
static void *to_elements(const float *values, size_t count, const lns_nn_kernels *kernels) {
    char *elements = lns_aligned_alloc(count * kernels->element_size);
    for (size_t i = 0; i < count; i++) {
        const char *value = (const char *)(values + i);
        memcpy(elements + i * kernels->element_size, value + sizeof(float) - kernels->element_size,
               kernels->element_size);
    }
    return elements;
}

static float element_at(const void *elements, size_t i, const lns_nn_kernels *kernels) {
    float value = 0;
    memcpy((char *)&value + sizeof value - kernels->element_size, (const char *)elements + i * kernels->element_size,
           kernels->element_size);
    return value;
}

static void *pack_layer(const layer_data *d, const lns_nn_kernels *kernels) {
    const size_t outputs = (size_t)d->shape.outputs;
    void *packed = lns_aligned_alloc(outputs * (size_t)d->shape.inputs * LNS_TILE_POINTS * kernels->element_size);
    for (size_t block = 0; block < outputs / kernels->outputs_block; block++)
        kernels->pack_conv3x3(d->weights, d->shape.inputs, block, packed);
    return packed;
}

/* Kernel sets with fused multiply-add round alike: the first one's result is kept and must be met by the others. */
typedef struct fused_result {
    float *values; /* NULL: none so far */
    size_t count;
} fused_result;

static void check_same_bits(fused_result *fused, const lns_nn_kernels *kernels, const void *values, size_t count) {
    if (kernels == &lns_nn_kernels_c || kernels->element_size != sizeof(float))
        return;
    if (fused->values == NULL) {
        fused->values = malloc(count * sizeof(float));
        fused->count = count;
        memcpy(fused->values, values, count * sizeof(float));
    }
    assert_int_equal(fused->count, count);
    assert_memory_equal(fused->values, values, count * sizeof(float));
}

static void forget(fused_result *fused) {
    free(fused->values);
    fused->values = NULL;
}

/* bfloat16 has 8 bits, and the transforms enlarge what is lost. */
static double allowed_share(const lns_nn_kernels *kernels) {
    return kernels->element_size == sizeof(float) ? 1e-6 : 1e-2;
}

static void check_layer(const layer_data *d, const lns_nn_kernels *kernels, fused_result *fused) {
    const layer_case *s = &d->shape;
    const int step = s->pool ? 2 : 1;
    const size_t out_height = (size_t)(s->height / step), out_width = (size_t)(s->width / step);
    const size_t outputs = (size_t)s->outputs, count = out_height * out_width * outputs;
    void *packed = pack_layer(d, kernels);
    /* Guards around the output: a kernel must write its pixels and nothing else. */
    const size_t guard = 16 * 64;
    const size_t size = kernels->element_size;
    char *buffer = lns_aligned_alloc((count + 2 * guard) * size);
    memset(buffer, 0xc7, (count + 2 * guard) * size);
    void *input = to_elements(d->input, (size_t)(s->height + 2) * (size_t)(s->width + 2) * (size_t)s->inputs, kernels);
    const lns_first_layer first = {d->picture, d->first_weights, d->first_bias};
    const lns_conv3x3 layer = {
        .height = s->height,
        .width = s->width,
        .inputs = s->inputs,
        .outputs = s->outputs,
        .pool = s->pool,
        .packed = packed,
        .bias = d->bias,
        .first = s->first ? &first : NULL,
        .input = s->first ? NULL : input,
        .output = buffer + guard * size,
        .output_row = out_width * outputs,
        .output_pixel = outputs,
    };
    void *scratch = lns_aligned_alloc(kernels->conv3x3_scratch(s->inputs));
    const size_t tiles = (size_t)(s->height / 4) * (size_t)(s->width / 4);
    const size_t at_a_time = kernels->conv3x3_tiles(s->inputs), blocks = outputs / kernels->outputs_block;
    for (size_t block = 0; block < (tiles + at_a_time - 1) / at_a_time; block++) {
        kernels->conv3x3(&layer, block, 0, blocks / 2, scratch);
        kernels->conv3x3(&layer, block, blocks / 2, blocks, scratch);
    }
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        const double error = fabs((double)element_at(buffer, guard + i, kernels) - d->expected[i]);
        worst = error > worst ? error : worst;
    }
    print_message("  %-11s %dx%d %d->%d pool %d first %d: error %.2e of %.3g\n", kernels->name, s->height, s->width,
                  s->inputs, s->outputs, s->pool, s->first, worst, d->bound);
    assert_true(worst <= allowed_share(kernels) * d->bound);
    for (size_t i = 0; i < guard * size; i++)
        assert_true(buffer[i] == (char)0xc7 && buffer[(guard + count) * size + i] == (char)0xc7);
    check_same_bits(fused, kernels, buffer + guard * size, count);
    lns_aligned_free(input);
    lns_aligned_free(scratch);
    lns_aligned_free(buffer);
    lns_aligned_free(packed);
}

/* The kernel sets that this CPU can run; the list ends with NULL. */
static const lns_nn_kernels *const *kernel_sets(void) {
    static const lns_nn_kernels *sets[LNS_CPU_AVX512 + 3];
    size_t count = 0;
    for (int level = LNS_CPU_C; level <= (int)lns_cpu_best_level(); level++)
        sets[count++] = lns_nn_kernels_for((lns_cpu_level)level, LNS_PRECISION_FP32);
    sets[count] = lns_nn_kernels_for(lns_cpu_best_level(), LNS_PRECISION_BF16);
    return sets;
}

static void conv3x3_equals_plain_loops(void **state) {
    (void)state;
    static const layer_case cases[] = {
        {4, 4, 64, 64, 0, 0, 1},      {4, 4, 64, 64, 1, 1, 1},     {8, 12, 64, 64, 1, 0, 1},
        {16, 20, 64, 128, 0, 0, 1},   {12, 40, 64, 64, 1, 1, 1},   {28, 36, 128, 128, 0, 0, 1},
        {24, 8, 128, 128, 1, 0, 1},   {4, 132, 128, 64, 0, 0, 1},  {44, 4, 64, 64, 0, 0, 1e18},
        {12, 16, 128, 64, 1, 0, 1e-18}, {8, 8, 64, 64, 1, 1, 1000},
    };
    random_state = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layer_data d = make_layer(cases[i]);
        fused_result fused = {NULL, 0};
        for (const lns_nn_kernels *const *set = kernel_sets(); *set != NULL; set++)
            check_layer(&d, *set, &fused);
        forget(&fused);
        free_layer(&d);
    }
}

static void bf16_kernels_were_tested(void **state) {
    (void)state;
    if (lns_nn_kernels_for(lns_cpu_best_level(), LNS_PRECISION_BF16) == NULL) {
        print_message("SKIP: this CPU has no AVX512_BF16, the bf16 kernels were not tested\n");
        skip();
    }
}

/* ---- Heads -------------------------------------------------------------------------------------- */

#define CELLS_X 7
#define CELLS_Y 5
#define CELLS (CELLS_X * CELLS_Y)
#define STRIDE 512

static double product(const float *row, const float *weights, float bias) {
    double sum = bias;
    for (int i = 0; i < LNS_HEAD_INPUTS; i++)
        sum += (double)row[i] * weights[i];
    return sum;
}

/* Inputs of one scale for each cell: flat, ordinary and extreme logits. */
static float *make_head_inputs(void) {
    static const double scales[] = {0, 1e-3, 1, 3, 10, 60};
    float *input = lns_aligned_alloc(CELLS * STRIDE * sizeof *input);
    for (size_t i = 0; i < CELLS * STRIDE; i++)
        input[i] = (float)(random_unit() * scales[i / STRIDE % 6]);
    shorten(input, CELLS * STRIDE);
    return input;
}

static void check_scores(const lns_nn_kernels *kernels, const float *input, const float *weights, const float *bias,
                         fused_result *fused) {
    void *elements = to_elements(input, CELLS * STRIDE, kernels);
    float *packed = zeros(64 * LNS_HEAD_INPUTS), *scores = zeros(CELLS * 64);
    kernels->pack_conv1x1(weights, 64, LNS_HEAD_INPUTS, packed);
    const lns_score_head head = {elements, STRIDE, CELLS_X, CELLS_Y, packed, bias, weights + 64 * LNS_HEAD_INPUTS,
                                 scores};
    kernels->score_head(&head, 0, 3);
    kernels->score_head(&head, 3, CELLS);
    double worst = 0;
    for (size_t cell = 0; cell < CELLS; cell++) {
        double logits[65], top = -1e300, sum = 0;
        for (int k = 0; k < 65; k++) {
            logits[k] = product(input + cell * STRIDE, weights + k * LNS_HEAD_INPUTS, bias[k]);
            top = logits[k] > top ? logits[k] : top;
        }
        for (int k = 0; k < 65; k++)
            sum += exp(logits[k] - top);
        for (size_t k = 0; k < 64; k++) {
            const double expected = exp(logits[k] - top) / sum;
            const float score = scores[(cell / CELLS_X * 8 + k / 8) * CELLS_X * 8 + cell % CELLS_X * 8 + k % 8];
            /* An error of the logits is a relative error of the score. */
            const double error = fabs(score - expected) / (expected + 1e-30);
            if (logits[k] - top > -80)
                worst = error > worst ? error : worst;
            assert_true(score >= 0 && score <= 1);
        }
    }
    print_message("  %-11s scores: relative error %.2e\n", kernels->name, worst);
    /* Logits up to 500 with 24 bits: 3e-5, times the terms of the sum. */
    assert_true(worst < 2e-4);
    check_same_bits(fused, kernels, scores, CELLS * 64);
    lns_aligned_free(elements);
    lns_aligned_free(packed);
    lns_aligned_free(scores);
}

/* Every third cell alone: the same bits in its row, and nothing in the others. */
static void check_wanted_cells(const lns_nn_kernels *kernels, const lns_descriptor_head *all) {
    float *rows = zeros(CELLS * 256);
    uint16_t cells[CELLS / 3 + 1];
    size_t count = 0;
    for (size_t cell = 1; cell < CELLS; cell += 3)
        cells[count++] = (uint16_t)cell;
    lns_descriptor_head some = *all;
    some.descriptors = rows;
    some.cells = cells;
    kernels->descriptor_head(&some, 0, 4);
    kernels->descriptor_head(&some, 4, count);
    for (size_t i = 0; i < CELLS * 256; i++)
        assert_true(rows[i] == (i / 256 % 3 == 1 ? all->descriptors[i] : 0.0f));
    lns_aligned_free(rows);
}

static void check_descriptors(const lns_nn_kernels *kernels, const float *input, const float *weights,
                              const float *bias, fused_result *fused) {
    void *elements = to_elements(input, CELLS * STRIDE, kernels);
    float *packed = zeros(256 * LNS_HEAD_INPUTS), *descriptors = zeros(CELLS * 256);
    kernels->pack_conv1x1(weights, 256, LNS_HEAD_INPUTS, packed);
    const lns_descriptor_head head = {elements, STRIDE, packed, bias, descriptors, NULL};
    kernels->descriptor_head(&head, 0, 13);
    kernels->descriptor_head(&head, 13, CELLS);
    double worst = 0;
    for (size_t cell = 0; cell < CELLS; cell++) {
        double expected[256], squares = 0;
        for (int k = 0; k < 256; k++) {
            expected[k] = product(input + cell * STRIDE, weights + k * LNS_HEAD_INPUTS, bias[k]);
            squares += expected[k] * expected[k];
        }
        for (size_t k = 0; k < 256; k++) {
            const double error = fabs(descriptors[cell * 256 + k] - expected[k] / sqrt(squares));
            worst = error > worst ? error : worst;
        }
    }
    check_wanted_cells(kernels, &head);
    print_message("  %-11s descriptors: error %.2e\n", kernels->name, worst);
    assert_true(worst < 1e-6);
    check_same_bits(fused, kernels, descriptors, CELLS * 256);
    lns_aligned_free(elements);
    lns_aligned_free(packed);
    lns_aligned_free(descriptors);
}

static void heads_equal_plain_loops(void **state) {
    (void)state;
    random_state = 2;
    float *input = make_head_inputs();
    float *weights = random_array(256 * LNS_HEAD_INPUTS, 0.3), *bias = random_array(256, 1);
    shorten(weights, 256 * LNS_HEAD_INPUTS);
    fused_result scores = {NULL, 0}, descriptors = {NULL, 0};
    for (const lns_nn_kernels *const *set = kernel_sets(); *set != NULL; set++) {
        check_scores(*set, input, weights, bias, &scores);
        check_descriptors(*set, input, weights, bias, &descriptors);
    }
    forget(&scores);
    forget(&descriptors);
    lns_aligned_free(input);
    lns_aligned_free(weights);
    lns_aligned_free(bias);
}

static void zero_descriptor_stays_zero(void **state) {
    (void)state;
    float *input = zeros(LNS_HEAD_INPUTS), *weights = zeros(256 * LNS_HEAD_INPUTS), *bias = zeros(256);
    float *out = random_array(256, 1);
    for (const lns_nn_kernels *const *set = kernel_sets(); *set != NULL; set++) {
        const lns_descriptor_head head = {input, LNS_HEAD_INPUTS, weights, bias, out, NULL};
        (*set)->descriptor_head(&head, 0, 1);
        for (int k = 0; k < 256; k++)
            assert_true(out[k] == 0.0f);
    }
    lns_aligned_free(input);
    lns_aligned_free(weights);
    lns_aligned_free(bias);
    lns_aligned_free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv3x3_equals_plain_loops),
        cmocka_unit_test(bf16_kernels_were_tested),
        cmocka_unit_test(heads_equal_plain_loops),
        cmocka_unit_test(zero_descriptor_stays_zero),
    };
    return cmocka_run_group_tests_name("nn kernels", tests, NULL, NULL);
}
