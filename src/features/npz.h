/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays as numpy.savez writes them. */
#ifndef LENSING_FEATURES_NPZ_H
#define LENSING_FEATURES_NPZ_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/features.h>

/* One array in C order, little-endian. */
typedef struct lns_array {
    const char *name;
    const char *type; /* as numpy writes it: "<f4", "<f2", "<i8" */
    size_t item_size;
    int dimensions; /* 1 or 2 */
    size_t shape[2];
    const void *data;
} lns_array;

/* Bytes of an .npz file of these arrays, the same ones that numpy.savez writes. */
lns_status lns_npz_write(const lns_array *arrays, size_t count, void **bytes, size_t *size);

/* An .npz file of one array "descriptors", float16 (N, 256). */
lns_status lns_npz_half_descriptors(const lns_features *features, void **bytes, size_t *size);

/* IEEE 754 binary16 of each number, to nearest, ties to even. */
void lns_half_from_float(const float *from, size_t count, uint16_t *to);

#endif
