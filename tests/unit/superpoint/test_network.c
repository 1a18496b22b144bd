/* SPDX-License-Identifier: Apache-2.0 */
/* The whole network against PyTorch (tests/golden/network.bin), in every kernel set and with every number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/cpu.h"
#include "base/threads.h"
#include "superpoint/network.h"
#include "superpoint/postprocess.h"
#include "synthetic_weights.h"

#define CELLS ((size_t)LNS_CELLS_X * LNS_CELLS_Y)
#define MAP_SIZE (CELLS * LNS_DESCRIPTOR_SIZE)

/* tests/golden/README.md describes the file. */
typedef struct golden {
    uint32_t score_step, scores_count, cell_step, cells_count, keypoints_count, descriptors_count;
    float *scores, *cells, *keypoint_scores, *descriptors;
    uint32_t *keypoints;
    char *bytes;
} golden;

static golden read_golden(const char *path) {
    golden g;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    g.bytes = malloc(size);
    assert_int_equal(fread(g.bytes, 1, size, file), size);
    fclose(file);
    assert_memory_equal(g.bytes, "LNSGOLD1", 8);
    memcpy(&g, g.bytes + 8, 6 * sizeof(uint32_t));
    g.scores = (float *)(void *)(g.bytes + 32);
    g.cells = g.scores + g.scores_count;
    g.keypoints = (uint32_t *)(void *)(g.cells + 64 * (size_t)g.cells_count);
    g.keypoint_scores = (float *)(void *)(g.keypoints + g.keypoints_count);
    g.descriptors = g.keypoint_scores + g.keypoints_count;
    assert_int_equal((char *)(g.descriptors + (size_t)g.descriptors_count * LNS_DESCRIPTOR_SIZE) - g.bytes, size);
    return g;
}

/* Descriptors of some cells alone are the same bits. */
static void check_some_cells(const lns_network *network, lns_network_scratch *scratch, const float *map) {
    static const uint16_t cells[] = {0, 1, 2, 7, 79, 80, 81, 82, 83, 84, 85, 86, 87, 500, 2401, 4798, 4799};
    enum { COUNT = sizeof cells / sizeof *cells };
    for (size_t count = 0; count <= COUNT; count++) {
        /* What was there must not come from before. */
        float *some = (float *)(uintptr_t)lns_network_describe(network, scratch, cells, 0);
        memset(some, 0xff, MAP_SIZE * sizeof *some);
        assert_ptr_equal(lns_network_describe(network, scratch, cells + COUNT - count, count), some);
        for (size_t i = COUNT - count; i < COUNT; i++)
            assert_memory_equal(some + (size_t)cells[i] * LNS_DESCRIPTOR_SIZE,
                                map + (size_t)cells[i] * LNS_DESCRIPTOR_SIZE, LNS_DESCRIPTOR_SIZE * sizeof *map);
    }
}

/* Runs the network once; the maps are the caller's. */
static void run(lns_cpu_level level, lns_precision precision, int threads, float *scores, float *map) {
    static uint8_t frame[LNS_FRAME_PIXELS];
    synthetic_frame(frame);
    lns_superpoint_weights *weights = synthetic_weights_make();
    lns_thread_pool *pool;
    lns_network *network;
    lns_network_scratch *scratch;
    assert_int_equal(lns_thread_pool_create(threads, &pool), LNS_OK);
    assert_int_equal(lns_network_create(weights, level, precision, pool, &network), LNS_OK);
    synthetic_weights_free(weights);
    assert_int_equal(lns_network_scratch_create(network, &scratch), LNS_OK);
    /* Without descriptors first: what a run leaves in the scratch memory must not matter to the next. */
    memcpy(scores, lns_network_run(network, scratch, frame, 0), LNS_FRAME_PIXELS * sizeof *scores);
    assert_memory_equal(scores, lns_network_run(network, scratch, frame, 1), LNS_FRAME_PIXELS * sizeof *scores);
    memcpy(map, lns_network_describe(network, scratch, NULL, 0), MAP_SIZE * sizeof *map);
    check_some_cells(network, scratch, map);
    lns_network_scratch_destroy(&scratch);
    lns_network_destroy(&network);
    lns_thread_pool_destroy(&pool);
}

/* Not fmax(): gcc 12 for arm64 fails with an internal error on loops of it. */
static double larger(double a, double b) {
    return a > b ? a : b;
}

static double worst_difference(const float *a, const float *b, size_t count) {
    double worst = 0;
    for (size_t i = 0; i < count; i++)
        worst = larger(worst, fabs((double)a[i] - b[i]));
    return worst;
}

static void check_maps(const golden *g, const char *name, const float *scores, const float *map, double allowed) {
    double score_error = 0, map_error = 0;
    for (size_t i = 0; i < g->scores_count; i++)
        score_error = larger(score_error, fabs((double)g->scores[i] - scores[i * g->score_step]));
    for (size_t j = 0; j < g->cells_count; j++)
        for (size_t k = 0; k < 64; k++)
            map_error = larger(map_error, fabs((double)g->cells[64 * j + k] -
                                             map[j * g->cell_step * LNS_DESCRIPTOR_SIZE + j % 4 + 4 * k]));
    print_message("  %-6s scores within %.2e, descriptor map within %.2e\n", name, score_error, map_error);
    assert_true(score_error < allowed && map_error < allowed);
}

static int by_pixel(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void check_keypoints(const golden *g, const float *scores, const float *map) {
    const lns_selection_rules rules = {1024, 0.005f, 4, 4};
    lns_selection found;
    assert_int_equal(lns_select_keypoints(scores, &rules, &found), LNS_OK);
    assert_int_equal(found.count, g->keypoints_count);
    assert_true(worst_difference(found.scores, g->keypoint_scores, found.count) < 2e-5);
    float descriptor[LNS_DESCRIPTOR_SIZE];
    for (size_t i = 0; i < g->descriptors_count; i++) {
        lns_sample_descriptors(map, &g->keypoints[i], 1, descriptor);
        assert_true(worst_difference(descriptor, g->descriptors + i * LNS_DESCRIPTOR_SIZE, LNS_DESCRIPTOR_SIZE) <
                    2e-5);
    }
    /* The same points; nearly equal scores may have changed places. */
    uint32_t *expected = malloc(found.count * sizeof *expected);
    memcpy(expected, g->keypoints, found.count * sizeof *expected);
    qsort(expected, found.count, sizeof *expected, by_pixel);
    qsort(found.pixels, found.count, sizeof *found.pixels, by_pixel);
    assert_memory_equal(expected, found.pixels, found.count * sizeof *expected);
    free(expected);
    lns_selection_free(&found);
}

static void network_equals_pytorch_for_any_threads(void **state) {
    golden g = read_golden(*state);
    float *scores = malloc(LNS_FRAME_PIXELS * sizeof *scores), *map = malloc(MAP_SIZE * sizeof *map);
    float *other_scores = malloc(LNS_FRAME_PIXELS * sizeof *scores), *other_map = malloc(MAP_SIZE * sizeof *map);
    static const int threads[] = {3, 2, 8};
    for (int level = LNS_CPU_C; level <= (int)lns_cpu_best_level(); level++) {
        run((lns_cpu_level)level, LNS_PRECISION_FP32, 1, scores, map);
        check_maps(&g, lns_cpu_level_name((lns_cpu_level)level), scores, map, 2e-5);
        check_keypoints(&g, scores, map);
        /* The work is shared out above the kernels: the slow set needs no more than one other number. */
        const size_t others = level == LNS_CPU_C ? 1 : sizeof threads / sizeof *threads;
        for (size_t i = 0; i < others; i++) {
            run((lns_cpu_level)level, LNS_PRECISION_FP32, threads[i], other_scores, other_map);
            assert_memory_equal(scores, other_scores, LNS_FRAME_PIXELS * sizeof *scores);
            assert_memory_equal(map, other_map, MAP_SIZE * sizeof *map);
        }
    }
    free(scores);
    free(map);
    free(other_scores);
    free(other_map);
    free(g.bytes);
}

/* One picture and random weights: tests/accuracy/check_bf16.py has the bounds that count. */
static void bf16_is_near_and_the_same_for_any_threads(void **state) {
    const lns_cpu_level level = lns_cpu_best_level();
    if (!lns_cpu_has_bf16()) {
        print_message("SKIP: this CPU has no AVX512_BF16, the network in bf16 was not tested\n");
        skip();
    }
    golden g = read_golden(*state);
    float *scores = malloc(LNS_FRAME_PIXELS * sizeof *scores), *map = malloc(MAP_SIZE * sizeof *map);
    float *other_scores = malloc(LNS_FRAME_PIXELS * sizeof *scores), *other_map = malloc(MAP_SIZE * sizeof *map);
    run(level, LNS_PRECISION_BF16, 1, scores, map);
    check_maps(&g, "bf16", scores, map, 1e-2);
    static const int threads[] = {2, 3, 8};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        run(level, LNS_PRECISION_BF16, threads[i], other_scores, other_map);
        assert_memory_equal(scores, other_scores, LNS_FRAME_PIXELS * sizeof *scores);
        assert_memory_equal(map, other_map, MAP_SIZE * sizeof *map);
    }
    free(scores);
    free(map);
    free(other_scores);
    free(other_map);
    free(g.bytes);
}

static void bf16_is_refused_without_its_kernels(void **state) {
    (void)state;
    lns_thread_pool *pool;
    lns_network *network;
    assert_int_equal(lns_thread_pool_create(1, &pool), LNS_OK);
    lns_superpoint_weights *weights = synthetic_weights_make();
    assert_int_equal(lns_network_create(weights, LNS_CPU_C, LNS_PRECISION_BF16, pool, &network), LNS_ERROR_UNSUPPORTED);
    assert_null(network);
    assert_non_null(strstr(lns_error_message(), "precision bf16 needs"));
    synthetic_weights_free(weights);
    lns_thread_pool_destroy(&pool);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: test_network NETWORK.BIN\n");
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(network_equals_pytorch_for_any_threads, argv[1]),
        cmocka_unit_test_prestate(bf16_is_near_and_the_same_for_any_threads, argv[1]),
        cmocka_unit_test(bf16_is_refused_without_its_kernels),
    };
    return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
