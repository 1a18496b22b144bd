/* SPDX-License-Identifier: Apache-2.0 */
/* Selection and sampling against PyTorch (tests/golden/make.py) and against the plain definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "superpoint/postprocess.h"

#include "golden/postprocess_golden.h"
#include "synthetic_weights.h"

enum { W = LNS_NETWORK_WIDTH, H = LNS_NETWORK_HEIGHT, MAP_STREAM = 2000, SAMPLE_STREAM = 3000 };

static const float thresholds[] = {0.0F, 0.005F, 0.015F};

static float *new_map(size_t count) {
    float *map = malloc(count * sizeof *map);
    assert_non_null(map);
    return map;
}

/* ---- The maps of tests/golden/make.py ----------------------------------------------------------- */

static float unit(uint64_t number) {
    return (float)(number >> 40) * 0x1p-24F;
}

static float near_threshold(uint32_t low) {
    const float base = (low & 8) != 0 ? 0.005F : 0.015F;
    uint32_t bits;
    memcpy(&bits, &base, sizeof bits);
    bits += low % 5 - 2;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (low & 16) != 0 ? value : 0.0F;
}

static float near_border(int x, int y, uint64_t number) {
    const int dx = x < W - 1 - x ? x : W - 1 - x, dy = y < H - 1 - y ? y : H - 1 - y;
    const int bright = (dx < dy ? dx : dy) < 6 && number % 4 == 0;
    return unit(number) * (bright ? 1.0F : 0.03125F);
}

static float map_value(int kind, int x, int y) {
    const uint64_t stream = (uint64_t)(MAP_STREAM + kind);
    const uint64_t number = synthetic_number(stream, (uint64_t)(y * W + x));
    const uint32_t low = number & 0xffff;
    switch (kind) {
    case MAP_RANDOM:
        return unit(number) * 0.03125F;
    case MAP_TIES:
        return (float)(low % 16) / 512.0F;
    case MAP_PLATEAUS:
        return (float)((synthetic_number(stream, (uint64_t)(y / 5 * 92 + x / 7)) & 0xffff) % 32) / 1024.0F;
    case MAP_CONSTANT:
        return 0.01F;
    case MAP_SPARSE:
        return low % 997 == 0 ? unit(number) : 0.0F;
    case MAP_BORDER:
        return near_border(x, y, number);
    case MAP_THRESHOLD:
        return near_threshold(low);
    default: /* MAP_COUNTS */
        return 0.0F;
    }
}

static void make_map(float *map, int kind, int variant) {
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            map[y * W + x] = map_value(kind, x, y);
    for (int i = 0; i < variant; i++)
        map[(4 + 8 * (i / 78)) * W + 4 + 8 * (i % 78)] = 0.02F + (float)(i * 7919 % 64) / 4096.0F;
}

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t digest(const lns_selection *s) {
    uint64_t sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        uint32_t bits;
        memcpy(&bits, &s->scores[i], sizeof bits);
        sum += mix((uint64_t)bits << 32 | s->pixels[i]) * (2 * i + 1);
    }
    return sum;
}

static void equals_pytorch(void **state) {
    (void)state;
    float *map = new_map(LNS_FRAME_PIXELS);
    int kind = -1, variant = -1;
    for (size_t i = 0; i < sizeof selection_cases / sizeof *selection_cases; i++) {
        if (selection_cases[i].kind != kind || selection_cases[i].variant != variant) {
            kind = selection_cases[i].kind;
            variant = selection_cases[i].variant;
            make_map(map, kind, variant);
        }
        const lns_selection_rules rules = {selection_cases[i].limit, thresholds[selection_cases[i].threshold],
                                           selection_cases[i].radius, 4};
        lns_selection s;
        assert_int_equal(lns_select_keypoints(map, &rules, &s), LNS_OK);
        if (s.count != selection_cases[i].count || digest(&s) != selection_cases[i].digest)
            fail_msg("case %zu: map %d.%d, radius %d, threshold %g, limit %d: %zu keypoints; expected %u%s", i, kind,
                     variant, rules.nms_radius, (double)rules.threshold, rules.max_keypoints, s.count,
                     selection_cases[i].count, s.count == selection_cases[i].count ? ", others" : "");
        lns_selection_free(&s);
        assert_null(s.pixels);
    }
    free(map);
}

/* ---- Every radius ------------------------------------------------------------------------------- */

static float maximum_at(const float *map, int x, int y, int r) {
    float maximum = -INFINITY;
    for (int v = y - r < 0 ? 0 : y - r; v <= y + r && v < H; v++)
        for (int u = x - r < 0 ? 0 : x - r; u <= x + r && u < W; u++)
            maximum = map[v * W + u] > maximum ? map[v * W + u] : maximum;
    return maximum;
}

/* Pixels drawn from `first` on at a stride, so that the plain definition stays quick. */
static void check_pixels(const float *map, int r, int border, const uint8_t *kept) {
    for (int pixel = r; pixel < LNS_FRAME_PIXELS; pixel += 37) {
        const int x = pixel % W, y = pixel / W;
        const int inside = x >= border && x < W - border && y >= border && y < H - border;
        const int expected = inside && map[pixel] > 0.0F && map[pixel] == maximum_at(map, x, y, r);
        if (kept[pixel] != expected)
            fail_msg("radius %d, border %d, pixel (%d, %d): %d", r, border, x, y, kept[pixel]);
    }
}

static void every_radius_follows_the_definition(void **state) {
    (void)state;
    float *map = new_map(LNS_FRAME_PIXELS);
    uint8_t *kept = calloc(LNS_FRAME_PIXELS, 1);
    assert_non_null(kept);
    make_map(map, MAP_SPARSE, 0);
    for (int r = 0; r <= 32; r++) {
        const int border = r % 7;
        const lns_selection_rules rules = {-1, 0.0F, r, border};
        lns_selection s;
        assert_int_equal(lns_select_keypoints(map, &rules, &s), LNS_OK);
        memset(kept, 0, LNS_FRAME_PIXELS);
        for (size_t i = 0; i < s.count; i++) {
            kept[s.pixels[i]] = 1;
            assert_true(s.scores[i] == map[s.pixels[i]]);
        }
        check_pixels(map, r, border, kept);
        lns_selection_free(&s);
    }
    free(kept);
    free(map);
}

/* ---- Edges -------------------------------------------------------------------------------------- */

static void strange_scores_do_no_harm(void **state) {
    (void)state;
    float *map = new_map(LNS_FRAME_PIXELS);
    for (size_t i = 0; i < LNS_FRAME_PIXELS; i++)
        map[i] = NAN;
    map[100 * W + 100] = 0.5F;
    map[100 * W + 101] = 0.25F;
    map[200 * W + 100] = INFINITY;
    map[300 * W + 100] = -INFINITY;
    map[300 * W + 101] = -1.0F;
    map[300 * W + 102] = -0.0F;
    for (int r = 0; r <= 32; r += 8) {
        const lns_selection_rules rules = {-1, 0.0F, r, 4};
        lns_selection s;
        assert_int_equal(lns_select_keypoints(map, &rules, &s), LNS_OK);
        assert_int_equal(s.count, r == 0 ? 3 : 2);
        assert_int_equal(s.pixels[0], 200 * W + 100);
        assert_int_equal(s.pixels[1], 100 * W + 100);
        lns_selection_free(&s);
    }
    free(map);
}

static size_t count_with_border(const float *map, int border) {
    const lns_selection_rules rules = {-1, 0.0F, 1, border};
    lns_selection s;
    assert_int_equal(lns_select_keypoints(map, &rules, &s), LNS_OK);
    const size_t count = s.count;
    assert_non_null(s.pixels);
    lns_selection_free(&s);
    return count;
}

static int is_near_edge(int x, int y) {
    return x < 3 || y < 3 || x >= W - 3 || y >= H - 3;
}

/* Without a border, and with few pixels above the threshold: the first and the last of each row and column are looked
 * at, and compared with. */
static void pixels_at_the_edges_follow_the_definition(void **state) {
    (void)state;
    float *map = new_map(LNS_FRAME_PIXELS);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            map[y * W + x] = is_near_edge(x, y) ? (float)(mix((uint64_t)(y * W + x)) % 50 + 1) / 64.0F : 0.0F;
    for (int r = 1; r <= 9; r += 2) {
        const lns_selection_rules rules = {-1, 0.25F, r, 0};
        lns_selection s;
        assert_int_equal(lns_select_keypoints(map, &rules, &s), LNS_OK);
        size_t expected = 0;
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                expected += map[y * W + x] > 0.25F && map[y * W + x] == maximum_at(map, x, y, r);
        assert_int_equal(s.count, expected);
        for (size_t i = 0; i < s.count; i++)
            assert_true(s.scores[i] ==
                        maximum_at(map, (int)(s.pixels[i] % (uint32_t)W), (int)(s.pixels[i] / (uint32_t)W), r));
        lns_selection_free(&s);
    }
    free(map);
}

static void wide_borders_leave_nothing(void **state) {
    (void)state;
    float *map = new_map(LNS_FRAME_PIXELS);
    make_map(map, MAP_CONSTANT, 0);
    assert_int_equal(count_with_border(map, 0), LNS_FRAME_PIXELS);
    assert_int_equal(count_with_border(map, 4), (W - 8) * (H - 8));
    assert_int_equal(count_with_border(map, 239), (W - 478) * 2);
    assert_int_equal(count_with_border(map, 240), 0);
    assert_int_equal(count_with_border(map, 1000), 0);
    assert_int_equal(count_with_border(map, INT32_MAX), 0);
    free(map);
}

/* Keypoints in any order, as a card gives them, come out as those that were selected here. */
static void ordering_equals_selecting(void **state) {
    (void)state;
    static const int32_t limits[] = {-1, 0, 1, 100, 1023, 1024, 100000};
    float *map = malloc(LNS_FRAME_PIXELS * sizeof *map);
    make_map(map, 2, 0);
    lns_selection_rules rules = {-1, 0.005F, 3, 4};
    lns_selection all, selected, ordered;
    assert_int_equal(lns_select_keypoints(map, &rules, &all), LNS_OK);
    assert_true(all.count > 1024);
    lns_scored_pixel *found = malloc(all.count * sizeof *found);
    for (size_t i = 0; i < all.count; i++) { /* a step without a common divisor goes through all of them */
        const size_t from = i * 7919 % all.count;
        assert_true(all.count % 7919 != 0);
        found[i] = (lns_scored_pixel){all.pixels[from], all.scores[from]};
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        rules.max_keypoints = limits[i];
        assert_int_equal(lns_select_keypoints(map, &rules, &selected), LNS_OK);
        assert_int_equal(lns_order_keypoints(found, all.count, limits[i], &ordered), LNS_OK);
        assert_int_equal(ordered.count, selected.count);
        assert_memory_equal(ordered.pixels, selected.pixels, selected.count * sizeof *selected.pixels);
        assert_memory_equal(ordered.scores, selected.scores, selected.count * sizeof *selected.scores);
        lns_selection_free(&selected);
        lns_selection_free(&ordered);
    }
    for (long i = 0; i < 4; i++) {
        lns_alloc_fail_after(i);
        const lns_status status = lns_order_keypoints(found, all.count, 5, &ordered);
        lns_alloc_fail_after(-1);
        assert_int_equal(status, LNS_ERROR_OUT_OF_MEMORY);
        assert_null(ordered.pixels);
    }
    assert_int_equal(lns_order_keypoints(found, 0, 5, &ordered), LNS_OK);
    assert_int_equal(ordered.count, 0);
    assert_non_null(ordered.pixels);
    lns_selection_free(&ordered);
    lns_selection_free(&all);
    free(found);
    free(map);
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    float *map = new_map(LNS_FRAME_PIXELS);
    make_map(map, MAP_RANDOM, 0);
    const lns_selection_rules rules = {1024, 0.0F, 1, 4};
    lns_selection s;
    lns_status status = LNS_ERROR_OUT_OF_MEMORY;
    long n = 0;
    for (; status != LNS_OK && n < 100; n++) {
        lns_alloc_fail_after(n);
        status = lns_select_keypoints(map, &rules, &s);
        lns_alloc_fail_after(-1);
        if (status != LNS_OK) {
            assert_int_equal(status, LNS_ERROR_OUT_OF_MEMORY);
            assert_null(s.pixels);
            assert_null(s.scores);
            assert_int_equal(s.count, 0);
        }
    }
    assert_in_range(n, 4, 99);
    assert_int_equal(s.count, 1024);
    lns_selection_free(&s);
    free(map);
}

/* ---- Descriptors -------------------------------------------------------------------------------- */

static void samples_equal_pytorch(void **state) {
    (void)state;
    const size_t size = (size_t)LNS_CELLS_X * LNS_CELLS_Y * LNS_DESCRIPTOR_SIZE;
    float *map = new_map(size);
    for (size_t i = 0; i < size; i++)
        map[i] = (float)(synthetic_number(SAMPLE_STREAM, i) >> 40) * 0x1p-23F - 1.0F;
    for (size_t i = 0; i < sizeof sample_cases / sizeof *sample_cases; i++) {
        float descriptor[LNS_DESCRIPTOR_SIZE];
        lns_sample_descriptors(map, &sample_cases[i].pixel, 1, descriptor);
        for (int n = 0; n < SAMPLE_NUMBERS; n++)
            if (fabsf(descriptor[n * SAMPLE_STEP] - sample_cases[i].numbers[n]) > 3e-7F)
                fail_msg("pixel %u, number %d: %.9g; expected %.9g", sample_cases[i].pixel, n * SAMPLE_STEP,
                         (double)descriptor[n * SAMPLE_STEP], (double)sample_cases[i].numbers[n]);
    }
    lns_sample_descriptors(map, NULL, 0, NULL);
    free(map);
}

/* On a map whose numbers are linear in the place, a sample between cells is the same linear function. */
static void samples_of_a_ramp_are_linear(void **state) {
    (void)state;
    static const int columns[] = {4, 5, 11, 12, 320, 634, 635};
    float *map = new_map((size_t)LNS_CELLS_X * LNS_CELLS_Y * LNS_DESCRIPTOR_SIZE);
    for (int cell = 0; cell < LNS_CELLS_X * LNS_CELLS_Y; cell++)
        for (int c = 0; c < LNS_DESCRIPTOR_SIZE; c++)
            map[cell * LNS_DESCRIPTOR_SIZE + c] =
                (float)(c + 1) * (float)(cell % LNS_CELLS_X) + (float)(c % 3) * (float)(cell / LNS_CELLS_X);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const uint32_t pixel = (uint32_t)(100 * W + columns[i]);
        const double px = (columns[i] - 3.5) / 635.5 * 79.0, py = (100 - 3.5) / 475.5 * 59.0;
        double expected[LNS_DESCRIPTOR_SIZE], squares = 0.0;
        for (int c = 0; c < LNS_DESCRIPTOR_SIZE; c++) {
            expected[c] = (c + 1) * px + c % 3 * py;
            squares += expected[c] * expected[c];
        }
        float descriptor[LNS_DESCRIPTOR_SIZE];
        lns_sample_descriptors(map, &pixel, 1, descriptor);
        for (int c = 0; c < LNS_DESCRIPTOR_SIZE; c++)
            assert_true(fabs(descriptor[c] - expected[c] / sqrt(squares)) < 1e-5);
    }
    free(map);
}

/* Samples do not change when all other cells hold nonsense. */
static void cells_that_are_not_listed_do_not_matter(void **state) {
    (void)state;
    enum { STEP = 1009 };
    const size_t size = (size_t)LNS_CELLS * LNS_DESCRIPTOR_SIZE;
    float *map = new_map(size), *some = new_map(size);
    for (size_t i = 0; i < size; i++) {
        map[i] = (float)(mix(i) % 2000) / 1000.0F - 1.0F;
        some[i] = NAN;
    }
    /* The corners and edges of the frame, too, where cells outside are read in their neighbours' place. */
    const uint32_t corners[] = {0, 1, W - 1, 3 * W, W * (H - 1), W * H - 1, W * 100, W * 101 - 1};
    for (size_t n = 0; n < 8 + LNS_FRAME_PIXELS / STEP; n++) {
        const uint32_t pixel = n < 8 ? corners[n] : (uint32_t)(n - 8) * STEP;
        uint16_t cells[LNS_CELLS];
        const size_t count = lns_list_cells(&pixel, 1, cells);
        assert_in_range(count, 1, 4);
        for (size_t i = 0; i < count; i++)
            memcpy(some + cells[i] * LNS_DESCRIPTOR_SIZE, map + cells[i] * LNS_DESCRIPTOR_SIZE,
                   LNS_DESCRIPTOR_SIZE * sizeof *map);
        float expected[LNS_DESCRIPTOR_SIZE], found[LNS_DESCRIPTOR_SIZE];
        lns_sample_descriptors(map, &pixel, 1, expected);
        lns_sample_descriptors(some, &pixel, 1, found);
        assert_memory_equal(found, expected, sizeof found);
        for (size_t i = 0; i < count; i++)
            some[cells[i] * LNS_DESCRIPTOR_SIZE] = NAN;
    }
    free(map);
    free(some);
}

static void a_zero_map_gives_zero_descriptors(void **state) {
    (void)state;
    float *map = calloc((size_t)LNS_CELLS_X * LNS_CELLS_Y * LNS_DESCRIPTOR_SIZE, sizeof *map);
    assert_non_null(map);
    const uint32_t pixels[] = {0, LNS_FRAME_PIXELS - 1};
    float descriptors[2 * LNS_DESCRIPTOR_SIZE];
    lns_sample_descriptors(map, pixels, 2, descriptors);
    for (int i = 0; i < 2 * LNS_DESCRIPTOR_SIZE; i++)
        assert_true(descriptors[i] == 0.0F);
    free(map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(every_radius_follows_the_definition),
        cmocka_unit_test(strange_scores_do_no_harm),
        cmocka_unit_test(pixels_at_the_edges_follow_the_definition),
        cmocka_unit_test(wide_borders_leave_nothing),
        cmocka_unit_test(ordering_equals_selecting),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(samples_equal_pytorch),
        cmocka_unit_test(samples_of_a_ramp_are_linear),
        cmocka_unit_test(cells_that_are_not_listed_do_not_matter),
        cmocka_unit_test(a_zero_map_gives_zero_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
