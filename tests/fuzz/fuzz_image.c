/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a picture. */
#include <stdint.h>
#include <stdlib.h>

#include <lensing/image.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lns_image_options options;
    lns_image_options_init(&options);
    options.max_pixels = 256 * 256;
    options.exif = LNS_EXIF_APPLY;
    lns_plane *plane = NULL;
    if (lns_plane_decode(data, size, &options, &plane) == LNS_OK) {
        /* Every pixel must be there, and made. */
        unsigned sum = 0;
        for (uint32_t y = 0; y < plane->height; y++) {
            for (uint32_t x = 0; x < plane->width; x++)
                sum += plane->data[y * plane->stride + x];
        }
        if (sum == UINT32_MAX || plane->exif_orientation < 1 || plane->exif_orientation > 8)
            abort();
    } else if (plane != NULL) {
        abort();
    }
    lns_plane_close(&plane);
    return 0;
}
