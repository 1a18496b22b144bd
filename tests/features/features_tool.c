/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the Python tests the functions of features/. Features come from a small file that tool.py writes. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <lensing/features.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "features/base64.h"
#include "features/json.h"
#include "features/half.h"
#include "features/npz.h"
#include "features/number.h"

#define FILE_LIMIT ((size_t)1 << 31)

static void require(lns_status status) {
    if (status == LNS_OK)
        return;
    fprintf(stderr, "%s: %s\n", lns_status_name(status), lns_error_message());
    exit(1);
}

static char *argument(int count, char **values, int index) {
    if (index < count)
        return values[index];
    fprintf(stderr, "an argument is missing\n");
    exit(2);
}

static void *load(const char *path, size_t *size) {
    void *bytes;
    require(lns_file_read(path, FILE_LIMIT, &bytes, size));
    return bytes;
}

typedef struct stored {
    uint32_t count, has_descriptors, width, height;
    int32_t max_keypoints, nms_radius, border, unused;
    double threshold, preprocess, forward, postprocess;
} stored;

/* The bytes stay allocated until free_features(). */
static lns_features *load_features(const char *path) {
    size_t size;
    char *bytes = load(path, &size);
    const stored *s = (const stored *)(void *)bytes;
    lns_features *f = calloc(1, sizeof *f);
    float *keypoints = calloc((size_t)s->count * 2 + 1, sizeof *keypoints);
    f->count = s->count;
    f->network_keypoints = (const float *)(const void *)(bytes + sizeof *s);
    f->scores = f->network_keypoints + 2 * f->count;
    if (s->has_descriptors)
        f->descriptors = f->scores + f->count;
    f->image_width = s->width;
    f->image_height = s->height;
    f->scale_x = s->width / (double)LNS_NETWORK_WIDTH;
    f->scale_y = s->height / (double)LNS_NETWORK_HEIGHT;
    for (size_t i = 0; i < f->count; i++) {
        keypoints[2 * i] = (float)((double)f->network_keypoints[2 * i] * f->scale_x);
        keypoints[2 * i + 1] = (float)((double)f->network_keypoints[2 * i + 1] * f->scale_y);
    }
    f->keypoints = keypoints;
    f->max_keypoints = s->max_keypoints;
    f->keypoint_threshold = s->threshold;
    f->nms_radius = s->nms_radius;
    f->border_removal_distance = s->border;
    f->timing_ms = (lns_timing){s->preprocess, s->forward, s->postprocess};
    return f;
}

static void free_features(lns_features *f) {
    lns_free((char *)(size_t)f->network_keypoints - sizeof(stored));
    free((void *)(size_t)f->keypoints);
    free(f);
}

/* json FEATURES OUT [file NAME] [descriptors] [weights] [license LICENSE] [serving_path TRACED DEVICE_NMS] */
static void json(int count, char **values) {
    lns_features *f = load_features(argument(count, values, 0));
    lns_json_shape shape = {0};
    int i = 2;
    while (i < count) {
        if (strcmp(values[i], "file") == 0) {
            shape.file = argument(count, values, i + 1);
            i += 2;
        } else if (strcmp(values[i], "descriptors") == 0) {
            shape.descriptors = 1;
            i += 1;
        } else if (strcmp(values[i], "weights") == 0) {
            shape.weights = 1;
            i += 1;
        } else if (strcmp(values[i], "license") == 0) {
            f->license = argument(count, values, i + 1);
            i += 2;
        } else {
            shape.serving_path = 1;
            shape.traced = atoi(argument(count, values, i + 1));
            shape.device_nms = atoi(argument(count, values, i + 2));
            i += 3;
        }
    }
    char *text = NULL;
    size_t size;
    double best = 1e9;
    for (int run = 0; run < 20; run++) {
        lns_buffer_free(text);
        const double start = lns_clock_ms();
        if (shape.serving_path) {
            require(lns_json_write(f, &shape, &text, &size));
        } else {
            lns_json_options options;
            lns_json_options_init(&options);
            options.file = shape.file;
            options.descriptors = shape.descriptors;
            options.weights = shape.weights;
            require(lns_features_to_json(f, &options, &text, &size));
        }
        const double took = lns_clock_ms() - start;
        best = took < best ? took : best;
    }
    printf("%.4f\n", best);
    require(lns_file_save(argument(count, values, 1), text, size));
    lns_buffer_free(text);
    free_features(f);
}

/* npz FEATURES OUT [WEIGHTS LICENSE] */
static void npz(int count, char **values) {
    lns_features *f = load_features(argument(count, values, 0));
    if (count > 2) {
        f->weights = argument(count, values, 2);
        f->license = argument(count, values, 3);
    }
    void *bytes;
    size_t size;
    require(lns_features_to_npz(f, &bytes, &size));
    require(lns_file_save(argument(count, values, 1), bytes, size));
    lns_buffer_free(bytes);
    free_features(f);
}

/* half FLOATS OUT */
static void half(int count, char **values) {
    size_t size;
    float *floats = load(argument(count, values, 0), &size);
    uint16_t *halves = calloc(size / 4 + 1, sizeof *halves);
    lns_half_from_float(floats, size / 4, halves);
    require(lns_file_save(argument(count, values, 1), halves, size / 2));
    free(halves);
    lns_free(floats);
}

/* base64 BYTES: a line for the first 0, 1, 2 ... all of the bytes, each time from memory of just that size */
static void base64(int count, char **values) {
    size_t size;
    unsigned char *bytes = load(argument(count, values, 0), &size);
    for (size_t length = 0; length <= size; length++) {
        unsigned char *exact = malloc(length > 0 ? length : 1);
        char *text = malloc(LNS_BASE64_SIZE(length) + 1);
        memcpy(exact, bytes, length);
        lns_base64_encode(exact, length, text);
        printf("%.*s\n", (int)LNS_BASE64_SIZE(length), text);
        free(text);
        free(exact);
    }
    lns_free(bytes);
}

/* number DOUBLES DECIMALS: a line for each; DECIMALS below 0: the shortest text */
static void number(int count, char **values) {
    size_t size;
    double *doubles = load(argument(count, values, 0), &size);
    const int decimals = atoi(argument(count, values, 1));
    for (size_t i = 0; i < size / sizeof *doubles; i++) {
        char text[LNS_NUMBER_SIZE];
        const size_t length =
            decimals < 0 ? lns_number_shortest(doubles[i], text) : lns_number_rounded(doubles[i], decimals, text);
        printf("%.*s\n", (int)length, text);
    }
    lns_free(doubles);
}

/* hdf5 OUT LIMIT [NAME FEATURES]...: LIMIT is the largest size of a file, as on a full disk; 0: none. A picture that
 * cannot be added is reported and left out. */
static void hdf5(int count, char **values) {
    const char *path = argument(count, values, 0);
    const struct rlimit limit = {(rlim_t)atol(argument(count, values, 1)), RLIM_INFINITY};
    if (limit.rlim_cur > 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    lns_hdf5 *file;
    require(lns_hdf5_create(path, &file));
    for (int i = 2; i + 1 < count; i += 2) {
        lns_features *f = load_features(values[i + 1]);
        if (lns_hdf5_add(file, values[i], f) != LNS_OK)
            printf("%s\n", lns_error_message());
        free_features(f);
    }
    require(lns_hdf5_close(&file));
}

/* abandon OUT NAME FEATURES */
static void abandon(int count, char **values) {
    lns_hdf5 *file;
    lns_features *f = load_features(argument(count, values, 2));
    require(lns_hdf5_create(argument(count, values, 0), &file));
    require(lns_hdf5_add(file, values[1], f));
    lns_hdf5_abandon(&file);
    free_features(f);
}

static lns_matches *find_matches(int count, char **values, lns_features **first, lns_features **second) {
    lns_match_options options;
    lns_match_options_init(&options);
    *first = load_features(argument(count, values, 0));
    *second = load_features(argument(count, values, 1));
    options.ratio = strtof(argument(count, values, 3), NULL);
    options.min_similarity = strtof(argument(count, values, 4), NULL);
    options.threads = atoi(argument(count, values, 5));
    lns_matches *matches = NULL;
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        lns_matches_close(&matches);
        const double start = lns_clock_ms();
        require(lns_match_features(*first, *second, &options, &matches));
        const double took = lns_clock_ms() - start;
        best = took < best ? took : best;
    }
    printf("%.4f\n", best);
    return matches;
}

/* match A B OUT RATIO MIN_SIMILARITY THREADS: writes the lns_match items */
static void match(int count, char **values) {
    lns_features *first, *second;
    lns_matches *matches = find_matches(count, values, &first, &second);
    require(lns_file_save(values[2], matches->items, matches->count * sizeof *matches->items));
    lns_matches_close(&matches);
    free_features(first);
    free_features(second);
}

static void load_plane(const char *path, lns_plane **plane) {
    require(lns_plane_read(path, NULL, plane));
}

/* draw PICTURE FEATURES OUT */
static void draw(int count, char **values) {
    lns_plane *plane;
    load_plane(argument(count, values, 0), &plane);
    lns_features *f = load_features(argument(count, values, 1));
    void *png;
    size_t size;
    require(lns_draw_keypoints(plane, f, &png, &size));
    require(lns_file_save(argument(count, values, 2), png, size));
    lns_buffer_free(png);
    lns_plane_close(&plane);
    free_features(f);
}

/* draw_matches A B OUT RATIO MIN_SIMILARITY THREADS PICTURE_A PICTURE_B */
static void draw_matches(int count, char **values) {
    lns_features *first, *second;
    lns_plane *left, *right;
    load_plane(argument(count, values, 6), &left);
    load_plane(argument(count, values, 7), &right);
    lns_matches *matches = find_matches(count, values, &first, &second);
    void *png;
    size_t size;
    require(lns_draw_matches(left, first, right, second, matches, &png, &size));
    require(lns_file_save(values[2], png, size));
    lns_buffer_free(png);
    lns_matches_close(&matches);
    lns_plane_close(&left);
    lns_plane_close(&right);
    free_features(first);
    free_features(second);
}

int main(int count, char **values) {
    static const struct {
        const char *name;
        void (*function)(int count, char **values);
    } commands[] = {
        {"json", json}, {"npz", npz},     {"half", half},       {"base64", base64}, {"number", number},
        {"hdf5", hdf5}, {"match", match}, {"abandon", abandon}, {"draw", draw},     {"draw_matches", draw_matches},
    };
    for (size_t i = 0; count > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(values[1], commands[i].name) == 0) {
            commands[i].function(count - 2, values + 2);
            return 0;
        }
    }
    fprintf(stderr, "unknown command\n");
    return 2;
}
