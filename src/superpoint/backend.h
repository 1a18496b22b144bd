/* SPDX-License-Identifier: Apache-2.0 */
/* What a device that runs SuperPoint implements: frame and rules in, features in the network frame out. */
#ifndef LENSING_SUPERPOINT_BACKEND_H
#define LENSING_SUPERPOINT_BACKEND_H

#include <stdatomic.h>
#include <stdint.h>

#include <lensing/features.h>
#include <lensing/status.h>
#include <lensing/superpoint.h>

#include "superpoint/postprocess.h"
#include "weights/superpoint_weights.h"

/* Features of one frame, in the order of lns_selection. */
typedef struct lns_backend_result {
    lns_selection selection;
    float *descriptors; /* count x 256, each of length 1; NULL when not asked for; freed with lns_free() */
    double forward_ms, postprocess_ms;
    int device_nms; /* not 0: suppression ran on a device, and not on the CPU */
} lns_backend_result;

typedef struct lns_backend lns_backend;

typedef struct lns_backend_operations {
    const char *name;
    /* `frame`: 480 x 640 bytes. May be called by several threads at once. On error `result` is left empty. */
    lns_status (*detect)(lns_backend *backend, const uint8_t *frame, const lns_selection_rules *rules,
                         int with_descriptors, lns_backend_result *result);
    /* As lns_superpoint_prepare(). */
    lns_status (*prepare)(lns_backend *backend);
    /* The maps alone, as lns_superpoint_forward() gives them. */
    lns_status (*forward)(lns_backend *backend, const uint8_t *frame, float *scores, float *descriptors);
    /* As lns_superpoint_profile() and lns_superpoint_peak(). */
    lns_status (*profile)(lns_backend *backend, const uint8_t *frame, lns_step_time *steps, size_t *count);
    lns_status (*peak)(lns_backend *backend, double *gflops);
    void (*close)(lns_backend *backend);
} lns_backend_operations;

/* Every backend begins with this. */
struct lns_backend {
    const lns_backend_operations *operations;
    const char *cpu_path;  /* kernel set; "" where there is none */
    const char *precision; /* "fp32" or "bf16" */
    const char *device;    /* as in lns_superpoint_info */
    int threads;
    atomic_int has_failed; /* as in lns_superpoint_info */
};

void lns_backend_result_free(lns_backend_result *result);

/* Makes the array of descriptors for the result's keypoints. */
lns_status lns_backend_make_room(lns_backend_result *result);

/* The CPU. `options` has been checked. */
lns_status lns_cpu_backend_open(const lns_superpoint_weights *weights, const lns_superpoint_options *options,
                                lns_backend **backend);

/* A Blackhole card, or the simulator in its place. */
lns_status lns_blackhole_backend_open(const lns_superpoint_weights *weights, const lns_superpoint_options *options,
                                      lns_backend **backend);

#endif
