/* SPDX-License-Identifier: Apache-2.0 */
/* The weights inside the library. */
#ifndef LENSING_WEIGHTS_BUILTIN_H
#define LENSING_WEIGHTS_BUILTIN_H

#include <stddef.h>

typedef struct lns_builtin_weights {
    const char *name;           /* such as "lensing-superpoint-v1" */
    const unsigned char *bytes; /* a safetensors file */
    size_t size;
} lns_builtin_weights;

/* Fills `builtin` and returns 1; returns 0 when the library was built without weights. */
int lns_builtin_weights_find(lns_builtin_weights *builtin);

/* The file in models/, made by scripts/embed.py. */
extern const unsigned char lns_builtin_weights_file[];
extern const size_t lns_builtin_weights_file_size;

#endif
