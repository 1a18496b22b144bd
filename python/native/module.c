/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

/* ---- Helpers ---------------------------------------------------------------------------------------------------- */

static PyObject *raise_with(const lns_py_state *state, const char *status, PyObject *message, bool weights) {
    if (message == NULL)
        return NULL;
    PyObject *error = PyObject_CallFunction(state->from_status, "sOO", status, message, weights ? Py_True : Py_False);
    Py_DECREF(message);
    if (error == NULL)
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return NULL;
}

PyObject *lns_py_raise(const lns_py_state *state, lns_status status, lns_py_subject subject) {
    const char *text = lns_error_message();
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    return raise_with(state, lns_status_name(status), message, subject == LNS_PY_WEIGHTS);
}

PyObject *lns_py_raise_closed(const lns_py_state *state, const char *message) {
    return raise_with(state, "closed", PyUnicode_FromString(message), false);
}

void *lns_py_new(PyTypeObject *type) {
    return PyType_GenericAlloc(type, 0);
}

void lns_py_free(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

int lns_py_text_or_none(PyObject *object, void *text) {
    char *bytes = NULL;
    if (object != Py_None && PyBytes_AsStringAndSize(object, &bytes, NULL) != 0)
        return 0;
    *(const char **)text = bytes;
    return 1;
}

PyObject *lns_py_path_or_none(const char *path) {
    return path != NULL ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
}

PyObject *lns_py_take_bytes(void *buffer, size_t size) {
    PyObject *bytes = PyBytes_FromStringAndSize(buffer, (Py_ssize_t)size);
    lns_buffer_free(buffer);
    return bytes;
}

PyObject *lns_py_save_file(PyObject *module, PyObject *arguments) {
    const char *path;
    PyObject *data;
    if (!PyArg_ParseTuple(arguments, "yS:save_file", &path, &data))
        return NULL;
    const char *bytes = PyBytes_AsString(data);
    const size_t size = (size_t)PyBytes_Size(data);
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_file_save(path, bytes, size);
    Py_END_ALLOW_THREADS
    if (status != LNS_OK)
        return lns_py_raise(lns_py_state_of(module), status, LNS_PY_IMAGE);
    Py_RETURN_NONE;
}

/* ---- The module ------------------------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"read_plane", lns_py_read_plane, METH_VARARGS, NULL},
    {"decode_plane", lns_py_decode_plane, METH_VARARGS, NULL},
    {"plane_from_pixels", lns_py_plane_from_pixels, METH_O, NULL},
    {"open_model", lns_py_open_model, METH_VARARGS, NULL},
    {"fetch_weights", lns_py_fetch_weights, METH_O, NULL},
    {"make_features", lns_py_make_features, METH_VARARGS, NULL},
    {"features_to_json", lns_py_features_to_json, METH_VARARGS, NULL},
    {"features_to_npz", lns_py_features_to_npz, METH_O, NULL},
    {"draw_keypoints", lns_py_draw_keypoints, METH_VARARGS, NULL},
    {"draw_matches", lns_py_draw_matches, METH_VARARGS, NULL},
    {"match", lns_py_match, METH_VARARGS, NULL},
    {"create_hdf5", lns_py_create_hdf5, METH_O, NULL},
    {"save_file", lns_py_save_file, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static bool add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type != NULL && PyModule_AddType(module, *type) == 0;
}

static bool add_types(PyObject *module) {
    lns_py_state *state = lns_py_state_of(module);
    return add_type(module, &lns_py_block_spec, &state->block) && add_type(module, &lns_py_plane_spec, &state->plane) &&
           add_type(module, &lns_py_features_spec, &state->features) &&
           add_type(module, &lns_py_matches_spec, &state->matches) &&
           add_type(module, &lns_py_model_spec, &state->model) && add_type(module, &lns_py_hdf5_spec, &state->hdf5);
}

/* Takes the value over; NULL is an exception that stands. */
static bool add_object(PyObject *module, const char *name, PyObject *value) {
    const bool added = value != NULL && PyModule_AddObjectRef(module, name, value) == 0;
    Py_XDECREF(value);
    return added;
}

static bool add_constants(PyObject *module) {
    return add_object(module, "DEFAULT_MAX_PIXELS", PyLong_FromUnsignedLongLong(LNS_DEFAULT_MAX_PIXELS)) &&
           add_object(module, "BUILTIN_WEIGHTS", lns_py_path_or_none(lns_weights_builtin())) &&
           PyModule_AddIntConstant(module, "MAX_KEYPOINTS_LIMIT", LNS_MAX_KEYPOINTS_LIMIT) == 0 &&
           PyModule_AddIntConstant(module, "NMS_RADIUS_LIMIT", LNS_NMS_RADIUS_LIMIT) == 0 &&
           PyModule_AddStringConstant(module, "VERSION", lns_version()) == 0 &&
           PyModule_AddStringConstant(module, "BUILD", lns_build_description()) == 0 &&
           PyModule_AddStringConstant(module, "DEFAULT_REPOSITORY", LNS_DEFAULT_REPOSITORY) == 0;
}

static int start(PyObject *module) {
    PyObject *errors = PyImport_ImportModule("lensing._errors");
    if (errors == NULL)
        return -1;
    lns_py_state_of(module)->from_status = PyObject_GetAttrString(errors, "from_status");
    Py_DECREF(errors);
    if (lns_py_state_of(module)->from_status == NULL)
        return -1;
    return add_types(module) && add_constants(module) ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    lns_py_state *state = lns_py_state_of(module);
    Py_VISIT(state->from_status);
    Py_VISIT(state->block);
    Py_VISIT(state->plane);
    Py_VISIT(state->features);
    Py_VISIT(state->matches);
    Py_VISIT(state->model);
    Py_VISIT(state->hdf5);
    return 0;
}

static int clear(PyObject *module) {
    lns_py_state *state = lns_py_state_of(module);
    Py_CLEAR(state->from_status);
    Py_CLEAR(state->block);
    Py_CLEAR(state->plane);
    Py_CLEAR(state->features);
    Py_CLEAR(state->matches);
    Py_CLEAR(state->model);
    Py_CLEAR(state->hdf5);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, start},
#ifdef Py_mod_gil
    /* Only in builds without the limited API, which Python without a global lock needs. */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "lensing._native",
    .m_size = sizeof(lns_py_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void) {
    return PyModuleDef_Init(&definition);
}
