/* SPDX-License-Identifier: Apache-2.0 */
/* From the maps of the network to keypoints. */
#ifndef LENSING_SUPERPOINT_POSTPROCESS_H
#define LENSING_SUPERPOINT_POSTPROCESS_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/features.h>
#include <lensing/status.h>

#define LNS_FRAME_PIXELS (LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT)
#define LNS_CELL 8 /* pixels of the frame for one descriptor, each way */
#define LNS_CELLS_X (LNS_NETWORK_WIDTH / LNS_CELL)
#define LNS_CELLS_Y (LNS_NETWORK_HEIGHT / LNS_CELL)

/* Which pixels become keypoints; the ranges are those of lns_detect_options and are checked by the caller. */
typedef struct lns_selection_rules {
    int32_t max_keypoints;
    float threshold;
    int32_t nms_radius;
    int32_t border;
} lns_selection_rules;

/* Keypoints in order of falling score, equal scores in row-major order. */
typedef struct lns_selection {
    size_t count;
    uint32_t *pixels; /* y * LNS_NETWORK_WIDTH + x */
    float *scores;
} lns_selection;

/* Non-maximum suppression, threshold, border and top-k on a 480 x 640 score map, which is not changed.
 * Source of the rules: single-pass max-pool suppression `s == maxpool(s)`, window 2 r + 1, outside = -inf. */
lns_status lns_select_keypoints(const float *scores, const lns_selection_rules *rules, lns_selection *selection);
void lns_selection_free(lns_selection *selection);

/* Bilinear samples of a 60 x 80 x 256 descriptor map at pixels of the frame, each scaled to length 1.
 * descriptors: count x 256. */
void lns_sample_descriptors(const float *map, const uint32_t *pixels, size_t count, float *descriptors);

#endif
