/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of /predict_raw and /predict_plane. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../src/server/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const query_string *query, bool is_plane) {
    predict_fields fields;
    text_buffer text = {0};
    json_document document = {0};
    const int status = fields_from_query(query, is_plane, &fields, &text);
    const bool good = fields.max_keypoints >= -1 && fields.max_keypoints <= 307200 && fields.nms_radius >= 0 &&
                      fields.nms_radius <= 32 && fields.keypoint_threshold >= 0 && fields.keypoint_threshold <= 1;
    const bool good_plane =
        !is_plane || (fields.height >= 1 && fields.height <= 8192 && fields.width >= 1 && fields.width <= 8192);
    if (status == 0 ? !good || !good_plane
                    : status != 400 || json_document_read(&document, text.data, text.size) != JSON_READ)
        abort();
    json_document_free(&document);
    text_buffer_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    query_string query;
    if (!query_read(&query, (const char *)data, size))
        abort();
    check(&query, false);
    check(&query, true);
    query_free(&query);
    return 0;
}
