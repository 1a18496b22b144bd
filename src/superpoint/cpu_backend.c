/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "superpoint/backend.h"
#include "superpoint/network.h"

typedef struct cpu_backend {
    lns_backend base;
    lns_thread_pool *pool;
    lns_network *network;
    pthread_mutex_t lock; /* for `kept` */
    /* Scratch memory that is kept between calls: for as many calls at the same time as there are threads. More of them
     * get memory of their own, given back at their end. */
    lns_network_scratch **kept; /* base.threads */
} cpu_backend;

void lns_backend_result_free(lns_backend_result *result) {
    lns_selection_free(&result->selection);
    lns_free(result->descriptors);
    result->descriptors = NULL;
}

lns_status lns_backend_make_room(lns_backend_result *result) {
    const size_t count = result->selection.count;
    result->descriptors = lns_alloc_array(count, LNS_DESCRIPTOR_SIZE * sizeof *result->descriptors);
    return result->descriptors != NULL ? LNS_OK
                                       : lns_fail_memory(count * LNS_DESCRIPTOR_SIZE * sizeof *result->descriptors);
}

/* Samples the descriptors of the result's keypoints. */
static lns_status sample(const float *map, lns_backend_result *result) {
    const lns_status status = lns_backend_make_room(result);
    if (status == LNS_OK)
        lns_sample_descriptors(map, result->selection.pixels, result->selection.count, result->descriptors);
    return status;
}

static lns_status borrow_scratch(cpu_backend *cpu, lns_network_scratch **scratch) {
    *scratch = NULL;
    pthread_mutex_lock(&cpu->lock);
    for (int i = 0; i < cpu->base.threads && *scratch == NULL; i++) {
        *scratch = cpu->kept[i];
        cpu->kept[i] = NULL;
    }
    pthread_mutex_unlock(&cpu->lock);
    return *scratch != NULL ? LNS_OK : lns_network_scratch_create(cpu->network, scratch);
}

static void return_scratch(cpu_backend *cpu, lns_network_scratch *scratch) {
    pthread_mutex_lock(&cpu->lock);
    for (int i = 0; i < cpu->base.threads && scratch != NULL; i++)
        if (cpu->kept[i] == NULL) {
            cpu->kept[i] = scratch;
            scratch = NULL;
        }
    pthread_mutex_unlock(&cpu->lock);
    lns_network_scratch_destroy(&scratch);
}

/* Only the cells that keypoints lie between get a descriptor: a third of them for 600 keypoints. */
static lns_status describe(cpu_backend *cpu, lns_network_scratch *scratch, lns_backend_result *result) {
    const lns_selection *found = &result->selection;
    uint16_t cells[LNS_CELLS];
    const double start = lns_clock_ms();
    const size_t count = lns_list_cells(found->pixels, found->count, cells);
    const float *map = lns_network_describe(cpu->network, scratch, cells, count);
    result->forward_ms += lns_clock_ms() - start;
    return sample(map, result);
}

static lns_status detect(lns_backend *backend, const uint8_t *frame, const lns_selection_rules *rules,
                         int with_descriptors, lns_backend_result *result) {
    cpu_backend *cpu = (cpu_backend *)backend;
    lns_network_scratch *scratch;
    memset(result, 0, sizeof *result);
    lns_status status = borrow_scratch(cpu, &scratch);
    if (status != LNS_OK)
        return status;
    const double start = lns_clock_ms();
    const float *scores = lns_network_run(cpu->network, scratch, frame, with_descriptors);
    result->forward_ms = lns_clock_ms() - start;
    status = lns_select_keypoints(scores, rules, &result->selection);
    if (status == LNS_OK && with_descriptors)
        status = describe(cpu, scratch, result);
    return_scratch(cpu, scratch);
    result->postprocess_ms = lns_clock_ms() - start - result->forward_ms;
    if (status != LNS_OK)
        lns_backend_result_free(result);
    return status;
}

static lns_status prepare(lns_backend *backend) {
    cpu_backend *cpu = (cpu_backend *)backend;
    lns_network_scratch *scratch;
    const lns_status status = borrow_scratch(cpu, &scratch);
    if (status != LNS_OK)
        return status;
    lns_network_scratch_touch(cpu->network, scratch);
    return_scratch(cpu, scratch);
    return LNS_OK;
}

static lns_status forward(lns_backend *backend, const uint8_t *frame, float *scores, float *descriptors) {
    cpu_backend *cpu = (cpu_backend *)backend;
    lns_network_scratch *scratch;
    const lns_status status = borrow_scratch(cpu, &scratch);
    if (status != LNS_OK)
        return status;
    memcpy(scores, lns_network_run(cpu->network, scratch, frame, descriptors != NULL),
           LNS_FRAME_PIXELS * sizeof *scores);
    if (descriptors != NULL)
        memcpy(descriptors, lns_network_describe(cpu->network, scratch, NULL, 0),
               (size_t)LNS_CELLS * LNS_DESCRIPTOR_SIZE * sizeof *descriptors);
    return_scratch(cpu, scratch);
    return LNS_OK;
}

static lns_status profile(lns_backend *backend, const uint8_t *frame, lns_step_time *steps, size_t *count) {
    cpu_backend *cpu = (cpu_backend *)backend;
    lns_network_scratch *scratch;
    const lns_status status = borrow_scratch(cpu, &scratch);
    if (status != LNS_OK)
        return status;
    *count = lns_network_profile(cpu->network, scratch, frame, steps);
    return_scratch(cpu, scratch);
    return LNS_OK;
}

static lns_status peak(lns_backend *backend, double *gflops) {
    *gflops = lns_network_peak_gflops(((cpu_backend *)backend)->network);
    return LNS_OK;
}

static void close_backend(lns_backend *backend) {
    cpu_backend *cpu = (cpu_backend *)backend;
    for (int i = 0; i < cpu->base.threads && cpu->kept != NULL; i++)
        lns_network_scratch_destroy(&cpu->kept[i]);
    lns_free(cpu->kept);
    lns_network_destroy(&cpu->network);
    lns_thread_pool_destroy(&cpu->pool);
    pthread_mutex_destroy(&cpu->lock);
    lns_free(cpu);
}

static const lns_backend_operations operations = {
    .name = "cpu",
    .detect = detect,
    .prepare = prepare,
    .forward = forward,
    .profile = profile,
    .peak = peak,
    .close = close_backend};

lns_status lns_cpu_backend_open(const lns_superpoint_weights *weights, const lns_superpoint_options *options,
                                lns_backend **backend) {
    *backend = NULL;
    lns_cpu_level level;
    lns_status status = lns_cpu_choose_level(&level);
    if (status != LNS_OK)
        return status;
    cpu_backend *cpu = lns_calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return lns_fail_memory(sizeof *cpu);
    pthread_mutex_init(&cpu->lock, NULL);
    cpu->base.operations = &operations;
    cpu->base.device = "cpu";
    cpu->base.precision = options->precision == LNS_PRECISION_BF16 ? "bf16" : "fp32";
    cpu->base.threads = options->threads > 0 ? options->threads : lns_cpu_count();
    if (cpu->base.threads > LNS_THREADS_LIMIT)
        cpu->base.threads = LNS_THREADS_LIMIT;
    cpu->kept = lns_calloc((size_t)cpu->base.threads, sizeof *cpu->kept);
    if (cpu->kept == NULL)
        status = lns_fail_memory((size_t)cpu->base.threads * sizeof *cpu->kept);
    if (status == LNS_OK)
        status = lns_thread_pool_create(cpu->base.threads, &cpu->pool);
    if (status == LNS_OK)
        status = lns_network_create(weights, level, options->precision, cpu->pool, &cpu->network);
    if (status == LNS_OK)
        cpu->base.cpu_path = lns_network_kernels(cpu->network);
    if (status != LNS_OK) {
        close_backend(&cpu->base);
        return status;
    }
    *backend = &cpu->base;
    return LNS_OK;
}
