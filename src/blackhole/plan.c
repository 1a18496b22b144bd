/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/plan.h"

#include <string.h>

#include <lensing/features.h>

#include "base/error.h"
#include "base/memory.h"
#include "blackhole/layer.h"

#define WIDTH LNS_BLACKHOLE_BLOCK_WIDTH
#define HEIGHT LNS_BLACKHOLE_BLOCK_HEIGHT
#define CELLS_X LNS_BLACKHOLE_CELLS_X
#define CELLS_Y LNS_BLACKHOLE_CELLS_Y
#define CELL 8
#define UNIT_OUTPUTS (LNS_BH_JOB_BLOCKS * LNS_BH_CHANNELS) /* of streamed weights: 64 channels at a time */

/* ---- Where everything lies in L1 ------------------------------------------------------------------ */

/* Planes of a block at half, quarter and eighth size, with a ring of one pixel, and a plane of ones behind them. */
#define PLANES_BYTES(width, height, planes) ((uint32_t)(width) * (height) * (planes)*LNS_BH_PIXEL_BYTES)
#define ONES_BYTES (LNS_BH_JOB_PIXELS * LNS_BH_PIXEL_BYTES)
#define ALIGNED(size) (((uint32_t)(size) + 63) / 64 * 64)

enum {
    RAW_ROWS = HEIGHT + 4,
    RAW_ROW = LNS_BLACKHOLE_MARGIN_COLUMNS + WIDTH + LNS_BLACKHOLE_MARGIN_COLUMNS,
    RAW_BYTES = RAW_ROWS * RAW_ROW,
    IMAGE_BYTES = PLANES_BYTES(WIDTH + 2, HEIGHT + 2, 1),
    FULL_BYTES = PLANES_BYTES(WIDTH + 2, HEIGHT + 2, 4),
    HALF_BYTES = PLANES_BYTES(WIDTH / 2 + 2, HEIGHT / 2 + 2, 4),
    QUARTER_BYTES = PLANES_BYTES(WIDTH / 4 + 2, HEIGHT / 4 + 2, 4),
    CELL_BYTES = PLANES_BYTES(CELLS_X + 2, CELLS_Y + 2, 8),
    HEAD_BYTES = PLANES_BYTES(CELLS_X, CELLS_Y, 16),
    LOGIT_BYTES = CELLS_X * CELLS_Y * 5 * LNS_BH_PIXEL_BYTES_FLOAT32,
    DESCRIPTOR_BYTES = CELLS_X * CELLS_Y * 16 * LNS_BH_PIXEL_BYTES_FLOAT32,
    SCORE_LEFT = 16, /* numbers before the scores of a row, so that these begin at 64 bytes; and after them */
    SCORE_ROW = (SCORE_LEFT + WIDTH + SCORE_LEFT) * 4,
    SCORE_RING = LNS_BH_LARGEST_RADIUS,
    SCORE_BYTES = (HEIGHT + 2 * SCORE_RING) * SCORE_ROW,
    STEP_BYTES = UNIT_OUTPUTS * LNS_BH_CHANNELS * 2,             /* weights of one step of 16 input channels */
    STREAM_BYTES = (9 * 128 / LNS_BH_CHANNELS + 1) * STEP_BYTES, /* the largest unit: 3 x 3, 128 inputs */

    RAW_AT = LNS_BH_DATA,
    IMAGE_AT = RAW_AT + ALIGNED(RAW_BYTES),
    FULL_AT = IMAGE_AT + IMAGE_BYTES,
    HALF_AT = FULL_AT + FULL_BYTES + ONES_BYTES,
    HALF2_AT = HALF_AT + HALF_BYTES + ONES_BYTES,
    QUARTER_AT = HALF2_AT + HALF_BYTES + ONES_BYTES,
    QUARTER2_AT = QUARTER_AT + QUARTER_BYTES + ONES_BYTES,
    CELL_AT = QUARTER2_AT + 2 * QUARTER_BYTES + ONES_BYTES,
    CELL2_AT = CELL_AT + CELL_BYTES + ONES_BYTES,
    HEAD_AT = CELL2_AT + CELL_BYTES + ONES_BYTES,
    RESIDENT_AT = HEAD_AT + HEAD_BYTES + ONES_BYTES,

    /* The largest planes are needed in the first two layers only. Later the last weights and the results lie there. */
    STREAM_AT = FULL_AT,
    LOGIT_AT = STREAM_AT + 2 * STREAM_BYTES,
    DESCRIPTOR_AT = LOGIT_AT + LOGIT_BYTES,
    SCORE_AROUND_AT = IMAGE_AT,
    SCORE_AT = SCORE_AROUND_AT + SCORE_RING * SCORE_ROW + SCORE_LEFT * 4,
    LIST_AT = SCORE_AROUND_AT + SCORE_BYTES
};

_Static_assert(DESCRIPTOR_AT + DESCRIPTOR_BYTES <= FULL_AT + FULL_BYTES, "results overlap the plane of ones");
_Static_assert(LIST_AT + LNS_BH_LISTS * LNS_BLACKHOLE_LIST_BYTES <= IMAGE_AT + IMAGE_BYTES,
               "scores and keypoints overlap other planes");
_Static_assert(LIST_AT % 64 == 0 && LNS_BLACKHOLE_LIST_BYTES % 64 == 0, "copies are aligned to 64 bytes");
/* Steps of 1a; of 1b..2b, of 64 inputs; of 3a, in two groups of outputs; and of 3b, of 128 inputs. */
enum { RESIDENT_BYTES = STEP_BYTES * (2 + 3 * 37 + 2 * 37 + 2 * 73) };
_Static_assert(RESIDENT_AT + RESIDENT_BYTES <= LNS_BH_L1_SIZE, "the weights that stay in L1 do not fit");
_Static_assert(IMAGE_AT % 64 == 0 && FULL_AT % 64 == 0 && RESIDENT_AT % 64 == 0, "copies are aligned to 64 bytes");

lns_blackhole_ones lns_blackhole_ones_places(void) {
    return (lns_blackhole_ones){{HALF_AT - ONES_BYTES, HALF2_AT - ONES_BYTES, QUARTER_AT - ONES_BYTES,
                                 QUARTER2_AT - ONES_BYTES, CELL_AT - ONES_BYTES, CELL2_AT - ONES_BYTES,
                                 HEAD_AT - ONES_BYTES, RESIDENT_AT - ONES_BYTES}};
}

/* ---- The layers ----------------------------------------------------------------------------------- */

/* Sets of planes: pixels without the ring, and how wide that is. */
typedef struct place {
    uint32_t address;
    int width, height, ring;
} place;

enum { IMAGE, FULL, HALF, HALF2, QUARTER, QUARTER2, CELLS, CELLS2, HEAD, LOGITS, DESCRIPTORS };

static const place places[] = {
    [IMAGE] = {IMAGE_AT, WIDTH + 2, HEIGHT + 2, 0},
    [FULL] = {FULL_AT, WIDTH, HEIGHT, 1},
    [HALF] = {HALF_AT, WIDTH / 2, HEIGHT / 2, 1},
    [HALF2] = {HALF2_AT, WIDTH / 2, HEIGHT / 2, 1},
    [QUARTER] = {QUARTER_AT, WIDTH / 4, HEIGHT / 4, 1},
    [QUARTER2] = {QUARTER2_AT, WIDTH / 4, HEIGHT / 4, 1},
    [CELLS] = {CELL_AT, CELLS_X, CELLS_Y, 1},
    [CELLS2] = {CELL2_AT, CELLS_X, CELLS_Y, 1},
    [HEAD] = {HEAD_AT, CELLS_X, CELLS_Y, 0},
    [LOGITS] = {LOGIT_AT, CELLS_X, CELLS_Y, 0},
    [DESCRIPTORS] = {DESCRIPTOR_AT, CELLS_X, CELLS_Y, 0},
};

/* What a layer reads and writes. 4b writes where 4a has read: by then every neighbour has fetched what it needs of
 * that, for it has signalled that it has finished 4a. */
typedef struct route {
    int inputs, outputs, kernel, in, out;
    uint32_t flags, phases;
} route;

#define USUAL (LNS_BH_RELU | LNS_BH_ROUND)

/* The first layer reads gray levels of 8 bits, which need the phases for the low bits of SrcB. */
static const route routes[LNS_CONV_COUNT] = {
    [LNS_CONV1A] = {1, 64, 3, IMAGE, FULL, USUAL, 4},
    [LNS_CONV1B] = {64, 64, 3, FULL, HALF, USUAL | LNS_BH_POOL, 2},
    [LNS_CONV2A] = {64, 64, 3, HALF, HALF2, USUAL, 2},
    [LNS_CONV2B] = {64, 64, 3, HALF2, QUARTER, USUAL | LNS_BH_POOL, 2},
    [LNS_CONV3A] = {64, 128, 3, QUARTER, QUARTER2, USUAL, 2},
    [LNS_CONV3B] = {128, 128, 3, QUARTER2, CELLS, USUAL | LNS_BH_POOL, 2},
    [LNS_CONV4A] = {128, 128, 3, CELLS, CELLS2, USUAL, 2},
    [LNS_CONV4B] = {128, 128, 3, CELLS2, CELLS, USUAL, 2},
    [LNS_CONV_SCORE_A] = {128, 256, 3, CELLS, HEAD, USUAL, 2},
    [LNS_CONV_SCORE_B] = {256, 65, 1, HEAD, LOGITS, LNS_BH_FLOAT32, 2},
    [LNS_CONV_DESCRIPTOR_A] = {128, 256, 3, CELLS, HEAD, USUAL, 2},
    [LNS_CONV_DESCRIPTOR_B] = {256, 256, 1, HEAD, DESCRIPTORS, LNS_BH_FLOAT32, 2},
};

static lns_blackhole_planes planes_of(const place *p) {
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
static int unit_count(int index) {
    return is_streamed(index) ? (routes[index].outputs + UNIT_OUTPUTS - 1) / UNIT_OUTPUTS : 1;
}

static lns_blackhole_layer unit_of(int index, int unit) {
    lns_blackhole_layer layer = layer_of(index);
    const uint32_t pixel = layer.flags & LNS_BH_FLOAT32 ? LNS_BH_PIXEL_BYTES_FLOAT32 : LNS_BH_PIXEL_BYTES;
    const int rest = layer.outputs - unit * UNIT_OUTPUTS;
    if (is_streamed(index))
        layer.outputs = rest < UNIT_OUTPUTS ? rest : UNIT_OUTPUTS;
    layer.out.address += (uint32_t)unit * LNS_BH_JOB_BLOCKS * layer.out.width * layer.out.height * pixel;
    return layer;
}

static uint32_t weight_bytes(const lns_blackhole_layer *layer) {
    return (uint32_t)(lns_blackhole_weight_count(layer) * sizeof(uint16_t));
}

/* Where the weights of a unit begin in the memory of the resident or of the streamed ones. */
static uint32_t weights_before(int index, int unit) {
    uint32_t bytes = 0;
    for (int i = index >= LNS_CONV4A ? LNS_CONV4A : 0; i <= index; i++)
        for (int u = 0; u < (i < index ? unit_count(i) : unit); u++) {
            const lns_blackhole_layer layer = unit_of(i, u);
            bytes += weight_bytes(&layer);
        }
    return bytes;
}

/* ---- Weights -------------------------------------------------------------------------------------- */

static void pack_layer(const lns_conv_weights *conv, int index, lns_blackhole_packed_weights *packed) {
    const float scale = index == LNS_CONV1A ? 1.0F / 255 : 1; /* gray levels are not scaled on the card */
    uint8_t *to = is_streamed(index) ? packed->streamed : packed->resident;
    const size_t size = (size_t)conv->inputs * (size_t)conv->kernel * (size_t)conv->kernel;
    for (int unit = 0; unit < unit_count(index); unit++) {
        const lns_blackhole_layer layer = unit_of(index, unit);
        const size_t first = (size_t)unit * UNIT_OUTPUTS;
        lns_blackhole_pack_weights(&layer, conv->weight + first * size, conv->bias + first, scale,
                                   (uint16_t *)(void *)(to + weights_before(index, unit)));
    }
}

lns_status lns_blackhole_pack_network(const lns_superpoint_weights *weights, lns_blackhole_packed_weights *packed) {
    memset(packed, 0, sizeof *packed);
    packed->resident_at = RESIDENT_AT;
    packed->resident_size = weights_before(LNS_CONV4A - 1, 1);
    packed->streamed_size = weights_before(LNS_CONV_COUNT - 1, unit_count(LNS_CONV_COUNT - 1));
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
    const size_t width = (size_t)grid.across * WIDTH, height = (size_t)grid.down * HEIGHT;
    lns_blackhole_host_layout layout = {0};
    layout.frame_row = width + 2 * LNS_BLACKHOLE_MARGIN_COLUMNS;
    layout.frame = LNS_BLACKHOLE_MARGIN_ROWS * layout.frame_row + LNS_BLACKHOLE_MARGIN_COLUMNS;
    layout.scores = ALIGNED(layout.frame_row * (height + 2 * LNS_BLACKHOLE_MARGIN_ROWS));
    layout.scores_row = width * sizeof(float);
    layout.descriptors = layout.scores + height * layout.scores_row;
    const size_t blocks = (size_t)grid.down * (size_t)grid.across;
    layout.lists = layout.descriptors + blocks * LNS_BLACKHOLE_DESCRIPTOR_BYTES;
    layout.size = layout.lists + blocks * LNS_BH_LISTS * LNS_BLACKHOLE_LIST_BYTES;
    return layout;
}

/* ---- Building a program --------------------------------------------------------------------------- */

#define STEPS 192 /* places for steps at the begin of the program */

typedef struct builder {
    lns_blackhole_grid grid;
    int down, across;
    uint64_t host;
    lns_blackhole_program *program;
    uint32_t steps;
    int streamed; /* units of streamed weights that have been asked for, and that have been used */
    int used;
    int exchanges; /* counters that are used */
    lns_status status;
} builder;

/* Puts `size` bytes, a multiple of 4, into the program; returns their L1 address. */
static uint32_t put(builder *b, const void *data, size_t size) {
    const uint32_t at = LNS_BH_PROGRAM + (uint32_t)b->program->size;
    if (size > sizeof b->program->bytes - b->program->size) {
        b->status = lns_fail(LNS_ERROR_UNSUPPORTED, "the program of a tile of the card is larger than its place");
        return at;
    }
    memcpy(b->program->bytes + b->program->size, data, size);
    b->program->size += size;
    return at;
}

static void add_step(builder *b, uint32_t kind, uint32_t at) {
    const lns_bh_step step = {kind, at};
    if (b->steps >= STEPS) {
        b->status = lns_fail(LNS_ERROR_UNSUPPORTED, "the program of a tile of the card has more than %d steps", STEPS);
        return;
    }
    memcpy(b->program->bytes + b->steps * sizeof step, &step, sizeof step);
    b->steps++;
}

static void add_copies(builder *b, uint32_t kind, const lns_bh_copy *items, uint32_t count, uint32_t wanted) {
    const lns_bh_copies list = {count, put(b, items, count * sizeof *items), wanted};
    add_step(b, kind, put(b, &list, sizeof list));
}

static void add_fills(builder *b, const lns_bh_fill *items, uint32_t count) {
    const lns_bh_fills list = {count, put(b, items, count * sizeof *items)};
    if (count > 0)
        add_step(b, LNS_BH_FILL, put(b, &list, sizeof list));
}

/* `kind`: LNS_BH_CONVOLUTION, or LNS_BH_BEGIN where a JOIN follows. */
static void add_convolution(builder *b, uint32_t kind, const lns_blackhole_layer *layer, uint32_t weights) {
    lns_bh_job jobs[LNS_BH_JOB_PIXELS];
    lns_bh_convolution convolution;
    if (lns_blackhole_job_count(layer) > sizeof jobs / sizeof *jobs) {
        b->status = lns_fail(LNS_ERROR_UNSUPPORTED, "a layer has more jobs than %zu", sizeof jobs / sizeof *jobs);
        return;
    }
    const size_t bytes = lns_blackhole_job_count(layer) * sizeof *jobs;
    const uint32_t jobs_at = LNS_BH_PROGRAM + (uint32_t)b->program->size;
    const lns_status status = lns_blackhole_describe_layer(layer, weights, jobs_at, &convolution, jobs);
    if (status != LNS_OK) {
        b->status = status;
        return;
    }
    put(b, jobs, bytes);
    add_step(b, kind, put(b, &convolution, sizeof convolution));
}

/* Counters: one for each exchange, and from the end those of the two halves of the place for streamed weights, which
 * only the tile that streams has, and that of the units that have come. */
enum { READY_COUNTER = LNS_BH_COUNTER_COUNT - 1, FREE_COUNTER = LNS_BH_COUNTER_COUNT - 3 };

static uint32_t counter_at(int index) {
    return (uint32_t)(LNS_BH_COUNTERS + (size_t)index * sizeof(lns_bh_counter));
}

/* ---- Neighbours ----------------------------------------------------------------------------------- */

static int has_block(const builder *b, int down, int across) {
    return down >= 0 && down < b->grid.down && across >= 0 && across < b->grid.across;
}

/* Numbers that lie around a block in each of its planes. */
typedef struct ring {
    uint32_t address;           /* the block's own first pixel */
    int width, height, size;    /* of the block in pixels, and of the ring around it */
    uint32_t pixel, row, plane; /* distances in bytes */
    uint32_t planes;
} ring;

/* Where the pixels that a neighbour at `side` (-1, 0, 1) has begin, from this block's first pixel and from the
 * neighbour's, and how many there are, along a direction in which blocks have `length` pixels. */
static void along(int side, int length, int size, int *mine, int *theirs, int *count) {
    *mine = side < 0 ? -size : side == 0 ? 0 : length;
    *theirs = side < 0 ? length - size : 0;
    *count = side == 0 ? length : size;
}

static lns_bh_copy ring_part(const builder *b, const ring *r, int down, int across) {
    int y, their_y, rows, x, their_x, columns;
    along(down, r->height, r->size, &y, &their_y, &rows);
    along(across, r->width, r->size, &x, &their_x, &columns);
    const lns_blackhole_tile tile = lns_blackhole_block_tile(b->down + down, b->across + across);
    return (lns_bh_copy){
        .local = r->address + (uint32_t)y * r->row + (uint32_t)x * r->pixel, /* negative ones wrap and are right */
        .remote_low = r->address + (uint32_t)their_y * r->row + (uint32_t)their_x * r->pixel,
        .remote_tile = LNS_BH_NOC_TILE(tile.x, tile.y),
        .size = (uint32_t)columns * r->pixel,
        .rows = (uint32_t)rows,
        .local_row = r->row,
        .remote_row = r->row,
        .planes = r->planes,
        .local_plane = r->plane,
        .remote_plane = r->plane,
    };
}

/* Tells the neighbours that the block's own pixels are computed, waits until theirs are, and fetches the ring. */
static void exchange(builder *b, const ring *r) {
    const uint32_t counter = counter_at(b->exchanges++);
    lns_bh_signal signal = {.counter = counter};
    lns_bh_copy items[LNS_BH_SIGNALS];
    for (int down = -1; down <= 1; down++)
        for (int across = -1; across <= 1; across++) {
            if ((down == 0 && across == 0) || !has_block(b, b->down + down, b->across + across))
                continue;
            items[signal.count] = ring_part(b, r, down, across);
            signal.tiles[signal.count] = items[signal.count].remote_tile;
            signal.count++;
        }
    if (signal.count == 0)
        return;
    const lns_bh_wait wait = {counter, signal.count};
    add_step(b, LNS_BH_SIGNAL, put(b, &signal, sizeof signal));
    add_step(b, LNS_BH_WAIT, put(b, &wait, sizeof wait));
    add_copies(b, LNS_BH_FETCH, items, signal.count, 0);
    add_step(b, LNS_BH_LAND, 0);
}

static void exchange_planes(builder *b, int where, uint32_t planes) {
    const place *p = &places[where];
    const uint32_t row = (uint32_t)(p->width + 2) * LNS_BH_PIXEL_BYTES;
    const ring r = {
        .address = p->address + row + LNS_BH_PIXEL_BYTES,
        .width = p->width,
        .height = p->height,
        .size = 1,
        .pixel = LNS_BH_PIXEL_BYTES,
        .row = row,
        .plane = row * (uint32_t)(p->height + 2),
        .planes = planes,
    };
    exchange(b, &r);
}

/* ---- Parts of the network ------------------------------------------------------------------------- */

static lns_bh_copy host_copy(const builder *b, size_t offset) {
    const uint64_t address = b->host + offset;
    return (lns_bh_copy){
        .remote_low = (uint32_t)address,
        .remote_high = (uint32_t)(address >> 32),
        .remote_tile = LNS_BH_NOC_TILE(LNS_BLACKHOLE_PCIE_X, LNS_BLACKHOLE_PCIE_Y),
        .rows = 1,
        .planes = 1,
    };
}

/* The block's pixels and two more at each side, as channels of the first layer. */
static void read_frame(builder *b) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(b->grid);
    const size_t y = (size_t)b->down * HEIGHT, x = (size_t)b->across * WIDTH;
    lns_bh_copy item = host_copy(b, layout.frame + y * layout.frame_row + x -
                                        LNS_BLACKHOLE_MARGIN_ROWS * layout.frame_row - LNS_BLACKHOLE_MARGIN_COLUMNS);
    item.local = RAW_AT;
    item.size = RAW_ROW;
    item.rows = RAW_ROWS;
    item.local_row = RAW_ROW;
    item.remote_row = (uint32_t)layout.frame_row;
    add_copies(b, LNS_BH_FETCH, &item, 1, 0);
    add_step(b, LNS_BH_LAND, 0);
    const lns_bh_image image = {RAW_AT + LNS_BLACKHOLE_MARGIN_COLUMNS - 2, RAW_ROW, IMAGE_AT, WIDTH + 2, HEIGHT + 2};
    add_step(b, LNS_BH_IMAGE, put(b, &image, sizeof image));
}

/* The first layer computes its ring itself. Outside of the frame the next one wants zeros there. */
static void clear_outside(builder *b) {
    const uint32_t pixel = LNS_BH_PIXEL_BYTES, row = (WIDTH + 2) * pixel, plane = row * (HEIGHT + 2);
    const lns_bh_fill horizontal = {FULL_AT, 0, row / 4, 1, row, 4, plane};
    const lns_bh_fill vertical = {FULL_AT, 0, pixel / 4, HEIGHT + 2, row, 4, plane};
    lns_bh_fill fills[4];
    uint32_t count = 0;
    if (b->down == 0)
        fills[count++] = horizontal;
    if (b->down == b->grid.down - 1) {
        fills[count] = horizontal;
        fills[count++].address += (HEIGHT + 1) * row;
    }
    if (b->across == 0)
        fills[count++] = vertical;
    if (b->across == b->grid.across - 1) {
        fills[count] = vertical;
        fills[count++].address += (WIDTH + 1) * pixel;
    }
    add_fills(b, fills, count);
}

/* ---- Streamed weights ----------------------------------------------------------------------------- */

static int streams(const builder *b) {
    return b->down == 0 && b->across == 0;
}

static uint32_t noc_tile(lns_blackhole_tile tile) {
    return LNS_BH_NOC_TILE(tile.x, tile.y);
}

/* Says that half `half` of the place is free. */
static void free_half(builder *b, int half) {
    const lns_bh_signal signal = {counter_at(FREE_COUNTER + half), 1, {noc_tile(lns_blackhole_block_tile(0, 0))}};
    add_step(b, LNS_BH_SIGNAL, put(b, &signal, sizeof signal));
}

/* Layer and unit of the n-th unit of streamed weights; returns 0 after the last. */
static int streamed_unit(int n, int *index, int *unit) {
    for (*index = LNS_CONV4A; *index < LNS_CONV_COUNT; ++*index) {
        if (n < unit_count(*index)) {
            *unit = n;
            return 1;
        }
        n -= unit_count(*index);
    }
    return 0;
}

static int streamed_units(void) {
    int units = 0, index, unit;
    while (streamed_unit(units, &index, &unit))
        units++;
    return units;
}

/* In the tile that does this: the next unit for all. */
static void stream_unit(builder *b) {
    int index, unit;
    if (!streams(b) || !streamed_unit(b->streamed, &index, &unit))
        return;
    const lns_blackhole_layer layer = unit_of(index, unit);
    const lns_blackhole_tiles tiles = lns_blackhole_grid_tiles(b->grid);
    const lns_bh_stream stream = {
        .dram = weights_before(index, unit),
        .dram_tile = LNS_BH_NOC_TILE(LNS_BLACKHOLE_DRAM_X, LNS_BLACKHOLE_DRAM_Y),
        .at = STREAM_AT + (uint32_t)(b->streamed % 2) * STREAM_BYTES,
        .size = weight_bytes(&layer),
        .rectangle = LNS_BH_NOC_RECTANGLE(noc_tile(tiles.first), noc_tile(tiles.last)),
        .tiles = (uint32_t)(b->grid.down * b->grid.across),
        .free = counter_at(FREE_COUNTER + b->streamed % 2),
        .ready = counter_at(READY_COUNTER),
    };
    add_step(b, LNS_BH_STREAM, put(b, &stream, sizeof stream));
    b->streamed++;
}

/* ---- The layers' steps ---------------------------------------------------------------------------- */

static void add_resident(builder *b, int index) {
    const lns_blackhole_layer layer = unit_of(index, 0);
    add_convolution(b, LNS_BH_CONVOLUTION, &layer, RESIDENT_AT + weights_before(index, 0));
}

/* The same for the first layer after which the place for streamed weights is free: meanwhile they begin to come. */
static void add_resident_and_stream(builder *b, int index) {
    const lns_blackhole_layer layer = unit_of(index, 0);
    free_half(b, 0);
    free_half(b, 1);
    add_convolution(b, LNS_BH_BEGIN, &layer, RESIDENT_AT + weights_before(index, 0));
    stream_unit(b);
    stream_unit(b);
    add_step(b, LNS_BH_JOIN, 0);
}

/* While a unit is computed, the next but one comes into the other half, which the one before has left. */
static void add_streamed(builder *b, int index) {
    const lns_bh_wait wait = {counter_at(READY_COUNTER), 1};
    for (int unit = 0; unit < unit_count(index); unit++) {
        const lns_blackhole_layer layer = unit_of(index, unit);
        const int half = b->used++ % 2;
        add_step(b, LNS_BH_WAIT, put(b, &wait, sizeof wait));
        add_convolution(b, LNS_BH_BEGIN, &layer, STREAM_AT + (uint32_t)half * STREAM_BYTES);
        if (b->used > 1)
            stream_unit(b);
        add_step(b, LNS_BH_JOIN, 0);
        if (b->used + 1 < streamed_units())
            free_half(b, half);
    }
}

static int at_edge(const builder *b) {
    return b->down == 0 || b->down == b->grid.down - 1 || b->across == 0 || b->across == b->grid.across - 1;
}

static void find_scores(builder *b) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(b->grid);
    const lns_bh_fill around = {SCORE_AROUND_AT, 0, SCORE_BYTES / 4, 1, 0, 1, 0};
    const lns_bh_scores scores = {LOGIT_AT, CELLS_X, CELLS_Y, SCORE_AT, SCORE_ROW};
    lns_bh_copy item = host_copy(b, layout.scores + (size_t)b->down * HEIGHT * layout.scores_row +
                                        (size_t)b->across * WIDTH * sizeof(float));
    item.local = SCORE_AT;
    item.size = WIDTH * sizeof(float);
    item.rows = HEIGHT;
    item.local_row = SCORE_ROW;
    item.remote_row = (uint32_t)layout.scores_row;
    add_fills(b, &around, at_edge(b) ? 1 : 0); /* outside of the frame */
    add_step(b, LNS_BH_SCORES, put(b, &scores, sizeof scores));
    add_copies(b, LNS_BH_SEND, &item, 1, LNS_BH_WANT_SCORES);
}

static void find_keypoints(builder *b) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(b->grid);
    const ring r = {
        .address = SCORE_AT,
        .width = WIDTH,
        .height = HEIGHT,
        .size = SCORE_RING,
        .pixel = sizeof(float),
        .row = SCORE_ROW,
        .planes = 1,
    };
    const size_t block = (size_t)b->down * (size_t)b->grid.across + (size_t)b->across;
    const uint64_t host = b->host + layout.lists + block * LNS_BH_LISTS * LNS_BLACKHOLE_LIST_BYTES;
    const lns_bh_suppression suppression = {
        .scores = SCORE_AT,
        .scores_row = SCORE_ROW,
        .width = WIDTH,
        .height = HEIGHT,
        .x = (uint32_t)b->across * WIDTH,
        .y = (uint32_t)b->down * HEIGHT,
        .frame_width = (uint32_t)b->grid.across * WIDTH,
        .frame_height = (uint32_t)b->grid.down * HEIGHT,
        .lists = LIST_AT,
        .list_size = LNS_BLACKHOLE_LIST_BYTES,
        .host_low = (uint32_t)host,
        .host_high = (uint32_t)(host >> 32),
        .host_tile = LNS_BH_NOC_TILE(LNS_BLACKHOLE_PCIE_X, LNS_BLACKHOLE_PCIE_Y),
    };
    const uint32_t at = put(b, &suppression, sizeof suppression);
    exchange(b, &r);
    add_step(b, LNS_BH_KEYPOINTS, at);
    add_step(b, LNS_BH_SEND_LISTS, at);
}

static void send_descriptors(builder *b) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(b->grid);
    const size_t block = (size_t)b->down * (size_t)b->grid.across + (size_t)b->across;
    lns_bh_copy item = host_copy(b, layout.descriptors + block * LNS_BLACKHOLE_DESCRIPTOR_BYTES);
    item.local = DESCRIPTOR_AT;
    item.size = DESCRIPTOR_BYTES;
    add_copies(b, LNS_BH_SEND, &item, 1, LNS_BH_WANT_DESCRIPTORS);
}

static void add_network(builder *b) {
    read_frame(b);
    add_resident(b, LNS_CONV1A);
    clear_outside(b);
    add_resident(b, LNS_CONV1B);
    exchange_planes(b, HALF, 4);
    add_resident_and_stream(b, LNS_CONV2A);
    exchange_planes(b, HALF2, 4);
    add_resident(b, LNS_CONV2B);
    exchange_planes(b, QUARTER, 4);
    add_resident(b, LNS_CONV3A);
    exchange_planes(b, QUARTER2, 8);
    add_resident(b, LNS_CONV3B);
    exchange_planes(b, CELLS, 8);
    add_streamed(b, LNS_CONV4A);
    exchange_planes(b, CELLS2, 8);
    add_streamed(b, LNS_CONV4B);
    exchange_planes(b, CELLS, 8);
    add_streamed(b, LNS_CONV_SCORE_A);
    add_streamed(b, LNS_CONV_SCORE_B);
    find_scores(b);
    find_keypoints(b);
    add_streamed(b, LNS_CONV_DESCRIPTOR_A);
    add_streamed(b, LNS_CONV_DESCRIPTOR_B);
    send_descriptors(b);
    add_step(b, LNS_BH_LAND, 0);
    add_step(b, LNS_BH_END, 0);
}

lns_status lns_blackhole_make_program(lns_blackhole_grid grid, int down, int across, uint64_t host,
                                      lns_blackhole_program *program) {
    builder b = {.grid = grid, .down = down, .across = across, .host = host, .program = program, .status = LNS_OK};
    memset(program, 0, sizeof *program);
    program->size = STEPS * sizeof(lns_bh_step);
    add_network(&b);
    return b.status;
}
