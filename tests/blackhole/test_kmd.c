/* SPDX-License-Identifier: Apache-2.0 */
/* The transport to a card, on a driver and cards that do not exist: every call, every error of every call, and that
 * nothing is left mapped, pinned, locked, powered or open. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "blackhole/kmd.h"
#include "blackhole/kmd_card.h"
#include "blackhole/telemetry.h"
#include "blackhole/grid.h"
#include "fake_driver.h"

static const lns_blackhole_tile first_tile = {1, 2}, last_tile = {14, 11}, dram = {17, 12};

static int set_up(void **state) {
    (void)state;
    fake_driver_reset();
    return 0;
}

static lns_blackhole_transport *open_card(void) {
    lns_blackhole_transport *card;
    if (lns_blackhole_open_kmd(&fake_system, 0, LNS_KMD_USE, &card) != LNS_OK)
        fail_msg("%s", lns_error_message());
    return card;
}

/* Numbers that differ from word to word and from salt to salt. */
static void fill(uint8_t *bytes, size_t size, uint32_t salt) {
    uint32_t state = salt * 2654435761u + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
}

static void assert_at_rest(void) {
    assert_string_equal(fake_driver_leaks(), "");
    assert_int_equal(fake.dropped, 0);
}

/* ---- Opening and closing ------------------------------------------------------------------------ */

static void takes_and_gives_back_a_card(void **state) {
    (void)state;
    lns_blackhole_transport *card = open_card();
    const fake_card *seen = &fake.cards[0];
    assert_string_equal(card->operations->name, "kmd");
    assert_int_equal(card->columns, 12);
    assert_true(seen->lock_holder >= 0);
    assert_int_equal(seen->power, 7); /* clock, DRAM, tiles; not the CPU cores */
    assert_int_equal(fake.windows, 3);
    card->operations->close(card);
    assert_at_rest();
}

/* What the driver is asked to do, when the process dies, is to stop the cores of the first tile. */
static void leaves_the_driver_a_way_to_stop_the_card(void **state) {
    (void)state;
    lns_blackhole_transport *card = open_card();
    uint32_t reset = 0;
    fake_driver_peek(0, 1, 2, 0xFFB121B0, &reset, sizeof reset);
    assert_int_equal(reset, 0);
    card->operations->close(card);
    fake_driver_peek(0, 1, 2, 0xFFB121B0, &reset, sizeof reset);
    assert_int_equal(reset, 0x47800);
}

static void counts_columns(void **state) {
    (void)state;
    fake.cards[0].columns = 0x3fff;
    lns_blackhole_transport *card = open_card();
    assert_int_equal(card->columns, 14);
    card->operations->close(card);
    assert_at_rest();
}

static void opens_again_after_closing(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) { /* more often than the fake driver has descriptors or windows */
        lns_blackhole_transport *card = open_card();
        card->operations->close(card);
    }
    assert_at_rest();
}

static void reads_telemetry(void **state) {
    (void)state;
    lns_blackhole_telemetry telemetry;
    lns_blackhole_transport *card = open_card();
    assert_int_equal(lns_blackhole_telemetry_read(card, &telemetry), LNS_OK);
    assert_int_equal(telemetry.enabled_columns, 0x0fff);
    assert_int_equal(telemetry.columns, 12);
    assert_int_equal(telemetry.has_translation, 1);
    assert_int_equal(telemetry.clock_mhz, 1350);
    assert_int_equal(telemetry.temperature, 41 * 65536 + 32768);
    assert_int_equal(telemetry.firmware, 0x13050000);
    card->operations->close(card);
}

static void looks_without_taking(void **state) {
    (void)state;
    lns_blackhole_transport *user = open_card(), *looker;
    lns_blackhole_telemetry telemetry;
    assert_int_equal(lns_blackhole_open_kmd(&fake_system, 0, LNS_KMD_LOOK, &looker), LNS_OK);
    assert_int_equal(lns_blackhole_telemetry_read(looker, &telemetry), LNS_OK);
    assert_int_equal(telemetry.columns, 12);
    looker->operations->close(looker);
    assert_true(fake.cards[0].lock_holder >= 0);
    user->operations->close(user);
    assert_at_rest();
}

/* ---- What is refused ---------------------------------------------------------------------------- */

static void expect_refusal(int id, lns_status status, const char *text) {
    lns_blackhole_transport *card = (void *)&card;
    assert_int_equal(lns_blackhole_open_kmd(&fake_system, id, LNS_KMD_USE, &card), status);
    assert_null(card);
    if (strcmp(lns_error_message(), text) != 0)
        fail_msg("'%s' instead of '%s'", lns_error_message(), text);
    assert_at_rest();
}

static void says_that_there_is_no_card(void **state) {
    (void)state;
    fake.is_loaded = 0;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "no Tenstorrent card is here: /dev/tenstorrent has no devices; a card needs the driver tt-kmd");
    fake.is_loaded = 1;
    fake.cards[1].is_present = 1;
    expect_refusal(3, LNS_ERROR_UNSUPPORTED, "device 3 does not exist; /dev/tenstorrent has 0, 1");
    expect_refusal(-1, LNS_ERROR_UNSUPPORTED, "device -1 does not exist; /dev/tenstorrent has 0, 1");
    fake.open_error = EACCES;
    expect_refusal(0, LNS_ERROR_SYSTEM, "cannot open /dev/tenstorrent/0: Permission denied");
}

static void says_that_it_is_another_card(void **state) {
    (void)state;
    fake.cards[0].device = LNS_KMD_WORMHOLE;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "device 0 is PCI 1e52:401e (Wormhole); Lensing runs on Blackhole, 1e52:b140");
    fake.cards[0].device = 0xfeed;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "device 0 is PCI 1e52:feed (unknown); Lensing runs on Blackhole, 1e52:b140");
    fake.cards[0].vendor = 0x10de;
    fake.cards[0].device = LNS_KMD_BLACKHOLE;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "device 0 is PCI 10de:b140 (unknown); Lensing runs on Blackhole, 1e52:b140");
}

static void says_that_the_driver_is_too_old(void **state) {
    (void)state;
    fake.minor = 5;
    fake.patch = 3;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED, "device 0: the driver tt-kmd 2.5.3 is too old; it must be 2.6.0 or newer");
    fake.major = 1;
    fake.minor = 34;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "device 0: the driver tt-kmd 1.34.3 is too old; it must be 2.6.0 or newer");
    fake.major = 3;
    fake.minor = 0;
    lns_blackhole_transport *card = open_card();
    card->operations->close(card);
}

static void says_that_the_card_is_busy(void **state) {
    (void)state;
    fake.cards[0].locked_by_other = 1;
    expect_refusal(0, LNS_ERROR_SYSTEM, "device 0 is in use by another model or process of Lensing");
    fake.pids = "4711\n0\n12\n";
    expect_refusal(0, LNS_ERROR_SYSTEM,
                   "device 0 is in use by another model or process of Lensing; open in process 4711, 12");
    fake.cards[0].locked_by_other = 0;
    fake.pids = NULL;
    lns_blackhole_transport *card = open_card(), *second = card;
    assert_int_equal(lns_blackhole_open_kmd(&fake_system, 0, LNS_KMD_USE, &second), LNS_ERROR_SYSTEM);
    assert_null(second);
    assert_int_equal(fake.cards[0].power != 0, 1); /* the first one still has it */
    card->operations->close(card);
    assert_at_rest();
}

static void says_that_there_are_too_few_columns(void **state) {
    (void)state;
    fake.cards[0].columns = 0x1ffb & ~0x18u; /* 10 */
    expect_refusal(0, LNS_ERROR_UNSUPPORTED, "the card has 10 Tensix columns (mask 0x1fe3); Lensing needs 12");
    fake.cards[0].columns = 0xffff07ffu; /* 11; bits beyond the die do not count */
    expect_refusal(0, LNS_ERROR_UNSUPPORTED, "the card has 11 Tensix columns (mask 0x07ff); Lensing needs 12");
    fake.cards[0].tells_columns = 0;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "the firmware of the card does not tell its Tensix columns; firmware 19.5.0 or newer does");
}

static void says_that_the_firmware_does_not_fit(void **state) {
    (void)state;
    static const char untranslated[] =
        "the firmware of the card does not translate NoC coordinates; firmware 19.5.0 or newer does";
    fake.cards[0].translates = 0;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED, untranslated);
    fake.cards[0].translates = -1;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED, untranslated);
    fake.cards[0].translates = 1;
    fake.cards[0].boot_status = 1;
    expect_refusal(0, LNS_ERROR_SYSTEM, "the firmware of the card has not started (boot status 0x00000001)");
    fake.cards[0].boot_status = 5;
    fake.cards[0].table_address = 0;
    expect_refusal(0, LNS_ERROR_SYSTEM,
                   "the firmware of the card has no telemetry (table at 0x00000000, values at 0x10000600)");
    fake.cards[0].table_address = 0x10000100;
    fake.cards[0].table_version = 0x20000;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "the telemetry of the card is of version 0x00020000 with 6 entries; up to version 1.x and 256 "
                   "entries are understood");
    fake.cards[0].table_version = 0x10000;
    fake.cards[0].table_entries = 257;
    expect_refusal(0, LNS_ERROR_UNSUPPORTED,
                   "the telemetry of the card is of version 0x00010000 with 257 entries; up to version 1.x and 256 "
                   "entries are understood");
}

static void says_that_the_card_does_not_answer(void **state) {
    (void)state;
    static const char gone[] = "device 0 does not answer; a reset, or turning the machine off and on, may help";
    fake.cards[0].is_gone = 1;
    expect_refusal(0, LNS_ERROR_SYSTEM, gone);
    fake.cards[0].is_gone = 0;
    uint32_t word;
    lns_blackhole_transport *card = open_card();
    fake.cards[0].is_gone = 1;
    assert_int_equal(lns_blackhole_read32(card, last_tile, 0, &word), LNS_ERROR_SYSTEM);
    assert_string_equal(lns_error_message(), gone);
    card->operations->close(card);
    assert_at_rest();
}

/* ---- Bytes -------------------------------------------------------------------------------------- */

/* Writes through the card and looks into its memory, writes there and reads through the card. */
static void check_bytes(lns_blackhole_transport *card, lns_blackhole_tile tile, uint64_t address, size_t size) {
    uint8_t *sent = calloc(1, size + 1), *seen = calloc(1, size + 1);
    fill(sent, size + 1, (uint32_t)(address + size + tile.x));
    assert_int_equal(card->operations->write(card, tile, address, sent + 1, size), LNS_OK); /* not aligned */
    for (size_t done = 0; done < size;) {
        const size_t rest = (size_t)(0x200000 - (address + done) % 0x200000);
        const size_t part = rest < size - done ? rest : size - done;
        fake_driver_peek(0, tile.x, tile.y, address + done, seen + done, part);
        done += part;
    }
    assert_memory_equal(seen, sent + 1, size);
    memset(seen, 0, size + 1);
    assert_int_equal(card->operations->read(card, tile, address, seen + 1, size), LNS_OK);
    assert_memory_equal(seen + 1, sent + 1, size);
    free(sent);
    free(seen);
}

static void carries_bytes(void **state) {
    (void)state;
    static const size_t sizes[] = {4, 8, 60, 64, 68, 100, 4096, 100004};
    lns_blackhole_transport *card = open_card();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_bytes(card, first_tile, 0x1000, sizes[i]);
        check_bytes(card, last_tile, 0x1004, sizes[i]);
        check_bytes(card, dram, 0x1ffffc, sizes[i]); /* over the end of a window */
        check_bytes(card, dram, UINT64_C(0xfffe0000), sizes[i]);
    }
    check_bytes(card, first_tile, 0, LNS_TILE_L1_SIZE);
    check_bytes(card, first_tile, 0xFFB12228, 12);
    check_bytes(card, dram, 0x3ffffc, (2u << 20) + 8); /* three windows */
    card->operations->close(card);
    assert_at_rest();
}

/* Small and large pieces, to one tile and to others, in turn: what is read is what was written last. */
static void keeps_the_order_of_writes(void **state) {
    (void)state;
    uint8_t large[256], seen[256];
    lns_blackhole_transport *card = open_card();
    for (uint32_t i = 0; i < 50; i++) {
        const lns_blackhole_tile tile = {(uint8_t)(1 + i % 7), (uint8_t)(2 + i % 10)};
        const uint32_t word = i * 77 + 1;
        fill(large, sizeof large, i);
        assert_int_equal(lns_blackhole_write32(card, tile, 64, ~word), LNS_OK);
        assert_int_equal(card->operations->write(card, tile, 0, large, sizeof large), LNS_OK);
        assert_int_equal(lns_blackhole_write32(card, tile, 64, word), LNS_OK);
        assert_int_equal(card->operations->read(card, tile, 0, seen, sizeof seen), LNS_OK);
        memcpy(large + 64, &word, sizeof word);
        assert_memory_equal(seen, large, sizeof large);
    }
    card->operations->close(card);
}

static void expect_in(int x, int y, uint64_t address, const void *data, size_t size) {
    uint8_t seen[4096];
    fake_driver_peek(0, x, y, address, seen, size);
    if (memcmp(seen, data, size) != 0)
        fail_msg("tile %d,%d at 0x%llx", x, y, (unsigned long long)address);
}

static void multicasts(void **state) {
    (void)state;
    static const uint8_t nothing[4096];
    uint8_t data[4096];
    const uint32_t reset = LNS_TILE_ALL_IN_RESET;
    fill(data, sizeof data, 5);
    lns_blackhole_transport *card = open_card();
    const lns_blackhole_tile last = {13, 10};
    assert_int_equal(card->operations->multicast(card, first_tile, last, 0x8000, data, sizeof data), LNS_OK);
    assert_int_equal(card->operations->multicast(card, first_tile, last, LNS_TILE_SOFT_RESET, &reset, 4), LNS_OK);
    assert_int_equal(card->operations->multicast(card, first_tile, last, 0x20, data, 8), LNS_OK);
    for (int x = 1; x <= 16; x++)
        for (int y = 2; y <= 11; y++) {
            const int is_inside = x <= 13 && y <= 10 && x != 8 && x != 9;
            expect_in(x, y, 0x8000, is_inside ? data : nothing, sizeof data);
            expect_in(x, y, LNS_TILE_SOFT_RESET, is_inside ? (const void *)&reset : nothing, 4);
            expect_in(x, y, 0x20, is_inside ? data : nothing, 8);
        }
    card->operations->close(card);
    assert_at_rest();
}

static void refuses_odd_addresses(void **state) {
    (void)state;
    uint32_t word = 0;
    lns_blackhole_transport *card = open_card();
    const lns_blackhole_transport_operations *operations = card->operations;
    assert_int_equal(operations->write(card, first_tile, 2, &word, 4), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(operations->write(card, first_tile, 4, &word, 3), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(operations->read(card, first_tile, 1, &word, 4), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(operations->multicast(card, first_tile, last_tile, 4, &word, 2), LNS_ERROR_INVALID_ARGUMENT);
    assert_string_equal(lns_error_message(), "the card is reached in words of 4 bytes, not at 0x4 for 2");
    card->operations->close(card);
}

/* ---- Memory of the host ------------------------------------------------------------------------- */

static void check_shared(const lns_blackhole_host_memory *memory, size_t size) {
    assert_true(memory->size >= size);
    assert_true(memory->noc_address >= UINT64_C(4) << 58);
    assert_int_equal((uintptr_t)memory->data % 4096, 0);
    for (size_t i = 0; i < memory->size; i++)
        assert_int_equal(((const uint8_t *)memory->data)[i], 0);
}

static void shares_memory(void **state) {
    (void)state;
    lns_blackhole_host_memory small, large;
    lns_blackhole_transport *card = open_card();
    assert_int_equal(card->operations->pin(card, 1, &small), LNS_OK);
    assert_int_equal(card->operations->pin(card, 5000000, &large), LNS_OK);
    check_shared(&small, 1);
    check_shared(&large, 5000000);
    assert_int_equal(fake.pins, 2);
    assert_true(small.noc_address != large.noc_address);
    card->operations->unpin(card, &small);
    assert_null(small.data);
    assert_int_equal(fake.pins, 1);
    assert_int_equal(fake.allocations, 1);
    card->operations->unpin(card, &small); /* nothing happens */
    card->operations->close(card);         /* unpins the other */
    assert_at_rest();
}

/* Without an IOMMU, and without huge pages. */
static void lets_the_driver_allocate(void **state) {
    (void)state;
    lns_blackhole_host_memory memory[2];
    fake.wants_contiguous = 1;
    lns_blackhole_transport *card = open_card();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(card->operations->pin(card, 400000, &memory[i]), LNS_OK);
        check_shared(&memory[i], 400000);
    }
    assert_int_equal(fake.buffers, 2);
    assert_int_equal(fake.allocations, 0);
    card->operations->unpin(card, &memory[0]);
    card->operations->close(card);
    assert_at_rest();
}

static void refuses_too_much_memory(void **state) {
    (void)state;
    lns_blackhole_host_memory memory;
    lns_blackhole_transport *card = open_card();
    assert_int_equal(card->operations->pin(card, 0, &memory), LNS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(card->operations->pin(card, SIZE_MAX, &memory), LNS_ERROR_INVALID_ARGUMENT);
    assert_null(memory.data);
    for (int i = 0; i < 16; i++)
        assert_int_equal(card->operations->pin(card, 4096, &memory), LNS_OK);
    assert_int_equal(card->operations->pin(card, 4096, &memory), LNS_ERROR_LIMIT);
    card->operations->close(card);
    assert_at_rest();
}

/* The driver gives no index twice, and there are 256. */
static void runs_out_of_buffers_of_the_driver(void **state) {
    (void)state;
    lns_blackhole_host_memory memory;
    fake.wants_contiguous = 1;
    lns_blackhole_transport *card = open_card();
    for (int i = 0; i < 256; i++) {
        assert_int_equal(card->operations->pin(card, 4096, &memory), LNS_OK);
        card->operations->unpin(card, &memory);
    }
    assert_int_equal(card->operations->pin(card, 4096, &memory), LNS_ERROR_SYSTEM);
    assert_string_equal(lns_error_message(),
                        "device 0: 2097152 bytes of memory can neither be pinned (Invalid argument) nor be had from "
                        "the driver (No space left on device)");
    card->operations->close(card);
    assert_at_rest();
}

/* ---- Every call fails once ---------------------------------------------------------------------- */

/* A life with everything in it. */
static lns_status live(int purpose) {
    static uint8_t data[1000];
    lns_blackhole_transport *card;
    lns_blackhole_host_memory memory;
    lns_blackhole_telemetry telemetry;
    lns_status status = lns_blackhole_open_kmd(&fake_system, 0, (lns_kmd_purpose)purpose, &card);
    if (status != LNS_OK) {
        assert_null(card);
        return status;
    }
    status = lns_blackhole_telemetry_read(card, &telemetry);
    if (status == LNS_OK && purpose == LNS_KMD_USE)
        status = lns_blackhole_write32(card, first_tile, 0, 1);
    if (status == LNS_OK && purpose == LNS_KMD_USE)
        status = card->operations->write(card, last_tile, 0, data, sizeof data);
    if (status == LNS_OK && purpose == LNS_KMD_USE)
        status = card->operations->multicast(card, first_tile, last_tile, 0, data, sizeof data);
    if (status == LNS_OK)
        status = card->operations->read(card, last_tile, 0, data, sizeof data);
    if (status == LNS_OK && purpose == LNS_KMD_USE)
        status = card->operations->pin(card, 4096, &memory);
    if (status == LNS_OK && purpose == LNS_KMD_USE)
        card->operations->unpin(card, &memory);
    card->operations->close(card);
    return status;
}

/* These are made on the way out, where there is nobody to tell; or another way is taken. */
static int is_forgiven(const char *call) {
    return strcmp(call, "FREE_TLB") == 0 || strcmp(call, "UNPIN_PAGES") == 0 || strcmp(call, "allocate") == 0 ||
           strcmp(call, "PIN_PAGES") == 0;
}

static int calls_of_a_life(int purpose, int wants_contiguous) {
    fake_driver_reset();
    fake.wants_contiguous = wants_contiguous;
    assert_int_equal(live(purpose), LNS_OK);
    assert_at_rest();
    return fake.calls;
}

static void check_failing_call(int purpose, int wants_contiguous, int number, int last) {
    fake_driver_reset();
    fake.wants_contiguous = wants_contiguous;
    fake.fail_at = number;
    const lns_status status = live(purpose);
    assert_non_null(fake.failed_call);
    assert_string_equal(fake_driver_leaks(), "");
    /* Power off and unlock are the last two calls of one that was used. */
    const int is_way_out = is_forgiven(fake.failed_call) || (purpose == LNS_KMD_USE && number > last - 2);
    if (is_way_out != (status == LNS_OK))
        fail_msg("call %d, %s: status %d", number, fake.failed_call, status);
    if (status != LNS_OK)
        assert_true(strstr(lns_error_message(), "device 0") || strstr(lns_error_message(), "/dev/tenstorrent/0: "));
    assert_in_range(fake.dropped, 0, status == LNS_OK ? 1 : 0);
}

static void survives_every_failing_call(void **state) {
    (void)state;
    for (int purpose = LNS_KMD_LOOK; purpose <= LNS_KMD_USE; purpose++)
        for (int wants_contiguous = 0; wants_contiguous <= 1; wants_contiguous++) {
            const int calls = calls_of_a_life(purpose, wants_contiguous);
            assert_true(calls > (purpose == LNS_KMD_USE ? 22 : 11));
            for (int i = 1; i <= calls; i++)
                check_failing_call(purpose, wants_contiguous, i, calls);
        }
}

static void survives_missing_memory(void **state) {
    (void)state;
    lns_blackhole_transport *card = (void *)&card;
    lns_alloc_fail_after(0);
    const lns_status status = lns_blackhole_open_kmd(&fake_system, 0, LNS_KMD_USE, &card);
    lns_alloc_fail_after(-1);
    assert_int_equal(status, LNS_ERROR_OUT_OF_MEMORY);
    assert_null(card);
    assert_at_rest();
}

/* ---- Reset -------------------------------------------------------------------------------------- */

static void resets_the_chip(void **state) {
    (void)state;
    fake.cards[0].reset_steps = 3;
    assert_int_equal(lns_kmd_reset_chip(&fake_system, 0), LNS_OK);
    assert_int_equal(fake.cards[0].resets, 1);
    assert_int_equal(fake.cards[0].setups, 1);
    assert_true(fake.slept_ms >= 300);
    assert_at_rest();
}

static void finds_a_card_with_a_new_number(void **state) {
    (void)state;
    fake.cards[1].is_present = 1;
    fake.cards[0].reset_steps = 2;
    fake.cards[0].number_after_reset = 7;
    assert_int_equal(lns_kmd_reset_chip(&fake_system, 0), LNS_OK);
    assert_int_equal(fake.cards[0].setups, 1);
    assert_int_equal(fake.cards[1].setups, 0);
    assert_at_rest();
}

static void expect_reset_refusal(const char *text) {
    assert_int_not_equal(lns_kmd_reset_chip(&fake_system, 0), LNS_OK);
    assert_string_equal(lns_error_message(), text);
    assert_at_rest();
}

static void says_why_a_reset_failed(void **state) {
    (void)state;
    fake.cards[0].locked_by_other = 1;
    expect_reset_refusal("device 0 is in use by another model or process of Lensing");
    assert_int_equal(fake.cards[0].resets, 0);
    fake.cards[0].locked_by_other = 0;
    fake.cards[0].reset_fails = 1;
    expect_reset_refusal("device 0: the driver could not begin a reset");
    fake.cards[0].reset_fails = 0;
    fake.cards[0].reset_steps = -1;
    expect_reset_refusal("device 0 has not come back from its reset within 10 s");
    fake.cards[0].reset_steps = 1;
    fake.cards[0].setup_fails = 1;
    expect_reset_refusal("device 0: the driver could not set the card up after the reset");
    fake.cards[0].device = LNS_KMD_WORMHOLE;
    expect_reset_refusal("device 0 is PCI 1e52:401e (Wormhole); Lensing runs on Blackhole, 1e52:b140");
    fake.is_loaded = 0;
    expect_reset_refusal(
        "no Tenstorrent card is here: /dev/tenstorrent has no devices; a card needs the driver tt-kmd");
}

static void survives_every_failing_call_of_a_reset(void **state) {
    (void)state;
    fake.cards[0].reset_steps = 2;
    assert_int_equal(lns_kmd_reset_chip(&fake_system, 0), LNS_OK);
    const int calls = fake.calls;
    for (int i = 1; i <= calls; i++) {
        fake_driver_reset();
        fake.cards[0].reset_steps = 2;
        fake.fail_at = i;
        lns_kmd_reset_chip(&fake_system, 0); /* may succeed: most of it is tried again */
        assert_string_equal(fake_driver_leaks(), "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(takes_and_gives_back_a_card, set_up),
        cmocka_unit_test_setup(leaves_the_driver_a_way_to_stop_the_card, set_up),
        cmocka_unit_test_setup(counts_columns, set_up),
        cmocka_unit_test_setup(opens_again_after_closing, set_up),
        cmocka_unit_test_setup(reads_telemetry, set_up),
        cmocka_unit_test_setup(looks_without_taking, set_up),
        cmocka_unit_test_setup(says_that_there_is_no_card, set_up),
        cmocka_unit_test_setup(says_that_it_is_another_card, set_up),
        cmocka_unit_test_setup(says_that_the_driver_is_too_old, set_up),
        cmocka_unit_test_setup(says_that_the_card_is_busy, set_up),
        cmocka_unit_test_setup(says_that_there_are_too_few_columns, set_up),
        cmocka_unit_test_setup(says_that_the_firmware_does_not_fit, set_up),
        cmocka_unit_test_setup(says_that_the_card_does_not_answer, set_up),
        cmocka_unit_test_setup(carries_bytes, set_up),
        cmocka_unit_test_setup(keeps_the_order_of_writes, set_up),
        cmocka_unit_test_setup(multicasts, set_up),
        cmocka_unit_test_setup(refuses_odd_addresses, set_up),
        cmocka_unit_test_setup(shares_memory, set_up),
        cmocka_unit_test_setup(lets_the_driver_allocate, set_up),
        cmocka_unit_test_setup(refuses_too_much_memory, set_up),
        cmocka_unit_test_setup(runs_out_of_buffers_of_the_driver, set_up),
        cmocka_unit_test_setup(survives_every_failing_call, set_up),
        cmocka_unit_test_setup(survives_missing_memory, set_up),
        cmocka_unit_test_setup(resets_the_chip, set_up),
        cmocka_unit_test_setup(finds_a_card_with_a_new_number, set_up),
        cmocka_unit_test_setup(says_why_a_reset_failed, set_up),
        cmocka_unit_test_setup(survives_every_failing_call_of_a_reset, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
