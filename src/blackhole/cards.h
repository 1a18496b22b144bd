/* SPDX-License-Identifier: Apache-2.0 */
/* lns_blackhole_list() for one card, and on any system. */
#ifndef LENSING_BLACKHOLE_CARDS_H
#define LENSING_BLACKHOLE_CARDS_H

#include <lensing/blackhole.h>

#include "blackhole/kmd_system.h"

/* Fills `card`; what is wrong goes to its `problem`. */
void lns_blackhole_describe(const lns_kmd_system *system, int id, lns_blackhole_card *card);

#endif
