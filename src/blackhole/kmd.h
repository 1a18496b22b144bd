/* SPDX-License-Identifier: Apache-2.0 */
/* The transport to a card behind the driver tt-kmd. */
#ifndef LENSING_BLACKHOLE_KMD_H
#define LENSING_BLACKHOLE_KMD_H

#include "blackhole/kmd_system.h"
#include "blackhole/transport.h"

/* What to do with the card. LOOK changes nothing, and works beside whoever uses the card; only reading is allowed. */
typedef enum lns_kmd_purpose { LNS_KMD_LOOK, LNS_KMD_USE } lns_kmd_purpose;

/* Opens card `id`, /dev/tenstorrent/ID. To use it, it must be free, have the columns that Lensing needs, and speak
 * translated coordinates; its cores are as they were left.
 *
 * LNS_ERROR_UNSUPPORTED: no such card, not a Blackhole, a driver or firmware that is too old, too few columns.
 * LNS_ERROR_SYSTEM: the card is in use, or does not answer, or the driver refuses something. */
lns_status lns_blackhole_open_kmd(const lns_kmd_system *system, int id, lns_kmd_purpose purpose,
                                  lns_blackhole_transport **transport);

#endif
