/* SPDX-License-Identifier: Apache-2.0 */
/* The backend over a network that is made up: what it asks of the card for each radius, that keypoints are those of the
 * CPU for the same scores, and what it does when the card fails. The functions of blackhole/device.h and
 * blackhole/network.h are defined here, so that those of the library are not linked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include <lensing/lensing.h>

#include "base/error.h"
#include "base/memory.h"
#include "blackhole/device.h"
#include "blackhole/layer.h"
#include "blackhole/network.h"
#include "superpoint/postprocess.h"
#include "synthetic_file.h"
#include "synthetic_weights.h"

#define PIXELS LNS_FRAME_PIXELS
#define MAP ((size_t)LNS_CELLS_X * LNS_CELLS_Y * LNS_DESCRIPTOR_SIZE)

/* ---- The card ----------------------------------------------------------------------------------- */

static struct {
    int opened_device, is_simulated;
    int open_cards, open_networks;
    lns_status open_status, network_status, run_status;
    int runs, detections;
    const float *scores; /* that were asked for */
    int with_cells;      /* whether descriptors were */
    lns_blackhole_grid grid;
} card;

static float scores[PIXELS], descriptors[MAP];
static uint16_t cells[MAP]; /* the same as the card leaves them */
static uint8_t frame[PIXELS];
static lns_blackhole_transport transport;
struct lns_blackhole_network {
    int nothing;
} network;

lns_status lns_blackhole_choose_device(int device_id, int *chosen) {
    *chosen = device_id == -1 ? 5 : device_id;
    return LNS_OK;
}

int lns_blackhole_is_simulated(void) {
    return card.is_simulated;
}

lns_status lns_blackhole_open(const lns_kmd_system *system, int device_id, lns_blackhole_transport **opened) {
    assert_ptr_equal(system, &lns_kmd_linux);
    *opened = NULL;
    card.opened_device = device_id;
    if (card.open_status != LNS_OK)
        return lns_fail(card.open_status, "no card");
    card.open_cards++;
    *opened = &transport;
    return LNS_OK;
}

void lns_blackhole_close(lns_blackhole_transport **opened) {
    card.open_cards -= *opened != NULL;
    *opened = NULL;
}

lns_status lns_blackhole_network_open(lns_blackhole_transport *used, const lns_superpoint_weights *weights,
                                      lns_blackhole_grid grid, lns_blackhole_network **opened) {
    assert_ptr_equal(used, &transport);
    assert_non_null(weights);
    card.grid = grid;
    *opened = NULL;
    if (card.network_status != LNS_OK)
        return lns_fail(card.network_status, "no network");
    card.open_networks++;
    *opened = &network;
    return LNS_OK;
}

/* A card is given up after its network. */
void lns_blackhole_network_close(lns_blackhole_network **opened) {
    assert_true(*opened == NULL || card.open_cards == 1);
    card.open_networks -= *opened != NULL;
    *opened = NULL;
}

static void give(float *wanted_scores, int with_cells) {
    card.scores = wanted_scores;
    card.with_cells = with_cells;
    if (wanted_scores != NULL)
        memcpy(wanted_scores, scores, sizeof scores);
}

lns_status lns_blackhole_network_run(lns_blackhole_network *used, const uint8_t *given, float *wanted_scores,
                                     float *wanted_descriptors) {
    assert_ptr_equal(used, &network);
    assert_memory_equal(given, frame, sizeof frame);
    card.runs++;
    give(wanted_scores, wanted_descriptors != NULL);
    return card.run_status == LNS_OK ? LNS_OK : lns_fail(card.run_status, "a tile is not done");
}

const uint16_t *lns_blackhole_network_cells(const lns_blackhole_network *used) {
    assert_ptr_equal(used, &network);
    assert_true(card.with_cells);
    return cells;
}

/* In the order of three threads of each tile, or some other that is not the host's. */
lns_status lns_blackhole_network_detect(lns_blackhole_network *used, const uint8_t *given,
                                        const lns_blackhole_rules *rules, int with_cells, float *wanted_scores,
                                        lns_bh_keypoint *keypoints, size_t *count) {
    assert_ptr_equal(used, &network);
    assert_memory_equal(given, frame, sizeof frame);
    give(wanted_scores, with_cells);
    if (rules == NULL) {
        assert_true(keypoints == NULL && count == NULL);
        card.runs++;
        return card.run_status == LNS_OK ? LNS_OK : lns_fail(card.run_status, "a tile is not done");
    }
    assert_in_range(rules->radius, 1, 8);
    card.detections++;
    lns_selection found;
    const lns_selection_rules all = {-1, rules->threshold, (int32_t)rules->radius, (int32_t)rules->border};
    const lns_status status = lns_select_keypoints(scores, &all, &found);
    if (status != LNS_OK)
        return status;
    *count = found.count;
    for (size_t i = 0; i < found.count; i++) {
        const size_t to = found.count - 1 - i;
        keypoints[to].pixel = found.pixels[i];
        memcpy(&keypoints[to].score, &found.scores[i], sizeof(float));
    }
    lns_selection_free(&found);
    return card.run_status == LNS_OK ? LNS_OK : lns_fail(card.run_status, "a tile is not done");
}

/* ---- Helpers ------------------------------------------------------------------------------------ */

static int set_up(void **state) {
    (void)state;
    memset(&card, 0, sizeof card);
    return 0;
}

static lns_status try_open(int device_id, lns_superpoint **model) {
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    assert_int_equal(options.device_id, -1);
    options.weights = synthetic_file_path;
    options.backend = "blackhole";
    options.device_id = device_id;
    options.threads = 3;
    return lns_superpoint_open(&options, model);
}

static lns_superpoint *open_model(void) {
    lns_superpoint *model = NULL;
    if (try_open(-1, &model) != LNS_OK)
        fail_msg("%s", lns_error_message());
    return model;
}

static lns_status try_detect(lns_superpoint *model, int radius, int with_descriptors, lns_features **features) {
    lns_detect_options options;
    lns_detect_options_init(&options);
    options.nms_radius = radius;
    options.return_descriptors = with_descriptors;
    return lns_superpoint_detect_pixels(model, frame, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT, 0, LNS_PIXEL_GRAY8,
                                        &options, features);
}

static lns_features *detect(lns_superpoint *model, int radius, int with_descriptors) {
    lns_features *features = NULL;
    if (try_detect(model, radius, with_descriptors, &features) != LNS_OK)
        fail_msg("%s", lns_error_message());
    return features;
}

/* ---- Tests -------------------------------------------------------------------------------------- */

static float farthest(const float *a, const float *b, size_t count) {
    float most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(a[i] - b[i]));
    return most;
}

/* All kernel sets give the descriptors of the float32 map but for roundings; a cell that is another is noticed, and by
 * the keypoints beside it only. */
static void blocks_are_sampled_like_the_map(void **state) {
    (void)state;
    static const char *const levels[] = {"c", "avx2", "avx512"};
    enum { COUNT = 500, NUMBERS = COUNT * LNS_DESCRIPTOR_SIZE };
    static float expected[NUMBERS], got[NUMBERS], shared[NUMBERS];
    uint32_t pixels[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        pixels[i] = (uint32_t)(synthetic_number(9, i) >> 32) % PIXELS;
    pixels[0] = 0;
    pixels[1] = PIXELS - 1;
    pixels[2] = (999 / LNS_CELLS_X * 8 + 3) * LNS_NETWORK_WIDTH + 999 % LNS_CELLS_X * 8 + 3; /* the cell of zeros */
    pixels[3] = 244 * LNS_NETWORK_WIDTH + 324;                                               /* the victim */
    lns_sample_descriptors(descriptors, pixels, COUNT, expected);
    lns_thread_pool *alone, *four;
    assert_int_equal(lns_thread_pool_create(1, &alone), LNS_OK);
    assert_int_equal(lns_thread_pool_create(4, &four), LNS_OK);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        setenv("LENSING_CPU", levels[i], 1);
        lns_sample_blocks(alone, cells, pixels, COUNT, got);
        assert_true(farthest(got, expected, NUMBERS) < 1e-6F);
        lns_sample_blocks(four, cells, pixels, COUNT, shared);
        assert_memory_equal(shared, got, sizeof got);
    }
    unsetenv("LENSING_CPU");
    uint16_t *number = &cells[(30 / 5 * (LNS_CELLS_X / 8) + 40 / 8) * 40 * LNS_DESCRIPTOR_SIZE + 7 * 640];
    const uint16_t kept = *number;
    *number = lns_blackhole_bfloat16(3);
    lns_sample_blocks(alone, cells, pixels, COUNT, got);
    *number = kept;
    assert_true(farthest(got + 3 * LNS_DESCRIPTOR_SIZE, expected + 3 * LNS_DESCRIPTOR_SIZE, LNS_DESCRIPTOR_SIZE) >
                0.01F);
    assert_true(farthest(got, expected, 3 * LNS_DESCRIPTOR_SIZE) < 1e-6F);
    lns_thread_pool_destroy(&alone);
    lns_thread_pool_destroy(&four);
}

static void keypoints_are_those_of_the_cpu(void **state) {
    (void)state;
    lns_superpoint *model = open_model();
    assert_int_equal(card.grid.down, 12);
    assert_int_equal(card.grid.across, 10);
    float *sampled = malloc(1024 * LNS_DESCRIPTOR_SIZE * sizeof *sampled);
    for (int radius = 0; radius <= 32; radius++) {
        const int on_card = radius >= 1 && radius <= 8;
        const lns_selection_rules rules = {1024, 0.005F, radius, 4};
        lns_selection expected;
        assert_int_equal(lns_select_keypoints(scores, &rules, &expected), LNS_OK);
        card.runs = card.detections = 0;
        lns_features *features = detect(model, radius, 1);
        assert_int_equal(card.detections, on_card);
        assert_int_equal(card.runs, !on_card);
        assert_int_equal(card.scores != NULL, !on_card);
        assert_int_equal(features->device_nms, on_card);
        assert_int_equal(features->count, expected.count);
        assert_true(expected.count > 0);
        assert_memory_equal(features->scores, expected.scores, expected.count * sizeof(float));
        for (size_t i = 0; i < expected.count; i++) {
            const float x = features->network_keypoints[2 * i], y = features->network_keypoints[2 * i + 1];
            assert_int_equal((uint32_t)y * LNS_NETWORK_WIDTH + (uint32_t)x, expected.pixels[i]);
        }
        lns_sample_descriptors(descriptors, expected.pixels, expected.count, sampled);
        assert_true(farthest(features->descriptors, sampled, expected.count * LNS_DESCRIPTOR_SIZE) < 1e-6F);
        lns_selection_free(&expected);
        lns_features_close(&features);
    }
    free(sampled);
    lns_superpoint_close(&model);
    assert_int_equal(card.open_cards + card.open_networks, 0);
}

static void descriptors_are_asked_for_when_wanted(void **state) {
    (void)state;
    lns_superpoint *model = open_model();
    lns_features *features = detect(model, 4, 0);
    assert_false(card.with_cells);
    assert_null(features->descriptors);
    lns_features_close(&features);
    features = detect(model, 0, 0);
    assert_false(card.with_cells);
    lns_features_close(&features);
    lns_superpoint_close(&model);
}

static void says_where_suppression_ran(void **state) {
    (void)state;
    lns_superpoint *model = open_model();
    lns_json_options options;
    lns_json_options_init(&options);
    options.serving_path = 1;
    for (int radius = 8; radius <= 9; radius++) {
        lns_features *features = detect(model, radius, 0);
        char *text = NULL;
        assert_int_equal(lns_features_to_json(features, &options, &text, NULL), LNS_OK);
        assert_non_null(strstr(text, radius == 8 ? "\"device_nms\":true" : "\"device_nms\":false"));
        lns_buffer_free(text);
        lns_features_close(&features);
    }
    lns_superpoint_close(&model);
}

static void tells_about_itself(void **state) {
    (void)state;
    lns_superpoint_info info;
    lns_superpoint *model = open_model();
    assert_int_equal(lns_superpoint_describe(model, &info, sizeof info), LNS_OK);
    assert_string_equal(info.backend, "blackhole");
    assert_string_equal(info.device, "/dev/tenstorrent/5"); /* what the environment says here */
    assert_string_equal(info.precision, "bf16");
    assert_string_equal(info.cpu_path, "");
    assert_int_equal(info.threads, 3);
    lns_superpoint_close(&model);
    assert_int_equal(try_open(2, &model), LNS_OK);
    assert_int_equal(card.opened_device, 2);
    lns_superpoint_close(&model);
    card.is_simulated = 1;
    model = open_model();
    assert_int_equal(lns_superpoint_describe(model, &info, sizeof info), LNS_OK);
    assert_string_equal(info.device, "simulator");
    lns_superpoint_close(&model);
}

static void runs_the_network_alone(void **state) {
    (void)state;
    float *map = malloc(PIXELS * sizeof *map);
    lns_step_time steps[LNS_STEPS_LIMIT];
    size_t count = 0;
    double gflops;
    lns_superpoint *model = open_model();
    assert_int_equal(lns_superpoint_prepare(model), LNS_OK);
    assert_int_equal(card.detections, 0);
    assert_int_equal(lns_superpoint_forward(model, frame, map, NULL), LNS_OK);
    assert_memory_equal(map, scores, sizeof scores);
    assert_false(card.with_cells);
    assert_int_equal(lns_superpoint_profile(model, frame, steps, &count), LNS_OK);
    assert_int_equal(count, 1);
    assert_string_equal(steps[0].name, "card");
    assert_true(card.with_cells);
    assert_int_equal(lns_superpoint_peak(model, &gflops), LNS_ERROR_UNSUPPORTED);
    lns_superpoint_close(&model);
    free(map);
}

static void stays_broken_after_the_card_failed(void **state) {
    (void)state;
    lns_features *features = (void *)&features;
    lns_superpoint_info info;
    lns_superpoint *model = open_model();
    assert_int_equal(lns_superpoint_describe(model, &info, sizeof info), LNS_OK);
    assert_int_equal(info.has_failed, 0);
    card.run_status = LNS_ERROR_SYSTEM;
    assert_int_equal(try_detect(model, 4, 1, &features), LNS_ERROR_SYSTEM);
    assert_null(features);
    assert_string_equal(lns_error_message(), "a tile is not done");
    assert_int_equal(lns_superpoint_describe(model, &info, sizeof info), LNS_OK);
    assert_int_equal(info.has_failed, 1);
    card.run_status = LNS_OK;
    assert_int_equal(try_detect(model, 4, 1, &features), LNS_ERROR_SYSTEM);
    assert_string_equal(lns_error_message(), "/dev/tenstorrent/5 failed before; open the model again");
    assert_int_equal(lns_superpoint_prepare(model), LNS_ERROR_SYSTEM);
    assert_int_equal(card.detections, 1);
    lns_superpoint_close(&model);
    assert_int_equal(card.open_cards + card.open_networks, 0);
    model = open_model();
    features = detect(model, 4, 1);
    lns_features_close(&features);
    lns_superpoint_close(&model);
}

static void gives_everything_back_when_it_cannot_open(void **state) {
    (void)state;
    lns_superpoint *model = (void *)&model;
    card.open_status = LNS_ERROR_UNSUPPORTED;
    assert_int_equal(try_open(0, &model), LNS_ERROR_UNSUPPORTED);
    assert_null(model);
    assert_string_equal(lns_error_message(), "no card");
    card.open_status = LNS_OK;
    card.network_status = LNS_ERROR_SYSTEM;
    assert_int_equal(try_open(0, &model), LNS_ERROR_SYSTEM);
    assert_string_equal(lns_error_message(), "no network");
    assert_int_equal(card.open_cards + card.open_networks, 0);
    assert_int_equal(try_open(0, &model), LNS_ERROR_SYSTEM);
}

static void survives_missing_memory(void **state) {
    (void)state;
    lns_status status = LNS_ERROR_OUT_OF_MEMORY;
    for (long i = 0; status != LNS_OK; i++) {
        lns_superpoint *model = NULL;
        lns_features *features = NULL;
        assert_true(i < 1000);
        lns_alloc_fail_after(i);
        status = try_open(0, &model);
        if (status == LNS_OK)
            status = try_detect(model, 4, 1, &features);
        lns_alloc_fail_after(-1);
        assert_true(status == LNS_OK || status == LNS_ERROR_OUT_OF_MEMORY);
        lns_features_close(&features);
        lns_superpoint_close(&model);
        assert_int_equal(card.open_cards + card.open_networks, 0);
    }
}

/* The card is the parent's. */
static void is_of_no_use_to_a_child(void **state) {
    (void)state;
    lns_superpoint *model = open_model();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        lns_features *features = NULL;
        const int refused = try_detect(model, 4, 1, &features) == LNS_ERROR_UNSUPPORTED && features == NULL &&
                            strstr(lns_error_message(), "child") != NULL;
        lns_superpoint_close(&model);
        _exit(refused && card.open_cards == 1 && card.open_networks == 1 && card.detections == 0 ? 0 : 1);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    lns_features *features = detect(model, 4, 1);
    lns_features_close(&features);
    lns_superpoint_close(&model);
}

/* A cell's numbers, in blocks of 8 x 5 cells and planes of 16 channels; and scaled to length 1, but for one of zeros.
 */
static void make_cell(size_t cell) {
    const size_t x = cell % LNS_CELLS_X, y = cell / LNS_CELLS_X;
    uint16_t *block = cells + (y / 5 * (LNS_CELLS_X / 8) + x / 8) * 40 * LNS_DESCRIPTOR_SIZE;
    float *numbers = descriptors + cell * LNS_DESCRIPTOR_SIZE, sums[16] = {0}, sum = 0;
    for (size_t i = 0; i < LNS_DESCRIPTOR_SIZE; i++) {
        const float value = cell == 999 ? 0 : (float)(synthetic_number(8, cell * 256 + i) >> 44) / 1048576.0F - 0.5F;
        uint16_t *half = &block[i / 16 * 640 + (y % 5 * 8 + x % 8) * 16 + i % 16];
        *half = lns_blackhole_bfloat16(value);
        numbers[i] = lns_blackhole_float32(*half);
        sums[i % 16] += numbers[i] * numbers[i];
    }
    for (size_t i = 0; i < 16; i++)
        sum += sums[i];
    const float scale = 1 / fmaxf(sqrtf(sum), 1e-12F);
    for (size_t i = 0; i < LNS_DESCRIPTOR_SIZE; i++)
        numbers[i] *= scale;
}

/* Peaks of different heights, some of them equal and side by side. */
static void make_maps(void) {
    for (size_t i = 0; i < PIXELS; i++) {
        const uint32_t number = (uint32_t)(synthetic_number(7, i) >> 40);
        scores[i] = number % 50 == 0 ? 0.005F + (float)(number % 4096) / 4096.0F * 0.9F : 0.001F;
        if (i % 9973 == 0 && i > 0)
            scores[i] = scores[i - 1] = 0.95F;
    }
    for (size_t cell = 0; cell < MAP / LNS_DESCRIPTOR_SIZE; cell++)
        make_cell(cell);
    synthetic_frame(frame);
}

static int set_up_group(void **state) {
    make_maps();
    return synthetic_file_set_up(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(blocks_are_sampled_like_the_map, set_up),
        cmocka_unit_test_setup(keypoints_are_those_of_the_cpu, set_up),
        cmocka_unit_test_setup(descriptors_are_asked_for_when_wanted, set_up),
        cmocka_unit_test_setup(says_where_suppression_ran, set_up),
        cmocka_unit_test_setup(tells_about_itself, set_up),
        cmocka_unit_test_setup(runs_the_network_alone, set_up),
        cmocka_unit_test_setup(stays_broken_after_the_card_failed, set_up),
        cmocka_unit_test_setup(gives_everything_back_when_it_cannot_open, set_up),
        cmocka_unit_test_setup(survives_missing_memory, set_up),
        cmocka_unit_test_setup(is_of_no_use_to_a_child, set_up),
    };
    return cmocka_run_group_tests(tests, set_up_group, synthetic_file_tear_down);
}
