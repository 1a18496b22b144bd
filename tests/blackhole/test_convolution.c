/* SPDX-License-Identifier: Apache-2.0 */
/* Every shape of layer on one tile of the simulated card, against sums in double precision, and each once more with a
 * damaged input, which must be noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "blackhole/layer.h"
#include "blackhole/tile.h"
#include "card.h"

#define TIMEOUT_MS 300e3

static const lns_blackhole_tiles tile = {{2, 3}, {2, 3}};
static uint32_t request;

static uint64_t random_state = 1;

static float random_unit(void) { /* in [-1, 1) */
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)((double)(random_state >> 11) * 0x1p-52 - 1.0);
}

/* What SrcB keeps of a number in the phases up to HiFi2: 7 bits, the first of them not stored. */
static uint16_t seven_bits(uint16_t value) {
    return value & 0xFFFE;
}

/* ---- A case ------------------------------------------------------------------------------------- */

typedef struct shape {
    const char *name;
    int inputs, outputs, kernel, width, height;
    uint32_t flags, phases, in_width, in_height; /* of the input planes */
} shape;

static const shape shapes[] = {
    {"first layer, with its halo", 1, 64, 3, 198, 1, LNS_BH_RELU | LNS_BH_ROUND, 4, 66, 3},
    {"64 to 64, pooled, 64 wide", 64, 64, 3, 64, 4, LNS_BH_RELU | LNS_BH_POOL | LNS_BH_ROUND, 2, 66, 6},
    {"64 to 64, pooled, 64 wide, 8 bits kept", 64, 64, 3, 64, 4, LNS_BH_RELU | LNS_BH_POOL, 2, 66, 6},
    {"64 to 64, 64 wide", 64, 64, 3, 64, 2, LNS_BH_RELU | LNS_BH_ROUND, 2, 66, 4},
    {"64 to 64, 32 wide", 64, 64, 3, 32, 4, LNS_BH_RELU, 3, 34, 6},
    {"64 to 64, pooled, 32 wide", 64, 64, 3, 32, 4, LNS_BH_RELU | LNS_BH_POOL, 3, 34, 6},
    {"64 to 128, 16 wide", 64, 128, 3, 16, 10, LNS_BH_RELU, 3, 18, 12},
    {"128 to 128, pooled, 16 wide", 128, 128, 3, 16, 10, LNS_BH_RELU | LNS_BH_POOL, 3, 18, 12},
    {"128 to 128, 8 wide", 128, 128, 3, 8, 5, LNS_BH_RELU, 3, 10, 7},
    {"128 to 256, 8 wide", 128, 256, 3, 8, 5, LNS_BH_RELU, 3, 10, 7},
    {"256 to 65, 1 x 1", 256, 65, 1, 8, 5, LNS_BH_FLOAT32, 3, 8, 5},
    {"256 to 256, 1 x 1", 256, 256, 1, 8, 5, 0, 3, 10, 7},
    {"64 to 64, HiFi4", 64, 64, 3, 64, 1, LNS_BH_FLOAT32, 4, 66, 3},
};

typedef struct layer_case {
    const shape *shape;
    lns_blackhole_layer layer;
    size_t planes, plane_pixels; /* of the input, without the plane of ones */
    uint16_t *input, *weights;
    float *raw_weights, *bias;
    size_t input_bytes, weight_bytes, out_pixels, out_planes;
    int out_width, out_height;
    uint32_t weights_at;
} layer_case;

static uint32_t align(size_t address) {
    return (uint32_t)((address + 63) / 64 * 64);
}

static void make_planes(layer_case *c) {
    const shape *s = c->shape;
    const int pooled = (s->flags & LNS_BH_POOL) != 0, first = s->inputs == 1, around = first ? 0 : s->kernel / 2;
    c->planes = first ? 1 : (size_t)s->inputs / 16;
    c->plane_pixels = (size_t)s->in_width * s->in_height;
    c->input_bytes = (c->planes * c->plane_pixels + LNS_BH_JOB_PIXELS) * LNS_BH_PIXEL_BYTES;
    c->out_width = pooled ? s->width / 2 : s->width;
    c->out_height = pooled ? s->height / 2 : s->height;
    c->out_pixels = (size_t)(c->out_width + 2) * (size_t)(c->out_height + 2);
    c->out_planes = ((size_t)s->outputs + 15) / 16;
    c->layer = (lns_blackhole_layer){
        .inputs = s->inputs,
        .outputs = s->outputs,
        .kernel = s->kernel,
        .width = s->width,
        .height = s->height,
        .flags = s->flags,
        .phases = s->phases,
        .in = {LNS_BH_DATA, s->in_width, s->in_height, (uint32_t)around, (uint32_t)around},
        .out = {0, (uint32_t)c->out_width + 2, (uint32_t)c->out_height + 2, 1, 1},
    };
    c->weight_bytes = lns_blackhole_weight_count(&c->layer) * sizeof *c->weights;
    c->weights_at = align(LNS_BH_DATA + c->input_bytes);
    c->layer.out.address = align(c->weights_at + c->weight_bytes);
}

/* Pixels of the first layer: three columns of three numbers of a byte and a one. Other inputs: what a ReLU leaves. */
static uint16_t random_input(const layer_case *c, size_t channel) {
    if (c->shape->inputs == 1)
        return lns_blackhole_bfloat16(channel >= 12      ? 0.0f
                                      : channel % 4 == 3 ? 1.0f
                                                         : floorf((random_unit() + 1) * 128));
    const float value = random_unit() * 3;
    return lns_blackhole_bfloat16(value > 0 ? value : 0);
}

static void fill(layer_case *c) {
    const shape *s = c->shape;
    const size_t count = (size_t)s->outputs * (size_t)s->inputs * (size_t)s->kernel * (size_t)s->kernel;
    c->input = calloc(1, c->input_bytes);
    c->weights = malloc(c->weight_bytes);
    c->raw_weights = malloc(count * sizeof *c->raw_weights);
    c->bias = malloc((size_t)s->outputs * sizeof *c->bias);
    assert_true(c->input != NULL && c->weights != NULL && c->raw_weights != NULL && c->bias != NULL);
    const size_t numbers = c->planes * c->plane_pixels * 16;
    for (size_t i = 0; i < numbers; i++)
        c->input[i] = random_input(c, i % 16);
    for (size_t pixel = 0; pixel < LNS_BH_JOB_PIXELS; pixel++)
        c->input[numbers + pixel * 16] = c->input[numbers + pixel * 16 + 1] = lns_blackhole_bfloat16(1);
    for (size_t i = 0; i < count; i++)
        c->raw_weights[i] = random_unit() * 0.1f;
    for (int i = 0; i < s->outputs; i++)
        c->bias[i] = random_unit();
    lns_blackhole_pack_weights(&c->layer, c->raw_weights, c->bias, 1, c->weights);
}

static void free_case(layer_case *c) {
    free(c->input);
    free(c->weights);
    free(c->raw_weights);
    free(c->bias);
}

/* ---- Expected values ---------------------------------------------------------------------------- */

/* Input channel `channel` at (x, y) of the pixels that are computed, as the matrix unit sees it. */
static double input_at(const layer_case *c, int channel, int x, int y) {
    const size_t pixel = (c->layer.in.y + (size_t)y) * c->shape->in_width + c->layer.in.x + (size_t)x;
    const uint16_t value = c->input[((size_t)(channel / 16) * c->plane_pixels + pixel) * 16 + (size_t)(channel % 16)];
    return lns_blackhole_float32(c->shape->phases < 3 ? seven_bits(value) : value);
}

static double sum_at(const layer_case *c, int output, int x, int y) {
    const shape *s = c->shape;
    const int positions = s->kernel * s->kernel;
    const float *weights = c->raw_weights + (size_t)output * (size_t)s->inputs * (size_t)positions;
    double sum = c->bias[output];
    for (int input = 0; input < s->inputs; input++)
        for (int position = 0; position < positions; position++) {
            const float raw = weights[input * positions + position]; /* the first layer keeps 16 bits of it */
            const double weight = s->inputs == 1 ? raw : lns_blackhole_float32(lns_blackhole_bfloat16(raw));
            const int dx = position % s->kernel - s->kernel / 2, dy = position / s->kernel - s->kernel / 2;
            sum += weight * (s->inputs == 1 ? input_at(c, position % 3 * 4 + position / 3, x, y)
                                            : input_at(c, input, x + dx, y + dy));
        }
    return s->flags & LNS_BH_RELU && sum < 0 ? 0 : sum;
}

static double expected_at(const layer_case *c, int output, int x, int y) {
    if (!(c->shape->flags & LNS_BH_POOL))
        return sum_at(c, output, x, y);
    double largest = -INFINITY;
    for (int i = 0; i < 4; i++)
        largest = fmax(largest, sum_at(c, output, 2 * x + i % 2, 2 * y + i / 2));
    return largest;
}

/* ---- On the card -------------------------------------------------------------------------------- */

static void write_card(lns_blackhole_transport *card, uint32_t address, const void *data, size_t size) {
    assert_int_equal(card->operations->write(card, tile.first, address, data, (size + 3) / 4 * 4), LNS_OK);
}

static void run(lns_blackhole_transport *card, const layer_case *c, uint8_t *output, size_t output_bytes) {
    const uint32_t at = LNS_BH_PROGRAM, jobs_at = LNS_BH_PROGRAM + 256;
    const lns_bh_step steps[2] = {{LNS_BH_CONVOLUTION, at + sizeof steps}, {LNS_BH_END, 0}};
    lns_bh_convolution convolution;
    lns_bh_job jobs[64];
    assert_true(lns_blackhole_job_count(&c->layer) <= 64);
    assert_int_equal(lns_blackhole_describe_layer(&c->layer, c->weights_at, jobs_at, &convolution, jobs), LNS_OK);
    write_card(card, at, steps, sizeof steps);
    write_card(card, at + sizeof steps, &convolution, sizeof convolution);
    write_card(card, jobs_at, jobs, lns_blackhole_job_count(&c->layer) * sizeof *jobs);
    write_card(card, c->layer.in.address, c->input, c->input_bytes);
    write_card(card, c->weights_at, c->weights, c->weight_bytes);
    memset(output, 0xA5, output_bytes);
    write_card(card, c->layer.out.address, output, output_bytes);
    if (run_tiles(card, tile, at, ++request) != LNS_OK)
        fail_msg("%s: %s", c->shape->name, lns_error_message());
    assert_int_equal(card->operations->read(card, tile.first, c->layer.out.address, output, output_bytes), LNS_OK);
}

static double output_at(const layer_case *c, const uint8_t *output, int channel, int x, int y) {
    const size_t pixel = (size_t)(y + 1) * (size_t)(c->out_width + 2) + (size_t)(x + 1);
    const size_t index = ((size_t)(channel / 16) * c->out_pixels + pixel) * 16 + (size_t)(channel % 16);
    if (c->shape->flags & LNS_BH_FLOAT32)
        return ((const float *)output)[index];
    const uint16_t value = ((const uint16_t *)output)[index];
    return lns_blackhole_float32(c->shape->flags & LNS_BH_ROUND ? seven_bits(value) : value);
}

/* Root mean square of the difference, and of the largest one, as parts of the root mean square of the expected values.
 */
typedef struct difference {
    double rms, largest;
} difference;

static difference compare(const layer_case *c, const uint8_t *output) {
    double squares = 0, expected_squares = 0, largest = 0;
    size_t count = 0;
    for (int channel = 0; channel < c->shape->outputs; channel++)
        for (int y = 0; y < c->out_height; y++)
            for (int x = 0; x < c->out_width; x++, count++) {
                const double expected = expected_at(c, channel, x, y);
                const double error = output_at(c, output, channel, x, y) - expected;
                squares += error * error;
                expected_squares += expected * expected;
                largest = fmax(largest, fabs(error));
            }
    return (difference){sqrt(squares / expected_squares), largest / sqrt(expected_squares / (double)count)};
}

/* Pixels around the output are still as they were. */
static void check_surroundings(const layer_case *c, const uint8_t *output, size_t output_bytes) {
    const size_t pixel_bytes = c->shape->flags & LNS_BH_FLOAT32 ? LNS_BH_PIXEL_BYTES_FLOAT32 : LNS_BH_PIXEL_BYTES;
    const size_t row = (size_t)c->out_width + 2;
    assert_int_equal(output_bytes, c->out_planes * c->out_pixels * pixel_bytes);
    for (size_t i = 0; i < output_bytes; i++) {
        const size_t pixel = i / pixel_bytes % c->out_pixels, x = pixel % row, y = pixel / row;
        if (x == 0 || x == row - 1 || y == 0 || y == (size_t)c->out_height + 1)
            assert_int_equal(output[i], 0xA5);
    }
}

static void check(lns_blackhole_transport *card, const shape *s) {
    layer_case c = {.shape = s};
    make_planes(&c);
    fill(&c);
    const size_t pixel_bytes = s->flags & LNS_BH_FLOAT32 ? LNS_BH_PIXEL_BYTES_FLOAT32 : LNS_BH_PIXEL_BYTES;
    const size_t output_bytes = c.out_planes * c.out_pixels * pixel_bytes;
    uint8_t *output = malloc(output_bytes);
    assert_non_null(output);
    /* float32: what the matrix unit loses when it adds. Rounded to 7 bits: half of the last bit, 2^-7, at most. */
    const double rms_bound = s->flags & LNS_BH_FLOAT32 ? 5e-4 : 4e-3, bound = s->flags & LNS_BH_FLOAT32 ? 3e-3 : 3e-2;
    run(card, &c, output, output_bytes);
    const difference good = compare(&c, output);
    check_surroundings(&c, output, output_bytes);
    c.weights[lns_blackhole_weight_count(&c.layer) / 2 / 256 * 256] =
        lns_blackhole_bfloat16(2); /* one, of the middle */
    run(card, &c, output, output_bytes);
    const difference damaged = compare(&c, output);
    print_message("%-28s rms %.2e, largest %.2e; damaged: rms %.2e\n", s->name, good.rms, good.largest, damaged.rms);
    free(output);
    free_case(&c);
    assert_true(good.rms < rms_bound && good.largest < bound);
    assert_false(damaged.rms < rms_bound && damaged.largest < bound);
}

static void computes_all_shapes(void **state) {
    (void)state;
    lns_blackhole_transport *card = test_card();
    if (card == NULL)
        skip();
    if (lns_blackhole_start_tiles(card, tile, TIMEOUT_MS) != LNS_OK)
        fail_msg("%s", lns_error_message());
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(card, &shapes[i]);
}

static void refuses_shapes_without_a_cut(void **state) {
    (void)state;
    static const shape bad[] = {
        {"channels", 24, 64, 3, 64, 2, 0, 2, 66, 4},       {"width", 64, 64, 3, 20, 2, 0, 2, 22, 4},
        {"kernel", 64, 64, 5, 64, 2, 0, 2, 68, 6},         {"odd height", 64, 64, 3, 64, 3, LNS_BH_POOL, 2, 66, 5},
        {"outputs", 64, 0, 3, 64, 2, 0, 2, 66, 4},         {"wide planes", 64, 64, 3, 64, 2, 0, 2, 256, 4},
        {"large planes", 64, 64, 3, 64, 2, 0, 2, 128, 64},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lns_bh_convolution convolution;
        lns_bh_job jobs[64];
        const lns_blackhole_layer layer = {
            .inputs = bad[i].inputs,
            .outputs = bad[i].outputs,
            .kernel = bad[i].kernel,
            .width = bad[i].width,
            .height = bad[i].height,
            .flags = bad[i].flags,
            .phases = 2,
            .in = {LNS_BH_DATA, bad[i].in_width, bad[i].in_height, 1, 1},
            .out = {LNS_BH_DATA, 66, 66, 1, 1},
        };
        assert_int_equal(lns_blackhole_describe_layer(&layer, 0x80000, 0x90000, &convolution, jobs),
                         LNS_ERROR_UNSUPPORTED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_shapes_without_a_cut),
        cmocka_unit_test(computes_all_shapes),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_card_close();
    return failed;
}
