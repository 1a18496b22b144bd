/* SPDX-License-Identifier: Apache-2.0 */
/* What the host knows about the tiles: where they are, how large, and how cores are stopped. */
#ifndef LENSING_BLACKHOLE_GRID_H
#define LENSING_BLACKHOLE_GRID_H

#include <stdint.h>

#include "blackhole/transport.h"

/* The first Tensix tile, in translated coordinates. */
#define LNS_TILE_FIRST_X 1
#define LNS_TILE_FIRST_Y 2

/* L1, from address 0 (tt-umd, blackhole_implementation.hpp). */
#define LNS_TILE_L1_SIZE (1536u << 10)

/* RISCV_DEBUG_REG_SOFT_RESET_0, and the bits of all five cores: BRISC 11, TRISCs 12-14, NCRISC 18 (tt-umd,
 * blackhole_implementation.hpp). */
#define LNS_TILE_SOFT_RESET 0xFFB121B0u
#define LNS_TILE_ALL_IN_RESET 0x47800u

/* Bit of core B in that register; it begins at address 0. */
#define LNS_TILE_CORE_B 0x800u

/* NOC_ID_LOGICAL of the first NoC: the translated x in bits 0-5, y in bits 6-11 (tt-umd,
 * blackhole_implementation.hpp, NOC_ID_TRANSLATED_OFFSET). */
#define LNS_TILE_NOC_ID 0xFFB20148u

/* DRAM, in translated coordinates: 8 memories of 4 GiB, each behind 3 tiles. All in the first column are there even
 * when one of the 8 is not (tt-umd, blackhole_coordinate_manager.cpp). */
#define LNS_DRAM_X 17
#define LNS_DRAM_Y 12
#define LNS_DRAM_COLUMNS 2
#define LNS_DRAM_ROWS 12

/* The processor that manages the card (tt-kmd, blackhole.c). */
#define LNS_ARC_X 8
#define LNS_ARC_Y 0

static inline int lns_tile_is_tensix(lns_blackhole_tile tile) {
    return tile.y >= LNS_TILE_FIRST_Y && tile.y < LNS_TILE_FIRST_Y + LNS_BLACKHOLE_ROWS && tile.x != LNS_ARC_X &&
           tile.x != LNS_ARC_X + 1;
}

static inline int lns_tile_is_dram(lns_blackhole_tile tile) {
    return tile.x >= LNS_DRAM_X && tile.x < LNS_DRAM_X + LNS_DRAM_COLUMNS && tile.y >= LNS_DRAM_Y &&
           tile.y < LNS_DRAM_Y + LNS_DRAM_ROWS;
}

/* The x of Tensix column 0, 1, ...: 1 to 7, and on from 10. */
static inline uint8_t lns_tile_column_x(int column) {
    return (uint8_t)(column < 7 ? LNS_TILE_FIRST_X + column : LNS_TILE_FIRST_X + 2 + column);
}

/* The tile in the corner opposite to the first one. */
static inline lns_blackhole_tile lns_tile_last(const lns_blackhole_transport *transport) {
    return (lns_blackhole_tile){lns_tile_column_x(transport->columns - 1), LNS_TILE_FIRST_Y + LNS_BLACKHOLE_ROWS - 1};
}

#endif
