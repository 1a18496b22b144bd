/* SPDX-License-Identifier: Apache-2.0 */
/* Doubling of chroma rows, equal bit for bit to the "fancy upsampling" of libjpeg and libwebp. */
#ifndef LENSING_IMAGE_UPSAMPLE_H
#define LENSING_IMAGE_UPSAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Numbers of scratch that lns_upsample_both() needs for `width` samples. */
size_t lns_upsample_scratch(uint32_t width);

/* Each writes a row; `width` is the number of samples that there are. All but `tall` write 2 x width. */
void lns_upsample_double(uint8_t *row, const uint8_t *samples, uint32_t width);
/* width >= 2 */
void lns_upsample_wide(uint8_t *row, const uint8_t *samples, uint32_t width);
/* `near` is the row of samples that lies on the other side of the wanted row. `bias` is 1 for the upper of the two rows
 * that come from `samples`, 2 for the lower. */
void lns_upsample_tall(uint8_t *row, const uint8_t *samples, const uint8_t *near, uint32_t width, int bias);
/* `right_bias` rounds the right one of two pixels: 7 as libjpeg, 8 as libwebp. */
void lns_upsample_both(uint8_t *row, const uint8_t *samples, const uint8_t *near, uint32_t width, int right_bias,
                       uint16_t *scratch);

#endif
