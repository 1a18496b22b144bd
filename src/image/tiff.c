/* SPDX-License-Identifier: Apache-2.0 */
/* The first page of a TIFF. Which kinds are read, and how, follows Pillow; libtiff undoes the compression. */
#include "base/error.h"
#include "image/decoder.h"
#include "lensing_config.h"

#if LNS_HAVE_TIFF

#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "base/memory.h"
#include "image/to_plane.h"

/* Handlers for one file instead of the whole process. */
#define HAVE_OPEN_OPTIONS (TIFFLIB_VERSION >= 20221213)

#if !HAVE_OPEN_OPTIONS
#include <pthread.h>
#endif

enum {
    STRIP_LIMIT = 16 * 1024 * 1024, /* larger strips are read row by row where the compression allows */
    TILE_LIMIT = 256 * 1024 * 1024,
    ALLOCATION_LIMIT = 1024 * 1024 * 1024, /* for libtiff, in one piece */
    MESSAGE_SIZE = 256,
    EXTRA_LIMIT = 3
};

/* How the bytes of a row, as libtiff gives them, become R. */
typedef enum layout {
    LAYOUT_TABLE,      /* one sample of up to 8 bits through a table */
    LAYOUT_BYTE,       /* one byte of each pixel */
    LAYOUT_BYTE_TABLE, /* the same, through a table */
    LAYOUT_PREMULTIPLIED,
    LAYOUT_INKS,
    LAYOUT_12, /* gray, clipped at 255 like the following */
    LAYOUT_U16,
    LAYOUT_S16,
    LAYOUT_S32,
    LAYOUT_FLOAT,
    LAYOUT_RGBA /* libtiff makes the colours */
} layout;

typedef struct reader {
    const lns_image_source *source;
    uint64_t position;
    TIFF *file;
    char message[MESSAGE_SIZE]; /* the first complaint of libtiff */
    lns_plane *plane;
    uint32_t width, height;
    uint16_t bits, samples, photometric, format, fill_order, planar, compression, orientation;
    uint16_t extras;
    uint16_t extra[EXTRA_LIMIT];
    layout kind;
    size_t step;           /* bytes from one pixel to the next */
    size_t high;           /* which byte of a sample is the one that is used */
    size_t second;         /* where alpha or black ink is in a pixel */
    uint16_t second_plane; /* the same for separate planes; 0: none is needed */
    uint8_t table[256];
} reader;

/* ---- What libtiff calls ------------------------------------------------------------------------- */

static tmsize_t on_read(thandle_t handle, void *buffer, tmsize_t size) {
    reader *self = (reader *)handle;
    if (size <= 0 || self->position >= self->source->size)
        return 0;
    const size_t left = self->source->size - (size_t)self->position;
    const size_t count = (size_t)size < left ? (size_t)size : left;
    memcpy(buffer, self->source->bytes + self->position, count);
    self->position += count;
    return (tmsize_t)count;
}

static tmsize_t on_write(thandle_t handle, void *buffer, tmsize_t size) {
    (void)handle;
    (void)buffer;
    (void)size;
    return 0;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int from) {
    reader *self = (reader *)handle;
    if (from == SEEK_CUR)
        offset += self->position;
    else if (from == SEEK_END)
        offset += self->source->size;
    self->position = offset;
    return offset;
}

static int on_close(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t on_size(thandle_t handle) {
    return ((const reader *)handle)->source->size;
}

static int on_map(thandle_t handle, void **base, toff_t *size) {
    const reader *self = (const reader *)handle;
    *base = (void *)(uintptr_t)self->source->bytes; /* libtiff does not write to it */
    *size = self->source->size;
    return 1;
}

static void on_unmap(thandle_t handle, void *base, toff_t size) {
    (void)handle;
    (void)base;
    (void)size;
}

#if HAVE_OPEN_OPTIONS

static int on_error(TIFF *file, void *user, const char *module, const char *format, va_list arguments) {
    (void)file;
    (void)module;
    reader *self = user;
    if (self->message[0] == '\0')
        vsnprintf(self->message, sizeof self->message, format, arguments);
    return 1;
}

static int on_warning(TIFF *file, void *user, const char *module, const char *format, va_list arguments) {
    (void)file;
    (void)user;
    (void)module;
    (void)format;
    (void)arguments;
    return 1;
}

static TIFF *open_file(reader *self) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (options == NULL)
        return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, ALLOCATION_LIMIT);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, self);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, self);
    TIFF *file = TIFFClientOpenExt("TIFF", "r", (thandle_t)self, on_read, on_write, on_seek, on_close, on_size, on_map,
                                   on_unmap, options);
    TIFFOpenOptionsFree(options);
    return file;
}

#else

static void silence_libtiff(void) {
    TIFFSetErrorHandler(NULL);
    TIFFSetWarningHandler(NULL);
}

static TIFF *open_file(reader *self) {
    /* This libtiff has handlers for the process only. They would print, which a library must not do. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, silence_libtiff);
    return TIFFClientOpen("TIFF", "r", (thandle_t)self, on_read, on_write, on_seek, on_close, on_size, on_map,
                          on_unmap);
}

#endif

static lns_status fail(const reader *self) {
    return lns_fail_damaged("TIFF", self->message[0] != '\0' ? self->message : "it cannot be decoded");
}

/* ---- Header ------------------------------------------------------------------------------------- */

static lns_status fail_kind(const reader *self) {
    return lns_fail(LNS_ERROR_FORMAT,
                    "TIFF of this kind is not supported: photometric %u, %u samples of %u bits, sample format %u",
                    self->photometric, self->samples, self->bits, self->format);
}

static lns_status read_tags(reader *self) {
    TIFF *file = self->file;
    uint16_t *extra = NULL;
    if (!TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &self->width) ||
        !TIFFGetField(file, TIFFTAG_IMAGELENGTH, &self->height))
        return lns_fail_damaged("TIFF", "it has no width or height");
    const lns_status status = lns_check_image_size(self->source, "TIFF", self->width, self->height);
    if (status != LNS_OK)
        return status;
    TIFFGetFieldDefaulted(file, TIFFTAG_BITSPERSAMPLE, &self->bits);
    TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLESPERPIXEL, &self->samples);
    TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLEFORMAT, &self->format);
    TIFFGetFieldDefaulted(file, TIFFTAG_FILLORDER, &self->fill_order);
    TIFFGetFieldDefaulted(file, TIFFTAG_PLANARCONFIG, &self->planar);
    TIFFGetFieldDefaulted(file, TIFFTAG_COMPRESSION, &self->compression);
    TIFFGetFieldDefaulted(file, TIFFTAG_ORIENTATION, &self->orientation);
    if (!TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &self->photometric))
        self->photometric = PHOTOMETRIC_MINISWHITE;
    if (TIFFGetField(file, TIFFTAG_EXTRASAMPLES, &self->extras, &extra)) {
        if (self->extras > EXTRA_LIMIT)
            return fail_kind(self);
        memcpy(self->extra, extra, self->extras * sizeof *extra);
    }
    if (self->planar == PLANARCONFIG_SEPARATE) {
        /* Unspecified samples at the end lie in planes of their own, which are not looked at. */
        while (self->extras > 0 && self->extra[self->extras - 1] == EXTRASAMPLE_UNSPECIFIED) {
            self->extras--;
            self->samples--;
        }
    }
    return LNS_OK;
}

static lns_status check_compression(const reader *self) {
    static const uint16_t known[] = {
        COMPRESSION_NONE,     COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,     COMPRESSION_CCITTFAX4,
        COMPRESSION_LZW,      COMPRESSION_JPEG,     COMPRESSION_ADOBE_DEFLATE, COMPRESSION_CCITTRLEW,
        COMPRESSION_PACKBITS, COMPRESSION_DEFLATE,  COMPRESSION_THUNDERSCAN,   COMPRESSION_LZMA,
        COMPRESSION_ZSTD,     COMPRESSION_WEBP,
    };
    int is_known = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        is_known = is_known || known[i] == self->compression;
    if (!is_known || !TIFFIsCODECConfigured(self->compression))
        return lns_fail(LNS_ERROR_FORMAT, "TIFF with compression %u is not supported", self->compression);
    return LNS_OK;
}

static lns_status choose_gray(reader *self) {
    const int is_white_first = self->photometric == PHOTOMETRIC_MINISWHITE;
    const int is_unsigned = self->format == SAMPLEFORMAT_UINT;
    const int big = TIFFIsBigEndian(self->file);
    const int is_alone = self->samples == 1 && self->extras == 0;
    self->step = self->bits / 8;
    if (self->bits == 8 && self->samples == 2 && self->extras == 1 && self->extra[0] == EXTRASAMPLE_UNASSALPHA &&
        is_unsigned && !is_white_first) {
        self->step = self->planar == PLANARCONFIG_SEPARATE ? 1 : 2;
        self->kind = LAYOUT_BYTE;
        return LNS_OK;
    }
    if (!is_alone)
        return fail_kind(self);
    switch (self->bits) {
    case 1:
    case 2:
    case 4:
    case 8:
        if (!is_unsigned && (self->format != SAMPLEFORMAT_INT || self->bits != 8 || is_white_first))
            return fail_kind(self);
        self->kind = LAYOUT_TABLE;
        lns_gray_table(self->table, self->bits);
        for (int i = 0; i < 256 && is_white_first; i++)
            self->table[i] = (uint8_t)(255 - self->table[i]);
        return LNS_OK;
    case 12:
        self->kind = LAYOUT_12;
        return is_unsigned && !is_white_first && !big ? LNS_OK : fail_kind(self);
    case 16:
        self->kind = is_unsigned ? LAYOUT_U16 : LAYOUT_S16;
        /* White is not turned to black here: neither does Pillow. */
        if (is_unsigned)
            return !is_white_first || !big ? LNS_OK : fail_kind(self);
        return self->format == SAMPLEFORMAT_INT && !is_white_first ? LNS_OK : fail_kind(self);
    case 32:
        self->kind = self->format == SAMPLEFORMAT_IEEEFP ? LAYOUT_FLOAT : LAYOUT_S32;
        if (self->kind == LAYOUT_FLOAT)
            return LNS_OK;
        if (is_white_first || (is_unsigned && big) || (!is_unsigned && self->format != SAMPLEFORMAT_INT))
            return fail_kind(self);
        return LNS_OK;
    default:
        return fail_kind(self);
    }
}

static lns_status choose_palette(reader *self) {
    uint16_t *red, *green, *blue;
    const int has_alpha = self->samples == 2 && self->extras == 1 && self->bits == 8 &&
                          (self->extra[0] == EXTRASAMPLE_UNSPECIFIED || self->extra[0] == EXTRASAMPLE_UNASSALPHA);
    if (self->format != SAMPLEFORMAT_UINT ||
        (self->bits != 1 && self->bits != 2 && self->bits != 4 && self->bits != 8) ||
        !(has_alpha || (self->samples == 1 && self->extras == 0)))
        return fail_kind(self);
    if (!TIFFGetField(self->file, TIFFTAG_COLORMAP, &red, &green, &blue))
        return lns_fail_damaged("TIFF", "the palette is missing");
    for (int i = 0; i < 1 << self->bits; i++)
        self->table[i] = (uint8_t)(red[i] >> 8);
    self->kind = has_alpha ? LAYOUT_BYTE_TABLE : LAYOUT_TABLE;
    self->step = has_alpha && self->planar == PLANARCONFIG_CONTIG ? 2 : 1;
    return LNS_OK;
}

/* RGB and CMYK: `colours` samples and perhaps more. */
static lns_status choose_colours(reader *self, uint16_t colours) {
    const int is_separate = self->planar == PLANARCONFIG_SEPARATE;
    const int is_alpha_unnamed = colours == 3 && self->samples == 4 && self->extras == 0;
    if (self->format != SAMPLEFORMAT_UINT || (self->bits != 8 && self->bits != 16) ||
        !(is_alpha_unnamed || self->samples == colours + self->extras) || (self->bits == 16 && self->samples > 4))
        return fail_kind(self);
    for (int i = 0; i < self->extras; i++) {
        const int may_be_alpha = i == 0 && colours == 3;
        if (self->extra[i] != EXTRASAMPLE_UNSPECIFIED && !may_be_alpha)
            return fail_kind(self);
    }
    const uint16_t probe = 1;
    const size_t bytes = self->bits / 8;
    self->high =
        bytes == 2 && *(const uint8_t *)&probe == 1 ? 1 : 0; /* libtiff gives samples in this machine's order */
    self->step = is_separate ? bytes : bytes * self->samples;
    self->second = 3 * bytes;
    if (colours == 4) {
        self->kind = LAYOUT_INKS;
        self->second_plane = 3;
    } else {
        const int is_premultiplied = self->extras > 0 && self->extra[0] == EXTRASAMPLE_ASSOCALPHA;
        self->kind = is_premultiplied ? LAYOUT_PREMULTIPLIED : LAYOUT_BYTE;
        self->second_plane = is_premultiplied ? 3 : 0;
    }
    return LNS_OK;
}

static lns_status choose_ycbcr(reader *self) {
    if (self->samples == 1)
        return self->bits == 8 ? choose_gray(self) : fail_kind(self);
    if (self->bits != 8 || self->samples != 3 || self->extras != 0 || self->format != SAMPLEFORMAT_UINT ||
        self->compression == COMPRESSION_NONE)
        return fail_kind(self);
    if (self->compression == COMPRESSION_JPEG && self->planar == PLANARCONFIG_CONTIG) {
        TIFFSetField(self->file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        return choose_colours(self, 3);
    }
    self->kind = LAYOUT_RGBA;
    return LNS_OK;
}

static lns_status choose_layout(reader *self) {
    const int is_reversed = self->fill_order == FILLORDER_LSB2MSB;
    if (is_reversed && (self->samples != 1 || self->bits > 16) && !(self->samples == 3 && self->bits == 8))
        return fail_kind(self);
    switch (self->photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
        return choose_gray(self);
    case PHOTOMETRIC_RGB:
        return choose_colours(self, 3);
    case PHOTOMETRIC_PALETTE:
        return choose_palette(self);
    case PHOTOMETRIC_SEPARATED:
        return choose_colours(self, 4);
    case PHOTOMETRIC_YCBCR:
        return choose_ycbcr(self);
    default:
        return fail_kind(self);
    }
}

/* ---- Rows --------------------------------------------------------------------------------------- */

static uint8_t clip(int32_t value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void convert_12(uint8_t *to, const uint8_t *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t *pair = from + i / 2 * 3;
        to[i] = clip(i % 2 == 0 ? pair[0] << 4 | pair[1] >> 4 : (pair[1] & 15) << 8 | pair[2]);
    }
}

static void convert_numbers(layout kind, uint8_t *to, const uint8_t *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t u16;
        int16_t s16;
        int32_t s32;
        float number;
        switch (kind) {
        case LAYOUT_U16:
            memcpy(&u16, from + 2 * i, sizeof u16);
            to[i] = clip(u16);
            break;
        case LAYOUT_S16:
            memcpy(&s16, from + 2 * i, sizeof s16);
            to[i] = clip(s16);
            break;
        case LAYOUT_S32:
            memcpy(&s32, from + 4 * i, sizeof s32);
            to[i] = clip(s32);
            break;
        default:
            memcpy(&number, from + 4 * i, sizeof number);
            to[i] = number >= 255.0f ? 255 : number > 0.0f ? (uint8_t)number : 0; /* 0 also when it is no number */
        }
    }
}

/* `second` points at alpha or black of the first pixel. */
static void convert_row(const reader *self, uint8_t *to, const uint8_t *from, const uint8_t *second, size_t count) {
    switch (self->kind) {
    case LAYOUT_TABLE:
        lns_unpack_samples(to, from, count, self->bits);
        lns_map_samples(to, count, self->table);
        return;
    case LAYOUT_BYTE:
    case LAYOUT_BYTE_TABLE:
        lns_take_channel(to, from + self->high, count, self->step);
        if (self->kind == LAYOUT_BYTE_TABLE)
            lns_map_samples(to, count, self->table);
        return;
    case LAYOUT_PREMULTIPLIED:
        lns_unpremultiply_to_plane(to, from + self->high, second + self->high, count, self->step);
        return;
    case LAYOUT_INKS:
        lns_inks_to_plane(to, from + self->high, second + self->high, count, self->step);
        return;
    case LAYOUT_12:
        convert_12(to, from, count);
        return;
    default:
        convert_numbers(self->kind, to, from, count);
    }
}

static uint64_t needed_row_bytes(const reader *self, uint32_t width) {
    const uint64_t samples = self->planar == PLANARCONFIG_SEPARATE ? 1 : self->samples;
    return (width * samples * self->bits + 7) / 8;
}

/* ---- Strips and tiles --------------------------------------------------------------------------- */

/* A buffer for a strip, tile or row of the first plane, and one for that of the second where it is needed. */
typedef struct buffers {
    uint8_t *first, *second;
    size_t size;
} buffers;

static int has_second_buffer(const reader *self) {
    return self->planar == PLANARCONFIG_SEPARATE && self->second_plane != 0;
}

static lns_status make_buffers(const reader *self, size_t size, buffers *made) {
    const size_t total = has_second_buffer(self) ? 2 * size : size;
    made->size = size;
    made->first = lns_calloc(total, 1);
    if (made->first == NULL)
        return lns_fail_memory(total);
    made->second = has_second_buffer(self) ? made->first + size : made->first + self->second;
    return LNS_OK;
}

static lns_status read_tile(reader *self, buffers *tile, uint32_t x, uint32_t y) {
    if (TIFFReadTile(self->file, tile->first, x, y, 0, 0) < 0)
        return fail(self);
    if (has_second_buffer(self) && TIFFReadTile(self->file, tile->second, x, y, 0, self->second_plane) < 0)
        return fail(self);
    return LNS_OK;
}

static void store_tile(reader *self, const buffers *tile, uint32_t x, uint32_t y, uint32_t columns, uint32_t rows,
                       size_t row_bytes) {
    for (uint32_t i = 0; i < rows; i++)
        convert_row(self, self->plane->data + (y + i) * self->plane->stride + x, tile->first + i * row_bytes,
                    tile->second + i * row_bytes, columns);
}

static lns_status decode_tiles(reader *self) {
    uint32_t tile_width = 0, tile_height = 0;
    TIFFGetField(self->file, TIFFTAG_TILEWIDTH, &tile_width);
    TIFFGetField(self->file, TIFFTAG_TILELENGTH, &tile_height);
    const tmsize_t size = TIFFTileSize(self->file);
    const tmsize_t row_bytes = TIFFTileRowSize(self->file);
    if (tile_width == 0 || tile_height == 0 || size <= 0 || row_bytes <= 0 ||
        (uint64_t)row_bytes < needed_row_bytes(self, tile_width) || row_bytes > size / tile_height)
        return fail(self);
    if (size > TILE_LIMIT)
        return lns_fail(LNS_ERROR_LIMIT, "TIFF with tiles of %lld bytes, more than the limit of %d", (long long)size,
                        TILE_LIMIT);
    buffers tile = {0};
    lns_status status = make_buffers(self, (size_t)size, &tile);
    for (uint64_t y = 0; y < self->height && status == LNS_OK; y += tile_height) {
        for (uint64_t x = 0; x < self->width && status == LNS_OK; x += tile_width) {
            status = read_tile(self, &tile, (uint32_t)x, (uint32_t)y);
            if (status != LNS_OK)
                break;
            const uint64_t columns = self->width - x, rows = self->height - y;
            store_tile(self, &tile, (uint32_t)x, (uint32_t)y, (uint32_t)(columns < tile_width ? columns : tile_width),
                       (uint32_t)(rows < tile_height ? rows : tile_height), (size_t)row_bytes);
        }
    }
    lns_free(tile.first);
    return status;
}

static int can_read_rows(const reader *self) {
    /* The others have no state between rows, or need the strip as a whole. */
    return self->compression != COMPRESSION_PACKBITS && self->compression != COMPRESSION_THUNDERSCAN &&
           self->compression != COMPRESSION_WEBP;
}

static lns_status decode_whole_strips(reader *self, uint32_t strip_rows, size_t row_bytes, buffers *strip) {
    for (uint64_t y = 0; y < self->height; y += strip_rows) {
        const uint32_t first = (uint32_t)y;
        if (TIFFReadEncodedStrip(self->file, TIFFComputeStrip(self->file, first, 0), strip->first,
                                 (tmsize_t)strip->size) < 0)
            return fail(self);
        if (has_second_buffer(self) &&
            TIFFReadEncodedStrip(self->file, TIFFComputeStrip(self->file, first, self->second_plane), strip->second,
                                 (tmsize_t)strip->size) < 0)
            return fail(self);
        const uint64_t rows = self->height - y;
        store_tile(self, strip, 0, first, self->width, (uint32_t)(rows < strip_rows ? rows : strip_rows), row_bytes);
    }
    return LNS_OK;
}

static lns_status decode_single_rows(reader *self, buffers *row) {
    for (uint32_t y = 0; y < self->height; y++) {
        if (TIFFReadScanline(self->file, row->first, y, 0) < 0)
            return fail(self);
        store_tile(self, row, 0, y, self->width, 1, row->size);
    }
    return LNS_OK;
}

static lns_status decode_strips(reader *self) {
    uint32_t strip_rows = self->height;
    const tmsize_t size = TIFFStripSize(self->file);
    const tmsize_t row_bytes = TIFFScanlineSize(self->file);
    TIFFGetFieldDefaulted(self->file, TIFFTAG_ROWSPERSTRIP, &strip_rows);
    if (strip_rows == 0 || strip_rows > self->height)
        strip_rows = self->height;
    if (size <= 0 || row_bytes <= 0 || (uint64_t)row_bytes < needed_row_bytes(self, self->width) ||
        row_bytes > size / strip_rows)
        return fail(self);
    const int by_row = size > STRIP_LIMIT && can_read_rows(self) && !has_second_buffer(self);
    buffers work = {0};
    lns_status status = make_buffers(self, (size_t)(by_row ? row_bytes : size), &work);
    if (status == LNS_OK)
        status =
            by_row ? decode_single_rows(self, &work) : decode_whole_strips(self, strip_rows, (size_t)row_bytes, &work);
    lns_free(work.first);
    return status;
}

/* ---- Colours by libtiff: YCbCr that is not JPEG ----------------------------------------------------- */

static lns_status read_rgba_rows(reader *self, TIFFRGBAImage *image, uint32_t block_rows) {
    const size_t size = (size_t)self->width * block_rows * sizeof(uint32_t);
    uint32_t *pixels = lns_alloc_array((size_t)self->width * block_rows, sizeof *pixels);
    if (pixels == NULL)
        return lns_fail_memory(size);
    lns_status status = LNS_OK;
    for (uint64_t y = 0; y < self->height && status == LNS_OK; y += block_rows) {
        const uint32_t rows = (uint32_t)(self->height - y < block_rows ? self->height - y : block_rows);
        image->row_offset = (int)y;
        if (!TIFFRGBAImageGet(image, pixels, self->width, rows)) {
            status = fail(self);
            break;
        }
        for (size_t i = 0; i < rows; i++) {
            uint8_t *to = self->plane->data + ((size_t)y + i) * self->plane->stride;
            for (size_t x = 0; x < self->width; x++)
                to[x] = (uint8_t)TIFFGetR(pixels[i * self->width + x]);
        }
    }
    lns_free(pixels);
    return status;
}

static lns_status decode_rgba(reader *self) {
    TIFFRGBAImage image;
    char text[1024] = "";
    uint32_t block_rows = self->height;
    if (!TIFFRGBAImageOK(self->file, text) || !TIFFRGBAImageBegin(&image, self->file, 1, text))
        return lns_fail_damaged("TIFF", text);
    TIFFGetFieldDefaulted(self->file, TIFFIsTiled(self->file) ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &block_rows);
    if (block_rows == 0 || block_rows > self->height)
        block_rows = self->height;
    image.orientation = ORIENTATION_TOPLEFT;
    image.req_orientation = ORIENTATION_TOPLEFT;
    const lns_status status = read_rgba_rows(self, &image, block_rows);
    TIFFRGBAImageEnd(&image);
    return status;
}

static lns_status decode_page(reader *self) {
    self->file = open_file(self);
    if (self->file == NULL)
        return fail(self);
    lns_status status = read_tags(self);
    if (status == LNS_OK)
        status = check_compression(self);
    if (status == LNS_OK)
        status = choose_layout(self);
    if (status == LNS_OK)
        status = lns_plane_create(self->width, self->height, 0, LNS_IMAGE_TIFF, &self->plane);
    if (status != LNS_OK)
        return status;
    if (self->kind == LAYOUT_RGBA)
        status = decode_rgba(self);
    else
        status = TIFFIsTiled(self->file) ? decode_tiles(self) : decode_strips(self);
    /* Pillow turns TIFF upright by itself, so here the orientation is applied at once, and is none afterwards. */
    return status == LNS_OK ? lns_plane_orient(&self->plane, self->orientation) : status;
}

lns_status lns_decode_tiff(const lns_image_source *source, lns_plane **plane) {
    reader self = {.source = source};
    const lns_status status = decode_page(&self);
    if (self.file != NULL)
        TIFFClose(self.file);
    if (status == LNS_OK)
        *plane = self.plane;
    else
        lns_plane_close(&self.plane);
    return status;
}

#else

lns_status lns_decode_tiff(const lns_image_source *source, lns_plane **plane) {
    (void)source;
    (void)plane;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "this build reads no TIFF: it was made without libtiff");
}

#endif
