/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel sets that this CPU can run against the C functions, which decoding is compared with Pillow through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/chroma.h"
#include "image/to_plane.h"
#include "image/upsample.h"

enum { LONGEST = 200, GUARD = 8 };

static uint8_t random_byte(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    /* Often an extreme. */
    return state >> 30 == 0 ? 0 : state >> 30 == 1 ? 255 : (uint8_t)(state >> 16);
}

static void fill(uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = random_byte();
}

static void every_pair_of_y_and_cr(void **state) {
    (void)state;
    for (int level = 0; level <= (int)lns_cpu_best_level(); level++) {
        const lns_chroma_kernels *kernels = lns_chroma_kernels_for((lns_cpu_level)level);
        for (int cr = 0; cr < 256; cr++) {
            uint8_t row[256], expected[256], same[256];
            for (int y = 0; y < 256; y++) {
                /* R = Y + 1.402 (Cr - 128) with 16 bits of fraction, as libjpeg has it. */
                const int red = y + ((91881 * (cr - 128) + 32768) >> 16);
                expected[y] = (uint8_t)(red < 0 ? 0 : red > 255 ? 255 : red);
                row[y] = (uint8_t)y;
                same[y] = (uint8_t)cr;
            }
            kernels->ycc_to_plane(row, same, 256);
            assert_memory_equal(row, expected, 256);
        }
    }
}

static void every_length_of_a_row(void **state) {
    (void)state;
    for (int level = 0; level <= (int)lns_cpu_best_level(); level++) {
        const lns_chroma_kernels *kernels = lns_chroma_kernels_for((lns_cpu_level)level);
        for (size_t count = 0; count <= LONGEST; count++) {
            uint8_t row[LONGEST + GUARD], expected[LONGEST + GUARD], cr[LONGEST];
            fill(row, sizeof row);
            fill(cr, sizeof cr);
            memcpy(expected, row, sizeof row);
            lns_ycc_to_plane(expected, cr, count);
            kernels->ycc_to_plane(row, cr, count);
            assert_memory_equal(row, expected, sizeof row);
        }
    }
}

static void every_width_is_upsampled(void **state) {
    (void)state;
    for (int level = 0; level <= (int)lns_cpu_best_level(); level++) {
        const lns_chroma_kernels *kernels = lns_chroma_kernels_for((lns_cpu_level)level);
        for (uint32_t width = 1; width <= LONGEST; width++) {
            uint8_t row[2 * LONGEST + GUARD] = {0}, expected[2 * LONGEST + GUARD] = {0};
            uint8_t samples[LONGEST], near[LONGEST];
            uint16_t *sums = malloc(lns_upsample_scratch(width) * sizeof *sums);
            assert_non_null(sums);
            fill(samples, sizeof samples);
            fill(near, sizeof near);
            for (int bias = 7; bias <= 8; bias++) {
                lns_upsample_both(expected, samples, near, width, bias, sums);
                kernels->upsample_both(row, samples, near, width, bias, sums);
                assert_memory_equal(row, expected, sizeof row);
            }
            free(sums);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_y_and_cr),
        cmocka_unit_test(every_length_of_a_row),
        cmocka_unit_test(every_width_is_upsampled),
    };
    return cmocka_run_group_tests_name("chroma", tests, NULL, NULL);
}
