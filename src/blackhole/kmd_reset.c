/* SPDX-License-Identifier: Apache-2.0 */
/* Restarting the whole chip, in the steps of tools/reset.c of tt-kmd: the driver sets a mark in the card's PCI command
 * register and starts the reset; when the reset has taken the mark away, and the card is back on the bus, the driver is
 * told to set the card up again. The card may have come back under another number. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "blackhole/kmd_card.h"

#define WAIT_STEP_MS 100
#define WAIT_LIMIT_MS 10000

/* Bit 6 of the PCI command register, at byte 4 of the configuration space. */
#define MARK_BYTE 4
#define MARK_BIT 0x40

#define IDS_LIMIT 64

typedef struct bus_place {
    uint16_t domain, bus_device_function;
} bus_place;

static bus_place place_of(const lns_kmd_card *card) {
    return (bus_place){card->device.domain, card->device.bus_device_function};
}

static int call_reset(const lns_kmd_card *card, uint32_t kind) {
    lns_kmd_reset reset = {.output_size = 8, .kind = kind};
    return card->system->ioctl(card->fd, LNS_KMD_RESET_DEVICE, &reset) == 0 && reset.result == 0;
}

static lns_status begin_reset(const lns_kmd_system *system, int id, bus_place *place) {
    lns_kmd_card card;
    lns_status status = lns_kmd_card_open(system, id, &card);
    if (status != LNS_OK)
        return status;
    status = lns_kmd_card_check(&card);
    if (status == LNS_OK)
        status = lns_kmd_card_lock(&card);
    *place = place_of(&card);
    if (status == LNS_OK && !call_reset(&card, LNS_KMD_RESET_ASIC))
        status = lns_fail(LNS_ERROR_SYSTEM, "device %d: the driver could not begin a reset", id);
    lns_kmd_card_close(&card);
    return status;
}

static int is_marked(const lns_kmd_system *system, bus_place place) {
    char path[96];
    uint8_t config[MARK_BYTE + 1];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.%x/config", place.domain,
             place.bus_device_function >> 8, place.bus_device_function >> 3 & 0x1f, place.bus_device_function & 7);
    return system->read_file(path, config, sizeof config) != sizeof config || (config[MARK_BYTE] & MARK_BIT) != 0;
}

static lns_status wait_for_bus(const lns_kmd_system *system, int id, bus_place place) {
    for (int waited = 0; waited < WAIT_LIMIT_MS; waited += WAIT_STEP_MS) {
        system->sleep_ms(WAIT_STEP_MS);
        if (!is_marked(system, place))
            return LNS_OK;
    }
    return lns_fail(LNS_ERROR_SYSTEM, "device %d has not come back from its reset within %d s", id,
                    WAIT_LIMIT_MS / 1000);
}

/* Opens the card at that place of the bus, whatever its number is now. */
static int open_at(const lns_kmd_system *system, bus_place place, lns_kmd_card *card) {
    int ids[IDS_LIMIT];
    const int count = lns_kmd_list(system, ids, IDS_LIMIT);
    for (int i = 0; i < count; i++) {
        if (lns_kmd_card_open(system, ids[i], card) != LNS_OK)
            continue;
        if (card->device.domain == place.domain && card->device.bus_device_function == place.bus_device_function)
            return 1;
        lns_kmd_card_close(card);
    }
    return 0;
}

static lns_status end_reset(const lns_kmd_system *system, int id, bus_place place) {
    lns_kmd_card card;
    for (int waited = 0; waited < WAIT_LIMIT_MS; waited += WAIT_STEP_MS) {
        if (open_at(system, place, &card)) {
            const int is_good = call_reset(&card, LNS_KMD_RESET_DONE);
            lns_kmd_card_close(&card);
            if (is_good)
                return LNS_OK;
            return lns_fail(LNS_ERROR_SYSTEM, "device %d: the driver could not set the card up after the reset", id);
        }
        system->sleep_ms(WAIT_STEP_MS);
    }
    return lns_fail(LNS_ERROR_SYSTEM, "device %d has no driver again %d s after its reset", id, WAIT_LIMIT_MS / 1000);
}

lns_status lns_kmd_reset_chip(const lns_kmd_system *system, int id) {
    bus_place place;
    lns_status status = begin_reset(system, id, &place);
    if (status == LNS_OK)
        status = wait_for_bus(system, id, place);
    if (status == LNS_OK)
        status = end_reset(system, id, place);
    return status;
}
