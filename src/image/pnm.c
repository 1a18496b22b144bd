/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/decoder.h"
#include "image/to_plane.h"

enum {
    NUMBER_LIMIT = 10,       /* characters of one number */
    TABLE_SIZE = 65536,      /* for every sample of up to 16 bits */
    READ_AHEAD = 1024 * 1024 /* plain bitmaps are checked in blocks of this size, as in Pillow */
};

typedef struct reader {
    const lns_image_source *source;
    size_t position;
    int is_plain, is_bitmap;
    size_t channels;
    uint32_t width, height;
    uint32_t highest; /* the sample that stands for white */
    uint8_t *table;   /* sample to R; NULL: the same */
} reader;

static int is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Goes behind the end of the line. */
static void skip_comment(reader *self) {
    while (self->position < self->source->size) {
        const uint8_t c = self->source->bytes[self->position++];
        if (c == '\n' || c == '\r')
            return;
    }
}

/* Reads digits up to a space, which is used up. A comment may stand anywhere, even between two digits. */
static lns_status read_number(reader *self, uint32_t *number) {
    uint64_t value = 0;
    int digits = 0;
    while (self->position < self->source->size) {
        const uint8_t c = self->source->bytes[self->position++];
        if (c == '#') {
            skip_comment(self);
        } else if (is_space(c)) {
            if (digits > 0)
                break;
        } else if (c < '0' || c > '9' || digits == NUMBER_LIMIT) {
            return lns_fail_damaged("PNM", "a number that is none, or too long");
        } else {
            value = value * 10 + (c - '0');
            digits++;
        }
    }
    if (digits == 0)
        return lns_fail_truncated("PNM");
    *number = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
    return LNS_OK;
}

static lns_status read_header(reader *self) {
    const uint8_t kind = self->source->bytes[1];
    if (self->source->size < 3 || !is_space(self->source->bytes[2]))
        return lns_fail(LNS_ERROR_FORMAT, "a file that starts with P%c but is no PNM: a space must follow", kind);
    self->position = 3;
    self->is_plain = kind <= '3';
    self->is_bitmap = kind == '1' || kind == '4';
    self->channels = kind == '3' || kind == '6' ? 3 : 1;
    self->highest = 1;
    lns_status status = read_number(self, &self->width);
    if (status == LNS_OK)
        status = read_number(self, &self->height);
    if (status == LNS_OK)
        status = lns_check_image_size(self->source, "PNM", self->width, self->height);
    if (status == LNS_OK && !self->is_bitmap)
        status = read_number(self, &self->highest);
    if (status == LNS_OK && (self->highest == 0 || self->highest > 65535))
        status =
            lns_fail(LNS_ERROR_CORRUPT, "damaged PNM: the highest value is %u; it must be 1..65535", self->highest);
    return status;
}

/* Colour is scaled to 0..255. Gray is as well, unless it has more than 8 bits: then Pillow scales to 0..65535 and clips
 * at 255 when it makes RGB of it. Rounding is to even, in double. */
static lns_status make_table(reader *self) {
    if (self->is_bitmap || self->highest == 255)
        return LNS_OK;
    self->table = lns_alloc(TABLE_SIZE);
    if (self->table == NULL)
        return lns_fail_memory(TABLE_SIZE);
    const double white = self->channels == 1 && self->highest > 255 ? 65535.0 : 255.0;
    for (uint32_t i = 0; i < TABLE_SIZE; i++) {
        const double value = nearbyint((double)i / self->highest * white);
        self->table[i] = value < 255.0 ? (uint8_t)value : 255;
    }
    return LNS_OK;
}

/* ---- Raw ---------------------------------------------------------------------------------------- */

static void convert_row(const reader *self, uint8_t *to, const uint8_t *from) {
    const size_t width = self->width;
    if (self->is_bitmap) {
        lns_unpack_samples(to, from, width, 1);
        for (size_t i = 0; i < width; i++)
            to[i] = (uint8_t)(to[i] - 1); /* 1 is black */
    } else if (self->highest > 255) {
        for (size_t i = 0; i < width; i++)
            to[i] = self->table[lns_read_be16(from + 2 * self->channels * i)];
    } else {
        lns_take_channel(to, from, width, self->channels);
        if (self->table != NULL)
            lns_map_samples(to, width, self->table);
    }
}

static lns_status decode_raw(const reader *self, lns_plane **plane) {
    const uint64_t bits = self->is_bitmap ? 1 : self->channels * (self->highest > 255 ? 16 : 8);
    const size_t row_bytes = (size_t)((self->width * bits + 7) / 8);
    if ((self->source->size - self->position) / row_bytes < self->height)
        return lns_fail_truncated("PNM");
    const lns_status status = lns_plane_create(self->width, self->height, 0, LNS_IMAGE_PNM, plane);
    if (status != LNS_OK)
        return status;
    for (uint32_t y = 0; y < self->height; y++)
        convert_row(self, (*plane)->data + y * (*plane)->stride, self->source->bytes + self->position + y * row_bytes);
    return LNS_OK;
}

/* ---- Plain -------------------------------------------------------------------------------------- */

/* Digits need no spaces between them. What follows the last one is checked to the end of the block that it is in. */
static lns_status decode_plain_bitmap(reader *self, lns_plane *plane) {
    const uint64_t total = (uint64_t)self->width * self->height;
    const size_t start = self->position;
    uint64_t made = 0;
    size_t end = self->source->size;
    while (self->position < end) {
        const uint8_t c = self->source->bytes[self->position++];
        if (c == '#') {
            skip_comment(self);
        } else if (c == '0' || c == '1') {
            if (made < total)
                plane->data[made / self->width * plane->stride + made % self->width] = c == '0' ? 255 : 0;
            if (++made == total) {
                const size_t block_end = start + ((self->position - start - 1) / READ_AHEAD + 1) * READ_AHEAD;
                end = block_end < end ? block_end : end;
            }
        } else if (!is_space(c)) {
            return lns_fail_damaged("PNM", "a pixel that is neither 0 nor 1");
        }
    }
    return made >= total ? LNS_OK : lns_fail_truncated("PNM");
}

static lns_status decode_plain_numbers(reader *self, lns_plane *plane) {
    for (uint32_t y = 0; y < self->height; y++) {
        uint8_t *to = plane->data + y * plane->stride;
        for (size_t i = 0; i < self->width * self->channels; i++) {
            uint32_t value;
            const lns_status status = read_number(self, &value);
            if (status != LNS_OK)
                return status;
            if (value > self->highest)
                return lns_fail(LNS_ERROR_CORRUPT, "damaged PNM: value %u above the highest of %u", value,
                                self->highest);
            if (i % self->channels == 0)
                to[i / self->channels] = self->table != NULL ? self->table[value] : (uint8_t)value;
        }
    }
    return LNS_OK;
}

static lns_status decode_plain(reader *self, lns_plane **plane) {
    /* Every sample takes a byte at least: a short file must not cost the memory of a large picture. */
    if ((self->source->size - self->position) / self->channels / self->width < self->height)
        return lns_fail_truncated("PNM");
    lns_plane *made = NULL;
    lns_status status = lns_plane_create(self->width, self->height, 0, LNS_IMAGE_PNM, &made);
    if (status != LNS_OK)
        return status;
    status = self->is_bitmap ? decode_plain_bitmap(self, made) : decode_plain_numbers(self, made);
    if (status != LNS_OK)
        lns_plane_close(&made);
    else
        *plane = made;
    return status;
}

lns_status lns_decode_pnm(const lns_image_source *source, lns_plane **plane) {
    reader self = {.source = source};
    lns_status status = read_header(&self);
    if (status == LNS_OK)
        status = make_table(&self);
    if (status == LNS_OK)
        status = self.is_plain ? decode_plain(&self, plane) : decode_raw(&self, plane);
    lns_free(self.table);
    return status;
}
