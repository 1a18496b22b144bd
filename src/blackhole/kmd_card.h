/* SPDX-License-Identifier: Apache-2.0 */
/* A card as the driver tt-kmd shows it: /dev/tenstorrent/N, what is known about it before anything is written to it,
 * and the right to use it. */
#ifndef LENSING_BLACKHOLE_KMD_CARD_H
#define LENSING_BLACKHOLE_KMD_CARD_H

#include <lensing/status.h>

#include "blackhole/kmd_abi.h"
#include "blackhole/kmd_system.h"

#define LNS_KMD_FOLDER "/dev/tenstorrent"

typedef struct lns_kmd_card {
    const lns_kmd_system *system;
    int id; /* N */
    int fd; /* -1: not open */
    int is_locked, is_powered;
    lns_kmd_device_info device;
    lns_kmd_driver_info driver;
} lns_kmd_card;

/* Numbers of the cards there are, ascending, at most `room`; their count, 0 when there is no driver. */
int lns_kmd_list(const lns_kmd_system *system, int *ids, int room);

/* Opens the card and asks who it is, without changing anything on it. `card` is to be closed after success only. */
lns_status lns_kmd_card_open(const lns_kmd_system *system, int id, lns_kmd_card *card);

/* LNS_ERROR_UNSUPPORTED: no Blackhole, or a driver before LNS_KMD_VERSION_MAJOR.LNS_KMD_VERSION_MINOR. */
lns_status lns_kmd_card_check(const lns_kmd_card *card);

/* Not 0: somebody holds the lock of lns_kmd_card_lock(). */
lns_status lns_kmd_card_is_locked(const lns_kmd_card *card, int *is_locked);

/* Takes the card for this descriptor alone. The lock is agreed on among programs that use Lensing; others are not kept
 * out. LNS_ERROR_SYSTEM: somebody has it. */
lns_status lns_kmd_card_lock(lns_kmd_card *card);

/* Turns the clock and the tiles on. Should the process end in any way, the driver turns them off again, releases the
 * lock, and stops the cores of the first tile. */
lns_status lns_kmd_card_power_up(lns_kmd_card *card);

/* Turns the power down, gives up the lock, and closes the card. Leaves the error text as it is. */
void lns_kmd_card_close(lns_kmd_card *card);

/* "Blackhole", "Wormhole" or "unknown". */
const char *lns_kmd_card_kind(const lns_kmd_card *card);

/* Restarts the whole chip, which takes seconds; every other descriptor of the card becomes useless. The card must be
 * free. */
lns_status lns_kmd_reset_chip(const lns_kmd_system *system, int id);

#endif
