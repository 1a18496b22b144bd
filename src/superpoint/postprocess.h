/* SPDX-License-Identifier: Apache-2.0 */
/* From the maps of the network to keypoints. */
#ifndef LENSING_SUPERPOINT_POSTPROCESS_H
#define LENSING_SUPERPOINT_POSTPROCESS_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/features.h>
#include <lensing/status.h>

#include "base/threads.h"

#define LNS_FRAME_PIXELS (LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT)
#define LNS_CELL 8 /* pixels of the frame for one descriptor, each way */
#define LNS_CELLS_X (LNS_NETWORK_WIDTH / LNS_CELL)
#define LNS_CELLS_Y (LNS_NETWORK_HEIGHT / LNS_CELL)

/* Which pixels become keypoints; the ranges are those of lns_detect_options and are checked by the caller. */
typedef struct lns_selection_rules {
    int32_t max_keypoints; /* -1 = all, 0 = none */
    float threshold;       /* >= 0; a score must be above it */
    int32_t nms_radius;    /* 0..LNS_NMS_RADIUS_LIMIT; 0 = no suppression */
    int32_t border;        /* >= 0: so many pixels at each side cannot be keypoints, but suppress others */
} lns_selection_rules;

/* Keypoints in order of falling score, equal scores in row-major order. */
typedef struct lns_selection {
    size_t count;
    uint32_t *pixels; /* y * LNS_NETWORK_WIDTH + x; not NULL, also for no keypoints */
    float *scores;
} lns_selection;

/* Non-maximum suppression, threshold, border and top-k on a 480 x 640 score map, which is not changed.
 *
 * A pixel is kept if its score equals the maximum of the window of (2 r + 1)^2 pixels around it (outside counts as
 * nothing), so that all of a tie are kept, and is above the threshold. Of more than max_keypoints the highest scores
 * are kept; of equal scores at that cut, the first in row-major order. A score that is not a number is never a keypoint
 * and suppresses nothing. On an error the selection is empty. */
lns_status lns_select_keypoints(const float *scores, const lns_selection_rules *rules, lns_selection *selection);

/* A keypoint that was found elsewhere: suppression, threshold and border have been applied. */
typedef struct lns_scored_pixel {
    uint32_t pixel; /* y * LNS_NETWORK_WIDTH + x */
    float score;    /* > 0 */
} lns_scored_pixel;

/* Puts such keypoints, which come in any order, into the order of a selection, and keeps at most max_keypoints (-1 =
 * all) of them, as lns_select_keypoints() does. */
lns_status lns_order_keypoints(const lns_scored_pixel *found, size_t count, int32_t max_keypoints,
                               lns_selection *selection);

/* Frees the arrays and empties the selection. */
void lns_selection_free(lns_selection *selection);

#define LNS_CELLS (LNS_CELLS_X * LNS_CELLS_Y)

/* Lists the cells of the descriptor map that lns_sample_descriptors() reads for these pixels, rising, in `cells`, which
 * has room for LNS_CELLS. Returns how many there are. */
size_t lns_list_cells(const uint32_t *pixels, size_t count, uint16_t *cells);

/* Bilinear samples of a 60 x 80 x 256 descriptor map at pixels of the frame, each scaled to length 1. Pixel (x, y) is
 * at
 * ((x - 3.5) / 635.5 * 79, (y - 3.5) / 475.5 * 59) of the map; outside the map is zero. A sample of length below 1e-12
 * is divided by that. descriptors: count x 256. */
void lns_sample_descriptors(const float *map, const uint32_t *pixels, size_t count, float *descriptors);

/* The same of a map as a Blackhole card leaves it, see blackhole/cells.h; a cell whose length is below 1e-12 is divided
 * by that. Differs from lns_sample_descriptors() on the map of lns_blackhole_network_descriptors() by roundings of
 * float32 only. The threads of the pool share the keypoints; the result is the same however many they are. */
void lns_sample_blocks(lns_thread_pool *pool, const uint16_t *blocks, const uint32_t *pixels, size_t count,
                       float *descriptors);

#endif
