/* SPDX-License-Identifier: Apache-2.0 */
/* Channel 0 of Pillow's convert("RGB"), row by row. */
#ifndef LENSING_IMAGE_TO_PLANE_H
#define LENSING_IMAGE_TO_PLANE_H

#include <stddef.h>
#include <stdint.h>

/* Every `step`-th byte, from the first on: R of RGB, L of LA, the high byte of big-endian samples. */
void lns_take_channel(uint8_t *row, const uint8_t *from, size_t count, size_t step);

/* Samples of 1, 2, 4 or 8 bits, the first in the high bits of a byte, as numbers. */
void lns_unpack_samples(uint8_t *row, const uint8_t *packed, size_t count, int bits);

/* row[i] = table[row[i]]. */
void lns_map_samples(uint8_t *row, size_t count, const uint8_t table[256]);

/* Table that spreads samples of `bits` bits over 0..255. */
void lns_gray_table(uint8_t table[256], int bits);

/* R of inks, 255 is full ink. A pixel takes `step` bytes in both. */
void lns_inks_to_plane(uint8_t *row, const uint8_t *cyan, const uint8_t *black, size_t count, size_t step);

/* The same, 0 is full ink (as Adobe stores it in JPEG). */
void lns_inverse_inks_to_plane(uint8_t *row, const uint8_t *cyan, const uint8_t *black, size_t count, size_t step);

/* R of Y and Cr as libjpeg computes it, in place: row[i] = Y -> R. */
void lns_ycc_to_plane(uint8_t *row, const uint8_t *cr, size_t count);

/* R of Y and V as libwebp computes it (studio range), in place. */
void lns_yv_to_plane(uint8_t *row, const uint8_t *v, size_t count);

/* R of colour that was multiplied by alpha: undone, and clipped. */
void lns_unpremultiply_to_plane(uint8_t *row, const uint8_t *red, const uint8_t *alpha, size_t count, size_t step);

#endif
