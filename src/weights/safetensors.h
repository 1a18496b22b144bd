/* SPDX-License-Identifier: Apache-2.0 */
/* Reading safetensors: an 8-byte little-endian header length, a JSON header, then the data of all tensors. */
#ifndef LENSING_WEIGHTS_SAFETENSORS_H
#define LENSING_WEIGHTS_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/status.h>

#define LNS_TENSOR_MAX_DIMENSIONS 8

typedef enum lns_dtype {
    LNS_DTYPE_F32,
    LNS_DTYPE_F16,
    LNS_DTYPE_BF16,
    LNS_DTYPE_OTHER /* known to the format, of no use here */
} lns_dtype;

typedef struct lns_tensor {
    const char *name;
    lns_dtype dtype;
    int dimensions;
    uint64_t shape[LNS_TENSOR_MAX_DIMENSIONS];
    const void *data; /* inside the caller's bytes; may be unaligned */
    size_t size;      /* bytes */
} lns_tensor;

typedef struct lns_safetensors lns_safetensors;

/* Parses `size` bytes, which must stay in place until lns_safetensors_close(). Checks the whole header: limits, types,
 * shapes against sizes, ranges inside the file, no overlap, no holes, no duplicate names. `label` names the file in
 * errors. */
lns_status lns_safetensors_parse(const void *bytes, size_t size, const char *label, lns_safetensors **file);
void lns_safetensors_close(lns_safetensors **file);

/* NULL when there is no such tensor. */
const lns_tensor *lns_safetensors_find(const lns_safetensors *file, const char *name);
/* Value of a text entry of __metadata__; NULL when there is none. */
const char *lns_safetensors_metadata(const lns_safetensors *file, const char *key);

#endif
