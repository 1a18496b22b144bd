/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/kmd_card.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "blackhole/grid.h"

/* The last of the driver's 64 locks: far from those of the Ethernet cores. */
#define LOCK_OF_LENSING 63

#define IDS_LIMIT 64

/* ---- Which cards there are ---------------------------------------------------------------------- */

int lns_kmd_list(const lns_kmd_system *system, int *ids, int room) {
    const int count = system->list_numbers(LNS_KMD_FOLDER, ids, room);
    return count > 0 ? count : 0;
}

static lns_status fail_without_card(const lns_kmd_system *system, int id) {
    int ids[IDS_LIMIT];
    char text[256] = "";
    size_t used = 0;
    const int count = lns_kmd_list(system, ids, IDS_LIMIT);
    if (count == 0)
        return lns_fail(LNS_ERROR_UNSUPPORTED, "no Tenstorrent card is here: " LNS_KMD_FOLDER
                                               " has no devices; a card needs the driver tt-kmd");
    for (int i = 0; i < count && used < sizeof text - 16; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i > 0 ? ", " : "", ids[i]);
    return lns_fail(LNS_ERROR_UNSUPPORTED, "device %d does not exist; " LNS_KMD_FOLDER " has %s", id, text);
}

/* ---- Opening ------------------------------------------------------------------------------------ */

static lns_status fail_call(const lns_kmd_card *card, const char *call) {
    return lns_fail(LNS_ERROR_SYSTEM, "device %d: the driver refuses %s: %s", card->id, call, strerror(errno));
}

/* Without O_APPEND the driver would power the card up for as long as the descriptor is open. */
static lns_status open_node(lns_kmd_card *card) {
    char path[64];
    snprintf(path, sizeof path, LNS_KMD_FOLDER "/%d", card->id);
    card->fd = card->system->open(path, O_RDWR | O_APPEND);
    if (card->fd >= 0)
        return LNS_OK;
    if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
        return fail_without_card(card->system, card->id);
    return lns_fail(LNS_ERROR_SYSTEM, "cannot open %s: %s", path, strerror(errno));
}

static lns_status ask_identity(lns_kmd_card *card) {
    card->device.output_size = sizeof card->device - sizeof card->device.output_size;
    if (card->system->ioctl(card->fd, LNS_KMD_GET_DEVICE_INFO, &card->device) != 0)
        return fail_call(card, "to identify the card");
    card->driver.output_size = sizeof card->driver - sizeof card->driver.output_size;
    if (card->system->ioctl(card->fd, LNS_KMD_GET_DRIVER_INFO, &card->driver) != 0)
        return fail_call(card, "to tell its version");
    return LNS_OK;
}

lns_status lns_kmd_card_open(const lns_kmd_system *system, int id, lns_kmd_card *card) {
    memset(card, 0, sizeof *card);
    card->system = system;
    card->id = id;
    lns_status status = open_node(card);
    if (status != LNS_OK)
        return status;
    status = ask_identity(card);
    if (status != LNS_OK)
        lns_kmd_card_close(card);
    return status;
}

const char *lns_kmd_card_kind(const lns_kmd_card *card) {
    if (card->device.vendor != LNS_KMD_VENDOR)
        return "unknown";
    return card->device.device == LNS_KMD_BLACKHOLE  ? "Blackhole"
           : card->device.device == LNS_KMD_WORMHOLE ? "Wormhole"
                                                     : "unknown";
}

lns_status lns_kmd_card_check(const lns_kmd_card *card) {
    const lns_kmd_device_info *device = &card->device;
    const lns_kmd_driver_info *driver = &card->driver;
    if (device->vendor != LNS_KMD_VENDOR || device->device != LNS_KMD_BLACKHOLE)
        return lns_fail(LNS_ERROR_UNSUPPORTED, "device %d is PCI %04x:%04x (%s); Lensing runs on Blackhole, %04x:%04x",
                        card->id, device->vendor, device->device, lns_kmd_card_kind(card), LNS_KMD_VENDOR,
                        LNS_KMD_BLACKHOLE);
    if (driver->major < LNS_KMD_VERSION_MAJOR ||
        (driver->major == LNS_KMD_VERSION_MAJOR && driver->minor < LNS_KMD_VERSION_MINOR))
        return lns_fail(LNS_ERROR_UNSUPPORTED,
                        "device %d: the driver tt-kmd %d.%d.%d is too old; it must be %d.%d.0 or newer", card->id,
                        driver->major, driver->minor, driver->patch, LNS_KMD_VERSION_MAJOR, LNS_KMD_VERSION_MINOR);
    return LNS_OK;
}

/* ---- The right to use it ------------------------------------------------------------------------ */

static int call_lock(const lns_kmd_card *card, uint32_t operation, int *value) {
    lns_kmd_lock lock = {.output_size = 4, .operation = operation, .index = LOCK_OF_LENSING};
    const int result = card->system->ioctl(card->fd, LNS_KMD_LOCK_CONTROL, &lock);
    *value = lock.value;
    return result;
}

lns_status lns_kmd_card_is_locked(const lns_kmd_card *card, int *is_locked) {
    if (call_lock(card, LNS_KMD_LOCK_TEST, is_locked) != 0)
        return fail_call(card, "to tell who uses the card");
    return LNS_OK;
}

/* The driver lists every process that has the card open, in the terms of the reader's PID namespace: 0 outside of it.
 */
static lns_status fail_busy(const lns_kmd_card *card) {
    char path[64], pids[256], text[256];
    size_t used = 0;
    snprintf(path, sizeof path, "/proc/driver/tenstorrent/%d/pids", card->id);
    const ssize_t size = card->system->read_file(path, pids, sizeof pids - 1);
    pids[size > 0 ? size : 0] = '\0';
    text[0] = '\0';
    for (char *rest = pids, *word; (word = strtok_r(rest, "\n ", &rest)) != NULL && used < sizeof text - 32;)
        if (strcmp(word, "0") != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %.12s", used > 0 ? "," : "; open in process",
                                     word);
    return lns_fail(LNS_ERROR_SYSTEM, "device %d is in use by another model or process of Lensing%s", card->id, text);
}

static int call_power(const lns_kmd_card *card, unsigned flags) {
    lns_kmd_power power = {.size = sizeof power, .validity = LNS_KMD_POWER_KNOWN_FLAGS, .power = (uint16_t)flags};
    return card->system->ioctl(card->fd, LNS_KMD_SET_POWER_STATE, &power);
}

static int call_cleanup(const lns_kmd_card *card) {
    lns_kmd_cleanup cleanup = {.size = sizeof cleanup,
                               .enabled = 1,
                               .x = LNS_TILE_FIRST_X,
                               .y = LNS_TILE_FIRST_Y,
                               .address = LNS_TILE_SOFT_RESET,
                               .data = LNS_TILE_ALL_IN_RESET};
    return card->system->ioctl(card->fd, LNS_KMD_SET_NOC_CLEANUP, &cleanup);
}

lns_status lns_kmd_card_lock(lns_kmd_card *card) {
    int value;
    if (call_lock(card, LNS_KMD_LOCK_ACQUIRE, &value) != 0)
        return fail_call(card, "to lock the card");
    if (value != 1)
        return fail_busy(card);
    card->is_locked = 1;
    return LNS_OK;
}

lns_status lns_kmd_card_power_up(lns_kmd_card *card) {
    if (call_power(card, LNS_KMD_POWER_MAX_CLOCK | LNS_KMD_POWER_DRAM | LNS_KMD_POWER_TENSIX) != 0)
        return fail_call(card, "to power the card up");
    card->is_powered = 1;
    if (call_cleanup(card) != 0)
        return fail_call(card, "to note how to stop the card");
    return LNS_OK;
}

/* What fails here the driver does itself when the descriptor is closed. */
void lns_kmd_card_close(lns_kmd_card *card) {
    int value;
    if (card->is_powered)
        call_power(card, 0);
    if (card->is_locked)
        call_lock(card, LNS_KMD_LOCK_RELEASE, &value);
    card->system->close(card->fd);
    card->is_powered = card->is_locked = 0;
    card->fd = -1;
}
