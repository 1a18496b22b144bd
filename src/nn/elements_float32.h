/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel sets that store float32. Included by them before kernels_tmpl.h. */
#include "nn/vectors.h"

typedef float element;
#define STEP 1
typedef vec operand;

INLINE vec load_elements(const element *p) {
    return vec_load(p);
}

INLINE void store_elements(element *p, vec x) {
    vec_store(p, x);
}

INLINE element to_element(float x) {
    return x;
}

/* STEP elements, the same in all lanes. */
INLINE operand repeat_elements(const element *p) {
    return vec_all(*p);
}

INLINE operand load_weights(const element *p) {
    return vec_load(p);
}

INLINE vec multiply_add(operand inputs, operand weights, vec sum) {
    return vec_fma(inputs, weights, sum);
}
