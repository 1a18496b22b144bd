/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of a selftest, which is here because it needs the card and the CPU: the whole network on a picture that
 * is made up, on both. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "blackhole/device.h"
#include "blackhole/network.h"
#include "blackhole/selftest.h"
#include "superpoint/backend.h"

#define MAP_NUMBERS ((size_t)LNS_CELLS * LNS_DESCRIPTOR_SIZE)

/* What the card must reach; see docs/blackhole.md, Accuracy. */
#define SCORE_CORRELATION 0.997
#define DESCRIPTOR_CORRELATION 0.999

/* So many cells from the side where a smaller grid cuts the picture off, what lies beyond is not seen: 3 of the heads
 * and of 4a and 4b, and 14 pixels of the layers before. */
#define UNSEEN_CELLS 5

#define REPEATS 100 /* on a card; the simulator takes minutes for one */

typedef struct trial {
    lns_blackhole_grid grid;
    int width, height;  /* of what the card sees, which is the upper left of the picture, in pixels */
    int seen_x, seen_y; /* cells that are compared */
    lns_superpoint_weights *weights;
    lns_blackhole_network *network;
    lns_blackhole_rules rules;
    uint8_t picture[LNS_FRAME_PIXELS], frame[LNS_FRAME_PIXELS];
    float cpu_scores[LNS_FRAME_PIXELS], scores[LNS_FRAME_PIXELS], map[LNS_FRAME_PIXELS];
    float cpu_descriptors[MAP_NUMBERS], descriptors[MAP_NUMBERS];
    lns_bh_keypoint keypoints[LNS_FRAME_PIXELS];
    lns_scored_pixel found[LNS_FRAME_PIXELS];
    size_t count; /* keypoints of the card */
    double cpu_ms, ready_ms, request_ms, score_correlation, descriptor_correlation;
} trial;

/* ---- The picture -------------------------------------------------------------------------------- */

static uint32_t random_below(uint64_t *state, uint32_t limit) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 32) * limit >> 32);
}

/* Parallelograms of even gray on a shade, with noise on all: corners, edges and even areas. */
static void draw(uint8_t *picture) {
    uint64_t state = 1;
    for (int y = 0; y < LNS_NETWORK_HEIGHT; y++)
        for (int x = 0; x < LNS_NETWORK_WIDTH; x++)
            picture[y * LNS_NETWORK_WIDTH + x] = (uint8_t)(90 + x / 16 + y / 12);
    for (int i = 0; i < 250; i++) {
        const int left = (int)random_below(&state, LNS_NETWORK_WIDTH);
        const int top = (int)random_below(&state, LNS_NETWORK_HEIGHT);
        const int width = 8 + (int)random_below(&state, 56), height = 8 + (int)random_below(&state, 40);
        const int slope = (int)random_below(&state, 17) - 8; /* eighths of a pixel a row */
        const uint8_t gray = (uint8_t)(16 + random_below(&state, 208));
        for (int y = top; y < top + height && y < LNS_NETWORK_HEIGHT; y++)
            for (int x = left + (y - top) * slope / 8, end = x + width; x < end; x++)
                if (x >= 0 && x < LNS_NETWORK_WIDTH)
                    picture[y * LNS_NETWORK_WIDTH + x] = gray;
    }
    for (int i = 0; i < LNS_FRAME_PIXELS; i++)
        picture[i] = (uint8_t)(picture[i] + random_below(&state, 9));
}

static void cut(trial *t) {
    t->width = t->grid.across * LNS_BLACKHOLE_BLOCK_WIDTH;
    t->height = t->grid.down * LNS_BLACKHOLE_BLOCK_HEIGHT;
    t->seen_x = t->width == LNS_NETWORK_WIDTH ? LNS_CELLS_X : t->width / LNS_CELL - UNSEEN_CELLS;
    t->seen_y = t->height == LNS_NETWORK_HEIGHT ? LNS_CELLS_Y : t->height / LNS_CELL - UNSEEN_CELLS;
    for (int y = 0; y < t->height; y++)
        memcpy(t->frame + y * t->width, t->picture + y * LNS_NETWORK_WIDTH, (size_t)t->width);
}

/* ---- Running ------------------------------------------------------------------------------------ */

static lns_status load(const char *name, lns_superpoint_weights **weights) {
    lns_weights_location *location;
    lns_status status = lns_weights_locate(name, &location);
    if (status == LNS_OK)
        status = lns_superpoint_weights_load(location, weights);
    lns_weights_location_close(&location);
    return status;
}

/* The second of two runs is timed. */
static lns_status run_on_cpu(trial *t) {
    lns_superpoint_options options;
    lns_backend *cpu;
    lns_superpoint_options_init(&options);
    lns_status status = lns_cpu_backend_open(t->weights, &options, &cpu);
    if (status != LNS_OK)
        return status;
    for (int i = 0; i < 2 && status == LNS_OK; i++) {
        const double start = lns_clock_ms();
        status = cpu->operations->forward(cpu, t->picture, t->cpu_scores, t->cpu_descriptors);
        t->cpu_ms = lns_clock_ms() - start;
    }
    cpu->operations->close(cpu);
    return status;
}

/* One request with all that the card can give. */
static lns_status request(trial *t, float *scores, float *descriptors) {
    const lns_status status =
        lns_blackhole_network_detect(t->network, t->frame, &t->rules, 1, scores, t->keypoints, &t->count);
    if (status == LNS_OK)
        lns_blackhole_network_descriptors(t->network, descriptors);
    return status;
}

static lns_status run_on_card(trial *t, lns_blackhole_transport *transport) {
    const double start = lns_clock_ms();
    lns_status status = lns_blackhole_network_open(transport, t->weights, t->grid, &t->network);
    const double ready = lns_clock_ms();
    if (status == LNS_OK)
        status = request(t, t->scores, t->descriptors);
    t->ready_ms = ready - start;
    t->request_ms = lns_clock_ms() - ready;
    return status;
}

/* ---- Comparing ---------------------------------------------------------------------------------- */

typedef struct moments {
    double count, a, b, aa, bb, ab;
} moments;

static void add(moments *m, double a, double b) {
    m->count++;
    m->a += a;
    m->b += b;
    m->aa += a * a;
    m->bb += b * b;
    m->ab += a * b;
}

/* Pearson's; not a number when one side does not vary. */
static double correlation(const moments *m) {
    const double aa = m->aa - m->a * m->a / m->count, bb = m->bb - m->b * m->b / m->count;
    return (m->ab - m->a * m->b / m->count) / sqrt(aa * bb);
}

static lns_status compare_maps(trial *t) {
    moments scores = {0}, descriptors = {0};
    for (int y = 0; y < t->seen_y * LNS_CELL; y++)
        for (int x = 0; x < t->seen_x * LNS_CELL; x++)
            add(&scores, t->scores[y * t->width + x], t->cpu_scores[y * LNS_NETWORK_WIDTH + x]);
    for (int y = 0; y < t->seen_y; y++)
        for (int x = 0; x < t->seen_x; x++)
            for (int i = 0; i < LNS_DESCRIPTOR_SIZE; i++)
                add(&descriptors, t->descriptors[(y * t->width / LNS_CELL + x) * LNS_DESCRIPTOR_SIZE + i],
                    t->cpu_descriptors[(y * LNS_CELLS_X + x) * LNS_DESCRIPTOR_SIZE + i]);
    t->score_correlation = correlation(&scores);
    t->descriptor_correlation = correlation(&descriptors);
    if (t->score_correlation >= SCORE_CORRELATION && t->descriptor_correlation >= DESCRIPTOR_CORRELATION)
        return LNS_OK;
    return lns_fail(LNS_ERROR_SYSTEM,
                    "correlation with the CPU: scores %.5f of at least %.3f, descriptors %.5f of at least %.3f",
                    t->score_correlation, SCORE_CORRELATION, t->descriptor_correlation, DESCRIPTOR_CORRELATION);
}

/* The card's keypoints in the order of the host, their pixels counted as in a whole frame. */
static lns_status order(trial *t, lns_selection *mine) {
    for (size_t i = 0; i < t->count; i++) {
        const uint32_t pixel = t->keypoints[i].pixel, width = (uint32_t)t->width;
        t->found[i].pixel = pixel / width * LNS_NETWORK_WIDTH + pixel % width;
        memcpy(&t->found[i].score, &t->keypoints[i].score, sizeof t->found[i].score);
    }
    return lns_order_keypoints(t->found, t->count, -1, mine);
}

/* Those of the host for the same scores. There is no border, so zeros around a smaller grid change nothing. */
static lns_status compare_keypoints(trial *t) {
    const lns_selection_rules rules = {-1, t->rules.threshold, (int32_t)t->rules.radius, (int32_t)t->rules.border};
    lns_selection mine = {0}, expected = {0};
    for (int y = 0; y < t->height; y++)
        memcpy(t->map + y * LNS_NETWORK_WIDTH, t->scores + y * t->width, (size_t)t->width * sizeof *t->map);
    lns_status status = order(t, &mine);
    if (status == LNS_OK)
        status = lns_select_keypoints(t->map, &rules, &expected);
    if (status == LNS_OK &&
        (mine.count != expected.count || memcmp(mine.pixels, expected.pixels, mine.count * sizeof *mine.pixels) != 0 ||
         memcmp(mine.scores, expected.scores, mine.count * sizeof *mine.scores) != 0))
        status = lns_fail(LNS_ERROR_SYSTEM,
                          "for radius %u the card found %zu keypoints that are not the %zu of the host for the same "
                          "scores",
                          t->rules.radius, mine.count, expected.count);
    lns_selection_free(&mine);
    lns_selection_free(&expected);
    return status;
}

/* ---- Again and again ---------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every radius, and the same maps each time: a card that is warm, or at its power limit, may begin to err. */
static lns_status repeat(trial *t) {
    double times[REPEATS] = {0};
    float *scores = lns_alloc(sizeof t->scores), *descriptors = lns_alloc(sizeof t->descriptors);
    lns_status status = LNS_OK;
    if (scores == NULL || descriptors == NULL)
        status = lns_fail_memory(sizeof t->descriptors);
    for (size_t i = 0; i < REPEATS && status == LNS_OK; i++) {
        t->rules.radius = (uint32_t)(i % LNS_BH_LARGEST_RADIUS + 1);
        const double start = lns_clock_ms();
        status = request(t, scores, descriptors);
        times[i] = lns_clock_ms() - start;
        if (status == LNS_OK && (memcmp(scores, t->scores, sizeof t->scores) != 0 ||
                                 memcmp(descriptors, t->descriptors, sizeof t->descriptors) != 0))
            status =
                lns_fail(LNS_ERROR_SYSTEM, "run %zu gave other bytes than the first one for the same frame", i + 2);
        if (status == LNS_OK)
            status = compare_keypoints(t);
    }
    lns_free(scores);
    lns_free(descriptors);
    qsort(times, REPEATS, sizeof *times, by_value);
    t->request_ms = times[REPEATS / 2];
    return status;
}

/* ---- The step ----------------------------------------------------------------------------------- */

static lns_status take(trial *t, lns_blackhole_selftest *selftest) {
    t->grid = selftest->grid;
    t->rules = (lns_blackhole_rules){.radius = 4, .threshold = 0.005F, .border = 0};
    draw(t->picture);
    cut(t);
    lns_status status = load(selftest->weights, &t->weights);
    if (status == LNS_OK)
        status = run_on_cpu(t);
    if (status == LNS_OK)
        status = run_on_card(t, selftest->transport);
    if (status == LNS_OK)
        status = compare_maps(t);
    if (status == LNS_OK)
        status = compare_keypoints(t);
    if (status == LNS_OK && !lns_blackhole_is_simulated())
        status = repeat(t);
    return status;
}

static void describe(const trial *t, char *detail, size_t size) {
    const int used =
        snprintf(detail, size,
                 "%d x %d pixels, correlation with the CPU: scores %.5f, descriptors %.5f; %zu keypoints, "
                 "those of the host for the same scores; ready after %.0f ms",
                 t->width, t->height, t->score_correlation, t->descriptor_correlation, t->count, t->ready_ms);
    if (used < 0 || (size_t)used >= size)
        return;
    if (lns_blackhole_is_simulated())
        snprintf(detail + used, size - (size_t)used, ", a frame took the simulator %.0f s", t->request_ms * 1e-3);
    else
        snprintf(detail + used, size - (size_t)used,
                 "; %d more runs gave the same bytes, a frame takes %.2f ms with its maps (median), the CPU %.1f ms",
                 REPEATS, t->request_ms, t->cpu_ms);
}

static lns_status run_network(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    trial *t = lns_calloc(1, sizeof *t);
    if (t == NULL)
        return lns_fail_memory(sizeof *t);
    const lns_status status = take(t, selftest);
    describe(t, detail, size);
    lns_blackhole_network_close(&t->network);
    lns_superpoint_weights_close(&t->weights);
    lns_free(t);
    return status;
}

/* Weights that were asked for and are not there are an error of the step; the environment's may be absent. */
static const char *skip_network(const lns_blackhole_selftest *selftest) {
    lns_weights_location *location = NULL;
    if (!selftest->cores_run)
        return "no program runs on the cores";
    if (selftest->weights != NULL || lns_weights_locate(NULL, &location) == LNS_OK) {
        lns_weights_location_close(&location);
        return NULL;
    }
    return lns_error_message();
}

const lns_selftest_entry lns_selftest_network = {
    "network", "does the whole network on the card find what it finds on the CPU?", run_network, 1, skip_network};

lns_status lns_blackhole_selftest_open(const lns_blackhole_selftest_options *options,
                                       lns_blackhole_selftest **selftest) {
    return lns_selftest_open_on(&lns_kmd_linux, options, &lns_selftest_network, selftest);
}
