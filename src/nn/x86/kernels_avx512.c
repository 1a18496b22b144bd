/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for AVX-512: 32 registers of sixteen floats. */
#include <immintrin.h>
#include <string.h>

#define ROWS 6
#define COLUMNS 4
#define TILES(inputs) 30
#define TABLE lns_nn_kernels_avx512
#define TABLE_NAME "avx512"
#include "nn/x86/vectors_avx512.h"

#include "nn/elements_float32.h"

#include "nn/kernels_tmpl.h"
