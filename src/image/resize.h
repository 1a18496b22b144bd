/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing of one plane in two passes, first along x, then along y. */
#ifndef LENSING_IMAGE_RESIZE_H
#define LENSING_IMAGE_RESIZE_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/image.h>
#include <lensing/status.h>

#include "base/cpu.h"

/* Weights are whole numbers with so many bits after the point: 8 bits of a pixel and 2 to spare make 32. */
#define LNS_RESIZE_BITS 22

/* The windows of input pixels that a run of output pixels is made of. */
typedef struct lns_resize_taps {
    uint32_t count;   /* output pixels */
    uint32_t stride;  /* weights kept for each output pixel, at least the longest window */
    uint32_t *start;  /* first input pixel of each window */
    uint32_t *length; /* input pixels of each window, at least 1 */
    int32_t *weight;  /* count x stride, >= 0, zero past the window */
} lns_resize_taps;

/* The two inner loops. Every set gives the same bytes. */
typedef struct lns_resize_kernels {
    /* Bytes for the kernel's own form of the taps of rows of `width` pixels. 0: it has none for this size; then the C
     * kernel is to be used. NULL: it works on the taps as they are. */
    size_t (*pack_size)(const lns_resize_taps *taps, uint32_t width);
    void (*pack)(const lns_resize_taps *taps, uint32_t width, void *packed);
    /* Resizes one row: target[i] = rounded sum of source[start[i] + k] x weight[i][k]. */
    void (*row)(const lns_resize_taps *taps, const void *packed, const uint8_t *source, uint8_t *target);
    /* Makes one row from `length` rows that are `stride` bytes apart. */
    void (*column)(const uint8_t *rows, size_t stride, const int32_t *weight, uint32_t length, uint32_t width,
                   uint8_t *target);
} lns_resize_kernels;

extern const lns_resize_kernels lns_resize_kernels_c;
#if defined(__x86_64__)
extern const lns_resize_kernels lns_resize_kernels_avx2;
#endif

/* Computes rows first_row .. first_row + row_count - 1 of the width x height result, with the kernels of `level`. Row
 * first_row goes to `target`; rows are `stride` bytes apart. The sizes are at most INT32_MAX. */
lns_status lns_resize_rows(const lns_plane *source, uint32_t width, uint32_t height, lns_cpu_level level,
                           uint32_t first_row, uint32_t row_count, uint8_t *target, size_t stride);

#endif
