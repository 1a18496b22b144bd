/* SPDX-License-Identifier: Apache-2.0 */
/* All memory of the library comes from here, so that tests can make the n-th allocation fail. */
#ifndef LENSING_BASE_MEMORY_H
#define LENSING_BASE_MEMORY_H

#include <stddef.h>

/* Alignment of lns_aligned_alloc(): a cache line, and the widest vector. */
#define LNS_ALIGNMENT 64

/* Like malloc, calloc, realloc and free; lns_calloc and lns_alloc_array fail on overflow of count x size. */
void *lns_alloc(size_t size);
void *lns_calloc(size_t count, size_t size);
void *lns_alloc_array(size_t count, size_t size);
void *lns_realloc(void *pointer, size_t size);
void lns_free(void *pointer);
char *lns_strdup(const char *text);

/* Memory aligned to LNS_ALIGNMENT, freed with lns_aligned_free(). Not cleared. */
void *lns_aligned_alloc(size_t size);
void lns_aligned_free(void *pointer);

/* For tests: lets the next `count` allocations of this process succeed and every later one fail; negative: none fails.
 * Returns how many allocations were made since the last call. */
long lns_alloc_fail_after(long count);

#endif
