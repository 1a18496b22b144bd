/* SPDX-License-Identifier: Apache-2.0 */
#include "detail.h"

#include "error_body.h"

char *detail_body(const char *detail, size_t *size) {
    text_buffer body = {0};
    error_body_text(&body, "%s", detail);
    if (body.failed) {
        text_buffer_free(&body);
        return NULL;
    }
    *size = body.size;
    return body.data;
}
