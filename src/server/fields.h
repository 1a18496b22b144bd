/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks for, from the body of /predict or the query of /predict_raw and /predict_plane. Values are taken
 * and refused as the old server's pydantic did ("lax mode": "5", 5.0 and true are integers), and all that is wrong is
 * told at once. */
#ifndef LENSING_SERVER_FIELDS_H
#define LENSING_SERVER_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "json_reader.h"
#include "query.h"

typedef struct predict_fields {
    int32_t max_keypoints;     /* -1: all, else 0 to 307200 */
    double keypoint_threshold; /* 0 to 1; -0.0 is kept */
    int32_t nms_radius;        /* 0 to 32 */
    bool return_descriptors;
    int32_t height, width; /* 1 to 8192; of a plane only */
    char *image;           /* of a body only: base64, not yet looked at, inside the body or the document */
    size_t image_size;
} predict_fields;

/* Both return 0, or the HTTP status of an error whose body is then in `error`: 400, or 500 when there is no memory.
 * Then `error` may have failed, too. */

/* Reads the body of /predict; `is_json` says whether its Content-Type is that of JSON. `document` must be freed
 * whatever the result, and not before the image is decoded. */
int fields_from_body(json_document *document, char *body, size_t size, bool is_json, predict_fields *fields,
                     text_buffer *error);

/* `is_plane`: height and width are fields, and required. */
int fields_from_query(const query_string *query, bool is_plane, predict_fields *fields, text_buffer *error);

/* Whether a Content-Type, NULL if there is none, is application/json or application/...+json. */
bool content_type_is_json(const char *content_type);

#endif
