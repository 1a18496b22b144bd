/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "image/decoder.h"
#include "lensing_config.h"

#if LNS_HAVE_WEBP

#include <string.h>

#include <webp/decode.h>

#include "base/memory.h"
#include "image/chroma.h"
#include "image/to_plane.h"
#include "image/upsample.h"

enum { RIFF_HEADER_SIZE = 12, CHUNK_HEADER_SIZE = 8, FRAME_HEADER_SIZE = 16, ANIMATION_FLAG = 2 };

typedef struct reader {
    const uint8_t *bytes;
    size_t size;            /* up to the end of the RIFF container */
    uint32_t width, height; /* of the canvas */
    int is_extended, is_animated;
    int orientation;
    /* What is decoded: the file or the data of the first frame, and where that frame lies on the canvas. */
    const uint8_t *data;
    size_t data_size;
    uint32_t x, y, frame_width, frame_height;
} reader;

static uint32_t read_le24(const uint8_t *p) {
    return lns_read_le16(p) | (uint32_t)p[2] << 16;
}

static lns_status read_frame(reader *self, const uint8_t *frame, size_t size) {
    if (size < FRAME_HEADER_SIZE)
        return lns_fail_damaged("WebP", "a frame that is too short");
    self->x = 2 * read_le24(frame);
    self->y = 2 * read_le24(frame + 3);
    self->frame_width = read_le24(frame + 6) + 1;
    self->frame_height = read_le24(frame + 9) + 1;
    self->data = frame + FRAME_HEADER_SIZE;
    self->data_size = size - FRAME_HEADER_SIZE;
    if (self->x + self->frame_width > self->width || self->y + self->frame_height > self->height)
        return lns_fail_damaged("WebP", "a frame larger than the picture");
    return LNS_OK;
}

/* Walks the chunks behind VP8X. */
static lns_status read_chunks(reader *self) {
    size_t position = RIFF_HEADER_SIZE;
    int has_frame = 0;
    while (self->size - position >= CHUNK_HEADER_SIZE) {
        const uint8_t *chunk = self->bytes + position;
        const uint32_t length = lns_read_le32(chunk + 4);
        const uint64_t padded = (uint64_t)length + (length & 1);
        if (padded > self->size - position - CHUNK_HEADER_SIZE)
            return lns_fail_truncated("WebP");
        if (memcmp(chunk, "EXIF", 4) == 0) {
            self->orientation = lns_exif_orientation(chunk + CHUNK_HEADER_SIZE, length);
        } else if (memcmp(chunk, "ANMF", 4) == 0 && self->is_animated && !has_frame) {
            const lns_status status = read_frame(self, chunk + CHUNK_HEADER_SIZE, length);
            if (status != LNS_OK)
                return status;
            has_frame = 1;
        }
        position += CHUNK_HEADER_SIZE + (size_t)padded;
    }
    return self->is_animated && !has_frame ? lns_fail_damaged("WebP", "an animation without frames") : LNS_OK;
}

static lns_status read_container(reader *self, const lns_image_source *source) {
    const uint64_t end = (uint64_t)lns_read_le32(source->bytes + 4) + 8;
    if (end > source->size)
        return lns_fail_truncated("WebP");
    if (end < RIFF_HEADER_SIZE + CHUNK_HEADER_SIZE)
        return lns_fail_damaged("WebP", "the container is too short");
    *self = (reader){.bytes = source->bytes, .size = (size_t)end, .orientation = 1};
    self->data = self->bytes;
    self->data_size = self->size;
    self->is_extended = memcmp(self->bytes + RIFF_HEADER_SIZE, "VP8X", 4) == 0;
    if (self->is_extended) {
        const uint8_t *header = self->bytes + RIFF_HEADER_SIZE + CHUNK_HEADER_SIZE;
        if (self->size < RIFF_HEADER_SIZE + CHUNK_HEADER_SIZE + 10)
            return lns_fail_truncated("WebP");
        self->is_animated = (header[0] & ANIMATION_FLAG) != 0;
        self->width = read_le24(header + 4) + 1;
        self->height = read_le24(header + 7) + 1;
    }
    return LNS_OK;
}

static lns_status fail_decoding(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return lns_fail(LNS_ERROR_OUT_OF_MEMORY, "out of memory while decoding a WebP");
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return lns_fail_truncated("WebP");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return lns_fail(LNS_ERROR_FORMAT, "this kind of WebP is not supported");
    default:
        return lns_fail_damaged("WebP", "broken data");
    }
}

/* Finds what will be decoded, and its size. */
static lns_status read_front(reader *self, const lns_image_source *source, WebPDecoderConfig *config) {
    lns_status status = read_container(self, source);
    if (status == LNS_OK && self->is_extended)
        status = lns_check_image_size(source, "WebP", self->width, self->height);
    if (status == LNS_OK && self->is_extended)
        status = read_chunks(self);
    if (status != LNS_OK)
        return status;
    const VP8StatusCode code = WebPGetFeatures(self->data, self->data_size, &config->input);
    if (code != VP8_STATUS_OK)
        return fail_decoding(code);
    const uint32_t width = (uint32_t)config->input.width, height = (uint32_t)config->input.height;
    if (!self->is_extended) {
        self->width = width;
        self->height = height;
    }
    if (!self->is_animated) {
        self->frame_width = self->width;
        self->frame_height = self->height;
    }
    if (width != self->frame_width || height != self->frame_height)
        return lns_fail_damaged("WebP", "the picture is not of the size that the container says");
    return lns_check_image_size(source, "WebP", self->width, self->height);
}

static uint8_t *frame_row(const reader *self, lns_plane *plane, uint32_t y) {
    return plane->data + (self->y + y) * plane->stride + self->x;
}

/* Lossless: libwebp gives whole pixels. */
static lns_status decode_pixels(const reader *self, WebPDecoderConfig *config, lns_plane *plane) {
    const size_t row_bytes = (size_t)3 * self->frame_width;
    const size_t size = row_bytes * self->frame_height;
    uint8_t *pixels = lns_alloc(size);
    if (pixels == NULL)
        return lns_fail_memory(size);
    config->output.colorspace = MODE_RGB;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = pixels;
    config->output.u.RGBA.stride = (int)row_bytes;
    config->output.u.RGBA.size = size;
    const VP8StatusCode code = WebPDecode(self->data, self->data_size, config);
    for (uint32_t y = 0; y < self->frame_height && code == VP8_STATUS_OK; y++)
        lns_take_channel(frame_row(self, plane, y), pixels + y * row_bytes, self->frame_width, 3);
    lns_free(pixels);
    return code == VP8_STATUS_OK ? LNS_OK : fail_decoding(code);
}

/* Turns the rows of the frame from Y to R, with V at half the width and height. */
static void convert_rows(const reader *self, lns_plane *plane, const uint8_t *v, uint32_t v_width, uint32_t v_height,
                         uint8_t *full, uint16_t *sums) {
    const lns_chroma_kernels *chroma = lns_chroma_kernels_choose();
    for (uint32_t y = 0; y < self->frame_height; y++) {
        const uint32_t at = y / 2;
        const uint32_t below = at + 1 < v_height ? at + 1 : at;
        const uint32_t near = y % 2 != 0 ? below : at > 0 ? at - 1 : at;
        chroma->upsample_both(full, v + (size_t)at * v_width, v + (size_t)near * v_width, v_width, 8, sums);
        lns_yv_to_plane(frame_row(self, plane, y), full, self->frame_width);
    }
}

/* Lossy: Y goes straight into the plane, and U is not looked at. */
static lns_status decode_planes(const reader *self, WebPDecoderConfig *config, lns_plane *plane) {
    const uint32_t v_width = (self->frame_width + 1) / 2, v_height = (self->frame_height + 1) / 2;
    const size_t v_size = (size_t)v_width * v_height;
    const size_t sums_size = lns_upsample_scratch(v_width) * sizeof(uint16_t);
    const size_t size = sums_size + 2 * v_size + (size_t)2 * v_width;
    uint8_t *memory = lns_alloc(size);
    if (memory == NULL)
        return lns_fail_memory(size);
    uint8_t *v = memory + sums_size;
    WebPYUVABuffer *buffer = &config->output.u.YUVA;
    config->output.colorspace = MODE_YUV;
    config->output.is_external_memory = 1;
    buffer->y = frame_row(self, plane, 0);
    buffer->y_stride = (int)plane->stride;
    buffer->y_size = plane->stride * (self->frame_height - 1) + self->frame_width;
    buffer->v = v;
    buffer->u = v + v_size;
    buffer->u_stride = buffer->v_stride = (int)v_width;
    buffer->u_size = buffer->v_size = v_size;
    const VP8StatusCode code = WebPDecode(self->data, self->data_size, config);
    if (code == VP8_STATUS_OK)
        convert_rows(self, plane, v, v_width, v_height, memory + sums_size + 2 * v_size, (uint16_t *)(void *)memory);
    lns_free(memory);
    return code == VP8_STATUS_OK ? LNS_OK : fail_decoding(code);
}

lns_status lns_decode_webp(const lns_image_source *source, lns_plane **plane) {
    reader self = {0};
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return lns_fail(LNS_ERROR_UNSUPPORTED, "libwebp is older than the one that this library was made with");
    lns_status status = read_front(&self, source, &config);
    lns_plane *made = NULL;
    if (status == LNS_OK)
        status = lns_plane_create(self.width, self.height, 0, LNS_IMAGE_WEBP, &made);
    if (status != LNS_OK)
        return status;
    made->exif_orientation = self.orientation;
    if (self.frame_width != self.width || self.frame_height != self.height)
        memset(made->data, 0, made->stride * made->height);
    const int is_lossy = config.input.format == 1;
    status = is_lossy ? decode_planes(&self, &config, made) : decode_pixels(&self, &config, made);
    if (status == LNS_OK)
        *plane = made;
    else
        lns_plane_close(&made);
    return status;
}

#else

lns_status lns_decode_webp(const lns_image_source *source, lns_plane **plane) {
    (void)source;
    (void)plane;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "this build reads no WebP: it was made without libwebp");
}

#endif
