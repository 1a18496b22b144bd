/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module lensing._native: the C library as Python objects. It checks what memory depends on; names,
 * defaults and further checks of arguments are those of the Python modules around it.
 *
 * Limited API of Python 3.11, the first that has buffers: one module for all later versions. Everything that Python
 * must know is in the state of the module, so every interpreter has its own. */
#ifndef LENSING_PYTHON_NATIVE_H
#define LENSING_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <lensing/lensing.h>

typedef struct lns_py_state {
    PyObject *from_status; /* lensing._errors.from_status */
    PyTypeObject *block;
    PyTypeObject *plane;
    PyTypeObject *features;
    PyTypeObject *matches;
    PyTypeObject *model;
    PyTypeObject *hdf5;
} lns_py_state;

static inline lns_py_state *lns_py_state_of(PyObject *module) {
    return PyModule_GetState(module);
}

/* For instances of the types of this module, which have no subclasses. */
static inline lns_py_state *lns_py_state_of_object(PyObject *object) {
    return PyType_GetModuleState(Py_TYPE(object));
}

/* What the last failed call of the library is about, when it is not the argument: damaged weights have the same status
 * as a damaged image. */
typedef enum lns_py_subject { LNS_PY_IMAGE, LNS_PY_WEIGHTS } lns_py_subject;

/* Raises the exception for a status, with the library's message of this thread. Returns NULL. */
PyObject *lns_py_raise(const lns_py_state *state, lns_status status, lns_py_subject subject);
/* Raises ClosedError. Returns NULL. */
PyObject *lns_py_raise_closed(const lns_py_state *state, const char *message);

/* A new object without its own fields set, which are zero. */
void *lns_py_new(PyTypeObject *type);
/* What every dealloc function ends with. */
void lns_py_free(PyObject *object);
/* Converter of PyArg_ParseTuple ("O&"): bytes without NUL, or None, to a `const char *`. */
int lns_py_text_or_none(PyObject *object, void *text);
/* A path as Python has it, or None for NULL. */
PyObject *lns_py_path_or_none(const char *path);
/* Takes a buffer that the library made, also on error: bytes, or NULL with an exception. */
PyObject *lns_py_take_bytes(void *buffer, size_t size);

/* ---- Memory of results ------------------------------------------------------------------------------------------ */

/* Shape of memory that belongs to an object. */
typedef struct lns_py_layout {
    const void *data;
    const char *format;  /* of one item, as in the struct module */
    Py_ssize_t itemsize; /* bytes */
    int dimensions;      /* 1 or 2 */
    Py_ssize_t shape[2];
    Py_ssize_t strides[2]; /* bytes */
} lns_py_layout;

/* A buffer over memory of `owner`, which it keeps alive. */
PyObject *lns_py_block(const lns_py_state *state, PyObject *owner, const lns_py_layout *layout);

/* ---- Objects ---------------------------------------------------------------------------------------------------- */

const lns_plane *lns_py_plane(PyObject *object);
const lns_features *lns_py_features(PyObject *object);
/* Takes the result over, also on error. */
PyObject *lns_py_features_new(const lns_py_state *state, lns_features *features);

extern PyType_Spec lns_py_block_spec, lns_py_plane_spec, lns_py_features_spec, lns_py_matches_spec, lns_py_model_spec,
    lns_py_hdf5_spec;

/* ---- Functions of the module: arguments as in _native.pyi -------------------------------------------------------- */

PyObject *lns_py_read_plane(PyObject *module, PyObject *arguments);
PyObject *lns_py_decode_plane(PyObject *module, PyObject *arguments);
PyObject *lns_py_plane_from_pixels(PyObject *module, PyObject *pixels);
PyObject *lns_py_open_model(PyObject *module, PyObject *arguments);
PyObject *lns_py_fetch_weights(PyObject *module, PyObject *repository);
PyObject *lns_py_make_features(PyObject *module, PyObject *arguments);
PyObject *lns_py_features_to_json(PyObject *module, PyObject *arguments);
PyObject *lns_py_features_to_npz(PyObject *module, PyObject *features);
PyObject *lns_py_draw_keypoints(PyObject *module, PyObject *arguments);
PyObject *lns_py_draw_matches(PyObject *module, PyObject *arguments);
PyObject *lns_py_match(PyObject *module, PyObject *arguments);
PyObject *lns_py_create_hdf5(PyObject *module, PyObject *path);
PyObject *lns_py_save_file(PyObject *module, PyObject *arguments);

#endif
