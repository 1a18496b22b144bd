/* SPDX-License-Identifier: Apache-2.0 */
#include <lensing/superpoint.h>

#include <string.h>

#include <lensing/weights.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "superpoint/backend.h"
#include "superpoint/result.h"

struct lns_superpoint {
    lns_backend *backend;
    lns_weights_location *location;
    char *license;
    int border;
};

/* ---- Options ------------------------------------------------------------------------------------ */

void lns_superpoint_options_init(lns_superpoint_options *options) {
    if (options == NULL)
        return;
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->device_id = -1;
}

void lns_detect_options_init(lns_detect_options *options) {
    if (options == NULL)
        return;
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->max_keypoints = 1024;
    options->keypoint_threshold = 0.005;
    options->nms_radius = 4;
    options->return_descriptors = 1;
}

static int is_blackhole(const lns_superpoint_options *options) {
    return options->backend != NULL && strcmp(options->backend, "blackhole") == 0;
}

static lns_status take_open_options(const lns_superpoint_options *given, lns_superpoint_options *options) {
    lns_superpoint_options_init(options);
    const lns_status status = lns_options_take(options, sizeof *options, given, "lns_superpoint_options");
    if (status != LNS_OK)
        return status;
    if (options->threads < 0 || options->threads > LNS_THREADS_LIMIT)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "threads is %d; it must be 0 (all CPUs) to %d", options->threads,
                        LNS_THREADS_LIMIT);
    if (options->backend != NULL && strcmp(options->backend, "cpu") != 0 && !is_blackhole(options))
        return lns_fail(LNS_ERROR_UNSUPPORTED, "backend '%s' is not known; there are 'cpu' and 'blackhole'",
                        options->backend);
    if (options->precision != LNS_PRECISION_FP32 && options->precision != LNS_PRECISION_BF16)
        return lns_fail(LNS_ERROR_UNSUPPORTED,
                        "precision %d is not known; this build has LNS_PRECISION_FP32 and LNS_PRECISION_BF16",
                        (int)options->precision);
    return LNS_OK;
}

static lns_status take_detect_options(const lns_detect_options *given, lns_detect_options *options) {
    lns_detect_options_init(options);
    const lns_status status = lns_options_take(options, sizeof *options, given, "lns_detect_options");
    if (status != LNS_OK)
        return status;
    if (options->max_keypoints < -1 || options->max_keypoints > LNS_MAX_KEYPOINTS_LIMIT)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "max_keypoints is %d; it must be -1 (all) to %d",
                        (int)options->max_keypoints, LNS_MAX_KEYPOINTS_LIMIT);
    /* Written so that NaN is refused too. */
    if (!(options->keypoint_threshold >= 0.0 && options->keypoint_threshold <= 1.0))
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "keypoint_threshold is %g; it must be 0 to 1",
                        options->keypoint_threshold);
    if (options->nms_radius < 0 || options->nms_radius > LNS_NMS_RADIUS_LIMIT)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "nms_radius is %d; it must be 0 (off) to %d",
                        (int)options->nms_radius, LNS_NMS_RADIUS_LIMIT);
    return LNS_OK;
}

/* ---- Opening and closing ------------------------------------------------------------------------ */

static lns_status open_backend(lns_superpoint *model, const lns_superpoint_options *options) {
    lns_superpoint_weights *weights;
    lns_status status = lns_superpoint_weights_load(model->location, &weights);
    if (status != LNS_OK)
        return status;
    model->border = weights->border_removal_distance;
    model->license = lns_strdup(weights->license != NULL ? weights->license : "not stated");
    if (model->license == NULL)
        status = lns_fail_memory(1);
    if (status == LNS_OK)
        status = is_blackhole(options) ? lns_blackhole_backend_open(weights, options, &model->backend)
                                       : lns_cpu_backend_open(weights, options, &model->backend);
    lns_superpoint_weights_close(&weights);
    return status;
}

lns_status lns_superpoint_open(const lns_superpoint_options *given, lns_superpoint **result) {
    if (result == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_superpoint_open: model must not be NULL");
    *result = NULL;
    lns_superpoint_options options;
    lns_status status = take_open_options(given, &options);
    if (status != LNS_OK)
        return status;
    lns_superpoint *model = lns_calloc(1, sizeof *model);
    if (model == NULL)
        return lns_fail_memory(sizeof *model);
    status = lns_weights_locate(options.weights, &model->location);
    if (status == LNS_OK)
        status = open_backend(model, &options);
    if (status != LNS_OK) {
        lns_superpoint_close(&model);
        return status;
    }
    *result = model;
    return LNS_OK;
}

void lns_superpoint_close(lns_superpoint **pointer) {
    if (pointer == NULL || *pointer == NULL)
        return;
    lns_superpoint *model = *pointer;
    *pointer = NULL;
    if (model->backend != NULL)
        model->backend->operations->close(model->backend);
    lns_weights_location_close(&model->location);
    lns_free(model->license);
    lns_free(model);
}

lns_status lns_superpoint_describe(const lns_superpoint *model, lns_superpoint_info *info, size_t struct_size) {
    if (model == NULL || info == NULL || struct_size == 0 || struct_size > sizeof *info)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_superpoint_describe: model and info must not be NULL, struct_size must be "
                        "sizeof(lns_superpoint_info) = %zu",
                        sizeof *info);
    const lns_superpoint_info facts = {
        .backend = model->backend->operations->name,
        .cpu_path = model->backend->cpu_path,
        .precision = model->backend->precision,
        .threads = model->backend->threads,
        .file = model->location->safetensors,
        .repository = model->location->repository,
        .revision = model->location->revision,
        .local_dir = model->location->local_dir,
        .license = model->license,
        .border_removal_distance = model->border,
        .device = model->backend->device,
        .has_failed = atomic_load(&model->backend->has_failed),
    };
    memcpy(info, &facts, struct_size);
    return LNS_OK;
}

/* ---- Detecting ---------------------------------------------------------------------------------- */

static lns_status build_features(const lns_superpoint *model, const lns_plane *plane, const lns_detect_options *options,
                                 const lns_backend_result *found, lns_features **result) {
    const size_t count = found->selection.count;
    lns_result_arrays arrays;
    const lns_status status = lns_result_create(count, options->return_descriptors, model->location->repository,
                                                model->license, result, &arrays);
    if (status != LNS_OK)
        return status;
    lns_features *f = *result;
    f->image_width = plane->width;
    f->image_height = plane->height;
    f->scale_x = (double)plane->width / LNS_NETWORK_WIDTH;
    f->scale_y = (double)plane->height / LNS_NETWORK_HEIGHT;
    f->max_keypoints = options->max_keypoints;
    f->keypoint_threshold = options->keypoint_threshold;
    f->nms_radius = options->nms_radius;
    f->border_removal_distance = model->border;
    f->timing_ms.forward = found->forward_ms;
    f->timing_ms.postprocess = found->postprocess_ms;
    f->device_nms = found->device_nms;
    for (size_t i = 0; i < count; i++) {
        const uint32_t x = found->selection.pixels[i] % LNS_NETWORK_WIDTH;
        const uint32_t y = found->selection.pixels[i] / LNS_NETWORK_WIDTH;
        arrays.network_keypoints[2 * i] = (float)x;
        arrays.network_keypoints[2 * i + 1] = (float)y;
        /* The product in double, then rounded once: rounding to fewer digits later gives what the double would. */
        arrays.keypoints[2 * i] = (float)(x * f->scale_x);
        arrays.keypoints[2 * i + 1] = (float)(y * f->scale_y);
        arrays.scores[i] = found->selection.scores[i];
    }
    if (arrays.descriptors != NULL && count > 0)
        memcpy(arrays.descriptors, found->descriptors, count * LNS_DESCRIPTOR_SIZE * sizeof(float));
    return LNS_OK;
}

/* Detects in a plane; `start`: when the work on this picture began, for the timing. */
static lns_status detect_plane(lns_superpoint *model, const lns_plane *plane, const lns_detect_options *options,
                               double start, lns_features **features) {
    lns_plane *frame = NULL;
    lns_status status = lns_plane_resize(plane, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT, &frame);
    if (status != LNS_OK)
        return status;
    const double preprocess = lns_clock_ms() - start;
    const lns_selection_rules rules = {options->max_keypoints, (float)options->keypoint_threshold, options->nms_radius,
                                       model->border};
    lns_backend_result found;
    status =
        model->backend->operations->detect(model->backend, frame->data, &rules, options->return_descriptors, &found);
    lns_plane_close(&frame);
    if (status != LNS_OK)
        return status;
    status = build_features(model, plane, options, &found, features);
    lns_backend_result_free(&found);
    if (status == LNS_OK)
        (*features)->timing_ms.preprocess = preprocess;
    return status;
}

/* What every detect function begins with. */
static lns_status begin(const lns_superpoint *model, const void *input, const char *function,
                        const lns_detect_options *given, lns_detect_options *options, lns_features **features) {
    if (features != NULL)
        *features = NULL;
    if (model == NULL || input == NULL || features == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "%s: model, input and features must not be NULL", function);
    return take_detect_options(given, options);
}

lns_status lns_superpoint_detect_plane(lns_superpoint *model, const lns_plane *plane, const lns_detect_options *given,
                                       lns_features **features) {
    const double start = lns_clock_ms();
    lns_detect_options options;
    const lns_status status = begin(model, plane, __func__, given, &options, features);
    if (status != LNS_OK)
        return status;
    return detect_plane(model, plane, &options, start, features);
}

/* What those end with that make the plane themselves: detects in it when that went well, and closes it. */
static lns_status detect_made(lns_superpoint *model, lns_status status, lns_plane *plane,
                              const lns_detect_options *options, double start, lns_features **features) {
    if (status == LNS_OK)
        status = detect_plane(model, plane, options, start, features);
    lns_plane_close(&plane);
    return status;
}

lns_status lns_superpoint_detect_file(lns_superpoint *model, const char *path, const lns_detect_options *given,
                                      lns_features **features) {
    const double start = lns_clock_ms();
    lns_detect_options options;
    lns_status status = begin(model, path, __func__, given, &options, features);
    lns_plane *plane = NULL;
    if (status == LNS_OK)
        status = lns_plane_read(path, options.image, &plane);
    return detect_made(model, status, plane, &options, start, features);
}

lns_status lns_superpoint_detect_encoded(lns_superpoint *model, const void *bytes, size_t size,
                                         const lns_detect_options *given, lns_features **features) {
    const double start = lns_clock_ms();
    lns_detect_options options;
    lns_status status = begin(model, bytes, __func__, given, &options, features);
    lns_plane *plane = NULL;
    if (status == LNS_OK)
        status = lns_plane_decode(bytes, size, options.image, &plane);
    return detect_made(model, status, plane, &options, start, features);
}

lns_status lns_superpoint_detect_pixels(lns_superpoint *model, const void *pixels, uint32_t width, uint32_t height,
                                        ptrdiff_t stride, lns_pixel_format format, const lns_detect_options *given,
                                        lns_features **features) {
    const double start = lns_clock_ms();
    lns_detect_options options;
    lns_status status = begin(model, pixels, __func__, given, &options, features);
    lns_plane *plane = NULL;
    if (status == LNS_OK)
        status = lns_plane_from_pixels(pixels, width, height, stride, format, &plane);
    return detect_made(model, status, plane, &options, start, features);
}

lns_status lns_superpoint_forward(lns_superpoint *model, const uint8_t *frame, float *scores, float *descriptors) {
    if (model == NULL || frame == NULL || scores == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_superpoint_forward: model, frame and scores must not be NULL");
    return model->backend->operations->forward(model->backend, frame, scores, descriptors);
}

lns_status lns_superpoint_profile(lns_superpoint *model, const uint8_t *frame, lns_step_time *steps, size_t *count) {
    if (model == NULL || frame == NULL || steps == NULL || count == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_superpoint_profile: model, frame, steps and count must not be NULL");
    return model->backend->operations->profile(model->backend, frame, steps, count);
}

lns_status lns_superpoint_prepare(lns_superpoint *model) {
    if (model == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_superpoint_prepare: model must not be NULL");
    return model->backend->operations->prepare(model->backend);
}

lns_status lns_superpoint_peak(lns_superpoint *model, double *gflops) {
    if (model == NULL || gflops == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_superpoint_peak: model and gflops must not be NULL");
    return model->backend->operations->peak(model->backend, gflops);
}
