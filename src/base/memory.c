/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <lensing/status.h>

/* Blocks from this size on are laid out and asked for in pages of 2 MB: touching 60 MB for the first time in pages of 4 KB
 * costs more than the arithmetic of a layer. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM (2 * HUGE_PAGE)

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
    if (!may_allocate() || size > SIZE_MAX - HUGE_PAGE)
        return NULL;
    const size_t unit = size >= HUGE_FROM ? HUGE_PAGE : LNS_ALIGNMENT;
    const size_t rounded = (size + unit - 1) / unit * unit;
    void *block = aligned_alloc(unit, rounded > 0 ? rounded : unit);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (block != NULL && unit == HUGE_PAGE)
        madvise(block, rounded, MADV_HUGEPAGE); /* only a wish: whether it is granted does not matter */
#endif
    return block;
}

void lns_aligned_free(void *pointer) {
    free(pointer);
}

void lns_buffer_free(void *buffer) {
    free(buffer);
}
