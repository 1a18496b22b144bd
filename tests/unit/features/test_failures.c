/* SPDX-License-Identifier: Apache-2.0 */
/* Missing arguments, and every allocation failing in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include <lensing/features.h>
#include <lensing/image.h>

#include "base/memory.h"
#include "lensing_config.h"

#define COUNT 20

static float points[COUNT * 2];
static float scores[COUNT];
static float descriptors[COUNT * LNS_DESCRIPTOR_SIZE];
static lns_features features = {
    .count = COUNT,
    .keypoints = points,
    .network_keypoints = points,
    .scores = scores,
    .descriptors = descriptors,
    .image_width = 640,
    .image_height = 480,
    .scale_x = 1,
    .scale_y = 1,
};
static uint8_t pixels[50 * 40];
static lns_plane plane = {.data = pixels, .width = 50, .height = 40, .stride = 50};

static int set_up(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        points[2 * i] = (float)i;
        points[2 * i + 1] = 3;
        scores[i] = 0.5f;
        descriptors[i * LNS_DESCRIPTOR_SIZE + i] = 1;
    }
    return 0;
}

static lns_status json(void) {
    lns_json_options options;
    char *text;
    lns_json_options_init(&options);
    options.file = "a \"picture\" \xff.jpg";
    options.descriptors = 1;
    const lns_status status = lns_features_to_json(&features, &options, &text, NULL);
    assert_true((text != NULL) == (status == LNS_OK));
    lns_buffer_free(text);
    return status;
}

static lns_status npz(void) {
    void *bytes;
    size_t size;
    const lns_status status = lns_features_to_npz(&features, &bytes, &size);
    assert_true((bytes != NULL) == (status == LNS_OK));
    lns_buffer_free(bytes);
    return status;
}

static lns_status match(void) {
    lns_matches *matches;
    const lns_status status = lns_match_features(&features, &features, NULL, &matches);
    assert_true((matches != NULL) == (status == LNS_OK));
    if (status == LNS_OK)
        assert_int_equal(matches->count, COUNT);
    lns_matches_close(&matches);
    lns_matches_close(&matches);
    return status;
}

static lns_status draw(void) {
    void *png;
    size_t size;
    lns_matches *matches = NULL;
    lns_status status = lns_draw_keypoints(&plane, &features, &png, &size);
    lns_buffer_free(png);
    if (status == LNS_OK)
        status = lns_match_features(&features, &features, NULL, &matches);
    if (status != LNS_OK)
        return status;
    lns_plane smaller = plane;
    smaller.height = 20; /* so that one is resized */
    status = lns_draw_matches(&plane, &features, &smaller, &features, matches, &png, &size);
    assert_true((png != NULL) == (status == LNS_OK));
    lns_buffer_free(png);
    lns_matches_close(&matches);
    return status;
}

static lns_status hdf5(void) {
    char path[] = "/tmp/lensing-test-XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    lns_hdf5 *file;
    lns_status status = lns_hdf5_create(path, &file);
    assert_true((file != NULL) == (status == LNS_OK));
    if (status == LNS_OK)
        status = lns_hdf5_add(file, "a/b", &features);
    if (status == LNS_OK)
        status = lns_hdf5_close(&file);
    else
        lns_hdf5_abandon(&file);
    assert_null(file);
    unlink(path);
    return status;
}

static void fail_every_allocation(lns_status (*function)(void)) {
    assert_int_equal(function(), LNS_OK);
    for (long n = 0;; n++) {
        assert_true(n < 1000);
        lns_alloc_fail_after(n);
        const lns_status status = function();
        lns_alloc_fail_after(-1);
        if (status == LNS_OK)
            break;
        assert_int_equal(status, LNS_ERROR_OUT_OF_MEMORY);
    }
}

static void failing_allocations(void **state) {
    (void)state;
    fail_every_allocation(json);
    fail_every_allocation(npz);
    fail_every_allocation(match);
    if (LNS_HAVE_CAIRO)
        fail_every_allocation(draw);
    if (LNS_HAVE_HDF5)
        fail_every_allocation(hdf5);
}

static void missing_arguments(void **state) {
    (void)state;
    char *text;
    void *bytes = &text;
    size_t size = 1;
    lns_matches *matches;
    lns_matches none = {0};
    assert_int_equal(lns_features_to_json(NULL, NULL, &text, &size), LNS_ERROR_INVALID_ARGUMENT);
    assert_null(text);
    assert_int_equal(size, 0);
    assert_int_equal(lns_features_to_json(&features, NULL, NULL, NULL), LNS_ERROR_INVALID_ARGUMENT);
    lns_json_options zero = {0};
    assert_int_equal(lns_features_to_json(&features, &zero, &text, NULL), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_features_to_npz(NULL, &bytes, &size), LNS_ERROR_INVALID_ARGUMENT);
    assert_null(bytes);
    assert_int_equal(lns_features_to_npz(&features, NULL, &size), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_match_features(NULL, &features, NULL, &matches), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_match_features(&features, &features, NULL, NULL), LNS_ERROR_INVALID_ARGUMENT);
    lns_matches_close(NULL);
    lns_hdf5_abandon(NULL);
    if (LNS_HAVE_CAIRO) {
        const lns_plane empty = {0};
        assert_int_equal(lns_draw_keypoints(NULL, &features, &bytes, &size), LNS_ERROR_INVALID_ARGUMENT);
        assert_int_equal(lns_draw_keypoints(&empty, &features, &bytes, &size), LNS_ERROR_INVALID_ARGUMENT);
        assert_int_equal(lns_draw_matches(&plane, &features, &plane, &features, NULL, &bytes, &size),
                         LNS_ERROR_INVALID_ARGUMENT);
        const lns_match wrong = {COUNT, 0, 1};
        const lns_matches one = {1, &wrong};
        assert_int_equal(lns_draw_matches(&plane, &features, &plane, &features, &one, &bytes, &size),
                         LNS_ERROR_INVALID_ARGUMENT);
        assert_int_equal(lns_draw_matches(&plane, &features, &empty, &features, &none, &bytes, &size),
                         LNS_ERROR_INVALID_ARGUMENT);
    }
    if (LNS_HAVE_HDF5) {
        lns_hdf5 *file = NULL;
        assert_int_equal(lns_hdf5_create(NULL, &file), LNS_ERROR_INVALID_ARGUMENT);
        assert_int_equal(lns_hdf5_add(NULL, "a", &features), LNS_ERROR_INVALID_ARGUMENT);
        assert_int_equal(lns_hdf5_close(&file), LNS_ERROR_INVALID_ARGUMENT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(missing_arguments),
    };
    return cmocka_run_group_tests_name("features failures", tests, set_up, NULL);
}
