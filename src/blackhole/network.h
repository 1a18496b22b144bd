/* SPDX-License-Identifier: Apache-2.0 */
/* SuperPoint's network on the tiles of a card. */
#ifndef LENSING_BLACKHOLE_NETWORK_H
#define LENSING_BLACKHOLE_NETWORK_H

#include "blackhole/plan.h"

typedef struct lns_blackhole_network lns_blackhole_network;

/* Starts the tiles of `grid` and brings weights and programs to the card. The transport must live as long as the
 * network. 480 x 640 pixels are a grid of 12 x 10. */
lns_status lns_blackhole_network_open(lns_blackhole_transport *transport, const lns_superpoint_weights *weights,
                                      lns_blackhole_grid grid, lns_blackhole_network **network);

/* What is looked for on the card; see lns_selection_rules. */
typedef struct lns_blackhole_rules {
    uint32_t radius; /* 1..LNS_BH_LARGEST_RADIUS */
    float threshold; /* >= 0 */
    uint32_t border;
} lns_blackhole_rules;

/* Runs the network once. `frame`: 40 down x 64 across gray levels. `scores`: as many float32. `descriptors`: for each
 * cell of 8 x 8 pixels, row by row, LNS_DESCRIPTOR_SIZE float32 of length 1. Each of the two may be NULL. One call at a
 * time. After an error the card has to be opened anew. */
lns_status lns_blackhole_network_run(lns_blackhole_network *network, const uint8_t *frame, float *scores,
                                     float *descriptors);

/* The same, and finds keypoints: all that suppression, threshold and border leave, in no order. `keypoints` has room
 * for one of each pixel of the frame; without `rules` it is NULL. `with_cells`: descriptors are computed as well, and
 * left where lns_blackhole_network_cells() finds them. */
lns_status lns_blackhole_network_detect(lns_blackhole_network *network, const uint8_t *frame,
                                        const lns_blackhole_rules *rules, int with_cells, float *scores,
                                        lns_bh_keypoint *keypoints, size_t *count);

/* Descriptors of the last run as the card left them, see cells.h; they stay until the next run. */
const uint16_t *lns_blackhole_network_cells(const lns_blackhole_network *network);
/* The same as lns_blackhole_network_run() gives them. */
void lns_blackhole_network_descriptors(const lns_blackhole_network *network, float *descriptors);

/* Stops the tiles and frees the network; `*network` may be NULL and becomes it. */
void lns_blackhole_network_close(lns_blackhole_network **network);

#endif
