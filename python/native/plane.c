/* SPDX-License-Identifier: Apache-2.0 */
/* The R plane of an image: decoded, or over the memory of an array. */
#include "native.h"

#include <stdlib.h>
#include <structmember.h>

typedef struct plane {
    PyObject_HEAD
    const lns_plane *plane; /* `decoded` or `own` */
    lns_plane *decoded;
    lns_plane own;
    uint8_t *copy;
    Py_buffer borrowed; /* of `own`; obj is NULL when there is none */
    unsigned width, height;
} plane;

const lns_plane *lns_py_plane(PyObject *object) {
    return ((plane *)object)->plane;
}

static void plane_dealloc(PyObject *self) {
    plane *p = (plane *)self;
    lns_plane_close(&p->decoded);
    free(p->copy);
    PyBuffer_Release(&p->borrowed);
    lns_py_free(self);
}

static PyObject *finish(plane *p, const lns_plane *made) {
    p->plane = made;
    p->width = made->width;
    p->height = made->height;
    return (PyObject *)p;
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

/* Options of decoding from a bool and a Python int, which may be any. */
static bool take_options(int apply_exif, PyObject *max_pixels, lns_image_options *options) {
    lns_image_options_init(options);
    options->exif = apply_exif ? LNS_EXIF_APPLY : LNS_EXIF_IGNORE;
    options->max_pixels = PyLong_AsUnsignedLongLong(max_pixels);
    return !PyErr_Occurred();
}

static PyObject *take_decoded(const lns_py_state *state, lns_status status, lns_plane *decoded) {
    if (status != LNS_OK)
        return lns_py_raise(state, status, LNS_PY_IMAGE);
    plane *made = lns_py_new(state->plane);
    if (made == NULL) {
        lns_plane_close(&decoded);
        return NULL;
    }
    made->decoded = decoded;
    return finish(made, decoded);
}

PyObject *lns_py_read_plane(PyObject *module, PyObject *arguments) {
    const char *path;
    int apply_exif;
    PyObject *max_pixels;
    lns_image_options options;
    if (!PyArg_ParseTuple(arguments, "ypO!:read_plane", &path, &apply_exif, &PyLong_Type, &max_pixels) ||
        !take_options(apply_exif, max_pixels, &options))
        return NULL;
    lns_plane *decoded = NULL;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_plane_read(path, &options, &decoded);
    Py_END_ALLOW_THREADS
    return take_decoded(lns_py_state_of(module), status, decoded);
}

PyObject *lns_py_decode_plane(PyObject *module, PyObject *arguments) {
    Py_buffer data;
    int apply_exif;
    PyObject *max_pixels;
    lns_image_options options;
    if (!PyArg_ParseTuple(arguments, "y*pO!:decode_plane", &data, &apply_exif, &PyLong_Type, &max_pixels))
        return NULL;
    PyObject *result = NULL;
    if (take_options(apply_exif, max_pixels, &options)) {
        lns_plane *decoded = NULL;
        lns_status status;
        Py_BEGIN_ALLOW_THREADS
        status = lns_plane_decode(data.buf, (size_t)data.len, &options, &decoded);
        Py_END_ALLOW_THREADS
        result = take_decoded(lns_py_state_of(module), status, decoded);
    }
    PyBuffer_Release(&data);
    return result;
}

/* ---- Arrays ----------------------------------------------------------------------------------------------------- */

static bool is_plane(const Py_buffer *pixels) {
    return pixels->ndim == 2 && pixels->itemsize == 1 && (pixels->format == NULL || strcmp(pixels->format, "B") == 0) &&
           pixels->shape[0] >= 1 && pixels->shape[1] >= 1 && pixels->shape[0] <= INT32_MAX &&
           pixels->shape[1] <= INT32_MAX;
}

/* Bytes that lie side by side in rows that do not overlap need no copy. */
static bool borrow(plane *p) {
    const Py_buffer *pixels = &p->borrowed;
    const Py_ssize_t height = pixels->shape[0], width = pixels->shape[1];
    const bool one_row = height == 1;
    if ((width > 1 && pixels->strides[1] != 1) || (!one_row && pixels->strides[0] < width))
        return false;
    p->own.data = pixels->buf;
    p->own.stride = (size_t)(one_row ? width : pixels->strides[0]);
    return true;
}

static void gather(const Py_buffer *pixels, uint8_t *to) {
    const Py_ssize_t step = pixels->strides[1];
    for (Py_ssize_t y = 0; y < pixels->shape[0]; y++) {
        const uint8_t *from = (const uint8_t *)pixels->buf + y * pixels->strides[0];
        for (Py_ssize_t x = 0; x < pixels->shape[1]; x++)
            to[x] = from[x * step];
        to += pixels->shape[1];
    }
}

static bool copy(plane *p) {
    const size_t width = (size_t)p->borrowed.shape[1];
    p->copy = malloc(width * (size_t)p->borrowed.shape[0]);
    if (p->copy == NULL) {
        PyErr_NoMemory();
        return false;
    }
    Py_BEGIN_ALLOW_THREADS
    gather(&p->borrowed, p->copy);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&p->borrowed);
    p->own.data = p->copy;
    p->own.stride = width;
    return true;
}

PyObject *lns_py_plane_from_pixels(PyObject *module, PyObject *pixels) {
    plane *made = lns_py_new(lns_py_state_of(module)->plane);
    if (made == NULL)
        return NULL;
    if (PyObject_GetBuffer(pixels, &made->borrowed, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0)
        goto failed;
    if (!is_plane(&made->borrowed)) {
        PyErr_SetString(PyExc_ValueError, "the pixels must be uint8 of shape (H, W), at least 1 x 1");
        goto failed;
    }
    made->own.height = (uint32_t)made->borrowed.shape[0];
    made->own.width = (uint32_t)made->borrowed.shape[1];
    made->own.exif_orientation = 1;
    if (!borrow(made) && !copy(made))
        goto failed;
    return finish(made, &made->own);
failed:
    Py_DECREF(made);
    return NULL;
}

/* ---- The type --------------------------------------------------------------------------------------------------- */

PyType_Spec lns_py_plane_spec = {
    .name = "lensing._native.Plane",
    .basicsize = sizeof(plane),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots =
        (PyType_Slot[]){
            {Py_tp_dealloc, plane_dealloc},
            {Py_tp_members,
             (PyMemberDef[]){
                 {"width", T_UINT, offsetof(plane, width), READONLY, NULL},
                 {"height", T_UINT, offsetof(plane, height), READONLY, NULL},
                 {NULL, 0, 0, 0, NULL},
             }},
            {0, NULL},
        },
};
