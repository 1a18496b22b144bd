/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a selftest that need no program on the card but a few instructions: what the host can find out about the
 * card, its memories, and the ways between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "blackhole/cards.h"
#include "blackhole/device.h"
#include "blackhole/grid.h"
#include "blackhole/kmd_card.h"
#include "blackhole/selftest.h"
#include "blackhole/sim.h"
#include "blackhole/telemetry.h"

#define FIRMWARE_WAIT_MS 10000
#define FIRMWARE_STEP_MS 100

/* ---- Patterns and tiles ------------------------------------------------------------------------- */

/* A word that no other place has: a wrong tile, a wrong address and an old pattern all show. */
static uint32_t pattern(lns_blackhole_tile tile, uint64_t address, uint32_t salt) {
    uint32_t word = (uint32_t)(address / 4) * 2654435761u ^ (uint32_t)(address >> 32) ^ salt * 0x9e3779b9u;
    word ^= (uint32_t)tile.x << 24 ^ (uint32_t)tile.y << 16;
    word ^= word >> 15;
    return word * 2246822519u;
}

static void fill(uint32_t *words, lns_blackhole_tile tile, uint64_t address, size_t size, uint32_t salt) {
    for (size_t i = 0; i < size / 4; i++)
        words[i] = pattern(tile, address + 4 * i, salt);
}

static lns_status write_pattern(lns_blackhole_selftest *selftest, lns_blackhole_tile tile, uint64_t address,
                                size_t size, uint32_t salt) {
    lns_status status = LNS_OK;
    for (size_t done = 0; done < size && status == LNS_OK; done += LNS_SELFTEST_PIECE) {
        const size_t part = size - done < LNS_SELFTEST_PIECE ? size - done : LNS_SELFTEST_PIECE;
        fill(selftest->memory, tile, address + done, part, salt);
        status =
            selftest->transport->operations->write(selftest->transport, tile, address + done, selftest->memory, part);
    }
    return status;
}

/* Reads at `tile`, and expects what was written at `source`, up to a piece. */
static lns_status expect_pattern(lns_blackhole_selftest *selftest, lns_blackhole_tile tile, lns_blackhole_tile source,
                                 uint64_t address, size_t size, uint32_t salt) {
    const lns_status status =
        selftest->transport->operations->read(selftest->transport, tile, address, selftest->memory, size);
    if (status != LNS_OK)
        return status;
    fill(selftest->expected, source, address, size, salt);
    for (size_t i = 0; i < size / 4; i++)
        if (selftest->memory[i] != selftest->expected[i])
            return lns_fail(LNS_ERROR_SYSTEM, "tile %d,%d has 0x%08x at 0x%llx, and 0x%08x was written", tile.x, tile.y,
                            selftest->memory[i], (unsigned long long)(address + 4 * i), selftest->expected[i]);
    return LNS_OK;
}

/* The tiles of a grid of 12 x 10 one after the other; 0 after the last one. */
static int next_tile(const lns_blackhole_selftest *selftest, int *index, lns_blackhole_tile *tile) {
    if (*index == selftest->transport->columns * LNS_BLACKHOLE_ROWS)
        return 0;
    tile->x = lns_tile_column_x(*index / LNS_BLACKHOLE_ROWS);
    tile->y = (uint8_t)(LNS_TILE_FIRST_Y + *index % LNS_BLACKHOLE_ROWS);
    ++*index;
    return 1;
}

static const char *skip_on_simulator(const lns_blackhole_selftest *selftest) {
    (void)selftest;
    return lns_blackhole_is_simulated() ? "the simulator has none of that" : NULL;
}

/* ---- Before anything is written ----------------------------------------------------------------- */

static const char *skip_reset(const lns_blackhole_selftest *selftest) {
    if (lns_blackhole_is_simulated())
        return "the simulator begins as a card does after a reset";
    return selftest->with_reset ? NULL : "not asked for";
}

static lns_status run_reset(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    const lns_status status = lns_kmd_reset_chip(selftest->system, selftest->device_id);
    snprintf(detail, size, "the chip was restarted, and the driver has set it up again");
    return status;
}

/* After a reset the firmware takes a while. */
static lns_status open_card(lns_blackhole_selftest *selftest) {
    lns_status status = lns_blackhole_open(selftest->system, selftest->device_id, &selftest->transport);
    const int limit = selftest->with_reset ? FIRMWARE_WAIT_MS : 0;
    for (int waited = 0; status == LNS_ERROR_SYSTEM && waited < limit; waited += FIRMWARE_STEP_MS) {
        selftest->system->sleep_ms(FIRMWARE_STEP_MS);
        status = lns_blackhole_open(selftest->system, selftest->device_id, &selftest->transport);
    }
    return status;
}

static lns_status run_open(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_card card;
    const lns_status status = open_card(selftest);
    if (status != LNS_OK)
        return status;
    if (lns_blackhole_is_simulated()) {
        snprintf(detail, size, "the simulator %s", getenv(LNS_BLACKHOLE_SIM_VARIABLE));
        return LNS_OK;
    }
    lns_blackhole_describe(selftest->system, selftest->device_id, &card);
    snprintf(detail, size, LNS_KMD_FOLDER "/%d, %s at %s, driver %s; no other model has it", card.id, card.kind,
             card.bus, card.driver);
    return LNS_OK;
}

static lns_status run_firmware(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_telemetry seen;
    const lns_status status = lns_blackhole_telemetry_read(selftest->transport, &seen);
    if (status != LNS_OK)
        return status;
    const int used = snprintf(detail, size, "firmware %u.%u.%u.%u, clock %u MHz, %.1f C", seen.firmware >> 24,
                              seen.firmware >> 16 & 0xff, seen.firmware >> 8 & 0xff, seen.firmware & 0xff,
                              seen.clock_mhz, (int32_t)seen.temperature / 65536.0);
    if (seen.columns >= 0)
        snprintf(detail + used, size - (size_t)used, ", %d columns (mask 0x%04x)", seen.columns, seen.enabled_columns);
    /* The simulator is not asked: its table lacks both. */
    return lns_blackhole_is_simulated() ? LNS_OK : lns_blackhole_telemetry_check(&seen);
}

/* ---- Tiles -------------------------------------------------------------------------------------- */

static lns_status run_tiles(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_tile tile;
    uint32_t reset = 0, identity = 0;
    int count = 0;
    while (next_tile(selftest, &count, &tile)) {
        lns_status status = lns_blackhole_read32(selftest->transport, tile, LNS_TILE_NOC_ID, &identity);
        if (status == LNS_OK)
            status = lns_blackhole_read32(selftest->transport, tile, LNS_TILE_SOFT_RESET, &reset);
        if (status != LNS_OK)
            return status;
        if ((identity & 0x3f) != tile.x || (identity >> 6 & 0x3f) != tile.y)
            return lns_fail(LNS_ERROR_SYSTEM, "what answers as tile %d,%d calls itself %u,%u", tile.x, tile.y,
                            identity & 0x3f, identity >> 6 & 0x3f);
        if ((reset & LNS_TILE_ALL_IN_RESET) != LNS_TILE_ALL_IN_RESET)
            return lns_fail(LNS_ERROR_SYSTEM, "cores of tile %d,%d are not in reset (0x%08x)", tile.x, tile.y, reset);
    }
    snprintf(detail, size, "%d tiles, each answers under its own coordinates, all cores in reset", count);
    return LNS_OK;
}

#define SAMPLE ((size_t)4 << 10)
#define SAMPLE_STEP ((size_t)64 << 10)

/* Everything is written before the first is read: a tile that shows another one's memory is found. Reading over the bus
 * is slow, so what is read are samples. */
static lns_status run_memory(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_tile tile;
    lns_status status = LNS_OK;
    int count = 0;
    while (status == LNS_OK && next_tile(selftest, &count, &tile))
        status = write_pattern(selftest, tile, 0, selftest->l1_size, 1);
    count = 0;
    while (status == LNS_OK && next_tile(selftest, &count, &tile)) {
        for (size_t place = 0; place < selftest->l1_size && status == LNS_OK; place += SAMPLE_STEP)
            status = expect_pattern(selftest, tile, tile, place, SAMPLE, 1);
        if (status == LNS_OK)
            status = expect_pattern(selftest, tile, tile, selftest->l1_size - SAMPLE, SAMPLE, 1);
    }
    snprintf(detail, size, "%d x %zu KiB written, %zu of every %zu KiB read back", count, selftest->l1_size >> 10,
             SAMPLE >> 10, SAMPLE_STEP >> 10);
    return status;
}

/* ---- DRAM --------------------------------------------------------------------------------------- */

#define DRAM_PORTS 3
#define DRAM_MEMORIES (LNS_DRAM_COLUMNS * LNS_DRAM_ROWS / DRAM_PORTS)
#define DRAM_SAMPLE ((size_t)64 << 10)

static lns_blackhole_tile dram_tile(int memory, int port) {
    const int row = memory * DRAM_PORTS + port;
    return (lns_blackhole_tile){(uint8_t)(LNS_DRAM_X + row / LNS_DRAM_ROWS),
                                (uint8_t)(LNS_DRAM_Y + row % LNS_DRAM_ROWS)};
}

/* The beginning, the middle and the end of each memory, written through one of its tiles, read through the others. */
static lns_status run_dram(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    static const uint64_t places[] = {0, UINT64_C(0x80000000), UINT64_C(0x100000000) - DRAM_SAMPLE};
    const size_t place_count = sizeof places / sizeof places[0];
    lns_status status = LNS_OK;
    for (int i = 0; i < DRAM_MEMORIES; i++)
        for (size_t j = 0; j < place_count && status == LNS_OK; j++)
            status = write_pattern(selftest, dram_tile(i, 0), places[j], DRAM_SAMPLE, 2);
    for (int i = 0; i < DRAM_MEMORIES; i++)
        for (int port = 1; port < DRAM_PORTS; port++)
            for (size_t j = 0; j < place_count && status == LNS_OK; j++)
                status = expect_pattern(selftest, dram_tile(i, port), dram_tile(i, 0), places[j], DRAM_SAMPLE, 2);
    snprintf(detail, size, "%d memories of 4 GiB, %zu KiB at 3 places of each, written and read at different tiles",
             DRAM_MEMORIES, DRAM_SAMPLE >> 10);
    return status;
}

/* ---- Ways --------------------------------------------------------------------------------------- */

#define CAST_ADDRESS 0x10000u
#define CAST_SIZE ((size_t)64 << 10)

static lns_status cast(lns_blackhole_selftest *selftest, lns_blackhole_tile first, lns_blackhole_tile last,
                       uint32_t salt) {
    fill(selftest->memory, first, CAST_ADDRESS, CAST_SIZE, salt);
    return selftest->transport->operations->multicast(selftest->transport, first, last, CAST_ADDRESS, selftest->memory,
                                                      CAST_SIZE);
}

/* To all tiles, then to all but the outermost: these must keep what they have. */
static lns_status run_multicast(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    const lns_blackhole_tile first = {LNS_TILE_FIRST_X, LNS_TILE_FIRST_Y}, last = lns_tile_last(selftest->transport);
    const lns_blackhole_tile inner_first = {(uint8_t)(first.x + 1), (uint8_t)(first.y + 1)};
    const lns_blackhole_tile inner_last = {(uint8_t)(last.x - 1), (uint8_t)(last.y - 1)};
    lns_blackhole_tile tile;
    int count = 0;
    lns_status status = cast(selftest, first, last, 3);
    while (status == LNS_OK && next_tile(selftest, &count, &tile))
        status = expect_pattern(selftest, tile, first, CAST_ADDRESS, SAMPLE, 3);
    if (status == LNS_OK)
        status = cast(selftest, inner_first, inner_last, 4);
    for (count = 0; status == LNS_OK && next_tile(selftest, &count, &tile);) {
        const int is_inner =
            tile.x >= inner_first.x && tile.x <= inner_last.x && tile.y >= inner_first.y && tile.y <= inner_last.y;
        status = expect_pattern(selftest, tile, is_inner ? inner_first : first, CAST_ADDRESS + CAST_SIZE - SAMPLE,
                                SAMPLE, is_inner ? 4 : 3);
    }
    snprintf(detail, size, "%zu KiB to %d tiles at once, and then to the inner ones only", CAST_SIZE >> 10, count);
    return status;
}

#define HOST_SIZE ((size_t)512 << 10)
#define HOST_SAMPLE ((size_t)4 << 10)

static lns_status exchange(lns_blackhole_selftest *selftest, const lns_blackhole_host_memory *memory, size_t place) {
    const lns_blackhole_tile bridge = {LNS_BLACKHOLE_PCIE_X, LNS_BLACKHOLE_PCIE_Y};
    const uint64_t address = memory->noc_address + place;
    uint32_t *shared = (uint32_t *)(void *)((uint8_t *)memory->data + place);
    fill(shared, bridge, address, HOST_SAMPLE, 5);
    lns_status status = expect_pattern(selftest, bridge, bridge, address, HOST_SAMPLE, 5);
    if (status == LNS_OK)
        status = write_pattern(selftest, bridge, address, HOST_SAMPLE, 6);
    if (status == LNS_OK) /* a read behind the writes: they have arrived */
        status = expect_pattern(selftest, bridge, bridge, address, HOST_SAMPLE, 6);
    if (status == LNS_OK && memcmp(shared, selftest->expected, HOST_SAMPLE) != 0)
        return lns_fail(LNS_ERROR_SYSTEM, "what was written to the card's address 0x%llx is not in the host's memory",
                        (unsigned long long)address);
    return status;
}

/* Out through a window, over the NoC to the PCIe tile, and from there back into memory of this process. */
static lns_status run_host(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_transport *transport = selftest->transport;
    lns_blackhole_host_memory memory;
    lns_status status = transport->operations->pin(transport, HOST_SIZE, &memory);
    if (status != LNS_OK)
        return status;
    snprintf(detail, size, "%zu KiB shared at 0x%llx of tile %d,%d, read and written by way of the NoC",
             memory.size >> 10, (unsigned long long)memory.noc_address, LNS_BLACKHOLE_PCIE_X, LNS_BLACKHOLE_PCIE_Y);
    status = exchange(selftest, &memory, 0);
    if (status == LNS_OK)
        status = exchange(selftest, &memory, HOST_SIZE - HOST_SAMPLE);
    transport->operations->unpin(transport, &memory);
    return status;
}

/* ---- Cores -------------------------------------------------------------------------------------- */

/* Core B of each tile stores the tile's coordinates in L1 and stays in a loop. Instructions of RV32I, by the RISC-V
 * specification, volume 1, chapter 2. */
#define A0 10u
#define A1 11u
#define LUI(to, upper) ((uint32_t)(upper) << 12 | (to) << 7 | 0x37u)
#define LW(to, offset, base) ((uint32_t)(offset) << 20 | (base) << 15 | 2u << 12 | (to) << 7 | 0x03u)
#define SW(from, base) ((from) << 20 | (base) << 15 | 2u << 12 | 0x23u)
#define LOOP 0x6fu

#define ANSWER_ADDRESS 0x20000u
#define NO_ANSWER 0x55555555u
#define ANSWER_TRIES 10000
#define ANSWER_STEPS 10

static const uint32_t core_program[] = {
    LUI(A0, LNS_TILE_NOC_ID >> 12),      /* a0 = the page of that register */
    LW(A1, LNS_TILE_NOC_ID & 0xfff, A0), /* a1 = the tile's coordinates */
    LUI(A0, ANSWER_ADDRESS >> 12),       /* a0 = where the answer goes */
    SW(A1, A0),
    LOOP,
};

static lns_status start_cores(lns_blackhole_selftest *selftest) {
    lns_blackhole_transport *transport = selftest->transport;
    const uint32_t no_answer = NO_ANSWER, running = LNS_TILE_ALL_IN_RESET & ~LNS_TILE_CORE_B;
    lns_blackhole_tile tile;
    lns_status status = LNS_OK;
    for (int i = 0; status == LNS_OK && next_tile(selftest, &i, &tile);) {
        status = transport->operations->write(transport, tile, 0, core_program, sizeof core_program);
        if (status == LNS_OK)
            status = lns_blackhole_write32(transport, tile, ANSWER_ADDRESS, no_answer);
        if (status == LNS_OK)
            status = lns_blackhole_write32(transport, tile, LNS_TILE_SOFT_RESET, running);
    }
    return status;
}

static lns_status wait_for_core(lns_blackhole_selftest *selftest, lns_blackhole_tile tile) {
    lns_blackhole_transport *transport = selftest->transport;
    uint32_t answer = NO_ANSWER;
    lns_status status = LNS_OK;
    for (int i = 0; i < ANSWER_TRIES && status == LNS_OK && answer == NO_ANSWER; i++) {
        status = transport->operations->idle(transport, ANSWER_STEPS);
        if (status == LNS_OK)
            status = lns_blackhole_read32(transport, tile, ANSWER_ADDRESS, &answer);
    }
    if (status == LNS_OK && answer == NO_ANSWER)
        return lns_fail(LNS_ERROR_SYSTEM, "core B of tile %d,%d does not run", tile.x, tile.y);
    if (status == LNS_OK && (answer & 0xfff) != ((uint32_t)tile.y << 6 | tile.x))
        return lns_fail(LNS_ERROR_SYSTEM, "core B of tile %d,%d answered 0x%08x", tile.x, tile.y, answer);
    if (status == LNS_OK)
        status = lns_blackhole_write32(transport, tile, LNS_TILE_SOFT_RESET, LNS_TILE_ALL_IN_RESET);
    return status;
}

static lns_status run_cores(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_tile tile;
    int count = 0;
    lns_status status = start_cores(selftest);
    while (status == LNS_OK && next_tile(selftest, &count, &tile))
        status = wait_for_core(selftest, tile);
    selftest->cores_run = status == LNS_OK;
    snprintf(detail, size, "core B of %d tiles ran a program and stored the tile's coordinates", count);
    return status;
}

static const char *skip_without_cores(const lns_blackhole_selftest *selftest) {
    return selftest->cores_run ? NULL : "no program runs on the cores";
}

/* ---- Speed -------------------------------------------------------------------------------------- */

#define SPEED_READS 1000
#define SPEED_WRITES 8

static lns_status run_speed(lns_blackhole_selftest *selftest, char *detail, size_t size) {
    lns_blackhole_transport *transport = selftest->transport;
    const lns_blackhole_tile first = {LNS_TILE_FIRST_X, LNS_TILE_FIRST_Y}, last = lns_tile_last(transport);
    uint32_t word;
    lns_status status = LNS_OK;
    const double start = lns_clock_ms();
    for (int i = 0; i < SPEED_READS && status == LNS_OK; i++)
        status = lns_blackhole_read32(transport, first, 0, &word);
    const double read = lns_clock_ms();
    for (int i = 0; i < SPEED_WRITES && status == LNS_OK; i++)
        status = transport->operations->write(transport, first, 0, selftest->memory, LNS_SELFTEST_PIECE);
    const double written = lns_clock_ms();
    for (int i = 0; i < SPEED_WRITES && status == LNS_OK; i++)
        status = transport->operations->multicast(transport, first, last, 0, selftest->memory, LNS_SELFTEST_PIECE);
    if (status == LNS_OK)
        status = lns_blackhole_read32(transport, last, 0, &word);
    const double sent = lns_clock_ms();
    const double gigabytes = SPEED_WRITES * (double)LNS_SELFTEST_PIECE / 1e9;
    snprintf(detail, size, "a word is read in %.2f us; %.2f GB/s to a tile, %.2f GB/s to all",
             (read - start) * 1e3 / SPEED_READS, gigabytes / (written - read) * 1e3,
             gigabytes / (sent - written) * 1e3);
    return status;
}

/* ---- The list ----------------------------------------------------------------------------------- */

const lns_selftest_entry lns_selftest_entries[] = {
    {"reset", "does the card come back from a reset?", run_reset, 0, skip_reset},
    {"open", "is there a Blackhole, with a driver that fits, and is it free?", run_open, 0, NULL},
    {"firmware", "does the firmware run, and are there enough columns?", run_firmware, 1, NULL},
    {"tiles", "does each tile answer under its coordinates, with its cores stopped?", run_tiles, 1, NULL},
    {"memory", "does the memory of each tile hold what is written to it?", run_memory, 1, NULL},
    {"dram", "does the memory of the card hold what is written to it?", run_dram, 1, NULL},
    {"multicast", "does one write reach many tiles, and no others?", run_multicast, 1, NULL},
    {"host", "do tiles of the card reach memory of the host?", run_host, 1, NULL},
    {"cores", "do cores start, run, and stop?", run_cores, 1, NULL},
    {"speed", "how fast is the way to the card?", run_speed, 1, skip_on_simulator},
    {"convolution", "does each tile compute what the host computes?", lns_selftest_convolve, 1, skip_without_cores},
    {NULL, NULL, NULL, 0, NULL},
};
