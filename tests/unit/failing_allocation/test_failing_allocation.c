/* SPDX-License-Identifier: Apache-2.0 */
/* Makes every allocation of the library fail in turn, over all that a program does with it: opening a model, detecting,
 * writing every kind of file, drawing, matching. Each call must report that memory ran out, or give the right result
 * all the same, and leave nothing behind: no memory (the sanitizer build looks for leaks) and no file. Memory that
 * other libraries take for themselves is not made to fail. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <lensing/lensing.h>

#include "base/memory.h"
#include "synthetic_file.h"

#define WIDTH 96
#define HEIGHT 64

/* What is there when nothing fails; the steps compare with it. */
typedef struct scene {
    char folder[64];
    char weights[128]; /* model.safetensors and config.json of the folder */
    char config[128];
    char output[128];
    uint8_t pixels[WIDTH * HEIGHT];
    uint8_t pgm[32 + WIDTH * HEIGHT];
    size_t pgm_size;
    lns_superpoint *model;
    lns_plane *plane;
    lns_features *features;
    lns_matches *matches;
    void *png;
    size_t png_size;
} scene;

/* One step frees all that it makes, also on error. */
typedef lns_status (*step)(const scene *s);

static int same_features(const lns_features *a, const lns_features *b) {
    return a->count == b->count && memcmp(a->keypoints, b->keypoints, 2 * a->count * sizeof(float)) == 0 &&
           memcmp(a->scores, b->scores, a->count * sizeof(float)) == 0 &&
           memcmp(a->descriptors, b->descriptors, LNS_DESCRIPTOR_SIZE * a->count * sizeof(float)) == 0;
}

static lns_status open_model(const scene *s, lns_superpoint **model) {
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = s->folder;
    options.threads = 2;
    return lns_superpoint_open(&options, model);
}

static lns_status step_open(const scene *s) {
    lns_superpoint *model;
    const lns_status status = open_model(s, &model);
    assert_true((status == LNS_OK) == (model != NULL));
    lns_superpoint_close(&model);
    return status;
}

static lns_status check_detected(const scene *s, lns_status status, lns_features *features) {
    assert_true((status == LNS_OK) == (features != NULL));
    if (status == LNS_OK)
        assert_true(same_features(features, s->features));
    lns_features_close(&features);
    return status;
}

static lns_status step_plane_from_pixels(const scene *s) {
    lns_plane *plane;
    const lns_status status = lns_plane_from_pixels(s->pixels, WIDTH, HEIGHT, 0, LNS_PIXEL_GRAY8, &plane);
    assert_true((status == LNS_OK) == (plane != NULL));
    lns_plane_close(&plane);
    return status;
}

/* A new model each time: its first detection also allocates what later ones find there. */
static lns_status step_open_and_detect(const scene *s) {
    lns_superpoint *model;
    lns_status status = open_model(s, &model);
    if (status != LNS_OK)
        return status;
    lns_features *features;
    status = lns_superpoint_detect_encoded(model, s->pgm, s->pgm_size, NULL, &features);
    lns_superpoint_close(&model);
    return check_detected(s, status, features);
}

static lns_status step_copy(const scene *s) {
    lns_features *copy;
    const lns_status status = lns_features_copy(s->features, &copy);
    return check_detected(s, status, copy);
}

static lns_status step_decode_png(const scene *s) {
    lns_plane *plane;
    const lns_status status = lns_plane_decode(s->png, s->png_size, NULL, &plane);
    assert_true((status == LNS_OK) == (plane != NULL));
    lns_plane_close(&plane);
    return status;
}

static lns_status step_resize(const scene *s) {
    lns_plane *plane;
    const lns_status status = lns_plane_resize(s->plane, 50, 200, &plane);
    assert_true((status == LNS_OK) == (plane != NULL));
    lns_plane_close(&plane);
    return status;
}

static lns_status step_json(const scene *s) {
    lns_json_options options;
    lns_json_options_init(&options);
    options.file = "scene.pgm";
    options.descriptors = 1;
    char *text = NULL;
    size_t size = 0;
    const lns_status status = lns_features_to_json(s->features, &options, &text, &size);
    assert_true((status == LNS_OK) == (text != NULL));
    if (status == LNS_OK)
        assert_true(strlen(text) == size && text[0] == '{' && text[size - 1] == '}');
    lns_buffer_free(text);
    return status;
}

static lns_status check_buffer(lns_status status, void *bytes, size_t size, const char *magic) {
    assert_true((status == LNS_OK) == (bytes != NULL));
    if (status == LNS_OK)
        assert_true(size > strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0);
    lns_buffer_free(bytes);
    return status;
}

static lns_status step_npz(const scene *s) {
    void *bytes = NULL;
    size_t size = 0;
    const lns_status status = lns_features_to_npz(s->features, &bytes, &size);
    return check_buffer(status, bytes, size, "PK");
}

static lns_status step_hdf5(const scene *s) {
    lns_hdf5 *file = NULL;
    lns_status status = lns_hdf5_create(s->output, &file);
    if (status == LNS_OK)
        status = lns_hdf5_add(file, "scene/one", s->features);
    if (status == LNS_OK)
        status = lns_hdf5_close(&file);
    lns_hdf5_abandon(&file);
    if (status == LNS_OK)
        assert_int_equal(unlink(s->output), 0);
    return status;
}

static lns_status step_file_save(const scene *s) {
    const lns_status status = lns_file_save(s->output, s->png, s->png_size);
    if (status == LNS_OK)
        assert_int_equal(unlink(s->output), 0);
    return status;
}

static lns_status step_match(const scene *s) {
    lns_matches *matches = NULL;
    const lns_status status = lns_match_features(s->features, s->features, NULL, &matches);
    assert_true((status == LNS_OK) == (matches != NULL));
    if (status == LNS_OK)
        assert_true(matches->count == s->matches->count &&
                    memcmp(matches->items, s->matches->items, matches->count * sizeof *matches->items) == 0);
    lns_matches_close(&matches);
    return status;
}

static lns_status step_draw_keypoints(const scene *s) {
    void *png = NULL;
    size_t size = 0;
    const lns_status status = lns_draw_keypoints(s->plane, s->features, &png, &size);
    return check_buffer(status, png, size, "\x89PNG");
}

static lns_status step_draw_matches(const scene *s) {
    void *png = NULL;
    size_t size = 0;
    const lns_status status = lns_draw_matches(s->plane, s->features, s->plane, s->features, s->matches, &png, &size);
    return check_buffer(status, png, size, "\x89PNG");
}

static int count_files(const char *folder) {
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    int count = 0;
    while (readdir(listing) != NULL)
        count++;
    closedir(listing);
    return count;
}

static void fail_each_allocation(const scene *s, step run) {
    const int files = count_files(s->folder);
    int failed = 1;
    for (long n = 0; failed; n++) {
        lns_alloc_fail_after(n);
        const lns_status status = run(s);
        failed = lns_alloc_fail_after(-1) > n;
        if (status != LNS_OK) {
            assert_true(failed);
            assert_int_equal(status, LNS_ERROR_OUT_OF_MEMORY);
            assert_true(lns_error_message()[0] != '\0');
        }
        assert_int_equal(count_files(s->folder), files);
        if (!failed)
            print_message("%ld allocations\n", n);
    }
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state) {                                                                            \
        fail_each_allocation(*state, step_##name);                                                                     \
    }
TEST(open)
TEST(open_and_detect)
TEST(plane_from_pixels)
TEST(copy)
TEST(decode_png)
TEST(resize)
TEST(json)
TEST(npz)
TEST(hdf5)
TEST(file_save)
TEST(match)
TEST(draw_keypoints)
TEST(draw_matches)

/* A picture with corners. */
static void fill_pixels(scene *s) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            s->pixels[y * WIDTH + x] = (x / 12 + y / 8) % 2 != 0 ? 220 : 30;
    const int header = snprintf((char *)s->pgm, 32, "P5 %d %d 255\n", WIDTH, HEIGHT);
    memcpy(s->pgm + header, s->pixels, sizeof s->pixels);
    s->pgm_size = (size_t)header + sizeof s->pixels;
}

static int write_config(const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return -1;
    fputs("{\"model_type\": \"superpoint\", \"encoder_hidden_sizes\": [64, 64, 128, 128]}\n", file);
    return fclose(file);
}

static int set_up(void **state) {
    static scene s;
    snprintf(s.folder, sizeof s.folder, "/tmp/lensing-test-XXXXXX");
    if (mkdtemp(s.folder) == NULL)
        return -1;
    snprintf(s.weights, sizeof s.weights, "%s/model.safetensors", s.folder);
    snprintf(s.config, sizeof s.config, "%s/config.json", s.folder);
    snprintf(s.output, sizeof s.output, "%s/output", s.folder);
    fill_pixels(&s);
    *state = &s;
    if (synthetic_file_write(s.weights) == 0 && write_config(s.config) == 0 && open_model(&s, &s.model) == LNS_OK &&
        lns_plane_decode(s.pgm, s.pgm_size, NULL, &s.plane) == LNS_OK &&
        lns_superpoint_detect_plane(s.model, s.plane, NULL, &s.features) == LNS_OK &&
        lns_match_features(s.features, s.features, NULL, &s.matches) == LNS_OK &&
        lns_draw_keypoints(s.plane, s.features, &s.png, &s.png_size) == LNS_OK)
        return 0;
    print_error("%s\n", lns_error_message());
    return -1;
}

static int tear_down(void **state) {
    scene *s = *state;
    lns_buffer_free(s->png);
    lns_matches_close(&s->matches);
    lns_features_close(&s->features);
    lns_plane_close(&s->plane);
    lns_superpoint_close(&s->model);
    unlink(s->weights);
    unlink(s->config);
    return rmdir(s->folder);
}

/* Without keypoints most steps would have nothing to allocate. */
static void test_scene_has_keypoints(void **state) {
    const scene *s = *state;
    assert_true(s->features->count > 0);
    assert_true(s->matches->count > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scene_has_keypoints),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_open_and_detect),
        cmocka_unit_test(test_plane_from_pixels),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_decode_png),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_npz),
        cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_file_save),
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_draw_keypoints),
        cmocka_unit_test(test_draw_matches),
    };
    return cmocka_run_group_tests_name("failing allocation", tests, set_up, tear_down);
}
