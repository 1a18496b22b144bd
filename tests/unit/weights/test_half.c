/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "half_golden.h"
#include "weights/half.h"

#define COUNT 65536

typedef void (*converter)(const void *bytes, float *values, size_t count);

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t hash(const float *values) {
    uint64_t result = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < COUNT; i++)
        for (int shift = 0; shift < 32; shift += 8)
            result = (result ^ (bits_of(values[i]) >> shift & 0xff)) * UINT64_C(0x100000001b3);
    return result;
}

/* Converts all 16-bit values, from an odd address. */
static void check(converter convert, const uint32_t *samples, uint64_t expected) {
    unsigned char *bytes = malloc(2 * COUNT + 1);
    float *values = malloc(COUNT * sizeof *values);
    for (size_t i = 0; i < COUNT; i++) {
        bytes[1 + 2 * i] = (unsigned char)(i & 0xff);
        bytes[2 + 2 * i] = (unsigned char)(i >> 8);
    }
    convert(bytes + 1, values, COUNT);
    for (size_t i = 0; i < COUNT; i += GOLDEN_STEP)
        assert_int_equal(bits_of(values[i]), samples[i / GOLDEN_STEP]);
    assert_true(hash(values) == expected);
    free(values);
    free(bytes);
}

static void every_half_is_exact(void **state) {
    (void)state;
    check(lns_half_to_float, half_samples, half_hash);
}

static void every_bfloat_is_exact(void **state) {
    (void)state;
    check(lns_bfloat_to_float, bfloat_samples, bfloat_hash);
}

static void floats_are_little_endian_and_unaligned(void **state) {
    (void)state;
    static const unsigned char bytes[] = {0xff, 0x00, 0x00, 0x80, 0x3f, 0xdb, 0x0f, 0x49, 0xc0};
    float values[2];
    lns_little_endian_to_float(bytes + 1, values, 2);
    assert_int_equal(bits_of(values[0]), 0x3f800000);
    assert_int_equal(bits_of(values[1]), 0xc0490fdb);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_is_exact),
        cmocka_unit_test(every_bfloat_is_exact),
        cmocka_unit_test(floats_are_little_endian_and_unaligned),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
