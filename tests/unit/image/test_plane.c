/* SPDX-License-Identifier: Apache-2.0 */
/* Planes from pixels in memory, options, limits, EXIF, failing allocations. What decoders make of files is compared
 * with Pillow in tests/image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lensing/image.h>

#include "base/memory.h"
#include "image/decoder.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* A 3 x 2 gray picture: 1 2 3 / 4 5 6. */
static const char pgm[] = "P5 3 2 255\n\1\2\3\4\5\6";
enum { PGM_SIZE = sizeof pgm - 1 };

static void assert_pixels(const lns_plane *plane, uint32_t width, uint32_t height, const uint8_t *expected) {
    assert_int_equal(plane->width, width);
    assert_int_equal(plane->height, height);
    assert_true(plane->stride >= width);
    for (uint32_t y = 0; y < height; y++)
        assert_memory_equal(plane->data + y * plane->stride, expected + y * width, width);
}

static void takes_the_right_channel(void **state) {
    (void)state;
    static const struct {
        lns_pixel_format format;
        size_t step;
        uint8_t first;
    } cases[] = {{LNS_PIXEL_GRAY8, 1, 0},
                 {LNS_PIXEL_RGB24, 3, 0},
                 {LNS_PIXEL_BGR24, 3, 2},
                 {LNS_PIXEL_RGBA32, 4, 0},
                 {LNS_PIXEL_BGRA32, 4, 2}};
    uint8_t pixels[7 * 5 * 4];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)i;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        uint8_t expected[7 * 5];
        for (size_t i = 0; i < sizeof expected; i++)
            expected[i] = (uint8_t)(i * cases[c].step + cases[c].first);
        lns_plane *plane = NULL;
        assert_int_equal(lns_plane_from_pixels(pixels, 7, 5, 0, cases[c].format, &plane), LNS_OK);
        assert_pixels(plane, 7, 5, expected);
        assert_int_equal(plane->format, LNS_IMAGE_NONE);
        assert_int_equal(plane->exif_orientation, 1);
        lns_plane_close(&plane);
        assert_null(plane);
    }
}

static void follows_strides(void **state) {
    (void)state;
    uint8_t pixels[3][8] = {{1, 2, 3, 9, 9}, {4, 5, 6, 9, 9}, {7, 8, 9, 9, 9}};
    static const uint8_t down[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, up[] = {7, 8, 9, 4, 5, 6, 1, 2, 3};
    lns_plane *plane = NULL;
    assert_int_equal(lns_plane_from_pixels(pixels[0], 3, 3, 8, LNS_PIXEL_GRAY8, &plane), LNS_OK);
    assert_pixels(plane, 3, 3, down);
    lns_plane_close(&plane);
    assert_int_equal(lns_plane_from_pixels(pixels[2], 3, 3, -8, LNS_PIXEL_GRAY8, &plane), LNS_OK);
    assert_pixels(plane, 3, 3, up);
    lns_plane_close(&plane);
}

static void refuses_bad_arguments(void **state) {
    (void)state;
    const uint8_t pixels[64] = {0};
    lns_plane *plane = (lns_plane *)(uintptr_t)&pixels;
    const struct {
        const void *pixels;
        uint32_t width, height;
        ptrdiff_t stride;
        int format;
    } cases[] = {
        {NULL, 2, 2, 0, LNS_PIXEL_GRAY8},
        {pixels, 0, 2, 0, LNS_PIXEL_GRAY8},
        {pixels, 2, 0, 0, LNS_PIXEL_GRAY8},
        {pixels, 2, 2, 1, LNS_PIXEL_GRAY8},
        {pixels, 2, 2, -1, LNS_PIXEL_GRAY8},
        {pixels, 2, 2, 5, LNS_PIXEL_RGB24},
        {pixels, 2, 2, PTRDIFF_MIN, 77},
        {pixels, 2, 2, 0, -1},
        {pixels, 2, 2, 0, 5},
        {pixels, UINT32_MAX, UINT32_MAX, 0, LNS_PIXEL_RGBA32},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        plane = (lns_plane *)(uintptr_t)&pixels;
        assert_int_equal(lns_plane_from_pixels(cases[i].pixels, cases[i].width, cases[i].height, cases[i].stride,
                                               (lns_pixel_format)cases[i].format, &plane),
                         LNS_ERROR_INVALID_ARGUMENT);
        assert_null(plane);
        assert_true(strlen(lns_error_message()) > 0);
    }
    assert_int_equal(lns_plane_from_pixels(pixels, 2, 2, 0, LNS_PIXEL_GRAY8, NULL), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_plane_decode(NULL, 4, NULL, &plane), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_plane_decode(pgm, PGM_SIZE, NULL, NULL), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_plane_read(NULL, NULL, &plane), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_plane_read("x", NULL, NULL), LNS_ERROR_INVALID_ARGUMENT);
    lns_image_options options = {0};
    assert_int_equal(lns_plane_decode(pgm, PGM_SIZE, &options, &plane), LNS_ERROR_INVALID_ARGUMENT);
    lns_image_options_init(&options);
    options.exif = (lns_exif_mode)2;
    assert_int_equal(lns_plane_decode(pgm, PGM_SIZE, &options, &plane), LNS_ERROR_INVALID_ARGUMENT);
    lns_image_options_init(NULL);
    lns_plane_close(NULL);
    plane = NULL;
    lns_plane_close(&plane);
}

static void has_documented_defaults(void **state) {
    (void)state;
    lns_image_options options;
    lns_image_options_init(&options);
    assert_int_equal(options.struct_size, sizeof options);
    assert_true(options.max_pixels == 178956970);
    assert_int_equal(options.exif, LNS_EXIF_IGNORE);
}

static void keeps_the_limit(void **state) {
    (void)state;
    static const uint8_t expected[] = {1, 2, 3, 4, 5, 6};
    static const struct {
        uint64_t limit;
        lns_status status;
    } cases[] = {{0, LNS_OK}, {1, LNS_ERROR_LIMIT}, {5, LNS_ERROR_LIMIT}, {6, LNS_OK}, {UINT64_MAX, LNS_OK}};
    lns_image_options options;
    lns_image_options_init(&options);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        lns_plane *plane = NULL;
        options.max_pixels = cases[i].limit;
        assert_int_equal(lns_plane_decode(pgm, PGM_SIZE, &options, &plane), cases[i].status);
        if (cases[i].status == LNS_OK) {
            assert_pixels(plane, 3, 2, expected);
            assert_int_equal(plane->format, LNS_IMAGE_PNM);
        }
        lns_plane_close(&plane);
    }
}

static void limit_is_decided_before_allocation(void **state) {
    (void)state;
    static const char huge[] = "P5 60000 60000 255\n";
    lns_plane *plane = NULL;
    lns_alloc_fail_after(0);
    const lns_status status = lns_plane_decode(huge, sizeof huge - 1, NULL, &plane);
    lns_alloc_fail_after(-1);
    assert_int_equal(status, LNS_ERROR_LIMIT);
}

static void names_the_formats(void **state) {
    (void)state;
    lns_plane *plane = NULL;
    assert_int_equal(lns_plane_decode("hello", 5, NULL, &plane), LNS_ERROR_FORMAT);
    assert_non_null(strstr(lns_error_message(), "JPEG, PNG, WebP, TIFF, GIF, BMP, PNM"));
    assert_int_equal(lns_plane_decode("", 0, NULL, &plane), LNS_ERROR_FORMAT);
    assert_int_equal(lns_plane_read("/no/such/file.jpg", NULL, &plane), LNS_ERROR_IO);
    assert_non_null(strstr(lns_error_message(), "/no/such/file.jpg"));
}

/* The picture 1 2 3 / 4 5 6 as EXIF says that it is to be shown. */
static void turns_upright(void **state) {
    (void)state;
    static const struct {
        uint32_t width, height;
        uint8_t pixels[6];
    } expected[] = {
        {3, 2, {1, 2, 3, 4, 5, 6}}, {3, 2, {1, 2, 3, 4, 5, 6}}, {3, 2, {3, 2, 1, 6, 5, 4}}, {3, 2, {6, 5, 4, 3, 2, 1}},
        {3, 2, {4, 5, 6, 1, 2, 3}}, {2, 3, {1, 4, 2, 5, 3, 6}}, {2, 3, {4, 1, 5, 2, 6, 3}}, {2, 3, {6, 3, 5, 2, 4, 1}},
        {2, 3, {3, 6, 2, 5, 1, 4}}, {3, 2, {1, 2, 3, 4, 5, 6}},
    };
    for (int orientation = 0; orientation < (int)COUNT_OF(expected); orientation++) {
        lns_plane *plane = NULL;
        assert_int_equal(lns_plane_decode(pgm, PGM_SIZE, NULL, &plane), LNS_OK);
        assert_int_equal(lns_plane_orient(&plane, orientation), LNS_OK);
        assert_pixels(plane, expected[orientation].width, expected[orientation].height, expected[orientation].pixels);
        lns_plane_close(&plane);
    }
}

static void reads_exif(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        int orientation;
    } cases[] = {
        {"II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0", 26, 6},
        {"Exif\0\0II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0", 32, 6},
        {"MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\3\0\0\0\0\0\0", 26, 3},
        {"MM\0*\0\0\0\10\0\2\1\17\0\2\0\0\0\4abcd\1\22\0\3\0\0\0\1\0\10\0\0\0\0\0\0", 38, 8},
        {"II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\0\0\0\0\0\0\0\0", 26, 1},  /* 0 */
        {"II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\11\0\0\0\0\0\0\0", 26, 1}, /* 9 */
        {"II*\0\10\0\0\0\1\0\22\1\4\0\1\0\0\0\6\0\0\0\0\0\0\0", 26, 1},  /* not a short */
        {"II*\0\10\0\0\0\1\0\22\1\3\0\2\0\0\0\6\0\0\0\0\0\0\0", 26, 1},  /* two of them */
        {"II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\6", 19, 1},                /* cut off */
        {"II*\0\377\377\377\377\1\0\22\1\3\0\1\0\0\0\6\0\0\0", 22, 1},   /* directory outside */
        {"II*\0\10\0\0\0\377\377\1\0", 12, 1},                           /* more entries than bytes */
        {"II+\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0", 26, 1},
        {"II*\0", 4, 1},
        {"", 0, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        /* An own copy of exactly this size, so that a sanitizer sees every byte too many. */
        uint8_t *copy = malloc(cases[i].size > 0 ? cases[i].size : 1);
        memcpy(copy, cases[i].bytes, cases[i].size);
        const int got = lns_exif_orientation(copy, cases[i].size);
        free(copy);
        assert_int_equal(got, cases[i].orientation);
    }
}

/* One small file of each format that can be written down here; the fuzzer's corpus covers all. */
static void survives_failing_allocations(void **state) {
    (void)state;
    static const char plain[] = "P3 2 1 1000\n1 2 3 4 5 6\n";
    static const char bitmap[] = "BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0"
                                 "\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\0";
    static const char gif[] = "GIF89a\1\0\1\0\x80\0\0\1\2\3\4\5\6,\0\0\0\0\1\0\1\0\0\2\2D\1\0;";
    const struct {
        const char *bytes;
        size_t size;
    } cases[] = {{pgm, PGM_SIZE}, {plain, sizeof plain - 1}, {bitmap, sizeof bitmap - 1}, {gif, sizeof gif - 1}};
    lns_image_options options;
    lns_image_options_init(&options);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        lns_plane *plane = NULL;
        assert_int_equal(lns_plane_decode(cases[i].bytes, cases[i].size, &options, &plane), LNS_OK);
        lns_plane_close(&plane);
        for (long allowed = 0;; allowed++) {
            lns_alloc_fail_after(allowed);
            const lns_status status = lns_plane_decode(cases[i].bytes, cases[i].size, &options, &plane);
            lns_alloc_fail_after(-1);
            if (status == LNS_OK)
                break;
            assert_int_equal(status, LNS_ERROR_OUT_OF_MEMORY);
            assert_null(plane);
        }
        lns_plane_close(&plane);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_right_channel),
        cmocka_unit_test(follows_strides),
        cmocka_unit_test(refuses_bad_arguments),
        cmocka_unit_test(has_documented_defaults),
        cmocka_unit_test(keeps_the_limit),
        cmocka_unit_test(limit_is_decided_before_allocation),
        cmocka_unit_test(names_the_formats),
        cmocka_unit_test(turns_upright),
        cmocka_unit_test(reads_exif),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
