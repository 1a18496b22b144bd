/* SPDX-License-Identifier: Apache-2.0 */
#include "features/buffer.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

#define FIRST_CAPACITY 4096

char *lns_buffer_reserve(lns_buffer *buffer, size_t size) {
    if (buffer->failed > 0)
        return NULL;
    if (size > SIZE_MAX / 4 - buffer->size) {
        buffer->failed = size;
        return NULL;
    }
    const size_t needed = buffer->size + size;
    if (buffer->data == NULL || needed > buffer->capacity) {
        const size_t half_more = buffer->capacity + buffer->capacity / 2;
        size_t capacity = needed > half_more ? needed : half_more;
        if (capacity < FIRST_CAPACITY)
            capacity = FIRST_CAPACITY;
        char *data = lns_realloc(buffer->data, capacity);
        if (data == NULL) {
            buffer->failed = capacity;
            return NULL;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->size;
}

void lns_buffer_add(lns_buffer *buffer, const void *bytes, size_t size) {
    char *room = lns_buffer_reserve(buffer, size);
    if (room == NULL || size == 0)
        return;
    memcpy(room, bytes, size);
    buffer->size += size;
}

void lns_buffer_add_text(lns_buffer *buffer, const char *text) {
    lns_buffer_add(buffer, text, strlen(text));
}

static void little_endian(uint64_t value, size_t bytes, unsigned char *to) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static void add_number(lns_buffer *buffer, uint64_t value, size_t bytes) {
    unsigned char number[8];
    little_endian(value, bytes, number);
    lns_buffer_add(buffer, number, bytes);
}

void lns_buffer_add_u16(lns_buffer *buffer, uint16_t value) {
    add_number(buffer, value, 2);
}

void lns_buffer_add_u32(lns_buffer *buffer, uint32_t value) {
    add_number(buffer, value, 4);
}

void lns_buffer_add_u64(lns_buffer *buffer, uint64_t value) {
    add_number(buffer, value, 8);
}

void lns_buffer_set_u32(lns_buffer *buffer, size_t offset, uint32_t value) {
    if (buffer->failed == 0)
        little_endian(value, 4, (unsigned char *)buffer->data + offset);
}

lns_status lns_buffer_take(lns_buffer *buffer, void **data, size_t *size) {
    *data = NULL;
    *size = 0;
    if (buffer->failed > 0) {
        const size_t failed = buffer->failed;
        lns_buffer_drop(buffer);
        return lns_fail_memory(failed);
    }
    *data = buffer->data;
    *size = buffer->size;
    *buffer = (lns_buffer){0};
    return LNS_OK;
}

void lns_buffer_drop(lns_buffer *buffer) {
    lns_free(buffer->data);
    *buffer = (lns_buffer){0};
}
