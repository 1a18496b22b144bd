/* SPDX-License-Identifier: Apache-2.0 */
/** @file Version of the library, and what it runs on. */
#ifndef LENSING_VERSION_H
#define LENSING_VERSION_H

#include <lensing/status.h>

#define LNS_VERSION_MAJOR 0
#define LNS_VERSION_MINOR 1
#define LNS_VERSION_PATCH 0
#define LNS_VERSION_STRING "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the library that is loaded, such as "0.1.0". */
LNS_API const char *lns_version(void);

/** Optional parts of this build and the versions of the libraries behind them, such as
 * "jpeg 2.1.5, png 1.6.39, no curl". */
LNS_API const char *lns_build_description(void);

/** Instruction-set extensions of this CPU that matter here, separated by spaces, such as
 * "sse4.2 avx2 fma avx512f". Empty on a CPU with none of them. */
LNS_API const char *lns_cpu_features(void);

/** Kernel set in use: "c", "avx2" or "avx512". The best that the CPU can run, unless the environment
 * variable LENSING_CPU names another. NULL when LENSING_CPU names an unknown set or one that this CPU
 * cannot run; lns_error_message() then says which. */
LNS_API const char *lns_cpu_path(void);

#ifdef __cplusplus
}
#endif
#endif
