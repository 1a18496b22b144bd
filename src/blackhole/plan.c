/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/plan.h"

#include <string.h>

#include <lensing/features.h>

#include "base/error.h"
#include "blackhole/plan_layers.h"

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

/* Counters: one for each exchange; and from the end: units of streamed weights that have come, how often each half of
 * the place for them is free, and tiles that are done. The last three are the first tile's. */
enum {
    READY_COUNTER = LNS_BH_COUNTER_COUNT - 1,
    FREE_COUNTER = LNS_BH_COUNTER_COUNT - 3,
    DONE_COUNTER = LNS_BH_COUNTER_COUNT - 4
};

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
    add_step(b, LNS_BH_ARRIVE, 0);
}

static ring ring_of(int where, uint32_t planes) {
    const lns_plan_place *p = lns_plan_place_of(where);
    const uint32_t row = (uint32_t)(p->width + 2) * LNS_BH_PIXEL_BYTES;
    return (ring){
        .address = p->address + row + LNS_BH_PIXEL_BYTES,
        .width = p->width,
        .height = p->height,
        .size = 1,
        .pixel = LNS_BH_PIXEL_BYTES,
        .row = row,
        .plane = row * (uint32_t)(p->height + 2),
        .planes = planes,
    };
}

static void exchange_planes(builder *b, int where, uint32_t planes) {
    const ring r = ring_of(where, planes);
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

/* The block's pixels from the host, and two more at each side from the neighbours, as channels of the first layer. What
 * is outside of the frame has been zero from the beginning, and nobody writes there. */
static void read_frame(builder *b) {
    const size_t y = (size_t)b->down * LNS_BLACKHOLE_BLOCK_HEIGHT, x = (size_t)b->across * LNS_BLACKHOLE_BLOCK_WIDTH;
    const size_t width = (size_t)b->grid.across * LNS_BLACKHOLE_BLOCK_WIDTH;
    lns_bh_copy item = host_copy(b, lns_blackhole_host_layout_of(b->grid).frame + y * width + x);
    item.local = PLAN_RAW_BLOCK_AT;
    item.size = LNS_BLACKHOLE_BLOCK_WIDTH;
    item.rows = LNS_BLACKHOLE_BLOCK_HEIGHT;
    item.local_row = PLAN_RAW_ROW;
    item.remote_row = (uint32_t)width;
    add_copies(b, LNS_BH_FETCH, &item, 1, 0);
    add_step(b, LNS_BH_ARRIVE, 0);
    const ring around = {
        .address = PLAN_RAW_BLOCK_AT,
        .width = LNS_BLACKHOLE_BLOCK_WIDTH,
        .height = LNS_BLACKHOLE_BLOCK_HEIGHT,
        .size = PLAN_RAW_RING,
        .pixel = 1,
        .row = PLAN_RAW_ROW,
        .planes = 1,
    };
    exchange(b, &around);
    const lns_bh_image image = {PLAN_RAW_BLOCK_AT - PLAN_RAW_RING * PLAN_RAW_ROW - PLAN_RAW_RING, PLAN_RAW_ROW,
                                PLAN_IMAGE_AT, LNS_BLACKHOLE_BLOCK_WIDTH + 2, LNS_BLACKHOLE_BLOCK_HEIGHT + 2};
    add_step(b, LNS_BH_IMAGE, put(b, &image, sizeof image));
}

/* Clears the ring where it is outside of the frame. */
static void clear_outside(builder *b, const ring *r) {
    const uint32_t size = (uint32_t)r->size, width = (uint32_t)r->width, height = (uint32_t)r->height;
    const uint32_t corner = r->address - size * r->row - size * r->pixel;
    const lns_bh_fill horizontal = {corner, 0, (width + 2 * size) * r->pixel / 4, size, r->row, r->planes, r->plane};
    const lns_bh_fill vertical = {corner, 0, size * r->pixel / 4, height + 2 * size, r->row, r->planes, r->plane};
    lns_bh_fill fills[4];
    uint32_t count = 0;
    if (b->down == 0)
        fills[count++] = horizontal;
    if (b->down == b->grid.down - 1) {
        fills[count] = horizontal;
        fills[count++].address += (height + size) * r->row;
    }
    if (b->across == 0)
        fills[count++] = vertical;
    if (b->across == b->grid.across - 1) {
        fills[count] = vertical;
        fills[count++].address += (width + size) * r->pixel;
    }
    add_fills(b, fills, count);
}

/* ---- Streamed weights ----------------------------------------------------------------------------- */

/* The tile that streams weights, and tells the host that all are done. */
static int is_first_tile(const builder *b) {
    return b->down == 0 && b->across == 0;
}

static uint32_t noc_tile(lns_blackhole_tile tile) {
    return LNS_BH_NOC_TILE(tile.x, tile.y);
}

static void signal_first_tile(builder *b, int counter) {
    const lns_bh_signal signal = {counter_at(counter), 1, {noc_tile(lns_blackhole_block_tile(0, 0))}};
    add_step(b, LNS_BH_SIGNAL, put(b, &signal, sizeof signal));
}

/* Says that half `half` of the place is free. */
static void free_half(builder *b, int half) {
    signal_first_tile(b, FREE_COUNTER + half);
}

/* The streamed layers in the order in which they are computed. Descriptors come first: while they are on their way to
 * the host, keypoints are looked for. */
static const int streamed_layers[] = {LNS_CONV4A,           LNS_CONV4B,           LNS_CONV_DESCRIPTOR_A,
                                      LNS_CONV_DESCRIPTOR_B, LNS_CONV_SCORE_A, LNS_CONV_SCORE_B};

/* Layer and unit of the n-th unit of streamed weights; returns 0 after the last. */
static int streamed_unit(int n, int *index, int *unit) {
    for (size_t i = 0; i < sizeof streamed_layers / sizeof *streamed_layers; i++) {
        *index = streamed_layers[i];
        *unit = n;
        if (n < lns_plan_unit_count(*index))
            return 1;
        n -= lns_plan_unit_count(*index);
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
    if (!is_first_tile(b) || !streamed_unit(b->streamed, &index, &unit))
        return;
    const lns_blackhole_layer layer = lns_plan_unit_of(index, unit);
    const lns_blackhole_tiles tiles = lns_blackhole_grid_tiles(b->grid);
    const lns_bh_stream stream = {
        .dram = lns_plan_weights_before(index, unit),
        .dram_tile = LNS_BH_NOC_TILE(LNS_BLACKHOLE_DRAM_X, LNS_BLACKHOLE_DRAM_Y),
        .at = PLAN_STREAM_AT + (uint32_t)(b->streamed % 2) * PLAN_STREAM_BYTES,
        .size = lns_plan_weight_bytes(&layer),
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
    const lns_blackhole_layer layer = lns_plan_unit_of(index, 0);
    add_convolution(b, LNS_BH_CONVOLUTION, &layer, PLAN_RESIDENT_AT + lns_plan_weights_before(index, 0));
}

/* The same for the first layer after which the place for streamed weights is free: meanwhile they begin to come. */
static void add_resident_and_stream(builder *b, int index) {
    const lns_blackhole_layer layer = lns_plan_unit_of(index, 0);
    free_half(b, 0);
    free_half(b, 1);
    add_convolution(b, LNS_BH_BEGIN, &layer, PLAN_RESIDENT_AT + lns_plan_weights_before(index, 0));
    stream_unit(b);
    stream_unit(b);
    add_step(b, LNS_BH_JOIN, 0);
}

/* While a unit is computed, the next but one comes into the other half, which the one before has left. */
static void add_streamed(builder *b, int index) {
    const lns_bh_wait wait = {counter_at(READY_COUNTER), 1};
    for (int unit = 0; unit < lns_plan_unit_count(index); unit++) {
        const lns_blackhole_layer layer = lns_plan_unit_of(index, unit);
        const int half = b->used++ % 2;
        add_step(b, LNS_BH_WAIT, put(b, &wait, sizeof wait));
        add_convolution(b, LNS_BH_BEGIN, &layer, PLAN_STREAM_AT + (uint32_t)half * PLAN_STREAM_BYTES);
        if (b->used > 1)
            stream_unit(b);
        add_step(b, LNS_BH_JOIN, 0);
        if (b->used + 1 < streamed_units())
            free_half(b, half);
    }
}

static ring score_ring(void) {
    return (ring){
        .address = PLAN_SCORE_AT,
        .width = LNS_BLACKHOLE_BLOCK_WIDTH,
        .height = LNS_BLACKHOLE_BLOCK_HEIGHT,
        .size = PLAN_SCORE_RING,
        .pixel = sizeof(float),
        .row = PLAN_SCORE_ROW,
        .planes = 1,
    };
}

static void find_scores(builder *b) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(b->grid);
    const ring around = score_ring();
    const lns_bh_scores scores = {PLAN_LOGIT_AT, LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, PLAN_SCORE_AT,
                                  PLAN_SCORE_ROW};
    lns_bh_copy item = host_copy(b, layout.scores + (size_t)b->down * LNS_BLACKHOLE_BLOCK_HEIGHT * layout.scores_row +
                                        (size_t)b->across * LNS_BLACKHOLE_BLOCK_WIDTH * sizeof(float));
    item.local = PLAN_SCORE_AT;
    item.size = LNS_BLACKHOLE_BLOCK_WIDTH * sizeof(float);
    item.rows = LNS_BLACKHOLE_BLOCK_HEIGHT;
    item.local_row = PLAN_SCORE_ROW;
    item.remote_row = (uint32_t)layout.scores_row;
    clear_outside(b, &around);
    add_step(b, LNS_BH_SCORES, put(b, &scores, sizeof scores));
    add_copies(b, LNS_BH_SEND, &item, 1, LNS_BH_WANT_SCORES);
}

static void find_keypoints(builder *b) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(b->grid);
    const ring r = score_ring();
    const size_t block = (size_t)b->down * (size_t)b->grid.across + (size_t)b->across;
    const uint64_t host = b->host + layout.lists + block * LNS_BH_LISTS * LNS_BLACKHOLE_LIST_BYTES;
    const lns_bh_suppression suppression = {
        .scores = PLAN_SCORE_AT,
        .scores_row = PLAN_SCORE_ROW,
        .width = LNS_BLACKHOLE_BLOCK_WIDTH,
        .height = LNS_BLACKHOLE_BLOCK_HEIGHT,
        .x = (uint32_t)b->across * LNS_BLACKHOLE_BLOCK_WIDTH,
        .y = (uint32_t)b->down * LNS_BLACKHOLE_BLOCK_HEIGHT,
        .frame_width = (uint32_t)b->grid.across * LNS_BLACKHOLE_BLOCK_WIDTH,
        .frame_height = (uint32_t)b->grid.down * LNS_BLACKHOLE_BLOCK_HEIGHT,
        .lists = PLAN_LIST_AT,
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
    item.local = PLAN_DESCRIPTOR_AT;
    item.size = PLAN_DESCRIPTOR_BYTES;
    add_copies(b, LNS_BH_SEND, &item, 1, LNS_BH_WANT_DESCRIPTORS);
}

/* What was sent has been acknowledged before a tile says that it is done. The first tile sends the host the line of its
 * control block that the host wrote, which begins with the number of the request. */
static void report(builder *b) {
    add_step(b, LNS_BH_LAND, 0);
    signal_first_tile(b, DONE_COUNTER);
    add_step(b, LNS_BH_LAND, 0);
    if (!is_first_tile(b))
        return;
    const lns_bh_wait wait = {counter_at(DONE_COUNTER), (uint32_t)(b->grid.down * b->grid.across)};
    lns_bh_copy item = host_copy(b, lns_blackhole_host_layout_of(b->grid).done);
    item.local = LNS_BH_CONTROL;
    item.size = 16;
    add_step(b, LNS_BH_WAIT, put(b, &wait, sizeof wait));
    add_copies(b, LNS_BH_SEND, &item, 1, 0);
    add_step(b, LNS_BH_LAND, 0);
}

static void add_network(builder *b) {
    const ring full = ring_of(PLAN_FULL, 4);
    read_frame(b);
    add_resident(b, LNS_CONV1A);
    clear_outside(b, &full); /* the first layer computes its ring itself */
    add_resident(b, LNS_CONV1B);
    exchange_planes(b, PLAN_HALF, 4);
    add_resident_and_stream(b, LNS_CONV2A);
    exchange_planes(b, PLAN_HALF2, 4);
    add_resident(b, LNS_CONV2B);
    exchange_planes(b, PLAN_QUARTER, 4);
    add_resident(b, LNS_CONV3A);
    exchange_planes(b, PLAN_QUARTER2, 8);
    add_resident(b, LNS_CONV3B);
    exchange_planes(b, PLAN_CELLS, 8);
    add_streamed(b, LNS_CONV4A);
    exchange_planes(b, PLAN_CELLS2, 8);
    add_streamed(b, LNS_CONV4B);
    exchange_planes(b, PLAN_CELLS, 8);
    add_streamed(b, LNS_CONV_DESCRIPTOR_A);
    add_streamed(b, LNS_CONV_DESCRIPTOR_B);
    send_descriptors(b);
    add_streamed(b, LNS_CONV_SCORE_A);
    add_streamed(b, LNS_CONV_SCORE_B);
    find_scores(b);
    find_keypoints(b);
    report(b);
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
