/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/layer.h"

#include <string.h>

#include "base/error.h"

#define BLOCK_NUMBERS ((size_t)LNS_BH_CHANNELS * LNS_BH_CHANNELS)
/* The counters of an unpacker: 13 bits for pixels of a plane (ISA documentation, ADCs.md). */
#define PLANE_PIXELS 8192u

uint16_t lns_blackhole_bfloat16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float lns_blackhole_float32(uint16_t bfloat16) {
    const uint32_t bits = (uint32_t)bfloat16 << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* ---- Weights ------------------------------------------------------------------------------------ */

static int is_first(const lns_blackhole_layer *layer) {
    return layer->inputs == 1;
}

/* The weights of the first layer are sums of two numbers of bfloat16: it reads its one plane twice. */
#define FIRST_STEPS 2

static size_t taps(const lns_blackhole_layer *layer) {
    return is_first(layer) ? FIRST_STEPS : (size_t)layer->kernel * (size_t)layer->kernel;
}

static size_t planes(const lns_blackhole_layer *layer) {
    return is_first(layer) ? 1 : (size_t)layer->inputs / LNS_BH_CHANNELS;
}

/* Steps of 16 input channels for each output. */
static size_t steps(const lns_blackhole_layer *layer) {
    return taps(layer) * planes(layer) + (is_first(layer) ? 0 : 1);
}

/* Blocks of 16 output channels, and how many of them are computed together: all groups are alike. */
static size_t out_blocks(const lns_blackhole_layer *layer) {
    return ((size_t)layer->outputs + LNS_BH_CHANNELS - 1) / LNS_BH_CHANNELS;
}

static size_t group_blocks(const lns_blackhole_layer *layer) {
    size_t blocks = LNS_BH_JOB_BLOCKS;
    while (out_blocks(layer) % blocks != 0)
        blocks--;
    return blocks;
}

size_t lns_blackhole_weight_count(const lns_blackhole_layer *layer) {
    return out_blocks(layer) * steps(layer) * BLOCK_NUMBERS;
}

/* The numbers of one output channel: number `channel` of step `step` is first[step * stride + channel * 16]. */
typedef struct column {
    uint16_t *first;
    size_t stride;
} column;

static column column_of(const lns_blackhole_layer *layer, size_t output, uint16_t *packed) {
    const size_t blocks = group_blocks(layer), block = output / LNS_BH_CHANNELS, stride = blocks * BLOCK_NUMBERS;
    const size_t before = block / blocks * steps(layer) * stride + block % blocks * BLOCK_NUMBERS;
    return (column){packed + before + output % LNS_BH_CHANNELS, stride};
}

static uint16_t *number(column c, size_t step, size_t channel) {
    return c.first + step * c.stride + channel * LNS_BH_CHANNELS;
}

/* Two numbers of bfloat16 whose sum is near `value`: 16 bits of it. */
static void split(float value, uint16_t *high, uint16_t *low) {
    *high = lns_blackhole_bfloat16(value);
    *low = lns_blackhole_bfloat16(value - lns_blackhole_float32(*high));
}

/* In the first layer the positions are channels of both steps, column by column, with a channel that is 1 at the end of
 * each: two of these carry the bias. */
static void pack_first_output(const lns_blackhole_layer *layer, const float *weights, float bias, float scale,
                              column to) {
    const size_t kernel = (size_t)layer->kernel;
    for (size_t i = 0; i < kernel * kernel; i++) {
        const size_t channel = i % kernel * LNS_BH_COLUMN + i / kernel;
        split(weights[i] * scale, number(to, 0, channel), number(to, 1, channel));
    }
    split(bias, number(to, 0, LNS_BH_COLUMN - 1), number(to, 0, 2 * LNS_BH_COLUMN - 1));
}

static void pack_output(const lns_blackhole_layer *layer, const float *weights, float bias, float scale, column to) {
    const size_t inputs = (size_t)layer->inputs, positions = (size_t)layer->kernel * (size_t)layer->kernel;
    const size_t in_planes = planes(layer), last = steps(layer) - 1;
    for (size_t input = 0; input < inputs; input++)
        for (size_t position = 0; position < positions; position++)
            *number(to, position * in_planes + input / LNS_BH_CHANNELS, input % LNS_BH_CHANNELS) =
                lns_blackhole_bfloat16(weights[input * positions + position] * scale);
    split(bias, number(to, last, 0), number(to, last, 1));
}

void lns_blackhole_pack_weights(const lns_blackhole_layer *layer, const float *weights, const float *bias, float scale,
                                uint16_t *packed) {
    const size_t size = (size_t)layer->inputs * (size_t)layer->kernel * (size_t)layer->kernel;
    memset(packed, 0, lns_blackhole_weight_count(layer) * sizeof *packed);
    for (size_t output = 0; output < (size_t)layer->outputs; output++)
        (is_first(layer) ? pack_first_output : pack_output)(layer, weights + output * size, bias[output], scale,
                                                            column_of(layer, output, packed));
}

/* ---- Jobs --------------------------------------------------------------------------------------- */

/* How the pixels of a layer are cut: jobs of `columns` x `rows` pixels, in runs of `run`. */
typedef struct cut {
    int columns, rows, run;
} cut;

static cut cut_of(const lns_blackhole_layer *layer) {
    cut c;
    c.columns = layer->width < LNS_BH_JOB_PIXELS ? layer->width : LNS_BH_JOB_PIXELS;
    if (layer->flags & LNS_BH_POOL && c.columns == LNS_BH_JOB_PIXELS)
        c.columns /= 2; /* two rows of half the width */
    c.rows = LNS_BH_JOB_PIXELS / c.columns;
    if (c.rows > layer->height)
        c.rows = layer->height;
    c.run = c.columns;
    return c;
}

static int divided_up(int count, int part) {
    return (count + part - 1) / part;
}

size_t lns_blackhole_job_count(const lns_blackhole_layer *layer) {
    const cut c = cut_of(layer);
    return (size_t)divided_up(layer->width, c.columns) * (size_t)divided_up(layer->height, c.rows);
}

static uint16_t position(const lns_blackhole_planes *planes, int x, int y) {
    return (uint16_t)((planes->y + (uint32_t)y) * planes->width + planes->x + (uint32_t)x);
}

/* The job whose first pixel is (x, y). Of a pooled one, the upper rows of all pairs come first, then the lower ones. */
static lns_bh_job make_job(const lns_blackhole_layer *layer, int x, int y) {
    const cut c = cut_of(layer);
    const int around = layer->kernel / 2 - (is_first(layer) ? 1 : 0); /* the first tap is up and left */
    lns_bh_job job = {{0}, {0}};
    if (layer->flags & LNS_BH_POOL) {
        for (int pair = 0; pair < c.rows / 2; pair++) {
            job.in[pair] = position(&layer->in, x - around, y + 2 * pair - around);
            job.in[c.rows / 2 + pair] = position(&layer->in, x - around, y + 2 * pair + 1 - around);
            job.out[pair] = position(&layer->out, x / 2, y / 2 + pair);
        }
        return job;
    }
    for (int row = 0; row < c.rows; row++) {
        job.in[row] = position(&layer->in, x - around, y + row - around);
        job.out[row] = position(&layer->out, x, y + row);
    }
    return job;
}

/* The last jobs in a row or column overlap the ones before where the pixels do not divide. */
static void make_jobs(const lns_blackhole_layer *layer, lns_bh_job *jobs) {
    const cut c = cut_of(layer);
    for (int y = 0; y < layer->height; y += c.rows)
        for (int x = 0; x < layer->width; x += c.columns) {
            const int left = x + c.columns <= layer->width ? x : layer->width - c.columns;
            const int top = y + c.rows <= layer->height ? y : layer->height - c.rows;
            *jobs++ = make_job(layer, left, top);
        }
}

static lns_status check_layer(const lns_blackhole_layer *layer) {
    const cut c = cut_of(layer);
    const int pooled = (layer->flags & LNS_BH_POOL) != 0;
    const int inputs_fit = is_first(layer) || (layer->inputs > 0 && layer->inputs % LNS_BH_CHANNELS == 0);
    const int runs_fit = c.columns > 0 && c.columns % 8 == 0 && LNS_BH_JOB_PIXELS % c.columns == 0;
    const int pools =
        layer->width % 2 == 0 && layer->height % 2 == 0 && c.columns * c.rows == LNS_BH_JOB_PIXELS && c.rows % 2 == 0;
    if (!inputs_fit || layer->outputs < 1 || (layer->kernel != 1 && layer->kernel != 3) || layer->height < 1 ||
        !runs_fit || (pooled && !pools))
        return lns_fail(LNS_ERROR_UNSUPPORTED, "the card has no cut for %d to %d channels, %d x %d pixels, kernel %d",
                        layer->inputs, layer->outputs, layer->width, layer->height, layer->kernel);
    const uint64_t pixels = (uint64_t)layer->in.width * layer->in.height;
    if (layer->in.width > 255 || layer->in.height > 255 || pixels >= PLANE_PIXELS)
        return lns_fail(LNS_ERROR_UNSUPPORTED, "the card cannot count the pixels of planes of %u x %u", layer->in.width,
                        layer->in.height);
    return LNS_OK;
}

lns_status lns_blackhole_describe_layer(const lns_blackhole_layer *layer, uint32_t weights, uint32_t jobs,
                                        lns_bh_convolution *convolution, lns_bh_job *job_list) {
    const lns_status status = check_layer(layer);
    if (status != LNS_OK)
        return status;
    const cut c = cut_of(layer);
    const int pooled = (layer->flags & LNS_BH_POOL) != 0;
    const uint32_t pixel_bytes = layer->flags & LNS_BH_FLOAT32 ? LNS_BH_PIXEL_BYTES_FLOAT32 : LNS_BH_PIXEL_BYTES;
    *convolution = (lns_bh_convolution){
        .input = layer->in.address,
        .plane_width = layer->in.width,
        .plane_height = layer->in.height,
        .input_planes = (uint32_t)planes(layer),
        .taps = (uint32_t)taps(layer),
        .bias = is_first(layer) ? 0 : 1,
        .weights = weights,
        .groups = (uint32_t)(out_blocks(layer) / group_blocks(layer)),
        .blocks = (uint32_t)group_blocks(layer),
        .output = layer->out.address,
        .output_stride = layer->out.width * layer->out.height * pixel_bytes,
        .flags = layer->flags,
        .phases = layer->phases,
        .in_run = (uint32_t)c.run,
        .in_runs = (uint32_t)c.rows,
        .out_run = (uint32_t)(pooled ? c.run / 2 : c.run),
        .out_runs = (uint32_t)(pooled ? c.rows / 2 : c.rows),
        .jobs = jobs,
        .job_count = (uint32_t)lns_blackhole_job_count(layer),
    };
    for (uint32_t tap = 0; tap < convolution->taps && !is_first(layer); tap++)
        convolution->tap[tap] = tap / 3 * layer->in.width + tap % 3;
    make_jobs(layer, job_list);
    return LNS_OK;
}
