/* SPDX-License-Identifier: Apache-2.0 */
/* A Blackhole card, or the simulator, as a backend. The network runs on the card, and suppression for the radii that it
 * knows; ordering, the limit of keypoints and sampling of descriptors are the host's. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "blackhole/device.h"
#include "blackhole/network.h"
#include "superpoint/backend.h"

enum { MOST_THREADS = 4 };

typedef struct blackhole_backend {
    lns_backend base;
    lns_blackhole_transport *transport;
    lns_blackhole_network *network;
    pthread_mutex_t lock; /* the card computes one frame at a time; for all below */
    pid_t process;
    lns_thread_pool *pool;      /* for sampling */
    float *scores;              /* of a frame */
    lns_bh_keypoint *keypoints; /* room for all pixels, as for `found` */
    lns_scored_pixel *found;
    char device[32];
} blackhole_backend;

/* ---- One frame at a time ------------------------------------------------------------------------ */

/* The windows and the lock of the card belong to the process that opened it. */
static lns_status begin(blackhole_backend *card) {
    if (getpid() != card->process)
        return lns_fail(LNS_ERROR_UNSUPPORTED,
                        "a model on a card cannot be used in a child of the process that opened it");
    pthread_mutex_lock(&card->lock);
    if (!atomic_load(&card->base.has_failed))
        return LNS_OK;
    pthread_mutex_unlock(&card->lock);
    return lns_fail(LNS_ERROR_SYSTEM, "%s failed before; open the model again", card->base.device);
}

static void end(blackhole_backend *card) {
    pthread_mutex_unlock(&card->lock);
}

/* ---- Detecting ---------------------------------------------------------------------------------- */

static int card_suppresses(const lns_selection_rules *rules) {
    return rules->nms_radius >= 1 && rules->nms_radius <= LNS_BH_LARGEST_RADIUS;
}

/* Scores, or, when the card suppresses, `count` keypoints. */
static lns_status run(blackhole_backend *card, const uint8_t *frame, const lns_selection_rules *rules, int with_cells,
                      size_t *count) {
    const lns_blackhole_rules asked = {
        .radius = (uint32_t)rules->nms_radius, .threshold = rules->threshold, .border = (uint32_t)rules->border};
    const lns_status status =
        card_suppresses(rules)
            ? lns_blackhole_network_detect(card->network, frame, &asked, with_cells, NULL, card->keypoints, count)
            : lns_blackhole_network_detect(card->network, frame, NULL, with_cells, card->scores, NULL, NULL);
    atomic_store(&card->base.has_failed, status != LNS_OK);
    return status;
}

static lns_status order(blackhole_backend *card, size_t count, int32_t max_keypoints, lns_selection *selection) {
    for (size_t i = 0; i < count; i++) {
        card->found[i].pixel = card->keypoints[i].pixel;
        memcpy(&card->found[i].score, &card->keypoints[i].score, sizeof card->found[i].score);
    }
    return lns_order_keypoints(card->found, count, max_keypoints, selection);
}

/* From the map as the card left it: of 4,800 cells a photo's keypoints lie by some 2,000. */
static lns_status sample(blackhole_backend *card, lns_backend_result *result) {
    const lns_status status = lns_backend_make_room(result);
    if (status == LNS_OK)
        lns_sample_blocks(card->pool, lns_blackhole_network_cells(card->network), result->selection.pixels,
                          result->selection.count, result->descriptors);
    return status;
}

static lns_status detect_alone(blackhole_backend *card, const uint8_t *frame, const lns_selection_rules *rules,
                               int with_descriptors, lns_backend_result *result) {
    size_t count = 0;
    const double start = lns_clock_ms();
    lns_status status = run(card, frame, rules, with_descriptors, &count);
    const double middle = lns_clock_ms();
    if (status != LNS_OK)
        return status;
    result->device_nms = card_suppresses(rules);
    status = result->device_nms ? order(card, count, rules->max_keypoints, &result->selection)
                                : lns_select_keypoints(card->scores, rules, &result->selection);
    if (status == LNS_OK && with_descriptors)
        status = sample(card, result);
    result->forward_ms = middle - start;
    result->postprocess_ms = lns_clock_ms() - middle;
    return status;
}

static lns_status detect(lns_backend *backend, const uint8_t *frame, const lns_selection_rules *rules,
                         int with_descriptors, lns_backend_result *result) {
    blackhole_backend *card = (blackhole_backend *)backend;
    memset(result, 0, sizeof *result);
    lns_status status = begin(card);
    if (status != LNS_OK)
        return status;
    status = detect_alone(card, frame, rules, with_descriptors, result);
    end(card);
    if (status != LNS_OK)
        lns_backend_result_free(result);
    return status;
}

/* ---- The other operations ----------------------------------------------------------------------- */

static lns_status forward(lns_backend *backend, const uint8_t *frame, float *scores, float *descriptors) {
    blackhole_backend *card = (blackhole_backend *)backend;
    lns_status status = begin(card);
    if (status != LNS_OK)
        return status;
    status = lns_blackhole_network_run(card->network, frame, scores, descriptors);
    atomic_store(&card->base.has_failed, status != LNS_OK);
    end(card);
    return status;
}

/* The card was made ready when it was opened; the memory of the scores has yet to be fetched. */
static lns_status prepare(lns_backend *backend) {
    blackhole_backend *card = (blackhole_backend *)backend;
    const lns_status status = begin(card);
    if (status != LNS_OK)
        return status;
    memset(card->scores, 0, LNS_FRAME_PIXELS * sizeof *card->scores);
    end(card);
    return LNS_OK;
}

/* The card says nothing about its layers. */
static lns_status profile(lns_backend *backend, const uint8_t *frame, lns_step_time *steps, size_t *count) {
    blackhole_backend *card = (blackhole_backend *)backend;
    const lns_selection_rules scores_alone = {0};
    size_t found;
    lns_status status = begin(card);
    if (status != LNS_OK)
        return status;
    const double start = lns_clock_ms();
    status = run(card, frame, &scores_alone, 1, &found);
    steps[0] = (lns_step_time){.name = "card", .ms = lns_clock_ms() - start};
    *count = 1;
    end(card);
    return status;
}

static lns_status peak(lns_backend *backend, double *gflops) {
    (void)gflops;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "%s: the peak of a card is not measured", backend->device);
}

/* A child leaves the card, which is its parent's, alone. */
static void close_backend(lns_backend *backend) {
    blackhole_backend *card = (blackhole_backend *)backend;
    if (getpid() == card->process) {
        lns_blackhole_network_close(&card->network);
        lns_blackhole_close(&card->transport);
    }
    lns_thread_pool_destroy(&card->pool);
    pthread_mutex_destroy(&card->lock);
    lns_free(card->scores);
    lns_free(card->keypoints);
    lns_free(card->found);
    lns_free(card);
}

static const lns_backend_operations operations = {.name = "blackhole",
                                                  .detect = detect,
                                                  .prepare = prepare,
                                                  .forward = forward,
                                                  .profile = profile,
                                                  .peak = peak,
                                                  .close = close_backend};

/* ---- Opening ------------------------------------------------------------------------------------ */

static lns_status open_card(blackhole_backend *card, const lns_superpoint_weights *weights, int device_id) {
    const lns_blackhole_grid grid = {LNS_NETWORK_HEIGHT / LNS_BLACKHOLE_BLOCK_HEIGHT,
                                     LNS_NETWORK_WIDTH / LNS_BLACKHOLE_BLOCK_WIDTH};
    int number;
    lns_status status = lns_blackhole_choose_device(device_id, &number);
    if (status != LNS_OK)
        return status;
    snprintf(card->device, sizeof card->device, "/dev/tenstorrent/%d", number);
    card->base.device = lns_blackhole_is_simulated() ? "simulator" : card->device;
    status = lns_blackhole_open(&lns_kmd_linux, number, &card->transport);
    return status == LNS_OK ? lns_blackhole_network_open(card->transport, weights, grid, &card->network) : status;
}

static lns_status allocate(blackhole_backend *card) {
    card->scores = lns_alloc_array(LNS_FRAME_PIXELS, sizeof *card->scores);
    card->keypoints = lns_alloc_array(LNS_FRAME_PIXELS, sizeof *card->keypoints);
    card->found = lns_alloc_array(LNS_FRAME_PIXELS, sizeof *card->found);
    if (card->scores == NULL || card->keypoints == NULL || card->found == NULL)
        return lns_fail_memory(LNS_FRAME_PIXELS * sizeof *card->scores);
    return LNS_OK;
}

/* Without a wish a few threads: sampling is short and bound by memory. */
static int choose_threads(int wanted) {
    const int cpus = lns_cpu_count();
    return wanted > 0 ? wanted : cpus < MOST_THREADS ? cpus : MOST_THREADS;
}

lns_status lns_blackhole_backend_open(const lns_superpoint_weights *weights, const lns_superpoint_options *options,
                                      lns_backend **backend) {
    *backend = NULL;
    blackhole_backend *card = lns_calloc(1, sizeof *card);
    if (card == NULL)
        return lns_fail_memory(sizeof *card);
    pthread_mutex_init(&card->lock, NULL);
    card->process = getpid();
    card->base.operations = &operations;
    card->base.cpu_path = "";
    card->base.precision = "bf16";
    card->base.threads = choose_threads(options->threads);
    lns_status status = allocate(card);
    if (status == LNS_OK)
        status = lns_thread_pool_create(card->base.threads, &card->pool);
    if (status == LNS_OK)
        status = open_card(card, weights, options->device_id);
    if (status != LNS_OK) {
        close_backend(&card->base);
        return status;
    }
    *backend = &card->base;
    return LNS_OK;
}
