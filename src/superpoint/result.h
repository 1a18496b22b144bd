/* SPDX-License-Identifier: Apache-2.0 */
/* Making results. */
#ifndef LENSING_SUPERPOINT_RESULT_H
#define LENSING_SUPERPOINT_RESULT_H

#include <stddef.h>

#include <lensing/features.h>
#include <lensing/status.h>

/* A result in one block of memory with room for `count` keypoints. The arrays are writable until it is handed out. */
typedef struct lns_result_arrays {
    float *keypoints, *network_keypoints, *scores, *descriptors;
} lns_result_arrays;
lns_status lns_result_create(size_t count, int with_descriptors, lns_features **features, lns_result_arrays *arrays);

#endif
