/* SPDX-License-Identifier: Apache-2.0 */
/* 3 x 3 convolution by Winograd F(4x4, 3x3). Included by kernels_tmpl.h.
 *
 * A block of tiles goes through three steps, all in the level 2 cache:
 *   V[36][tiles][inputs]   transformed inputs
 *   M[36][tiles][BLOCK]    36 matrix products of V with the transformed weights of BLOCK outputs
 *   output                 transformed back, bias, ReLU, maybe pooled
 */

#include "nn/winograd_points.h"

#define SEGMENT 8 /* tiles of a row whose columns are transformed together: neighbours share two columns */
#define PAD 64    /* bytes between the 36 parts, so that they do not fall on the same cache sets */

/* ---- Weights ------------------------------------------------------------------------------------ */

static void pack_conv3x3(const float *weights, int inputs, size_t block, void *packed) {
    element *panels = (element *)packed + block * LNS_TILE_POINTS * (size_t)inputs * BLOCK;
    weights += block * BLOCK * (size_t)inputs * 9;
    for (int i = 0; i < inputs; i++) {
        double kernel[3][3][BLOCK], rows[3][LNS_TILE_INPUT][BLOCK], column[3][BLOCK], point[LNS_TILE_INPUT][BLOCK];
        for (int k = 0; k < BLOCK; k++)
            for (int j = 0; j < 9; j++)
                kernel[j / 3][j % 3][k] = weights[((size_t)k * (size_t)inputs + (size_t)i) * 9 + (size_t)j];
        for (int y = 0; y < 3; y++)
            transform_weights(rows[y], kernel[y]);
        for (int x = 0; x < LNS_TILE_INPUT; x++) {
            for (int y = 0; y < 3; y++)
                memcpy(column[y], rows[y][x], sizeof column[y]);
            transform_weights(point, column);
            for (int y = 0; y < LNS_TILE_INPUT; y++) {
                element *panel = panels + (size_t)(y * LNS_TILE_INPUT + x) * (size_t)inputs * BLOCK;
                for (int k = 0; k < BLOCK; k++)
                    panel[panel_place((size_t)i, (size_t)k)] = to_element((float)point[y][k]);
            }
        }
    }
}

/* ---- Inputs ------------------------------------------------------------------------------------- */

/* Six values of the first layer, one below the other: rows 4 `tile_y` - 1 ..., column `x` of the picture, channels from
 * `channel`. Outside the picture the next layer sees zeros. */
INLINE void first_layer_column(const lns_conv3x3 *layer, int tile_y, int x, int channel, vec *out) {
    const lns_first_layer *first = layer->first;
    const size_t picture_row = (size_t)layer->width + 2 * LNS_FIRST_BORDER;
    const float *pixels = first->picture + (size_t)(LNS_TILE_OUTPUT * tile_y) * picture_row + (size_t)(x + 1);
    const vec zero = vec_all(0.0f);
    if (x < 0 || x >= layer->width) {
        for (int y = 0; y < LNS_TILE_INPUT; y++)
            out[y] = zero;
        return;
    }
    const vec bias = vec_load(first->bias + channel);
    vec sum[LNS_TILE_INPUT];
#pragma GCC unroll 6
    for (int y = 0; y < LNS_TILE_INPUT; y++)
        sum[y] = bias;
#pragma GCC unroll 3
    for (int dx = 0; dx < 3; dx++) {
        const vec weight0 = vec_load(first->weights + (0 * 3 + dx) * LNS_FIRST_OUTPUTS + channel);
        const vec weight1 = vec_load(first->weights + (1 * 3 + dx) * LNS_FIRST_OUTPUTS + channel);
        const vec weight2 = vec_load(first->weights + (2 * 3 + dx) * LNS_FIRST_OUTPUTS + channel);
#pragma GCC unroll 8
        for (int y = 0; y < LNS_TILE_INPUT + 2; y++) {
            const vec pixel = vec_all(pixels[(size_t)y * picture_row + (size_t)dx]);
            if (y < LNS_TILE_INPUT)
                sum[y] = vec_fma(pixel, weight0, sum[y]);
            if (y >= 1 && y <= LNS_TILE_INPUT)
                sum[y - 1] = vec_fma(pixel, weight1, sum[y - 1]);
            if (y >= 2)
                sum[y - 2] = vec_fma(pixel, weight2, sum[y - 2]);
        }
    }
#pragma GCC unroll 6
    for (int y = 0; y < LNS_TILE_INPUT; y++)
        out[y] = vec_max(sum[y], zero);
    if (tile_y == 0)
        out[0] = zero;
    if (tile_y == layer->height / LNS_TILE_OUTPUT - 1)
        out[LNS_TILE_INPUT - 1] = zero;
}

/* Transforms `count` <= SEGMENT neighbouring tiles into V, from tile `slot` of the block on. */
INLINE void transform_segment(const lns_conv3x3 *layer, int inputs, int from_picture, int tile_y, int tile_x, int count,
                              element *v, size_t v_part) {
    const size_t input_row = (size_t)(layer->width + 2) * (size_t)inputs;
    for (int channel = 0; channel < inputs; channel += LANES) {
        vec columns[(LNS_TILE_OUTPUT * SEGMENT + 2) * LNS_TILE_INPUT];
        for (int x = 0; x < LNS_TILE_OUTPUT * count + 2; x++) {
            vec in[LNS_TILE_INPUT];
            if (from_picture) {
                first_layer_column(layer, tile_y, LNS_TILE_OUTPUT * tile_x + x - 1, channel, in);
            } else {
                const element *pixel = (const element *)layer->input + (size_t)(LNS_TILE_OUTPUT * tile_y) * input_row +
                                       (size_t)(LNS_TILE_OUTPUT * tile_x + x) * (size_t)inputs + channel;
#pragma GCC unroll 6
                for (int y = 0; y < LNS_TILE_INPUT; y++)
                    in[y] = load_elements(pixel + (size_t)y * input_row);
            }
            transform_inputs(columns + x * LNS_TILE_INPUT, in);
        }
        for (int t = 0; t < count; t++) {
            element *out = v + (size_t)t * (size_t)inputs + (size_t)channel;
#pragma GCC unroll 6
            for (int y = 0; y < LNS_TILE_INPUT; y++) {
                vec in[LNS_TILE_INPUT], points[LNS_TILE_INPUT];
#pragma GCC unroll 6
                for (int x = 0; x < LNS_TILE_INPUT; x++)
                    in[x] = columns[(LNS_TILE_OUTPUT * t + x) * LNS_TILE_INPUT + y];
                transform_inputs(points, in);
#pragma GCC unroll 6
                for (int x = 0; x < LNS_TILE_INPUT; x++)
                    store_elements(out + (size_t)(y * LNS_TILE_INPUT + x) * v_part, points[x]);
            }
        }
    }
}

/* ---- Outputs ------------------------------------------------------------------------------------ */

/* LANES outputs of one tile. `out`: the first of its pixels. */
INLINE void transform_tile(const float *m, size_t m_part, vec bias, int pool, element *out, size_t out_row,
                           size_t out_pixel) {
    const vec zero = vec_all(0.0f);
    vec rows[LNS_TILE_OUTPUT][LNS_TILE_INPUT];
#pragma GCC unroll 6
    for (int x = 0; x < LNS_TILE_INPUT; x++) {
        vec in[LNS_TILE_INPUT], column[LNS_TILE_OUTPUT];
#pragma GCC unroll 6
        for (int y = 0; y < LNS_TILE_INPUT; y++)
            in[y] = vec_load(m + (size_t)(y * LNS_TILE_INPUT + x) * m_part);
        transform_outputs(column, in);
#pragma GCC unroll 4
        for (int y = 0; y < LNS_TILE_OUTPUT; y++)
            rows[y][x] = column[y];
    }
#pragma GCC unroll 2
    for (int y = 0; y < LNS_TILE_OUTPUT; y += 2) {
        vec upper[LNS_TILE_OUTPUT], lower[LNS_TILE_OUTPUT];
        transform_outputs(upper, rows[y]);
        transform_outputs(lower, rows[y + 1]);
        if (pool) {
            /* Bias and ReLU keep order, so the maximum can come first. */
            const vec left = vec_max(vec_max(upper[0], upper[1]), vec_max(lower[0], lower[1]));
            const vec right = vec_max(vec_max(upper[2], upper[3]), vec_max(lower[2], lower[3]));
            element *pixel = out + (size_t)(y / 2) * out_row;
            store_elements(pixel, vec_max(left + bias, zero));
            store_elements(pixel + out_pixel, vec_max(right + bias, zero));
        } else {
            element *pixel = out + (size_t)y * out_row;
#pragma GCC unroll 4
            for (int x = 0; x < LNS_TILE_OUTPUT; x++) {
                store_elements(pixel + (size_t)x * out_pixel, vec_max(upper[x] + bias, zero));
                store_elements(pixel + out_row + (size_t)x * out_pixel, vec_max(lower[x] + bias, zero));
            }
        }
    }
}

/* ---- A block of tiles --------------------------------------------------------------------------- */

/* Elements and floats of one of the 36 parts. */
#define V_PART(inputs) ((size_t)TILES(inputs) * (size_t)(inputs) + PAD / sizeof(element))
#define M_PART(inputs) ((size_t)TILES(inputs) * BLOCK + PAD / sizeof(float))
#define V_SIZE(inputs) (LNS_TILE_POINTS * V_PART(inputs) * sizeof(element))

static size_t conv3x3_tiles(int inputs) {
    (void)inputs; /* where the number is the same for all */
    return TILES(inputs);
}

static size_t conv3x3_scratch(int inputs) {
    return V_SIZE(inputs) + LNS_TILE_POINTS * M_PART(inputs) * sizeof(float);
}

/* Fills V; returns how many tiles the block has. */
INLINE size_t transform_block(const lns_conv3x3 *layer, int inputs, int from_picture, size_t first, element *v) {
    const size_t tiles_x = (size_t)layer->width / LNS_TILE_OUTPUT;
    const size_t all = tiles_x * ((size_t)layer->height / LNS_TILE_OUTPUT);
    const size_t tiles = all - first < TILES(inputs) ? all - first : TILES(inputs);
    for (size_t done = 0; done < tiles;) {
        const size_t y = (first + done) / tiles_x, x = (first + done) % tiles_x;
        size_t count = tiles_x - x;
        count = count < tiles - done ? count : tiles - done;
        count = count < SEGMENT ? count : SEGMENT;
        transform_segment(layer, inputs, from_picture, (int)y, (int)x, (int)count, v + done * (size_t)inputs,
                          V_PART(inputs));
        done += count;
    }
    /* The last rows of the product may lie beyond the last tile: their results are not used, but they are computed. */
    const size_t rows = (tiles + ROWS - 1) / ROWS * ROWS;
    if (rows > tiles)
        for (size_t part = 0; part < LNS_TILE_POINTS; part++)
            memset(v + part * V_PART(inputs) + tiles * (size_t)inputs, 0,
                   (rows - tiles) * (size_t)inputs * sizeof(element));
    return tiles;
}

/* Everything that shapes the loops is a constant where this is inlined. */
INLINE void convolve_block(const lns_conv3x3 *layer, int inputs, int from_picture, int pool, size_t block,
                           size_t first_outputs, size_t end_outputs, void *scratch) {
    element *v = scratch;
    float *m = (float *)(void *)((char *)scratch + V_SIZE(inputs));
    const size_t first = block * TILES(inputs);
    const size_t tiles = transform_block(layer, inputs, from_picture, first, v);
    const size_t tiles_x = (size_t)layer->width / LNS_TILE_OUTPUT;
    const size_t step = pool ? LNS_TILE_OUTPUT / 2 : LNS_TILE_OUTPUT;
    for (size_t outputs = first_outputs; outputs < end_outputs; outputs++) {
        const element *panel = (const element *)layer->packed + outputs * LNS_TILE_POINTS * (size_t)inputs * BLOCK;
        for (size_t part = 0; part < LNS_TILE_POINTS; part++, panel += (size_t)inputs * BLOCK)
            for (size_t t = 0; t < tiles; t += ROWS)
                multiply(v + part * V_PART(inputs) + t * (size_t)inputs, (size_t)inputs, panel, inputs,
                         m + part * M_PART(inputs) + t * BLOCK, BLOCK);
        for (size_t t = 0; t < tiles; t++) {
            const size_t y = (first + t) / tiles_x, x = (first + t) % tiles_x;
            element *out = (element *)layer->output + y * step * layer->output_row + x * step * layer->output_pixel +
                           outputs * BLOCK;
            for (int c = 0; c < COLUMNS; c++)
                transform_tile(m + t * BLOCK + c * LANES, M_PART(inputs),
                               vec_load(layer->bias + outputs * BLOCK + c * LANES), pool, out + c * LANES,
                               layer->output_row, layer->output_pixel);
        }
    }
}

#define CONVOLVE(name, inputs, from_picture, pool)                                                                     \
    static __attribute__((noinline)) void name(const lns_conv3x3 *layer, size_t block, size_t first_outputs,           \
                                               size_t end_outputs, void *scratch) {                                    \
        convolve_block(layer, inputs, from_picture, pool, block, first_outputs, end_outputs, scratch);                 \
    }
CONVOLVE(convolve_picture_pool, 64, 1, 1)
CONVOLVE(convolve_64, 64, 0, 0)
CONVOLVE(convolve_64_pool, 64, 0, 1)
CONVOLVE(convolve_128, 128, 0, 0)
CONVOLVE(convolve_128_pool, 128, 0, 1)

static void conv3x3(const lns_conv3x3 *layer, size_t block, size_t first_outputs, size_t end_outputs, void *scratch) {
    if (layer->first != NULL)
        convolve_picture_pool(layer, block, first_outputs, end_outputs, scratch);
    else if (layer->inputs == 64 && layer->pool)
        convolve_64_pool(layer, block, first_outputs, end_outputs, scratch);
    else if (layer->inputs == 64)
        convolve_64(layer, block, first_outputs, end_outputs, scratch);
    else if (layer->pool)
        convolve_128_pool(layer, block, first_outputs, end_outputs, scratch);
    else
        convolve_128(layer, block, first_outputs, end_outputs, scratch);
}
