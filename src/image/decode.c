/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/file.h"
#include "base/memory.h"
#include "image/decoder.h"

/* Files beyond this are no pictures; reading them would only fill the memory. */
#define FILE_LIMIT ((size_t)1 << 31)

void lns_image_options_init(lns_image_options *options) {
    if (options == NULL)
        return;
    *options = (lns_image_options){
        .struct_size = sizeof *options, .max_pixels = LNS_DEFAULT_MAX_PIXELS, .exif = LNS_EXIF_IGNORE};
}

lns_status lns_check_image_size(const lns_image_source *source, const char *format, uint64_t width, uint64_t height) {
    if (width == 0 || height == 0)
        return lns_fail(LNS_ERROR_CORRUPT, "damaged %s: its header says %llu x %llu pixels", format,
                        (unsigned long long)width, (unsigned long long)height);
    if (width > UINT32_MAX || height > UINT32_MAX || (source->max_pixels != 0 && width > source->max_pixels / height))
        return lns_fail(LNS_ERROR_LIMIT, "%s of %llu x %llu pixels is larger than the limit of %llu pixels", format,
                        (unsigned long long)width, (unsigned long long)height, (unsigned long long)source->max_pixels);
    return LNS_OK;
}

lns_status lns_fail_truncated(const char *format) {
    return lns_fail(LNS_ERROR_CORRUPT, "truncated %s: the file ends before the picture does", format);
}

lns_status lns_fail_damaged(const char *format, const char *what) {
    return lns_fail(LNS_ERROR_CORRUPT, "damaged %s: %s", format, what);
}

typedef lns_status (*decoder)(const lns_image_source *source, lns_plane **plane);

static int starts_with(const lns_image_source *source, const char *magic, size_t size) {
    return source->size >= size && memcmp(source->bytes, magic, size) == 0;
}

static int is_webp(const lns_image_source *source) {
    return source->size >= 16 && memcmp(source->bytes, "RIFF", 4) == 0 &&
           memcmp(source->bytes + 8, "WEBPVP8", 7) == 0 && strchr(" LX", source->bytes[15]) != NULL &&
           source->bytes[15] != '\0';
}

static int is_tiff(const lns_image_source *source) {
    return starts_with(source, "II*\0", 4) || starts_with(source, "MM\0*", 4) || starts_with(source, "MM*\0", 4) ||
           starts_with(source, "II\0*", 4) || starts_with(source, "MM\0+", 4) || starts_with(source, "II+\0", 4);
}

static int is_pnm(const lns_image_source *source) {
    return source->size >= 2 && source->bytes[0] == 'P' && source->bytes[1] >= '1' && source->bytes[1] <= '6';
}

static decoder find_decoder(const lns_image_source *source) {
    if (starts_with(source, "\xff\xd8\xff", 3))
        return lns_decode_jpeg;
    if (starts_with(source, "\x89PNG\r\n\x1a\n", 8))
        return lns_decode_png;
    if (is_webp(source))
        return lns_decode_webp;
    if (is_tiff(source))
        return lns_decode_tiff;
    if (starts_with(source, "GIF87a", 6) || starts_with(source, "GIF89a", 6))
        return lns_decode_gif;
    if (starts_with(source, "BM", 2))
        return lns_decode_bmp;
    if (is_pnm(source))
        return lns_decode_pnm;
    return NULL;
}

static lns_status read_options(const lns_image_options *given, lns_image_options *options) {
    lns_image_options_init(options);
    const lns_status status = lns_options_take(options, sizeof *options, given, "lns_image_options");
    if (status == LNS_OK && options->exif != LNS_EXIF_IGNORE && options->exif != LNS_EXIF_APPLY)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "image options: exif is %d; it must be 0 (ignore) or 1 (apply)",
                        (int)options->exif);
    return status;
}

lns_status lns_plane_decode(const void *bytes, size_t size, const lns_image_options *options, lns_plane **plane) {
    if (plane == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_decode: plane must not be NULL");
    *plane = NULL;
    if (bytes == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_decode: bytes must not be NULL");
    lns_image_options used;
    lns_status status = read_options(options, &used);
    if (status != LNS_OK)
        return status;
    const lns_image_source source = {.bytes = bytes, .size = size, .max_pixels = used.max_pixels};
    const decoder decode = find_decoder(&source);
    if (decode == NULL)
        return lns_fail(LNS_ERROR_FORMAT, "%s is no image of a known format (JPEG, PNG, WebP, TIFF, GIF, BMP, PNM)",
                        size == 0 ? "an empty file" : "the data");
    lns_plane *made = NULL;
    status = decode(&source, &made);
    if (status == LNS_OK && used.exif == LNS_EXIF_APPLY)
        status = lns_plane_orient(&made, made->exif_orientation);
    if (status != LNS_OK) {
        lns_plane_close(&made);
        return status;
    }
    *plane = made;
    return LNS_OK;
}

lns_status lns_plane_read(const char *path, const lns_image_options *options, lns_plane **plane) {
    if (plane == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_read: plane must not be NULL");
    *plane = NULL;
    if (path == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_read: path must not be NULL");
    void *bytes = NULL;
    size_t size = 0;
    lns_status status = lns_file_read(path, FILE_LIMIT, &bytes, &size);
    if (status != LNS_OK)
        return status;
    status = lns_plane_decode(bytes, size, options, plane);
    lns_free(bytes);
    if (status != LNS_OK)
        return lns_fail(status, "cannot decode '%s': %s", path, lns_error_message());
    return LNS_OK;
}
