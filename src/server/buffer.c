/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <inttypes.h>
#include <stdarg.h>
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

void text_buffer_format(text_buffer *buffer, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    const size_t needed = (size_t)length + 1; /* with a NUL, which the next text replaces */
    if (!buffer->failed && length >= 0 && (buffer->capacity - buffer->size >= needed || grow(buffer, needed))) {
        vsnprintf(buffer->data + buffer->size, needed, format, again);
        buffer->size += (size_t)length;
    } else {
        buffer->failed = true;
    }
    va_end(again);
    va_end(arguments);
}

void text_buffer_add_integer(text_buffer *buffer, int64_t value) {
    char text[24];
    text_buffer_add(buffer, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void text_buffer_free(text_buffer *buffer) {
    free(buffer->data);
    *buffer = (text_buffer){0};
}
