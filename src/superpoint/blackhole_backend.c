/* SPDX-License-Identifier: Apache-2.0 */
/* A Blackhole card as a backend. The network does not run there yet; what is wrong with the card is said first. */
#include "base/error.h"
#include "blackhole/device.h"
#include "superpoint/backend.h"

lns_status lns_blackhole_backend_open(const lns_superpoint_weights *weights, const lns_superpoint_options *options,
                                      lns_backend **backend) {
    lns_blackhole_transport *transport;
    (void)weights;
    *backend = NULL;
    const lns_status status = lns_blackhole_open(&lns_kmd_linux, options->device_id, &transport);
    if (status != LNS_OK)
        return status;
    lns_blackhole_close(&transport);
    return lns_fail(LNS_ERROR_UNSUPPORTED,
                    "the card can be used, but this version does not run the network on it yet; take backend 'cpu'");
}
