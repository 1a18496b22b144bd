/* SPDX-License-Identifier: Apache-2.0 */
/* Which card: its number, from the caller or the environment, or the simulator in its place. */
#ifndef LENSING_BLACKHOLE_DEVICE_H
#define LENSING_BLACKHOLE_DEVICE_H

#include "blackhole/kmd_system.h"
#include "blackhole/transport.h"

/* The number to use: `device_id`, or, when that is -1, TT_DEVICE_ID, or 0 when that is not set or empty.
 * LNS_ERROR_INVALID_ARGUMENT: not a whole number of 0 or more. */
lns_status lns_blackhole_choose_device(int device_id, int *chosen);

/* Not 0: LENSING_TTSIM names a simulator, which is then used in place of any card. */
int lns_blackhole_is_simulated(void);

/* Opens the card with that number, or the simulator, to use it, with every core of every tile in reset. Errors as in
 * lns_blackhole_choose_device(), kmd.h and sim.h. */
lns_status lns_blackhole_open(const lns_kmd_system *system, int device_id, lns_blackhole_transport **transport);

/* Puts every core of every tile in reset, gives the card back, and sets the pointer to NULL. NULL is ignored. */
void lns_blackhole_close(lns_blackhole_transport **transport);

#endif
