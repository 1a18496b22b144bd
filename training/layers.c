/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of the network forth and back, for layers.py, which compiles this file for the CPU it runs on: 3 x 3
 * convolutions by Winograd F(4x4, 3x3), as in src/nn, and batch normalisation with ReLU and pooling in one pass over
 * memory.
 *
 * Activations are NHWC, float32: `count` pictures of height x width pixels of `inputs` or `outputs` channels, multiples
 * of BLOCK up to MOST_CHANNELS. Weights are (outputs, inputs, 3, 3). Beyond the borders there are zeros. Statistics are
 * doubles: the sums of all channels, then the sums of their squares.
 *
 * With V = B'xB, U = GwG', M = VU, y = A'MA a convolution, the gradient of the weights is G'(V'(A dy A'))G, summed over
 * all tiles: another 36 products instead of 144. The gradient of the inputs is a convolution of that of the outputs,
 * with the weights turned by 180 degrees and inputs and outputs exchanged. */
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
#define LANES 16
#define REPEAT(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
#else
#define LANES 8
#define REPEAT(x) x, x, x, x, x, x, x, x
#endif
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int ivec __attribute__((vector_size(4 * LANES)));
typedef vec anywhere __attribute__((aligned(4), may_alias)); /* in memory */

#define COLUMNS 2
#define BLOCK (COLUMNS * LANES) /* outputs that are computed together */
#define ROWS 6                  /* tiles that are */
#define GRADIENT_ROWS 4         /* inputs that are in the gradient of the weights */
#define TILE_OUTPUT 4
#define TILE_INPUT 6
#define POINTS 36
#define FIRST_OUTPUTS 64
#define MOST_CHANNELS 256

INLINE vec vec_all(float x) {
    return (vec){REPEAT(x)};
}

INLINE vec vec_load(const float *p) {
    return *(const anywhere *)p;
}

INLINE void vec_store(float *p, vec x) {
    *(anywhere *)p = x;
}

INLINE vec vec_fma(vec a, vec b, vec c) {
    return a * b + c;
}

INLINE vec vec_keep(ivec where, vec x) {
    return (vec)((ivec)x & where);
}

INLINE vec vec_max(vec a, vec b) {
    const ivec larger = a > b;
    return (vec)(((ivec)a & larger) | ((ivec)b & ~larger));
}

#define LNS_TILE_INPUT TILE_INPUT
#include "nn/winograd_points.h"

/* Pictures of one layer, and how its tiles are dealt out. */
typedef struct grid {
    int count, height, width;
    int tiles_x, tiles_y;
    long tiles;
    int block; /* tiles that go through the steps together, a multiple of ROWS */
} grid;

static grid make_grid(int count, int height, int width, int inputs) {
    grid g = {.count = count, .height = height, .width = width};
    g.tiles_x = (width + TILE_OUTPUT - 1) / TILE_OUTPUT;
    g.tiles_y = (height + TILE_OUTPUT - 1) / TILE_OUTPUT;
    g.tiles = (long)count * g.tiles_x * g.tiles_y;
    g.block = inputs <= 64 ? 24 : 12; /* V stays in a level 2 cache of 512 KB */
    return g;
}

/* Floats of one of the 36 parts of V or M, which therefore do not fall on the same cache sets. */
INLINE long part_size(const grid *g, int channels) {
    return (long)g->block * channels + 16;
}

typedef struct place {
    long picture;
    int y, x; /* of the first output pixel */
} place;

INLINE place place_of(const grid *g, long tile) {
    const long row = tile / g->tiles_x;
    return (place){row / g->tiles_y, (int)(row % g->tiles_y) * TILE_OUTPUT, (int)(tile % g->tiles_x) * TILE_OUTPUT};
}

static float *take_floats(size_t count) {
    float *floats = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (floats == NULL)
        abort();
    return floats;
}

/* out[r][k] (+)= sum over i < n of a[r * a_row + i * a_step] * b[i * b_step + k], for `rows` rows and BLOCK columns. */
INLINE void multiply(int rows, const float *a, long a_row, long a_step, const float *b, long b_step, int n, float *out,
                     long out_row, int add) {
    vec sums[ROWS][COLUMNS];
#pragma GCC unroll 9
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 9
        for (int c = 0; c < COLUMNS; c++)
            sums[r][c] = add ? vec_load(out + r * out_row + c * LANES) : vec_all(0);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        vec columns[COLUMNS];
#pragma GCC unroll 9
        for (int c = 0; c < COLUMNS; c++)
            columns[c] = vec_load(b + i * b_step + c * LANES);
#pragma GCC unroll 9
        for (int r = 0; r < rows; r++) {
            const vec x = vec_all(a[r * a_row + i * a_step]);
#pragma GCC unroll 9
            for (int c = 0; c < COLUMNS; c++)
                sums[r][c] = vec_fma(x, columns[c], sums[r][c]);
        }
    }
#pragma GCC unroll 9
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 9
        for (int c = 0; c < COLUMNS; c++)
            vec_store(out + r * out_row + c * LANES, sums[r][c]);
}

/* ---- Transforms of tiles ------------------------------------------------------------------------ */

/* A tile of LANES channels: its first value, and the way from one row and one column to the next. */
typedef struct tile {
    float *values;
    long row, column;
} tile;

typedef void (*transform)(vec *out, const vec *in);

/* Applies a transform of one side to both sides of `from` x `from` values, whose results are `to` x `to`. Adds the
 * results to `sum` and their squares to `square` unless these are NULL. */
INLINE void transform_tile(transform side, tile in, int from, tile out, int to, vec *sum, vec *square) {
    vec half[TILE_INPUT][TILE_INPUT], line[TILE_INPUT], done[TILE_INPUT];
#pragma GCC unroll 9
    for (int x = 0; x < from; x++) {
#pragma GCC unroll 9
        for (int y = 0; y < from; y++)
            line[y] = vec_load(in.values + y * in.row + x * in.column);
        side(done, line);
#pragma GCC unroll 9
        for (int y = 0; y < to; y++)
            half[y][x] = done[y];
    }
#pragma GCC unroll 9
    for (int y = 0; y < to; y++) {
#pragma GCC unroll 9
        for (int x = 0; x < from; x++)
            line[x] = half[y][x];
        side(done, line);
#pragma GCC unroll 9
        for (int x = 0; x < to; x++) {
            vec_store(out.values + y * out.row + x * out.column, done[x]);
            if (sum != NULL) {
                *sum += done[x];
                *square += done[x] * done[x];
            }
        }
    }
}

/* A: 4 gradients of outputs to 6. */
INLINE void transform_gradients(vec *out, const vec *in) {
    const vec a = vec_all((float)POINT_A), a2 = vec_all(0.5f), a3 = vec_all((float)(POINT_A * 0.5));
    const vec b = vec_all((float)POINT_B), b2 = vec_all(2.0f), b3 = vec_all((float)(POINT_B * 2.0));
    const vec even_a = vec_fma(a2, in[2], in[0]), odd_a = vec_fma(a3, in[3], a * in[1]);
    const vec even_b = vec_fma(b2, in[2], in[0]), odd_b = vec_fma(b3, in[3], b * in[1]);
    out[0] = in[0];
    out[1] = even_a + odd_a;
    out[2] = even_a - odd_a;
    out[3] = even_b + odd_b;
    out[4] = even_b - odd_b;
    out[5] = in[3];
}

/* G': 6 gradients of transformed weights to 3. */
INLINE void transform_back(vec *out, const vec *in) {
    const double a2 = POINT_A * POINT_A, b2 = POINT_B * POINT_B;
    const vec over_zero = vec_all((float)(1 / (a2 * b2)));
    const vec over_a = vec_all((float)(1 / (2 * a2 * (a2 - b2)))), over_b = vec_all((float)(1 / (2 * b2 * (b2 - a2))));
    const vec even_a = over_a * (in[1] + in[2]), odd_a = over_a * (in[1] - in[2]);
    const vec even_b = over_b * (in[3] + in[4]), odd_b = over_b * (in[3] - in[4]);
    out[0] = over_zero * in[0] + even_a + even_b;
    out[1] = vec_all((float)POINT_A) * odd_a + vec_all((float)POINT_B) * odd_b;
    out[2] = vec_all((float)a2) * even_a + vec_all((float)b2) * even_b + in[5];
}

/* The `side` x `side` pixels from (y, x) on: where they lie, or, at a border of the picture, a copy with zeros beyond
 * it. */
INLINE tile find_tile(const grid *g, const float *picture, int channels, int y, int x, int side, float *copy) {
    if (y >= 0 && x >= 0 && y + side <= g->height && x + side <= g->width)
        return (tile){(float *)picture + ((long)y * g->width + x) * channels, (long)g->width * channels, channels};
    const size_t pixel = (size_t)channels * sizeof *copy;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            float *to = copy + (long)(i * side + j) * channels;
            if (y + i >= 0 && y + i < g->height && x + j >= 0 && x + j < g->width)
                memcpy(to, picture + ((long)(y + i) * g->width + x + j) * channels, pixel);
            else
                memset(to, 0, pixel);
        }
    return (tile){copy, (long)side * channels, channels};
}

/* out[36][block][channels] from the tiles of a block. Inputs: 6 x 6 pixels around the outputs; gradients: the 4 x 4. */
INLINE void transform_block(const grid *g, const float *values, int channels, long first, int gradients, float *out) {
    const long part = part_size(g, channels);
    float copy[POINTS * MOST_CHANNELS];
    for (int t = 0; t < g->block; t++) {
        tile to = {out + (long)t * channels, TILE_INPUT * part, part};
        if (first + t >= g->tiles) {
            for (int p = 0; p < POINTS; p++)
                memset(to.values + p * part, 0, (size_t)channels * sizeof *out);
            continue;
        }
        const place at = place_of(g, first + t);
        const float *picture = values + at.picture * g->height * g->width * channels;
        tile in = gradients ? find_tile(g, picture, channels, at.y, at.x, TILE_OUTPUT, copy)
                            : find_tile(g, picture, channels, at.y - 1, at.x - 1, TILE_INPUT, copy);
        for (int channel = 0; channel < channels; channel += LANES, in.values += LANES, to.values += LANES)
            if (gradients)
                transform_tile(transform_gradients, in, TILE_OUTPUT, to, TILE_INPUT, NULL, NULL);
            else
                transform_tile(transform_inputs, in, TILE_INPUT, to, TILE_INPUT, NULL, NULL);
    }
}

/* ---- Convolution -------------------------------------------------------------------------------- */

/* (outputs, inputs, 3, 3) -> [outputs / BLOCK][36][inputs][BLOCK]; with `turned` for the gradient of the inputs, whose
 * outputs are the inputs of the weights. */
static float *pack_weights(const float *weights, int inputs, int outputs, int turned) {
    float *packed = take_floats((size_t)POINTS * (size_t)inputs * (size_t)outputs);
    for (int o = 0; o < outputs; o += BLOCK)
        for (int i = 0; i < inputs; i++) {
            double kernel[3][3][BLOCK], rows[3][TILE_INPUT][BLOCK], column[3][BLOCK], point[TILE_INPUT][BLOCK];
            for (int k = 0; k < BLOCK; k++)
                for (int j = 0; j < 9; j++)
                    kernel[j / 3][j % 3][k] = turned ? weights[((long)i * outputs + o + k) * 9 + 8 - j]
                                                     : weights[((long)(o + k) * inputs + i) * 9 + j];
            for (int y = 0; y < 3; y++)
                transform_weights(rows[y], kernel[y]);
            for (int x = 0; x < TILE_INPUT; x++) {
                for (int y = 0; y < 3; y++)
                    memcpy(column[y], rows[y][x], sizeof column[y]);
                transform_weights(point, column);
                for (int y = 0; y < TILE_INPUT; y++)
                    for (int k = 0; k < BLOCK; k++)
                        packed[(((long)o / BLOCK * POINTS + y * TILE_INPUT + x) * inputs + i) * BLOCK + k] =
                            (float)point[y][k];
            }
        }
    return packed;
}

/* Outputs of a tile from its part of M, added to sums and squares as well. */
INLINE void finish_tile(const grid *g, tile m, float *picture, int channels, place at, float *sums, float *squares) {
    vec sum = vec_load(sums), square = vec_load(squares);
    const int height = g->height - at.y, width = g->width - at.x;
    const tile out = {picture + ((long)at.y * g->width + at.x) * channels, (long)g->width * channels, channels};
    if (height >= TILE_OUTPUT && width >= TILE_OUTPUT) {
        transform_tile(transform_outputs, m, TILE_INPUT, out, TILE_OUTPUT, &sum, &square);
    } else {
        float copy[TILE_OUTPUT * TILE_OUTPUT * LANES];
        transform_tile(transform_outputs, m, TILE_INPUT, (tile){copy, TILE_OUTPUT * LANES, LANES}, TILE_OUTPUT, NULL,
                       NULL);
        for (int y = 0; y < TILE_OUTPUT && y < height; y++)
            for (int x = 0; x < TILE_OUTPUT && x < width; x++) {
                const vec value = vec_load(copy + (y * TILE_OUTPUT + x) * LANES);
                vec_store(out.values + y * out.row + x * out.column, value);
                sum += value;
                square += value * value;
            }
    }
    vec_store(sums, sum);
    vec_store(squares, square);
}

/* Outputs of the tiles of a block, from its V. */
INLINE void finish_block(const grid *g, const float *v, int inputs, const float *packed, int outputs, long first,
                         float *m, float *y, float *statistics) {
    const long v_part = part_size(g, inputs), m_part = part_size(g, BLOCK);
    for (int o = 0; o < outputs; o += BLOCK) {
        const float *panel = packed + (long)o / BLOCK * POINTS * inputs * BLOCK;
        for (int p = 0; p < POINTS; p++)
            for (int t = 0; t < g->block; t += ROWS)
                multiply(ROWS, v + p * v_part + (long)t * inputs, inputs, 1, panel + (long)p * inputs * BLOCK, BLOCK,
                         inputs, m + p * m_part + (long)t * BLOCK, BLOCK, 0);
        for (int t = 0; t < g->block && first + t < g->tiles; t++) {
            const place at = place_of(g, first + t);
            float *picture = y + at.picture * g->height * g->width * outputs + o;
            for (int c = 0; c < BLOCK; c += LANES)
                finish_tile(g, (tile){m + (long)t * BLOCK + c, TILE_INPUT * m_part, m_part}, picture + c, outputs, at,
                            statistics + o + c, statistics + outputs + o + c);
        }
    }
}

/* Adds a thread's sums to the statistics of all. */
static void add_statistics(double *all, const double *part, int count) {
#pragma omp critical
    for (int i = 0; i < count; i++)
        all[i] += part[i];
}

INLINE void add_floats(double *sums, const float *floats, int count) {
    for (int i = 0; i < count; i++)
        sums[i] += floats[i];
}

/* y = x * weights, and the statistics of y; with `turned` x and y are gradients, of the outputs and the inputs. */
void convolve(const float *x, const float *weights, int count, int height, int width, int inputs, int outputs,
              int turned, float *y, double *statistics, int threads) {
    const grid g = make_grid(count, height, width, inputs);
    float *packed = pack_weights(weights, inputs, outputs, turned);
    memset(statistics, 0, 2 * (size_t)outputs * sizeof *statistics);
#pragma omp parallel num_threads(threads)
    {
        float *v = take_floats((size_t)(POINTS * part_size(&g, inputs)));
        float *m = take_floats((size_t)(POINTS * part_size(&g, BLOCK)));
        float *part = take_floats(2 * (size_t)outputs);
        double *sums = calloc(2 * (size_t)outputs, sizeof *sums);
#pragma omp for schedule(dynamic, 4)
        for (long first = 0; first < g.tiles; first += g.block) {
            memset(part, 0, 2 * (size_t)outputs * sizeof *part);
            transform_block(&g, x, inputs, first, 0, v);
            finish_block(&g, v, inputs, packed, outputs, first, m, y, part);
            add_floats(sums, part, 2 * outputs);
        }
        add_statistics(statistics, sums, 2 * outputs);
        free(v);
        free(m);
        free(part);
        free(sums);
    }
    free(packed);
}

/* G'(sum)G -> (outputs, inputs, 3, 3), of LANES outputs. */
INLINE void store_weights(float *sums, int inputs, int outputs, int input, int output, float *weights) {
    const long part = (long)inputs * outputs;
    float kernel[9 * LANES];
    transform_tile(transform_back, (tile){sums + (long)input * outputs + output, TILE_INPUT * part, part}, TILE_INPUT,
                   (tile){kernel, 3 * LANES, LANES}, 3, NULL, NULL);
    for (int k = 0; k < LANES; k++)
        for (int j = 0; j < 9; j++)
            weights[((long)(output + k) * inputs + input) * 9 + j] = kernel[j * LANES + k];
}

/* The gradient of the weights, from x and the gradient of the outputs. */
void weights_gradient(const float *x, const float *dy, int count, int height, int width, int inputs, int outputs,
                      float *weights, int threads) {
    grid g = make_grid(count, height, width, inputs);
    g.block = 24;
    const size_t size = (size_t)POINTS * (size_t)inputs * (size_t)outputs;
    float *total = take_floats(size);
    memset(total, 0, size * sizeof *total);
#pragma omp parallel num_threads(threads)
    {
        const long v_part = part_size(&g, inputs), d_part = part_size(&g, outputs);
        float *v = take_floats((size_t)(POINTS * v_part)), *d = take_floats((size_t)(POINTS * d_part));
        float *sums = take_floats(size);
        memset(sums, 0, size * sizeof *sums);
#pragma omp for schedule(dynamic, 4)
        for (long first = 0; first < g.tiles; first += g.block) {
            transform_block(&g, x, inputs, first, 0, v);
            transform_block(&g, dy, outputs, first, 1, d);
            for (int p = 0; p < POINTS; p++)
                for (int o = 0; o < outputs; o += BLOCK)
                    for (int i = 0; i < inputs; i += GRADIENT_ROWS)
                        multiply(GRADIENT_ROWS, v + p * v_part + i, 1, inputs, d + p * d_part + o, outputs, g.block,
                                 sums + ((long)p * inputs + i) * outputs + o, outputs, 1);
        }
#pragma omp critical
        for (size_t i = 0; i < size; i++)
            total[i] += sums[i];
        free(v);
        free(d);
        free(sums);
    }
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs; o += LANES)
            store_weights(total, inputs, outputs, i, o, weights);
    free(total);
}

/* ---- First layer -------------------------------------------------------------------------------- */

/* The three rows of a picture around row y, with a zero on either side: out[3][width + 2]. */
static void load_rows(float *out, const float *picture, int height, int width, int y) {
    memset(out, 0, 3 * ((size_t)width + 2) * sizeof *out);
    for (int i = 0; i < 3; i++)
        if (y + i >= 1 && y + i <= height)
            memcpy(out + (long)i * (width + 2) + 1, picture + (long)(y + i - 1) * width, (size_t)width * sizeof *out);
}

/* The same from one channel to FIRST_OUTPUTS, whose weights are (64, 1, 3, 3). */
void convolve_first(const float *x, const float *weights, int count, int height, int width, float *y,
                    double *statistics, int threads) {
    float taps[9][FIRST_OUTPUTS];
    for (int j = 0; j < 9; j++)
        for (int k = 0; k < FIRST_OUTPUTS; k++)
            taps[j][k] = weights[k * 9 + j];
    memset(statistics, 0, 2 * FIRST_OUTPUTS * sizeof *statistics);
#pragma omp parallel num_threads(threads)
    {
        double sums[2 * FIRST_OUTPUTS] = {0};
        float *rows = take_floats(3 * ((size_t)width + 2));
#pragma omp for
        for (long row = 0; row < (long)count * height; row++) {
            float part[2 * FIRST_OUTPUTS] = {0};
            load_rows(rows, x + row / height * height * width, height, width, (int)(row % height));
            for (int column = 0; column < width; column++) {
                const float *pixels = rows + column;
                float *out = y + (row * width + column) * FIRST_OUTPUTS;
                for (int c = 0; c < FIRST_OUTPUTS; c += LANES) {
                    vec sum = vec_all(0);
                    for (int j = 0; j < 9; j++)
                        sum = vec_fma(vec_all(pixels[j / 3 * (width + 2) + j % 3]), vec_load(taps[j] + c), sum);
                    vec_store(out + c, sum);
                    vec_store(part + c, vec_load(part + c) + sum);
                    vec_store(part + FIRST_OUTPUTS + c, vec_load(part + FIRST_OUTPUTS + c) + sum * sum);
                }
            }
            add_floats(sums, part, 2 * FIRST_OUTPUTS);
        }
        add_statistics(statistics, sums, 2 * FIRST_OUTPUTS);
        free(rows);
    }
}

void first_weights_gradient(const float *x, const float *dy, int count, int height, int width, float *weights,
                            int threads) {
    double total[9 * FIRST_OUTPUTS] = {0};
#pragma omp parallel num_threads(threads)
    {
        double sums[9 * FIRST_OUTPUTS] = {0};
        float *rows = take_floats(3 * ((size_t)width + 2));
#pragma omp for
        for (long row = 0; row < (long)count * height; row++) {
            float part[9 * FIRST_OUTPUTS] = {0};
            load_rows(rows, x + row / height * height * width, height, width, (int)(row % height));
            for (int c = 0; c < FIRST_OUTPUTS; c += LANES) {
                vec taps[9];
#pragma GCC unroll 9
                for (int j = 0; j < 9; j++)
                    taps[j] = vec_all(0);
                for (int column = 0; column < width; column++) {
                    const float *pixels = rows + column;
                    const vec gradient = vec_load(dy + (row * width + column) * FIRST_OUTPUTS + c);
#pragma GCC unroll 9
                    for (int j = 0; j < 9; j++)
                        taps[j] = vec_fma(vec_all(pixels[j / 3 * (width + 2) + j % 3]), gradient, taps[j]);
                }
                for (int j = 0; j < 9; j++)
                    vec_store(part + j * FIRST_OUTPUTS + c, taps[j]);
            }
            add_floats(sums, part, 9 * FIRST_OUTPUTS);
        }
        add_statistics(total, sums, 9 * FIRST_OUTPUTS);
        free(rows);
    }
    for (int k = 0; k < FIRST_OUTPUTS; k++)
        for (int j = 0; j < 9; j++)
            weights[k * 9 + j] = (float)total[j * FIRST_OUTPUTS + k];
}

/* ---- Normalisation, ReLU, pooling --------------------------------------------------------------- */

/* Pixels that make one of the result: one, or 2 x 2. */
INLINE const float *pixel_of(const float *y, long pooled, int pool, int width, int channels, int which) {
    if (!pool)
        return y + pooled * channels;
    const long row = pooled / (width / 2) * 2 + which / 2, column = pooled % (width / 2) * 2 + which % 2;
    return y + (row * width + column) * channels;
}

/* out = max(0, scale y + shift), the largest of 2 x 2 pixels with `pool`; rows: of all pictures together. */
void normalise(const float *y, int rows, int width, int channels, const float *scale, const float *shift, int pool,
               float *out, int threads) {
    const long pixels = pool ? (long)rows / 2 * (width / 2) : (long)rows * width;
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c += LANES) {
            vec largest = vec_all(0);
            for (int which = 0; which < (pool ? 4 : 1); which++)
                largest = vec_max(vec_fma(vec_load(pixel_of(y, i, pool, width, channels, which) + c),
                                          vec_load(scale + c), vec_load(shift + c)),
                                  largest);
            vec_store(out + i * channels + c, largest);
        }
}

/* The gradients of up to 4 values that gave one result: it is that of the result at the largest one above 0. */
INLINE void pass_gradient(const vec *values, int count, vec gradient, vec *out) {
    vec largest = vec_all(0);
#pragma GCC unroll 9
    for (int i = 0; i < count; i++)
        largest = vec_max(values[i], largest);
    ivec open = largest > vec_all(0);
#pragma GCC unroll 9
    for (int i = 0; i < count; i++) {
        const ivec here = open & (values[i] == largest);
        out[i] = vec_keep(here, gradient);
        open &= ~here;
    }
}

/* Gradients of the normalised values of one result, and the convolution's outputs they come from. */
INLINE void open_result(const float *y, const float *result_gradient, long i, int pool, int width, int channels, int c,
                        const float *scale, const float *shift, vec *outputs, vec *gradients) {
    const int count = pool ? 4 : 1;
    vec values[4];
#pragma GCC unroll 9
    for (int which = 0; which < count; which++) {
        outputs[which] = vec_load(pixel_of(y, i, pool, width, channels, which) + c);
        values[which] = vec_fma(outputs[which], vec_load(scale + c), vec_load(shift + c));
    }
    pass_gradient(values, count, vec_load(result_gradient + i * channels + c), gradients);
}

INLINE void normalise_sums(const float *y, const float *gradient, int rows, int width, int channels, const float *scale,
                           const float *shift, int pool, double *sums, int threads) {
    const int result_width = pool ? width / 2 : width;
    memset(sums, 0, 2 * (size_t)channels * sizeof *sums);
#pragma omp parallel num_threads(threads)
    {
        double *mine = calloc(2 * (size_t)channels, sizeof *mine);
        float *part = take_floats(2 * (size_t)channels);
#pragma omp for
        for (long row = 0; row < (pool ? rows / 2 : rows); row++) {
            memset(part, 0, 2 * (size_t)channels * sizeof *part);
            for (long i = row * result_width; i < (row + 1) * result_width; i++)
                for (int c = 0; c < channels; c += LANES) {
                    vec outputs[4], gradients[4];
                    open_result(y, gradient, i, pool, width, channels, c, scale, shift, outputs, gradients);
                    vec sum = gradients[0], product = gradients[0] * outputs[0];
                    for (int which = 1; which < (pool ? 4 : 1); which++) {
                        sum += gradients[which];
                        product += gradients[which] * outputs[which];
                    }
                    vec_store(part + c, vec_load(part + c) + sum);
                    vec_store(part + channels + c, vec_load(part + channels + c) + product);
                }
            add_floats(mine, part, 2 * channels);
        }
        add_statistics(sums, mine, 2 * channels);
        free(mine);
        free(part);
    }
}

INLINE void normalise_back(const float *y, const float *gradient, int rows, int width, int channels, const float *scale,
                           const float *shift, int pool, const float *factors, float *dy, int threads) {
    const long pixels = pool ? (long)rows / 2 * (width / 2) : (long)rows * width;
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c += LANES) {
            vec outputs[4], gradients[4];
            open_result(y, gradient, i, pool, width, channels, c, scale, shift, outputs, gradients);
            const vec constant = vec_load(factors + c), slope = vec_load(factors + channels + c),
                      by = vec_load(scale + c);
            for (int which = 0; which < (pool ? 4 : 1); which++)
                vec_store((float *)pixel_of(dy, i, pool, width, channels, which) + c,
                          by * gradients[which] + vec_fma(outputs[which], slope, constant));
        }
}

/* Sums over all pixels of the gradients of the normalised values, and of their products with the outputs y of the
 * convolution. */
void normalise_gradient_sums(const float *y, const float *gradient, int rows, int width, int channels,
                             const float *scale, const float *shift, int pool, double *sums, int threads) {
    if (pool)
        normalise_sums(y, gradient, rows, width, channels, scale, shift, 1, sums, threads);
    else
        normalise_sums(y, gradient, rows, width, channels, scale, shift, 0, sums, threads);
}

/* dy = scale * (gradient of the normalised value) + factors[1] * y + factors[0], each by channel. */
void normalise_gradient(const float *y, const float *gradient, int rows, int width, int channels, const float *scale,
                        const float *shift, int pool, const float *factors, float *dy, int threads) {
    if (pool)
        normalise_back(y, gradient, rows, width, channels, scale, shift, 1, factors, dy, threads);
    else
        normalise_back(y, gradient, rows, width, channels, scale, shift, 0, factors, dy, threads);
}
