/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing from and to any size: every kernel set gives the same bytes, and none outside the range of the source. The
 * first bytes are the sizes, the others the pixels, again from the start when there are too few. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/image.h>

#include "image/resize.h"

#define SIDE 400 /* sizes are 1 to this */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t read_side(const uint8_t *bytes) {
    return 1 + (uint32_t)(bytes[0] | bytes[1] << 8) % SIDE;
}

static lns_plane *make_source(const uint8_t *pixels, size_t size, uint32_t width, uint32_t height, int range[2]) {
    static uint8_t all[SIDE * SIDE];
    range[0] = 255;
    range[1] = 0;
    for (size_t i = 0; i < (size_t)width * height; i++) {
        all[i] = size > 0 ? pixels[i % size] : 0;
        range[0] = all[i] < range[0] ? all[i] : range[0];
        range[1] = all[i] > range[1] ? all[i] : range[1];
    }
    lns_plane *plane = NULL;
    if (lns_plane_from_pixels(all, width, height, 0, LNS_PIXEL_GRAY8, &plane) != LNS_OK)
        abort();
    return plane;
}

static uint8_t *resize(const lns_plane *source, uint32_t width, uint32_t height, lns_cpu_level level) {
    uint8_t *pixels = malloc((size_t)width * height); /* exactly as many, so that a sanitizer sees one too many */
    if (pixels == NULL || lns_resize_rows(source, width, height, level, 0, height, pixels, width) != LNS_OK)
        abort();
    return pixels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 8)
        return 0;
    int range[2];
    lns_plane *source = make_source(data + 8, size - 8, read_side(data), read_side(data + 2), range);
    const uint32_t width = read_side(data + 4), height = read_side(data + 6);
    uint8_t *expected = resize(source, width, height, LNS_CPU_C);
    for (size_t i = 0; i < (size_t)width * height; i++)
        if (expected[i] < range[0] || expected[i] > range[1])
            abort();
    uint8_t *got = resize(source, width, height, lns_cpu_best_level());
    if (memcmp(expected, got, (size_t)width * height) != 0)
        abort();
    free(got);
    free(expected);
    lns_plane_close(&source);
    return 0;
}
