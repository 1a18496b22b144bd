/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/network.h"

#include <string.h>

#include <lensing/features.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "blackhole/cells.h"

/* Ages for a card; the simulator takes minutes for a run, or an hour where it is one of many programs. */
#define START_TIMEOUT_MS 60e3
#define RUN_TIMEOUT_MS 5e3
#define SIMULATOR_TIMEOUT_MS 4 * 3600e3

struct lns_blackhole_network {
    lns_blackhole_transport *transport;
    lns_blackhole_grid grid;
    lns_blackhole_host_memory host;
    uint32_t request;
};

/* ---- Opening ------------------------------------------------------------------------------------ */

/* Rings of planes at the edge of the frame are zeros for good: nobody writes there. */
static lns_status clear_data(lns_blackhole_transport *transport, lns_blackhole_tiles tiles) {
    const size_t size = LNS_BH_L1_SIZE - LNS_BH_DATA;
    uint8_t *zeros = lns_calloc(1, size);
    if (zeros == NULL)
        return lns_fail_memory(size);
    const lns_status status =
        transport->operations->multicast(transport, tiles.first, tiles.last, LNS_BH_DATA, zeros, size);
    lns_free(zeros);
    return status;
}

static lns_status write_ones(lns_blackhole_transport *transport, lns_blackhole_tiles tiles) {
    uint16_t ones[LNS_BLACKHOLE_ONES_BYTES / 2] = {0};
    for (size_t pixel = 0; pixel < LNS_BH_JOB_PIXELS; pixel++)
        ones[pixel * LNS_BH_CHANNELS] = ones[pixel * LNS_BH_CHANNELS + 1] = 0x3F80; /* 1 in bfloat16 */
    const lns_blackhole_ones places = lns_blackhole_ones_places();
    lns_status status = LNS_OK;
    for (size_t i = 0; i < sizeof places.at / sizeof *places.at && status == LNS_OK; i++)
        status = transport->operations->multicast(transport, tiles.first, tiles.last, places.at[i], ones, sizeof ones);
    return status;
}

static lns_status write_weights(lns_blackhole_transport *transport, lns_blackhole_tiles tiles,
                                const lns_superpoint_weights *weights) {
    const lns_blackhole_tile dram = {LNS_BLACKHOLE_DRAM_X, LNS_BLACKHOLE_DRAM_Y};
    lns_blackhole_packed_weights packed;
    lns_status status = lns_blackhole_pack_network(weights, &packed);
    if (status == LNS_OK)
        status = transport->operations->multicast(transport, tiles.first, tiles.last, packed.resident_at,
                                                  packed.resident, packed.resident_size);
    if (status == LNS_OK)
        status = transport->operations->write(transport, dram, 0, packed.streamed, packed.streamed_size);
    lns_blackhole_packed_weights_free(&packed);
    return status;
}

static lns_status write_programs(const lns_blackhole_network *n) {
    lns_blackhole_program *program = lns_alloc(sizeof *program);
    if (program == NULL)
        return lns_fail_memory(sizeof *program);
    lns_status status = LNS_OK;
    for (int down = 0; down < n->grid.down; down++)
        for (int across = 0; across < n->grid.across && status == LNS_OK; across++) {
            status = lns_blackhole_make_program(n->grid, down, across, n->host.noc_address, program);
            if (status == LNS_OK)
                status = n->transport->operations->write(n->transport, lns_blackhole_block_tile(down, across),
                                                         LNS_BH_PROGRAM, program->bytes, program->size);
        }
    lns_free(program);
    return status;
}

static lns_status clear_counters(lns_blackhole_transport *transport, lns_blackhole_tiles tiles) {
    static const lns_bh_counter zeros[LNS_BH_COUNTER_COUNT];
    return transport->operations->multicast(transport, tiles.first, tiles.last, LNS_BH_COUNTERS, zeros, sizeof zeros);
}

static lns_status prepare(lns_blackhole_network *n, const lns_superpoint_weights *weights) {
    const lns_blackhole_tiles tiles = lns_blackhole_grid_tiles(n->grid);
    lns_status status =
        n->transport->operations->pin(n->transport, lns_blackhole_host_layout_of(n->grid).size, &n->host);
    if (status == LNS_OK)
        status = lns_blackhole_stop_tiles(n->transport, tiles);
    if (status == LNS_OK)
        status = clear_data(n->transport, tiles);
    if (status == LNS_OK)
        status = clear_counters(n->transport, tiles);
    if (status == LNS_OK)
        status = write_ones(n->transport, tiles);
    if (status == LNS_OK)
        status = write_weights(n->transport, tiles, weights);
    if (status == LNS_OK)
        status = write_programs(n);
    if (status == LNS_OK)
        status = lns_blackhole_start_tiles(n->transport, tiles, START_TIMEOUT_MS);
    return status;
}

lns_status lns_blackhole_network_open(lns_blackhole_transport *transport, const lns_superpoint_weights *weights,
                                      lns_blackhole_grid grid, lns_blackhole_network **network) {
    *network = NULL;
    if (grid.down < 1 || grid.down > LNS_BLACKHOLE_COLUMNS || grid.across < 1 || grid.across > LNS_BLACKHOLE_ROWS)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "a grid of %d x %d tiles is outside of 1 x 1 to %d x %d", grid.down,
                        grid.across, LNS_BLACKHOLE_COLUMNS, LNS_BLACKHOLE_ROWS);
    lns_blackhole_network *n = lns_calloc(1, sizeof *n);
    if (n == NULL)
        return lns_fail_memory(sizeof *n);
    n->transport = transport;
    n->grid = grid;
    const lns_status status = prepare(n, weights);
    if (status != LNS_OK)
        lns_blackhole_network_close(&n);
    *network = n;
    return status;
}

void lns_blackhole_network_close(lns_blackhole_network **network) {
    lns_blackhole_network *n = *network;
    *network = NULL;
    if (n == NULL)
        return;
    /* The tiles must not touch the memory any more; when they cannot be stopped, the transport keeps it until its end.
     */
    if (lns_blackhole_stop_tiles(n->transport, lns_blackhole_grid_tiles(n->grid)) == LNS_OK && n->host.data != NULL)
        n->transport->operations->unpin(n->transport, &n->host);
    lns_free(n);
}

/* ---- A run -------------------------------------------------------------------------------------- */

static void put_frame(const lns_blackhole_network *n, const uint8_t *frame) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(n->grid);
    const size_t blocks = (size_t)n->grid.down * (size_t)n->grid.across;
    memcpy((uint8_t *)n->host.data + layout.frame, frame,
           blocks * LNS_BLACKHOLE_BLOCK_WIDTH * LNS_BLACKHOLE_BLOCK_HEIGHT);
}

static void get_scores(const lns_blackhole_network *n, float *scores) {
    const lns_blackhole_host_layout layout = lns_blackhole_host_layout_of(n->grid);
    memcpy(scores, (const uint8_t *)n->host.data + layout.scores, layout.descriptors - layout.scores);
}

const uint16_t *lns_blackhole_network_cells(const lns_blackhole_network *n) {
    return (const uint16_t *)(const void *)((const uint8_t *)n->host.data +
                                            lns_blackhole_host_layout_of(n->grid).descriptors);
}

static void get_descriptor(const uint16_t *cell, float *descriptor) {
    const float scale = lns_cell_scale(cell);
    for (int part = 0; part < LNS_CELL_PARTS; part++)
        for (int lane = 0; lane < LNS_CELL_LANES; lane++)
            *descriptor++ = lns_cell_number(cell[part * LNS_CELL_STRIDE + lane]) * scale;
}

void lns_blackhole_network_descriptors(const lns_blackhole_network *n, float *descriptors) {
    const size_t width = (size_t)n->grid.across * LNS_BLACKHOLE_CELLS_X;
    const size_t height = (size_t)n->grid.down * LNS_BLACKHOLE_CELLS_Y;
    const uint16_t *map = lns_blackhole_network_cells(n);
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            get_descriptor(lns_cell_at(map, (size_t)n->grid.across, x, y),
                           descriptors + (y * width + x) * LNS_DESCRIPTOR_SIZE);
}

/* Appends the keypoints of all tiles. */
static lns_status get_keypoints(const lns_blackhole_network *n, lns_bh_keypoint *keypoints, size_t *count) {
    const size_t lists = (size_t)n->grid.down * (size_t)n->grid.across * LNS_BH_LISTS;
    const size_t room = (LNS_BLACKHOLE_LIST_BYTES - LNS_BH_LIST_HEADER) / sizeof *keypoints;
    const uint8_t *list = (const uint8_t *)n->host.data + lns_blackhole_host_layout_of(n->grid).lists;
    *count = 0;
    for (size_t i = 0; i < lists; i++, list += LNS_BLACKHOLE_LIST_BYTES) {
        uint32_t found;
        memcpy(&found, list, sizeof found);
        if (found > room)
            return lns_fail(LNS_ERROR_SYSTEM, "the card says that it found %u keypoints where %zu are possible", found,
                            room);
        memcpy(keypoints + *count, list + LNS_BH_LIST_HEADER, found * sizeof *keypoints);
        *count += found;
    }
    return LNS_OK;
}

/* Waits for the word in the host's memory: asking 120 tiles would take longer than some of their layers. After a
 * timeout they are asked, so that the text names one that is not done. */
static lns_status wait_for_card(lns_blackhole_network *n) {
    const uint32_t *done =
        (const uint32_t *)(const void *)((const uint8_t *)n->host.data + lns_blackhole_host_layout_of(n->grid).done);
    const int simulated = strcmp(n->transport->operations->name, "sim") == 0;
    const double deadline = lns_clock_ms() + (simulated ? SIMULATOR_TIMEOUT_MS : RUN_TIMEOUT_MS);
    while (__atomic_load_n(done, __ATOMIC_ACQUIRE) != n->request) {
        const lns_status status = n->transport->operations->idle(n->transport, LNS_BLACKHOLE_IDLE_STEPS);
        if (status != LNS_OK)
            return status;
        if (lns_clock_ms() > deadline)
            return lns_blackhole_wait_for_tiles(n->transport, lns_blackhole_grid_tiles(n->grid), n->request, 0);
    }
    return LNS_OK;
}

static lns_status compute(lns_blackhole_network *n, const uint8_t *frame, const lns_bh_rules *rules) {
    const lns_blackhole_tiles tiles = lns_blackhole_grid_tiles(n->grid);
    put_frame(n, frame);
    lns_status status =
        n->transport->operations->multicast(n->transport, tiles.first, tiles.last, LNS_BH_RULES, rules, sizeof *rules);
    if (status == LNS_OK)
        status = lns_blackhole_ring_tiles(n->transport, tiles, LNS_BH_PROGRAM, ++n->request);
    return status == LNS_OK ? wait_for_card(n) : status;
}

lns_status lns_blackhole_network_detect(lns_blackhole_network *network, const uint8_t *frame,
                                        const lns_blackhole_rules *rules, int with_cells, float *scores,
                                        lns_bh_keypoint *keypoints, size_t *count) {
    lns_bh_rules card_rules = {
        .wanted = (scores != NULL ? LNS_BH_WANT_SCORES : 0u) | (with_cells ? LNS_BH_WANT_DESCRIPTORS : 0u),
    };
    if (rules != NULL) {
        card_rules.radius = rules->radius;
        card_rules.border = rules->border;
        memcpy(&card_rules.threshold, &rules->threshold, sizeof rules->threshold);
    }
    lns_status status = compute(network, frame, &card_rules);
    if (status == LNS_OK && keypoints != NULL)
        status = get_keypoints(network, keypoints, count);
    if (status == LNS_OK && scores != NULL)
        get_scores(network, scores);
    return status;
}

lns_status lns_blackhole_network_run(lns_blackhole_network *network, const uint8_t *frame, float *scores,
                                     float *descriptors) {
    const lns_status status =
        lns_blackhole_network_detect(network, frame, NULL, descriptors != NULL, scores, NULL, NULL);
    if (status == LNS_OK && descriptors != NULL)
        lns_blackhole_network_descriptors(network, descriptors);
    return status;
}
