/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into the `lensing` program in place of a card: the functions that open one and run the network on it, which
 * here is that of the CPU. So what the program and the server say and do with a card is tested in seconds. The linker
 * turns calls of the library's functions into calls of these (--wrap).
 *
 * LENSING_MADE_UP_FAILS=N lets the N-th run of the network fail, as a card that hangs; LENSING_MADE_UP_LOST=N lets it
 * read from memory that is gone, as a card that another program resets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "blackhole/device.h"
#include "blackhole/network.h"
#include "superpoint/backend.h"

#define MAP ((size_t)LNS_CELLS * LNS_DESCRIPTOR_SIZE)

lns_status __wrap_lns_blackhole_open(const lns_kmd_system *system, int device_id, lns_blackhole_transport **transport);
void __wrap_lns_blackhole_close(lns_blackhole_transport **transport);
lns_status __wrap_lns_blackhole_network_open(lns_blackhole_transport *transport, const lns_superpoint_weights *weights,
                                             lns_blackhole_grid grid, lns_blackhole_network **network);
void __wrap_lns_blackhole_network_close(lns_blackhole_network **network);
lns_status __wrap_lns_blackhole_network_run(lns_blackhole_network *network, const uint8_t *frame, float *scores,
                                            float *descriptors);
lns_status __wrap_lns_blackhole_network_detect(lns_blackhole_network *network, const uint8_t *frame,
                                               const lns_blackhole_rules *rules, int with_cells, float *scores,
                                               lns_bh_keypoint *keypoints, size_t *count);
const uint16_t *__wrap_lns_blackhole_network_cells(const lns_blackhole_network *network);

static lns_blackhole_transport transport_of_card;
static lns_backend *cpu;
static int runs;
static float map[LNS_FRAME_PIXELS], descriptor_map[MAP];
static uint16_t cells[MAP]; /* in the order of blackhole/cells.h */

lns_status __wrap_lns_blackhole_open(const lns_kmd_system *system, int device_id, lns_blackhole_transport **transport) {
    (void)system;
    (void)device_id;
    *transport = &transport_of_card;
    return LNS_OK;
}

void __wrap_lns_blackhole_close(lns_blackhole_transport **transport) {
    *transport = NULL;
}

lns_status __wrap_lns_blackhole_network_open(lns_blackhole_transport *transport, const lns_superpoint_weights *weights,
                                             lns_blackhole_grid grid, lns_blackhole_network **network) {
    (void)transport;
    (void)grid;
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    const lns_status status = lns_cpu_backend_open(weights, &options, &cpu);
    *network = (lns_blackhole_network *)(void *)cpu;
    return status;
}

void __wrap_lns_blackhole_network_close(lns_blackhole_network **network) {
    if (*network != NULL)
        cpu->operations->close(cpu);
    *network = NULL;
}

/* Behind the end of a file, where there is none. */
static void read_lost_memory(void) {
    FILE *file = tmpfile();
    const volatile char *memory = file != NULL ? mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0) : MAP_FAILED;
    if (memory != MAP_FAILED && memory[0] != 0)
        abort();
}

lns_status __wrap_lns_blackhole_network_run(lns_blackhole_network *network, const uint8_t *frame, float *scores,
                                            float *descriptors) {
    (void)network;
    const char *fails = getenv("LENSING_MADE_UP_FAILS"), *lost = getenv("LENSING_MADE_UP_LOST");
    runs++;
    if (lost != NULL && runs == atoi(lost))
        read_lost_memory();
    if (fails != NULL && runs == atoi(fails))
        return lns_fail(LNS_ERROR_SYSTEM, "tile (4, 7) of the card did not finish a request in time");
    return cpu->operations->forward(cpu, frame, scores, descriptors);
}

static void keep_cells(void) {
    const size_t block_cells = LNS_BLACKHOLE_CELLS_X * LNS_BLACKHOLE_CELLS_Y;
    for (size_t y = 0; y < LNS_CELLS_Y; y++)
        for (size_t x = 0; x < LNS_CELLS_X; x++)
            for (size_t i = 0; i < LNS_DESCRIPTOR_SIZE; i++) {
                const size_t block =
                    y / LNS_BLACKHOLE_CELLS_Y * (LNS_CELLS_X / LNS_BLACKHOLE_CELLS_X) + x / LNS_BLACKHOLE_CELLS_X;
                const size_t cell = y % LNS_BLACKHOLE_CELLS_Y * LNS_BLACKHOLE_CELLS_X + x % LNS_BLACKHOLE_CELLS_X;
                uint32_t bits;
                memcpy(&bits, &descriptor_map[(y * LNS_CELLS_X + x) * LNS_DESCRIPTOR_SIZE + i], sizeof bits);
                cells[block * block_cells * LNS_DESCRIPTOR_SIZE +
                      (i / LNS_BH_CHANNELS * block_cells + cell) * LNS_BH_CHANNELS + i % LNS_BH_CHANNELS] =
                    (uint16_t)(bits >> 16);
            }
}

lns_status __wrap_lns_blackhole_network_detect(lns_blackhole_network *network, const uint8_t *frame,
                                               const lns_blackhole_rules *rules, int with_cells, float *scores,
                                               lns_bh_keypoint *keypoints, size_t *count) {
    lns_selection found;
    lns_status status = __wrap_lns_blackhole_network_run(network, frame, map, with_cells ? descriptor_map : NULL);
    if (status != LNS_OK)
        return status;
    if (with_cells)
        keep_cells();
    if (scores != NULL)
        memcpy(scores, map, sizeof map);
    if (rules == NULL)
        return LNS_OK;
    const lns_selection_rules all = {-1, rules->threshold, (int32_t)rules->radius, (int32_t)rules->border};
    status = lns_select_keypoints(map, &all, &found);
    *count = found.count;
    for (size_t i = 0; i < found.count; i++) {
        keypoints[i].pixel = found.pixels[i];
        memcpy(&keypoints[i].score, &found.scores[i], sizeof keypoints[i].score);
    }
    lns_selection_free(&found);
    return status;
}

const uint16_t *__wrap_lns_blackhole_network_cells(const lns_blackhole_network *network) {
    (void)network;
    return cells;
}
