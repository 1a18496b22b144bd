/* SPDX-License-Identifier: Apache-2.0 */
/* What the host does for a request on a Blackhole card, part by part. There is no card: what it would leave in the host's
 * memory is made from the CPU's maps of the photo, and its answer is there after WAIT_MS, in which the threads that share
 * the sampling fall asleep as they would behind a card.
 *
 * usage: blackhole_host WEIGHTS IMAGE [ROUNDS [THRESHOLD [THREADS]]]; prints one line a part: its name and the median in
 * microseconds, once with what the card leaves in the caches, and once with it flushed to the memory. The first part is
 * without the wait. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/lensing.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "blackhole/layer.h"
#include "blackhole/network.h"
#include "superpoint/postprocess.h"

enum { PARTS = 4, WARM_UP = 5, FLUSHED = 64, KEYPOINTS = 1024 };

static const char *const names[PARTS] = {"frame and lists", "order keypoints", "sample descriptors", "all"};

#define WAIT_MS 0.3

static lns_blackhole_host_memory host;
static double waited_ms;

static void check(lns_status status) {
    if (status == LNS_OK)
        return;
    fprintf(stderr, "%s\n", lns_error_message());
    exit(1);
}

static void *room(size_t size) {
    void *memory = lns_aligned_alloc(size);
    if (memory == NULL)
        exit(1);
    memset(memory, 0, size);
    return memory;
}

/* ---- A card that does nothing and is done -------------------------------------------------------- */

static lns_status put(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address, const void *data,
                      size_t size) {
    (void)transport, (void)tile, (void)address, (void)data, (void)size;
    return LNS_OK;
}

static lns_status get(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address, void *data,
                      size_t size) {
    (void)transport, (void)tile, (void)address;
    const uint32_t ready = LNS_BH_READY;
    memcpy(data, &ready, size < sizeof ready ? size : sizeof ready);
    return LNS_OK;
}

static void wait_for_card(void) {
    const double start = lns_clock_ms();
    do
        waited_ms = lns_clock_ms() - start;
    while (waited_ms < WAIT_MS);
}

static lns_status cast(lns_blackhole_transport *transport, lns_blackhole_tile first, lns_blackhole_tile last,
                       uint64_t address, const void *data, size_t size) {
    (void)transport, (void)first, (void)last;
    const lns_blackhole_grid grid = {LNS_BLACKHOLE_COLUMNS, LNS_BLACKHOLE_ROWS};
    if (address == LNS_BH_CONTROL + offsetof(lns_bh_control, request)) {
        wait_for_card();
        memcpy((uint8_t *)host.data + lns_blackhole_host_layout_of(grid).done, data, size);
    }
    return LNS_OK;
}

static lns_status idle(lns_blackhole_transport *transport, unsigned steps) {
    (void)transport, (void)steps;
    return LNS_OK;
}

static lns_status pin(lns_blackhole_transport *transport, size_t size, lns_blackhole_host_memory *memory) {
    (void)transport;
    host = *memory = (lns_blackhole_host_memory){room(size), size, 0};
    return LNS_OK;
}

static void unpin(lns_blackhole_transport *transport, lns_blackhole_host_memory *memory) {
    (void)transport;
    lns_aligned_free(memory->data);
    memset(memory, 0, sizeof *memory);
}

static const lns_blackhole_transport_operations operations = {"none", put, get, cast, idle, pin, unpin, NULL};

/* ---- What it would leave ------------------------------------------------------------------------- */

static void leave_keypoints(const lns_selection *found, lns_blackhole_grid grid) {
    uint8_t *lists = (uint8_t *)host.data + lns_blackhole_host_layout_of(grid).lists;
    for (size_t i = 0; i < found->count; i++) {
        const uint32_t x = found->pixels[i] % LNS_NETWORK_WIDTH, y = found->pixels[i] / LNS_NETWORK_WIDTH;
        const uint32_t block = y / LNS_BLACKHOLE_BLOCK_HEIGHT * LNS_BLACKHOLE_ROWS + x / LNS_BLACKHOLE_BLOCK_WIDTH;
        uint8_t *list =
            lists + (block * LNS_BH_LISTS + y % LNS_BLACKHOLE_BLOCK_HEIGHT % LNS_BH_LISTS) * LNS_BLACKHOLE_LIST_BYTES;
        uint32_t count;
        lns_bh_keypoint keypoint = {.pixel = found->pixels[i]};
        memcpy(&keypoint.score, &found->scores[i], sizeof keypoint.score);
        memcpy(&count, list, sizeof count);
        memcpy(list + LNS_BH_LIST_HEADER + count * sizeof keypoint, &keypoint, sizeof keypoint);
        count++;
        memcpy(list, &count, sizeof count);
    }
}

static void leave_cells(const float *map, lns_blackhole_grid grid) {
    uint16_t *cells = (uint16_t *)(void *)((uint8_t *)host.data + lns_blackhole_host_layout_of(grid).descriptors);
    for (size_t cell = 0; cell < LNS_CELLS; cell++) {
        const size_t x = cell % LNS_CELLS_X, y = cell / LNS_CELLS_X;
        const size_t block = y / LNS_BLACKHOLE_CELLS_Y * LNS_BLACKHOLE_ROWS + x / LNS_BLACKHOLE_CELLS_X;
        const size_t place = y % LNS_BLACKHOLE_CELLS_Y * LNS_BLACKHOLE_CELLS_X + x % LNS_BLACKHOLE_CELLS_X;
        for (size_t i = 0; i < LNS_DESCRIPTOR_SIZE; i++)
            cells[((block * LNS_DESCRIPTOR_SIZE + i / LNS_BH_CHANNELS * LNS_BH_CHANNELS) * LNS_BLACKHOLE_CELLS) +
                  place * LNS_BH_CHANNELS + i % LNS_BH_CHANNELS] =
                lns_blackhole_bfloat16(map[cell * LNS_DESCRIPTOR_SIZE + i]);
    }
}

/* ---- Times --------------------------------------------------------------------------------------- */

static void flush(void) {
#if defined(__x86_64__)
    for (size_t i = 0; i < host.size; i += FLUSHED)
        __builtin_ia32_clflush((const char *)host.data + i);
#endif
}

typedef struct bench {
    lns_blackhole_network *network;
    lns_thread_pool *pool;
    uint8_t *frame;
    lns_bh_keypoint *keypoints;
    lns_scored_pixel *found;
    float *descriptors;
    size_t found_count, count;
} bench;

static void run(bench *b, int cold, double *times) {
    const lns_blackhole_rules rules = {4, 0.005F, 4};
    lns_selection selection;
    if (cold)
        flush();
    const double start = lns_clock_ms();
    check(lns_blackhole_network_detect(b->network, b->frame, &rules, 1, NULL, b->keypoints, &b->found_count));
    const double detected = lns_clock_ms();
    for (size_t i = 0; i < b->found_count; i++) {
        b->found[i].pixel = b->keypoints[i].pixel;
        memcpy(&b->found[i].score, &b->keypoints[i].score, sizeof b->found[i].score);
    }
    check(lns_order_keypoints(b->found, b->found_count, KEYPOINTS, &selection));
    const double ordered = lns_clock_ms();
    lns_sample_blocks(b->pool, lns_blackhole_network_cells(b->network), selection.pixels, selection.count,
                      b->descriptors);
    const double sampled = lns_clock_ms();
    b->count = selection.count;
    lns_selection_free(&selection);
    times[0] = detected - start - waited_ms;
    times[1] = ordered - detected;
    times[2] = sampled - ordered;
    times[3] = sampled - start - waited_ms;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(bench *b, int cold, int rounds, double *medians) {
    double *times = room((size_t)rounds * PARTS * sizeof *times), one[PARTS];
    for (int i = -WARM_UP; i < rounds; i++) {
        run(b, cold, one);
        for (int k = 0; k < PARTS && i >= 0; k++)
            times[k * rounds + i] = one[k] * 1e3;
    }
    for (int k = 0; k < PARTS; k++) {
        qsort(times + k * rounds, (size_t)rounds, sizeof *times, compare);
        medians[k] = times[k * rounds + rounds / 2];
    }
    lns_aligned_free(times);
}

/* The frame, its keypoints and its map, as the CPU finds them. */
static void use_photo(const char *weights, const char *path, float threshold, bench *b, lns_blackhole_grid grid) {
    const lns_selection_rules all = {-1, threshold, 4, 4};
    float *scores = room(LNS_FRAME_PIXELS * sizeof *scores);
    float *map = room((size_t)LNS_CELLS * LNS_DESCRIPTOR_SIZE * sizeof *map);
    lns_superpoint_options options;
    lns_superpoint *model;
    lns_plane *plane, *small;
    lns_selection found;
    lns_superpoint_options_init(&options);
    options.weights = weights;
    check(lns_superpoint_open(&options, &model));
    check(lns_plane_read(path, NULL, &plane));
    check(lns_plane_resize(plane, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT, &small));
    for (size_t y = 0; y < LNS_NETWORK_HEIGHT; y++)
        memcpy(b->frame + y * LNS_NETWORK_WIDTH, small->data + y * small->stride, LNS_NETWORK_WIDTH);
    check(lns_superpoint_forward(model, b->frame, scores, map));
    check(lns_select_keypoints(scores, &all, &found));
    leave_keypoints(&found, grid);
    leave_cells(map, grid);
    lns_selection_free(&found);
    lns_plane_close(&small);
    lns_plane_close(&plane);
    lns_superpoint_close(&model);
    lns_aligned_free(map);
    lns_aligned_free(scores);
}

int main(int argc, char **argv) {
    const lns_blackhole_grid grid = {LNS_BLACKHOLE_COLUMNS, LNS_BLACKHOLE_ROWS};
    const int rounds = argc > 3 ? atoi(argv[3]) : 101;
    const int threads = argc > 5 ? atoi(argv[5]) : 1;
    if (argc < 3 || rounds < 1 || threads < 1) {
        fprintf(stderr, "usage: blackhole_host WEIGHTS IMAGE [ROUNDS [THRESHOLD [THREADS]]]\n");
        return 2;
    }
    lns_blackhole_transport none = {&operations, LNS_BLACKHOLE_COLUMNS};
    lns_weights_location *location;
    lns_superpoint_weights *weights;
    bench b = {
        .frame = room(LNS_FRAME_PIXELS),
        .keypoints = room(LNS_FRAME_PIXELS * sizeof *b.keypoints),
        .found = room(LNS_FRAME_PIXELS * sizeof *b.found),
        .descriptors = room((size_t)KEYPOINTS * LNS_DESCRIPTOR_SIZE * sizeof *b.descriptors),
    };
    check(lns_weights_locate(argv[1], &location));
    check(lns_superpoint_weights_load(location, &weights));
    check(lns_thread_pool_create(threads, &b.pool));
    check(lns_blackhole_network_open(&none, weights, grid, &b.network));
    use_photo(argv[1], argv[2], argc > 4 ? (float)atof(argv[4]) : 0.005F, &b, grid);
    double warm[PARTS], cold[PARTS];
    measure(&b, 0, rounds, warm);
    measure(&b, 1, rounds, cold);
    printf("%zu keypoints, %zu of them kept, %s, %d threads\n%-24s%10s%10s\n", b.found_count, b.count, lns_cpu_path(),
           threads, "us", "cached", "flushed");
    for (int k = 0; k < PARTS; k++)
        printf("%-24s%10.1f%10.1f\n", names[k], warm[k], cold[k]);
    lns_blackhole_network_close(&b.network);
    lns_thread_pool_destroy(&b.pool);
    lns_superpoint_weights_close(&weights);
    lns_weights_location_close(&location);
    lns_aligned_free(b.frame);
    lns_aligned_free(b.keypoints);
    lns_aligned_free(b.found);
    lns_aligned_free(b.descriptors);
    return 0;
}
