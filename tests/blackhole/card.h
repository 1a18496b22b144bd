/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated card of a test program. */
#ifndef LENSING_TESTS_BLACKHOLE_CARD_H
#define LENSING_TESTS_BLACKHOLE_CARD_H

#include "blackhole/transport.h"

/* The card of this process, opened at the first call; NULL, with a line that says so, when LENSING_TTSIM is not set. A
 * simulator that is named and cannot be used fails the test. */
lns_blackhole_transport *test_card(void);

/* Ends the use of the card, after the last test. */
void test_card_close(void);

#endif
