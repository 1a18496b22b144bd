/* SPDX-License-Identifier: Apache-2.0 */
#include "image/to_plane.h"

#include <string.h>

void lns_take_channel(uint8_t *row, const uint8_t *from, size_t count, size_t step) {
    switch (step) {
    case 1:
        memcpy(row, from, count);
        return;
    case 3: /* constant steps let the compiler use shuffles */
        for (size_t i = 0; i < count; i++)
            row[i] = from[3 * i];
        return;
    case 4:
        for (size_t i = 0; i < count; i++)
            row[i] = from[4 * i];
        return;
    default:
        for (size_t i = 0; i < count; i++)
            row[i] = from[step * i];
    }
}

void lns_unpack_samples(uint8_t *row, const uint8_t *packed, size_t count, int bits) {
    switch (bits) {
    case 1:
        for (size_t i = 0; i < count; i++)
            row[i] = (uint8_t)(packed[i / 8] >> (7 - i % 8) & 1);
        return;
    case 2:
        for (size_t i = 0; i < count; i++)
            row[i] = (uint8_t)(packed[i / 4] >> (6 - 2 * (i % 4)) & 3);
        return;
    case 4:
        for (size_t i = 0; i < count; i++)
            row[i] = (uint8_t)(packed[i / 2] >> (4 - 4 * (i % 2)) & 15);
        return;
    default:
        memcpy(row, packed, count);
    }
}

void lns_map_samples(uint8_t *row, size_t count, const uint8_t table[256]) {
    for (size_t i = 0; i < count; i++)
        row[i] = table[row[i]];
}

void lns_gray_table(uint8_t table[256], int bits) {
    const int highest = (1 << bits) - 1;
    memset(table, 0, 256);
    for (int i = 0; i <= highest; i++)
        table[i] = (uint8_t)(i * 255 / highest);
}

/* R = light - ink * light / 255, rounded, where `light` is what the black ink lets through. */
static inline uint8_t ink_to_red(unsigned ink, unsigned light) {
    const unsigned product = ink * light + 128;
    return (uint8_t)(light - ((product + (product >> 8)) >> 8));
}

void lns_inks_to_plane(uint8_t *row, const uint8_t *cyan, const uint8_t *black, size_t count, size_t step) {
    for (size_t i = 0; i < count; i++)
        row[i] = ink_to_red(cyan[step * i], 255u - black[step * i]);
}

void lns_inverse_inks_to_plane(uint8_t *row, const uint8_t *cyan, const uint8_t *black, size_t count, size_t step) {
    for (size_t i = 0; i < count; i++)
        row[i] = ink_to_red(255u - cyan[step * i], black[step * i]);
}

void lns_ycc_to_plane(uint8_t *row, const uint8_t *cr, size_t count) {
    /* R = Y + floor(1.402 * (Cr - 128) + 1/2), the factor as 91881 / 65536 = 1 + 26345 / 65536. In 16-bit steps, so
     * that it becomes one multiplication of high halves a lane: floor(x * 26345 / 256), then floor((that + 128) / 256),
     * which is floor((x * 26345 + 32768) / 65536). */
    for (size_t i = 0; i < count; i++) {
        const int16_t x = (int16_t)(cr[i] - 128);
        const int16_t scaled = (int16_t)(x * 256);
        const int16_t high = (int16_t)((scaled * 26345) >> 16);
        const int16_t sum = (int16_t)(row[i] + x + ((int16_t)(high + 128) >> 8));
        row[i] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
}

void lns_yv_to_plane(uint8_t *row, const uint8_t *v, size_t count) {
    /* 1.164 (Y - 16) + 1.596 (V - 128) with 6 bits of fraction. */
    for (size_t i = 0; i < count; i++) {
        const int sum = ((row[i] * 19077) >> 8) + ((v[i] * 26149) >> 8) - 14234;
        const int value = sum >> 6;
        row[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

void lns_unpremultiply_to_plane(uint8_t *row, const uint8_t *red, const uint8_t *alpha, size_t count, size_t step) {
    for (size_t i = 0; i < count; i++) {
        const unsigned divisor = alpha[step * i];
        const unsigned value = divisor > 0 ? red[step * i] * 255u / divisor : 0;
        row[i] = (uint8_t)(value < 255 ? value : 255);
    }
}
