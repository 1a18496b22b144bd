/* SPDX-License-Identifier: Apache-2.0 */
#include "image/upsample.h"

/* Samples lie at the centres of the pixels that they stand for, so a pixel is a quarter of a sample's width away from
 * the centre of its own sample: it takes 3/4 of it and 1/4 of the neighbour on its side. In both directions that is
 * 9/16, 3/16, 3/16, 1/16. libjpeg alternates the rounding so that the mean
 * keeps its value. */

void lns_upsample_double(uint8_t *row, const uint8_t *samples, uint32_t width) {
    for (size_t i = 0; i < width; i++)
        row[2 * i] = row[2 * i + 1] = samples[i];
}

void lns_upsample_wide(uint8_t *restrict row, const uint8_t *restrict samples, uint32_t width) {
    const size_t last = width - 1;
    row[0] = samples[0];
    row[1] = (uint8_t)((3 * samples[0] + samples[1] + 2) >> 2);
    for (size_t i = 1; i < last; i++) {
        const uint16_t here = (uint16_t)(3 * samples[i]);
        row[2 * i] = (uint8_t)((uint16_t)(here + samples[i - 1] + 1) >> 2);
        row[2 * i + 1] = (uint8_t)((uint16_t)(here + samples[i + 1] + 2) >> 2);
    }
    row[2 * last] = (uint8_t)((3 * samples[last] + samples[last - 1] + 1) >> 2);
    row[2 * last + 1] = samples[last];
}

void lns_upsample_tall(uint8_t *restrict row, const uint8_t *restrict samples, const uint8_t *restrict near,
                       uint32_t width, int bias) {
    for (size_t i = 0; i < width; i++)
        row[i] = (uint8_t)((uint16_t)(3 * samples[i] + near[i] + bias) >> 2);
}

size_t lns_upsample_scratch(uint32_t width) {
    return width;
}

void lns_upsample_both(uint8_t *restrict row, const uint8_t *restrict samples, const uint8_t *restrict near,
                       uint32_t width, int right_bias, uint16_t *restrict scratch) {
    const size_t last = width - 1;
    const uint16_t right = (uint16_t)right_bias;
    for (size_t i = 0; i < width; i++)
        scratch[i] = (uint16_t)(3 * samples[i] + near[i]);
    row[0] = (uint8_t)((4 * scratch[0] + 8) >> 4);
    if (last > 0) {
        row[1] = (uint8_t)((3 * scratch[0] + scratch[1] + right) >> 4);
        row[2 * last] = (uint8_t)((3 * scratch[last] + scratch[last - 1] + 8) >> 4);
    }
    for (size_t i = 1; i < last; i++) {
        const uint16_t here = (uint16_t)(3 * scratch[i]);
        row[2 * i] = (uint8_t)((uint16_t)(here + scratch[i - 1] + 8) >> 4);
        row[2 * i + 1] = (uint8_t)((uint16_t)(here + scratch[i + 1] + right) >> 4);
    }
    row[2 * last + 1] = (uint8_t)((4 * scratch[last] + right) >> 4);
}
