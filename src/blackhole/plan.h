/* SPDX-License-Identifier: Apache-2.0 */
/* The network over a grid of tiles: what lies where in the L1 of each, and the program that each runs.
 *
 * The frame is cut into blocks of 40 x 64 pixels, one for each tile: 12 x 10 tiles for 480 x 640. Every layer computes
 * the block's own pixels; before the next layer, each tile fetches the ring of pixels around its block from its
 * neighbours. */
#ifndef LENSING_BLACKHOLE_PLAN_H
#define LENSING_BLACKHOLE_PLAN_H

#include <stddef.h>

#include "blackhole/tile.h"
#include "weights/superpoint_weights.h"

#define LNS_BLACKHOLE_BLOCK_WIDTH 64
#define LNS_BLACKHOLE_BLOCK_HEIGHT 40
#define LNS_BLACKHOLE_CELLS_X 8 /* cells of 8 x 8 pixels in a block */
#define LNS_BLACKHOLE_CELLS_Y 5
#define LNS_BLACKHOLE_CELLS (LNS_BLACKHOLE_CELLS_X * LNS_BLACKHOLE_CELLS_Y)

/* Most columns of tiles, down the frame: x = 1..7, 10..14; and most rows, across it: y = 2..11. */
typedef struct lns_blackhole_grid {
    int down, across; /* 1..12 and 1..10 blocks */
} lns_blackhole_grid;

/* The tile that has block (down, across). */
lns_blackhole_tile lns_blackhole_block_tile(int down, int across);
/* All tiles of a grid. */
lns_blackhole_tiles lns_blackhole_grid_tiles(lns_blackhole_grid grid);

/* ---- Memory of the host ----------------------------------------------------------------------------- */

typedef struct lns_blackhole_host_layout {
    size_t frame;              /* row by row */
    size_t scores, scores_row; /* float32, as the frame */
    size_t descriptors;        /* for each block, row by row: [256 / 16 channels][cell][16 channels] in bfloat16 */
    size_t lists;              /* for each block LNS_BH_LISTS lists of LNS_BLACKHOLE_LIST_BYTES */
    size_t done;               /* a word: the number of the last request that all tiles have done */
    size_t size;
} lns_blackhole_host_layout;

lns_blackhole_host_layout lns_blackhole_host_layout_of(lns_blackhole_grid grid);
#define LNS_BLACKHOLE_DESCRIPTOR_BYTES ((size_t)LNS_BLACKHOLE_CELLS * LNS_DESCRIPTOR_SIZE * sizeof(uint16_t))

/* A list of keypoints has room for all pixels of a core's rows: of a tie, all are kept. */
#define LNS_BLACKHOLE_LIST_ROWS ((LNS_BLACKHOLE_BLOCK_HEIGHT + LNS_BH_LISTS - 1) / LNS_BH_LISTS)
#define LNS_BLACKHOLE_LIST_BYTES                                                                                       \
    (LNS_BH_LIST_HEADER + LNS_BLACKHOLE_LIST_ROWS * LNS_BLACKHOLE_BLOCK_WIDTH * sizeof(lns_bh_keypoint))

/* ---- Weights ---------------------------------------------------------------------------------------- */

/* Weights that stay in L1, and those of the last layers, which do not fit and are kept in the card's DRAM. */
typedef struct lns_blackhole_packed_weights {
    uint8_t *resident; /* for L1 address resident_at of every tile */
    size_t resident_size;
    uint32_t resident_at;
    uint8_t *streamed; /* for the memory of LNS_BLACKHOLE_DRAM_X, _Y, from address 0 on */
    size_t streamed_size;
} lns_blackhole_packed_weights;

#define LNS_BLACKHOLE_DRAM_X 17
#define LNS_BLACKHOLE_DRAM_Y 12

lns_status lns_blackhole_pack_network(const lns_superpoint_weights *weights, lns_blackhole_packed_weights *packed);
void lns_blackhole_packed_weights_free(lns_blackhole_packed_weights *packed);

/* ---- Programs --------------------------------------------------------------------------------------- */

/* What the host writes once into all tiles, beside weights: the plane of ones behind the planes of a layer. */
typedef struct lns_blackhole_ones {
    uint32_t at[8]; /* L1 addresses */
} lns_blackhole_ones;
#define LNS_BLACKHOLE_ONES_BYTES ((size_t)LNS_BH_JOB_PIXELS * LNS_BH_PIXEL_BYTES)
lns_blackhole_ones lns_blackhole_ones_places(void);

/* The program of a block, as it lies at L1 address LNS_BH_PROGRAM. Host memory is at `host` of the PCIe tile.
 * LNS_ERROR_UNSUPPORTED: it does not fit. */
typedef struct lns_blackhole_program {
    size_t size;
    uint8_t bytes[LNS_BH_PROGRAM_END - LNS_BH_PROGRAM];
} lns_blackhole_program;

lns_status lns_blackhole_make_program(lns_blackhole_grid grid, int down, int across, uint64_t host,
                                      lns_blackhole_program *program);

#endif
