/* SPDX-License-Identifier: Apache-2.0 */
/* The public API of SuperPoint, with synthetic weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>

#include <lensing/lensing.h>

#include "base/clock.h"
#include "synthetic_file.h"

#define WIDTH 333
#define HEIGHT 217

static uint8_t picture[HEIGHT][WIDTH];

static void make_picture(void) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            picture[y][x] = (uint8_t)((x / 23 + y / 17) % 2 * 140 + (x * 7 + y * 13) % 64);
}

static lns_superpoint *open_model(int threads) {
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = synthetic_file_path;
    options.threads = threads;
    lns_superpoint *model = NULL;
    const lns_status status = lns_superpoint_open(&options, &model);
    if (status != LNS_OK)
        print_error("%s\n", lns_error_message());
    assert_int_equal(status, LNS_OK);
    return model;
}

static lns_features *detect(lns_superpoint *model, const lns_detect_options *options) {
    lns_features *features = NULL;
    assert_int_equal(
        lns_superpoint_detect_pixels(model, picture, WIDTH, HEIGHT, 0, LNS_PIXEL_GRAY8, options, &features), LNS_OK);
    return features;
}

static void assert_same(const lns_features *a, const lns_features *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->keypoints, b->keypoints, a->count * 2 * sizeof(float));
    assert_memory_equal(a->network_keypoints, b->network_keypoints, a->count * 2 * sizeof(float));
    assert_memory_equal(a->scores, b->scores, a->count * sizeof(float));
    assert_int_equal(a->descriptors != NULL, b->descriptors != NULL);
    if (a->descriptors != NULL)
        assert_memory_equal(a->descriptors, b->descriptors, a->count * LNS_DESCRIPTOR_SIZE * sizeof(float));
    assert_int_equal(a->image_width, b->image_width);
    assert_int_equal(a->image_height, b->image_height);
}

static void result_is_complete(void **state) {
    (void)state;
    lns_superpoint *model = open_model(2);
    lns_features *f = detect(model, NULL);
    assert_true(f->count > 0 && f->count <= 1024);
    assert_int_equal(f->image_width, WIDTH);
    assert_int_equal(f->image_height, HEIGHT);
    assert_true(f->scale_x == WIDTH / 640.0 && f->scale_y == HEIGHT / 480.0);
    assert_int_equal(f->max_keypoints, 1024);
    assert_true(f->keypoint_threshold == 0.005);
    assert_int_equal(f->nms_radius, 4);
    assert_int_equal(f->border_removal_distance, 4);
    assert_true(f->timing_ms.forward > 0 && f->timing_ms.preprocess >= 0 && f->timing_ms.postprocess >= 0);
    for (size_t i = 0; i < f->count; i++) {
        const float x = f->network_keypoints[2 * i], y = f->network_keypoints[2 * i + 1];
        assert_true(x >= 4 && x < 636 && y >= 4 && y < 476);
        assert_true(f->keypoints[2 * i] == (float)((double)x * f->scale_x));
        assert_true(f->keypoints[2 * i + 1] == (float)((double)y * f->scale_y));
        assert_true(f->scores[i] > 0.005f && f->scores[i] <= 1 && (i == 0 || f->scores[i] <= f->scores[i - 1]));
        double squares = 0;
        for (size_t k = 0; k < LNS_DESCRIPTOR_SIZE; k++)
            squares += pow(f->descriptors[i * LNS_DESCRIPTOR_SIZE + k], 2);
        assert_true(fabs(sqrt(squares) - 1) < 1e-5);
    }
    lns_features *copy = NULL;
    assert_int_equal(lns_features_copy(f, &copy), LNS_OK);
    assert_same(f, copy);
    assert_true(copy->keypoints != f->keypoints);
    for (const lns_features *const *each = (const lns_features *const[]){f, copy, NULL}; *each != NULL; each++) {
        assert_string_equal((*each)->weights, synthetic_file_path);
        assert_string_equal((*each)->license, "not stated in the file");
    }
    assert_true(copy->weights != f->weights && copy->license != f->license);
    lns_features_close(&f);
    assert_null(f);
    lns_features_close(&copy);
    lns_superpoint_close(&model);
    assert_null(model);
}

static void every_way_in_gives_the_same(void **state) {
    (void)state;
    lns_superpoint *model = open_model(2);
    lns_features *expected = detect(model, NULL), *found = NULL;

    uint8_t *bgra = malloc(sizeof picture * 4), *pgm = malloc(sizeof picture + 32);
    for (int y = 0; y < HEIGHT; y++) /* bottom-up rows */
        for (int x = 0; x < WIDTH; x++) {
            uint8_t *pixel = bgra + ((HEIGHT - 1 - y) * WIDTH + x) * 4;
            pixel[0] = 1;
            pixel[1] = 2;
            pixel[2] = picture[y][x];
            pixel[3] = 0;
        }
    assert_int_equal(lns_superpoint_detect_pixels(model, bgra + (HEIGHT - 1) * WIDTH * 4, WIDTH, HEIGHT, -4 * WIDTH,
                                                  LNS_PIXEL_BGRA32, NULL, &found),
                     LNS_OK);
    assert_same(expected, found);
    lns_features_close(&found);

    const size_t header = (size_t)sprintf((char *)pgm, "P5\n%d %d\n255\n", WIDTH, HEIGHT);
    memcpy(pgm + header, picture, sizeof picture);
    assert_int_equal(lns_superpoint_detect_encoded(model, pgm, header + sizeof picture, NULL, &found), LNS_OK);
    assert_same(expected, found);
    lns_features_close(&found);

    char path[160];
    snprintf(path, sizeof path, "%s.pgm", synthetic_file_path);
    assert_int_equal(lns_file_save(path, pgm, header + sizeof picture), LNS_OK);
    assert_int_equal(lns_superpoint_detect_file(model, path, NULL, &found), LNS_OK);
    assert_same(expected, found);
    lns_features_close(&found);

    lns_plane *plane = NULL;
    assert_int_equal(lns_plane_read(path, NULL, &plane), LNS_OK);
    assert_int_equal(lns_superpoint_detect_plane(model, plane, NULL, &found), LNS_OK);
    assert_same(expected, found);
    lns_features_close(&found);
    lns_plane_close(&plane);

    unlink(path);
    free(bgra);
    free(pgm);
    lns_features_close(&expected);
    lns_superpoint_close(&model);
}

static void options_do_what_they_say(void **state) {
    (void)state;
    lns_superpoint *model = open_model(2);
    lns_features *all = detect(model, NULL);
    lns_detect_options options;
    lns_detect_options_init(&options);
    static const int limits[] = {0, 1, 2, 5};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        options.max_keypoints = limits[i];
        lns_features *few = detect(model, &options);
        assert_int_equal(few->count, limits[i]);
        assert_non_null(few->descriptors);
        assert_memory_equal(few->keypoints, all->keypoints, few->count * 2 * sizeof(float));
        assert_memory_equal(few->descriptors, all->descriptors, few->count * LNS_DESCRIPTOR_SIZE * sizeof(float));
        lns_features_close(&few);
    }
    lns_detect_options_init(&options);
    options.return_descriptors = 0;
    lns_features *bare = detect(model, &options);
    assert_null(bare->descriptors);
    assert_int_equal(bare->count, all->count);
    assert_memory_equal(bare->scores, all->scores, all->count * sizeof(float));
    lns_features_close(&bare);
    options.keypoint_threshold = 1.0;
    bare = detect(model, &options);
    assert_int_equal(bare->count, 0);
    lns_features_close(&bare);
    /* Every pixel inside the border. */
    options.keypoint_threshold = 0.0;
    options.nms_radius = 0;
    options.max_keypoints = -1;
    bare = detect(model, &options);
    assert_int_equal(bare->count, (640 - 8) * (480 - 8));
    lns_features_close(&bare);
    lns_features_close(&all);
    lns_superpoint_close(&model);
}

static void bad_options_are_refused(void **state) {
    (void)state;
    lns_superpoint *model = open_model(1);
    static const struct {
        int32_t max_keypoints, nms_radius;
        double threshold;
        const char *word;
    } cases[] = {
        {-2, 4, 0.005, "max_keypoints is -2"}, {307201, 4, 0.005, "307200"},     {10, -1, 0.005, "nms_radius is -1"},
        {10, 33, 0.005, "nms_radius is 33"},   {10, 4, -0.1, "threshold is -0.1"}, {10, 4, 1.1, "0 to 1"},
        {10, 4, NAN, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lns_detect_options options;
        lns_detect_options_init(&options);
        options.max_keypoints = cases[i].max_keypoints;
        options.nms_radius = cases[i].nms_radius;
        options.keypoint_threshold = cases[i].threshold;
        lns_features *features = (lns_features *)(void *)picture;
        assert_int_equal(
            lns_superpoint_detect_pixels(model, picture, WIDTH, HEIGHT, 0, LNS_PIXEL_GRAY8, &options, &features),
            LNS_ERROR_INVALID_ARGUMENT);
        assert_null(features);
        assert_non_null(strstr(lns_error_message(), cases[i].word));
    }
    lns_detect_options options;
    memset(&options, 0, sizeof options); /* not initialised */
    lns_features *features;
    assert_int_equal(
        lns_superpoint_detect_pixels(model, picture, WIDTH, HEIGHT, 0, LNS_PIXEL_GRAY8, &options, &features),
        LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_superpoint_detect_file(NULL, "x", NULL, &features), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_superpoint_detect_file(model, NULL, NULL, &features), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_superpoint_detect_file(model, "x", NULL, NULL), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_superpoint_detect_file(model, "/no such file", NULL, &features), LNS_ERROR_IO);
    assert_non_null(strstr(lns_error_message(), "/no such file"));
    lns_superpoint_close(&model);

    lns_superpoint_options open;
    lns_superpoint_options_init(&open);
    open.weights = synthetic_file_path;
    open.threads = 257;
    assert_int_equal(lns_superpoint_open(&open, &model), LNS_ERROR_INVALID_ARGUMENT);
    assert_null(model);
    open.threads = 1;
    open.backend = "cuda";
    assert_int_equal(lns_superpoint_open(&open, &model), LNS_ERROR_UNSUPPORTED);
    assert_string_equal(lns_error_message(), "backend 'cuda' is not known; there are 'cpu' and 'blackhole'");
    lns_superpoint_close(&model);
    lns_superpoint_close(NULL);
}

static void environment_chooses_kernels(void **state) {
    (void)state;
    setenv("LENSING_CPU", "c", 1);
    lns_superpoint *model = open_model(3);
    lns_superpoint_info info;
    assert_int_equal(lns_superpoint_describe(model, &info, sizeof info), LNS_OK);
    assert_string_equal(info.cpu_path, "c");
    assert_string_equal(info.backend, "cpu");
    assert_string_equal(info.precision, "fp32");
    assert_int_equal(info.threads, 3);
    assert_string_equal(info.file, synthetic_file_path);
    assert_int_equal(info.border_removal_distance, 4);
    lns_superpoint_close(&model);
    setenv("LENSING_CPU", "mmx", 1);
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = synthetic_file_path;
    assert_int_equal(lns_superpoint_open(&options, &model), LNS_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(lns_error_message(), "mmx"));
    unsetenv("LENSING_CPU");
}

/* The weights inside the library, when this build has some: an open model, and results that name them. */
static void builtin_weights_are_the_default(void **state) {
    (void)state;
    static const char *const variables[] = {"SP_WEIGHTS_DIR", "HF_MODEL", "TT_WEIGHTS_REVISION"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    if (lns_weights_builtin() == NULL)
        skip();
    lns_superpoint *model = NULL;
    if (lns_superpoint_open(NULL, &model) != LNS_OK)
        fail_msg("%s", lns_error_message());
    lns_superpoint_info info;
    assert_int_equal(lns_superpoint_describe(model, &info, sizeof info), LNS_OK);
    assert_null(info.file);
    assert_string_equal(info.repository, lns_weights_builtin());
    assert_string_equal(info.license, "Apache-2.0");
    assert_int_equal(info.border_removal_distance, 4);
    lns_features *features = detect(model, NULL);
    assert_string_equal(features->weights, info.repository);
    assert_string_equal(features->license, info.license);
    lns_superpoint_close(&model);
    assert_string_equal(features->license, "Apache-2.0"); /* the result has a copy */
    lns_features_close(&features);
}

typedef struct caller {
    lns_superpoint *model;
    const lns_features *expected;
} caller;

static void *detect_often(void *argument) {
    const caller *c = argument;
    for (int i = 0; i < 3; i++) {
        lns_features *features = detect(c->model, NULL);
        assert_same(c->expected, features);
        lns_features_close(&features);
    }
    return NULL;
}

static void threads_share_a_model(void **state) {
    (void)state;
    lns_superpoint *model = open_model(2);
    lns_features *expected = detect(model, NULL);
    caller c = {model, expected};
    pthread_t threads[5];
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, detect_often, &c), 0);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    lns_features_close(&expected);
    lns_superpoint_close(&model);
}

/* Pictures of every small size, and of extreme ones. */
static void any_size_works(void **state) {
    (void)state;
    lns_superpoint *model = open_model(2);
    lns_detect_options options;
    lns_detect_options_init(&options);
    options.return_descriptors = 0;
    static const uint32_t extreme[][2] = {{1, 65500}, {65500, 1}, {65535, 8}, {604, 960}, {481, 641}, {639, 479}};
    uint8_t *pixels = malloc(65535 * 8 + 604 * 960);
    for (size_t i = 0; i < 65535 * 8 + 604 * 960; i++)
        pixels[i] = (uint8_t)(i * 2654435761U >> 24);
    for (size_t i = 0; i < sizeof extreme / sizeof *extreme; i++) {
        lns_features *features = NULL;
        assert_int_equal(lns_superpoint_detect_pixels(model, pixels, extreme[i][0], extreme[i][1], 0, LNS_PIXEL_GRAY8,
                                                      &options, &features),
                         LNS_OK);
        for (size_t k = 0; k < features->count; k++)
            assert_true(features->keypoints[2 * k] < (float)extreme[i][0] &&
                        features->keypoints[2 * k + 1] < (float)extreme[i][1]);
        lns_features_close(&features);
    }
    /* All sizes go through the resize; the network sees 640 x 480 always, so a part of them is enough for it. */
    for (uint32_t h = 1; h <= 40; h++)
        for (uint32_t w = 1; w <= 40; w++) {
            lns_plane *plane = NULL, *frame = NULL;
            assert_int_equal(lns_plane_from_pixels(pixels, w, h, 0, LNS_PIXEL_GRAY8, &plane), LNS_OK);
            assert_int_equal(lns_plane_resize(plane, 640, 480, &frame), LNS_OK);
            lns_features *features = NULL;
            if ((h * 40 + w) % 97 == 0) {
                assert_int_equal(lns_superpoint_detect_plane(model, plane, &options, &features), LNS_OK);
                assert_int_equal(features->image_width, w);
                assert_int_equal(features->image_height, h);
            }
            lns_features_close(&features);
            lns_plane_close(&plane);
            lns_plane_close(&frame);
        }
    free(pixels);
    lns_superpoint_close(&model);
}

static void blank_picture_is_a_normal_result(void **state) {
    (void)state;
    lns_superpoint *model = open_model(2);
    static const uint8_t blank[64 * 48];
    lns_detect_options options;
    lns_detect_options_init(&options);
    options.keypoint_threshold = 1.0;
    lns_features *features = NULL;
    assert_int_equal(
        lns_superpoint_detect_pixels(model, blank, 64, 48, 0, LNS_PIXEL_GRAY8, &options, &features), LNS_OK);
    assert_int_equal(features->count, 0);
    lns_features_close(&features);
    lns_superpoint_close(&model);
}

static int set_up(void **state) {
    make_picture();
    return synthetic_file_set_up(state);
}

/* Pages of memory that this process has now; 0 where the system has no such file. */
static long resident_pages(void) {
    long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident;
}

static void prepare_fetches_what_a_detection_needs(void **state) {
    (void)state;
    static uint8_t frame[LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT];
    static float scores[LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT], again[LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (uint8_t)(i * i >> 7);
    memset(scores, 1, sizeof scores);
    lns_superpoint *model = open_model(2);
    const long opened = resident_pages();
    assert_int_equal(lns_superpoint_prepare(model), LNS_OK);
    const long prepared = resident_pages();
    assert_int_equal(lns_superpoint_forward(model, frame, scores, NULL), LNS_OK);
    const long used = resident_pages(), megabyte = (1 << 20) / sysconf(_SC_PAGESIZE);
    if (opened > 0) {
        assert_true(prepared - opened > 30 * megabyte);
        assert_true(used - prepared < 4 * megabyte);
    }
    assert_int_equal(lns_superpoint_prepare(model), LNS_OK);
    assert_int_equal(lns_superpoint_forward(model, frame, again, NULL), LNS_OK);
    assert_memory_equal(scores, again, sizeof scores);
    assert_int_equal(lns_superpoint_prepare(NULL), LNS_ERROR_INVALID_ARGUMENT);
    lns_superpoint_close(&model);
}

static void profile_tells_the_steps_in_order(void **state) {
    (void)state;
    lns_superpoint *model = open_model(2);
    static uint8_t frame[LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT];
    lns_step_time steps[LNS_STEPS_LIMIT];
    size_t count = 0;
    const double before = lns_clock_ms();
    assert_int_equal(lns_superpoint_profile(model, frame, steps, &count), LNS_OK);
    const double all = lns_clock_ms() - before;
    assert_int_equal(count, 10);
    assert_string_equal(steps[0].name, "bytes to floats");
    assert_string_equal(steps[count - 1].name, "convPb, convDb");
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(steps[i].ms > 0 && (steps[i].gflop > 0 || i == 0));
        sum += steps[i].ms;
    }
    assert_true(sum <= all);
    double gflops = 0;
    assert_int_equal(lns_superpoint_peak(model, &gflops), LNS_OK);
    assert_true(gflops > 0.01 && gflops < 1e6);
    assert_int_equal(lns_superpoint_profile(model, NULL, steps, &count), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_superpoint_profile(model, frame, steps, NULL), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_superpoint_peak(NULL, &gflops), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_superpoint_peak(model, NULL), LNS_ERROR_INVALID_ARGUMENT);
    lns_superpoint_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(result_is_complete),
        cmocka_unit_test(every_way_in_gives_the_same),
        cmocka_unit_test(options_do_what_they_say),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(environment_chooses_kernels),
        cmocka_unit_test(builtin_weights_are_the_default),
        cmocka_unit_test(threads_share_a_model),
        cmocka_unit_test(any_size_works),
        cmocka_unit_test(blank_picture_is_a_normal_result),
        cmocka_unit_test(prepare_fetches_what_a_detection_needs),
        cmocka_unit_test(profile_tells_the_steps_in_order),
    };
    return cmocka_run_group_tests_name("superpoint", tests, set_up, synthetic_file_tear_down);
}
