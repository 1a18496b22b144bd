/* SPDX-License-Identifier: Apache-2.0 */
/* In place of blackhole_backend.c on systems other than Linux. */
#include "base/error.h"
#include "superpoint/backend.h"

lns_status lns_blackhole_backend_open(const lns_superpoint_weights *weights, const lns_superpoint_options *options,
                                      lns_backend **backend) {
    (void)weights;
    (void)options;
    *backend = NULL;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "backend 'blackhole' needs Linux; this system has 'cpu'");
}
