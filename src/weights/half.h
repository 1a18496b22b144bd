/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a file, little-endian and unaligned, as float. All conversions are exact. */
#ifndef LENSING_WEIGHTS_HALF_H
#define LENSING_WEIGHTS_HALF_H

#include <stddef.h>

/* IEEE 754 binary16 */
void lns_half_to_float(const void *bytes, float *values, size_t count);
/* The upper half of a binary32. */
void lns_bfloat_to_float(const void *bytes, float *values, size_t count);
/* IEEE 754 binary32 */
void lns_little_endian_to_float(const void *bytes, float *values, size_t count);

#endif
