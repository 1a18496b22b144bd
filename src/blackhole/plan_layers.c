/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/plan_layers.h"

#include <string.h>

#include <lensing/features.h>

#include "base/error.h"
#include "base/memory.h"

_Static_assert(PLAN_DESCRIPTOR_AT + PLAN_DESCRIPTOR_BYTES <= PLAN_FULL_AT + PLAN_FULL_BYTES,
               "results overlap the plane of ones");
_Static_assert(PLAN_LIST_AT + LNS_BH_LISTS * LNS_BLACKHOLE_LIST_BYTES <= PLAN_IMAGE_AT + PLAN_IMAGE_BYTES,
               "scores and keypoints overlap other planes");
_Static_assert(PLAN_LIST_AT % 64 == 0 && LNS_BLACKHOLE_LIST_BYTES % 64 == 0, "copies are aligned to 64 bytes");
/* Steps of 1a; of 1b..2b, of 64 inputs; of 3a, in two groups of outputs; and of 3b, of 128 inputs. */
enum { RESIDENT_BYTES = PLAN_STEP_BYTES * (2 + 3 * 37 + 2 * 37 + 2 * 73) };
_Static_assert(PLAN_RESIDENT_AT + RESIDENT_BYTES <= LNS_BH_L1_SIZE, "the weights that stay in L1 do not fit");
_Static_assert(PLAN_IMAGE_AT % 64 == 0 && PLAN_FULL_AT % 64 == 0 && PLAN_RESIDENT_AT % 64 == 0,
               "copies are aligned to 64 bytes");

lns_blackhole_ones lns_blackhole_ones_places(void) {
    return (lns_blackhole_ones){{PLAN_HALF_AT - ONES_BYTES, PLAN_HALF2_AT - ONES_BYTES, PLAN_QUARTER_AT - ONES_BYTES,
                                 PLAN_QUARTER2_AT - ONES_BYTES, PLAN_CELL_AT - ONES_BYTES, PLAN_CELL2_AT - ONES_BYTES,
                                 PLAN_HEAD_AT - ONES_BYTES, PLAN_RESIDENT_AT - ONES_BYTES}};
}

/* ---- The layers ----------------------------------------------------------------------------------- */

static const lns_plan_place places[] = {
    [PLAN_IMAGE] = {PLAN_IMAGE_AT, LNS_BLACKHOLE_BLOCK_WIDTH + 2, LNS_BLACKHOLE_BLOCK_HEIGHT + 2, 0},
    [PLAN_FULL] = {PLAN_FULL_AT, LNS_BLACKHOLE_BLOCK_WIDTH, LNS_BLACKHOLE_BLOCK_HEIGHT, 1},
    [PLAN_HALF] = {PLAN_HALF_AT, LNS_BLACKHOLE_BLOCK_WIDTH / 2, LNS_BLACKHOLE_BLOCK_HEIGHT / 2, 1},
    [PLAN_HALF2] = {PLAN_HALF2_AT, LNS_BLACKHOLE_BLOCK_WIDTH / 2, LNS_BLACKHOLE_BLOCK_HEIGHT / 2, 1},
    [PLAN_QUARTER] = {PLAN_QUARTER_AT, LNS_BLACKHOLE_BLOCK_WIDTH / 4, LNS_BLACKHOLE_BLOCK_HEIGHT / 4, 1},
    [PLAN_QUARTER2] = {PLAN_QUARTER2_AT, LNS_BLACKHOLE_BLOCK_WIDTH / 4, LNS_BLACKHOLE_BLOCK_HEIGHT / 4, 1},
    [PLAN_CELLS] = {PLAN_CELL_AT, LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, 1},
    [PLAN_CELLS2] = {PLAN_CELL2_AT, LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, 1},
    [PLAN_HEAD] = {PLAN_HEAD_AT, LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, 0},
    [PLAN_LOGITS] = {PLAN_LOGIT_AT, LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, 0},
    [PLAN_DESCRIPTORS] = {PLAN_DESCRIPTOR_AT, LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, 0},
};

/* What a layer reads and writes. 4b writes where 4a has read: by then every neighbour has fetched what it needs of
 * that, for it has signalled that it has finished 4a. */
typedef struct route {
    int inputs, outputs, kernel, in, out;
    uint32_t flags, phases;
} route;

/* The low bit of activations needs a third phase. 1b, which takes 40 % of all products, does without: what it reads is
 * rounded to what two phases use. The first layer reads gray levels of 8 bits and has weights of more, for which it
 * takes four. */
static const route routes[LNS_CONV_COUNT] = {
    [LNS_CONV1A] = {1, 64, 3, PLAN_IMAGE, PLAN_FULL, LNS_BH_RELU | LNS_BH_ROUND, 4},
    [LNS_CONV1B] = {64, 64, 3, PLAN_FULL, PLAN_HALF, LNS_BH_RELU | LNS_BH_POOL, 2},
    [LNS_CONV2A] = {64, 64, 3, PLAN_HALF, PLAN_HALF2, LNS_BH_RELU, 3},
    [LNS_CONV2B] = {64, 64, 3, PLAN_HALF2, PLAN_QUARTER, LNS_BH_RELU | LNS_BH_POOL, 3},
    [LNS_CONV3A] = {64, 128, 3, PLAN_QUARTER, PLAN_QUARTER2, LNS_BH_RELU, 3},
    [LNS_CONV3B] = {128, 128, 3, PLAN_QUARTER2, PLAN_CELLS, LNS_BH_RELU | LNS_BH_POOL, 3},
    [LNS_CONV4A] = {128, 128, 3, PLAN_CELLS, PLAN_CELLS2, LNS_BH_RELU, 3},
    [LNS_CONV4B] = {128, 128, 3, PLAN_CELLS2, PLAN_CELLS, LNS_BH_RELU, 3},
    [LNS_CONV_SCORE_A] = {128, 256, 3, PLAN_CELLS, PLAN_HEAD, LNS_BH_RELU, 3},
    [LNS_CONV_SCORE_B] = {256, 65, 1, PLAN_HEAD, PLAN_LOGITS, LNS_BH_FLOAT32, 3},
    [LNS_CONV_DESCRIPTOR_A] = {128, 256, 3, PLAN_CELLS, PLAN_HEAD, LNS_BH_RELU, 3},
    [LNS_CONV_DESCRIPTOR_B] = {256, 256, 1, PLAN_HEAD, PLAN_DESCRIPTORS, 0, 3}, /* bfloat16 is half as much to send */
};

const lns_plan_place *lns_plan_place_of(int where) {
    return &places[where];
}

static lns_blackhole_planes planes_of(const lns_plan_place *p) {
    const uint32_t ring = (uint32_t)p->ring;
    return (lns_blackhole_planes){p->address, (uint32_t)p->width + 2 * ring, (uint32_t)p->height + 2 * ring, ring,
                                  ring};
}

static lns_blackhole_layer layer_of(int index) {
    const route *r = &routes[index];
    lns_blackhole_layer layer = {
        .inputs = r->inputs,
        .outputs = r->outputs,
        .kernel = r->kernel,
        .width = places[r->in].width,
        .height = places[r->in].height,
        .flags = r->flags,
        .phases = r->phases,
        .in = planes_of(&places[r->in]),
        .out = planes_of(&places[r->out]),
    };
    if (index == LNS_CONV1A) { /* all of its planes, ring included, are one run of pixels */
        layer.width *= layer.height;
        layer.height = 1;
        layer.out.x = layer.out.y = 0;
    }
    return layer;
}

static int is_streamed(int index) {
    return index >= LNS_CONV4A;
}

/* A streamed layer is computed in units of up to 64 outputs, whose weights are fetched together; others are one unit.
 */
int lns_plan_unit_count(int index) {
    return is_streamed(index) ? (routes[index].outputs + PLAN_UNIT_OUTPUTS - 1) / PLAN_UNIT_OUTPUTS : 1;
}

lns_blackhole_layer lns_plan_unit_of(int index, int unit) {
    lns_blackhole_layer layer = layer_of(index);
    const uint32_t pixel = layer.flags & LNS_BH_FLOAT32 ? LNS_BH_PIXEL_BYTES_FLOAT32 : LNS_BH_PIXEL_BYTES;
    const int rest = layer.outputs - unit * PLAN_UNIT_OUTPUTS;
    if (is_streamed(index))
        layer.outputs = rest < PLAN_UNIT_OUTPUTS ? rest : PLAN_UNIT_OUTPUTS;
    layer.out.address += (uint32_t)unit * LNS_BH_JOB_BLOCKS * layer.out.width * layer.out.height * pixel;
    return layer;
}

uint32_t lns_plan_weight_bytes(const lns_blackhole_layer *layer) {
    return (uint32_t)(lns_blackhole_weight_count(layer) * sizeof(uint16_t));
}

/* Where the weights of a unit begin in the memory of the resident or of the streamed ones. */
uint32_t lns_plan_weights_before(int index, int unit) {
    uint32_t bytes = 0;
    for (int i = index >= LNS_CONV4A ? LNS_CONV4A : 0; i <= index; i++)
        for (int u = 0; u < (i < index ? lns_plan_unit_count(i) : unit); u++) {
            const lns_blackhole_layer layer = lns_plan_unit_of(i, u);
            bytes += lns_plan_weight_bytes(&layer);
        }
    return bytes;
}

/* ---- Weights -------------------------------------------------------------------------------------- */

static void pack_layer(const lns_conv_weights *conv, int index, lns_blackhole_packed_weights *packed) {
    const float scale = index == LNS_CONV1A ? 1.0F / 255 : 1; /* gray levels are not scaled on the card */
    uint8_t *to = is_streamed(index) ? packed->streamed : packed->resident;
    const size_t size = (size_t)conv->inputs * (size_t)conv->kernel * (size_t)conv->kernel;
    for (int unit = 0; unit < lns_plan_unit_count(index); unit++) {
        const lns_blackhole_layer layer = lns_plan_unit_of(index, unit);
        const size_t first = (size_t)unit * PLAN_UNIT_OUTPUTS;
        lns_blackhole_pack_weights(&layer, conv->weight + first * size, conv->bias + first, scale,
                                   (uint16_t *)(void *)(to + lns_plan_weights_before(index, unit)));
    }
}

lns_status lns_blackhole_pack_network(const lns_superpoint_weights *weights, lns_blackhole_packed_weights *packed) {
    memset(packed, 0, sizeof *packed);
    packed->resident_at = PLAN_RESIDENT_AT;
    packed->resident_size = lns_plan_weights_before(LNS_CONV4A - 1, 1);
    packed->streamed_size = lns_plan_weights_before(LNS_CONV_COUNT - 1, lns_plan_unit_count(LNS_CONV_COUNT - 1));
    packed->resident = lns_alloc(packed->resident_size);
    packed->streamed = lns_alloc(packed->streamed_size);
    if (packed->resident == NULL || packed->streamed == NULL) {
        const size_t size = packed->resident_size + packed->streamed_size;
        lns_blackhole_packed_weights_free(packed);
        return lns_fail_memory(size);
    }
    for (int i = 0; i < LNS_CONV_COUNT; i++)
        pack_layer(&weights->conv[i], i, packed);
    return LNS_OK;
}

void lns_blackhole_packed_weights_free(lns_blackhole_packed_weights *packed) {
    lns_free(packed->resident);
    lns_free(packed->streamed);
    memset(packed, 0, sizeof *packed);
}

/* ---- The grid ------------------------------------------------------------------------------------- */

lns_blackhole_tile lns_blackhole_block_tile(int down, int across) {
    return (lns_blackhole_tile){(uint8_t)(down < 7 ? down + 1 : down + 3), (uint8_t)(across + 2)};
}

lns_blackhole_tiles lns_blackhole_grid_tiles(lns_blackhole_grid grid) {
    return (lns_blackhole_tiles){lns_blackhole_block_tile(0, 0),
                                 lns_blackhole_block_tile(grid.down - 1, grid.across - 1)};
}

lns_blackhole_host_layout lns_blackhole_host_layout_of(lns_blackhole_grid grid) {
    const size_t width = (size_t)grid.across * LNS_BLACKHOLE_BLOCK_WIDTH,
                 height = (size_t)grid.down * LNS_BLACKHOLE_BLOCK_HEIGHT;
    lns_blackhole_host_layout layout = {0};
    layout.scores = ALIGNED(width * height);
    layout.scores_row = width * sizeof(float);
    layout.descriptors = layout.scores + height * layout.scores_row;
    const size_t blocks = (size_t)grid.down * (size_t)grid.across;
    layout.lists = layout.descriptors + blocks * LNS_BLACKHOLE_DESCRIPTOR_BYTES;
    layout.done = layout.lists + blocks * LNS_BH_LISTS * LNS_BLACKHOLE_LIST_BYTES;
    layout.size = layout.done + 64;
    return layout;
}
