/* SPDX-License-Identifier: Apache-2.0 */
/* Making results. */
#ifndef LENSING_SUPERPOINT_RESULT_H
#define LENSING_SUPERPOINT_RESULT_H

#include <stddef.h>

#include <lensing/features.h>
#include <lensing/status.h>

/* A result in one block of memory with room for `count` keypoints, and copies of both texts, which may be NULL. The
 * arrays are writable until it is handed out. */
typedef struct lns_result_arrays {
    float *keypoints, *network_keypoints, *scores, *descriptors;
} lns_result_arrays;
lns_status lns_result_create(size_t count, int with_descriptors, const char *weights, const char *license,
                             lns_features **features, lns_result_arrays *arrays);

#endif
