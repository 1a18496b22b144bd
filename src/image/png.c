/* SPDX-License-Identifier: Apache-2.0 */
/* PNG through zlib alone. Two things are gained over libpng: which damage is an error is decided as in Pillow
 * (checksums count before the first IDAT and are ignored after it, data may end early between two rows, and so on), and
 * filters are undone for the bytes of the wanted channel only, which is possible because no filter mixes channels. */
#include <limits.h>
#include <string.h>

#include <zlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/decoder.h"
#include "image/to_plane.h"

enum {
    SIGNATURE_SIZE = 8,
    COLOUR_GRAY = 0,
    COLOUR_RGB = 2,
    COLOUR_PALETTE = 3,
    COLOUR_GRAY_ALPHA = 4,
    COLOUR_RGB_ALPHA = 6,
    INPUT_PIECE = 65536,  /* data is inflated in pieces of this size at most */
    OUTPUT_PIECE = 65536, /* and into about this much, in whole rows */
    PASSES = 7
};

typedef struct chunk {
    uint8_t name[4];
    const uint8_t *data;
    uint32_t length; /* as the header says */
} chunk;

typedef struct reader {
    const lns_image_source *source;
    size_t position;
    /* From the chunks */
    int has_header;
    uint32_t width, height;
    int depth, colour, interlaced;
    uint8_t palette[256];
    int has_frame; /* an fcTL says that the picture covers a part of the canvas only */
    uint32_t frame_x, frame_y, frame_width, frame_height;
    int64_t frame_sequence;
    int is_animated;
    int orientation;
    chunk data; /* the first chunk of pixels */
} reader;

/* ---- Chunks ------------------------------------------------------------------------------------- */

static size_t bytes_left(const reader *self) {
    return self->source->size - self->position;
}

static int name_is(const chunk *given, const char *name) {
    return memcmp(given->name, name, 4) == 0;
}

static int is_word_byte(uint8_t c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Reads length and name. False at the end of the file and on a name that cannot be one. */
static int read_chunk_start(reader *self, chunk *next) {
    if (bytes_left(self) < 8)
        return 0;
    const uint8_t *start = self->source->bytes + self->position;
    next->length = lns_read_be32(start);
    memcpy(next->name, start + 4, 4);
    next->data = start + 8;
    self->position += 8;
    return is_word_byte(start[4]) && is_word_byte(start[5]) && is_word_byte(start[6]) && is_word_byte(start[7]);
}

static void skip(reader *self, size_t count) {
    self->position += count < bytes_left(self) ? count : bytes_left(self);
}

static lns_status read_header(reader *self, const chunk *header) {
    static const uint8_t depths[] = {
        [COLOUR_GRAY] = 1 | 2 | 4 | 8 | 16, [COLOUR_RGB] = 8 | 16,       [COLOUR_PALETTE] = 1 | 2 | 4 | 8,
        [COLOUR_GRAY_ALPHA] = 8 | 16,       [COLOUR_RGB_ALPHA] = 8 | 16,
    };
    const uint8_t *data = header->data;
    if (header->length < 13)
        return lns_fail_damaged("PNG", "the IHDR chunk is too short");
    self->width = lns_read_be32(data);
    self->height = lns_read_be32(data + 4);
    self->depth = data[8];
    self->colour = data[9];
    const int known = self->colour < (int)sizeof depths && (self->depth & (self->depth - 1)) == 0 &&
                      (depths[self->colour] & self->depth) != 0;
    if (!known)
        return lns_fail(LNS_ERROR_CORRUPT, "damaged PNG: colour type %d with %d bits does not exist", self->colour,
                        self->depth);
    if (data[11] != 0)
        return lns_fail_damaged("PNG", "unknown filter method");
    self->interlaced = self->interlaced || data[12] != 0;
    self->has_header = 1;
    return lns_check_image_size(self->source, "PNG", self->width, self->height);
}

static lns_status read_palette(reader *self, const chunk *palette) {
    if (self->colour != COLOUR_PALETTE || !self->has_header)
        return LNS_OK;
    const uint32_t count = palette->length / 3;
    if (count > 256)
        return lns_fail_damaged("PNG", "more than 256 colours in the palette");
    memset(self->palette, 0, sizeof self->palette);
    lns_take_channel(self->palette, palette->data, count, 3);
    return LNS_OK;
}

static lns_status check_frame(const reader *self) {
    if ((uint64_t)self->frame_x + self->frame_width > self->width ||
        (uint64_t)self->frame_y + self->frame_height > self->height)
        return lns_fail_damaged("PNG", "an animation frame larger than the picture");
    return LNS_OK;
}

static lns_status read_frame_control(reader *self, const chunk *control) {
    const uint8_t *data = control->data;
    if (lns_read_be32(data) != (uint64_t)(self->frame_sequence + 1))
        return lns_fail_damaged("PNG", "animation frames out of order");
    self->frame_sequence++;
    self->frame_width = lns_read_be32(data + 4);
    self->frame_height = lns_read_be32(data + 8);
    self->frame_x = lns_read_be32(data + 12);
    self->frame_y = lns_read_be32(data + 16);
    self->has_frame = 1;
    return check_frame(self);
}

static lns_status read_frame_data(reader *self, const chunk *data) {
    if (data->length < 4 || self->frame_sequence < 0 ||
        lns_read_be32(data->data) != (uint64_t)(self->frame_sequence + 1))
        return lns_fail_damaged("PNG", "animation frames out of order");
    self->frame_sequence++;
    return LNS_OK;
}

static lns_status read_compressed_text(const chunk *text) {
    /* Only the method is looked at; nothing is inflated, however much it would become. */
    const uint8_t *end = memchr(text->data, 0, text->length);
    const size_t after = end != NULL ? (size_t)(end - text->data) + 1 : text->length;
    const int must_have_method = name_is(text, "iCCP");
    if (after >= text->length)
        return must_have_method ? lns_fail_damaged("PNG", "a colour profile that is too short") : LNS_OK;
    return text->data[after] == 0 ? LNS_OK : lns_fail_damaged("PNG", "unknown compression of text or colour profile");
}

/* Least lengths of chunks that are otherwise ignored. */
static lns_status check_length(const reader *self, const chunk *given) {
    static const struct {
        char name[5];
        uint8_t least;
    } lengths[] = {{"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1}, {"pHYs", 9}, {"acTL", 8}, {"fcTL", 26}};
    uint32_t least = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        if (name_is(given, lengths[i].name))
            least = lengths[i].least;
    }
    if (name_is(given, "tRNS") && self->has_header) {
        if (self->colour == COLOUR_RGB && self->depth <= 16)
            least = 6;
        else if (self->colour == COLOUR_GRAY)
            least = 2;
    }
    if (given->length < least)
        return lns_fail(LNS_ERROR_CORRUPT, "damaged PNG: a %.4s chunk of %u bytes is too short", given->name,
                        given->length);
    return LNS_OK;
}

/* Takes in a chunk that is no pixel data; all its bytes are there. */
static lns_status read_chunk(reader *self, const chunk *given) {
    const lns_status status = check_length(self, given);
    if (status != LNS_OK)
        return status;
    if (name_is(given, "IHDR"))
        return read_header(self, given);
    if (name_is(given, "PLTE"))
        return read_palette(self, given);
    if (name_is(given, "iCCP") || name_is(given, "zTXt"))
        return read_compressed_text(given);
    if (name_is(given, "fcTL"))
        return read_frame_control(self, given);
    if (name_is(given, "fdAT"))
        return read_frame_data(self, given);
    if (name_is(given, "acTL")) {
        const uint32_t frames = lns_read_be32(given->data);
        self->is_animated = !self->is_animated && frames > 0 && frames <= 0x80000000u;
    } else if (name_is(given, "eXIf")) {
        self->orientation = lns_exif_orientation(given->data, given->length);
    }
    return LNS_OK;
}

/* All chunks before the pixels. */
static lns_status read_front(reader *self) {
    for (;;) {
        chunk next;
        if (!read_chunk_start(self, &next))
            return bytes_left(self) == 0 ? lns_fail_truncated("PNG") : lns_fail_damaged("PNG", "broken chunk name");
        if (name_is(&next, "IDAT")) {
            self->data = next;
            break;
        }
        if (name_is(&next, "IEND") || name_is(&next, "fdAT"))
            return lns_fail_damaged("PNG", "no IDAT chunk");
        if (next.length > bytes_left(self) || bytes_left(self) - next.length < 4)
            return lns_fail_truncated("PNG");
        const uLong sum = crc32(crc32(0, next.name, 4), next.data, next.length);
        if (sum != lns_read_be32(next.data + next.length))
            return lns_fail(LNS_ERROR_CORRUPT, "damaged PNG: wrong checksum in chunk %.4s", next.name);
        const lns_status status = read_chunk(self, &next);
        if (status != LNS_OK)
            return status;
        skip(self, (size_t)next.length + 4);
    }
    if (!self->has_header)
        return lns_fail_damaged("PNG", "no IHDR chunk");
    if (self->has_frame && (self->frame_width == 0 || self->frame_height == 0))
        return lns_fail_damaged("PNG", "an empty animation frame");
    if (!self->has_frame) {
        self->frame_width = self->width;
        self->frame_height = self->height;
    }
    return check_frame(self); /* once more: another IHDR may have come after the fcTL */
}

/* The chunks after the pixels, from within the last chunk of pixels on: nothing is taken from them, but a file that
 * ends within one of them is truncated. */
static lns_status read_back(reader *self, size_t data_left) {
    skip(self, data_left);
    for (;;) {
        skip(self, 4);
        chunk next;
        if (!read_chunk_start(self, &next) || name_is(&next, "IEND"))
            return LNS_OK;
        if (name_is(&next, "fcTL") && self->is_animated)
            return LNS_OK;
        if (next.length > bytes_left(self))
            return lns_fail_truncated("PNG");
        const int is_used_up = name_is(&next, "IHDR") || name_is(&next, "PLTE") || name_is(&next, "IDAT");
        const lns_status status = is_used_up ? LNS_OK : read_chunk(self, &next);
        if (status != LNS_OK)
            return status;
        skip(self, next.length);
    }
}

/* ---- Filters ------------------------------------------------------------------------------------ */

static uint8_t paeth(int left, int up, int corner) {
    const int guess = left + up - corner;
    const int from_left = guess < left ? left - guess : guess - left;
    const int from_up = guess < up ? up - guess : guess - up;
    const int from_corner = guess < corner ? corner - guess : guess - corner;
    return (uint8_t)(from_left <= from_up && from_left <= from_corner ? left : from_up <= from_corner ? up : corner);
}

/* Undoes a filter for the first byte of each group of `step` bytes. `row` and `above` are such bytes side by side.
 * False on an unknown filter. */
static int undo_filter(uint8_t *restrict row, const uint8_t *restrict filtered, const uint8_t *restrict above,
                       size_t count, size_t step, uint8_t filter) {
    uint8_t left = 0, corner = 0;
    switch (filter) {
    case 0:
        lns_take_channel(row, filtered, count, step);
        return 1;
    case 1:
        for (size_t i = 0; i < count; i++)
            row[i] = left = (uint8_t)(left + filtered[i * step]);
        return 1;
    case 2:
        lns_take_channel(row, filtered, count, step);
        for (size_t i = 0; i < count; i++)
            row[i] = (uint8_t)(row[i] + above[i]);
        return 1;
    case 3:
        for (size_t i = 0; i < count; i++)
            row[i] = left = (uint8_t)(filtered[i * step] + (left + above[i]) / 2);
        return 1;
    case 4:
        for (size_t i = 0; i < count; i++) {
            row[i] = left = (uint8_t)(filtered[i * step] + paeth(left, above[i], corner));
            corner = above[i];
        }
        return 1;
    default:
        return 0;
    }
}

/* ---- Pixels ------------------------------------------------------------------------------------- */

static const struct {
    uint8_t x, y, step_x, step_y;
} passes[PASSES] = {
    {0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2},
};

typedef struct pixels {
    const reader *file;
    lns_plane *plane;
    int bits;            /* of one pixel */
    size_t step;         /* bytes from one pixel to the next, at least 1: the distance of filters */
    size_t keep;         /* how many of them matter: 2 for gray of 16 bits, else 1 */
    size_t row_bytes;    /* of the current pass, without the filter byte */
    size_t row_capacity; /* the largest row_bytes */
    uint32_t row_pixels; /* of the current pass */
    uint32_t y;          /* row of the frame to be made next */
    int pass;
    int done;
    uint8_t table[256]; /* from samples to R, where it is not R itself */
    int has_table;
    uint8_t *row[2][2]; /* undone rows, this and the one before: [which][byte] */
    int current;
    uint8_t *spread; /* one row of R before it is spread over the columns of a pass */
    uint8_t *inflated;
    size_t inflated_size;
    uint8_t *memory;
} pixels;

static void set_row_size(pixels *self, uint32_t row_pixels) {
    self->row_pixels = row_pixels;
    self->row_bytes = (size_t)(((uint64_t)row_pixels * (unsigned)self->bits + 7) / 8);
}

/* Goes on to the first pass from `pass` on that has pixels. */
static void start_pass(pixels *self, int pass) {
    for (; pass < PASSES; pass++) {
        const uint32_t width = self->file->frame_width;
        const uint32_t columns =
            width > passes[pass].x ? (width - passes[pass].x + passes[pass].step_x - 1u) / passes[pass].step_x : 0;
        if (columns == 0 || passes[pass].y >= self->file->frame_height)
            continue;
        self->pass = pass;
        self->y = passes[pass].y;
        set_row_size(self, columns);
        memset(self->row[1 - self->current][0], 0, self->row_capacity);
        memset(self->row[1 - self->current][1], 0, self->row_capacity);
        return;
    }
    self->done = 1;
}

static void next_row(pixels *self) {
    self->current = 1 - self->current;
    if (self->file->interlaced) {
        self->y += passes[self->pass].step_y;
        if (self->y >= self->file->frame_height)
            start_pass(self, self->pass + 1);
    } else {
        self->y++;
        self->done = self->y >= self->file->frame_height;
    }
}

static void choose_layout(pixels *self) {
    static const uint8_t channels[] = {
        [COLOUR_GRAY] = 1, [COLOUR_RGB] = 3, [COLOUR_PALETTE] = 1, [COLOUR_GRAY_ALPHA] = 2, [COLOUR_RGB_ALPHA] = 4,
    };
    const reader *file = self->file;
    self->bits = channels[file->colour] * file->depth;
    self->step = (size_t)(self->bits + 7) / 8;
    self->keep = file->colour == COLOUR_GRAY && file->depth == 16 ? 2 : 1;
    if (file->colour == COLOUR_PALETTE) {
        memcpy(self->table, file->palette, sizeof self->table);
        self->has_table = 1;
    } else if (file->depth < 8) {
        lns_gray_table(self->table, file->depth);
        self->has_table = 1;
    }
}

static lns_status prepare(pixels *self) {
    const reader *file = self->file;
    choose_layout(self);
    set_row_size(self, file->frame_width);
    self->row_capacity = self->row_bytes / self->step + 1;
    const size_t rows = OUTPUT_PIECE / (self->row_bytes + 1) + 1;
    self->inflated_size = rows * (self->row_bytes + 1);
    const size_t sizes = 4 * self->row_capacity + file->frame_width + self->inflated_size;
    self->memory = lns_calloc(sizes, 1);
    if (self->memory == NULL)
        return lns_fail_memory(sizes);
    for (int i = 0; i < 4; i++)
        self->row[i / 2][i % 2] = self->memory + (size_t)i * self->row_capacity;
    self->spread = self->memory + 4 * self->row_capacity;
    self->inflated = self->spread + file->frame_width;
    if (file->interlaced)
        start_pass(self, 0);
    return LNS_OK;
}

/* R of the current row, `samples` as undone, into `to`. */
static void convert_row(const pixels *self, uint8_t *to) {
    uint8_t *const *samples = self->row[self->current];
    if (self->keep == 2) {
        for (size_t i = 0; i < self->row_pixels; i++)
            to[i] = samples[0][i] != 0 ? 255 : samples[1][i];
        return;
    }
    lns_unpack_samples(to, samples[0], self->row_pixels, self->bits < 8 ? self->bits : 8);
    if (self->has_table)
        lns_map_samples(to, self->row_pixels, self->table);
}

static lns_status take_row(pixels *self, const uint8_t *filtered) {
    const reader *file = self->file;
    const size_t count = self->row_bytes / self->step;
    for (size_t byte = 0; byte < self->keep; byte++) {
        if (!undo_filter(self->row[self->current][byte], filtered + 1 + byte, self->row[1 - self->current][byte], count,
                         self->step, filtered[0]))
            return lns_fail(LNS_ERROR_CORRUPT, "damaged PNG: unknown filter %d", filtered[0]);
    }
    if (file->interlaced) {
        convert_row(self, self->spread);
        uint8_t *to = self->plane->data + self->y * self->plane->stride + passes[self->pass].x;
        for (size_t i = 0; i < self->row_pixels; i++)
            to[i * passes[self->pass].step_x] = self->spread[i];
    } else {
        convert_row(self, self->plane->data + (file->frame_y + self->y) * self->plane->stride + file->frame_x);
    }
    next_row(self);
    return LNS_OK;
}

/* Takes all whole rows out of the `have` inflated bytes and moves the rest to the front. */
static lns_status take_rows(pixels *self, size_t *have) {
    size_t taken = 0;
    while (!self->done && *have - taken >= self->row_bytes + 1) {
        const size_t size = self->row_bytes + 1;
        const lns_status status = take_row(self, self->inflated + taken);
        if (status != LNS_OK)
            return status;
        taken += size;
    }
    memmove(self->inflated, self->inflated + taken, *have - taken);
    *have -= taken;
    return LNS_OK;
}

/* The next piece of the zlib stream: what is left of this chunk or the next one. */
static lns_status next_piece(reader *file, size_t *left, z_stream *stream) {
    while (*left == 0) {
        chunk next;
        skip(file, 4);
        if (!read_chunk_start(file, &next) || !(name_is(&next, "IDAT") || name_is(&next, "DDAT")))
            return lns_fail_truncated("PNG");
        *left = next.length;
    }
    size_t size = *left < INPUT_PIECE ? *left : INPUT_PIECE;
    *left -= size;
    if (size > bytes_left(file))
        size = bytes_left(file);
    if (size == 0)
        return lns_fail_truncated("PNG");
    stream->next_in = (z_const Bytef *)(uintptr_t)(file->source->bytes + file->position);
    stream->avail_in = (uInt)size;
    file->position += size;
    return LNS_OK;
}

static lns_status inflate_rows(pixels *self, reader *file, z_stream *stream, size_t *left) {
    size_t have = 0;
    int has_row = 0;
    for (;;) {
        if (stream->avail_in == 0) {
            const lns_status status = next_piece(file, left, stream);
            if (status != LNS_OK)
                return status;
        }
        const size_t room = self->inflated_size - have;
        stream->next_out = self->inflated + have;
        stream->avail_out = (uInt)(room < UINT_MAX ? room : UINT_MAX);
        const uInt offered = stream->avail_out;
        const int result = inflate(stream, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return result == Z_MEM_ERROR ? lns_fail_memory(INPUT_PIECE)
                                         : lns_fail_damaged("PNG", "the compressed pixels are broken");
        have += offered - stream->avail_out;
        has_row = has_row || have >= self->row_bytes + 1;
        const lns_status status = take_rows(self, &have);
        if (status != LNS_OK)
            return status;
        if (self->done)
            return LNS_OK;
        /* Data that ends cleanly between two rows leaves the rest black. */
        if (result == Z_STREAM_END)
            return have == 0 && has_row ? LNS_OK : lns_fail_truncated("PNG");
    }
}

static lns_status decode_pixels(reader *file, lns_plane *plane) {
    pixels self = {.file = file, .plane = plane};
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    lns_status status = prepare(&self);
    if (status == LNS_OK && inflateInit(&stream) != Z_OK)
        status = lns_fail_memory(INPUT_PIECE);
    if (status == LNS_OK) {
        size_t left = file->data.length;
        status = inflate_rows(&self, file, &stream, &left);
        inflateEnd(&stream);
        if (status == LNS_OK)
            status = read_back(file, left);
    }
    lns_free(self.memory);
    return status;
}

lns_status lns_decode_png(const lns_image_source *source, lns_plane **plane) {
    reader self = {.source = source, .position = SIGNATURE_SIZE, .frame_sequence = -1, .orientation = 1};
    lns_plane *made = NULL;
    lns_status status = read_front(&self);
    if (status == LNS_OK)
        status = lns_plane_create(self.width, self.height, 0, LNS_IMAGE_PNG, &made);
    if (status != LNS_OK)
        return status;
    made->exif_orientation = self.orientation;
    memset(made->data, 0, made->stride * made->height);
    status = decode_pixels(&self, made);
    if (status == LNS_OK) {
        /* An eXIf chunk may come after the pixels. */
        made->exif_orientation = self.orientation;
        *plane = made;
    } else {
        lns_plane_close(&made);
    }
    return status;
}
