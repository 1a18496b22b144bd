/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of /predict. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/server/base64.h"
#include "../../src/server/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *copy(const void *data, size_t size) {
    char *bytes = malloc(size > 0 ? size : 1);
    if (bytes == NULL)
        abort();
    if (size > 0)
        memcpy(bytes, data, size);
    return bytes;
}

/* Reads and writes; false if it is not JSON. */
static bool rewrite(const void *data, size_t size, text_buffer *text) {
    char *body = copy(data, size);
    json_document document;
    const json_result result = json_document_read(&document, body, size);
    if (result == JSON_READ)
        json_write_value(&document, document.nodes, text);
    if (result == JSON_INVALID && document.position > size)
        abort();
    json_document_free(&document);
    free(body);
    return result == JSON_READ;
}

/* What is written can be read, and after the first time (two halves of a surrogate pair may have come together) it is
 * written again as it was. */
static void check_writing(const uint8_t *data, size_t size) {
    text_buffer first = {0}, second = {0}, third = {0};
    if (rewrite(data, size, &first) &&
        (!rewrite(first.data, first.size, &second) || !rewrite(second.data, second.size, &third) ||
         second.size != third.size || memcmp(second.data, third.data, second.size) != 0))
        abort();
    text_buffer_free(&first);
    text_buffer_free(&second);
    text_buffer_free(&third);
}

static void check_fields(const uint8_t *data, size_t size) {
    char *body = copy(data, size);
    char error[BASE64_ERROR_SIZE];
    size_t image_size;
    json_document document;
    predict_fields fields;
    text_buffer text = {0}, again = {0};
    const int status = fields_from_body(&document, body, size, true, &fields, &text);
    if (status == 0) {
        if (fields.max_keypoints < -1 || fields.max_keypoints > 307200 || fields.nms_radius < 0 ||
            fields.nms_radius > 32 || !(fields.keypoint_threshold >= 0 && fields.keypoint_threshold <= 1))
            abort();
        if (base64_decode(fields.image, fields.image_size, fields.image, &image_size, error) &&
            image_size > base64_capacity(fields.image_size))
            abort();
    } else if (status != 400 || !rewrite(text.data, text.size, &again)) {
        abort();
    }
    text_buffer_free(&text);
    text_buffer_free(&again);
    json_document_free(&document);
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_writing(data, size);
    check_fields(data, size);
    return 0;
}
