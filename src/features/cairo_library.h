/* SPDX-License-Identifier: Apache-2.0 */
/* cairo, loaded when it is first needed. */
#ifndef LENSING_FEATURES_CAIRO_LIBRARY_H
#define LENSING_FEATURES_CAIRO_LIBRARY_H

#include <cairo.h>

#include <lensing/status.h>

#define LNS_CAIRO_FUNCTIONS(_)                                                                                         \
    _(arc)                                                                                                             \
    _(create)                                                                                                          \
    _(destroy)                                                                                                         \
    _(fill_preserve)                                                                                                   \
    _(image_surface_create)                                                                                            \
    _(image_surface_get_data)                                                                                          \
    _(image_surface_get_stride)                                                                                        \
    _(line_to)                                                                                                         \
    _(move_to)                                                                                                         \
    _(new_path)                                                                                                        \
    _(set_line_width)                                                                                                  \
    _(set_source_rgb)                                                                                                  \
    _(set_source_rgba)                                                                                                 \
    _(status)                                                                                                          \
    _(status_to_string)                                                                                                \
    _(stroke)                                                                                                          \
    _(stroke_preserve)                                                                                                 \
    _(surface_destroy)                                                                                                 \
    _(surface_flush)                                                                                                   \
    _(surface_mark_dirty)                                                                                              \
    _(surface_status)                                                                                                  \
    _(surface_write_to_png_stream)

/* cairo_arc() is lns_cairo.arc() here, and so on. */
typedef struct lns_cairo_functions {
#define DECLARE(name) __typeof__(cairo_##name) *name;
    LNS_CAIRO_FUNCTIONS(DECLARE)
#undef DECLARE
} lns_cairo_functions;

/* To be used after a successful lns_cairo_load() only. */
extern lns_cairo_functions lns_cairo;

lns_status lns_cairo_load(void);

#endif
