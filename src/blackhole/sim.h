/* SPDX-License-Identifier: Apache-2.0 */
/* The transport to the vendor's functional simulator, ttsim (github.com/tenstorrent/ttsim), version 1.10.
 *
 * The simulator is a shared library that the user names; it is no part of Lensing. It shows the PCI memory of a card,
 * so the windows of tt-kmd's blackhole.c are programmed here as the driver does it for a card. It is one card for each
 * process, keeps its memory when the transport is closed, as a card does, and computes only inside idle().
 *
 * What it holds to be an error of a program on the card (an instruction with fields that it does not know, an address
 * outside L1) ends the process, with a line on standard output: its interface has no other way. */
#ifndef LENSING_BLACKHOLE_SIM_H
#define LENSING_BLACKHOLE_SIM_H

#include "blackhole/transport.h"

/* The environment variable that names the library. */
#define LNS_BLACKHOLE_SIM_VARIABLE "LENSING_TTSIM"

/* Opens the simulator that LENSING_TTSIM names. The first success in a process decides on the library.
 * LNS_ERROR_UNSUPPORTED: the variable is not set, the file cannot be loaded, is no simulator, or is one of another
 * chip; LNS_ERROR_SYSTEM: it is open already. */
lns_status lns_blackhole_open_sim(lns_blackhole_transport **transport);

#endif
