/* SPDX-License-Identifier: Apache-2.0 */
/* lensing bench: how long the network and a whole detection take. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char lns_cli_bench_help[] = "Usage: lensing bench [OPTION]...\n"
                                  "\n"
                                  "Measures the forward pass of the network alone, and a whole detection with the\n"
                                  "default parameters and descriptors: of a given image, from its bytes in memory,\n"
                                  "decoding included; else of a made-up plane of 1600 x 900 pixels.\n"
                                  "\n"
                                  "      --json         one JSON object\n"
                                  "      --layers       also the layers of the network, each with its speed and the\n"
                                  "                     share of what the CPU can do at most, which is measured\n"
                                  "  -r, --runs N       runs that count, after 3 that do not; 1 to 100000  [20]\n"
                                  "  -i, --image FILE   the image to detect in\n"
                                  "  -w, --weights W    a folder, a .safetensors file or a Hugging Face\n"
                                  "                     repository[@revision]  [those of the program]\n"
                                  "  -t, --threads N    threads of the network, 0 to 256; 0: one for each CPU  [0]\n"
                                  "      --precision P  fp32 or bf16  [fp32]\n"
                                  "      --backend B    cpu, or blackhole (a Tenstorrent card; no --layers)  [cpu]\n"
                                  "      --device-id N  the card /dev/tenstorrent/N  [TT_DEVICE_ID, or 0]\n"
                                  "  -q, --quiet        no progress bar\n"
                                  "  -h, --help         this text\n"
                                  "\n"
                                  "Times are in milliseconds: the median, the fastest, and the interquartile range.\n"
                                  "\n"
                                  "Examples:\n"
                                  "  lensing bench\n"
                                  "  lensing bench --image photo.jpg --runs 50 --threads 1\n"
                                  "  lensing bench --layers --precision bf16\n"
                                  "  lensing bench --json | jq .forward_ms\n"
                                  "\n"
                                  "Exit code: 0, or 1 when the image cannot be read, 2 wrong usage, 3 weights\n"
                                  "missing or wrong, 4 output could not be written, 5 other errors,\n"
                                  "130 interrupted.\n";

#define WARM_UP_RUNS 3
#define PLANE_WIDTH 1600
#define PLANE_HEIGHT 900

typedef struct bench {
    int json;
    int layers;
    int quiet;
    int64_t runs;
    const char *image;
    lns_cli_model wanted;
    lns_superpoint *model;
    void *bytes; /* of the image */
    size_t size;
    lns_plane *plane; /* when there is no image */
    uint8_t *frame;
    float *scores;
    float *descriptors;
    double *times;
    /* Of the last detection. */
    size_t keypoints;
    uint32_t width, height;
} bench;

typedef struct spread {
    double median, fastest, range;
} spread;

/* Gray rectangles and a little noise: corners, edges and texture, the same in every run. */
static void paint(uint8_t *pixels, int width, int height) {
    uint32_t state = 12345;
    memset(pixels, 128, (size_t)width * (size_t)height);
    for (int i = 0; i < 300; i++) {
        uint32_t random[5];
        for (int j = 0; j < 5; j++) {
            state = state * 1664525u + 1013904223u;
            random[j] = state >> 8;
        }
        const int left = (int)(random[0] % (uint32_t)width);
        const int top = (int)(random[1] % (uint32_t)height);
        const int right = left + 8 + (int)(random[2] % 120);
        const int bottom = top + 8 + (int)(random[3] % 120);
        for (int y = top; y < bottom && y < height; y++) {
            for (int x = left; x < right && x < width; x++)
                pixels[(size_t)y * (size_t)width + (size_t)x] = (uint8_t)(random[4] & 0xff);
        }
    }
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++) {
        state = state * 1664525u + 1013904223u;
        pixels[i] = (uint8_t)((pixels[i] * 15u + (state >> 24)) / 16u);
    }
}

static int prepare(bench *job) {
    const size_t pixels = (size_t)LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT;
    job->frame = malloc(pixels);
    job->scores = malloc(pixels * sizeof(float));
    job->descriptors = malloc(pixels / 64 * LNS_DESCRIPTOR_SIZE * sizeof(float));
    job->times = malloc((size_t)job->runs * sizeof(double));
    if (job->frame == NULL || job->scores == NULL || job->descriptors == NULL || job->times == NULL)
        return lns_cli_out_of_memory();
    paint(job->frame, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT);
    if (job->image != NULL) {
        char message[1024];
        if (lns_cli_read_bytes(job->image, &job->bytes, &job->size, message, sizeof message))
            return LNS_CLI_OK;
        lns_cli_report_message(lns_cli_input_title(job->image), message);
        return lns_cli_interrupted() ? LNS_CLI_INTERRUPTED : LNS_CLI_IMAGE;
    }
    uint8_t *gray = malloc((size_t)PLANE_WIDTH * PLANE_HEIGHT);
    if (gray == NULL)
        return lns_cli_out_of_memory();
    paint(gray, PLANE_WIDTH, PLANE_HEIGHT);
    const lns_status status = lns_plane_from_pixels(gray, PLANE_WIDTH, PLANE_HEIGHT, 0, LNS_PIXEL_GRAY8, &job->plane);
    free(gray);
    if (status != LNS_OK)
        lns_cli_report(NULL);
    return lns_cli_exit_code(status);
}

static int run_forward(bench *job) {
    const lns_status status = lns_superpoint_forward(job->model, job->frame, job->scores, job->descriptors);
    if (status != LNS_OK)
        lns_cli_report(NULL);
    return lns_cli_exit_code(status);
}

static int run_detect(bench *job) {
    lns_features *features = NULL;
    const lns_status status = job->image != NULL
                                  ? lns_superpoint_detect_encoded(job->model, job->bytes, job->size, NULL, &features)
                                  : lns_superpoint_detect_plane(job->model, job->plane, NULL, &features);
    if (status != LNS_OK) {
        lns_cli_report(job->image != NULL ? lns_cli_input_title(job->image) : NULL);
        return job->image != NULL ? LNS_CLI_IMAGE : lns_cli_exit_code(status);
    }
    job->keypoints = features->count;
    job->width = features->image_width;
    job->height = features->image_height;
    lns_features_close(&features);
    return LNS_CLI_OK;
}

/* What --layers shows: the steps of the network with their median times. */
typedef struct layers {
    lns_step_time steps[LNS_STEPS_LIMIT];
    size_t count;
    double peak_gflops;
} layers;

static int compare_times(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between the two nearest values, as numpy.percentile does. */
static double quantile(const double *sorted, size_t count, double share) {
    const double place = share * (double)(count - 1);
    const size_t below = (size_t)place;
    const size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

static int measure(bench *job, const char *label, int (*run)(bench *), spread *result) {
    const int64_t all = WARM_UP_RUNS + job->runs;
    lns_cli_progress progress;
    lns_cli_progress_start(&progress, label, false, !job->quiet);
    int code = LNS_CLI_OK;
    for (int64_t i = 0; i < all && code == LNS_CLI_OK; i++) {
        lns_cli_progress_update(&progress, (uint64_t)i, (uint64_t)all);
        const double start = lns_cli_clock_ms();
        code = run(job);
        if (i >= WARM_UP_RUNS)
            job->times[i - WARM_UP_RUNS] = lns_cli_clock_ms() - start;
        if (lns_cli_interrupted())
            code = LNS_CLI_INTERRUPTED;
    }
    lns_cli_progress_stop(&progress);
    if (code != LNS_CLI_OK)
        return code;
    const size_t count = (size_t)job->runs;
    qsort(job->times, count, sizeof *job->times, compare_times);
    result->median = quantile(job->times, count, 0.5);
    result->fastest = job->times[0];
    result->range = quantile(job->times, count, 0.75) - quantile(job->times, count, 0.25);
    return LNS_CLI_OK;
}

/* The times of all runs, LNS_STEPS_LIMIT for each. */
static int profile_runs(bench *job, lns_step_time *runs, layers *result) {
    for (int64_t i = -WARM_UP_RUNS; i < job->runs; i++) {
        lns_step_time *steps = runs + (i < 0 ? 0 : i) * LNS_STEPS_LIMIT;
        const lns_status status = lns_superpoint_profile(job->model, job->frame, steps, &result->count);
        if (status != LNS_OK) {
            lns_cli_report(NULL);
            return lns_cli_exit_code(status);
        }
        if (lns_cli_interrupted())
            return LNS_CLI_INTERRUPTED;
    }
    return LNS_CLI_OK;
}

static int measure_layers(bench *job, layers *result) {
    lns_step_time *runs = calloc((size_t)job->runs, LNS_STEPS_LIMIT * sizeof *runs);
    if (runs == NULL)
        return lns_cli_out_of_memory();
    const int code = profile_runs(job, runs, result);
    for (size_t k = 0; k < result->count && code == LNS_CLI_OK; k++) {
        for (int64_t i = 0; i < job->runs; i++)
            job->times[i] = runs[i * LNS_STEPS_LIMIT + (int64_t)k].ms;
        qsort(job->times, (size_t)job->runs, sizeof *job->times, compare_times);
        result->steps[k] = runs[k];
        result->steps[k].ms = quantile(job->times, (size_t)job->runs, 0.5);
    }
    free(runs);
    if (code != LNS_CLI_OK)
        return code;
    const lns_status status = lns_superpoint_peak(job->model, &result->peak_gflops);
    if (status != LNS_OK)
        lns_cli_report(NULL);
    return lns_cli_exit_code(status);
}

static double gflops_of(const lns_step_time *step) {
    return step->ms > 0 ? step->gflop / step->ms * 1e3 : 0;
}

static void add_layers_json(lns_cli_text *text, const layers *measured) {
    lns_cli_text_add(text, ",\"peak_gflops\":");
    lns_cli_text_number(text, measured->peak_gflops, 1);
    lns_cli_text_add(text, ",\"layers\":[");
    for (size_t k = 0; k < measured->count; k++) {
        const lns_step_time *step = &measured->steps[k];
        lns_cli_text_add(text, "%s{\"name\":\"%s\",\"ms\":", k > 0 ? "," : "", step->name);
        lns_cli_text_number(text, step->ms, 3);
        lns_cli_text_add(text, ",\"gflop\":");
        lns_cli_text_number(text, step->gflop, 4);
        lns_cli_text_add(text, ",\"gflops\":");
        lns_cli_text_number(text, gflops_of(step), 1);
        lns_cli_text_add(text, ",\"share_of_peak\":");
        lns_cli_text_number(text, gflops_of(step) / measured->peak_gflops, 3);
        lns_cli_text_add(text, "}");
    }
    lns_cli_text_add(text, "]");
}

static void add_layer_row(lns_cli_text *text, const lns_step_time *step, double peak) {
    lns_cli_text_add(text, "%-20s  %8.2f", step->name, step->ms);
    if (step->gflop > 0)
        lns_cli_text_add(text, "  %7.3f  %8.1f  %6.0f %%", step->gflop, gflops_of(step), 100 * gflops_of(step) / peak);
    lns_cli_text_add(text, "\n");
}

static void add_layers_table(lns_cli_text *text, const layers *measured) {
    lns_step_time all = {.name = "all"};
    lns_cli_text_add(text, "%-20s  %8s  %7s  %8s  %8s\n", "layer", "ms", "GFLOP", "GFLOP/s", "of peak");
    for (size_t k = 0; k < measured->count; k++) {
        add_layer_row(text, &measured->steps[k], measured->peak_gflops);
        all.ms += measured->steps[k].ms;
        all.gflop += measured->steps[k].gflop;
    }
    add_layer_row(text, &all, measured->peak_gflops);
    lns_cli_text_add(text, "peak: %.1f GFLOP/s, measured on registers\n", measured->peak_gflops);
}

static void add_times(lns_cli_text *text, const char *name, const spread *times) {
    lns_cli_text_add(text, "\"%s_ms\":", name);
    lns_cli_text_number(text, times->median, 3);
    lns_cli_text_add(text, ",\"%s_min_ms\":", name);
    lns_cli_text_number(text, times->fastest, 3);
    lns_cli_text_add(text, ",\"%s_iqr_ms\":", name);
    lns_cli_text_number(text, times->range, 3);
}

static void add_json(lns_cli_text *text, const bench *job, const lns_superpoint_info *info, const spread *forward,
                     const spread *detect, const layers *measured) {
    lns_cli_text_add(text, "{");
    add_times(text, "forward", forward);
    lns_cli_text_add(text, ",");
    add_times(text, "detect", detect);
    lns_cli_text_add(text, ",\"runs\":%lld,\"warm_up_runs\":%d", (long long)job->runs, WARM_UP_RUNS);
    lns_cli_text_add(text, ",\"image\":{\"file\":");
    lns_cli_text_json(text, job->image);
    lns_cli_text_add(text, ",\"width\":%lu,\"height\":%lu,\"num_keypoints\":%zu}", (unsigned long)job->width,
                     (unsigned long)job->height, job->keypoints);
    lns_cli_text_add(text, ",\"version\":");
    lns_cli_text_json(text, lns_version());
    lns_cli_text_add(text, ",\"backend\":");
    lns_cli_text_json(text, info->backend);
    lns_cli_text_add(text, ",\"cpu_path\":");
    lns_cli_text_json(text, info->cpu_path);
    lns_cli_text_add(text, ",\"cpu_features\":");
    lns_cli_text_json(text, lns_cpu_features());
    lns_cli_text_add(text, ",\"precision\":");
    lns_cli_text_json(text, info->precision);
    lns_cli_text_add(text, ",\"threads\":%d,\"weights\":", info->threads);
    lns_cli_text_json(text, info->file);
    if (job->layers)
        add_layers_json(text, measured);
    lns_cli_text_add(text, "}\n");
}

static void add_table(lns_cli_text *text, const bench *job, const lns_superpoint_info *info, const spread *forward,
                      const spread *detect) {
    lns_cli_text_add(text, "lensing %s, %s, %s, %s, %d thread%s, %lld run%s\n", lns_version(), info->backend,
                     info->cpu_path, info->precision, info->threads, info->threads == 1 ? "" : "s",
                     (long long)job->runs, job->runs == 1 ? "" : "s");
    lns_cli_text_add(text, "%-8s  %10s  %10s  %10s\n", "ms", "median", "fastest", "iqr");
    lns_cli_text_add(text, "%-8s  %10.2f  %10.2f  %10.2f\n", "forward", forward->median, forward->fastest,
                     forward->range);
    lns_cli_text_add(text, "%-8s  %10.2f  %10.2f  %10.2f\n", "detect", detect->median, detect->fastest, detect->range);
    lns_cli_text_add(text, "detect: %s, %lu x %lu, %zu keypoints\n", job->image != NULL ? job->image : "made-up plane",
                     (unsigned long)job->width, (unsigned long)job->height, job->keypoints);
}

static int report(const bench *job, const spread *forward, const spread *detect, const layers *measured) {
    lns_superpoint_info info;
    const lns_status status = lns_superpoint_describe(job->model, &info, sizeof info);
    if (status != LNS_OK) {
        lns_cli_report(NULL);
        return lns_cli_exit_code(status);
    }
    lns_cli_text text = {0};
    if (job->json)
        add_json(&text, job, &info, forward, detect, measured);
    else
        add_table(&text, job, &info, forward, detect);
    if (job->layers && !job->json)
        add_layers_table(&text, measured);
    return lns_cli_text_print(&text);
}

int lns_cli_bench(int argc, char **argv) {
    bench job = {.runs = 20};
    lns_cli_option options[LNS_CLI_MODEL_OPTIONS + 6] = {
        {.kind = LNS_CLI_FLAG, .name = "json", .target = &job.json, .low = 1},
        {.kind = LNS_CLI_FLAG, .name = "layers", .target = &job.layers, .low = 1},
        {.kind = LNS_CLI_INTEGER, .name = "runs", .letter = 'r', .target = &job.runs, .low = 1, .high = 100000},
        {.kind = LNS_CLI_TEXT, .name = "image", .letter = 'i', .target = (void *)&job.image},
        {.kind = LNS_CLI_FLAG, .name = "quiet", .letter = 'q', .target = &job.quiet, .low = 1},
    };
    lns_cli_model_init(&job.wanted);
    lns_cli_model_options(&job.wanted, options + 5);
    int count;
    int code;
    if (!lns_cli_parse(argc, argv, options, lns_cli_bench_help, &count, &code))
        return code;
    if (count > 0) {
        lns_cli_error("bench: takes no arguments, but got '%s'; the image goes with --image", argv[1]);
        return LNS_CLI_USAGE;
    }
    if (!lns_cli_check_environment())
        return LNS_CLI_USAGE;
    spread forward = {0};
    spread detect = {0};
    layers measured = {.count = 0};
    code = prepare(&job);
    if (code == LNS_CLI_OK)
        code = lns_cli_open_model(&job.wanted, &job.model);
    if (code == LNS_CLI_OK)
        code = measure(&job, "detect ", run_detect, &detect); /* first: it finds out whether the image is good */
    if (code == LNS_CLI_OK)
        code = measure(&job, "forward", run_forward, &forward);
    if (code == LNS_CLI_OK && job.layers)
        code = measure_layers(&job, &measured);
    if (code == LNS_CLI_OK)
        code = report(&job, &forward, &detect, &measured);
    lns_superpoint_close(&job.model);
    lns_plane_close(&job.plane);
    free(job.bytes);
    free(job.frame);
    free(job.scores);
    free(job.descriptors);
    free(job.times);
    return code;
}
