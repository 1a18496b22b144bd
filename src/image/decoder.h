/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoders of the formats share. */
#ifndef LENSING_IMAGE_DECODER_H
#define LENSING_IMAGE_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/image.h>

/* A file in memory, and what the caller allows. */
typedef struct lns_image_source {
    const uint8_t *bytes;
    size_t size;
    uint64_t max_pixels; /* 0: no limit */
} lns_image_source;

/* One decoder a format. The source starts with the magic bytes of the format. On success `*plane` holds the pixels as
 * stored, its exif_orientation 1..8; on an error nothing is left behind and `*plane` is not touched. */
lns_status lns_decode_jpeg(const lns_image_source *source, lns_plane **plane);
lns_status lns_decode_png(const lns_image_source *source, lns_plane **plane);
lns_status lns_decode_webp(const lns_image_source *source, lns_plane **plane);
lns_status lns_decode_tiff(const lns_image_source *source, lns_plane **plane);
lns_status lns_decode_gif(const lns_image_source *source, lns_plane **plane);
lns_status lns_decode_bmp(const lns_image_source *source, lns_plane **plane);
lns_status lns_decode_pnm(const lns_image_source *source, lns_plane **plane);

/* Judges a size from a file header: zero is corrupt, and more than max_pixels is over the limit. */
lns_status lns_check_image_size(const lns_image_source *source, const char *format, uint64_t width, uint64_t height);

/* "truncated" and "damaged" in the same words for every format. */
lns_status lns_fail_truncated(const char *format);
lns_status lns_fail_damaged(const char *format, const char *what);

/* A new plane that is not cleared. `least_stride` is rounded up; 0 means width. */
lns_status lns_plane_create(uint32_t width, uint32_t height, size_t least_stride, lns_image_format format,
                            lns_plane **plane);

/* Turns a plane upright according to an EXIF orientation 2..8, replacing it. */
lns_status lns_plane_orient(lns_plane **plane, int orientation);

/* EXIF orientation of a TIFF structure in memory, such as a JPEG's APP1 after "Exif\0\0": 1..8, and 1 when there is
 * none or it makes no sense. A leading "Exif\0\0" is skipped. */
int lns_exif_orientation(const uint8_t *bytes, size_t size);

static inline uint32_t lns_read_le16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t lns_read_le32(const uint8_t *p) {
    return lns_read_le16(p) | lns_read_le16(p + 2) << 16;
}

static inline uint32_t lns_read_be16(const uint8_t *p) {
    return (uint32_t)p[0] << 8 | (uint32_t)p[1];
}

static inline uint32_t lns_read_be32(const uint8_t *p) {
    return lns_read_be16(p) << 16 | lns_read_be16(p + 2);
}

#endif
