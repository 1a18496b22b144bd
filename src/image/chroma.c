/* SPDX-License-Identifier: Apache-2.0 */
#include "image/chroma.h"

#include "image/to_plane.h"
#include "image/upsample.h"

static const lns_chroma_kernels kernels_c = {lns_upsample_both, lns_ycc_to_plane};

const lns_chroma_kernels *lns_chroma_kernels_for(lns_cpu_level level) {
#if defined(__x86_64__)
    if (level >= LNS_CPU_AVX2)
        return &lns_chroma_kernels_avx2;
#endif
    (void)level;
    return &kernels_c;
}

const lns_chroma_kernels *lns_chroma_kernels_choose(void) {
    lns_cpu_level level;
    return lns_cpu_choose_level(&level) == LNS_OK ? lns_chroma_kernels_for(level) : &kernels_c;
}
