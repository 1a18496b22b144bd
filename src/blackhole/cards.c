/* SPDX-License-Identifier: Apache-2.0 */
/* What can be known about the cards of this machine without taking one. */
#include "blackhole/cards.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "blackhole/kmd.h"
#include "blackhole/kmd_card.h"
#include "blackhole/telemetry.h"

#define CARDS_LIMIT 64

static void describe_identity(const lns_kmd_card *node, lns_blackhole_card *card) {
    const lns_kmd_device_info *device = &node->device;
    snprintf(card->kind, sizeof card->kind, "%s", lns_kmd_card_kind(node));
    snprintf(card->bus, sizeof card->bus, "%04x:%02x:%02x.%x", device->domain, device->bus_device_function >> 8,
             device->bus_device_function >> 3 & 0x1f, device->bus_device_function & 7);
    snprintf(card->driver, sizeof card->driver, "%d.%d.%d", node->driver.major, node->driver.minor, node->driver.patch);
}

static void describe_state(const lns_blackhole_telemetry *telemetry, lns_blackhole_card *card) {
    const uint32_t version = telemetry->firmware;
    if (version != 0)
        snprintf(card->firmware, sizeof card->firmware, "%u.%u.%u.%u", version >> 24, version >> 16 & 0xff,
                 version >> 8 & 0xff, version & 0xff);
    card->columns = telemetry->columns > 0 ? telemetry->columns : 0;
    card->clock_mhz = (int)telemetry->clock_mhz;
    card->temperature = (int32_t)telemetry->temperature / 65536.0;
}

static lns_status look_inside(const lns_kmd_system *system, int id, lns_blackhole_card *card) {
    lns_blackhole_transport *transport;
    lns_blackhole_telemetry telemetry;
    lns_status status = lns_blackhole_open_kmd(system, id, LNS_KMD_LOOK, &transport);
    if (status != LNS_OK)
        return status;
    status = lns_blackhole_telemetry_read(transport, &telemetry);
    transport->operations->close(transport);
    if (status != LNS_OK)
        return status;
    describe_state(&telemetry, card);
    return lns_blackhole_telemetry_check(&telemetry);
}

static lns_status look(const lns_kmd_system *system, int id, lns_blackhole_card *card) {
    lns_kmd_card node;
    lns_status status = lns_kmd_card_open(system, id, &node);
    if (status != LNS_OK)
        return status;
    describe_identity(&node, card);
    status = lns_kmd_card_check(&node);
    if (status == LNS_OK)
        status = lns_kmd_card_is_locked(&node, &card->is_in_use);
    lns_kmd_card_close(&node);
    return status == LNS_OK ? look_inside(system, id, card) : status;
}

void lns_blackhole_describe(const lns_kmd_system *system, int id, lns_blackhole_card *card) {
    memset(card, 0, sizeof *card);
    card->id = id;
    if (look(system, id, card) != LNS_OK)
        snprintf(card->problem, sizeof card->problem, "%s", lns_error_message());
}

lns_status lns_blackhole_list(lns_blackhole_card *cards, size_t struct_size, size_t room, size_t *count) {
    int ids[CARDS_LIMIT];
    lns_blackhole_card card;
    if ((cards == NULL && room > 0) || count == NULL || struct_size == 0 || struct_size > sizeof card)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_blackhole_list: cards and count must not be NULL, struct_size must be "
                        "sizeof(lns_blackhole_card) = %zu",
                        sizeof card);
    *count = (size_t)lns_kmd_list(&lns_kmd_linux, ids, CARDS_LIMIT);
    for (size_t i = 0; i < *count && i < room; i++) {
        lns_blackhole_describe(&lns_kmd_linux, ids[i], &card);
        memcpy((char *)cards + i * struct_size, &card, struct_size);
    }
    return LNS_OK;
}
