/* SPDX-License-Identifier: Apache-2.0 */
/* Equal bit for bit to Pillow's BILINEAR on mode L: a triangle filter, widened by the scale when shrinking, its weights
 * computed in double and rounded to 22 bits after the point, and a result rounded to 8 bits after each pass. A pass
 * along an axis that keeps its length is left out. */
#include "image/resize.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/decoder.h"

/* Columns are done in strips so narrow that the tables of a strip take about so much memory, but not narrower than
 * MIN_STRIP. Pictures of usual sizes are one strip. */
#define STRIP_BYTES ((size_t)4 << 20)
#define MIN_STRIP 16

#define HALF (1 << (LNS_RESIZE_BITS - 1))

/* One axis of a resize. */
typedef struct axis {
    uint32_t in;
    double scale;     /* input pixels for one output pixel */
    double support;   /* half width of the filter in input pixels */
    uint32_t longest; /* upper bound of the length of a window */
} axis;

static axis make_axis(uint32_t in, uint32_t out) {
    /* Pillow holds the source box in single precision, which shows beyond 2^24 pixels. */
    const double scale = (double)(float)in / (double)out;
    const double support = scale > 1.0 ? scale : 1.0;
    const double longest = ceil(support) * 2.0 + 1.0;
    return (axis){in, scale, support, longest < (double)in ? (uint32_t)longest : in};
}

static double triangle(double x) {
    const double distance = fabs(x);
    return distance < 1.0 ? 1.0 - distance : 0.0;
}

/* Window and weights of output pixel i. Returns the length of the window. */
static uint32_t make_taps(const axis *a, uint32_t i, uint32_t *start, int32_t *weight) {
    const double center = (i + 0.5) * a->scale;
    const double inverse = 1.0 / a->support;
    const double low = center - a->support + 0.5;
    const double high = center + a->support + 0.5;
    const int32_t first = low > 0.0 ? (int32_t)low : 0;
    const uint32_t end = high < (double)a->in ? (uint32_t)high : a->in;
    const uint32_t length = end - (uint32_t)first;
    double sum = 0.0;
    for (uint32_t k = 0; k < length; k++)
        sum += triangle(((double)(first + (int32_t)k) - center + 0.5) * inverse);
    for (uint32_t k = 0; k < length; k++) {
        double w = triangle(((double)(first + (int32_t)k) - center + 0.5) * inverse);
        if (sum != 0.0)
            w /= sum;
        weight[k] = (int32_t)(0.5 + w * (1 << LNS_RESIZE_BITS));
    }
    *start = (uint32_t)first;
    return length;
}

/* ---- Portable kernels --------------------------------------------------------------------------- */

static uint8_t round_sum(int32_t sum) {
    /* Rounding of the weights can lift a white pixel above 255. */
    const int32_t value = (sum + HALF) >> LNS_RESIZE_BITS;
    return (uint8_t)(value < 255 ? value : 255);
}

static void row_c(const lns_resize_taps *taps, const void *packed, const uint8_t *source, uint8_t *target) {
    (void)packed;
    for (uint32_t i = 0; i < taps->count; i++) {
        const uint8_t *pixel = source + taps->start[i];
        const int32_t *weight = taps->weight + (size_t)i * taps->stride;
        int32_t sum = 0;
        for (uint32_t k = 0; k < taps->length[i]; k++)
            sum += pixel[k] * weight[k];
        target[i] = round_sum(sum);
    }
}

enum { COLUMN_BLOCK = 64 };

static void column_block(const uint8_t *rows, size_t stride, const int32_t *weight, uint32_t length, uint32_t width,
                         uint8_t *target) {
    int32_t sum[COLUMN_BLOCK] = {0};
    for (uint32_t k = 0; k < length; k++) {
        const uint8_t *row = rows + k * stride;
        for (uint32_t x = 0; x < width; x++)
            sum[x] += row[x] * weight[k];
    }
    for (uint32_t x = 0; x < width; x++)
        target[x] = round_sum(sum[x]);
}

static void column_c(const uint8_t *rows, size_t stride, const int32_t *weight, uint32_t length, uint32_t width,
                     uint8_t *target) {
    uint32_t x = 0;
    for (; x + COLUMN_BLOCK <= width; x += COLUMN_BLOCK)
        column_block(rows + x, stride, weight, length, COLUMN_BLOCK, target + x);
    if (x < width)
        column_block(rows + x, stride, weight, length, width - x, target + x);
}

const lns_resize_kernels lns_resize_kernels_c = {NULL, NULL, row_c, column_c};

static const lns_resize_kernels *kernels_for(lns_cpu_level level) {
#if defined(__x86_64__)
    if (level >= LNS_CPU_AVX2)
        return &lns_resize_kernels_avx2;
#endif
    (void)level;
    return &lns_resize_kernels_c;
}

/* ---- Strips ------------------------------------------------------------------------------------- */

typedef struct job {
    const lns_plane *source;
    const lns_resize_kernels *kernels;
    axis x, y;
    int resize_x, resize_y;
    uint32_t first_row, row_count;
    uint8_t *target;
    size_t stride;
    int32_t *weight; /* of one output row along y */
} job;

/* Some columns of the output: the taps along x, and the rows that the pass along y needs at the moment. */
typedef struct strip {
    uint32_t first, width; /* columns */
    lns_resize_taps taps;
    void *packed;
    void (*row)(const lns_resize_taps *taps, const void *packed, const uint8_t *source, uint8_t *target);
    uint8_t
        *rows; /* room for `capacity` rows of `width` bytes; holds the resized rows held_first .. + held_count - 1 */
    uint32_t capacity, held_first, held_count;
} strip;

static void strip_free(strip *s) {
    lns_free(s->taps.start);
    lns_free(s->taps.length);
    lns_free(s->taps.weight);
    lns_aligned_free(s->packed);
    lns_free(s->rows);
}

static lns_status strip_pack(strip *s, const job *j) {
    s->row = lns_resize_kernels_c.row;
    if (j->kernels->pack_size == NULL)
        return LNS_OK;
    const size_t size = j->kernels->pack_size(&s->taps, j->source->width);
    if (size == 0)
        return LNS_OK;
    s->packed = lns_aligned_alloc(size);
    if (s->packed == NULL)
        return lns_fail_memory(size);
    j->kernels->pack(&s->taps, j->source->width, s->packed);
    s->row = j->kernels->row;
    return LNS_OK;
}

static lns_status strip_make_taps(strip *s, const job *j) {
    lns_resize_taps *taps = &s->taps;
    taps->count = s->width;
    taps->stride = j->x.longest;
    taps->start = lns_alloc_array(s->width, sizeof *taps->start);
    taps->length = lns_alloc_array(s->width, sizeof *taps->length);
    taps->weight = lns_calloc((size_t)s->width * taps->stride, sizeof *taps->weight);
    if (taps->start == NULL || taps->length == NULL || taps->weight == NULL)
        return lns_fail_memory((size_t)s->width * taps->stride * sizeof *taps->weight);
    for (uint32_t i = 0; i < s->width; i++)
        taps->length[i] = make_taps(&j->x, s->first + i, &taps->start[i], taps->weight + (size_t)i * taps->stride);
    return strip_pack(s, j);
}

static lns_status strip_init(strip *s, const job *j) {
    if (j->resize_x) {
        const lns_status status = strip_make_taps(s, j);
        if (status != LNS_OK)
            return status;
    }
    if (j->resize_x && j->resize_y) {
        /* The spare half makes moving the rows to the front a rare thing. */
        s->capacity = j->y.longest + j->y.longest / 2 + 8;
        s->rows = lns_alloc_array(s->capacity, s->width);
        if (s->rows == NULL)
            return lns_fail_memory((size_t)s->capacity * s->width);
    }
    return LNS_OK;
}

static void resize_row(const strip *s, const job *j, uint32_t y, uint8_t *target) {
    s->row(&s->taps, s->packed, j->source->data + y * j->source->stride, target);
}

/* Rows start .. start + length - 1, resized along x. Calls must have rising `start`. */
static const uint8_t *strip_rows(strip *s, const job *j, uint32_t start, uint32_t length) {
    if (start + length > s->held_first + s->capacity || start >= s->held_first + s->held_count) {
        const uint32_t held_end = s->held_first + s->held_count;
        const uint32_t keep = held_end > start ? held_end - start : 0;
        memmove(s->rows, s->rows + (size_t)(s->held_count - keep) * s->width, (size_t)keep * s->width);
        s->held_first = start;
        s->held_count = keep;
    }
    for (uint32_t y = s->held_first + s->held_count; y < start + length; y++, s->held_count++)
        resize_row(s, j, y, s->rows + (size_t)s->held_count * s->width);
    return s->rows + (size_t)(start - s->held_first) * s->width;
}

static void strip_run(strip *s, const job *j) {
    for (uint32_t i = 0; i < j->row_count; i++) {
        const uint32_t y = j->first_row + i;
        uint8_t *target = j->target + i * j->stride + s->first;
        if (!j->resize_y) {
            resize_row(s, j, y, target);
            continue;
        }
        uint32_t start;
        const uint32_t length = make_taps(&j->y, y, &start, j->weight);
        if (j->resize_x)
            j->kernels->column(strip_rows(s, j, start, length), s->width, j->weight, length, s->width, target);
        else
            j->kernels->column(j->source->data + start * j->source->stride + s->first, j->source->stride, j->weight,
                               length, s->width, target);
    }
}

static uint32_t strip_width(const job *j, uint32_t width) {
    size_t column = 1;
    if (j->resize_x) /* the weights twice: as they are and packed */
        column += (size_t)j->x.longest * 2 * sizeof(int32_t);
    if (j->resize_x && j->resize_y)
        column += (size_t)j->y.longest * 3 / 2;
    size_t columns = STRIP_BYTES / column / MIN_STRIP * MIN_STRIP;
    if (columns < MIN_STRIP)
        columns = MIN_STRIP;
    return columns < width ? (uint32_t)columns : width;
}

static lns_status run_strips(const job *j, uint32_t width) {
    const uint32_t step = strip_width(j, width);
    for (uint32_t first = 0; first < width; first += step) {
        strip s = {.first = first, .width = width - first < step ? width - first : step};
        const lns_status status = strip_init(&s, j);
        if (status == LNS_OK)
            strip_run(&s, j);
        strip_free(&s);
        if (status != LNS_OK)
            return status;
    }
    return LNS_OK;
}

/* Along x, one pixel becomes equal pixels; doing it last saves the most where a picture is thin and very tall. */
static lns_status widen_column(const job *j, uint32_t width) {
    job column = *j;
    column.resize_x = 0;
    const lns_status status = run_strips(&column, 1);
    for (uint32_t i = 0; i < j->row_count && status == LNS_OK; i++)
        memset(j->target + i * j->stride, j->target[i * j->stride], width);
    return status;
}

lns_status lns_resize_rows(const lns_plane *source, uint32_t width, uint32_t height, lns_cpu_level level,
                           uint32_t first_row, uint32_t row_count, uint8_t *target, size_t stride) {
    job j = {
        .source = source,
        .kernels = kernels_for(level),
        .x = make_axis(source->width, width),
        .y = make_axis(source->height, height),
        .resize_x = source->width != width,
        .resize_y = source->height != height,
        .first_row = first_row,
        .row_count = row_count,
        .target = target,
        .stride = stride,
    };
    if (!j.resize_x && !j.resize_y) {
        for (uint32_t i = 0; i < row_count; i++)
            memcpy(target + i * stride, source->data + (first_row + i) * source->stride, width);
        return LNS_OK;
    }
    j.weight = lns_alloc_array(j.y.longest, sizeof *j.weight);
    if (j.weight == NULL)
        return lns_fail_memory(j.y.longest * sizeof *j.weight);
    const int column = source->width == 1 && j.resize_y;
    const lns_status status = column ? widen_column(&j, width) : run_strips(&j, width);
    lns_free(j.weight);
    return status;
}

lns_status lns_plane_resize(const lns_plane *plane, uint32_t width, uint32_t height, lns_plane **resized) {
    if (resized == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_resize: resized must not be NULL");
    *resized = NULL;
    if (plane == NULL || plane->data == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_resize: plane must not be NULL");
    if (plane->width == 0 || plane->height == 0 || plane->width > INT32_MAX || plane->height > INT32_MAX)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_resize: plane of %u x %u; each must be 1..%d",
                        plane->width, plane->height, INT32_MAX);
    if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_plane_resize: new size %u x %u; each must be 1..%d", width,
                        height, INT32_MAX);
    lns_cpu_level level;
    lns_status status = lns_cpu_choose_level(&level);
    lns_plane *made = NULL;
    if (status == LNS_OK)
        status = lns_plane_create(width, height, 0, plane->format, &made);
    if (status == LNS_OK)
        status = lns_resize_rows(plane, width, height, level, 0, height, made->data, made->stride);
    if (status != LNS_OK) {
        lns_plane_close(&made);
        return status;
    }
    made->exif_orientation = plane->exif_orientation;
    *resized = made;
    return LNS_OK;
}
