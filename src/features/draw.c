/* SPDX-License-Identifier: Apache-2.0 */
#include <lensing/features.h>

#include "base/error.h"
#include "lensing_config.h"

#if LNS_HAVE_CAIRO

#include <math.h>

#include "base/memory.h"
#include "features/buffer.h"
#include "features/cairo_library.h"

/* Longer side of a drawing of one picture and of two. cairo's surfaces end at 32767; but a screen shows no more than
 * this, and packing a PNG takes far longer than everything else. */
#define SIDE_LIMIT 2560
#define PAIR_LIMIT 4096

/* A small picture beside a large one is enlarged to its height, but not more than this. */
#define ENLARGE_LIMIT 4.0

#define FULL_CIRCLE 6.283185307179586

typedef struct colour {
    double red, green, blue;
} colour;

/* From deep blue over green and yellow to red, with rising lightness up to yellow: weak points recede, strong ones
 * stand out, and the order survives most kinds of colour blindness. */
static const colour ramp[] = {
    {0.16, 0.24, 0.76}, {0.09, 0.50, 0.86}, {0.10, 0.72, 0.74}, {0.36, 0.83, 0.45},
    {0.76, 0.88, 0.26}, {0.99, 0.83, 0.18}, {0.99, 0.58, 0.16}, {0.93, 0.22, 0.20},
};

static colour ramp_colour(double position) {
    const size_t steps = sizeof ramp / sizeof *ramp - 1;
    const double place = fmin(1, fmax(0, position)) * (double)steps;
    const size_t low = place >= (double)steps ? steps - 1 : (size_t)place;
    const double share = place - (double)low;
    const colour *a = &ramp[low];
    const colour *b = &ramp[low + 1];
    return (colour){
        a->red + share * (b->red - a->red),
        a->green + share * (b->green - a->green),
        a->blue + share * (b->blue - a->blue),
    };
}

/* Where a picture lies in the drawing. */
typedef struct frame {
    uint32_t width, height; /* pixels of the drawing */
    double left;
    double scale_x, scale_y; /* pixels of the drawing for one of the picture */
} frame;

static frame make_frame(const lns_plane *plane, double scale, double left) {
    const uint32_t width = (uint32_t)fmax(1, round(plane->width * scale));
    const uint32_t height = (uint32_t)fmax(1, round(plane->height * scale));
    return (frame){width, height, left, (double)width / plane->width, (double)height / plane->height};
}

/* Keypoints count from the centre of the first pixel, cairo from its corner. */
static void place(const frame *f, const float *keypoint, double *x, double *y) {
    *x = f->left + ((double)keypoint[0] + 0.5) * f->scale_x;
    *y = ((double)keypoint[1] + 0.5) * f->scale_y;
}

/* Size of one unit of all lines and circles: they stay visible when a large picture is shown small. */
static double unit_of(uint32_t width, uint32_t height) {
    const uint32_t side = width > height ? width : height;
    return fmax(1, side / 900.0);
}

static lns_status surface_failed(cairo_status_t status) {
    if (status == CAIRO_STATUS_NO_MEMORY)
        return lns_fail(LNS_ERROR_OUT_OF_MEMORY, "out of memory while drawing");
    return lns_fail(LNS_ERROR_SYSTEM, "cannot draw: %s", lns_cairo.status_to_string(status));
}

static void copy_gray(const lns_plane *plane, cairo_surface_t *surface, uint32_t left) {
    lns_cairo.surface_flush(surface);
    unsigned char *pixels = lns_cairo.image_surface_get_data(surface);
    const size_t stride = (size_t)lns_cairo.image_surface_get_stride(surface);
    for (uint32_t y = 0; y < plane->height; y++) {
        uint32_t *to = (uint32_t *)(void *)(pixels + y * stride) + left;
        const uint8_t *from = plane->data + y * plane->stride;
        for (uint32_t x = 0; x < plane->width; x++)
            to[x] = from[x] * UINT32_C(0x010101);
    }
    lns_cairo.surface_mark_dirty(surface);
}

static lns_status paint_plane(const lns_plane *plane, const frame *f, cairo_surface_t *surface) {
    if (plane->width == f->width && plane->height == f->height) {
        copy_gray(plane, surface, (uint32_t)f->left);
        return LNS_OK;
    }
    lns_plane *resized = NULL;
    const lns_status status = lns_plane_resize(plane, f->width, f->height, &resized);
    if (status == LNS_OK)
        copy_gray(resized, surface, (uint32_t)f->left);
    lns_plane_close(&resized);
    return status;
}

static void circle(cairo_t *context, double x, double y, double radius, double unit, colour c) {
    lns_cairo.new_path(context);
    lns_cairo.arc(context, x, y, radius, 0, FULL_CIRCLE);
    lns_cairo.set_source_rgba(context, 0, 0, 0, 0.55);
    lns_cairo.set_line_width(context, 2.9 * unit);
    lns_cairo.stroke_preserve(context);
    lns_cairo.set_source_rgb(context, c.red, c.green, c.blue);
    lns_cairo.set_line_width(context, 1.4 * unit);
    lns_cairo.stroke(context);
}

/* The strongest come last, on top. Scores crowd near zero; the root spreads them. */
static void draw_circles(cairo_t *context, const frame *f, const lns_features *features, double unit) {
    for (size_t i = features->count; i-- > 0;) {
        double x, y;
        const double strength = sqrt(fmin(1, fmax(0, (double)features->scores[i])));
        place(f, features->keypoints + 2 * i, &x, &y);
        circle(context, x, y, unit * (1.8 + 3.4 * strength), unit, ramp_colour(strength));
    }
}

static cairo_status_t add_png(void *context, const unsigned char *bytes, unsigned size) {
    lns_buffer *buffer = context;
    lns_buffer_add(buffer, bytes, size);
    return buffer->failed > 0 ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static lns_status encode_png(cairo_surface_t *surface, void **png, size_t *size) {
    lns_buffer buffer = {0};
    lns_cairo.surface_flush(surface);
    const cairo_status_t status = lns_cairo.surface_write_to_png_stream(surface, add_png, &buffer);
    if (status != CAIRO_STATUS_SUCCESS && buffer.failed == 0) {
        lns_buffer_drop(&buffer);
        return surface_failed(status);
    }
    return lns_buffer_take(&buffer, png, size);
}

/* A black surface and a context on it. */
static lns_status open_surface(uint32_t width, uint32_t height, cairo_surface_t **surface, cairo_t **context) {
    *surface = lns_cairo.image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    *context = lns_cairo.create(*surface);
    cairo_status_t status = lns_cairo.surface_status(*surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = lns_cairo.status(*context);
    return status == CAIRO_STATUS_SUCCESS ? LNS_OK : surface_failed(status);
}

static lns_status check_plane(const lns_plane *plane) {
    if (plane->data == NULL || plane->width == 0 || plane->height == 0)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "cannot draw: the picture has no pixels");
    return LNS_OK;
}

static double limit_scale(double width, double height) {
    return fmin(1, SIDE_LIMIT / fmax(width, height));
}

lns_status lns_draw_keypoints(const lns_plane *plane, const lns_features *features, void **png, size_t *size) {
    if (png != NULL)
        *png = NULL;
    if (size != NULL)
        *size = 0;
    if (plane == NULL || features == NULL || png == NULL || size == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_draw_keypoints: plane, features, png and size must not be NULL");
    lns_status status = check_plane(plane);
    if (status == LNS_OK)
        status = lns_cairo_load();
    if (status != LNS_OK)
        return status;
    const frame f = make_frame(plane, limit_scale(plane->width, plane->height), 0);
    cairo_surface_t *surface;
    cairo_t *context;
    status = open_surface(f.width, f.height, &surface, &context);
    if (status == LNS_OK)
        status = paint_plane(plane, &f, surface);
    if (status == LNS_OK) {
        draw_circles(context, &f, features, unit_of(f.width, f.height));
        status = encode_png(surface, png, size);
    }
    lns_cairo.destroy(context);
    lns_cairo.surface_destroy(surface);
    return status;
}

/* Both pictures at the same height, as far as that does not enlarge one too much, with a gap between them. */
static double arrange(const lns_plane *first, const lns_plane *second, frame *left, frame *right) {
    const double height = fmax(first->height, second->height);
    const double grow_first = fmin(ENLARGE_LIMIT, height / first->height);
    const double grow_second = fmin(ENLARGE_LIMIT, height / second->height);
    const double width = first->width * grow_first + second->width * grow_second;
    const double unit = unit_of((uint32_t)(fmin(PAIR_LIMIT, width) / 1.5), 1);
    const double gap = round(6 * unit);
    const double scale = fmin(1, fmin((PAIR_LIMIT - gap) / width, PAIR_LIMIT / height));
    *left = make_frame(first, grow_first * scale, 0);
    *right = make_frame(second, grow_second * scale, left->width + gap);
    return unit;
}

/* Matches of SuperPoint's descriptors that mean something are above this. */
#define LOW_SIMILARITY 0.5

static colour match_colour(float similarity) {
    const double above = fmax(0, ((double)similarity - LOW_SIMILARITY) / (1 - LOW_SIMILARITY));
    return ramp_colour(above * above); /* good matches crowd near 1 */
}

static void draw_lines(cairo_t *context, const frame *left, const lns_features *first, const frame *right,
                       const lns_features *second, const lns_matches *matches, double unit) {
    /* Many lines would cover the pictures: they let more through. */
    const double opacity = fmin(0.9, fmax(0.15, 7 / sqrt((double)matches->count + 1)));
    for (size_t i = 0; i < matches->count; i++) {
        const lns_match *m = &matches->items[i];
        const colour c = match_colour(m->similarity);
        double x1, y1, x2, y2;
        place(left, first->keypoints + 2 * (size_t)m->first, &x1, &y1);
        place(right, second->keypoints + 2 * (size_t)m->second, &x2, &y2);
        lns_cairo.move_to(context, x1, y1);
        lns_cairo.line_to(context, x2, y2);
        lns_cairo.set_source_rgba(context, c.red, c.green, c.blue, opacity);
        lns_cairo.set_line_width(context, 1.1 * unit);
        lns_cairo.stroke(context);
    }
}

static void dot(cairo_t *context, double x, double y, double unit, colour c) {
    lns_cairo.new_path(context);
    lns_cairo.arc(context, x, y, 2.2 * unit, 0, FULL_CIRCLE);
    lns_cairo.set_source_rgb(context, c.red, c.green, c.blue);
    lns_cairo.fill_preserve(context);
    lns_cairo.set_source_rgba(context, 0, 0, 0, 0.7);
    lns_cairo.set_line_width(context, 0.8 * unit);
    lns_cairo.stroke(context);
}

static void draw_ends(cairo_t *context, const frame *left, const lns_features *first, const frame *right,
                      const lns_features *second, const lns_matches *matches, double unit) {
    for (size_t i = 0; i < matches->count; i++) {
        const lns_match *m = &matches->items[i];
        double x, y;
        place(left, first->keypoints + 2 * (size_t)m->first, &x, &y);
        dot(context, x, y, unit, match_colour(m->similarity));
        place(right, second->keypoints + 2 * (size_t)m->second, &x, &y);
        dot(context, x, y, unit, match_colour(m->similarity));
    }
}

static lns_status check_matches(const lns_features *first, const lns_features *second, const lns_matches *matches) {
    for (size_t i = 0; i < matches->count; i++) {
        const lns_match *m = &matches->items[i];
        if (m->first >= first->count || m->second >= second->count)
            return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                            "match %zu joins keypoints %u and %u, but the pictures have %zu and %zu", i, m->first,
                            m->second, first->count, second->count);
    }
    return LNS_OK;
}

lns_status lns_draw_matches(const lns_plane *first_plane, const lns_features *first, const lns_plane *second_plane,
                            const lns_features *second, const lns_matches *matches, void **png, size_t *size) {
    if (png != NULL)
        *png = NULL;
    if (size != NULL)
        *size = 0;
    if (first_plane == NULL || first == NULL || second_plane == NULL || second == NULL || matches == NULL ||
        png == NULL || size == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_draw_matches: planes, features, matches, png and size must not be NULL");
    lns_status status = check_plane(first_plane);
    if (status == LNS_OK)
        status = check_plane(second_plane);
    if (status == LNS_OK)
        status = check_matches(first, second, matches);
    if (status == LNS_OK)
        status = lns_cairo_load();
    if (status != LNS_OK)
        return status;
    frame left, right;
    const double unit = arrange(first_plane, second_plane, &left, &right);
    cairo_surface_t *surface;
    cairo_t *context;
    const uint32_t width = (uint32_t)right.left + right.width;
    status = open_surface(width, left.height > right.height ? left.height : right.height, &surface, &context);
    if (status == LNS_OK)
        status = paint_plane(first_plane, &left, surface);
    if (status == LNS_OK)
        status = paint_plane(second_plane, &right, surface);
    if (status == LNS_OK) {
        draw_lines(context, &left, first, &right, second, matches, unit);
        draw_ends(context, &left, first, &right, second, matches, unit);
        status = encode_png(surface, png, size);
    }
    lns_cairo.destroy(context);
    lns_cairo.surface_destroy(surface);
    return status;
}

#else

static lns_status no_cairo(void **png, size_t *size) {
    if (png != NULL)
        *png = NULL;
    if (size != NULL)
        *size = 0;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "this build cannot draw pictures: it was made without cairo");
}

lns_status lns_draw_keypoints(const lns_plane *plane, const lns_features *features, void **png, size_t *size) {
    (void)plane;
    (void)features;
    return no_cairo(png, size);
}

lns_status lns_draw_matches(const lns_plane *first_plane, const lns_features *first, const lns_plane *second_plane,
                            const lns_features *second, const lns_matches *matches, void **png, size_t *size) {
    (void)first_plane;
    (void)first;
    (void)second_plane;
    (void)second;
    (void)matches;
    return no_cairo(png, size);
}

#endif
