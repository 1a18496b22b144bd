/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/decoder.h"
#include "image/to_plane.h"

enum { FILE_HEADER_SIZE = 14, RAW = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3 };

/* How the bytes of a row become R. */
typedef enum layout {
    LAYOUT_INDEX, /* 1, 4 or 8 bits through a table */
    LAYOUT_BYTE,  /* one byte of each pixel */
    LAYOUT_555,
    LAYOUT_565
} layout;

typedef struct reader {
    const lns_image_source *source;
    size_t position; /* behind what was read last */
    size_t header_size;
    uint32_t width, height;
    int bits, compression, top_down;
    uint32_t colours, colour_size;
    size_t pixels_offset;
    layout kind;
    int sample_bits; /* LAYOUT_INDEX: width of an index as it is read */
    size_t channel;  /* LAYOUT_BYTE: where R is in a pixel */
    int is_bilevel;
    uint8_t table[256];
} reader;

static lns_status read_header(reader *self) {
    const uint8_t *bytes = self->source->bytes;
    if (self->source->size < FILE_HEADER_SIZE + 4)
        return lns_fail_truncated("BMP");
    self->pixels_offset = lns_read_le32(bytes + 10);
    self->header_size = lns_read_le32(bytes + FILE_HEADER_SIZE);
    if (self->header_size > self->source->size - FILE_HEADER_SIZE)
        return lns_fail_truncated("BMP");
    self->position = FILE_HEADER_SIZE + self->header_size;
    const uint8_t *header = bytes + FILE_HEADER_SIZE;
    switch (self->header_size) {
    case 12: /* OS/2 */
        self->width = lns_read_le16(header + 4);
        self->height = lns_read_le16(header + 6);
        self->bits = (int)lns_read_le16(header + 10);
        self->colour_size = 3;
        break;
    case 40:
    case 52:
    case 56:
    case 64:
    case 108:
    case 124:
        /* A negative height says that the rows go from the top down. */
        self->top_down = header[11] == 0xff;
        self->width = lns_read_le32(header + 4);
        self->height = self->top_down ? 0u - lns_read_le32(header + 8) : lns_read_le32(header + 8);
        self->bits = (int)lns_read_le16(header + 14);
        self->compression = (int)(lns_read_le32(header + 16) & 0x7fffffff);
        self->colours = lns_read_le32(header + 32);
        self->colour_size = 4;
        break;
    default:
        return lns_fail(LNS_ERROR_FORMAT, "BMP with a header of %zu bytes is of no known kind", self->header_size);
    }
    return lns_check_image_size(self->source, "BMP", self->width, self->height);
}

static lns_status fail_masks(void) {
    return lns_fail(LNS_ERROR_FORMAT, "BMP with these colour masks is not supported");
}

static lns_status choose_masks_32(reader *self, const uint32_t mask[4]) {
    static const struct {
        uint32_t mask[4];
        uint8_t channel;
    } known[] = {
        {{0xff0000, 0xff00, 0xff, 0}, 2},          {{0xff000000, 0xff0000, 0xff00, 0}, 3},
        {{0xff000000, 0xff00, 0xff, 0}, 3},        {{0xff000000, 0xff0000, 0xff00, 0xff}, 3},
        {{0xff, 0xff00, 0xff0000, 0xff000000}, 0}, {{0xff0000, 0xff00, 0xff, 0xff000000}, 2},
        {{0xff000000, 0xff00, 0xff, 0xff0000}, 3}, {{0, 0, 0, 0}, 2},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (memcmp(mask, known[i].mask, sizeof known[i].mask) == 0) {
            self->channel = known[i].channel;
            return LNS_OK;
        }
    }
    return fail_masks();
}

static lns_status read_masks(reader *self) {
    const uint8_t *at = self->source->bytes + FILE_HEADER_SIZE + 40;
    uint32_t mask[4] = {0, 0, 0, 0};
    if (self->header_size == 40) {
        /* The masks follow the header. */
        if (self->source->size - self->position < 12)
            return lns_fail_truncated("BMP");
        self->position += 12;
    }
    for (int i = 0; i < 3; i++)
        mask[i] = lns_read_le32(at + 4 * i);
    if (self->header_size >= 56)
        mask[3] = lns_read_le32(at + 12);
    if (self->bits == 32)
        return choose_masks_32(self, mask);
    if (self->bits == 24 && mask[0] == 0xff0000 && mask[1] == 0xff00 && mask[2] == 0xff)
        return LNS_OK;
    if (self->bits == 16 && mask[0] == 0xf800 && mask[1] == 0x7e0 && mask[2] == 0x1f) {
        self->kind = LAYOUT_565;
        return LNS_OK;
    }
    return self->bits == 16 && mask[0] == 0x7c00 && mask[1] == 0x3e0 && mask[2] == 0x1f ? LNS_OK : fail_masks();
}

static lns_status choose_layout(reader *self) {
    switch (self->bits) {
    case 1:
    case 4:
    case 8:
        self->kind = LAYOUT_INDEX;
        break;
    case 16:
        self->kind = LAYOUT_555;
        break;
    case 24:
    case 32:
        self->kind = LAYOUT_BYTE;
        self->channel = 2;
        break;
    default:
        return lns_fail(LNS_ERROR_FORMAT, "BMP with %d bits a pixel is not supported", self->bits);
    }
    switch (self->compression) {
    case RAW:
        return LNS_OK;
    case BITFIELDS:
        return read_masks(self);
    case RLE8:
    case RLE4:
        return self->kind == LAYOUT_INDEX
                   ? LNS_OK
                   : lns_fail(LNS_ERROR_FORMAT, "BMP with run lengths and %d bits a pixel is not supported",
                              self->bits);
    default:
        return lns_fail(LNS_ERROR_FORMAT, "BMP with compression %d is not supported", self->compression);
    }
}

/* Whether colour i is gray i, for all of them, or black and white where there are two. Such a palette is no palette to
 * Pillow: samples are then read as gray of 8 bits, or of 1 bit when there are no more than two, whatever the header
 * says. */
static int is_gray_ramp(const reader *self, const uint8_t *palette, size_t size) {
    for (uint32_t i = 0; i < self->colours; i++) {
        const uint8_t value = self->colours == 2 ? (uint8_t)(i * 255) : (uint8_t)i;
        const uint8_t *colour = palette + (size_t)i * self->colour_size;
        if (((size_t)i + 1) * self->colour_size > size + (self->colour_size - 3) || colour[0] != value ||
            colour[1] != value || colour[2] != value)
            return 0;
    }
    return 1;
}

static lns_status read_palette(reader *self) {
    if (self->colours == 0)
        self->colours = 1u << self->bits;
    if (self->colours > 65536)
        return lns_fail(LNS_ERROR_CORRUPT, "damaged BMP: a palette of %u colours", self->colours);
    const size_t wanted = (size_t)self->colours * self->colour_size;
    const size_t left = self->source->size - self->position;
    const size_t size = wanted < left ? wanted : left;
    const uint8_t *palette = self->source->bytes + self->position;
    if (self->pixels_offset == FILE_HEADER_SIZE + self->header_size)
        self->pixels_offset += wanted;
    self->position += size;
    self->sample_bits = self->bits;
    if (is_gray_ramp(self, palette, size)) {
        self->is_bilevel = self->colours <= 2;
        self->sample_bits = self->is_bilevel ? 1 : 8;
        lns_gray_table(self->table, self->sample_bits);
        return LNS_OK;
    }
    const size_t there = size / self->colour_size;
    if (there > 256)
        return lns_fail(LNS_ERROR_CORRUPT, "damaged BMP: a palette of %zu colours", there);
    for (size_t i = 0; i < there; i++)
        self->table[i] = palette[i * self->colour_size + 2];
    return LNS_OK;
}

/* ---- Plain rows --------------------------------------------------------------------------------- */

static void convert_row(const reader *self, uint8_t *to, const uint8_t *from) {
    const size_t width = self->width;
    switch (self->kind) {
    case LAYOUT_INDEX:
        lns_unpack_samples(to, from, width, self->sample_bits);
        lns_map_samples(to, width, self->table);
        return;
    case LAYOUT_BYTE:
        lns_take_channel(to, from + self->channel, width, (size_t)self->bits / 8);
        return;
    case LAYOUT_555:
    case LAYOUT_565:
        for (size_t i = 0; i < width; i++) {
            const uint32_t pixel = lns_read_le16(from + 2 * i);
            to[i] = (uint8_t)((pixel >> (self->kind == LAYOUT_555 ? 10 : 11) & 31) * 255 / 31);
        }
    }
}

static uint8_t *row_of(const reader *self, lns_plane *plane, uint32_t y) {
    return plane->data + (self->top_down ? y : self->height - 1 - y) * plane->stride;
}

static lns_status decode_rows(const reader *self, lns_plane **plane) {
    const size_t distance = (size_t)((((uint64_t)self->width * (unsigned)self->bits + 31) >> 3) & ~UINT64_C(3));
    const int bits = self->kind == LAYOUT_INDEX ? self->sample_bits : self->bits;
    const size_t used = (size_t)(((uint64_t)self->width * (unsigned)bits + 7) / 8);
    const size_t start = self->pixels_offset != 0 ? self->pixels_offset : self->position;
    if (used > distance)
        return lns_fail_damaged("BMP", "the palette does not go with the bits a pixel");
    if (start > self->source->size || (self->source->size - start) / distance < self->height - 1 ||
        self->source->size - start - (self->height - 1) * distance < used)
        return lns_fail_truncated("BMP");
    const lns_status status = lns_plane_create(self->width, self->height, 0, LNS_IMAGE_BMP, plane);
    if (status != LNS_OK)
        return status;
    for (uint32_t y = 0; y < self->height; y++)
        convert_row(self, row_of(self, *plane, y), self->source->bytes + start + y * distance);
    return LNS_OK;
}

/* ---- Run lengths -------------------------------------------------------------------------------- */

/* Pixels come one after the other, row after row; `x` is kept apart as in Pillow, whose rows are cut where a run is too
 * long but go on where one is too short. */
typedef struct runs {
    const reader *file;
    lns_plane *plane;
    size_t position;
    uint64_t made, total;
    uint64_t x;
} runs;

static int next_byte(runs *self, uint8_t *byte) {
    if (self->position >= self->file->source->size)
        return 0;
    *byte = self->file->source->bytes[self->position++];
    return 1;
}

static void put(runs *self, uint8_t index) {
    if (self->made < self->total)
        row_of(self->file, self->plane, (uint32_t)(self->made / self->file->width))[self->made % self->file->width] =
            self->file->table[index];
    self->made++;
}

static void put_zeros(runs *self, uint64_t count) {
    const uint64_t room = self->made < self->total ? self->total - self->made : 0;
    const uint64_t visible = count < room ? count : room;
    for (uint64_t i = 0; i < visible; i++)
        put(self, 0);
    self->made += count - visible;
}

static void put_run(runs *self, uint8_t length, uint8_t value, int is_rle4) {
    uint64_t count = length;
    if (self->x + count > self->file->width)
        count = self->x < self->file->width ? self->file->width - self->x : 0;
    for (uint64_t i = 0; i < count; i++)
        put(self, !is_rle4 ? value : i % 2 == 0 ? value >> 4 : value & 15);
    self->x += count;
}

/* Pixels one by one. False when the data is at its end. */
static int put_literal(runs *self, uint8_t length, int is_rle4) {
    const uint64_t room = self->total - self->made;
    const uint64_t count = length < room ? length : room;
    for (uint64_t i = 0; i < count; i++) {
        uint8_t byte = 0;
        if (is_rle4 && i % 2 == 1) {
            put(self, self->file->source->bytes[self->position - 1] & 15);
            continue;
        }
        if (!next_byte(self, &byte))
            return 0;
        put(self, is_rle4 ? byte >> 4 : byte);
    }
    self->x += length;
    self->position += self->position % 2; /* padded to an even place in the file */
    return 1;
}

/* One step. False at the end of the bitmap or of the data. */
static int run_step(runs *self, int is_rle4) {
    uint8_t length, value, right, up;
    if (!next_byte(self, &length) || !next_byte(self, &value))
        return 0;
    if (length != 0) {
        put_run(self, length, value, is_rle4);
        return 1;
    }
    switch (value) {
    case 0: /* end of the row */
        if (self->made % self->file->width != 0)
            put_zeros(self, self->file->width - self->made % self->file->width);
        self->x = 0;
        return 1;
    case 1: /* end of the bitmap */
        return 0;
    case 2: /* jump */
        if (!next_byte(self, &right) || !next_byte(self, &up))
            return 0;
        put_zeros(self, right + (uint64_t)up * self->file->width);
        self->x = self->made % self->file->width;
        return 1;
    default:
        return put_literal(self, value, is_rle4);
    }
}

static lns_status decode_runs(const reader *self, lns_plane **plane) {
    if (self->is_bilevel)
        return lns_fail(LNS_ERROR_FORMAT, "BMP with run lengths in black and white is not supported");
    lns_plane *made = NULL;
    const lns_status status = lns_plane_create(self->width, self->height, 0, LNS_IMAGE_BMP, &made);
    if (status != LNS_OK)
        return status;
    runs work = {
        .file = self,
        .plane = made,
        .position = self->pixels_offset != 0 ? self->pixels_offset : self->position,
        .total = (uint64_t)self->width * self->height,
    };
    while (work.made < work.total && run_step(&work, self->compression == RLE4)) {
    }
    if (work.made < work.total) {
        lns_plane_close(&made);
        return lns_fail_truncated("BMP");
    }
    *plane = made;
    return LNS_OK;
}

lns_status lns_decode_bmp(const lns_image_source *source, lns_plane **plane) {
    reader self = {.source = source};
    lns_status status = read_header(&self);
    if (status == LNS_OK)
        status = choose_layout(&self);
    if (status == LNS_OK && self.kind == LAYOUT_INDEX)
        status = read_palette(&self);
    if (status != LNS_OK)
        return status;
    return self.compression == RLE8 || self.compression == RLE4 ? decode_runs(&self, plane) : decode_rows(&self, plane);
}
