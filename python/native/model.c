/* SPDX-License-Identifier: Apache-2.0 */
/* An open model that threads share, and its weights. */
#include "native.h"

#include <pthread.h>

typedef struct model {
    PyObject_HEAD
    pthread_mutex_t lock;       /* for what is below; never held while Python runs or waits */
    lns_superpoint *superpoint; /* NULL once it is closed and the last call on it has ended */
    unsigned calls;             /* that are running */
    bool closed;
} model;

/* ---- Lifetime --------------------------------------------------------------------------------------------------- */

/* The library's model, which stays open until leave(); NULL with an exception when it is closed. */
static lns_superpoint *enter(model *m) {
    pthread_mutex_lock(&m->lock);
    lns_superpoint *superpoint = m->closed ? NULL : m->superpoint;
    if (superpoint != NULL)
        m->calls++;
    pthread_mutex_unlock(&m->lock);
    if (superpoint == NULL)
        lns_py_raise_closed(lns_py_state_of_object((PyObject *)m), "the model is closed");
    return superpoint;
}

/* With the lock held: takes the library's model out when nothing will use it any more. */
static lns_superpoint *take_unused(model *m) {
    lns_superpoint *unused = m->closed && m->calls == 0 ? m->superpoint : NULL;
    if (unused != NULL)
        m->superpoint = NULL;
    return unused;
}

static void leave(model *m) {
    pthread_mutex_lock(&m->lock);
    m->calls--;
    lns_superpoint *unused = take_unused(m);
    pthread_mutex_unlock(&m->lock);
    lns_superpoint_close(&unused);
}

static PyObject *model_close(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    pthread_mutex_lock(&m->lock);
    m->closed = true;
    lns_superpoint *unused = take_unused(m);
    pthread_mutex_unlock(&m->lock);
    Py_BEGIN_ALLOW_THREADS
    lns_superpoint_close(&unused);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static void model_dealloc(PyObject *self) {
    model *m = (model *)self;
    lns_superpoint_close(&m->superpoint);
    pthread_mutex_destroy(&m->lock);
    lns_py_free(self);
}

static PyObject *get_closed(PyObject *self, void *closure) {
    (void)closure;
    model *m = (model *)self;
    pthread_mutex_lock(&m->lock);
    const bool closed = m->closed;
    pthread_mutex_unlock(&m->lock);
    return PyBool_FromLong(closed);
}

static bool take_precision(const char *text, lns_precision *precision) {
    static const struct {
        const char *name;
        lns_precision value;
    } known[] = {{"fp32", LNS_PRECISION_FP32}, {"bf16", LNS_PRECISION_BF16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(text, known[i].name) == 0) {
            *precision = known[i].value;
            return true;
        }
    }
    PyErr_Format(PyExc_ValueError, "precision is '%s'; it must be 'fp32' or 'bf16'", text);
    return false;
}

PyObject *lns_py_open_model(PyObject *module, PyObject *arguments) {
    const char *precision;
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    if (!PyArg_ParseTuple(arguments, "O&issi:open_model", lns_py_text_or_none, &options.weights, &options.threads,
                          &precision, &options.backend, &options.device_id) ||
        !take_precision(precision, &options.precision))
        return NULL;
    model *made = lns_py_new(lns_py_state_of(module)->model);
    if (made == NULL)
        return NULL;
    pthread_mutex_init(&made->lock, NULL);
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_superpoint_open(&options, &made->superpoint);
    Py_END_ALLOW_THREADS
    if (status != LNS_OK) {
        Py_DECREF(made);
        return lns_py_raise(lns_py_state_of(module), status, LNS_PY_WEIGHTS);
    }
    return (PyObject *)made;
}

/* ---- Use -------------------------------------------------------------------------------------------------------- */

static PyObject *model_detect(PyObject *self, PyObject *arguments) {
    const lns_py_state *state = lns_py_state_of_object(self);
    PyObject *plane;
    double preprocess_ms;
    int max_keypoints, nms_radius, return_descriptors;
    lns_detect_options options;
    lns_detect_options_init(&options);
    if (!PyArg_ParseTuple(arguments, "O!didip:detect", state->plane, &plane, &preprocess_ms, &max_keypoints,
                          &options.keypoint_threshold, &nms_radius, &return_descriptors))
        return NULL;
    options.max_keypoints = max_keypoints;
    options.nms_radius = nms_radius;
    options.return_descriptors = return_descriptors;
    lns_superpoint *superpoint = enter((model *)self);
    if (superpoint == NULL)
        return NULL;
    lns_features *features = NULL;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_superpoint_detect_plane(superpoint, lns_py_plane(plane), &options, &features);
    leave((model *)self);
    Py_END_ALLOW_THREADS
    if (status != LNS_OK)
        return lns_py_raise(state, status, LNS_PY_IMAGE);
    features->timing_ms.preprocess += preprocess_ms;
    return lns_py_features_new(state, features);
}

/* Runs the network on a plane of any size. */
static lns_status forward(lns_superpoint *superpoint, const lns_plane *plane, float *scores, float *descriptors) {
    lns_plane *frame = NULL;
    lns_status status = lns_plane_resize(plane, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT, &frame);
    if (status == LNS_OK)
        status = lns_superpoint_forward(superpoint, frame->data, scores, descriptors);
    lns_plane_close(&frame);
    return status;
}

/* Room for what the network gives; `descriptors->obj` is NULL when they are not wanted. */
static bool take_maps(PyObject *scores_object, PyObject *descriptors_object, Py_buffer *scores,
                      Py_buffer *descriptors) {
    const Py_ssize_t pixels = LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT;
    const Py_ssize_t size = pixels * (Py_ssize_t)sizeof(float);
    if (PyObject_GetBuffer(scores_object, scores, PyBUF_CONTIG) != 0)
        return false;
    if (descriptors_object != Py_None && PyObject_GetBuffer(descriptors_object, descriptors, PyBUF_CONTIG) != 0)
        return false;
    if (scores->len == size && (descriptors->obj == NULL || descriptors->len == size / 64 * LNS_DESCRIPTOR_SIZE))
        return true;
    PyErr_SetString(PyExc_ValueError, "scores must be float32 (480, 640), descriptors float32 (60, 80, 256)");
    return false;
}

static PyObject *model_forward(PyObject *self, PyObject *arguments) {
    const lns_py_state *state = lns_py_state_of_object(self);
    PyObject *plane, *scores_object, *descriptors_object;
    Py_buffer scores = {0}, descriptors = {0};
    if (!PyArg_ParseTuple(arguments, "O!OO:forward", state->plane, &plane, &scores_object, &descriptors_object))
        return NULL;
    PyObject *result = NULL;
    if (take_maps(scores_object, descriptors_object, &scores, &descriptors)) {
        lns_superpoint *superpoint = enter((model *)self);
        if (superpoint != NULL) {
            lns_status status;
            Py_BEGIN_ALLOW_THREADS
            status =
                forward(superpoint, lns_py_plane(plane), scores.buf, descriptors.obj != NULL ? descriptors.buf : NULL);
            leave((model *)self);
            Py_END_ALLOW_THREADS
            result = status == LNS_OK ? Py_NewRef(Py_None) : lns_py_raise(state, status, LNS_PY_IMAGE);
        }
    }
    PyBuffer_Release(&scores);
    PyBuffer_Release(&descriptors);
    return result;
}

static PyObject *model_prepare(PyObject *self, PyObject *nothing) {
    (void)nothing;
    lns_superpoint *superpoint = enter((model *)self);
    if (superpoint == NULL)
        return NULL;
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_superpoint_prepare(superpoint);
    leave((model *)self);
    Py_END_ALLOW_THREADS
    if (status != LNS_OK)
        return lns_py_raise(lns_py_state_of_object(self), status, LNS_PY_IMAGE);
    Py_RETURN_NONE;
}

static PyObject *model_describe(PyObject *self, PyObject *nothing) {
    (void)nothing;
    lns_superpoint *superpoint = enter((model *)self);
    if (superpoint == NULL)
        return NULL;
    lns_superpoint_info info;
    const lns_status status = lns_superpoint_describe(superpoint, &info, sizeof info);
    PyObject *facts = status == LNS_OK ? Py_BuildValue("{ss ss ss ss si sN sN sN sN ss si}",               //
                                                       "backend", info.backend,                            //
                                                       "device", info.device,                              //
                                                       "cpu_path", info.cpu_path,                          //
                                                       "precision", info.precision,                        //
                                                       "threads", info.threads,                            //
                                                       "file", lns_py_path_or_none(info.file),             //
                                                       "repository", lns_py_path_or_none(info.repository), //
                                                       "revision", lns_py_path_or_none(info.revision),     //
                                                       "local_dir", lns_py_path_or_none(info.local_dir),   //
                                                       "license", info.license,                            //
                                                       "border_removal_distance", (int)info.border_removal_distance)
                                       : lns_py_raise(lns_py_state_of_object(self), status, LNS_PY_WEIGHTS);
    leave((model *)self);
    return facts;
}

/* ---- Downloads -------------------------------------------------------------------------------------------------- */

typedef struct interruption {
    PyThreadState *thread; /* while Python runs elsewhere */
    int raised;
} interruption;

/* Lets Ctrl-C end a download. */
static int check_signals(void *user, const char *file, uint64_t received, uint64_t total) {
    (void)file;
    (void)received;
    (void)total;
    interruption *i = user;
    PyEval_RestoreThread(i->thread);
    i->raised = PyErr_CheckSignals() != 0;
    i->thread = PyEval_SaveThread();
    return i->raised;
}

PyObject *lns_py_fetch_weights(PyObject *module, PyObject *repository) {
    interruption state = {0};
    lns_fetch_options options;
    lns_fetch_options_init(&options);
    if (!lns_py_text_or_none(repository, &options.repository))
        return NULL;
    options.progress = check_signals;
    options.progress_user = &state;
    state.thread = PyEval_SaveThread();
    const lns_status status = lns_weights_fetch(&options, NULL);
    PyEval_RestoreThread(state.thread);
    if (state.raised)
        return NULL;
    if (status != LNS_OK)
        return lns_py_raise(lns_py_state_of(module), status, LNS_PY_WEIGHTS);
    Py_RETURN_NONE;
}

/* ---- The type --------------------------------------------------------------------------------------------------- */

PyType_Spec lns_py_model_spec = {
    .name = "lensing._native.Model",
    .basicsize = sizeof(model),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots =
        (PyType_Slot[]){
            {Py_tp_dealloc, model_dealloc},
            {Py_tp_methods,
             (PyMethodDef[]){
                 {"detect", model_detect, METH_VARARGS, NULL},
                 {"prepare", model_prepare, METH_NOARGS, NULL},
                 {"forward", model_forward, METH_VARARGS, NULL},
                 {"describe", model_describe, METH_NOARGS, NULL},
                 {"close", model_close, METH_NOARGS, NULL},
                 {NULL, NULL, 0, NULL},
             }},
            {Py_tp_getset,
             (PyGetSetDef[]){
                 {"closed", get_closed, NULL, NULL, NULL},
                 {NULL, NULL, NULL, NULL, NULL},
             }},
            {0, NULL},
        },
};
