/* SPDX-License-Identifier: Apache-2.0 */
/* An HDF5 file of many results. The library wants one thread at a time; threads that share a file wait for each other.
 */
#include "native.h"

#include <pthread.h>

typedef struct hdf5 {
    PyObject_HEAD
    pthread_mutex_t lock; /* for `file`; taken without Python's lock only, since who has it may wait for a disk */
    lns_hdf5 *file;       /* NULL once it is closed */
} hdf5;

static void hdf5_dealloc(PyObject *self) {
    lns_hdf5_abandon(&((hdf5 *)self)->file);
    pthread_mutex_destroy(&((hdf5 *)self)->lock);
    lns_py_free(self);
}

PyObject *lns_py_create_hdf5(PyObject *module, PyObject *path) {
    char *text;
    if (PyBytes_AsStringAndSize(path, &text, NULL) != 0)
        return NULL;
    hdf5 *made = lns_py_new(lns_py_state_of(module)->hdf5);
    if (made == NULL)
        return NULL;
    pthread_mutex_init(&made->lock, NULL);
    lns_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lns_hdf5_create(text, &made->file);
    Py_END_ALLOW_THREADS
    if (status != LNS_OK) {
        Py_DECREF(made);
        return lns_py_raise(lns_py_state_of(module), status, LNS_PY_IMAGE);
    }
    return (PyObject *)made;
}

static PyObject *hdf5_add(PyObject *self, PyObject *arguments) {
    const lns_py_state *state = lns_py_state_of_object(self);
    hdf5 *h = (hdf5 *)self;
    const char *name;
    PyObject *features;
    if (!PyArg_ParseTuple(arguments, "yO!:add", &name, state->features, &features))
        return NULL;
    lns_status status = LNS_OK;
    bool closed;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&h->lock);
    closed = h->file == NULL;
    if (!closed)
        status = lns_hdf5_add(h->file, name, lns_py_features(features));
    pthread_mutex_unlock(&h->lock);
    Py_END_ALLOW_THREADS
    if (closed)
        return lns_py_raise_closed(state, "the file is closed");
    if (status != LNS_OK)
        return lns_py_raise(state, status, LNS_PY_IMAGE);
    Py_RETURN_NONE;
}

static PyObject *hdf5_close(PyObject *self, PyObject *nothing) {
    (void)nothing;
    hdf5 *h = (hdf5 *)self;
    lns_status status = LNS_OK;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&h->lock);
    if (h->file != NULL)
        status = lns_hdf5_close(&h->file);
    pthread_mutex_unlock(&h->lock);
    Py_END_ALLOW_THREADS
    if (status != LNS_OK)
        return lns_py_raise(lns_py_state_of_object(self), status, LNS_PY_IMAGE);
    Py_RETURN_NONE;
}

static PyObject *hdf5_abandon(PyObject *self, PyObject *nothing) {
    (void)nothing;
    hdf5 *h = (hdf5 *)self;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&h->lock);
    lns_hdf5_abandon(&h->file);
    pthread_mutex_unlock(&h->lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyType_Spec lns_py_hdf5_spec = {
    .name = "lensing._native.HDF5File",
    .basicsize = sizeof(hdf5),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots =
        (PyType_Slot[]){
            {Py_tp_dealloc, hdf5_dealloc},
            {Py_tp_methods,
             (PyMethodDef[]){
                 {"add", hdf5_add, METH_VARARGS, NULL},
                 {"close", hdf5_close, METH_NOARGS, NULL},
                 {"abandon", hdf5_abandon, METH_NOARGS, NULL},
                 {NULL, NULL, 0, NULL},
             }},
            {0, NULL},
        },
};
