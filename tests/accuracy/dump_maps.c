/* SPDX-License-Identifier: Apache-2.0 */
/* What the library makes of a photo, for check_photos.py and check_bf16.py.
 *
 * dump_maps WEIGHTS [THREADS [fp32|bf16]]   reads commands from stdin, one a line, and answers each on stdout:
 *   photo PATH                    reads the photo, resizes it and runs the network. Answer: photo width and height
 * (uint32), the frame (480 x 640 bytes), scores (480 x 640 float32), descriptors (60 x 80 x 256 float32) detect RADIUS
 * THRESHOLD MAX   detects in the last photo. Answer: count N (uint32), x and y in the frame (N x 2 float32), x and y in
 * the photo (N x 2 float32), scores (N float32), descriptors (N x 256 float32) The first failure ends the program with
 * a line on stderr and exit code 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/lensing.h>

enum {
    FRAME = LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT,
    MAP = LNS_NETWORK_WIDTH / 8 * (LNS_NETWORK_HEIGHT / 8) * LNS_DESCRIPTOR_SIZE
};

static uint8_t frame[FRAME];
static float scores[FRAME];
static float descriptors[MAP];

static void check(lns_status status, const char *what) {
    if (status == LNS_OK)
        return;
    fprintf(stderr, "dump_maps: %s: %s\n", what, lns_error_message());
    exit(1);
}

static void put(const void *bytes, size_t size) {
    if (size > 0 && fwrite(bytes, 1, size, stdout) != size) {
        fprintf(stderr, "dump_maps: cannot write the answer\n");
        exit(1);
    }
}

static void photo(lns_superpoint *model, const char *path, lns_plane **plane) {
    lns_plane *small;
    lns_plane_close(plane);
    check(lns_plane_read(path, NULL, plane), path);
    check(lns_plane_resize(*plane, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT, &small), path);
    for (uint32_t y = 0; y < LNS_NETWORK_HEIGHT; y++)
        memcpy(frame + y * LNS_NETWORK_WIDTH, small->data + y * small->stride, LNS_NETWORK_WIDTH);
    lns_plane_close(&small);
    check(lns_superpoint_forward(model, frame, scores, descriptors), path);
    const uint32_t size[2] = {(*plane)->width, (*plane)->height};
    put(size, sizeof size);
    put(frame, sizeof frame);
    put(scores, sizeof scores);
    put(descriptors, sizeof descriptors);
}

static void detect(lns_superpoint *model, const lns_plane *plane, const lns_detect_options *options) {
    lns_features *features;
    check(lns_superpoint_detect_plane(model, plane, options, &features), "detect");
    const uint32_t count = (uint32_t)features->count;
    put(&count, sizeof count);
    put(features->network_keypoints, features->count * 2 * sizeof(float));
    put(features->keypoints, features->count * 2 * sizeof(float));
    put(features->scores, features->count * sizeof(float));
    put(features->descriptors, features->count * LNS_DESCRIPTOR_SIZE * sizeof(float));
    lns_features_close(&features);
}

static void obey(lns_superpoint *model, char *line, lns_plane **plane) {
    lns_detect_options options;
    lns_detect_options_init(&options);
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "photo ", 6) == 0) {
        photo(model, line + 6, plane);
    } else if (*plane != NULL && sscanf(line, "detect %d %lf %d", &options.nms_radius, &options.keypoint_threshold,
                                        &options.max_keypoints) == 3) {
        detect(model, *plane, &options);
    } else {
        fprintf(stderr, "dump_maps: cannot obey '%s'\n", line);
        exit(1);
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    lns_superpoint_options options;
    lns_superpoint *model;
    lns_plane *plane = NULL;
    char line[8192];
    if (argc < 2) {
        fprintf(stderr, "usage: dump_maps WEIGHTS [THREADS [fp32|bf16]]\n");
        return 2;
    }
    lns_superpoint_options_init(&options);
    options.weights = argv[1];
    options.threads = argc > 2 ? atoi(argv[2]) : 0;
    options.precision = argc > 3 && strcmp(argv[3], "bf16") == 0 ? LNS_PRECISION_BF16 : LNS_PRECISION_FP32;
    check(lns_superpoint_open(&options, &model), argv[1]);
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(model, line, &plane);
    lns_plane_close(&plane);
    lns_superpoint_close(&model);
    return 0;
}
