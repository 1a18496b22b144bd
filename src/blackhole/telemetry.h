/* SPDX-License-Identifier: Apache-2.0 */
/* What the firmware tells about the card, in its telemetry table: a list of pairs of tag and place, and the values at
 * these places. Where the table is, is in two scratch registers of the ARC tile.
 *
 * Sources: doc/services/telemetry and lib/tenstorrent/bh_arc/telemetry.c of tt-zephyr-platforms for the layout and what
 * the tags mean; blackhole.c of tt-kmd for the addresses over the NoC. */
#ifndef LENSING_BLACKHOLE_TELEMETRY_H
#define LENSING_BLACKHOLE_TELEMETRY_H

#include "blackhole/transport.h"

typedef struct lns_blackhole_telemetry {
    uint32_t enabled_columns; /* one bit for each of the 14 Tensix columns of the die */
    int columns;              /* how many of those are set; -1 when not told */
    int has_translation;      /* 1: tiles are named by translated coordinates; -1 when not told */
    uint32_t clock_mhz;       /* of the tiles, now; 0 when not told */
    uint32_t temperature;     /* of the chip, in 1/65536 degrees Celsius; 0 when not told */
    uint32_t firmware;        /* version of the bundle: a byte each for major, minor, patch, and one more; 0 when not
                                 told */
} lns_blackhole_telemetry;

/* LNS_ERROR_SYSTEM: the card does not answer, or its firmware has not started. LNS_ERROR_UNSUPPORTED: a table that is
 * not understood. */
lns_status lns_blackhole_telemetry_read(lns_blackhole_transport *transport, lns_blackhole_telemetry *telemetry);

/* LNS_ERROR_UNSUPPORTED: fewer than LNS_BLACKHOLE_COLUMNS columns, or other coordinates than translated ones. */
lns_status lns_blackhole_telemetry_check(const lns_blackhole_telemetry *telemetry);

#endif
