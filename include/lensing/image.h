/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * From a picture to the one plane that the network sees.
 *
 * SuperPoint reads channel 0 (R) of the RGB picture. A ::lns_plane holds that channel: for every
 * supported file it equals, byte for byte, channel 0 of `PIL.Image.open(file).convert("RGB")`.
 */
#ifndef LENSING_IMAGE_H
#define LENSING_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Largest number of pixels that is decoded by default: Pillow's limit against decompression bombs. */
#define LNS_DEFAULT_MAX_PIXELS UINT64_C(178956970)

/** Order of the channels of one pixel in memory, one byte a channel. */
typedef enum lns_pixel_format {
    LNS_PIXEL_GRAY8 = 0,  /**< the gray value is used */
    LNS_PIXEL_RGB24 = 1,  /**< byte 0 is used */
    LNS_PIXEL_BGR24 = 2,  /**< byte 2 is used */
    LNS_PIXEL_RGBA32 = 3, /**< byte 0 is used, alpha is ignored */
    LNS_PIXEL_BGRA32 = 4  /**< byte 2 is used, alpha is ignored */
} lns_pixel_format;

/** What to do with the EXIF orientation tag. */
typedef enum lns_exif_mode {
    LNS_EXIF_IGNORE = 0, /**< decode the pixels as stored, as Pillow, COLMAP and hloc do */
    LNS_EXIF_APPLY = 1   /**< turn the plane upright; values outside 1..8 count as 1 */
} lns_exif_mode;

/** File formats that are told apart by their first bytes. */
typedef enum lns_image_format {
    LNS_IMAGE_NONE = 0, /**< not from a file */
    LNS_IMAGE_JPEG,
    LNS_IMAGE_PNG,
    LNS_IMAGE_WEBP,
    LNS_IMAGE_TIFF,
    LNS_IMAGE_GIF, /**< first frame */
    LNS_IMAGE_BMP,
    LNS_IMAGE_PNM /**< PBM, PGM, PPM, plain or raw */
} lns_image_format;

/** How to decode. Call lns_image_options_init() first. */
typedef struct lns_image_options {
    size_t struct_size;  /**< set by lns_image_options_init() */
    uint64_t max_pixels; /**< width x height above this is refused from the header; 0 = no limit */
    lns_exif_mode exif;
} lns_image_options;

/** Defaults: max_pixels ::LNS_DEFAULT_MAX_PIXELS, exif ::LNS_EXIF_IGNORE. */
LNS_API void lns_image_options_init(lns_image_options *options);

/** One 8-bit channel of a picture, row-major from the top left. Made and owned by the library. */
typedef struct lns_plane {
    uint8_t *data;   /**< height x stride bytes */
    uint32_t width;  /**< pixels, >= 1 */
    uint32_t height; /**< pixels, >= 1 */
    size_t stride;   /**< bytes from one row to the next, >= width */
    lns_image_format format;
    int exif_orientation; /**< 1..8 as stored in the file; 1 when there is none */
} lns_plane;

/** Decodes a file in memory. @param options NULL for the defaults. @param plane receives the plane;
 * NULL on error. Free it with lns_plane_close(). */
LNS_API lns_status lns_plane_decode(const void *bytes, size_t size, const lns_image_options *options,
                                    lns_plane **plane);

/** Reads and decodes a file. @see lns_plane_decode */
LNS_API lns_status lns_plane_read(const char *path, const lns_image_options *options, lns_plane **plane);

/** Copies the used channel out of pixels in memory. @param stride bytes from one row to the next; may be
 * negative (bottom-up rows, `pixels` then points at the top row); 0 means packed rows. */
LNS_API lns_status lns_plane_from_pixels(const void *pixels, uint32_t width, uint32_t height, ptrdiff_t stride,
                                         lns_pixel_format format, lns_plane **plane);

/** Resizes to width x height with a triangle filter, equal bit for bit to Pillow's
 * `Image.resize((width, height), BILINEAR)` on mode L, first along x, then along y. (Pillow 13 begins with y when the
 * height shrinks much more, Pillow 12.2 for very tall pictures; then some pixels differ by one.) @param resized receives
 * a new plane. */
LNS_API lns_status lns_plane_resize(const lns_plane *plane, uint32_t width, uint32_t height, lns_plane **resized);

/** Frees a plane and sets the pointer to NULL. NULL is ignored. */
LNS_API void lns_plane_close(lns_plane **plane);

#ifdef __cplusplus
}
#endif
#endif
