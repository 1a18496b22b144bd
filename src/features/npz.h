/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays as numpy.savez writes them. */
#ifndef LENSING_FEATURES_NPZ_H
#define LENSING_FEATURES_NPZ_H

#include <stddef.h>

#include <lensing/features.h>

#include "features/buffer.h"

/* One array in C order, little-endian. */
typedef struct lns_array {
    const char *name;
    const char *type; /* as numpy writes it: "<f4", "<f2", "<i8"; NULL: "|S" and the size, a text of that many bytes */
    size_t item_size;
    int dimensions; /* 0, 1 or 2 */
    size_t shape[2];
    const void *data;
    const float *halves_of; /* when not NULL: the elements are these, as float16, and `data` is not used */
} lns_array;

/* Bytes of an .npz file of these arrays. */
size_t lns_npz_size(const lns_array *arrays, size_t count);

/* Adds an .npz file of these arrays, lns_npz_size() bytes, the same ones that numpy.savez writes. */
lns_status lns_npz_add(lns_buffer *out, const lns_array *arrays, size_t count);

#endif
