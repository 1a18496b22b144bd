/* SPDX-License-Identifier: Apache-2.0 */
/* How many instructions the steps of the RISC-V cores take in the busiest tile, for bench/blackhole_model.py. The
 * simulator executes an instruction of each core at a step, so its steps are counted from the doorbell to the end, less
 * those of an empty program.
 *
 * usage: count_steps WEIGHTS PHOTO...; keypoints are looked for in the scores that the CPU finds for the photos. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/lensing.h>

#include "blackhole/plan.h"
#include "blackhole/sim.h"

#define TIMEOUT_MS 300e3

enum { WIDTH = LNS_NETWORK_WIDTH, HEIGHT = LNS_NETWORK_HEIGHT };
enum { BLOCK_WIDTH = LNS_BLACKHOLE_BLOCK_WIDTH, BLOCK_HEIGHT = LNS_BLACKHOLE_BLOCK_HEIGHT };
enum { RING = LNS_BH_LARGEST_RADIUS, MAP_ROW = BLOCK_WIDTH + 2 * RING, MAP_ROWS = BLOCK_HEIGHT + 2 * RING };
enum { IN_AT = 0x20000, OUT_AT = 0x40000 };

static const lns_blackhole_tiles tiles = {{1, 2}, {1, 2}};
static lns_blackhole_transport *card;
static uint32_t request;
static float scores[WIDTH * HEIGHT];

static void check(lns_status status) {
    if (status == LNS_OK)
        return;
    fprintf(stderr, "%s\n", lns_error_message());
    exit(1);
}

static void put(uint32_t at, const void *data, size_t size) {
    check(card->operations->write(card, tiles.first, at, data, size));
}

/* Steps of the simulator for a program of one step, whose descriptor is `data`. */
static unsigned count(uint32_t kind, const void *data, size_t size) {
    const uint32_t at = LNS_BH_PROGRAM + 64;
    const lns_bh_step steps[2] = {{kind, at}, {LNS_BH_END, 0}};
    uint32_t finished = request;
    unsigned clocks = 0;
    put(LNS_BH_PROGRAM, steps, sizeof steps);
    if (size > 0)
        put(at, data, size);
    check(lns_blackhole_ring_tiles(card, tiles, LNS_BH_PROGRAM, ++request));
    while (finished != request) {
        check(card->operations->idle(card, 1));
        check(lns_blackhole_read32(card, tiles.first, LNS_BH_CONTROL + offsetof(lns_bh_control, finished), &finished));
        clocks++;
    }
    return clocks;
}

static unsigned count_keypoints(int block_x, int block_y) {
    float map[MAP_ROWS * MAP_ROW];
    for (int i = 0; i < MAP_ROWS * MAP_ROW; i++) {
        const int x = block_x + i % MAP_ROW - RING, y = block_y + i / MAP_ROW - RING;
        map[i] = x >= 0 && y >= 0 && x < WIDTH && y < HEIGHT ? scores[y * WIDTH + x] : 0;
    }
    put(IN_AT, map, sizeof map);
    const lns_bh_suppression step = {
        .scores = IN_AT + (RING * MAP_ROW + RING) * 4,
        .scores_row = MAP_ROW * 4,
        .width = BLOCK_WIDTH,
        .height = BLOCK_HEIGHT,
        .x = (uint32_t)block_x,
        .y = (uint32_t)block_y,
        .frame_width = WIDTH,
        .frame_height = HEIGHT,
        .lists = OUT_AT,
        .list_size = LNS_BLACKHOLE_LIST_BYTES,
    };
    return count(LNS_BH_KEYPOINTS, &step, sizeof step);
}

static unsigned busiest_tile(void) {
    unsigned most = 0;
    for (int y = 0; y < HEIGHT; y += BLOCK_HEIGHT)
        for (int x = 0; x < WIDTH; x += BLOCK_WIDTH) {
            const unsigned clocks = count_keypoints(x, y);
            most = clocks > most ? clocks : most;
        }
    return most;
}

static unsigned count_image(void) {
    const lns_bh_image step = {IN_AT, BLOCK_WIDTH + 64, OUT_AT, BLOCK_WIDTH + 2, BLOCK_HEIGHT + 2};
    return count(LNS_BH_IMAGE, &step, sizeof step);
}

static unsigned count_scores(void) {
    float logits[5 * LNS_BLACKHOLE_CELLS * LNS_BH_CHANNELS];
    for (size_t i = 0; i < sizeof logits / sizeof *logits; i++)
        logits[i] = (float)(i * 7919 % 1000) * 0.01F - 5;
    put(IN_AT, logits, sizeof logits);
    const lns_bh_scores step = {IN_AT, LNS_BLACKHOLE_CELLS_X, LNS_BLACKHOLE_CELLS_Y, OUT_AT, MAP_ROW * 4};
    return count(LNS_BH_SCORES, &step, sizeof step);
}

static void find_scores(lns_superpoint *model, const char *path) {
    static uint8_t frame[WIDTH * HEIGHT];
    lns_plane *plane, *small;
    check(lns_plane_read(path, NULL, &plane));
    check(lns_plane_resize(plane, WIDTH, HEIGHT, &small));
    for (size_t y = 0; y < HEIGHT; y++)
        memcpy(frame + y * WIDTH, small->data + y * small->stride, WIDTH);
    check(lns_superpoint_forward(model, frame, scores, NULL));
    lns_plane_close(&small);
    lns_plane_close(&plane);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: count_steps WEIGHTS PHOTO...\n");
        return 2;
    }
    const float threshold = 0.005F;
    lns_bh_rules rules = {4, 0, 4, 0};
    lns_superpoint_options options;
    lns_superpoint *model;
    memcpy(&rules.threshold, &threshold, sizeof threshold);
    lns_superpoint_options_init(&options);
    options.weights = argv[1];
    check(lns_superpoint_open(&options, &model));
    check(lns_blackhole_open_sim(&card));
    check(lns_blackhole_start_tiles(card, tiles, TIMEOUT_MS));
    put(LNS_BH_RULES, &rules, sizeof rules);
    count(LNS_BH_END, NULL, 0);
    const unsigned nothing = count(LNS_BH_END, NULL, 0);
    printf("image %u\nscores %u\n", count_image() - nothing, count_scores() - nothing);
    for (int i = 2; i < argc; i++) {
        find_scores(model, argv[i]);
        printf("keypoints %u: %s\n", busiest_tile() - nothing, argv[i]);
        fflush(stdout);
    }
    card->operations->close(card);
    lns_superpoint_close(&model);
    return 0;
}
