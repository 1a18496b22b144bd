/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU can do, and which kernels to use. */
#ifndef LENSING_BASE_CPU_H
#define LENSING_BASE_CPU_H

#include <lensing/status.h>

/* Kernel sets, each a superset of the ones before. */
typedef enum lns_cpu_level {
    LNS_CPU_C = 0,
    LNS_CPU_AVX2 = 1,  /* AVX2, FMA and F16C */
    LNS_CPU_AVX512 = 2 /* AVX-512 F, BW, DQ, VL */
} lns_cpu_level;

/* Best level that this CPU and this build have. */
lns_cpu_level lns_cpu_best_level(void);

/* The level to use: the best one, or what LENSING_CPU names. */
lns_status lns_cpu_choose_level(lns_cpu_level *level);

/* Not 0: the CPU also has the dot products of AVX512_BF16. */
int lns_cpu_has_bf16(void);

const char *lns_cpu_level_name(lns_cpu_level level);

/* CPUs that this process may run on, at least 1. */
int lns_cpu_count(void);

#endif
