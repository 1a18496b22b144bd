/* SPDX-License-Identifier: Apache-2.0 */
/* The selftest on the simulator: all steps pass there, and those that compute fail when one thing is damaged on its way
 * to or from the card. The network runs on 3 x 2 tiles, with synthetic weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../synthetic_file.h"
#include "blackhole/selftest.h"
#include "blackhole/sim.h"

/* ---- A transport that damages ------------------------------------------------------------------- */

/* Changes bytes that are about to be written to a tile, or have been read from it. */
typedef void (*damage)(lns_blackhole_tile tile, uint64_t address, void *bytes, size_t size);

static void no_damage(lns_blackhole_tile tile, uint64_t address, void *bytes, size_t size) {
    (void)tile;
    (void)address;
    (void)bytes;
    (void)size;
}

static struct {
    lns_blackhole_transport base;
    lns_blackhole_transport *inner;
    damage written, received;
} between;

static void *damaged_copy(lns_blackhole_tile tile, uint64_t address, const void *data, size_t size) {
    void *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, data, size);
    between.written(tile, address, copy, size);
    return copy;
}

static lns_status pass_write(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address,
                             const void *data, size_t size) {
    (void)transport;
    void *copy = damaged_copy(tile, address, data, size);
    const lns_status status = between.inner->operations->write(between.inner, tile, address, copy, size);
    free(copy);
    return status;
}

static lns_status pass_read(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address, void *data,
                            size_t size) {
    (void)transport;
    const lns_status status = between.inner->operations->read(between.inner, tile, address, data, size);
    between.received(tile, address, data, size);
    return status;
}

static lns_status pass_multicast(lns_blackhole_transport *transport, lns_blackhole_tile first, lns_blackhole_tile last,
                                 uint64_t address, const void *data, size_t size) {
    (void)transport;
    void *copy = damaged_copy(first, address, data, size);
    const lns_status status = between.inner->operations->multicast(between.inner, first, last, address, copy, size);
    free(copy);
    return status;
}

static lns_status pass_idle(lns_blackhole_transport *transport, unsigned steps) {
    (void)transport;
    return between.inner->operations->idle(between.inner, steps);
}

static lns_status pass_pin(lns_blackhole_transport *transport, size_t size, lns_blackhole_host_memory *memory) {
    (void)transport;
    return between.inner->operations->pin(between.inner, size, memory);
}

static void pass_unpin(lns_blackhole_transport *transport, lns_blackhole_host_memory *memory) {
    (void)transport;
    between.inner->operations->unpin(between.inner, memory);
}

static void pass_close(lns_blackhole_transport *transport) {
    (void)transport;
    between.inner->operations->close(between.inner);
}

static const lns_blackhole_transport_operations passing = {
    .name = "sim",
    .write = pass_write,
    .read = pass_read,
    .multicast = pass_multicast,
    .idle = pass_idle,
    .pin = pass_pin,
    .unpin = pass_unpin,
    .close = pass_close,
};

/* ---- One step ----------------------------------------------------------------------------------- */

static lns_selftest_step take_step(lns_blackhole_selftest *selftest) {
    lns_selftest_step step;
    assert_int_equal(lns_blackhole_selftest_next(selftest, &step, sizeof step), LNS_OK);
    assert_non_null(step.name);
    return step;
}

static lns_blackhole_selftest *open_selftest(void) {
    lns_blackhole_selftest *selftest;
    lns_blackhole_selftest_options options;
    lns_blackhole_selftest_options_init(&options);
    options.weights = synthetic_file_path;
    assert_int_equal(lns_blackhole_selftest_open(&options, &selftest), LNS_OK);
    assert_int_equal(selftest->grid.down, 12);
    assert_int_equal(selftest->grid.across, 10);
    selftest->grid = (lns_blackhole_grid){3, 2};
    return selftest;
}

static size_t index_of(const char *name) {
    size_t index = 0;
    while (lns_selftest_entries[index].name != NULL && strcmp(lns_selftest_entries[index].name, name) != 0)
        index++;
    return index; /* of the network: that of the end */
}

/* Opens the card and takes only the step `name`. */
static lns_selftest_step take_damaged(const char *name, damage written, damage received) {
    lns_blackhole_selftest *selftest = open_selftest();
    selftest->next = index_of("open");
    assert_int_equal(take_step(selftest).outcome, LNS_SELFTEST_PASSED);
    between.base = *selftest->transport;
    between.base.operations = &passing;
    between.inner = selftest->transport;
    between.written = written;
    between.received = received;
    selftest->transport = &between.base;
    selftest->cores_run = 1;
    selftest->next = index_of(name);
    const lns_selftest_step step = take_step(selftest);
    lns_blackhole_selftest_close(&selftest);
    assert_string_equal(step.name, name);
    print_message("%s: %s (%.0f ms)\n", name, step.detail, step.ms);
    return step;
}

static void expect_failure(const char *name, damage written, damage received, const char *text) {
    const lns_selftest_step step = take_damaged(name, written, received);
    assert_int_equal(step.outcome, LNS_SELFTEST_FAILED);
    if (strstr(step.detail, text) == NULL)
        fail_msg("'%s' does not say '%s'", step.detail, text);
}

static void skip_without_simulator(void) {
    const char *path = getenv(LNS_BLACKHOLE_SIM_VARIABLE);
    if (path == NULL || *path == '\0') {
        print_message("SKIP: " LNS_BLACKHOLE_SIM_VARIABLE " is not set, nothing was tested on the simulated card\n");
        skip();
    }
}

/* ---- Tests -------------------------------------------------------------------------------------- */

static void passes_the_simulator(void **state) {
    (void)state;
    skip_without_simulator();
    static const char expected[] = "spppppppps" /* no reset, no speed */ "pp";
    lns_blackhole_selftest *selftest = open_selftest();
    for (size_t i = 0; expected[i] != '\0'; i++) {
        const lns_selftest_step step = take_step(selftest);
        print_message("%s: %s (%.0f ms)\n", step.name, step.detail, step.ms);
        assert_int_equal(step.outcome, expected[i] == 'p' ? LNS_SELFTEST_PASSED : LNS_SELFTEST_SKIPPED);
        if (strcmp(step.name, "cores") == 0)
            assert_string_equal(step.detail, "core B of 120 tiles ran a program and stored the tile's coordinates");
        if (strcmp(step.name, "convolution") == 0)
            assert_non_null(strstr(step.detail, "120 tiles give the same bytes"));
        if (strcmp(step.name, "network") == 0)
            assert_non_null(strstr(step.detail, "those of the host for the same scores"));
    }
    lns_selftest_step step;
    assert_int_equal(lns_blackhole_selftest_next(selftest, &step, sizeof step), LNS_OK);
    assert_null(step.name);
    lns_blackhole_selftest_close(&selftest);
}

static void damage_one_weight(lns_blackhole_tile tile, uint64_t address, void *bytes, size_t size) {
    const size_t weights = (64 * 9 + 16) * 64;
    (void)tile;
    (void)address;
    if (size == weights * sizeof(uint16_t))
        ((uint16_t *)bytes)[weights / 2 / 256 * 256] = 0x4000; /* 2 in bfloat16 */
}

static void a_wrong_weight_fails(void **state) {
    (void)state;
    skip_without_simulator();
    expect_failure("convolution", damage_one_weight, no_damage, "tile 1,2 differs from the host by ");
}

/* The lowest bit that is looked at, of one number: too little to differ from the host. */
static void damage_one_bit(lns_blackhole_tile tile, uint64_t address, void *bytes, size_t size) {
    (void)address;
    if (tile.x == 5 && tile.y == 7 && size == 64 * 32 * 2 * sizeof(uint16_t))
        ((uint16_t *)bytes)[1000] ^= 2;
}

static void a_tile_that_computes_otherwise_fails(void **state) {
    (void)state;
    skip_without_simulator();
    expect_failure("convolution", no_damage, damage_one_bit,
                   "tile 5,7 computes other bytes than tile 1,2 from the same ones");
}

/* A twentieth of what stays in L1, which is sent as one block. */
static void damage_weights(lns_blackhole_tile tile, uint64_t address, void *bytes, size_t size) {
    (void)tile;
    if (address != LNS_BH_DATA && size > 600 << 10)
        memset((uint8_t *)bytes + size / 2, 0, size / 20);
}

static void a_network_of_other_weights_fails(void **state) {
    (void)state;
    skip_without_simulator();
    expect_failure("network", damage_weights, no_damage, "correlation with the CPU: scores 0.");
}

static void damage_radius(lns_blackhole_tile tile, uint64_t address, void *bytes, size_t size) {
    (void)tile;
    if (address == LNS_BH_RULES && size == sizeof(lns_bh_rules) && ((lns_bh_rules *)bytes)->radius == 4)
        ((lns_bh_rules *)bytes)->radius = 3;
}

static void other_keypoints_fail(void **state) {
    (void)state;
    skip_without_simulator();
    expect_failure("network", damage_radius, no_damage, "for radius 4 the card found ");
}

static void wrong_weights_fail(void **state) {
    (void)state;
    skip_without_simulator();
    char kept[sizeof synthetic_file_path];
    memcpy(kept, synthetic_file_path, sizeof kept);
    strcpy(synthetic_file_path, "/nowhere/model.safetensors");
    expect_failure("network", no_damage, no_damage, "/nowhere/model.safetensors");
    memcpy(synthetic_file_path, kept, sizeof kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_the_simulator),
        cmocka_unit_test(a_wrong_weight_fails),
        cmocka_unit_test(a_tile_that_computes_otherwise_fails),
        cmocka_unit_test(a_network_of_other_weights_fails),
        cmocka_unit_test(other_keypoints_fail),
        cmocka_unit_test(wrong_weights_fail),
    };
    return cmocka_run_group_tests(tests, synthetic_file_set_up, synthetic_file_tear_down);
}
