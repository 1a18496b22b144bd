/* SPDX-License-Identifier: Apache-2.0 */
/* What a detection takes outside the network, part by part, on one thread.
 * usage: outside_network WEIGHTS IMAGE [ROUNDS]; prints one line a part: its name and the median in milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/lensing.h>

#include "base/clock.h"
#include "superpoint/postprocess.h"

enum { PARTS = 6, WARM_UP = 3 };

static const char *const names[PARTS] = {"decode",
                                         "resize",
                                         "select keypoints",
                                         "sample descriptors",
                                         "all but the network",
                                         "all but network and decoding"};

typedef struct bench {
    lns_superpoint *model;
    void *bytes;
    size_t size;
    float *scores, *map, *descriptors;
    size_t count; /* keypoints */
} bench;

static void check(lns_status status) {
    if (status == LNS_OK)
        return;
    fprintf(stderr, "%s\n", lns_error_message());
    exit(1);
}

static int read_file(const char *path, bench *b) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        return 0;
    b->size = (size_t)ftell(file);
    rewind(file);
    b->bytes = malloc(b->size + 1);
    const int good = b->bytes != NULL && fread(b->bytes, 1, b->size, file) == b->size;
    fclose(file);
    return good;
}

/* Runs every part once, and writes their milliseconds to times. */
static void run(bench *b, double *times) {
    lns_plane *plane, *frame;
    lns_features *features;
    const lns_selection_rules rules = {1024, 0.005F, 4, 4};
    lns_selection selection;
    double start = lns_clock_ms();
    check(lns_plane_decode(b->bytes, b->size, NULL, &plane));
    times[0] = lns_clock_ms() - start;
    start = lns_clock_ms();
    check(lns_plane_resize(plane, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT, &frame));
    times[1] = lns_clock_ms() - start;
    check(lns_superpoint_forward(b->model, frame->data, b->scores, b->map));
    start = lns_clock_ms();
    check(lns_select_keypoints(b->scores, &rules, &selection));
    times[2] = lns_clock_ms() - start;
    start = lns_clock_ms();
    lns_sample_descriptors(b->map, selection.pixels, selection.count, b->descriptors);
    times[3] = lns_clock_ms() - start;
    b->count = selection.count;
    lns_selection_free(&selection);
    lns_plane_close(&plane);
    lns_plane_close(&frame);
    start = lns_clock_ms();
    check(lns_superpoint_detect_encoded(b->model, b->bytes, b->size, NULL, &features));
    times[4] = lns_clock_ms() - start - features->timing_ms.forward;
    lns_features_close(&features);
    check(lns_plane_decode(b->bytes, b->size, NULL, &plane));
    start = lns_clock_ms();
    check(lns_superpoint_detect_plane(b->model, plane, NULL, &features));
    times[5] = lns_clock_ms() - start - features->timing_ms.forward;
    lns_features_close(&features);
    lns_plane_close(&plane);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    bench b = {0};
    const int rounds = argc > 3 ? atoi(argv[3]) : 15;
    if (argc < 3 || rounds < 1 || !read_file(argv[2], &b)) {
        fprintf(stderr, "usage: outside_network WEIGHTS IMAGE [ROUNDS]\n");
        return 2;
    }
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = argv[1];
    options.threads = 1;
    check(lns_superpoint_open(&options, &b.model));
    b.scores = malloc(LNS_FRAME_PIXELS * sizeof(float));
    b.map = malloc((size_t)LNS_CELLS_X * LNS_CELLS_Y * LNS_DESCRIPTOR_SIZE * sizeof(float));
    b.descriptors = malloc((size_t)1024 * LNS_DESCRIPTOR_SIZE * sizeof(float));
    double *times = malloc((size_t)rounds * PARTS * sizeof *times);
    if (b.scores == NULL || b.map == NULL || b.descriptors == NULL || times == NULL)
        return 1;
    double one[PARTS];
    for (int i = -WARM_UP; i < rounds; i++) {
        run(&b, one);
        for (int k = 0; k < PARTS && i >= 0; k++)
            times[k * rounds + i] = one[k];
    }
    printf("%zu keypoints, %s\n", b.count, lns_cpu_path());
    for (int k = 0; k < PARTS; k++) {
        qsort(times + k * rounds, (size_t)rounds, sizeof *times, compare);
        printf("%-30s %8.3f\n", names[k], times[k * rounds + rounds / 2]);
    }
    lns_superpoint_close(&b.model);
    free(b.bytes);
    free(b.scores);
    free(b.map);
    free(b.descriptors);
    free(times);
    return 0;
}
