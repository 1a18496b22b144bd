/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/telemetry.h"

#include <string.h>

#include "base/error.h"
#include "blackhole/grid.h"

/* Scratch registers of the ARC tile: state of the firmware, address of the values, address of the table. */
#define SCRATCH(n) (0x80030400u + 4 * (n))
#define BOOT_STATUS SCRATCH(2)
#define VALUES SCRATCH(12)
#define TABLE SCRATCH(13)

/* Bit 0: takes messages; bit 2: has started (tt-umd waits for both). */
#define BOOT_MASK 7u
#define BOOT_DONE 5u

/* Memory of the ARC tile, where the table lies. */
#define MEMORY_START 0x10000000u
#define MEMORY_SIZE (512u << 10)

#define VERSION_LIMIT 1 /* of the layout, bits 16-23 */
#define ENTRIES_LIMIT 256

/* Tags, telemetry.h of tt-zephyr-platforms. */
#define TAG_TEMPERATURE 11
#define TAG_CLOCK 14
#define TAG_FIRMWARE 28
#define TAG_ENABLED_COLUMNS 34
#define TAG_TRANSLATION 40

#define DIE_COLUMNS 14

static const lns_blackhole_tile arc = {LNS_ARC_X, LNS_ARC_Y};

static lns_status check_firmware(lns_blackhole_transport *transport) {
    uint32_t boot;
    const lns_status status = lns_blackhole_read32(transport, arc, BOOT_STATUS, &boot);
    if (status != LNS_OK)
        return status;
    if ((boot & BOOT_MASK) != BOOT_DONE)
        return lns_fail(LNS_ERROR_SYSTEM, "the firmware of the card has not started (boot status 0x%08x)", boot);
    return LNS_OK;
}

static int is_inside(uint32_t address, uint32_t size) {
    return address % 4 == 0 && address >= MEMORY_START && address - MEMORY_START <= MEMORY_SIZE - size;
}

static void take(lns_blackhole_telemetry *telemetry, uint32_t tag, uint32_t value) {
    switch (tag) {
    case TAG_TEMPERATURE:
        telemetry->temperature = value;
        break;
    case TAG_CLOCK:
        telemetry->clock_mhz = value;
        break;
    case TAG_FIRMWARE:
        telemetry->firmware = value;
        break;
    case TAG_ENABLED_COLUMNS:
        telemetry->enabled_columns = value & ((1u << DIE_COLUMNS) - 1);
        telemetry->columns = __builtin_popcount(telemetry->enabled_columns);
        break;
    case TAG_TRANSLATION:
        telemetry->has_translation = value != 0;
        break;
    default:
        break;
    }
}

static lns_status read_entries(lns_blackhole_transport *transport, uint32_t table, uint32_t values, uint32_t count,
                               lns_blackhole_telemetry *telemetry) {
    uint32_t entries[ENTRIES_LIMIT];
    lns_status status = transport->operations->read(transport, arc, table, entries, count * sizeof *entries);
    for (uint32_t i = 0; i < count && status == LNS_OK; i++) {
        const uint32_t tag = entries[i] & 0xffff, address = values + 4 * (entries[i] >> 16);
        uint32_t value;
        if (tag == 0 || !is_inside(address, 4))
            continue;
        status = lns_blackhole_read32(transport, arc, address, &value);
        if (status == LNS_OK)
            take(telemetry, tag, value);
    }
    return status;
}

lns_status lns_blackhole_telemetry_read(lns_blackhole_transport *transport, lns_blackhole_telemetry *telemetry) {
    memset(telemetry, 0, sizeof *telemetry);
    telemetry->columns = telemetry->has_translation = -1;
    uint32_t table = 0, values = 0, header[2] = {0};
    lns_status status = check_firmware(transport);
    if (status == LNS_OK)
        status = lns_blackhole_read32(transport, arc, TABLE, &table);
    if (status == LNS_OK)
        status = lns_blackhole_read32(transport, arc, VALUES, &values);
    if (status != LNS_OK)
        return status;
    if (!is_inside(table, sizeof header) || !is_inside(values, 4))
        return lns_fail(LNS_ERROR_SYSTEM,
                        "the firmware of the card has no telemetry (table at 0x%08x, values at 0x%08x)", table, values);
    status = transport->operations->read(transport, arc, table, header, sizeof header);
    if (status != LNS_OK)
        return status;
    if ((header[0] >> 16 & 0xff) > VERSION_LIMIT || header[1] > ENTRIES_LIMIT ||
        !is_inside(table, (uint32_t)sizeof header + 4 * header[1]))
        return lns_fail(LNS_ERROR_UNSUPPORTED,
                        "the telemetry of the card is of version 0x%08x with %u entries; up to version %d.x and %d "
                        "entries are understood",
                        header[0], header[1], VERSION_LIMIT, ENTRIES_LIMIT);
    return read_entries(transport, table + (uint32_t)sizeof header, values, header[1], telemetry);
}

lns_status lns_blackhole_telemetry_check(const lns_blackhole_telemetry *telemetry) {
    if (telemetry->columns < 0)
        return lns_fail(LNS_ERROR_UNSUPPORTED,
                        "the firmware of the card does not tell its Tensix columns; firmware 19.5.0 or newer does");
    if (telemetry->columns < LNS_BLACKHOLE_COLUMNS)
        return lns_fail(LNS_ERROR_UNSUPPORTED, "the card has %d Tensix columns (mask 0x%04x); Lensing needs %d",
                        telemetry->columns, telemetry->enabled_columns, LNS_BLACKHOLE_COLUMNS);
    if (telemetry->has_translation != 1)
        return lns_fail(LNS_ERROR_UNSUPPORTED,
                        "the firmware of the card does not translate NoC coordinates; firmware 19.5.0 or newer does");
    return LNS_OK;
}
