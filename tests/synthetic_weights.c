/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 480, BLOCK = 16, FRAME_STREAM = 1000 };

static const struct {
    int outputs, inputs, kernel;
} shapes[LNS_CONV_COUNT] = {
    [LNS_CONV1A] = {64, 1, 3},
    [LNS_CONV1B] = {64, 64, 3},
    [LNS_CONV2A] = {64, 64, 3},
    [LNS_CONV2B] = {64, 64, 3},
    [LNS_CONV3A] = {128, 64, 3},
    [LNS_CONV3B] = {128, 128, 3},
    [LNS_CONV4A] = {128, 128, 3},
    [LNS_CONV4B] = {128, 128, 3},
    [LNS_CONV_SCORE_A] = {256, 128, 3},
    [LNS_CONV_SCORE_B] = {65, 256, 1},
    [LNS_CONV_DESCRIPTOR_A] = {256, 128, 3},
    [LNS_CONV_DESCRIPTOR_B] = {256, 256, 1},
};

uint64_t synthetic_number(uint64_t stream, uint64_t index) {
    uint64_t z = (stream << 32) + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Evenly spread over -scale .. scale. */
static void fill(float *values, size_t count, uint64_t stream, float scale) {
    for (size_t i = 0; i < count; i++)
        values[i] = ((float)(synthetic_number(stream, i) >> 40) * 0x1p-23F - 1.0F) * scale;
}

/* The spread of He's initialisation keeps activations at their size through the ReLUs. */
static float weight_scale(int layer) {
    const double gain = layer == LNS_CONV_SCORE_B ? 3.0 : 6.0;
    return (float)sqrt(gain / (double)(shapes[layer].inputs * shapes[layer].kernel * shapes[layer].kernel));
}

static int make_layer(lns_conv_weights *conv, int layer) {
    const size_t kernel_size = (size_t)(shapes[layer].kernel * shapes[layer].kernel);
    const size_t outputs = (size_t)shapes[layer].outputs;
    const size_t count = outputs * (size_t)shapes[layer].inputs * kernel_size;
    float *weight = malloc(count * sizeof *weight), *bias = malloc(outputs * sizeof *bias);
    *conv = (lns_conv_weights){shapes[layer].outputs, shapes[layer].inputs, shapes[layer].kernel, weight, bias};
    if (weight == NULL || bias == NULL)
        return 0;
    fill(weight, count, (uint64_t)(2 * layer + 1), weight_scale(layer));
    fill(bias, outputs, (uint64_t)(2 * layer + 2), 0.125F);
    if (layer == LNS_CONV_SCORE_B)
        bias[64] += 4.0F; /* "no keypoint" is the usual answer */
    return 1;
}

lns_superpoint_weights *synthetic_weights_make(void) {
    lns_superpoint_weights *weights = calloc(1, sizeof *weights);
    if (weights == NULL)
        return NULL;
    weights->border_removal_distance = 4;
    weights->license = strdup("synthetic");
    int complete = weights->license != NULL;
    for (int layer = 0; layer < LNS_CONV_COUNT; layer++)
        complete &= make_layer(&weights->conv[layer], layer);
    if (complete)
        return weights;
    synthetic_weights_free(weights);
    return NULL;
}

void synthetic_weights_free(lns_superpoint_weights *weights) {
    if (weights == NULL)
        return;
    for (int layer = 0; layer < LNS_CONV_COUNT; layer++) {
        free((void *)weights->conv[layer].weight);
        free((void *)weights->conv[layer].bias);
    }
    free(weights->license);
    free(weights);
}

void synthetic_frame(uint8_t *frame) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const uint64_t block = (uint64_t)(y / BLOCK * (WIDTH / BLOCK) + x / BLOCK);
            const uint64_t shade = (uint64_t)(x / 16 + y / 12);
            const uint64_t noise = synthetic_number(FRAME_STREAM, (uint64_t)(y * WIDTH + x)) >> 60;
            frame[y * WIDTH + x] = (uint8_t)(shade + (synthetic_number(FRAME_STREAM + 1, block) >> 57) + noise);
        }
}
