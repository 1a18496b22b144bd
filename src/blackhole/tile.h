/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles that run the resident program: starting them, and having them do a request. */
#ifndef LENSING_BLACKHOLE_TILE_H
#define LENSING_BLACKHOLE_TILE_H

#include "blackhole/program.h"
#include "blackhole/transport.h"

/* Tensix tiles from `first` to `last`, both included. */
typedef struct lns_blackhole_tiles {
    lns_blackhole_tile first, last;
} lns_blackhole_tiles;

/* Goes to the next tile of the rectangle, row by row, without the columns that have no Tensix tiles; returns 0 after
 * the last one. Begin with tile = tiles.first. */
int lns_blackhole_next_tile(lns_blackhole_tiles tiles, lns_blackhole_tile *tile);

/* Stops all cores of the tiles. */
lns_status lns_blackhole_stop_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles);

/* Stops the tiles, writes the resident program into them and starts it. Afterwards they wait for requests; the number
 * of the last one is 0. LNS_ERROR_SYSTEM: a tile was not ready after `timeout_ms`; the text names it. */
lns_status lns_blackhole_start_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, double timeout_ms);

/* Rings all tiles at once with request `request`, one more than the last, for the program at L1 address `program`. */
lns_status lns_blackhole_ring_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint32_t program,
                                    uint32_t request);

/* Waits until each of the tiles has run it, by asking them one after the other. LNS_ERROR_SYSTEM: a tile was not done
 * after `timeout_ms`, or met a step that it does not know. */
lns_status lns_blackhole_wait_for_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint32_t request,
                                        double timeout_ms);

/* Steps of the simulator between two looks at what is waited for. */
#define LNS_BLACKHOLE_IDLE_STEPS 100

#endif
