/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <lensing/version.h>

#include "base/error.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static lns_cpu_level best = LNS_CPU_C;
static int bf16;
static char features[128];

static void add_feature(const char *name) {
    if (features[0] != '\0')
        strncat(features, " ", sizeof features - strlen(features) - 1);
    strncat(features, name, sizeof features - strlen(features) - 1);
}

#if defined(__x86_64__)
/* Not among the names that clang's check below knows before version 17. */
static int has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

/* The compiler's run-time checks also ask the operating system whether it saves the wide registers. */
static void detect(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2"))
        add_feature("sse4.2");
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (avx2)
        add_feature("avx2 fma");
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx512)
        add_feature("avx512f avx512bw avx512dq avx512vl");
    bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
    if (bf16)
        add_feature("avx512_bf16");
    best = avx512 ? LNS_CPU_AVX512 : avx2 ? LNS_CPU_AVX2 : LNS_CPU_C;
}
#else
static void detect(void) {
#if defined(__aarch64__)
    add_feature("neon");
#endif
}
#endif

lns_cpu_level lns_cpu_best_level(void) {
    pthread_once(&once, detect);
    return best;
}

int lns_cpu_has_bf16(void) {
    lns_cpu_best_level();
    return bf16;
}

const char *lns_cpu_level_name(lns_cpu_level level) {
    static const char *const names[] = {"c", "avx2", "avx512"};
    return names[level];
}

lns_status lns_cpu_choose_level(lns_cpu_level *level) {
    const lns_cpu_level limit = lns_cpu_best_level();
    const char *forced = getenv("LENSING_CPU");
    *level = limit;
    if (forced == NULL || forced[0] == '\0')
        return LNS_OK;
    for (int i = LNS_CPU_C; i <= LNS_CPU_AVX512; i++) {
        if (strcmp(forced, lns_cpu_level_name((lns_cpu_level)i)) != 0)
            continue;
        if (i > (int)limit)
            return lns_fail(LNS_ERROR_UNSUPPORTED, "LENSING_CPU=%s: this CPU cannot run it; its best is %s", forced,
                            lns_cpu_level_name(limit));
        *level = (lns_cpu_level)i;
        return LNS_OK;
    }
    return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "LENSING_CPU=%s is not a kernel set; use c, avx2 or avx512", forced);
}

const char *lns_cpu_features(void) {
    lns_cpu_best_level();
    return features;
}

const char *lns_cpu_path(void) {
    lns_cpu_level level;
    return lns_cpu_choose_level(&level) == LNS_OK ? lns_cpu_level_name(level) : NULL;
}

int lns_cpu_count(void) {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        const int count = CPU_COUNT(&allowed);
        return count > 0 ? count : 1;
    }
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
