/* SPDX-License-Identifier: Apache-2.0 */
/* The options that several commands share, and the way from them to an open model. */
#include <string.h>

#include "cli.h"

#define THREADS_LIMIT 256

void lns_cli_settings_init(lns_cli_settings *settings) {
    lns_detect_options detect;
    lns_image_options image;
    lns_superpoint_options model;
    lns_detect_options_init(&detect);
    lns_image_options_init(&image);
    lns_superpoint_options_init(&model);
    *settings = (lns_cli_settings){
        .max_keypoints = detect.max_keypoints,
        .nms_radius = detect.nms_radius,
        .keypoint_threshold = detect.keypoint_threshold,
        .max_pixels = (int64_t)image.max_pixels,
        .exif = (int)image.exif,
        .threads = model.threads,
        .precision = (int)model.precision,
    };
}

lns_cli_option lns_cli_weights_option(const char **target) {
    return (lns_cli_option){.kind = LNS_CLI_TEXT, .name = "weights", .letter = 'w', .target = (void *)target};
}

lns_cli_option lns_cli_threads_option(int64_t *target) {
    return (lns_cli_option){
        .kind = LNS_CLI_INTEGER, .name = "threads", .letter = 't', .target = target, .low = 0, .high = THREADS_LIMIT};
}

lns_cli_option lns_cli_precision_option(int *target) {
    return (lns_cli_option){.kind = LNS_CLI_CHOICE, .name = "precision", .target = target, .choices = "fp32 bf16"};
}

void lns_cli_settings_options(lns_cli_settings *settings, lns_cli_option *rows) {
    const lns_cli_option table[LNS_CLI_SETTINGS_OPTIONS] = {
        {.kind = LNS_CLI_INTEGER,
         .name = "max-keypoints",
         .letter = 'n',
         .target = &settings->max_keypoints,
         .low = -1,
         .high = LNS_MAX_KEYPOINTS_LIMIT},
        {.kind = LNS_CLI_REAL,
         .name = "keypoint-threshold",
         .target = &settings->keypoint_threshold,
         .low = 0,
         .high = 1},
        {.kind = LNS_CLI_INTEGER,
         .name = "nms-radius",
         .target = &settings->nms_radius,
         .low = 0,
         .high = LNS_NMS_RADIUS_LIMIT},
        lns_cli_weights_option(&settings->weights),
        lns_cli_threads_option(&settings->threads),
        {.kind = LNS_CLI_CHOICE, .name = "exif", .target = &settings->exif, .choices = "ignore apply"},
        {.kind = LNS_CLI_INTEGER, .name = "max-pixels", .target = &settings->max_pixels, .low = 0, .high = 1e15},
        lns_cli_precision_option(&settings->precision),
        {.kind = LNS_CLI_FLAG, .name = "quiet", .letter = 'q', .target = &settings->quiet, .low = 1},
    };
    memcpy(rows, table, sizeof table);
}

void lns_cli_settings_image(const lns_cli_settings *settings, lns_image_options *options) {
    lns_image_options_init(options);
    options->max_pixels = (uint64_t)settings->max_pixels;
    options->exif = (lns_exif_mode)settings->exif;
}

void lns_cli_settings_detect(const lns_cli_settings *settings, lns_detect_options *options) {
    lns_detect_options_init(options);
    options->max_keypoints = (int32_t)settings->max_keypoints;
    options->nms_radius = (int32_t)settings->nms_radius;
    options->keypoint_threshold = settings->keypoint_threshold;
}

bool lns_cli_check_environment(void) {
    if (lns_cpu_path() != NULL)
        return true;
    lns_cli_report(NULL);
    return false;
}

int lns_cli_open_model(const char *weights, int64_t threads, lns_precision precision, lns_superpoint **model) {
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = weights;
    options.threads = (int)threads;
    options.precision = precision;
    const lns_status status = lns_superpoint_open(&options, model);
    switch (status) {
    case LNS_OK:
        return LNS_CLI_OK;
    /* The numbers were checked before: what is left to be wrong is what names the weights. */
    case LNS_ERROR_INVALID_ARGUMENT:
    case LNS_ERROR_IO:
    case LNS_ERROR_FORMAT:
    case LNS_ERROR_CORRUPT:
    case LNS_ERROR_LIMIT:
    case LNS_ERROR_WEIGHTS:
        lns_cli_report(NULL);
        return LNS_CLI_WEIGHTS;
    case LNS_ERROR_UNSUPPORTED: /* --precision */
        lns_cli_report(NULL);
        return LNS_CLI_USAGE;
    default:
        lns_cli_report(NULL);
        return lns_cli_exit_code(status);
    }
}
