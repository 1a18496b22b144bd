/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/device.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/error.h"
#include "blackhole/kmd.h"
#include "blackhole/sim.h"
#include "blackhole/grid.h"

static const char *value_of(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

lns_status lns_blackhole_choose_device(int device_id, int *chosen) {
    const char *text = device_id == -1 ? value_of("TT_DEVICE_ID") : NULL;
    long number = device_id == -1 ? 0 : device_id;
    if (text != NULL) {
        char *end;
        errno = 0;
        number = strtol(text, &end, 10);
        if (*end != '\0' || errno != 0 || number < 0 || number > INT_MAX)
            return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                            "TT_DEVICE_ID is '%s'; it must be the N of a card /dev/tenstorrent/N", text);
    }
    if (number < 0)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "device_id is %ld; it must be the N of a card /dev/tenstorrent/N, or -1 for TT_DEVICE_ID",
                        number);
    *chosen = (int)number;
    return LNS_OK;
}

int lns_blackhole_is_simulated(void) {
    return value_of(LNS_BLACKHOLE_SIM_VARIABLE) != NULL;
}

/* Whatever ran on the card before may still run. */
static lns_status stop_cores(lns_blackhole_transport *transport) {
    const lns_blackhole_tile first = {LNS_TILE_FIRST_X, LNS_TILE_FIRST_Y};
    const lns_blackhole_tile last = lns_tile_last(transport);
    const uint32_t reset = LNS_TILE_ALL_IN_RESET;
    uint32_t seen;
    const lns_status status =
        transport->operations->multicast(transport, first, last, LNS_TILE_SOFT_RESET, &reset, sizeof reset);
    /* The far corner is the last to be reached; what is read there was written before. */
    return status == LNS_OK ? lns_blackhole_read32(transport, last, LNS_TILE_SOFT_RESET, &seen) : status;
}

lns_status lns_blackhole_open(const lns_kmd_system *system, int device_id, lns_blackhole_transport **transport) {
    int number = 0;
    *transport = NULL;
    lns_status status = lns_blackhole_choose_device(device_id, &number);
    if (status != LNS_OK)
        return status;
    status = lns_blackhole_is_simulated() ? lns_blackhole_open_sim(transport)
                                          : lns_blackhole_open_kmd(system, number, LNS_KMD_USE, transport);
    if (status == LNS_OK)
        status = stop_cores(*transport);
    if (status != LNS_OK && *transport != NULL) {
        (*transport)->operations->close(*transport);
        *transport = NULL;
    }
    return status;
}

void lns_blackhole_close(lns_blackhole_transport **transport) {
    if (*transport == NULL)
        return;
    stop_cores(*transport);
    (*transport)->operations->close(*transport);
    *transport = NULL;
}
