/* SPDX-License-Identifier: Apache-2.0 */
/* The two inner loops that a JPEG spends most of the time in, besides libjpeg's, one table for each kernel set. Every
 * set gives the same bytes. */
#ifndef LENSING_IMAGE_CHROMA_H
#define LENSING_IMAGE_CHROMA_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

typedef struct lns_chroma_kernels {
    /* lns_upsample_both() */
    void (*upsample_both)(uint8_t *restrict row, const uint8_t *restrict samples, const uint8_t *restrict near,
                          uint32_t width, int right_bias, uint16_t *restrict scratch);
    /* lns_ycc_to_plane() */
    void (*ycc_to_plane)(uint8_t *row, const uint8_t *cr, size_t count);
} lns_chroma_kernels;

/* The level must not be above lns_cpu_best_level(). */
const lns_chroma_kernels *lns_chroma_kernels_for(lns_cpu_level level);

/* Those that are to be used on this CPU. */
const lns_chroma_kernels *lns_chroma_kernels_choose(void);

#if defined(__x86_64__)
extern const lns_chroma_kernels lns_chroma_kernels_avx2;
#endif

#endif
