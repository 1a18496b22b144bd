/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/kernels.h"

const lns_nn_kernels *lns_nn_kernels_for(lns_cpu_level level) {
#if defined(__x86_64__)
    if (level == LNS_CPU_AVX512)
        return &lns_nn_kernels_avx512;
    if (level == LNS_CPU_AVX2)
        return &lns_nn_kernels_avx2;
#endif
    (void)level;
    return &lns_nn_kernels_c;
}
