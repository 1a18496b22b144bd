/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "image/decoder.h"

lns_status lns_decode_gif(const lns_image_source *source, lns_plane **plane) {
    (void)source;
    (void)plane;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "this build reads no GIF");
}
