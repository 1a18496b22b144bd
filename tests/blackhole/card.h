/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated card of a test program. */
#ifndef LENSING_TESTS_BLACKHOLE_CARD_H
#define LENSING_TESTS_BLACKHOLE_CARD_H

#include "blackhole/tile.h"

/* The card of this process, opened at the first call; NULL, with a line that says so, when LENSING_TTSIM is not set. A
 * simulator that is named and cannot be used fails the test. */
lns_blackhole_transport *test_card(void);

/* Rings the tiles and waits until they are done, for minutes if need be. */
lns_status run_tiles(lns_blackhole_transport *card, lns_blackhole_tiles tiles, uint32_t program, uint32_t request);

/* Ends the use of the card, after the last test. */
void test_card_close(void);

#endif
