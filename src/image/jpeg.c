/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "image/decoder.h"
#include "lensing_config.h"

#if LNS_HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/memory.h"
#include "image/chroma.h"
#include "image/to_plane.h"
#include "image/upsample.h"

/* A progressive file needs about ten scans, one that sends every coefficient by itself 190. Each scan costs a pass over
 * the whole picture however few bytes it has, so their number must have an end. */
enum { SCANS_LIMIT = 256 };

typedef struct reader {
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr input;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    const lns_image_source *source;
    const lns_chroma_kernels *chroma;
    lns_status status;
    lns_plane *plane;
    uint8_t *scratch;
} reader;

static void leave(reader *self, lns_status status) {
    self->status = status;
    longjmp(self->escape, 1);
}

/* ---- What libjpeg calls ------------------------------------------------------------------------- */

static void on_error(j_common_ptr decoder) {
    reader *self = decoder->client_data;
    char text[JMSG_LENGTH_MAX];
    decoder->err->format_message(decoder, text);
    switch (decoder->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
        leave(self, lns_fail(LNS_ERROR_OUT_OF_MEMORY, "out of memory while decoding a JPEG"));
        break;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
        leave(self, lns_fail(LNS_ERROR_FORMAT, "this kind of JPEG is not supported: %s", text));
        break;
    default:
        leave(self, lns_fail_damaged("JPEG", text));
    }
}

/* Warnings are about damage that leaves a picture; Pillow ignores them as well. */
static void on_message(j_common_ptr decoder, int level) {
    if (level < 0)
        decoder->err->num_warnings++;
}

static void on_nothing(j_decompress_ptr decoder) {
    (void)decoder;
}

/* All data is in the buffer from the start. When it is used up, libjpeg is told to wait for more, which makes its
 * functions return: the file is truncated, unless all rows are there already. */
static boolean on_more_input(j_decompress_ptr decoder) {
    (void)decoder;
    return FALSE;
}

static void on_skip(j_decompress_ptr decoder, long count) {
    struct jpeg_source_mgr *input = decoder->src;
    if (count <= 0)
        return;
    const size_t used = (size_t)count < input->bytes_in_buffer ? (size_t)count : input->bytes_in_buffer;
    input->next_input_byte += used;
    input->bytes_in_buffer -= used;
}

static void on_progress(j_common_ptr decoder) {
    reader *self = decoder->client_data;
    if (self->decoder.input_scan_number > SCANS_LIMIT)
        leave(self, lns_fail(LNS_ERROR_LIMIT, "JPEG with more than %d scans", SCANS_LIMIT));
}

/* ---- Header ------------------------------------------------------------------------------------- */

static void open_decoder(reader *self) {
    self->decoder.err = jpeg_std_error(&self->errors);
    self->errors.error_exit = on_error;
    self->errors.emit_message = on_message;
    self->decoder.client_data = self;
    jpeg_create_decompress(&self->decoder);
    self->input = (struct jpeg_source_mgr){
        .next_input_byte = self->source->bytes,
        .bytes_in_buffer = self->source->size,
        .init_source = on_nothing,
        .fill_input_buffer = on_more_input,
        .skip_input_data = on_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = on_nothing,
    };
    self->decoder.src = &self->input;
    self->progress.progress_monitor = on_progress;
    self->decoder.progress = &self->progress;
    jpeg_save_markers(&self->decoder, JPEG_APP0 + 1, 0xffff);
}

static void read_header(reader *self) {
    struct jpeg_decompress_struct *decoder = &self->decoder;
    int found;
    do {
        found = jpeg_read_header(decoder, FALSE);
    } while (found == JPEG_HEADER_TABLES_ONLY);
    if (found != JPEG_HEADER_OK)
        leave(self, lns_fail_truncated("JPEG"));
    const lns_status status = lns_check_image_size(self->source, "JPEG", decoder->image_width, decoder->image_height);
    if (status != LNS_OK)
        leave(self, status);
    if (decoder->data_precision != 8)
        leave(self,
              lns_fail(LNS_ERROR_FORMAT, "JPEG with %d bits a sample is not supported; 8 is", decoder->data_precision));
    if (decoder->num_components != 1 && decoder->num_components != 3 && decoder->num_components != 4)
        leave(self, lns_fail(LNS_ERROR_FORMAT, "JPEG with %d components is not supported; 1, 3 and 4 are",
                             decoder->num_components));
}

static int find_orientation(const reader *self) {
    for (jpeg_saved_marker_ptr marker = self->decoder.marker_list; marker != NULL; marker = marker->next) {
        if (marker->marker == JPEG_APP0 + 1 && marker->data_length >= 6 && memcmp(marker->data, "Exif\0\0", 6) == 0)
            return lns_exif_orientation(marker->data, marker->data_length);
    }
    return 1;
}

static void make_plane(reader *self, size_t least_stride) {
    const lns_status status = lns_plane_create(self->decoder.image_width, self->decoder.image_height, least_stride,
                                               LNS_IMAGE_JPEG, &self->plane);
    if (status != LNS_OK)
        leave(self, status);
    self->plane->exif_orientation = find_orientation(self);
}

static void make_scratch(reader *self, size_t size) {
    self->scratch = lns_alloc(size);
    if (self->scratch == NULL)
        leave(self, lns_fail_memory(size));
}

/* ---- Samples as stored: only the components that R depends on -------------------------------------- */

/* The first component is written into the plane, Cr into `cr` below one row kept from the strip before. */
typedef struct strips {
    uint32_t rows;     /* rows of the plane in one strip */
    uint32_t cr_rows;  /* rows of Cr in one strip */
    size_t cr_stride;  /* bytes from one row of Cr to the next; 0: R is the first component itself */
    uint32_t cr_width; /* size of Cr */
    uint32_t cr_height;
    int wide, tall;   /* 1 or 2: pixels a sample of Cr */
    uint8_t *cr;      /* (1 + cr_rows) x cr_stride */
    uint8_t *surplus; /* a row for what lies below the picture */
    uint16_t *sums;   /* scratch of the upsampling */
    uint8_t *full;    /* one row of Cr, upsampled */
} strips;

static int is_plain_first_component(const reader *self) {
    return self->decoder.jpeg_color_space == JCS_GRAYSCALE || self->decoder.jpeg_color_space == JCS_RGB;
}

/* True when R can be made from the stored samples of the first component, and perhaps Cr. */
static int can_read_strips(const reader *self) {
    const struct jpeg_decompress_struct *decoder = &self->decoder;
    const jpeg_component_info *first = &decoder->comp_info[0];
    if (first->h_samp_factor != decoder->max_h_samp_factor || first->v_samp_factor != decoder->max_v_samp_factor)
        return 0;
    if (is_plain_first_component(self))
        return 1;
    if (decoder->jpeg_color_space != JCS_YCbCr)
        return 0;
    const jpeg_component_info *cr = &decoder->comp_info[2];
    return (cr->h_samp_factor == first->h_samp_factor || 2 * cr->h_samp_factor == first->h_samp_factor) &&
           (cr->v_samp_factor == first->v_samp_factor || 2 * cr->v_samp_factor == first->v_samp_factor);
}

static size_t padded_width(const jpeg_component_info *component) {
    /* Up to a whole number of minimum coded units. */
    const size_t unit = (size_t)component->h_samp_factor * DCTSIZE;
    return ((size_t)component->width_in_blocks * DCTSIZE + unit - 1) / unit * unit;
}

static void prepare_strips(reader *self, strips *work) {
    struct jpeg_decompress_struct *decoder = &self->decoder;
    const jpeg_component_info *first = &decoder->comp_info[0];
    const size_t surplus_size = padded_width(first);
    *work = (strips){.rows = (uint32_t)decoder->max_v_samp_factor * DCTSIZE, .wide = 1, .tall = 1};
    make_plane(self, surplus_size);
    if (is_plain_first_component(self)) {
        make_scratch(self, surplus_size);
        work->surplus = self->scratch;
        return;
    }
    const jpeg_component_info *cr = &decoder->comp_info[2];
    work->wide = first->h_samp_factor / cr->h_samp_factor;
    work->tall = first->v_samp_factor / cr->v_samp_factor;
    work->cr_rows = (uint32_t)cr->v_samp_factor * DCTSIZE;
    work->cr_stride = padded_width(cr);
    work->cr_width = cr->downsampled_width;
    work->cr_height = cr->downsampled_height;
    const size_t sums_size = lns_upsample_scratch(work->cr_width) * sizeof *work->sums;
    const size_t full_size = 2 * work->cr_stride;
    const size_t cr_size = (1 + work->cr_rows) * work->cr_stride;
    make_scratch(self, sums_size + full_size + cr_size + surplus_size);
    work->sums = (uint16_t *)(void *)self->scratch;
    work->full = self->scratch + sums_size;
    work->cr = work->full + full_size;
    work->surplus = work->cr + cr_size;
}

/* Reads the samples of one strip that starts at row `top`. */
static void read_strip(reader *self, const strips *work, uint32_t top) {
    enum { ROWS_LIMIT = MAX_SAMP_FACTOR * DCTSIZE };
    JSAMPROW rows[3][ROWS_LIMIT];
    JSAMPARRAY components[3] = {rows[0], rows[1], rows[2]};
    for (uint32_t i = 0; i < ROWS_LIMIT; i++) {
        rows[0][i] = i < work->rows && top + i < self->plane->height
                         ? self->plane->data + (top + i) * self->plane->stride
                         : work->surplus;
        rows[1][i] = work->surplus; /* never written: the component is not needed */
        rows[2][i] = i < work->cr_rows ? work->cr + (1 + i) * work->cr_stride : work->surplus;
    }
    if (jpeg_read_raw_data(&self->decoder, components, work->rows) == 0)
        leave(self, lns_fail_truncated("JPEG"));
}

/* Turns row `y` of the plane from Y to R. `kept` is the number of the row that is first in work->cr. */
static void convert_row(reader *self, const strips *work, uint32_t y, int64_t kept) {
    uint8_t *row = self->plane->data + y * self->plane->stride;
    const int64_t at = y / (uint32_t)work->tall;
    const uint8_t *cr = work->cr + (size_t)(at - kept) * work->cr_stride;
    const uint8_t *full = cr;
    /* As libjpeg: of two columns or fewer, samples are doubled and not blended, except in height alone. */
    const int blend = work->cr_width > 2 || work->wide == 1;
    if (work->tall == 2 && blend) {
        int64_t near = y % 2 == 0 ? at - 1 : at + 1;
        near = near < 0 ? 0 : near >= work->cr_height ? work->cr_height - 1 : near;
        const uint8_t *other = work->cr + (size_t)(near - kept) * work->cr_stride;
        if (work->wide == 2)
            self->chroma->upsample_both(work->full, cr, other, work->cr_width, 7, work->sums);
        else
            lns_upsample_tall(work->full, cr, other, work->cr_width, y % 2 == 0 ? 1 : 2);
        full = work->full;
    } else if (work->wide == 2) {
        if (blend)
            lns_upsample_wide(work->full, cr, work->cr_width);
        else
            lns_upsample_double(work->full, cr, work->cr_width);
        full = work->full;
    }
    self->chroma->ycc_to_plane(row, full, self->plane->width);
}

static void decode_strips(reader *self) {
    struct jpeg_decompress_struct *decoder = &self->decoder;
    strips work;
    prepare_strips(self, &work);
    decoder->raw_data_out = TRUE;
    decoder->out_color_space = decoder->jpeg_color_space;
    for (int i = 1; i < decoder->num_components; i++)
        decoder->comp_info[i].component_needed = work.cr_stride > 0 && i == 2;
    if (!jpeg_start_decompress(decoder))
        leave(self, lns_fail_truncated("JPEG"));
    const uint32_t height = self->plane->height;
    uint32_t converted = 0;
    int64_t kept = -1; /* before the first row of Cr; never looked at, as the row above the first is the first */
    for (uint32_t top = 0; top < height; top += work.rows) {
        read_strip(self, &work, top);
        if (work.cr_stride == 0)
            continue;
        const int is_last = height - top <= work.rows;
        /* The last row needs the first row of Cr of the next strip. */
        const uint32_t end = is_last ? height : top + work.rows - (work.tall == 2);
        for (; converted < end; converted++)
            convert_row(self, &work, converted, kept);
        memcpy(work.cr, work.cr + work.cr_rows * work.cr_stride, work.cr_stride);
        kept += work.cr_rows;
    }
}

/* ---- Any other kind: pixels from libjpeg ---------------------------------------------------------- */

static void decode_pixels(reader *self) {
    struct jpeg_decompress_struct *decoder = &self->decoder;
    const int inks = decoder->num_components == 4;
    const size_t step = inks ? 4 : 3;
    make_plane(self, 0);
    make_scratch(self, step * decoder->image_width);
    decoder->out_color_space = inks ? JCS_CMYK : JCS_RGB;
    if (!jpeg_start_decompress(decoder))
        leave(self, lns_fail_truncated("JPEG"));
    for (uint32_t y = 0; y < self->plane->height; y++) {
        JSAMPROW row = self->scratch;
        uint8_t *to = self->plane->data + y * self->plane->stride;
        if (jpeg_read_scanlines(decoder, &row, 1) != 1)
            leave(self, lns_fail_truncated("JPEG"));
        if (inks)
            lns_inverse_inks_to_plane(to, row, row + 3, self->plane->width, step);
        else
            lns_take_channel(to, row, self->plane->width, step);
    }
}

static void decode_all(reader *self) {
    open_decoder(self);
    read_header(self);
    if (can_read_strips(self))
        decode_strips(self);
    else
        decode_pixels(self);
    /* All rows are there: whether the end marker is missing does not matter, but libjpeg may find damage behind. */
    jpeg_finish_decompress(&self->decoder);
}

lns_status lns_decode_jpeg(const lns_image_source *source, lns_plane **plane) {
    reader *self = lns_calloc(1, sizeof *self);
    if (self == NULL)
        return lns_fail_memory(sizeof *self);
    self->source = source;
    self->chroma = lns_chroma_kernels_choose();
    if (setjmp(self->escape) == 0)
        decode_all(self);
    jpeg_destroy_decompress(&self->decoder);
    lns_free(self->scratch);
    const lns_status status = self->status;
    if (status == LNS_OK)
        *plane = self->plane;
    else
        lns_plane_close(&self->plane);
    lns_free(self);
    return status;
}

#else

lns_status lns_decode_jpeg(const lns_image_source *source, lns_plane **plane) {
    (void)source;
    (void)plane;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "this build reads no JPEG: it was made without libjpeg");
}

#endif
