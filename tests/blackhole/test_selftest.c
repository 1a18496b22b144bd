/* SPDX-License-Identifier: Apache-2.0 */
/* The selftest, on cards that do not exist and have the faults that its steps look for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "blackhole/selftest.h"
#include "blackhole/sim.h"
#include "fake_driver.h"

static int set_up(void **state) {
    (void)state;
    fake_driver_reset();
    unsetenv("TT_DEVICE_ID");
    return 0;
}

static const char *const names[] = {"reset",     "open", "firmware", "tiles", "memory",      "dram",
                                    "multicast", "host", "cores",    "speed", "convolution", "network"};
#define STEPS (sizeof names / sizeof names[0])

/* Takes all steps. `outcomes`: a letter for each, 'p' passed, 'f' failed, 's' skipped; `detail`: of the step `of`. */
static void take_steps(lns_blackhole_selftest *selftest, char outcomes[STEPS + 1], char detail[512], const char *of) {
    lns_selftest_step step;
    memset(outcomes, 0, STEPS + 1);
    for (size_t i = 0; i < STEPS; i++) {
        assert_int_equal(lns_blackhole_selftest_next(selftest, &step, sizeof step), LNS_OK);
        assert_string_equal(step.name, names[i]);
        assert_int_equal(step.question[strlen(step.question) - 1], '?');
        assert_true(step.detail[0] != '\0' && strchr(step.detail, '\n') == NULL);
        outcomes[i] = "pfs"[step.outcome];
        if (strcmp(step.name, of) == 0)
            strcpy(detail, step.detail);
    }
    assert_int_equal(lns_blackhole_selftest_next(selftest, &step, sizeof step), LNS_OK);
    assert_null(step.name);
}

/* Tests less of each tile's memory than it would by itself, which would take most of the time. */
static lns_blackhole_selftest *open_selftest(int device_id, int with_reset) {
    lns_blackhole_selftest *selftest;
    lns_blackhole_selftest_options options;
    lns_blackhole_selftest_options_init(&options);
    options.device_id = device_id;
    options.with_reset = with_reset;
    assert_int_equal(lns_selftest_open_on(&fake_system, &options, &lns_selftest_network, &selftest), LNS_OK);
    assert_int_equal(selftest->l1_size, 1536 << 10);
    selftest->l1_size = 136 << 10;
    return selftest;
}

/* Nothing computes on the fake card, so "cores" always fails there, and what needs them is skipped. */
static void expect_steps(int with_reset, const char *expected, const char *of, const char *text) {
    char outcomes[STEPS + 1], detail[512] = "";
    lns_blackhole_selftest *selftest = open_selftest(-1, with_reset);
    take_steps(selftest, outcomes, detail, of);
    lns_blackhole_selftest_close(&selftest);
    assert_null(selftest);
    assert_string_equal(outcomes, expected);
    if (strcmp(detail, text) != 0)
        fail_msg("'%s' instead of '%s'", detail, text);
    assert_string_equal(fake_driver_leaks(), "");
    assert_int_equal(fake.dropped, 0);
}

static void passes_a_good_card(void **state) {
    (void)state;
    expect_steps(0, "spppppppfpss", "open",
                 "/dev/tenstorrent/0, Blackhole at 0000:03:00.0, driver 2.6.0; no other model has it");
    fake.cards[0].columns = 0x3fff;
    expect_steps(0, "spppppppfpss", "tiles", "140 tiles, each answers under its own coordinates, all cores in reset");
}

static void tells_of_the_firmware(void **state) {
    (void)state;
    fake.cards[0].columns = 0x37fe;
    expect_steps(0, "spppppppfpss", "firmware", "firmware 19.5.0.0, clock 1350 MHz, 41.5 C, 12 columns (mask 0x37fe)");
}

static void finds_cores_that_do_not_run(void **state) {
    (void)state;
    uint32_t reset = 0;
    expect_steps(0, "spppppppfpss", "cores", "core B of tile 1,2 does not run");
    fake_driver_peek(0, 14, 11, 0xFFB121B0, &reset, sizeof reset);
    assert_int_equal(reset, 0x47800); /* stopped all the same */
}

static void resets_when_asked(void **state) {
    (void)state;
    fake.cards[0].reset_steps = 2;
    expect_steps(1, "ppppppppfpss", "reset", "the chip was restarted, and the driver has set it up again");
    assert_int_equal(fake.cards[0].resets, 1);
    assert_int_equal(fake.cards[0].setups, 1);
    fake.cards[0].reset_fails = 1;
    expect_steps(1, "fpppppppfpss", "reset", "device 0: the driver could not begin a reset");
    fake.cards[0].boot_status = 0; /* waits for the firmware, then gives up */
    expect_steps(1, "ffssssssssss", "open", "the firmware of the card has not started (boot status 0x00000000)");
    assert_in_range(fake.slept_ms, 10000, 20000);
}

static void stops_without_a_card(void **state) {
    (void)state;
    fake.is_loaded = 0;
    expect_steps(0, "sfssssssssss", "open",
                 "no Tenstorrent card is here: /dev/tenstorrent has no devices; a card needs the driver tt-kmd");
    fake.is_loaded = 1;
    fake.cards[0].locked_by_other = 1;
    expect_steps(0, "sfssssssssss", "open", "device 0 is in use by another model or process of Lensing");
    setenv("TT_DEVICE_ID", "5", 1);
    expect_steps(0, "sfssssssssss", "open", "device 5 does not exist; /dev/tenstorrent has 0");
}

/* Text that begins so: the words read depend on the pattern. */
static void expect_failure(const char *expected, const char *of, const char *start) {
    char outcomes[STEPS + 1], detail[512] = "";
    lns_blackhole_selftest *selftest = open_selftest(0, 0);
    take_steps(selftest, outcomes, detail, of);
    lns_blackhole_selftest_close(&selftest);
    assert_string_equal(outcomes, expected);
    if (strncmp(detail, start, strlen(start)) != 0)
        fail_msg("'%s' does not begin with '%s'", detail, start);
    assert_string_equal(fake_driver_leaks(), "");
}

static void finds_tiles_under_wrong_names(void **state) {
    (void)state;
    fake.cards[0].turned_tiles = 1;
    expect_failure("sppfppppfpss", "tiles", "what answers as tile 6,5 calls itself 5,6");
}

static void finds_tiles_with_one_memory(void **state) {
    (void)state;
    fake.cards[0].twin_tiles = 1;
    expect_failure("spppfpppfpss", "memory", "tile 5,5 has 0x");
}

static void finds_memory_that_repeats(void **state) {
    (void)state;
    fake.cards[0].half_dram = 1;
    expect_failure("sppppfppfpss", "dram", "tile 17,13 has 0x");
}

static void finds_a_multicast_that_goes_too_far(void **state) {
    (void)state;
    fake.cards[0].wide_multicast = 1;
    expect_failure("spppppfpfpss", "multicast", "tile 14,3 has 0x");
}

static void finds_that_the_host_is_out_of_reach(void **state) {
    (void)state;
    fake.cards[0].no_host = 1;
    expect_failure("sppppppffpss", "host", "tile 19,24 has 0x00000000 at 0x1000000000000000, and 0x");
}

static void survives_every_failing_call(void **state) {
    (void)state;
    char outcomes[STEPS + 1], detail[512];
    lns_blackhole_selftest *selftest;
    for (int step = 1;; step += step < 30 ? 4 : step) {
        fake_driver_reset();
        fake.fail_at = step;
        selftest = open_selftest(0, 0);
        take_steps(selftest, outcomes, detail, "");
        lns_blackhole_selftest_close(&selftest);
        assert_string_equal(fake_driver_leaks(), "");
        if (fake.failed_call == NULL)
            break;
    }
}

static void refuses_wrong_arguments(void **state) {
    (void)state;
    lns_blackhole_selftest *selftest = (void *)&selftest;
    lns_blackhole_selftest_options options;
    lns_selftest_step step;
    lns_blackhole_selftest_options_init(&options);
    assert_int_equal(options.device_id, -1);
    options.device_id = -2;
    assert_int_equal(lns_blackhole_selftest_open(&options, &selftest), LNS_ERROR_INVALID_ARGUMENT);
    assert_null(selftest);
    options.device_id = 0;
    assert_int_equal(lns_blackhole_selftest_open(&options, NULL), LNS_ERROR_INVALID_ARGUMENT);
    options.struct_size = 0;
    assert_int_equal(lns_blackhole_selftest_open(&options, &selftest), LNS_ERROR_INVALID_ARGUMENT);
    assert_null(selftest);
    static const char *const wrong[] = {"x", "0x1", "-1", "1 ", "99999999999", "1.0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("TT_DEVICE_ID", wrong[i], 1);
        assert_int_equal(lns_blackhole_selftest_open(NULL, &selftest), LNS_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(lns_error_message(), wrong[i]));
    }
    setenv("TT_DEVICE_ID", "", 1);
    assert_int_equal(lns_selftest_open_on(&fake_system, NULL, NULL, &selftest), LNS_OK);
    assert_int_equal(lns_blackhole_selftest_next(selftest, &step, sizeof step + 1), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(lns_blackhole_selftest_next(NULL, &step, sizeof step), LNS_ERROR_INVALID_ARGUMENT);
    lns_blackhole_selftest_close(&selftest);
    lns_blackhole_selftest_close(&selftest);
    lns_blackhole_selftest_close(NULL);
}

static void survives_missing_memory(void **state) {
    (void)state;
    lns_blackhole_selftest_options options;
    lns_blackhole_selftest_options_init(&options);
    options.weights = "some/where";
    lns_blackhole_selftest *selftest;
    for (long i = 0; i < 4; i++) {
        lns_alloc_fail_after(i);
        const lns_status status = lns_selftest_open_on(&fake_system, &options, NULL, &selftest);
        lns_alloc_fail_after(-1);
        assert_int_equal(status, LNS_ERROR_OUT_OF_MEMORY);
        assert_null(selftest);
    }
    lns_alloc_fail_after(4);
    assert_int_equal(lns_selftest_open_on(&fake_system, &options, NULL, &selftest), LNS_OK);
    lns_alloc_fail_after(-1);
    lns_blackhole_selftest_close(&selftest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(passes_a_good_card, set_up),
        cmocka_unit_test_setup(tells_of_the_firmware, set_up),
        cmocka_unit_test_setup(finds_cores_that_do_not_run, set_up),
        cmocka_unit_test_setup(resets_when_asked, set_up),
        cmocka_unit_test_setup(stops_without_a_card, set_up),
        cmocka_unit_test_setup(finds_tiles_under_wrong_names, set_up),
        cmocka_unit_test_setup(finds_tiles_with_one_memory, set_up),
        cmocka_unit_test_setup(finds_memory_that_repeats, set_up),
        cmocka_unit_test_setup(finds_a_multicast_that_goes_too_far, set_up),
        cmocka_unit_test_setup(finds_that_the_host_is_out_of_reach, set_up),
        cmocka_unit_test_setup(survives_every_failing_call, set_up),
        cmocka_unit_test_setup(refuses_wrong_arguments, set_up),
        cmocka_unit_test_setup(survives_missing_memory, set_up),
    };
    unsetenv(LNS_BLACKHOLE_SIM_VARIABLE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
