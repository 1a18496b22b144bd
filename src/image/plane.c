/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/decoder.h"
#include "image/to_plane.h"

lns_status lns_plane_create(uint32_t width, uint32_t height, size_t least_stride, lns_image_format format,
                            lns_plane **plane) {
    const size_t least = least_stride > width ? least_stride : width;
    const size_t stride = (least + LNS_ALIGNMENT - 1) / LNS_ALIGNMENT * LNS_ALIGNMENT;
    if (height > SIZE_MAX / stride)
        return lns_fail_memory(SIZE_MAX);
    lns_plane *made = lns_calloc(1, sizeof *made);
    if (made == NULL)
        return lns_fail_memory(sizeof *made);
    made->data = lns_aligned_alloc(stride * height);
    if (made->data == NULL) {
        lns_free(made);
        return lns_fail_memory(stride * height);
    }
    made->width = width;
    made->height = height;
    made->stride = stride;
    made->format = format;
    made->exif_orientation = 1;
    *plane = made;
    return LNS_OK;
}

void lns_plane_close(lns_plane **plane) {
    if (plane == NULL || *plane == NULL)
        return;
    lns_aligned_free((*plane)->data);
    lns_free(*plane);
    *plane = NULL;
}

lns_status lns_plane_from_pixels(const void *pixels, uint32_t width, uint32_t height, ptrdiff_t stride,
                                 lns_pixel_format format, lns_plane **plane) {
    static const struct {
        uint8_t bytes, channel;
    } layouts[] = {
        [LNS_PIXEL_GRAY8] = {1, 0},  [LNS_PIXEL_RGB24] = {3, 0},  [LNS_PIXEL_BGR24] = {3, 2},
        [LNS_PIXEL_RGBA32] = {4, 0}, [LNS_PIXEL_BGRA32] = {4, 2},
    };
    if (plane == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_from_pixels: plane must not be NULL");
    *plane = NULL;
    if (pixels == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_from_pixels: pixels must not be NULL");
    if (width == 0 || height == 0)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_from_pixels: size %u x %u must be at least 1 x 1", width,
                        height);
    if ((int)format < 0 || (size_t)format >= sizeof layouts / sizeof layouts[0])
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_from_pixels: pixel format %d must be one of 0..4",
                        (int)format);
    const size_t step = layouts[format].bytes;
    const size_t row_bytes = width * step;
    const size_t distance = stride < 0 ? (size_t) - (stride + 1) + 1 : (size_t)stride;
    if (stride != 0 && distance < row_bytes && height > 1)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_plane_from_pixels: stride %td is shorter than a row of %zu bytes; 0 means packed rows",
                        stride, row_bytes);
    if (stride == 0 && row_bytes > PTRDIFF_MAX / (size_t)height)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_from_pixels: %u x %u pixels do not fit into memory",
                        width, height);
    const lns_status status = lns_plane_create(width, height, 0, LNS_IMAGE_NONE, plane);
    if (status != LNS_OK)
        return status;
    const ptrdiff_t used_stride = stride != 0 ? stride : (ptrdiff_t)row_bytes;
    const uint8_t *top = (const uint8_t *)pixels + layouts[format].channel;
    for (uint32_t y = 0; y < height; y++)
        lns_take_channel((*plane)->data + y * (*plane)->stride, top + (ptrdiff_t)y * used_stride, width, step);
    return LNS_OK;
}

/* Where pixel (x, y) of the upright picture is found in the stored one: start + x * along + y * down. */
typedef struct orientation_steps {
    ptrdiff_t start, along, down;
} orientation_steps;

static orientation_steps steps_for(const lns_plane *stored, int orientation) {
    const ptrdiff_t stride = (ptrdiff_t)stored->stride;
    const ptrdiff_t right = (ptrdiff_t)stored->width - 1;
    const ptrdiff_t bottom = ((ptrdiff_t)stored->height - 1) * stride;
    switch (orientation) {
    case 2: /* mirrored */
        return (orientation_steps){right, -1, stride};
    case 3: /* upside down */
        return (orientation_steps){bottom + right, -1, -stride};
    case 4: /* mirrored, upside down */
        return (orientation_steps){bottom, 1, -stride};
    case 5: /* transposed */
        return (orientation_steps){0, stride, 1};
    case 6: /* to be turned right */
        return (orientation_steps){bottom, -stride, 1};
    case 7: /* transposed over the other diagonal */
        return (orientation_steps){bottom + right, -stride, -1};
    case 8: /* to be turned left */
        return (orientation_steps){right, stride, -1};
    default:
        return (orientation_steps){0, 1, stride};
    }
}

lns_status lns_plane_orient(lns_plane **plane, int orientation) {
    enum { TILE = 64 };
    lns_plane *stored = *plane;
    if (orientation < 2 || orientation > 8)
        return LNS_OK;
    const int turned = orientation >= 5;
    const uint32_t width = turned ? stored->height : stored->width;
    const uint32_t height = turned ? stored->width : stored->height;
    lns_plane *upright = NULL;
    const lns_status status = lns_plane_create(width, height, 0, stored->format, &upright);
    if (status != LNS_OK)
        return status;
    upright->exif_orientation = stored->exif_orientation;
    const orientation_steps steps = steps_for(stored, orientation);
    /* In tiles, so that the columns of a turned picture stay in the cache. */
    for (uint32_t top = 0; top < height; top += TILE) {
        const uint32_t bottom = height - top < TILE ? height : top + TILE;
        for (uint32_t left = 0; left < width; left += TILE) {
            const uint32_t count = width - left < TILE ? width - left : TILE;
            for (uint32_t y = top; y < bottom; y++) {
                const uint8_t *from =
                    stored->data + steps.start + (ptrdiff_t)left * steps.along + (ptrdiff_t)y * steps.down;
                uint8_t *to = upright->data + y * upright->stride + left;
                for (uint32_t x = 0; x < count; x++)
                    to[x] = from[(ptrdiff_t)x * steps.along];
            }
        }
    }
    lns_plane_close(plane);
    *plane = upright;
    return LNS_OK;
}
