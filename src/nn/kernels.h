/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the network, one table of functions for each kernel set.
 *
 * Activations are NHWC: the channels of a pixel lie together, pixels in rows. Inputs of 3 x 3 layers have a border of
 * one zero pixel on every side, so that no kernel has to ask where the picture ends. Activations between layers and
 * packed weights are elements of the kernel set: float32, or bfloat16 in the sets for LNS_PRECISION_BF16, which
 * multiply those and add in float32. The first layer, softmax and lengths are float32 in all.
 *
 * 3 x 3 layers use Winograd's minimal filtering F(4x4, 3x3): a tile of 6 x 6 inputs gives 4 x 4 outputs with 36 instead
 * of 144 products (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). The interpolation
 * points are 0, +-sqrt(1/2), +-sqrt(2) and infinity: their transforms have the smallest rounding errors of the usual
 * choices. Every output is the same sum in the same order, whichever block or thread computes it, and in every kernel
 * set; float32 sets with fused multiply-add (AVX2, AVX-512, NEON) give the same bits. */
#ifndef LENSING_NN_KERNELS_H
#define LENSING_NN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/superpoint.h>

#include "base/cpu.h"

#define LNS_TILE_OUTPUT 4                                     /* outputs of a tile, each way */
#define LNS_TILE_INPUT (LNS_TILE_OUTPUT + 2)                  /* inputs of a tile, each way */
#define LNS_TILE_POINTS (LNS_TILE_INPUT * LNS_TILE_INPUT)     /* products for a tile and a pair of channels */
#define LNS_FIRST_OUTPUTS 64                                  /* channels that the first layer makes */
#define LNS_FIRST_BORDER 2                                    /* zero pixels around the picture it reads */
#define LNS_KERNEL_ALIGNMENT 64                                /* of every array that is called aligned */
#define LNS_HEAD_INPUTS 256                                   /* channels that the 1 x 1 layers read */
#define LNS_SCORE_CLASSES 65                                  /* 8 x 8 pixels of a cell and "no keypoint" */

/* The first layer, 1 -> 64 channels: too little arithmetic to be worth a pass over memory, so that the second layer
 * computes it while it reads. */
typedef struct lns_first_layer {
    const float *picture; /* (height + 4) x (width + 4), values in [0, 1], with a border of 2 zeros */
    const float *weights; /* 9 x 64, aligned */
    const float *bias;    /* 64, aligned */
} lns_first_layer;

/* A 3 x 3 layer with bias and ReLU, and maybe a 2 x 2 max-pool. */
typedef struct lns_conv3x3 {
    int height, width;   /* of the input; multiples of 4 */
    int inputs;          /* channels: 64 or 128 */
    int outputs;         /* channels: a multiple of outputs_block */
    int pool;            /* not 0: the output is half as high and wide */
    const void *packed;  /* from pack_conv3x3 */
    const float *bias;   /* outputs, aligned */
    const lns_first_layer *first; /* not NULL: the input is what this layer makes of its picture; needs 64 inputs and pool */
    const void *input;            /* else (height + 2) x (width + 2) x inputs elements, aligned */
    void *output;                 /* channel 0 of the top left output pixel, aligned */
    size_t output_row;            /* elements from one row of the output to the next */
    size_t output_pixel;          /* elements from one pixel to the next, a multiple of 32 */
} lns_conv3x3;

/* The two 1 x 1 layers at the end. Both read rows of LNS_HEAD_INPUTS channels. */
typedef struct lns_score_head {
    const void *input; /* row 0 */
    size_t stride;     /* elements from one cell to the next */
    size_t cells_x, cells_y;
    const void *packed;          /* 64 outputs, from pack_conv1x1 */
    const float *bias;           /* 65 */
    const float *reject_weights; /* 256: the 65th output, "no keypoint here" */
    float *scores;               /* (8 cells_y) x (8 cells_x) */
} lns_score_head;

typedef struct lns_descriptor_head {
    const void *input;
    size_t stride;
    const void *packed;  /* 256 outputs, from pack_conv1x1 */
    const float *bias;   /* 256 */
    float *descriptors;  /* cells x 256, each row of length 1 */
    const uint16_t *cells; /* those that are wanted, rising; the others' rows are left as they are. NULL: all */
} lns_descriptor_head;

typedef struct lns_nn_kernels {
    const char *name;
    size_t element_size;  /* bytes: 4 for float32, 2 for bfloat16 */
    size_t outputs_block; /* output channels that are computed together */

    /* Winograd transform of weights (outputs x inputs x 3 x 3) of one block of outputs. `packed`: the whole array,
     * outputs * inputs * LNS_TILE_POINTS elements, aligned. */
    void (*pack_conv3x3)(const float *weights, int inputs, size_t block, void *packed);
    /* weights (outputs x inputs) -> outputs * inputs elements, aligned; outputs a multiple of outputs_block. */
    void (*pack_conv1x1)(const float *weights, int outputs, int inputs, void *packed);

    /* Tiles that conv3x3 takes at a time, and the bytes of scratch memory that it needs, aligned. */
    size_t (*conv3x3_tiles)(int inputs);
    size_t (*conv3x3_scratch)(int inputs);
    /* Tiles `block` * conv3x3_tiles ... of the layer, blocks of outputs first_outputs <= b < end_outputs. */
    void (*conv3x3)(const lns_conv3x3 *layer, size_t block, size_t first_outputs, size_t end_outputs, void *scratch);

    /* Cells first <= c < end, in row-major order; scratch is on the stack. */
    void (*score_head)(const lns_score_head *head, size_t first, size_t end);
    /* The same of the cells that are wanted. A cell gets the same bits whichever others are. */
    void (*descriptor_head)(const lns_descriptor_head *head, size_t first, size_t end);

    /* The multiply-adds of the matrix products, on registers alone, `rounds` times as many as it has accumulators.
     * Returns how many additions and multiplications that is. */
    double (*multiply_in_registers)(size_t rounds);
} lns_nn_kernels;

/* The table of a level; the level must not be above lns_cpu_best_level(). NULL when there is none for this precision or
 * this CPU cannot run it, which is never so for LNS_PRECISION_FP32. */
const lns_nn_kernels *lns_nn_kernels_for(lns_cpu_level level, lns_precision precision);

extern const lns_nn_kernels lns_nn_kernels_c;
#if defined(__x86_64__)
extern const lns_nn_kernels lns_nn_kernels_avx2;
extern const lns_nn_kernels lns_nn_kernels_avx512;
extern const lns_nn_kernels lns_nn_kernels_avx512_bf16;
#endif

#endif
