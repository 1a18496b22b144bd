/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of cells as the card leaves them in the host's memory: blocks of 5 x 8 cells, row by row, and of each
 * block [256 / 16 channels][cell][16 channels] in bfloat16, not scaled. */
#ifndef LENSING_BLACKHOLE_CELLS_H
#define LENSING_BLACKHOLE_CELLS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <lensing/features.h>

#include "blackhole/plan.h"

/* A cell in parts of 16 numbers, of a plane each, which lie so far from each other. */
enum {
    LNS_CELL_LANES = LNS_BH_CHANNELS,
    LNS_CELL_PARTS = LNS_DESCRIPTOR_SIZE / LNS_CELL_LANES,
    LNS_CELL_STRIDE = LNS_BLACKHOLE_CELLS * LNS_BH_CHANNELS
};

#define LNS_CELL_INLINE static inline __attribute__((always_inline))

/* Cell (x, y) of a map that has `across` blocks in a row; its first part. */
LNS_CELL_INLINE const uint16_t *lns_cell_at(const uint16_t *map, size_t across, size_t x, size_t y) {
    const size_t block = y / LNS_BLACKHOLE_CELLS_Y * across + x / LNS_BLACKHOLE_CELLS_X;
    const size_t cell = y % LNS_BLACKHOLE_CELLS_Y * LNS_BLACKHOLE_CELLS_X + x % LNS_BLACKHOLE_CELLS_X;
    return map + block * LNS_BLACKHOLE_CELLS * LNS_DESCRIPTOR_SIZE + cell * LNS_BH_CHANNELS;
}

LNS_CELL_INLINE float lns_cell_number(uint16_t bfloat16) {
    const uint32_t bits = (uint32_t)bfloat16 << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Has the processor bring a cell near. */
LNS_CELL_INLINE void lns_cell_prefetch(const uint16_t *cell) {
    for (int part = 0; part < LNS_CELL_PARTS; part++)
        __builtin_prefetch(cell + part * LNS_CELL_STRIDE);
}

/* 1 / length, from squares that have been added by lanes. A length below 1e-12 counts as that. */
LNS_CELL_INLINE float lns_cell_reciprocal(const float squares[LNS_CELL_LANES]) {
    float sum[4];
    for (int lane = 0; lane < 4; lane++)
        sum[lane] = (squares[lane] + squares[lane + 4]) + (squares[lane + 8] + squares[lane + 12]);
    const float length = sqrtf((sum[0] + sum[1]) + (sum[2] + sum[3]));
    return 1.0F / (length > 1e-12F ? length : 1e-12F);
}

/* What makes the length of a cell 1. */
LNS_CELL_INLINE float lns_cell_scale(const uint16_t *cell) {
    float squares[LNS_CELL_LANES] = {0};
    for (int part = 0; part < LNS_CELL_PARTS; part++)
        for (int lane = 0; lane < LNS_CELL_LANES; lane++) {
            const float number = lns_cell_number(cell[part * LNS_CELL_STRIDE + lane]);
            squares[lane] += number * number;
        }
    return lns_cell_reciprocal(squares);
}

#endif
