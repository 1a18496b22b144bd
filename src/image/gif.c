/* SPDX-License-Identifier: Apache-2.0 */
/* The first frame of a GIF. An own reader, because what to make of damage, of missing colours and of the area around
 * the frame is decided as in Pillow, and only one channel is wanted. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/decoder.h"
#include "image/to_plane.h"

enum { CODE_BITS = 12, CODES = 1 << CODE_BITS, GRAPHIC_CONTROL = 249, COMMENT = 254, APPLICATION = 255 };

typedef struct palette {
    int is_needed; /* 0: the colours are the numbers themselves */
    uint8_t red[256];
} palette;

typedef struct reader {
    const lns_image_source *source;
    size_t position;
    uint32_t width, height;
    palette global, local;
    int has_local;
    int background; /* index around the frame */
    uint32_t x, y, frame_width, frame_height;
    int interlaced;
    int first_bits; /* of the LZW codes */
} reader;

static size_t bytes_left(const reader *self) {
    return self->source->size - self->position;
}

/* The next `count` bytes, or NULL where the file is shorter. */
static const uint8_t *take(reader *self, size_t count) {
    if (count > bytes_left(self))
        return NULL;
    const uint8_t *start = self->source->bytes + self->position;
    self->position += count;
    return start;
}

/* A block with its length in front; false for the empty one that ends a row of blocks, and at the end of the file. A
 * block that the file cuts off is given in part. */
static int take_block(reader *self, const uint8_t **block, size_t *size) {
    const uint8_t *length = take(self, 1);
    *block = NULL;
    *size = 0;
    if (length == NULL || *length == 0)
        return 0;
    *size = *length < bytes_left(self) ? *length : bytes_left(self);
    *block = take(self, *size);
    return *size > 0;
}

static void skip_blocks(reader *self) {
    const uint8_t *block;
    size_t size;
    while (take_block(self, &block, &size)) {
    }
}

static lns_status read_palette(reader *self, int flags, palette *colours) {
    const size_t count = (size_t)2 << (flags & 7);
    const uint8_t *bytes = take(self, 3 * count);
    if (bytes == NULL)
        return lns_fail_truncated("GIF");
    for (size_t i = 0; i < count; i++) {
        colours->red[i] = bytes[3 * i];
        if (bytes[3 * i] != i || bytes[3 * i + 1] != i || bytes[3 * i + 2] != i)
            colours->is_needed = 1;
    }
    return LNS_OK;
}

static lns_status read_screen(reader *self) {
    const uint8_t *screen = take(self, 13);
    if (screen == NULL)
        return lns_fail_truncated("GIF");
    self->width = lns_read_le16(screen + 6);
    self->height = lns_read_le16(screen + 8);
    if (screen[10] & 128)
        return read_palette(self, screen[10], &self->global);
    return LNS_OK;
}

static lns_status read_extension(reader *self) {
    const uint8_t *kind = take(self, 1);
    const uint8_t *block;
    size_t size;
    if (kind == NULL)
        return lns_fail_truncated("GIF");
    const int has_block = take_block(self, &block, &size);
    if (*kind == COMMENT) {
        if (has_block)
            skip_blocks(self);
        return LNS_OK;
    }
    if (*kind == GRAPHIC_CONTROL && has_block) {
        if (size < 3 || ((block[0] & 1) && size < 4))
            return lns_fail_damaged("GIF", "a graphic control extension that is too short");
        if (block[0] & 1)
            self->background = block[3];
    }
    if (*kind == APPLICATION && has_block && size >= 11 && memcmp(block, "NETSCAPE2.0", 11) == 0)
        take_block(self, &block, &size);
    skip_blocks(self);
    return LNS_OK;
}

static lns_status read_frame(reader *self) {
    const uint8_t *frame = take(self, 9);
    if (frame == NULL)
        return lns_fail_truncated("GIF");
    self->x = lns_read_le16(frame);
    self->y = lns_read_le16(frame + 2);
    self->frame_width = lns_read_le16(frame + 4);
    self->frame_height = lns_read_le16(frame + 6);
    self->interlaced = (frame[8] & 64) != 0;
    if (frame[8] & 128) {
        const lns_status status = read_palette(self, frame[8], &self->local);
        if (status != LNS_OK)
            return status;
        self->has_local = 1;
    }
    const uint8_t *bits = take(self, 1);
    if (bits == NULL)
        return lns_fail_truncated("GIF");
    if (*bits > CODE_BITS)
        return lns_fail_damaged("GIF", "codes of more than 12 bits");
    self->first_bits = *bits;
    if (self->frame_width == 0 || self->frame_height == 0)
        return lns_fail_damaged("GIF", "an empty frame");
    /* The screen grows to hold the frame. */
    if (self->x + self->frame_width > self->width)
        self->width = self->x + self->frame_width;
    if (self->y + self->frame_height > self->height)
        self->height = self->y + self->frame_height;
    return lns_check_image_size(self->source, "GIF", self->width, self->height);
}

/* Everything up to the data of the first frame. Bytes that start nothing are skipped. */
static lns_status read_front(reader *self) {
    lns_status status = read_screen(self);
    if (status == LNS_OK)
        status = lns_check_image_size(self->source, "GIF", self->width, self->height);
    while (status == LNS_OK) {
        const uint8_t *introducer = take(self, 1);
        if (introducer == NULL || *introducer == ';')
            return lns_fail_damaged("GIF", "no frame in it");
        if (*introducer == ',')
            return read_frame(self);
        if (*introducer == '!')
            status = read_extension(self);
    }
    return status;
}

/* ---- LZW ---------------------------------------------------------------------------------------- */

typedef struct expander {
    reader *file;
    lns_plane *plane;
    uint32_t bits; /* read but not used */
    int bit_count;
    size_t block_left;
    uint32_t column, row;
    int pass; /* of an interlaced frame */
    int done;
    uint8_t last[CODES];      /* last byte of the string of a code */
    uint16_t previous[CODES]; /* code of the string without that byte */
    uint8_t string[CODES];
} expander;

/* False where the data ends: every block must be there as a whole. */
static int next_code(expander *self, int size, uint32_t *code) {
    reader *file = self->file;
    while (self->bit_count < size) {
        if (self->block_left == 0) {
            const uint8_t *length = take(file, 1);
            if (length == NULL || *length > bytes_left(file))
                return 0;
            self->block_left = *length;
            continue;
        }
        self->bits |= (uint32_t)file->source->bytes[file->position++] << self->bit_count;
        self->block_left--;
        self->bit_count += 8;
    }
    *code = self->bits & ((1u << size) - 1);
    self->bits >>= size;
    self->bit_count -= size;
    return 1;
}

static void next_row(expander *self) {
    static const uint8_t starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    const uint32_t height = self->file->frame_height;
    self->column = 0;
    if (!self->file->interlaced) {
        self->row++;
        self->done = self->row >= height;
        return;
    }
    self->row += steps[self->pass];
    while (self->row >= height && self->pass < 3)
        self->row = starts[++self->pass];
    self->done = self->row >= height;
}

static void put(expander *self, const uint8_t *string, size_t size) {
    const reader *file = self->file;
    while (size > 0 && !self->done) {
        const size_t room = file->frame_width - self->column;
        const size_t count = size < room ? size : room;
        memcpy(self->plane->data + (file->y + self->row) * self->plane->stride + file->x + self->column, string, count);
        self->column += (uint32_t)count;
        string += count;
        size -= count;
        if (self->column == file->frame_width)
            next_row(self);
    }
}

static lns_status expand(expander *self) {
    const uint32_t clear = 1u << self->file->first_bits;
    uint32_t next = clear + 2, code = 0, last_code = 0;
    int size = self->file->first_bits + 1;
    int is_fresh = 1; /* after a clear code */
    uint8_t last_byte = 0;
    while (!self->done) {
        if (!next_code(self, size, &code) || code == clear + 1)
            return lns_fail_truncated("GIF");
        if (code == clear) {
            next = clear + 2;
            size = self->file->first_bits + 1;
            is_fresh = 1;
            continue;
        }
        if (is_fresh) {
            if (code > clear)
                return lns_fail_damaged("GIF", "broken compression");
            last_byte = (uint8_t)code;
            last_code = code;
            is_fresh = 0;
            put(self, &last_byte, 1);
            continue;
        }
        if (code > next)
            return lns_fail_damaged("GIF", "broken compression");
        size_t at = CODES;
        uint32_t rest = code;
        if (code == next) {
            /* The string that is just being made: the last one and its own first byte. */
            self->string[--at] = last_byte;
            rest = last_code;
        }
        while (rest >= clear) {
            if (at == 0 || rest >= CODES)
                return lns_fail_damaged("GIF", "broken compression");
            self->string[--at] = self->last[rest];
            rest = self->previous[rest];
        }
        last_byte = (uint8_t)rest;
        if (next < CODES) {
            self->last[next] = last_byte;
            self->previous[next] = (uint16_t)last_code;
            if (next == (1u << size) - 1 && size < CODE_BITS)
                size++;
            next++;
        }
        last_code = code;
        put(self, &last_byte, 1);
        put(self, self->string + at, CODES - at);
    }
    return LNS_OK;
}

/* R of every index. Quirk of Pillow that follows: a local palette that only says "index = gray" does not come into
 * effect where there is a global one. */
static void choose_table(const reader *self, uint8_t table[256]) {
    const palette *colours = self->has_local && self->local.is_needed ? &self->local : &self->global;
    for (int i = 0; i < 256; i++)
        table[i] = colours->is_needed ? colours->red[i] : (uint8_t)i;
}

static lns_status decode_frame(reader *self, lns_plane *plane) {
    expander *work = lns_calloc(1, sizeof *work);
    if (work == NULL)
        return lns_fail_memory(sizeof *work);
    work->file = self;
    work->plane = plane;
    for (uint32_t y = 0; y < plane->height; y++)
        memset(plane->data + y * plane->stride, self->background, plane->width);
    const lns_status status = expand(work);
    lns_free(work);
    uint8_t table[256];
    choose_table(self, table);
    for (uint32_t y = 0; y < plane->height && status == LNS_OK; y++)
        lns_map_samples(plane->data + y * plane->stride, plane->width, table);
    return status;
}

lns_status lns_decode_gif(const lns_image_source *source, lns_plane **plane) {
    reader self = {.source = source};
    lns_plane *made = NULL;
    lns_status status = read_front(&self);
    if (status == LNS_OK)
        status = lns_plane_create(self.width, self.height, 0, LNS_IMAGE_GIF, &made);
    if (status != LNS_OK)
        return status;
    status = decode_frame(&self, made);
    if (status == LNS_OK)
        *plane = made;
    else
        lns_plane_close(&made);
    return status;
}
