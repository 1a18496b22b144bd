/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/status.h>

static atomic_long made;
static atomic_long allowed = -1;

static int may_allocate(void) {
    const long before = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    const long limit = atomic_load_explicit(&allowed, memory_order_relaxed);
    return limit < 0 || before < limit;
}

long lns_alloc_fail_after(long count) {
    atomic_store(&allowed, count);
    return atomic_exchange(&made, 0);
}

void *lns_alloc(size_t size) {
    return may_allocate() ? malloc(size > 0 ? size : 1) : NULL;
}

void *lns_calloc(size_t count, size_t size) {
    if (!may_allocate())
        return NULL;
    return (count > 0 && size > 0) ? calloc(count, size) : calloc(1, 1);
}

void *lns_alloc_array(size_t count, size_t size) {
    if (size > 0 && count > SIZE_MAX / size)
        return NULL;
    return lns_alloc(count * size);
}

void *lns_realloc(void *pointer, size_t size) {
    return may_allocate() ? realloc(pointer, size > 0 ? size : 1) : NULL;
}

void lns_free(void *pointer) {
    free(pointer);
}

char *lns_strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = lns_alloc(size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

void *lns_aligned_alloc(size_t size) {
    if (!may_allocate() || size > SIZE_MAX - LNS_ALIGNMENT)
        return NULL;
    const size_t rounded = (size + LNS_ALIGNMENT - 1) / LNS_ALIGNMENT * LNS_ALIGNMENT;
    return aligned_alloc(LNS_ALIGNMENT, rounded > 0 ? rounded : LNS_ALIGNMENT);
}

void lns_aligned_free(void *pointer) {
    free(pointer);
}

void lns_buffer_free(void *buffer) {
    free(buffer);
}
