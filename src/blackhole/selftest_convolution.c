/* SPDX-License-Identifier: Apache-2.0 */
/* The step of a selftest that computes: one convolution, 64 to 64 channels with ReLU and pooling, on every tile at
 * once, against sums in double precision on the host. It takes the resident program, both halves of Dst, the unpackers,
 * the matrix unit, the vector unit and the packer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "blackhole/device.h"
#include "blackhole/grid.h"
#include "blackhole/layer.h"
#include "blackhole/selftest.h"
#include "blackhole/tile.h"

#define CARD_TIMEOUT_MS 2e3
#define SIMULATOR_TIMEOUT_MS 3600e3

enum {
    CHANNELS = 64,
    TAPS = 9,
    WIDTH = 64, /* of the output before pooling; the input has a ring of one pixel more */
    HEIGHT = 4,
    IN_PIXELS = (WIDTH + 2) * (HEIGHT + 2),
    IN_NUMBERS = CHANNELS * IN_PIXELS,
    ONES_NUMBERS = LNS_BH_JOB_PIXELS * LNS_BH_CHANNELS,
    OUT_WIDTH = WIDTH / 2,
    OUT_PIXELS = OUT_WIDTH * HEIGHT / 2,
    OUT_NUMBERS = CHANNELS * OUT_PIXELS,
    PACKED_NUMBERS = (CHANNELS * TAPS + LNS_BH_CHANNELS) * CHANNELS, /* with a step for the bias */
    JOBS = WIDTH * HEIGHT / LNS_BH_JOB_PIXELS,
    INPUT_AT = LNS_BH_DATA,
    WEIGHTS_AT = INPUT_AT + (IN_NUMBERS + ONES_NUMBERS) * 2,
    OUTPUT_AT = WEIGHTS_AT + PACKED_NUMBERS * 2
};
_Static_assert(WEIGHTS_AT % 64 == 0 && OUTPUT_AT % 64 == 0, "planes and weights are aligned");

/* Differences as parts of the root mean square of what is expected: numbers are rounded to 7 bits, so the last one is
 * 2^-6 at most, and half of it is lost. */
#define RMS_LIMIT 4e-3
#define LARGEST_LIMIT 3e-2

/* What lies at LNS_BH_PROGRAM. */
typedef struct program {
    lns_bh_step steps[2];
    lns_bh_convolution convolution;
    lns_bh_job jobs[JOBS];
} program;

typedef struct trial {
    lns_blackhole_layer layer;
    program program;
    uint16_t input[IN_NUMBERS + ONES_NUMBERS]; /* planes of 16 channels, and one of ones */
    float weights[CHANNELS * CHANNELS * TAPS], bias[CHANNELS];
    uint16_t packed[PACKED_NUMBERS];
    double expected[OUT_NUMBERS]; /* in the order of the output's planes */
    double expected_rms;
    uint16_t first[OUT_NUMBERS], output[OUT_NUMBERS]; /* of the first tile, and of the one that is looked at */
} trial;

/* ---- Numbers ------------------------------------------------------------------------------------ */

/* In [-1, 1). */
static float random_unit(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)((double)(*state >> 40) * 0x1p-23 - 1);
}

/* Seven bits of each input, which is what SrcB keeps: no rounding but that of the output is in the comparison. */
static void fill(trial *t) {
    uint64_t state = 1;
    for (size_t i = 0; i < IN_NUMBERS; i++) {
        const float value = random_unit(&state) * 3;
        t->input[i] = value > 0 ? lns_blackhole_bfloat16(value) & 0xFFFE : 0;
    }
    for (size_t pixel = 0; pixel < LNS_BH_JOB_PIXELS; pixel++)
        t->input[IN_NUMBERS + pixel * LNS_BH_CHANNELS] = t->input[IN_NUMBERS + pixel * LNS_BH_CHANNELS + 1] =
            lns_blackhole_bfloat16(1);
    for (size_t i = 0; i < sizeof t->weights / sizeof *t->weights; i++)
        t->weights[i] = lns_blackhole_float32(lns_blackhole_bfloat16(random_unit(&state) * 0.1F));
    for (size_t i = 0; i < CHANNELS; i++)
        t->bias[i] = random_unit(&state);
    lns_blackhole_pack_weights(&t->layer, t->weights, t->bias, 1, t->packed);
}

static size_t place(size_t channel, size_t pixel, size_t plane_pixels) {
    return (channel / LNS_BH_CHANNELS * plane_pixels + pixel) * LNS_BH_CHANNELS + channel % LNS_BH_CHANNELS;
}

/* Before ReLU, at (x, y) before pooling. */
static double sum_at(const trial *t, size_t output, size_t x, size_t y) {
    double sum = t->bias[output];
    for (size_t input = 0; input < CHANNELS; input++)
        for (size_t tap = 0; tap < TAPS; tap++) {
            const size_t pixel = (y + tap / 3) * (WIDTH + 2) + x + tap % 3;
            sum += (double)t->weights[(output * CHANNELS + input) * TAPS + tap] *
                   lns_blackhole_float32(t->input[place(input, pixel, IN_PIXELS)]);
        }
    return sum;
}

static void expect(trial *t) {
    double squares = 0;
    for (size_t output = 0; output < CHANNELS; output++)
        for (size_t pixel = 0; pixel < OUT_PIXELS; pixel++) {
            const size_t x = pixel % OUT_WIDTH * 2, y = pixel / OUT_WIDTH * 2;
            double largest = 0; /* ReLU */
            for (size_t i = 0; i < 4; i++)
                largest = fmax(largest, sum_at(t, output, x + i % 2, y + i / 2));
            t->expected[place(output, pixel, OUT_PIXELS)] = largest;
            squares += largest * largest;
        }
    t->expected_rms = sqrt(squares / OUT_NUMBERS);
}

static lns_status prepare(trial *t) {
    t->layer = (lns_blackhole_layer){
        .inputs = CHANNELS,
        .outputs = CHANNELS,
        .kernel = 3,
        .width = WIDTH,
        .height = HEIGHT,
        .flags = LNS_BH_RELU | LNS_BH_POOL | LNS_BH_ROUND,
        .phases = 2,
        .in = {INPUT_AT, WIDTH + 2, HEIGHT + 2, 1, 1},
        .out = {OUTPUT_AT, OUT_WIDTH, HEIGHT / 2, 0, 0},
    };
    t->program.steps[0] = (lns_bh_step){LNS_BH_CONVOLUTION, LNS_BH_PROGRAM + (uint32_t)offsetof(program, convolution)};
    t->program.steps[1] = (lns_bh_step){LNS_BH_END, 0};
    fill(t);
    expect(t);
    return lns_blackhole_describe_layer(&t->layer, WEIGHTS_AT, LNS_BH_PROGRAM + (uint32_t)offsetof(program, jobs),
                                        &t->program.convolution, t->program.jobs);
}

/* ---- On the card -------------------------------------------------------------------------------- */

static lns_status write_all(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, const trial *t) {
    const struct {
        uint32_t address;
        const void *data;
        size_t size;
    } parts[] = {
        {LNS_BH_PROGRAM, &t->program, sizeof t->program},
        {INPUT_AT, t->input, sizeof t->input},
        {WEIGHTS_AT, t->packed, sizeof t->packed},
        {OUTPUT_AT, t->output, sizeof t->output}, /* nothing that ran before */
    };
    lns_status status = LNS_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == LNS_OK; i++)
        status = transport->operations->multicast(transport, tiles.first, tiles.last, parts[i].address, parts[i].data,
                                                  parts[i].size);
    return status;
}

static lns_status compute(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, const trial *t) {
    const double timeout = lns_blackhole_is_simulated() ? SIMULATOR_TIMEOUT_MS : CARD_TIMEOUT_MS;
    lns_status status = lns_blackhole_start_tiles(transport, tiles, timeout);
    if (status == LNS_OK)
        status = write_all(transport, tiles, t);
    if (status == LNS_OK)
        status = lns_blackhole_ring_tiles(transport, tiles, LNS_BH_PROGRAM, 1);
    return status == LNS_OK ? lns_blackhole_wait_for_tiles(transport, tiles, 1, timeout) : status;
}

/* ---- What came of it ---------------------------------------------------------------------------- */

static double value_of(const trial *t, size_t i) {
    return lns_blackhole_float32(t->output[i] & 0xFFFE);
}

static lns_status compare(const trial *t, lns_blackhole_tile tile, double *rms) {
    double squares = 0;
    size_t worst = 0;
    for (size_t i = 0; i < OUT_NUMBERS; i++) {
        const double error = value_of(t, i) - t->expected[i];
        squares += error * error;
        if (!(fabs(error) <= fabs(value_of(t, worst) - t->expected[worst])))
            worst = i;
    }
    *rms = sqrt(squares / OUT_NUMBERS) / t->expected_rms;
    if (*rms < RMS_LIMIT && fabs(value_of(t, worst) - t->expected[worst]) < LARGEST_LIMIT * t->expected_rms)
        return LNS_OK;
    return lns_fail(LNS_ERROR_SYSTEM,
                    "tile %d,%d differs from the host by %.1e (rms, at most %.0e); the largest: it has %g and the host "
                    "%g",
                    tile.x, tile.y, *rms, RMS_LIMIT, value_of(t, worst), t->expected[worst]);
}

static lns_status look(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, trial *t, int *count,
                       double *rms) {
    lns_blackhole_tile tile = tiles.first;
    do {
        lns_status status = transport->operations->read(transport, tile, OUTPUT_AT, t->output, sizeof t->output);
        if (status == LNS_OK)
            status = compare(t, tile, rms);
        if (status != LNS_OK)
            return status;
        if (*count == 0)
            memcpy(t->first, t->output, sizeof t->first);
        if (memcmp(t->first, t->output, sizeof t->first) != 0)
            return lns_fail(LNS_ERROR_SYSTEM, "tile %d,%d computes other bytes than tile %d,%d from the same ones",
                            tile.x, tile.y, tiles.first.x, tiles.first.y);
        ++*count;
    } while (lns_blackhole_next_tile(tiles, &tile));
    return LNS_OK;
}

lns_status lns_selftest_convolve(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_transport *transport = selftest->transport;
    const lns_blackhole_tiles tiles = {{LNS_TILE_FIRST_X, LNS_TILE_FIRST_Y}, lns_tile_last(transport)};
    int count = 0;
    double rms = 0;
    trial *t = lns_calloc(1, sizeof *t);
    if (t == NULL)
        return lns_fail_memory(sizeof *t);
    lns_status status = prepare(t);
    if (status == LNS_OK)
        status = compute(transport, tiles, t);
    if (status == LNS_OK)
        status = look(transport, tiles, t, &count, &rms);
    const lns_status stopped = lns_blackhole_stop_tiles(transport, tiles);
    lns_free(t);
    snprintf(detail, size,
             "64 to 64 channels, 3 x 3, ReLU, pooling, %d x %d pixels: %d tiles give the same bytes, %.1e (rms) from "
             "the host's sums",
             WIDTH, HEIGHT, count, rms);
    return status == LNS_OK ? stopped : status;
}
