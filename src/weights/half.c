/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/half.h"

#include <stdint.h>
#include <string.h>

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t read16(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

static float half(uint32_t bits) {
    const uint32_t sign = (bits & 0x8000u) << 16;
    const uint32_t exponent = bits >> 10 & 0x1fu;
    const uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0x1f) /* infinity, or not a number */
        return from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* zero, or below the normal numbers: fraction x 2^-24, which a float holds exactly */
        const float size = (float)fraction * 0x1p-24f;
        return sign ? -size : size;
    }
    return from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

void lns_half_to_float(const void *bytes, float *values, size_t count) {
    const unsigned char *source = bytes;
    for (size_t i = 0; i < count; i++)
        values[i] = half(read16(source + 2 * i));
}

void lns_bfloat_to_float(const void *bytes, float *values, size_t count) {
    const unsigned char *source = bytes;
    for (size_t i = 0; i < count; i++)
        values[i] = from_bits(read16(source + 2 * i) << 16);
}

void lns_little_endian_to_float(const void *bytes, float *values, size_t count) {
    const unsigned char *source = bytes;
    for (size_t i = 0; i < count; i++)
        values[i] = from_bits(read16(source + 4 * i) | read16(source + 4 * i + 2) << 16);
}
