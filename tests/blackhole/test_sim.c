/* SPDX-License-Identifier: Apache-2.0 */
/* The transport to the simulator: what is wrong with it, and bytes to and from the tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "blackhole/sim.h"
#include "card.h"

static const lns_blackhole_tile first_tile = {1, 2}, last_tile = {14, 11}, dram = {17, 12};

/* ---- Without a simulator ------------------------------------------------------------------------ */

/* In a child, because a process keeps the library that it has loaded. */
static void expect_refusal(const char *path, const char *text) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        lns_blackhole_transport *transport = (void *)&transport;
        if (path != NULL)
            setenv(LNS_BLACKHOLE_SIM_VARIABLE, path, 1);
        else
            unsetenv(LNS_BLACKHOLE_SIM_VARIABLE);
        const lns_status status = lns_blackhole_open_sim(&transport);
        const int good = status == LNS_ERROR_UNSUPPORTED && transport == NULL && strstr(lns_error_message(), text);
        if (!good)
            print_error("%s: %s, status %d\n", path != NULL ? path : "unset", lns_error_message(), status);
        _exit(good ? 0 : 1);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

static void says_what_is_wrong_with_the_library(void **state) {
    (void)state;
    expect_refusal(NULL, "LENSING_TTSIM is not set");
    expect_refusal("", "LENSING_TTSIM is not set");
    expect_refusal("/nowhere/libttsim.so", "could not be loaded (/nowhere/libttsim.so: ");
    expect_refusal("libm.so.6", "lacks libttsim_init");
    char path[5000];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    expect_refusal(path, "is longer than");
}

/* ---- With one ----------------------------------------------------------------------------------- */

static lns_blackhole_transport *card_or_skip(void) {
    lns_blackhole_transport *card = test_card();
    if (card == NULL)
        skip();
    return card;
}

static void fill(uint8_t *bytes, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

#define BYTES 6000000 /* crosses windows of 2 MiB */

static void is_one_card(void **state) {
    (void)state;
    lns_blackhole_transport *card = card_or_skip(), *second = NULL;
    assert_int_equal(lns_blackhole_open_sim(&second), LNS_ERROR_SYSTEM);
    assert_null(second);
    assert_non_null(strstr(lns_error_message(), "open already"));
    assert_string_equal(card->operations->name, "sim");
    assert_true(card->columns >= LNS_BLACKHOLE_COLUMNS);
}

static void gives_back_what_was_written(void **state) {
    (void)state;
    lns_blackhole_transport *card = card_or_skip();
    uint8_t *sent = malloc(BYTES), *got = malloc(BYTES);
    assert_true(sent != NULL && got != NULL);
    fill(sent, BYTES, 1);
    assert_int_equal(card->operations->write(card, first_tile, 0x1000, sent, 65536), LNS_OK);
    assert_int_equal(card->operations->write(card, last_tile, 0x1000, sent + 65536, 65536), LNS_OK);
    assert_int_equal(card->operations->read(card, first_tile, 0x1000, got, 65536), LNS_OK);
    assert_memory_equal(sent, got, 65536);
    assert_int_equal(card->operations->read(card, last_tile, 0x1000, got, 65536), LNS_OK);
    assert_memory_equal(sent + 65536, got, 65536);
    assert_int_equal(card->operations->write(card, dram, 0x1FFFFC, sent, BYTES), LNS_OK);
    assert_int_equal(card->operations->read(card, dram, 0x1FFFFC, got, BYTES), LNS_OK);
    assert_memory_equal(sent, got, BYTES);
    free(sent);
    free(got);
}

static void multicast_reaches_the_rectangle_alone(void **state) {
    (void)state;
    lns_blackhole_transport *card = card_or_skip();
    const lns_blackhole_tile corner = {6, 3}, opposite = {11, 5};
    uint8_t sent[256], got[256], zero[256] = {0};
    fill(sent, sizeof sent, 2);
    for (int round = 0; round < 2; round++) {
        const lns_blackhole_tile from = round == 0 ? first_tile : corner, to = round == 0 ? last_tile : opposite;
        const uint8_t *data = round == 0 ? zero : sent;
        assert_int_equal(card->operations->multicast(card, from, to, 0x2000, data, sizeof zero), LNS_OK);
    }
    for (uint8_t y = 2; y <= 11; y++)
        for (uint8_t x = 1; x <= 14; x++) {
            if (x == 8 || x == 9)
                continue;
            const lns_blackhole_tile tile = {x, y};
            const int inside = x >= corner.x && x <= opposite.x && y >= corner.y && y <= opposite.y;
            assert_int_equal(card->operations->read(card, tile, 0x2000, got, sizeof got), LNS_OK);
            assert_memory_equal(got, inside ? sent : zero, sizeof got);
        }
}

static void refuses_parts_of_words(void **state) {
    (void)state;
    lns_blackhole_transport *card = card_or_skip();
    uint32_t word = 0;
    assert_int_equal(card->operations->write(card, first_tile, 2, &word, 4), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(card->operations->read(card, first_tile, 0, &word, 3), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(card->operations->multicast(card, first_tile, last_tile, 0, &word, 1), LNS_ERROR_INVALID_ARGUMENT);
}

static void pins_and_frees_memory(void **state) {
    (void)state;
    lns_blackhole_transport *card = card_or_skip();
    lns_blackhole_host_memory memories[17];
    assert_int_equal(card->operations->pin(card, 0, &memories[0]), LNS_ERROR_INVALID_ARGUMENT);
    int count = 0;
    while (count < 17 && card->operations->pin(card, 5000, &memories[count]) == LNS_OK) {
        assert_true(memories[count].size >= 5000);
        assert_int_equal((uintptr_t)memories[count].data % 4096, 0);
        for (size_t i = 0; i < 5000; i++)
            assert_int_equal(((char *)memories[count].data)[i], 0);
        count++;
    }
    assert_int_equal(count, 16);
    assert_non_null(strstr(lns_error_message(), "no more can be made"));
    for (int i = 0; i < count; i++) {
        card->operations->unpin(card, &memories[i]);
        assert_null(memories[i].data);
    }
    assert_int_equal(card->operations->pin(card, 1, &memories[0]), LNS_OK);
    card->operations->unpin(card, &memories[0]);
    card->operations->unpin(card, &memories[0]);
}

static void keeps_its_memory_when_closed(void **state) {
    (void)state;
    lns_blackhole_transport *card = card_or_skip();
    uint32_t word = 0;
    assert_int_equal(lns_blackhole_write32(card, first_tile, 0x3000, 0x12345678), LNS_OK);
    test_card_close();
    card = test_card();
    assert_int_equal(lns_blackhole_read32(card, first_tile, 0x3000, &word), LNS_OK);
    assert_int_equal(word, 0x12345678);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_wrong_with_the_library),
        cmocka_unit_test(is_one_card),
        cmocka_unit_test(gives_back_what_was_written),
        cmocka_unit_test(multicast_reaches_the_rectangle_alone),
        cmocka_unit_test(refuses_parts_of_words),
        cmocka_unit_test(pins_and_frees_memory),
        cmocka_unit_test(keeps_its_memory_when_closed),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_card_close();
    return failed;
}
