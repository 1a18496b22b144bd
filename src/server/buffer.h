/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows while something is written to it. */
#ifndef LENSING_SERVER_BUFFER_H
#define LENSING_SERVER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Start with {0}. Text that could not be stored for lack of memory sets `failed` and is dropped: a writer adds without
 * looking and asks once, at the end. */
typedef struct text_buffer {
    char *data; /* without a NUL at the end */
    size_t size;
    size_t capacity;
    bool failed;
} text_buffer;

void text_buffer_add(text_buffer *buffer, const void *bytes, size_t size);
void text_buffer_add_text(text_buffer *buffer, const char *text);
/* Like printf(). */
__attribute__((format(printf, 2, 3))) void text_buffer_format(text_buffer *buffer, const char *format, ...);
void text_buffer_add_integer(text_buffer *buffer, int64_t value);

/* Frees the text and leaves the buffer ready for a new one. */
void text_buffer_free(text_buffer *buffer);

#endif
