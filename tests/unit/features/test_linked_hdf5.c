/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is linked with HDF5 itself, and uses it beside Lensing, which loads it. On many systems such a program
 * holds the library's variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <unistd.h>

#include <hdf5.h>

#include <lensing/features.h>

#define COUNT 3

static void file_is_read_by_the_same_program(void **state) {
    (void)state;
    float points[COUNT * 2] = {1, 2, 3.5f, 4, 600, 400};
    float scores[COUNT] = {0.5f, 0.25f, 0.125f};
    const lns_features features = {
        .count = COUNT,
        .keypoints = points,
        .network_keypoints = points,
        .scores = scores,
        .image_width = 640,
        .image_height = 480,
        .scale_x = 1,
        .scale_y = 1,
    };
    char path[] = "/tmp/lensing-test-XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    lns_hdf5 *file;
    assert_int_equal(lns_hdf5_create(path, &file), LNS_OK);
    if (lns_hdf5_add(file, "a", &features) != LNS_OK)
        fail_msg("%s", lns_error_message());
    assert_int_equal(lns_hdf5_close(&file), LNS_OK);

    float read[COUNT * 2] = {0};
    const hid_t opened = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t set = H5Dopen2(opened, "a/keypoints", H5P_DEFAULT);
    assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0);
    assert_memory_equal(read, points, sizeof read);
    H5Dclose(set);
    H5Fclose(opened);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(file_is_read_by_the_same_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
