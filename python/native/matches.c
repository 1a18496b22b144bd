/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of keypoints of two images. */
#include "native.h"

typedef struct matches {
    PyObject_HEAD
    lns_matches *matches;
} matches;

static const lns_matches *matches_of(PyObject *object) {
    return ((matches *)object)->matches;
}

static void matches_dealloc(PyObject *self) {
    lns_matches_close(&((matches *)self)->matches);
    lns_py_free(self);
}

static Py_ssize_t matches_length(PyObject *self) {
    return (Py_ssize_t)matches_of(self)->count;
}

static PyObject *get_pairs(PyObject *self, void *closure) {
    (void)closure;
    const lns_py_layout layout = {
        .data = matches_of(self)->items,
        .format = "I",
        .itemsize = sizeof(uint32_t),
        .dimensions = 2,
        .shape = {matches_length(self), 2},
        .strides = {sizeof(lns_match), offsetof(lns_match, second) - offsetof(lns_match, first)},
    };
    return lns_py_block(lns_py_state_of_object(self), self, &layout);
}

static PyObject *get_similarity(PyObject *self, void *closure) {
    (void)closure;
    const lns_py_layout layout = {
        .data = (const char *)matches_of(self)->items + offsetof(lns_match, similarity),
        .format = "f",
        .itemsize = sizeof(float),
        .dimensions = 1,
        .shape = {matches_length(self)},
        .strides = {sizeof(lns_match)},
    };
    return lns_py_block(lns_py_state_of_object(self), self, &layout);
}

PyObject *lns_py_match(PyObject *module, PyObject *arguments) {
    const lns_py_state *state = lns_py_state_of(module);
    PyObject *first, *second;
    lns_match_options options;
    lns_match_options_init(&options);
    if (!PyArg_ParseTuple(arguments, "O!O!ffi:match", state->features, &first, state->features, &second, &options.ratio,
                          &options.min_similarity, &options.threads))
        return NULL;
    lns_matches *found = NULL;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_match_features(lns_py_features(first), lns_py_features(second), &options, &found);
    Py_END_ALLOW_THREADS
    if (status != LNS_OK)
        return lns_py_raise(state, status, LNS_PY_IMAGE);
    matches *made = lns_py_new(state->matches);
    if (made == NULL) {
        lns_matches_close(&found);
        return NULL;
    }
    made->matches = found;
    return (PyObject *)made;
}

PyObject *lns_py_draw_matches(PyObject *module, PyObject *arguments) {
    const lns_py_state *state = lns_py_state_of(module);
    PyObject *first_plane, *first, *second_plane, *second, *object;
    if (!PyArg_ParseTuple(arguments, "O!O!O!O!O!:draw_matches", state->plane, &first_plane, state->features, &first,
                          state->plane, &second_plane, state->features, &second, state->matches, &object))
        return NULL;
    void *png = NULL;
    size_t size = 0;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_draw_matches(lns_py_plane(first_plane), lns_py_features(first), lns_py_plane(second_plane),
                              lns_py_features(second), matches_of(object), &png, &size);
    Py_END_ALLOW_THREADS
    return status == LNS_OK ? lns_py_take_bytes(png, size) : lns_py_raise(state, status, LNS_PY_IMAGE);
}

PyType_Spec lns_py_matches_spec = {
    .name = "lensing._native.Matches",
    .basicsize = sizeof(matches),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots =
        (PyType_Slot[]){
            {Py_tp_dealloc, matches_dealloc},
            {Py_sq_length, matches_length},
            {Py_tp_getset,
             (PyGetSetDef[]){
                 {"pairs", get_pairs, NULL, NULL, NULL},
                 {"similarity", get_similarity, NULL, NULL, NULL},
                 {NULL, NULL, NULL, NULL, NULL},
             }},
            {0, NULL},
        },
};
