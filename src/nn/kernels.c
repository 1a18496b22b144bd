/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/kernels.h"

const lns_nn_kernels *lns_nn_kernels_for(lns_cpu_level level, lns_precision precision) {
#if defined(__x86_64__)
    if (precision == LNS_PRECISION_BF16)
        return level == LNS_CPU_AVX512 && lns_cpu_has_bf16() ? &lns_nn_kernels_avx512_bf16 : NULL;
    if (level == LNS_CPU_AVX512)
        return &lns_nn_kernels_avx512;
    if (level == LNS_CPU_AVX2)
        return &lns_nn_kernels_avx2;
#endif
    (void)level;
    return precision == LNS_PRECISION_FP32 ? &lns_nn_kernels_c : NULL;
}
