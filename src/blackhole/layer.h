/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of the network as a tile computes it: its weights in the order of the matrix unit, and its pixels cut into
 * jobs. */
#ifndef LENSING_BLACKHOLE_LAYER_H
#define LENSING_BLACKHOLE_LAYER_H

#include <stddef.h>

#include <lensing/status.h>

#include "blackhole/program.h"

/* A set of planes in L1: `width` x `height` pixels with all that lies around them. The layer's first pixel, (0, 0), is
 * at (x, y) in them. */
typedef struct lns_blackhole_planes {
    uint32_t address; /* a multiple of 16 */
    uint32_t width, height, x, y;
} lns_blackhole_planes;

typedef struct lns_blackhole_layer {
    int inputs, outputs; /* channels; `inputs` is a multiple of 16, or 1 for the first layer, see below */
    int kernel;          /* 3: 3 x 3, 1: 1 x 1 */
    int width, height;   /* pixels that are computed, before pooling: 8, 16, 32 or at least 64 in a row */
    uint32_t flags;      /* LNS_BH_RELU, ... */
    uint32_t phases;
    lns_blackhole_planes in, out; /* in.x and in.y are at least 1 for 3 x 3 */
} lns_blackhole_layer;

/* Bfloat16 numbers of a layer's weights in L1. */
size_t lns_blackhole_weight_count(const lns_blackhole_layer *layer);

/* Puts the weights, [outputs][inputs][kernel][kernel], and the bias, [outputs], into the order of lns_bh_convolution,
 * each multiplied by `scale` first where it is a weight. The bias is the sum of two numbers of bfloat16, of two input
 * channels that are 1, so it keeps 16 bits. Outputs are filled up to whole blocks of 16 with zeros.
 *
 * With `inputs` 1, the 3 x 3 neighbourhood of a pixel is given as channels, see lns_bh_image. */
void lns_blackhole_pack_weights(const lns_blackhole_layer *layer, const float *weights, const float *bias, float scale,
                                uint16_t *packed);

/* Number of jobs of a layer. */
size_t lns_blackhole_job_count(const lns_blackhole_layer *layer);

/* Fills the descriptor and its jobs, which will lie at L1 addresses `weights` and `jobs`. The planes of a layer with
 * more than one input channel are followed by a plane of ones, whose first 64 pixels are read: the first two channels
 * 1, the others 0. LNS_ERROR_UNSUPPORTED: the shape is none that can be cut into jobs, or its planes are too large. */
lns_status lns_blackhole_describe_layer(const lns_blackhole_layer *layer, uint32_t weights, uint32_t jobs,
                                        lns_bh_convolution *convolution, lns_bh_job *job_list);

/* The nearest number of bfloat16, ties to even; not for NaN. */
uint16_t lns_blackhole_bfloat16(float value);
float lns_blackhole_float32(uint16_t bfloat16);

#endif
