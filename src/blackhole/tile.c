/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/tile.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "blackhole/kernels.h"

/* RISCV_DEBUG_REG_SOFT_RESET_0: a bit for each of the cores B, T0, T1, T2 and NC that holds it in reset (ISA
 * documentation, BlackholeA0/TensixTile/SoftReset.md). */
#define SOFT_RESET UINT64_C(0xFFB121B0)
#define RESET_B (1u << 11)
#define RESET_ALL (RESET_B | 7u << 12 | 1u << 18)

#define CONTROL(member) ((uint64_t)LNS_BH_CONTROL + offsetof(lns_bh_control, member))

int lns_blackhole_next_tile(lns_blackhole_tiles tiles, lns_blackhole_tile *tile) {
    do
        tile->x++;
    while (tile->x == 8 || tile->x == 9);
    if (tile->x <= tiles.last.x)
        return 1;
    tile->x = tiles.first.x;
    return ++tile->y <= tiles.last.y;
}

static lns_status multicast(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint64_t address,
                            const void *data, size_t size) {
    return transport->operations->multicast(transport, tiles.first, tiles.last, address, data, size);
}

/* Programs are padded to whole words. */
static lns_status load(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint32_t address,
                       const unsigned char *code, size_t size) {
    uint32_t words[(LNS_BH_CODE_UNPACK - LNS_BH_CODE_B) / 4] = {0}; /* the largest place */
    memcpy(words, code, size);
    return multicast(transport, tiles, address, words, (size + 3) / 4 * 4);
}

static lns_status load_all(lns_blackhole_transport *transport, lns_blackhole_tiles tiles) {
    static const struct {
        const unsigned char *code;
        const size_t *size;
        uint32_t address;
    } programs[] = {
        {lns_blackhole_kernel_control, &lns_blackhole_kernel_control_size, LNS_BH_CODE_B},
        {lns_blackhole_kernel_unpack, &lns_blackhole_kernel_unpack_size, LNS_BH_CODE_UNPACK},
        {lns_blackhole_kernel_math, &lns_blackhole_kernel_math_size, LNS_BH_CODE_MATH},
        {lns_blackhole_kernel_pack, &lns_blackhole_kernel_pack_size, LNS_BH_CODE_PACK},
    };
    lns_status status = LNS_OK;
    for (size_t i = 0; i < sizeof programs / sizeof *programs && status == LNS_OK; i++)
        status = load(transport, tiles, programs[i].address, programs[i].code, *programs[i].size);
    return status;
}

/* Waits until word `address` of the tile is `value`. */
static lns_status wait_for_word(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address,
                                uint32_t value, double deadline, const char *what) {
    for (;;) {
        uint32_t word;
        lns_status status = lns_blackhole_read32(transport, tile, address, &word);
        if (status != LNS_OK || word == value)
            return status;
        if (lns_clock_ms() > deadline)
            return lns_fail(LNS_ERROR_SYSTEM, "tile (%d, %d) of the card did not %s in time", tile.x, tile.y, what);
        status = transport->operations->idle(transport, LNS_BLACKHOLE_IDLE_STEPS);
        if (status != LNS_OK)
            return status;
    }
}

static lns_status wait_for_all(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint64_t address,
                               uint32_t value, double timeout_ms, const char *what) {
    const double deadline = lns_clock_ms() + timeout_ms;
    lns_blackhole_tile tile = tiles.first;
    lns_status status;
    do
        status = wait_for_word(transport, tile, address, value, deadline, what);
    while (status == LNS_OK && lns_blackhole_next_tile(tiles, &tile));
    return status;
}

lns_status lns_blackhole_stop_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles) {
    const uint32_t reset = RESET_ALL;
    return multicast(transport, tiles, SOFT_RESET, &reset, sizeof reset);
}

lns_status lns_blackhole_start_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, double timeout_ms) {
    static const lns_bh_control zero;
    const uint32_t release_b = RESET_ALL & ~RESET_B; /* core B starts the threads */
    lns_status status = lns_blackhole_stop_tiles(transport, tiles);
    if (status == LNS_OK)
        status = load_all(transport, tiles);
    if (status == LNS_OK)
        status = multicast(transport, tiles, LNS_BH_CONTROL, &zero, sizeof zero);
    if (status == LNS_OK)
        status = multicast(transport, tiles, SOFT_RESET, &release_b, sizeof release_b);
    if (status == LNS_OK)
        status = wait_for_all(transport, tiles, CONTROL(ready), LNS_BH_READY, timeout_ms, "start");
    return status;
}

static lns_status check_steps(lns_blackhole_transport *transport, lns_blackhole_tiles tiles) {
    lns_blackhole_tile tile = tiles.first;
    do {
        uint32_t bad;
        const lns_status status = lns_blackhole_read32(transport, tile, CONTROL(bad_step), &bad);
        if (status != LNS_OK)
            return status;
        if (bad != 0)
            return lns_fail(LNS_ERROR_SYSTEM, "tile (%d, %d) of the card does not know step %u of its program", tile.x,
                            tile.y, bad - 1);
    } while (lns_blackhole_next_tile(tiles, &tile));
    return LNS_OK;
}

lns_status lns_blackhole_ring_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint32_t program,
                                    uint32_t request) {
    const lns_status status = multicast(transport, tiles, CONTROL(program), &program, sizeof program);
    if (status != LNS_OK)
        return status;
    return multicast(transport, tiles, CONTROL(request), &request, sizeof request); /* last, and in order */
}

lns_status lns_blackhole_wait_for_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint32_t request,
                                        double timeout_ms) {
    const lns_status status =
        wait_for_all(transport, tiles, CONTROL(finished), request, timeout_ms, "finish a request");
    return status == LNS_OK ? check_steps(transport, tiles) : status;
}
