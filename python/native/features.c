/* SPDX-License-Identifier: Apache-2.0 */
/* The result of one detection, and its files and pictures. */
#include "native.h"

typedef struct features {
    PyObject_HEAD
    lns_features *features;
} features;

const lns_features *lns_py_features(PyObject *object) {
    return ((features *)object)->features;
}

PyObject *lns_py_features_new(const lns_py_state *state, lns_features *made) {
    features *object = lns_py_new(state->features);
    if (object == NULL) {
        lns_features_close(&made);
        return NULL;
    }
    object->features = made;
    return (PyObject *)object;
}

static void features_dealloc(PyObject *self) {
    lns_features_close(&((features *)self)->features);
    lns_py_free(self);
}

static Py_ssize_t features_length(PyObject *self) {
    return (Py_ssize_t)lns_py_features(self)->count;
}

/* ---- Arrays ----------------------------------------------------------------------------------------------------- */

/* `columns` floats for each keypoint; 0: a single one. */
static PyObject *floats(PyObject *self, const float *data, Py_ssize_t columns) {
    const Py_ssize_t size = sizeof(float);
    const lns_py_layout layout = {
        .data = data,
        .format = "f",
        .itemsize = size,
        .dimensions = columns > 0 ? 2 : 1,
        .shape = {features_length(self), columns},
        .strides = {columns > 0 ? columns * size : size, size},
    };
    return lns_py_block(lns_py_state_of_object(self), self, &layout);
}

static PyObject *get_keypoints(PyObject *self, void *closure) {
    (void)closure;
    return floats(self, lns_py_features(self)->keypoints, 2);
}

static PyObject *get_network_keypoints(PyObject *self, void *closure) {
    (void)closure;
    return floats(self, lns_py_features(self)->network_keypoints, 2);
}

static PyObject *get_scores(PyObject *self, void *closure) {
    (void)closure;
    return floats(self, lns_py_features(self)->scores, 0);
}

static PyObject *get_descriptors(PyObject *self, void *closure) {
    (void)closure;
    if (lns_py_features(self)->descriptors == NULL)
        Py_RETURN_NONE;
    return floats(self, lns_py_features(self)->descriptors, LNS_DESCRIPTOR_SIZE);
}

/* ---- Facts ------------------------------------------------------------------------------------------------------ */

static PyObject *get_facts(PyObject *self, void *closure) {
    (void)closure;
    const lns_features *f = lns_py_features(self);
    return Py_BuildValue("{sI sI si sd si si sO sd sd sd sN sN}",                    //
                         "image_width", (unsigned)f->image_width,                    //
                         "image_height", (unsigned)f->image_height,                  //
                         "max_keypoints", (int)f->max_keypoints,                     //
                         "keypoint_threshold", f->keypoint_threshold,                //
                         "nms_radius", (int)f->nms_radius,                           //
                         "border_removal_distance", (int)f->border_removal_distance, //
                         "device_nms", f->device_nms ? Py_True : Py_False,           //
                         "preprocess", f->timing_ms.preprocess,                      //
                         "forward", f->timing_ms.forward,                            //
                         "postprocess", f->timing_ms.postprocess,                    //
                         "weights", lns_py_path_or_none(f->weights),                 //
                         "license", lns_py_path_or_none(f->license));
}

static bool take_facts(PyObject *facts, lns_features *f) {
    static char *names[] = {
        "image_width", "image_height", "max_keypoints", "keypoint_threshold", "nms_radius", "border_removal_distance",
        "device_nms",  "preprocess",   "forward",       "postprocess",        "weights",    "license",
        NULL};
    unsigned width = 0, height = 0;
    int max_keypoints = 0, nms_radius = 0, border = 0, device_nms = 0;
    PyObject *none = PyTuple_New(0);
    const bool parsed = none != NULL && PyArg_ParseTupleAndKeywords(
                                            none, facts, "IIidiipdddO&O&:make_features", names, &width, &height,
                                            &max_keypoints, &f->keypoint_threshold, &nms_radius, &border, &device_nms,
                                            &f->timing_ms.preprocess, &f->timing_ms.forward, &f->timing_ms.postprocess,
                                            lns_py_text_or_none, &f->weights, lns_py_text_or_none, &f->license);
    Py_XDECREF(none);
    f->image_width = width;
    f->image_height = height;
    f->scale_x = (double)width / LNS_NETWORK_WIDTH;
    f->scale_y = (double)height / LNS_NETWORK_HEIGHT;
    f->max_keypoints = max_keypoints;
    f->nms_radius = nms_radius;
    f->border_removal_distance = border;
    f->device_nms = device_nms;
    return parsed;
}

/* ---- From arrays again ------------------------------------------------------------------------------------------ */

typedef struct arrays {
    Py_buffer keypoints, network_keypoints, scores, descriptors; /* descriptors.obj is NULL when there are none */
} arrays;

static void release_arrays(arrays *a) {
    PyBuffer_Release(&a->keypoints);
    PyBuffer_Release(&a->network_keypoints);
    PyBuffer_Release(&a->scores);
    PyBuffer_Release(&a->descriptors);
}

static lns_status copy_arrays(const arrays *a, lns_features *source, lns_features **made) {
    source->keypoints = a->keypoints.buf;
    source->network_keypoints = a->network_keypoints.buf;
    source->scores = a->scores.buf;
    source->descriptors = a->descriptors.obj != NULL ? a->descriptors.buf : NULL;
    return lns_features_copy(source, made);
}

static bool fit(const arrays *a, size_t count) {
    const size_t one = count * sizeof(float);
    return (size_t)a->scores.len == one && (size_t)a->keypoints.len == 2 * one &&
           (size_t)a->network_keypoints.len == 2 * one &&
           (a->descriptors.obj == NULL || (size_t)a->descriptors.len == LNS_DESCRIPTOR_SIZE * one);
}

PyObject *lns_py_make_features(PyObject *module, PyObject *arguments) {
    arrays a = {0};
    PyObject *facts;
    lns_features source = {0};
    /* y* leaves what it did not fill, z* sets obj to NULL for None. */
    if (!PyArg_ParseTuple(arguments, "y*y*y*z*O!:make_features", &a.keypoints, &a.network_keypoints, &a.scores,
                          &a.descriptors, &PyDict_Type, &facts))
        return NULL;
    PyObject *result = NULL;
    source.count = (size_t)a.scores.len / sizeof(float);
    if (!fit(&a, source.count)) {
        PyErr_SetString(PyExc_ValueError, "the arrays are not of the same number of keypoints");
    } else if (take_facts(facts, &source)) {
        lns_features *made = NULL;
        const lns_status status = copy_arrays(&a, &source, &made);
        result = status == LNS_OK ? lns_py_features_new(lns_py_state_of(module), made)
                                  : lns_py_raise(lns_py_state_of(module), status, LNS_PY_IMAGE);
    }
    release_arrays(&a);
    return result;
}

/* ---- Files and pictures ----------------------------------------------------------------------------------------- */

PyObject *lns_py_features_to_json(PyObject *module, PyObject *arguments) {
    const lns_py_state *state = lns_py_state_of(module);
    PyObject *object;
    lns_json_options options;
    lns_json_options_init(&options);
    options.weights = 1;
    if (!PyArg_ParseTuple(arguments, "O!O&p:features_to_json", state->features, &object, lns_py_text_or_none,
                          &options.file, &options.descriptors))
        return NULL;
    char *text = NULL;
    size_t size = 0;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_features_to_json(lns_py_features(object), &options, &text, &size);
    Py_END_ALLOW_THREADS
    return status == LNS_OK ? lns_py_take_bytes(text, size) : lns_py_raise(state, status, LNS_PY_IMAGE);
}

PyObject *lns_py_features_to_npz(PyObject *module, PyObject *object) {
    const lns_py_state *state = lns_py_state_of(module);
    if (!Py_IS_TYPE(object, state->features)) {
        PyErr_SetString(PyExc_TypeError, "features_to_npz: not Features");
        return NULL;
    }
    void *bytes = NULL;
    size_t size = 0;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_features_to_npz(lns_py_features(object), &bytes, &size);
    Py_END_ALLOW_THREADS
    return status == LNS_OK ? lns_py_take_bytes(bytes, size) : lns_py_raise(state, status, LNS_PY_IMAGE);
}

PyObject *lns_py_draw_keypoints(PyObject *module, PyObject *arguments) {
    const lns_py_state *state = lns_py_state_of(module);
    PyObject *plane, *object;
    if (!PyArg_ParseTuple(arguments, "O!O!:draw_keypoints", state->plane, &plane, state->features, &object))
        return NULL;
    void *png = NULL;
    size_t size = 0;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_draw_keypoints(lns_py_plane(plane), lns_py_features(object), &png, &size);
    Py_END_ALLOW_THREADS
    return status == LNS_OK ? lns_py_take_bytes(png, size) : lns_py_raise(state, status, LNS_PY_IMAGE);
}

/* ---- The type --------------------------------------------------------------------------------------------------- */

PyType_Spec lns_py_features_spec = {
    .name = "lensing._native.Features",
    .basicsize = sizeof(features),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots =
        (PyType_Slot[]){
            {Py_tp_dealloc, features_dealloc},
            {Py_sq_length, features_length},
            {Py_tp_getset,
             (PyGetSetDef[]){
                 {"keypoints", get_keypoints, NULL, NULL, NULL},
                 {"network_keypoints", get_network_keypoints, NULL, NULL, NULL},
                 {"scores", get_scores, NULL, NULL, NULL},
                 {"descriptors", get_descriptors, NULL, NULL, NULL},
                 {"facts", get_facts, NULL, NULL, NULL},
                 {NULL, NULL, NULL, NULL, NULL},
             }},
            {0, NULL},
        },
};
