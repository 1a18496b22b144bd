/* SPDX-License-Identifier: Apache-2.0 */
#include "superpoint/network.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "nn/kernels.h"
#include "superpoint/postprocess.h"

#define CELLS ((size_t)LNS_CELLS_X * LNS_CELLS_Y)
#define HEAD_OUTPUTS 256                 /* channels of each head's 3 x 3 layer */
#define HEADS_WIDTH (2 * HEAD_OUTPUTS)   /* both run as one layer */
#define DESCRIPTOR_SIZE LNS_DESCRIPTOR_SIZE
#define CELLS_AT_A_TIME 60
#define TOUCHED_AT_A_TIME ((size_t)2 << 20)
#define SMALLEST_PAGE 4096

/* The 3 x 3 layers after the first, which the second computes on the way. */
enum { SECOND, BLOCK2A, BLOCK2B, BLOCK3A, BLOCK3B, BLOCK4A, BLOCK4B, HEADS, LAYERS };

static const struct {
    int height, width, inputs, outputs, pool;
    int weights; /* index of the weights; HEADS: of the first half */
    const char *name;
} plan[LAYERS] = {
    [SECOND] = {480, 640, 64, 64, 1, LNS_CONV1B, "conv1a, conv1b, pool"},
    [BLOCK2A] = {240, 320, 64, 64, 0, LNS_CONV2A, "conv2a"},
    [BLOCK2B] = {240, 320, 64, 64, 1, LNS_CONV2B, "conv2b, pool"},
    [BLOCK3A] = {120, 160, 64, 128, 0, LNS_CONV3A, "conv3a"},
    [BLOCK3B] = {120, 160, 128, 128, 1, LNS_CONV3B, "conv3b, pool"},
    [BLOCK4A] = {60, 80, 128, 128, 0, LNS_CONV4A, "conv4a"},
    [BLOCK4B] = {60, 80, 128, 128, 0, LNS_CONV4B, "conv4b"},
    [HEADS] = {60, 80, 128, HEADS_WIDTH, 0, LNS_CONV_SCORE_A, "convPa, convDa"},
};

struct lns_network {
    const lns_nn_kernels *kernels;
    lns_thread_pool *pool;
    char *memory; /* all below */
    float *first_weights, *first_bias;
    void *packed[LAYERS];
    float *bias[LAYERS];
    void *score_packed, *descriptor_packed;
    float *score_bias, *reject_weights, *descriptor_bias;
};

struct lns_network_scratch {
    char *memory; /* all below */
    size_t size;
    float *picture;
    void *odd, *even; /* outputs of the layers in turn */
    const void *rows; /* of HEADS_WIDTH channels, which the 1 x 1 layers read: one of these two, after a run */
    float *scores;
    char *workers; /* worker_size bytes for each thread */
    size_t worker_size;
};

/* ---- Laying out memory -------------------------------------------------------------------------- */

/* Gives out parts of one block; with memory NULL it only counts. */
typedef struct layout {
    char *memory;
    size_t used; /* bytes */
} layout;

/* Room for `count` values of `size` bytes. */
static void *take(layout *l, size_t count, size_t size) {
    char *part = l->memory != NULL ? l->memory + l->used : NULL;
    l->used += (count * size + LNS_KERNEL_ALIGNMENT - 1) / LNS_KERNEL_ALIGNMENT * LNS_KERNEL_ALIGNMENT;
    return part;
}

static void lay_out_network(lns_network *n, layout *l) {
    const size_t element = n->kernels->element_size;
    n->first_weights = take(l, 9 * LNS_FIRST_OUTPUTS, sizeof(float));
    n->first_bias = take(l, LNS_FIRST_OUTPUTS, sizeof(float));
    for (int i = 0; i < LAYERS; i++) {
        n->packed[i] = take(l, (size_t)plan[i].outputs * (size_t)plan[i].inputs * LNS_TILE_POINTS, element);
        n->bias[i] = take(l, (size_t)plan[i].outputs, sizeof(float));
    }
    n->score_packed = take(l, (LNS_SCORE_CLASSES - 1) * LNS_HEAD_INPUTS, element);
    n->reject_weights = take(l, LNS_HEAD_INPUTS, sizeof(float));
    n->score_bias = take(l, LNS_SCORE_CLASSES, sizeof(float));
    n->descriptor_packed = take(l, DESCRIPTOR_SIZE * LNS_HEAD_INPUTS, element);
    n->descriptor_bias = take(l, DESCRIPTOR_SIZE, sizeof(float));
}

static size_t worker_size(const lns_nn_kernels *kernels) {
    const size_t a = kernels->conv3x3_scratch(64), b = kernels->conv3x3_scratch(128);
    return a > b ? a : b;
}

static void lay_out_scratch(lns_network_scratch *s, layout *l, const lns_network *n) {
    const size_t element = n->kernels->element_size;
    s->picture =
        take(l, (size_t)(LNS_NETWORK_HEIGHT + 2 * LNS_FIRST_BORDER) * (LNS_NETWORK_WIDTH + 2 * LNS_FIRST_BORDER),
             sizeof(float));
    /* The largest outputs are those of the second layer and of block 2a, with their borders. */
    s->odd = take(l, (size_t)(240 + 2) * (320 + 2) * 64, element);
    s->even = take(l, (size_t)(240 + 2) * (320 + 2) * 64, element);
    s->scores = take(l, LNS_FRAME_PIXELS, sizeof(float));
    s->worker_size = worker_size(n->kernels);
    s->workers = take(l, (size_t)lns_thread_pool_size(n->pool), s->worker_size);
}

/* ---- Weights ------------------------------------------------------------------------------------ */

typedef struct pack_task {
    const lns_network *network;
    const lns_superpoint_weights *weights;
} pack_task;

/* Packs one block of outputs; rounds count through the blocks of all layers. */
static void pack_block(void *context, size_t round, int worker) {
    (void)worker;
    const pack_task *task = context;
    const lns_network *n = task->network;
    for (int i = 0; i < LAYERS; i++) {
        const size_t blocks = (size_t)plan[i].outputs / n->kernels->outputs_block;
        if (round >= blocks) {
            round -= blocks;
            continue;
        }
        const lns_conv_weights *conv = &task->weights->conv[plan[i].weights];
        char *packed = n->packed[i];
        const size_t half = HEAD_OUTPUTS / n->kernels->outputs_block;
        if (i == HEADS && round >= half) {
            conv = &task->weights->conv[LNS_CONV_DESCRIPTOR_A];
            packed += (size_t)HEAD_OUTPUTS * (size_t)plan[i].inputs * LNS_TILE_POINTS * n->kernels->element_size;
            round -= half;
        }
        n->kernels->pack_conv3x3(conv->weight, plan[i].inputs, round, packed);
        return;
    }
}

static void copy_floats(float *to, const float *from, size_t count) {
    memcpy(to, from, count * sizeof *to);
}

static void pack_small_layers(lns_network *n, const lns_superpoint_weights *weights) {
    const lns_conv_weights *first = &weights->conv[LNS_CONV1A];
    for (int k = 0; k < LNS_FIRST_OUTPUTS; k++)
        for (int i = 0; i < 9; i++)
            n->first_weights[i * LNS_FIRST_OUTPUTS + k] = first->weight[k * 9 + i];
    copy_floats(n->first_bias, first->bias, LNS_FIRST_OUTPUTS);
    for (int i = 0; i < LAYERS; i++)
        copy_floats(n->bias[i], weights->conv[plan[i].weights].bias, (size_t)(i == HEADS ? HEAD_OUTPUTS : plan[i].outputs));
    copy_floats(n->bias[HEADS] + HEAD_OUTPUTS, weights->conv[LNS_CONV_DESCRIPTOR_A].bias, HEAD_OUTPUTS);

    const lns_conv_weights *score = &weights->conv[LNS_CONV_SCORE_B];
    n->kernels->pack_conv1x1(score->weight, LNS_SCORE_CLASSES - 1, LNS_HEAD_INPUTS, n->score_packed);
    copy_floats(n->reject_weights, score->weight + (LNS_SCORE_CLASSES - 1) * LNS_HEAD_INPUTS, LNS_HEAD_INPUTS);
    copy_floats(n->score_bias, score->bias, LNS_SCORE_CLASSES);

    const lns_conv_weights *descriptor = &weights->conv[LNS_CONV_DESCRIPTOR_B];
    n->kernels->pack_conv1x1(descriptor->weight, DESCRIPTOR_SIZE, LNS_HEAD_INPUTS, n->descriptor_packed);
    copy_floats(n->descriptor_bias, descriptor->bias, DESCRIPTOR_SIZE);
}

/* Says which of CPU and LENSING_CPU stands in the way. */
static lns_status refuse_bf16(lns_cpu_level level) {
    if (!lns_cpu_has_bf16())
        return lns_fail(LNS_ERROR_UNSUPPORTED,
                        "precision bf16 needs a CPU with AVX512_BF16, which this one has not; use fp32");
    return lns_fail(LNS_ERROR_UNSUPPORTED, "precision bf16 needs the avx512 kernels, and LENSING_CPU is %s; use fp32",
                    lns_cpu_level_name(level));
}

lns_status lns_network_create(const lns_superpoint_weights *weights, lns_cpu_level level, lns_precision precision,
                              lns_thread_pool *pool, lns_network **result) {
    *result = NULL;
    const lns_nn_kernels *kernels = lns_nn_kernels_for(level, precision);
    if (kernels == NULL)
        return refuse_bf16(level);
    lns_network *n = lns_calloc(1, sizeof *n);
    if (n == NULL)
        return lns_fail_memory(sizeof *n);
    n->kernels = kernels;
    n->pool = pool;
    layout l = {0};
    lay_out_network(n, &l);
    n->memory = lns_aligned_alloc(l.used);
    if (n->memory == NULL) {
        lns_free(n);
        return lns_fail_memory(l.used);
    }
    l = (layout){n->memory, 0};
    lay_out_network(n, &l);
    pack_small_layers(n, weights);
    size_t blocks = 0;
    for (int i = 0; i < LAYERS; i++)
        blocks += (size_t)plan[i].outputs / n->kernels->outputs_block;
    pack_task task = {n, weights};
    lns_thread_pool_run(pool, blocks, pack_block, &task);
    *result = n;
    return LNS_OK;
}

void lns_network_destroy(lns_network **network) {
    if (*network != NULL)
        lns_aligned_free((*network)->memory);
    lns_free(*network);
    *network = NULL;
}

const char *lns_network_kernels(const lns_network *network) {
    return network->kernels->name;
}

lns_status lns_network_scratch_create(const lns_network *network, lns_network_scratch **scratch) {
    *scratch = NULL;
    lns_network_scratch *s = lns_calloc(1, sizeof *s);
    if (s == NULL)
        return lns_fail_memory(sizeof *s);
    layout l = {0};
    lay_out_scratch(s, &l, network);
    s->memory = lns_aligned_alloc(l.used);
    if (s->memory == NULL) {
        lns_free(s);
        return lns_fail_memory(l.used);
    }
    s->size = l.used;
    l = (layout){s->memory, 0};
    lay_out_scratch(s, &l, network);
    *scratch = s;
    return LNS_OK;
}

static void touch_block(void *context, size_t round, int worker) {
    (void)worker;
    const lns_network_scratch *s = context;
    const size_t end = (round + 1) * TOUCHED_AT_A_TIME < s->size ? (round + 1) * TOUCHED_AT_A_TIME : s->size;
    for (size_t i = round * TOUCHED_AT_A_TIME; i < end; i += SMALLEST_PAGE)
        ((volatile char *)s->memory)[i] = 0; /* it holds nothing between runs */
}

void lns_network_scratch_touch(const lns_network *network, lns_network_scratch *scratch) {
    const size_t rounds = (scratch->size + TOUCHED_AT_A_TIME - 1) / TOUCHED_AT_A_TIME;
    lns_thread_pool_run(network->pool, rounds, touch_block, scratch);
}

void lns_network_scratch_destroy(lns_network_scratch **scratch) {
    if (*scratch != NULL)
        lns_aligned_free((*scratch)->memory);
    lns_free(*scratch);
    *scratch = NULL;
}

/* ---- Running ------------------------------------------------------------------------------------ */

static void convert_frame(const uint8_t *frame, float *picture) {
    const size_t row = LNS_NETWORK_WIDTH + 2 * LNS_FIRST_BORDER;
    const size_t border = LNS_FIRST_BORDER * row;
    memset(picture, 0, border * sizeof *picture);
    memset(picture + border + LNS_NETWORK_HEIGHT * row, 0, border * sizeof *picture);
    for (int y = 0; y < LNS_NETWORK_HEIGHT; y++) {
        float *out = picture + border + (size_t)y * row;
        const uint8_t *in = frame + (size_t)y * LNS_NETWORK_WIDTH;
        for (int x = 0; x < LNS_FIRST_BORDER; x++)
            out[x] = out[LNS_FIRST_BORDER + LNS_NETWORK_WIDTH + x] = 0.0f;
        for (int x = 0; x < LNS_NETWORK_WIDTH; x++)
            out[LNS_FIRST_BORDER + x] = (float)in[x] / 255.0f;
    }
}

/* One pixel of zeros around an output of height x width pixels of `pixel` bytes. */
static void clear_border(void *output, size_t height, size_t width, size_t pixel) {
    const size_t row = (width + 2) * pixel;
    memset(output, 0, row);
    memset((char *)output + (height + 1) * row, 0, row);
    for (size_t y = 1; y <= height; y++) {
        memset((char *)output + y * row, 0, pixel);
        memset((char *)output + y * row + (width + 1) * pixel, 0, pixel);
    }
}

typedef struct layer_task {
    const lns_nn_kernels *kernels;
    lns_conv3x3 layer;
    size_t shares; /* parts that the outputs of a block of tiles are split into, for layers of few tiles */
    lns_network_scratch *scratch;
} layer_task;

static void run_block(void *context, size_t round, int worker) {
    layer_task *task = context;
    const size_t blocks = (size_t)task->layer.outputs / task->kernels->outputs_block;
    const size_t share = round % task->shares;
    task->kernels->conv3x3(&task->layer, round / task->shares, blocks * share / task->shares,
                           blocks * (share + 1) / task->shares,
                           task->scratch->workers + (size_t)worker * task->scratch->worker_size);
}

static void run_layer(const lns_network *n, layer_task *task) {
    const size_t tiles = (size_t)(task->layer.height / LNS_TILE_OUTPUT) * (size_t)(task->layer.width / LNS_TILE_OUTPUT);
    const size_t at_a_time = n->kernels->conv3x3_tiles(task->layer.inputs);
    const size_t rounds = (tiles + at_a_time - 1) / at_a_time;
    const size_t blocks = (size_t)task->layer.outputs / n->kernels->outputs_block;
    /* Enough rounds to keep all threads busy to the end; every share transforms the inputs again. */
    const size_t wanted = 4 * (size_t)lns_thread_pool_size(n->pool);
    task->shares = (wanted + rounds - 1) / rounds;
    task->shares = task->shares < blocks ? task->shares : blocks;
    lns_thread_pool_run(n->pool, rounds * task->shares, run_block, task);
}

/* Where the times of steps go. */
typedef struct profile {
    lns_step_time *steps;
    size_t count;
    double last; /* when the step before ended */
} profile;

/* The end of a step. */
static void note_step(profile *p, const char *name, double operations) {
    if (p == NULL)
        return;
    const double now = lns_clock_ms();
    p->steps[p->count++] = (lns_step_time){name, now - p->last, operations * 1e-9};
    p->last = now;
}

/* Additions and multiplications of the products of a layer, and of the first layer where that is computed in it. */
static double layer_operations(int layer) {
    const double tiles = (double)(plan[layer].height / LNS_TILE_OUTPUT) * (plan[layer].width / LNS_TILE_OUTPUT);
    const double first = layer == SECOND ? 2.0 * 9 * LNS_FIRST_OUTPUTS * plan[layer].height * plan[layer].width : 0;
    return 2.0 * LNS_TILE_POINTS * tiles * plan[layer].inputs * plan[layer].outputs + first;
}

/* The 3 x 3 layers. Returns the rows of HEADS_WIDTH channels that the 1 x 1 layers read. */
static const void *run_layers(const lns_network *n, lns_network_scratch *s, int with_descriptors, profile *times) {
    const lns_first_layer first = {s->picture, n->first_weights, n->first_bias};
    const size_t element = n->kernels->element_size;
    const void *input = NULL;
    void *output = s->odd;
    for (int i = 0; i < LAYERS; i++) {
        const size_t height = (size_t)(plan[i].pool ? plan[i].height / 2 : plan[i].height);
        const size_t width = (size_t)(plan[i].pool ? plan[i].width / 2 : plan[i].width);
        const size_t channels = (size_t)plan[i].outputs;
        const size_t border = i == HEADS ? 0 : 1;
        const size_t row = (width + 2 * border) * channels;
        if (border > 0)
            clear_border(output, height, width, channels * element);
        layer_task task = {
            .kernels = n->kernels,
            .layer = {.height = plan[i].height,
                      .width = plan[i].width,
                      .inputs = plan[i].inputs,
                      .outputs = i == HEADS && !with_descriptors ? HEAD_OUTPUTS : plan[i].outputs,
                      .pool = plan[i].pool,
                      .packed = n->packed[i],
                      .bias = n->bias[i],
                      .first = i == SECOND ? &first : NULL,
                      .input = input,
                      .output = (char *)output + border * (row + channels) * element,
                      .output_row = row,
                      .output_pixel = channels},
            .scratch = s,
        };
        run_layer(n, &task);
        note_step(times, plan[i].name, layer_operations(i));
        input = output;
        output = output == s->odd ? s->even : s->odd;
    }
    return input;
}

static size_t rounds_of(size_t cells) {
    return (cells + CELLS_AT_A_TIME - 1) / CELLS_AT_A_TIME;
}

static size_t end_of_round(size_t round, size_t cells) {
    const size_t end = (round + 1) * CELLS_AT_A_TIME;
    return end < cells ? end : cells;
}

typedef struct score_task {
    const lns_nn_kernels *kernels;
    lns_score_head head;
} score_task;

static void run_score_head(void *context, size_t round, int worker) {
    (void)worker;
    const score_task *task = context;
    task->kernels->score_head(&task->head, round * CELLS_AT_A_TIME, end_of_round(round, CELLS));
}

typedef struct descriptor_task {
    const lns_nn_kernels *kernels;
    lns_descriptor_head head;
    size_t count; /* of cells */
} descriptor_task;

static void run_descriptor_head(void *context, size_t round, int worker) {
    (void)worker;
    const descriptor_task *task = context;
    task->kernels->descriptor_head(&task->head, round * CELLS_AT_A_TIME, end_of_round(round, task->count));
}

static const float *run_network(const lns_network *n, lns_network_scratch *s, const uint8_t *frame,
                                int with_descriptors, profile *times) {
    convert_frame(frame, s->picture);
    note_step(times, "bytes to floats", 0);
    s->rows = run_layers(n, s, with_descriptors, times);
    score_task task = {
        .kernels = n->kernels,
        .head = {s->rows, HEADS_WIDTH, LNS_CELLS_X, LNS_CELLS_Y, n->score_packed, n->score_bias, n->reject_weights,
                 s->scores},
    };
    lns_thread_pool_run(n->pool, rounds_of(CELLS), run_score_head, &task);
    return s->scores;
}

const float *lns_network_run(const lns_network *n, lns_network_scratch *s, const uint8_t *frame, int with_descriptors) {
    return run_network(n, s, frame, with_descriptors, NULL);
}

const float *lns_network_describe(const lns_network *n, lns_network_scratch *s, const uint16_t *cells, size_t count) {
    /* The last layer's input is not needed any more: its place takes the descriptors. */
    float *map = s->rows == s->odd ? s->even : s->odd;
    descriptor_task task = {
        .kernels = n->kernels,
        .head = {(const char *)s->rows + HEAD_OUTPUTS * n->kernels->element_size, HEADS_WIDTH, n->descriptor_packed,
                 n->descriptor_bias, map, cells},
        .count = cells != NULL ? count : CELLS,
    };
    lns_thread_pool_run(n->pool, rounds_of(task.count), run_descriptor_head, &task);
    return map;
}

size_t lns_network_profile(const lns_network *n, lns_network_scratch *s, const uint8_t *frame, lns_step_time *steps) {
    _Static_assert(LAYERS + 2 <= LNS_STEPS_LIMIT, "room for the layers, the frame before and the heads behind");
    profile times = {steps, 0, lns_clock_ms()};
    run_network(n, s, frame, 1, &times);
    lns_network_describe(n, s, NULL, 0);
    note_step(&times, "convPb, convDb", 2.0 * CELLS * LNS_HEAD_INPUTS * (LNS_SCORE_CLASSES + DESCRIPTOR_SIZE));
    return times.count;
}

/* ---- The fastest that it could go --------------------------------------------------------------- */

#define PEAK_MULTIPLY_ADDS 20000 /* of one round, for each accumulator: well below a millisecond */
#define PEAK_ROUNDS 24           /* of each thread in one measurement */
#define PEAK_MEASUREMENTS 10

static void multiply_in_registers(void *context, size_t round, int worker) {
    (void)round;
    (void)worker;
    const lns_network *n = context;
    n->kernels->multiply_in_registers(PEAK_MULTIPLY_ADDS);
}

double lns_network_peak_gflops(const lns_network *n) {
    const size_t rounds = PEAK_ROUNDS * (size_t)lns_thread_pool_size(n->pool);
    double best = 0;
    for (int i = 0; i < PEAK_MEASUREMENTS; i++) {
        const double operations = n->kernels->multiply_in_registers(PEAK_MULTIPLY_ADDS) * (double)rounds;
        const double start = lns_clock_ms();
        lns_thread_pool_run(n->pool, rounds, multiply_in_registers, (void *)(uintptr_t)n);
        const double gflops = operations * 1e-6 / (lns_clock_ms() - start);
        best = gflops > best ? gflops : best;
    }
    return best;
}
