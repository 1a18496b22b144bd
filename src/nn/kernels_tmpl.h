/* SPDX-License-Identifier: Apache-2.0 */
/* Body of a kernel set. The including file defines, for its registers:
 *   LANES, vec, ivec       vectors of LANES floats and ints
 *   vec_all, vec_fma, vec_max, vec_round, vec_from_int
 *   ROWS, COLUMNS          accumulators of the matrix product: ROWS tiles x COLUMNS vectors of outputs
 *   TILES(inputs)          tiles of a block, a multiple of ROWS
 *   TABLE, TABLE_NAME      the table to fill
 * and includes what defines its elements, elements_float32.h or its own:
 *   element                type of activations, transformed inputs and packed weights
 *   STEP                   input channels that one multiply_add() takes
 *   operand                LANES x STEP elements
 *   load_elements, store_elements, to_element, repeat_elements, load_weights, multiply_add
 */
#include "nn/kernels.h"

#define BLOCK (COLUMNS * LANES) /* outputs that are computed together */

/* Sums over channels are kept in 16 parts whatever the width of the registers, and the parts are added in a fixed order:
 * kernel sets with fused multiply-add then agree to the last bit. */
#define PARTS 16
#define PART_VECS (PARTS / LANES)

INLINE float sum_parts(const vec *parts) {
    float lanes[PARTS];
    memcpy(lanes, parts, sizeof lanes);
    for (int width = PARTS / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

#include "nn/matrix_tmpl.h"

#include "nn/winograd_tmpl.h"

#include "nn/heads_tmpl.h"

const lns_nn_kernels TABLE = {
    .name = TABLE_NAME,
    .element_size = sizeof(element),
    .outputs_block = BLOCK,
    .pack_conv3x3 = pack_conv3x3,
    .pack_conv1x1 = pack_conv1x1,
    .conv3x3_tiles = conv3x3_tiles,
    .conv3x3_scratch = conv3x3_scratch,
    .conv3x3 = conv3x3,
    .score_head = score_head,
    .descriptor_head = descriptor_head,
    .multiply_in_registers = multiply_in_registers,
};
