/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits. */
#ifndef LENSING_FEATURES_HALF_H
#define LENSING_FEATURES_HALF_H

#include <stddef.h>
#include <stdint.h>

/* IEEE 754 binary16 of each number, to nearest, ties to even. */
void lns_half_from_float(const float *from, size_t count, uint16_t *to);

#endif
