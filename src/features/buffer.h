/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer that grows while something is written to it. */
#ifndef LENSING_FEATURES_BUFFER_H
#define LENSING_FEATURES_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/status.h>

/* Start with {0}. An allocation that fails is remembered, and what is added later is dropped: a writer adds without
 * looking and asks lns_buffer_take() at the end. */
typedef struct lns_buffer {
    char *data;
    size_t size;
    size_t capacity;
    size_t failed; /* bytes that could not be had; 0: no failure */
} lns_buffer;

/* Room for `size` more bytes at the end, not yet counted in `size`; NULL when there is no memory. */
char *lns_buffer_reserve(lns_buffer *buffer, size_t size);

void lns_buffer_add(lns_buffer *buffer, const void *bytes, size_t size);
void lns_buffer_add_text(lns_buffer *buffer, const char *text);

/* Little-endian numbers. */
void lns_buffer_add_u16(lns_buffer *buffer, uint16_t value);
void lns_buffer_add_u32(lns_buffer *buffer, uint32_t value);
void lns_buffer_add_u64(lns_buffer *buffer, uint64_t value);

/* Writes over four bytes that were added before. */
void lns_buffer_set_u32(lns_buffer *buffer, size_t offset, uint32_t value);

/* Hands the bytes over, for lns_buffer_free(), and leaves the buffer empty; on failure `*data` is NULL. */
lns_status lns_buffer_take(lns_buffer *buffer, void **data, size_t *size);

/* Frees the bytes. */
void lns_buffer_drop(lns_buffer *buffer);

#endif
