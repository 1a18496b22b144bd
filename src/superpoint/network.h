/* SPDX-License-Identifier: Apache-2.0 */
/* The network on the CPU: 480 x 640 picture -> score map and descriptor map. */
#ifndef LENSING_SUPERPOINT_NETWORK_H
#define LENSING_SUPERPOINT_NETWORK_H

#include <stdint.h>

#include <lensing/status.h>
#include <lensing/superpoint.h>

#include "base/cpu.h"
#include "base/threads.h"
#include "weights/superpoint_weights.h"

/* Immutable after creation; shared by threads. */
typedef struct lns_network lns_network;

/* Memory of one run: about 43 MB and 0.8 MB for each thread, with bf16 22 MB and 0.6 MB. */
typedef struct lns_network_scratch lns_network_scratch;

/* Packs the weights, which are not needed afterwards. The pool is the caller's and must outlive the network. */
lns_status lns_network_create(const lns_superpoint_weights *weights, lns_cpu_level level, lns_precision precision,
                              lns_thread_pool *pool, lns_network **network);
void lns_network_destroy(lns_network **network);

/* Name of the kernel set. */
const char *lns_network_kernels(const lns_network *network);

lns_status lns_network_scratch_create(const lns_network *network, lns_network_scratch **scratch);
/* Makes the system back all of it with memory, on all threads of the pool. */
void lns_network_scratch_touch(const lns_network *network, lns_network_scratch *scratch);
void lns_network_scratch_destroy(lns_network_scratch **scratch);

/* frame: 480 x 640 bytes. Returns the scores, 480 x 640, which lie in the scratch memory and are valid until the next
 * run. With descriptors, these may be asked for then. */
const float *lns_network_run(const lns_network *network, lns_network_scratch *scratch, const uint8_t *frame,
                             int with_descriptors);

/* The descriptor map of the last run, 60 x 80 x 256, valid as the scores are. `cells`: `count` cells in row-major order,
 * rising, whose descriptors are wanted; the others are not defined. NULL: all. */
const float *lns_network_describe(const lns_network *network, lns_network_scratch *scratch, const uint16_t *cells,
                                  size_t count);

/* Runs the network with descriptors, and fills in the time of each step; returns how many there are, at most
 * LNS_STEPS_LIMIT. */
size_t lns_network_profile(const lns_network *network, lns_network_scratch *scratch, const uint8_t *frame,
                           lns_step_time *steps);

/* GFLOP/s of the multiply-adds of this network's kernels on the registers of all its threads. Takes about 0.1 s. */
double lns_network_peak_gflops(const lns_network *network);

#endif
