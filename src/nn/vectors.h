/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of whole vectors. Included by kernel sets behind their LANES and vec. */
#define INLINE static inline __attribute__((always_inline))

INLINE vec vec_load(const float *p) {
    return *(const vec *)__builtin_assume_aligned(p, 4 * LANES);
}

INLINE void vec_store(float *p, vec x) {
    *(vec *)__builtin_assume_aligned(p, 4 * LANES) = x;
}
