/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of matching. */
#ifndef LENSING_FEATURES_MATCHING_H
#define LENSING_FEATURES_MATCHING_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Descriptors of the second picture are packed in panels: for each place of the descriptor the numbers of PANEL
 * keypoints side by side, so that one load gives as many products as the vectors are wide. */
#define LNS_MATCH_PANEL 16

/* Descriptors of the first picture in one call. */
#define LNS_MATCH_ROWS 8

/* Dot products of LNS_MATCH_ROWS descriptors with the PANEL ones of a packed panel, row-major. Each is the sum
 * ((0 + a0 b0) + a1 b1) + ... with one rounding for a product and one for a sum, whatever the CPU, so all functions
 * give the same bytes. */
typedef void (*lns_match_kernel)(const float *descriptors, const float *panel, float *products);

/* Never NULL; a level must be one that the CPU has. */
lns_match_kernel lns_match_kernel_get(lns_cpu_level level);

#endif
