/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the plan: what lies where in L1, and the layers with their weights. */
#ifndef LENSING_BLACKHOLE_PLAN_LAYERS_H
#define LENSING_BLACKHOLE_PLAN_LAYERS_H

#include "blackhole/layer.h"
#include "blackhole/plan.h"

#define PLAN_UNIT_OUTPUTS (LNS_BH_JOB_BLOCKS * LNS_BH_CHANNELS) /* of streamed weights: 64 channels at a time */

/* Planes of a block at half, quarter and eighth size, with a ring of one pixel, and a plane of ones behind them. */
#define PLANES_BYTES(width, height, planes) ((uint32_t)(width) * (height) * (planes)*LNS_BH_PIXEL_BYTES)
#define ONES_BYTES (LNS_BH_JOB_PIXELS * LNS_BH_PIXEL_BYTES)
#define ALIGNED(size) (((uint32_t)(size) + 63) / 64 * 64)

enum {
    PLAN_RAW_RING = 2, /* pixels that the first layer reads around a block, for the ring that the second one needs */
    PLAN_RAW_LEFT = 64, /* bytes before a row, which begins as aligned as in the host's memory */
    PLAN_RAW_ROW = PLAN_RAW_LEFT + LNS_BLACKHOLE_BLOCK_WIDTH, /* the ring at the right lies before the next row */
    PLAN_RAW_BYTES = (LNS_BLACKHOLE_BLOCK_HEIGHT + 2 * PLAN_RAW_RING + 1) * PLAN_RAW_ROW,
    PLAN_IMAGE_BYTES = PLANES_BYTES(LNS_BLACKHOLE_BLOCK_WIDTH + 2, LNS_BLACKHOLE_BLOCK_HEIGHT + 2, 1),
    PLAN_FULL_BYTES = PLANES_BYTES(LNS_BLACKHOLE_BLOCK_WIDTH + 2, LNS_BLACKHOLE_BLOCK_HEIGHT + 2, 4),
    PLAN_HALF_BYTES = PLANES_BYTES(LNS_BLACKHOLE_BLOCK_WIDTH / 2 + 2, LNS_BLACKHOLE_BLOCK_HEIGHT / 2 + 2, 4),
    PLAN_QUARTER_BYTES = PLANES_BYTES(LNS_BLACKHOLE_BLOCK_WIDTH / 4 + 2, LNS_BLACKHOLE_BLOCK_HEIGHT / 4 + 2, 4),
    PLAN_CELL_BYTES = PLANES_BYTES(LNS_BLACKHOLE_CELLS_X + 2, LNS_BLACKHOLE_CELLS_Y + 2, 8),
    PLAN_HEAD_BYTES = PLANES_BYTES(LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, 16),
    PLAN_LOGIT_BYTES = LNS_BLACKHOLE_CELLS_X * LNS_BLACKHOLE_CELLS_Y * 5 * LNS_BH_PIXEL_BYTES_FLOAT32,
    PLAN_DESCRIPTOR_BYTES = PLANES_BYTES(LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, 16),
    PLAN_SCORE_LEFT = 16, /* numbers before the scores of a row, so that these begin at 64 bytes; and after them */
    PLAN_SCORE_ROW = (PLAN_SCORE_LEFT + LNS_BLACKHOLE_BLOCK_WIDTH + PLAN_SCORE_LEFT) * 4,
    PLAN_SCORE_RING = LNS_BH_LARGEST_RADIUS,
    PLAN_SCORE_BYTES = (LNS_BLACKHOLE_BLOCK_HEIGHT + 2 * PLAN_SCORE_RING) * PLAN_SCORE_ROW,
    PLAN_STEP_BYTES = PLAN_UNIT_OUTPUTS * LNS_BH_CHANNELS * 2, /* weights of one step of 16 input channels */
    PLAN_STREAM_BYTES = (9 * 128 / LNS_BH_CHANNELS + 1) * PLAN_STEP_BYTES, /* the largest unit: 3 x 3, 128 inputs */

    PLAN_RAW_AT = LNS_BH_DATA,
    PLAN_RAW_BLOCK_AT = PLAN_RAW_AT + PLAN_RAW_RING * PLAN_RAW_ROW + PLAN_RAW_LEFT,
    PLAN_IMAGE_AT = PLAN_RAW_AT + ALIGNED(PLAN_RAW_BYTES),
    PLAN_FULL_AT = PLAN_IMAGE_AT + PLAN_IMAGE_BYTES,
    PLAN_HALF_AT = PLAN_FULL_AT + PLAN_FULL_BYTES + ONES_BYTES,
    PLAN_HALF2_AT = PLAN_HALF_AT + PLAN_HALF_BYTES + ONES_BYTES,
    PLAN_QUARTER_AT = PLAN_HALF2_AT + PLAN_HALF_BYTES + ONES_BYTES,
    PLAN_QUARTER2_AT = PLAN_QUARTER_AT + PLAN_QUARTER_BYTES + ONES_BYTES,
    PLAN_CELL_AT = PLAN_QUARTER2_AT + 2 * PLAN_QUARTER_BYTES + ONES_BYTES,
    PLAN_CELL2_AT = PLAN_CELL_AT + PLAN_CELL_BYTES + ONES_BYTES,
    PLAN_HEAD_AT = PLAN_CELL2_AT + PLAN_CELL_BYTES + ONES_BYTES,
    PLAN_RESIDENT_AT = PLAN_HEAD_AT + PLAN_HEAD_BYTES + ONES_BYTES,

    /* The largest planes are needed in the first two layers only. Later the last weights and the results lie there. */
    PLAN_STREAM_AT = PLAN_FULL_AT,
    PLAN_LOGIT_AT = PLAN_STREAM_AT + 2 * PLAN_STREAM_BYTES,
    PLAN_DESCRIPTOR_AT = PLAN_LOGIT_AT + PLAN_LOGIT_BYTES,
    PLAN_SCORE_AROUND_AT = PLAN_IMAGE_AT,
    PLAN_SCORE_AT = PLAN_SCORE_AROUND_AT + PLAN_SCORE_RING * PLAN_SCORE_ROW + PLAN_SCORE_LEFT * 4,
    PLAN_LIST_AT = PLAN_SCORE_AROUND_AT + PLAN_SCORE_BYTES
};

/* Sets of planes: pixels without the ring, and how wide that is. */
typedef struct lns_plan_place {
    uint32_t address;
    int width, height, ring;
} lns_plan_place;

enum {
    PLAN_IMAGE,
    PLAN_FULL,
    PLAN_HALF,
    PLAN_HALF2,
    PLAN_QUARTER,
    PLAN_QUARTER2,
    PLAN_CELLS,
    PLAN_CELLS2,
    PLAN_HEAD,
    PLAN_LOGITS,
    PLAN_DESCRIPTORS
};

const lns_plan_place *lns_plan_place_of(int where);

/* Layers are the LNS_CONV_... of superpoint_weights.h. Those from 4a on are streamed: they are computed in units of up
 * to 64 outputs, whose weights come together. Others are one unit. */
int lns_plan_unit_count(int index);
lns_blackhole_layer lns_plan_unit_of(int index, int unit);

/* Bytes of the weights of a layer or unit, and where those of a unit begin among the resident or the streamed ones. */
uint32_t lns_plan_weight_bytes(const lns_blackhole_layer *layer);
uint32_t lns_plan_weights_before(int index, int unit);

#endif
