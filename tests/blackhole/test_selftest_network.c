/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of the selftest as it is on a card, over a network that is made up: its maps are those of the CPU with
 * small errors, and one thing is wrong with one run. The functions of blackhole/device.h and blackhole/network.h are
 * defined here, so that those of the library are not linked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../synthetic_file.h"
#include "../synthetic_weights.h"
#include "base/error.h"
#include "blackhole/device.h"
#include "blackhole/network.h"
#include "blackhole/selftest.h"
#include "superpoint/backend.h"

#define MAP ((size_t)LNS_CELLS * LNS_DESCRIPTOR_SIZE)

/* ---- The card ----------------------------------------------------------------------------------- */

static struct {
    int runs, opened, closed;
    int fails_at, wrong_score_at, wrong_descriptor_at, wrong_keypoint_at; /* the run, from 1 on; 0: never */
    float noise;
    int blurred; /* not 0: descriptors of the next cell */
    uint32_t radii;
} card;

static lns_blackhole_transport transport;
static float scores[LNS_FRAME_PIXELS], descriptors[MAP];
static const lns_superpoint_weights *known_weights;
struct lns_blackhole_network {
    int nothing;
} network;

lns_status lns_blackhole_choose_device(int device_id, int *chosen) {
    *chosen = device_id == -1 ? 0 : device_id;
    return LNS_OK;
}

int lns_blackhole_is_simulated(void) {
    return 0;
}

lns_status lns_blackhole_open(const lns_kmd_system *system, int device_id, lns_blackhole_transport **opened) {
    (void)system;
    (void)device_id;
    *opened = NULL;
    return lns_fail(LNS_ERROR_SYSTEM, "no card");
}

void lns_blackhole_close(lns_blackhole_transport **opened) {
    *opened = NULL;
}

lns_status lns_blackhole_network_open(lns_blackhole_transport *used, const lns_superpoint_weights *weights,
                                      lns_blackhole_grid grid, lns_blackhole_network **opened) {
    assert_ptr_equal(used, &transport);
    assert_int_equal(grid.down * 100 + grid.across, 1210);
    known_weights = weights;
    *opened = &network;
    card.opened++;
    return LNS_OK;
}

void lns_blackhole_network_close(lns_blackhole_network **opened) {
    card.closed += *opened != NULL;
    *opened = NULL;
}

lns_status lns_blackhole_network_run(lns_blackhole_network *used, const uint8_t *frame, float *wanted_scores,
                                     float *wanted_descriptors) {
    (void)used;
    (void)frame;
    (void)wanted_scores;
    (void)wanted_descriptors;
    return lns_fail(LNS_ERROR_SYSTEM, "the step does not ask for this");
}

/* The maps of the CPU, and errors on top. */
static void compute(const uint8_t *frame) {
    lns_superpoint_options options;
    lns_backend *cpu;
    lns_superpoint_options_init(&options);
    assert_int_equal(lns_cpu_backend_open(known_weights, &options, &cpu), LNS_OK);
    assert_int_equal(cpu->operations->forward(cpu, frame, scores, descriptors), LNS_OK);
    cpu->operations->close(cpu);
    for (size_t i = 0; i < LNS_FRAME_PIXELS; i++)
        scores[i] += card.noise * scores[i] * ((float)(synthetic_number(1, i) >> 40) * 0x1p-23F - 1);
    if (card.blurred)
        memmove(descriptors, descriptors + LNS_DESCRIPTOR_SIZE, (MAP - LNS_DESCRIPTOR_SIZE) * sizeof *descriptors);
}

lns_status lns_blackhole_network_detect(lns_blackhole_network *used, const uint8_t *frame,
                                        const lns_blackhole_rules *rules, int with_cells, float *wanted_scores,
                                        lns_bh_keypoint *keypoints, size_t *count) {
    assert_ptr_equal(used, &network);
    assert_true(with_cells);
    if (++card.runs == 1)
        compute(frame);
    if (card.runs == card.fails_at)
        return lns_fail(LNS_ERROR_SYSTEM, "a tile is not done");
    card.radii |= 1u << rules->radius;
    memcpy(wanted_scores, scores, sizeof scores);
    const lns_selection_rules all = {-1, rules->threshold, (int32_t)rules->radius, (int32_t)rules->border};
    lns_selection found;
    assert_int_equal(lns_select_keypoints(scores, &all, &found), LNS_OK);
    *count = found.count;
    for (size_t i = 0; i < found.count; i++) {
        keypoints[found.count - 1 - i].pixel = found.pixels[i];
        memcpy(&keypoints[found.count - 1 - i].score, &found.scores[i], sizeof(float));
    }
    lns_selection_free(&found);
    if (card.runs == card.wrong_score_at)
        wanted_scores[100000] = 0.5F;
    if (card.runs == card.wrong_keypoint_at)
        keypoints[*count / 2].pixel++;
    return LNS_OK;
}

void lns_blackhole_network_descriptors(const lns_blackhole_network *used, float *wanted) {
    assert_ptr_equal(used, &network);
    memcpy(wanted, descriptors, sizeof descriptors);
    if (card.runs == card.wrong_descriptor_at)
        wanted[MAP - 1] += 0x1p-10F;
}

const uint16_t *lns_blackhole_network_cells(const lns_blackhole_network *used) {
    (void)used;
    return NULL; /* the step does not ask for this */
}

/* ---- Tests -------------------------------------------------------------------------------------- */

static int set_up(void **state) {
    (void)state;
    memset(&card, 0, sizeof card);
    card.noise = 0.01F;
    return 0;
}

/* Returns what the step says; it must have been given back what it opened. */
static const char *take(lns_status expected) {
    static char detail[512];
    lns_blackhole_selftest selftest = {
        .weights = synthetic_file_path, .transport = &transport, .grid = {12, 10}, .cores_run = 1};
    const lns_status status = lns_selftest_network.run(&selftest, detail, sizeof detail);
    if (status != LNS_OK)
        snprintf(detail, sizeof detail, "%s", lns_error_message());
    if (status != expected)
        fail_msg("%s", detail);
    assert_int_equal(card.opened, card.closed);
    return detail;
}

static void expect(lns_status status, const char *text) {
    const char *detail = take(status);
    if (strstr(detail, text) == NULL)
        fail_msg("'%s' does not say '%s'", detail, text);
}

static void passes_a_good_card(void **state) {
    (void)state;
    expect(LNS_OK, "; 100 more runs gave the same bytes, a frame takes ");
    assert_int_equal(card.runs, 101);
    assert_int_equal(card.radii, 0x1fe); /* 1 to 8 */
}

static void wants_maps_like_those_of_the_cpu(void **state) {
    (void)state;
    card.noise = 0.9F;
    expect(LNS_ERROR_SYSTEM, "correlation with the CPU: scores 0.");
    set_up(NULL);
    card.blurred = 1;
    expect(LNS_ERROR_SYSTEM, ", descriptors 0.");
    assert_int_equal(card.runs, 1);
}

static void wants_the_same_bytes_each_time(void **state) {
    (void)state;
    card.wrong_score_at = 57;
    expect(LNS_ERROR_SYSTEM, "run 57 gave other bytes than the first one for the same frame");
    set_up(NULL);
    card.wrong_descriptor_at = 101;
    expect(LNS_ERROR_SYSTEM, "run 101 gave other bytes than the first one for the same frame");
}

static void wants_the_keypoints_of_the_host(void **state) {
    (void)state;
    card.wrong_keypoint_at = 1;
    expect(LNS_ERROR_SYSTEM, "for radius 4 the card found ");
    set_up(NULL);
    card.wrong_keypoint_at = 8; /* the first run is before those of all radii */
    expect(LNS_ERROR_SYSTEM, "for radius 7 the card found ");
}

static void says_what_failed(void **state) {
    (void)state;
    card.fails_at = 1;
    expect(LNS_ERROR_SYSTEM, "a tile is not done");
    set_up(NULL);
    card.fails_at = 20;
    expect(LNS_ERROR_SYSTEM, "a tile is not done");
}

static void is_skipped_when_it_cannot_be(void **state) {
    (void)state;
    lns_blackhole_selftest selftest = {.cores_run = 1};
    setenv("SP_WEIGHTS_DIR", "/nowhere", 1);
    assert_non_null(strstr(lns_selftest_network.reason_to_skip(&selftest), "/nowhere"));
    selftest.weights = synthetic_file_path; /* asked for, so that wrong ones are a failure */
    assert_null(lns_selftest_network.reason_to_skip(&selftest));
    selftest.cores_run = 0;
    assert_string_equal(lns_selftest_network.reason_to_skip(&selftest), "no program runs on the cores");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(passes_a_good_card, set_up),
        cmocka_unit_test_setup(wants_maps_like_those_of_the_cpu, set_up),
        cmocka_unit_test_setup(wants_the_same_bytes_each_time, set_up),
        cmocka_unit_test_setup(wants_the_keypoints_of_the_host, set_up),
        cmocka_unit_test_setup(says_what_failed, set_up),
        cmocka_unit_test_setup(is_skipped_when_it_cannot_be, set_up),
    };
    return cmocka_run_group_tests(tests, synthetic_file_set_up, synthetic_file_tear_down);
}
