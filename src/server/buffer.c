/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(text_buffer *buffer, size_t size) {
    if (size > SIZE_MAX / 2 - buffer->size)
        return false;
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : 256;
    while (capacity - buffer->size < size)
        capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (data == NULL)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void text_buffer_add(text_buffer *buffer, const void *bytes, size_t size) {
    if (buffer->failed || size == 0)
        return;
    if (buffer->capacity - buffer->size < size && !grow(buffer, size)) {
        buffer->failed = true;
        return;
    }
    memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
}

void text_buffer_add_text(text_buffer *buffer, const char *text) {
    text_buffer_add(buffer, text, strlen(text));
}

void text_buffer_add_integer(text_buffer *buffer, int64_t value) {
    char text[24];
    text_buffer_add(buffer, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void text_buffer_free(text_buffer *buffer) {
    free(buffer->data);
    *buffer = (text_buffer){0};
}
