/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the cores of a tile, compiled from kernels/. */
#ifndef LENSING_BLACKHOLE_KERNELS_H
#define LENSING_BLACKHOLE_KERNELS_H

#include <stddef.h>

extern const unsigned char lns_blackhole_kernel_control[], lns_blackhole_kernel_unpack[], lns_blackhole_kernel_math[],
    lns_blackhole_kernel_pack[];
extern const size_t lns_blackhole_kernel_control_size, lns_blackhole_kernel_unpack_size, lns_blackhole_kernel_math_size,
    lns_blackhole_kernel_pack_size;

#endif
