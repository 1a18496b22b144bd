/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of drawings, and that marks are where the keypoints are; read back with lns_plane_decode(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lensing/features.h>

#include "lensing_config.h"

static lns_plane *gray(uint32_t width, uint32_t height) {
    uint8_t *pixels = malloc((size_t)width * height);
    lns_plane *plane;
    memset(pixels, 128, (size_t)width * height);
    assert_int_equal(lns_plane_from_pixels(pixels, width, height, 0, LNS_PIXEL_GRAY8, &plane), LNS_OK);
    free(pixels);
    return plane;
}

static lns_plane *decode(void *png, size_t size) {
    lns_plane *plane;
    assert_int_equal(lns_plane_decode(png, size, NULL, &plane), LNS_OK);
    lns_buffer_free(png);
    return plane;
}

static lns_plane *draw(lns_plane *plane, const lns_features *features) {
    void *png;
    size_t size;
    assert_int_equal(lns_draw_keypoints(plane, features, &png, &size), LNS_OK);
    return decode(png, size);
}

static void sizes(void **state) {
    (void)state;
    static const uint32_t cases[][4] = {
        {1, 1, 1, 1}, {2560, 100, 2560, 100}, {5120, 100, 2560, 50}, {40000, 1, 2560, 1}, {3, 4000, 2, 2560},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lns_plane *plane = gray(cases[i][0], cases[i][1]);
        lns_features none = {0};
        lns_plane *drawing = draw(plane, &none);
        assert_int_equal(drawing->width, cases[i][2]);
        assert_int_equal(drawing->height, cases[i][3]);
        for (uint32_t x = 0; x < drawing->width; x++)
            assert_int_equal(drawing->data[x], 128);
        lns_plane_close(&drawing);
        lns_plane_close(&plane);
    }
}

/* The middle of what differs from the background. */
static void middle(const lns_plane *drawing, double *x, double *y) {
    double count = 0;
    *x = 0;
    *y = 0;
    for (uint32_t row = 0; row < drawing->height; row++) {
        for (uint32_t column = 0; column < drawing->width; column++) {
            const int weight = abs(drawing->data[row * drawing->stride + column] - 128);
            *x += (double)weight * column;
            *y += (double)weight * row;
            count += weight;
        }
    }
    assert_true(count > 0);
    *x /= count;
    *y /= count;
}

static void circle_is_at_its_keypoint(void **state) {
    (void)state;
    static const uint32_t dimensions[][2] = {{200, 100}, {5120, 1000}};
    for (size_t i = 0; i < 2; i++) {
        lns_plane *plane = gray(dimensions[i][0], dimensions[i][1]);
        const float point[2] = {60, 50};
        const float score = 0.9f;
        const lns_features one = {.count = 1, .keypoints = point, .scores = &score};
        lns_plane *drawing = draw(plane, &one);
        const double scale = (double)drawing->width / plane->width;
        double x, y;
        middle(drawing, &x, &y);
        assert_true(x > 60.5 * scale - 0.75 && x < 60.5 * scale - 0.25);
        assert_true(y > 50.5 * scale - 0.75 && y < 50.5 * scale - 0.25);
        lns_plane_close(&drawing);
        lns_plane_close(&plane);
    }
}

static void pairs(void **state) {
    (void)state;
    static const struct {
        uint32_t size[4];
        uint32_t height;
    } cases[] = {
        {{640, 480, 640, 480}, 480}, {{640, 480, 320, 240}, 480}, {{640, 480, 64, 48}, 480},
        {{1, 1, 1, 1}, 1},           {{1, 9000, 10, 10}, 4096},   {{20000, 1, 10, 10}, 1},
    };
    const float point[2] = {0, 0};
    const float score = 0.9f;
    const lns_match match = {0, 0, 0.9f};
    const lns_matches one = {1, &match};
    const lns_features features = {.count = 1, .keypoints = point, .scores = &score};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lns_plane *first = gray(cases[i].size[0], cases[i].size[1]);
        lns_plane *second = gray(cases[i].size[2], cases[i].size[3]);
        void *png;
        size_t size;
        assert_int_equal(lns_draw_matches(first, &features, second, &features, &one, &png, &size), LNS_OK);
        lns_plane *drawing = decode(png, size);
        assert_true(drawing->width <= 4096);
        assert_int_equal(drawing->height, cases[i].height);
        lns_plane_close(&drawing);
        lns_plane_close(&first);
        lns_plane_close(&second);
    }
}

int main(void) {
    if (!LNS_HAVE_CAIRO) {
        print_message("SKIP: this build has no cairo\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(circle_is_at_its_keypoint),
        cmocka_unit_test(pairs),
    };
    return cmocka_run_group_tests_name("features drawing", tests, NULL, NULL);
}
