/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in the shape of the server's answer. */
#ifndef LENSING_FEATURES_JSON_H
#define LENSING_FEATURES_JSON_H

#include <lensing/features.h>

#include "features/buffer.h"

/* What the object holds besides the keypoints. */
typedef struct lns_json_shape {
    const char *file; /* NULL: no "file" */
    int descriptors;
    int serving_path; /* not 0: add "serving_path", between "params" and "timing_ms" */
    int traced;       /* its members */
    int device_nms;
    int weights; /* not 0: add "weights", behind "timing_ms" */
} lns_json_shape;

lns_status lns_json_write(const lns_features *features, const lns_json_shape *shape, char **text, size_t *size);

/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, one for each part that could not have gone on.
 */
void lns_json_add_string(lns_buffer *out, const char *text);

#endif
