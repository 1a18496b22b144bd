/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a result as a buffer, from which NumPy makes an array without a copy. */
#include "native.h"

#define REQUESTS(flags, what) (((flags) & (what)) == (what))

typedef struct block {
    PyObject_HEAD
    PyObject *owner;
    lns_py_layout layout;
} block;

PyObject *lns_py_block(const lns_py_state *state, PyObject *owner, const lns_py_layout *layout) {
    block *made = lns_py_new(state->block);
    if (made == NULL)
        return NULL;
    made->owner = Py_NewRef(owner);
    made->layout = *layout;
    return (PyObject *)made;
}

static void block_dealloc(PyObject *self) {
    Py_DECREF(((block *)self)->owner);
    lns_py_free(self);
}

static bool is_packed(const lns_py_layout *layout) {
    const int last = layout->dimensions - 1;
    return layout->strides[last] == layout->itemsize &&
           (last == 0 || layout->strides[0] == layout->itemsize * layout->shape[1]);
}

static int block_get(PyObject *self, Py_buffer *view, int flags) {
    lns_py_layout *layout = &((block *)self)->layout;
    const bool wants_packed =
        !REQUESTS(flags, PyBUF_STRIDES) || REQUESTS(flags, PyBUF_C_CONTIGUOUS) || REQUESTS(flags, PyBUF_ANY_CONTIGUOUS);
    const bool wants_columns = REQUESTS(flags, PyBUF_F_CONTIGUOUS) && layout->dimensions > 1;
    view->obj = NULL;
    if (wants_columns || (wants_packed && !is_packed(layout))) {
        PyErr_SetString(PyExc_BufferError, "the memory is not laid out in the way that was asked for");
        return -1;
    }
    view->obj = Py_NewRef(self);
    /* It is memory of the heap, and nobody's but the result's: who has the result may change it. */
    view->buf = (void *)layout->data;
    view->readonly = 0;
    view->itemsize = layout->itemsize;
    view->len = layout->itemsize * layout->shape[0] * (layout->dimensions > 1 ? layout->shape[1] : 1);
    view->ndim = layout->dimensions;
    view->format = REQUESTS(flags, PyBUF_FORMAT) ? (char *)layout->format : NULL;
    view->shape = REQUESTS(flags, PyBUF_ND) ? layout->shape : NULL;
    view->strides = REQUESTS(flags, PyBUF_STRIDES) ? layout->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    return 0;
}

PyType_Spec lns_py_block_spec = {
    .name = "lensing._native.Block",
    .basicsize = sizeof(block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots =
        (PyType_Slot[]){
            {Py_tp_dealloc, block_dealloc},
            {Py_bf_getbuffer, block_get},
            {0, NULL},
        },
};
