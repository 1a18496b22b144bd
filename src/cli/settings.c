/* SPDX-License-Identifier: Apache-2.0 */
/* The options that several commands share, and the way from them to an open model. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define THREADS_LIMIT 256

void lns_cli_model_init(lns_cli_model *model) {
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    *model = (lns_cli_model){
        .threads = options.threads, .precision = (int)options.precision, .device_id = options.device_id};
}

void lns_cli_settings_init(lns_cli_settings *settings) {
    lns_detect_options detect;
    lns_image_options image;
    lns_detect_options_init(&detect);
    lns_image_options_init(&image);
    *settings = (lns_cli_settings){
        .max_keypoints = detect.max_keypoints,
        .nms_radius = detect.nms_radius,
        .keypoint_threshold = detect.keypoint_threshold,
        .max_pixels = (int64_t)image.max_pixels,
        .exif = (int)image.exif,
    };
    lns_cli_model_init(&settings->model);
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

lns_cli_option lns_cli_backend_option(int *target) {
    return (lns_cli_option){.kind = LNS_CLI_CHOICE, .name = "backend", .target = target, .choices = "cpu blackhole"};
}

lns_cli_option lns_cli_device_option(int64_t *target) {
    return (lns_cli_option){.kind = LNS_CLI_INTEGER, .name = "device-id", .target = target, .low = 0, .high = INT_MAX};
}

void lns_cli_model_options(lns_cli_model *model, lns_cli_option *rows) {
    const lns_cli_option table[LNS_CLI_MODEL_OPTIONS] = {
        lns_cli_weights_option(&model->weights),
        lns_cli_threads_option(&model->threads),
        lns_cli_precision_option(&model->precision),
        lns_cli_backend_option(&model->backend),
        lns_cli_device_option(&model->device_id),
    };
    memcpy(rows, table, sizeof table);
}

void lns_cli_settings_options(lns_cli_settings *settings, lns_cli_option *rows) {
    const lns_cli_option table[LNS_CLI_SETTINGS_OPTIONS - LNS_CLI_MODEL_OPTIONS] = {
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
        {.kind = LNS_CLI_CHOICE, .name = "exif", .target = &settings->exif, .choices = "ignore apply"},
        {.kind = LNS_CLI_INTEGER, .name = "max-pixels", .target = &settings->max_pixels, .low = 0, .high = 1e15},
        {.kind = LNS_CLI_FLAG, .name = "quiet", .letter = 'q', .target = &settings->quiet, .low = 1},
    };
    memcpy(rows, table, sizeof table);
    lns_cli_model_options(&settings->model, rows + sizeof table / sizeof table[0]);
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

bool lns_cli_check_device(int64_t device_id) {
    const char *text = getenv("TT_DEVICE_ID");
    int64_t number;
    if (device_id >= 0 || text == NULL || text[0] == '\0')
        return true;
    if (lns_cli_parse_integer(text, &number) && number >= 0 && number <= INT_MAX)
        return true;
    lns_cli_error("TT_DEVICE_ID must be the N of a card /dev/tenstorrent/N, but is '%s'", text);
    return false;
}

int lns_cli_open_model(const lns_cli_model *wanted, lns_superpoint **model) {
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = wanted->weights;
    options.threads = (int)wanted->threads;
    options.precision = (lns_precision)wanted->precision;
    options.backend = wanted->backend == LNS_CLI_BLACKHOLE ? "blackhole" : "cpu";
    options.device_id = (int)wanted->device_id;
    if (wanted->backend == LNS_CLI_BLACKHOLE && !lns_cli_check_device(wanted->device_id))
        return LNS_CLI_USAGE;
    if (wanted->backend == LNS_CLI_BLACKHOLE)
        lns_cli_expect_card();
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
    case LNS_ERROR_UNSUPPORTED: /* a card, or --precision */
        lns_cli_report(NULL);
        return wanted->backend == LNS_CLI_BLACKHOLE ? LNS_CLI_OTHER : LNS_CLI_USAGE;
    default:
        lns_cli_report(NULL);
        return lns_cli_exit_code(status);
    }
}
