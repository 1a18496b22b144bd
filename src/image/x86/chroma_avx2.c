/* SPDX-License-Identifier: Apache-2.0 */
#include "image/chroma.h"

#include <immintrin.h>

#include "image/to_plane.h"
#include "image/upsample.h"

enum { SUMS = 16 /* 16-bit numbers of a vector */, PIXELS = 32 /* bytes of a vector */ };

static inline __m256i load(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

/* ---- Upsampling --------------------------------------------------------------------------------- */

static inline __m256i triple(__m256i x) {
    return _mm256_add_epi16(x, _mm256_add_epi16(x, x));
}

static void add_rows(const uint8_t *samples, const uint8_t *near, uint32_t width, uint16_t *sums) {
    uint32_t i = 0;
    for (; i + SUMS <= width; i += SUMS) {
        const __m256i here = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(samples + i)));
        const __m256i other = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(near + i)));
        _mm256_storeu_si256((__m256i *)(sums + i), _mm256_add_epi16(triple(here), other));
    }
    for (; i < width; i++)
        sums[i] = (uint16_t)(3 * samples[i] + near[i]);
}

/* Pixels 2 i and 2 i + 1 of the samples between the first and the last. */
static inline void blend_one(uint8_t *row, const uint16_t *sums, uint32_t i, int right_bias) {
    row[2 * i] = (uint8_t)((3 * sums[i] + sums[i - 1] + 8) >> 4);
    row[2 * i + 1] = (uint8_t)((3 * sums[i] + sums[i + 1] + right_bias) >> 4);
}

static void upsample_both(uint8_t *restrict row, const uint8_t *restrict samples, const uint8_t *restrict near,
                          uint32_t width, int right_bias, uint16_t *restrict sums) {
    if (width < SUMS + 2) {
        lns_upsample_both(row, samples, near, width, right_bias, sums);
        return;
    }
    const __m256i left_half = _mm256_set1_epi16(8), right_half = _mm256_set1_epi16((short)right_bias);
    const uint32_t last = width - 1;
    add_rows(samples, near, width, sums);
    row[0] = (uint8_t)((4 * sums[0] + 8) >> 4);
    row[1] = (uint8_t)((3 * sums[0] + sums[1] + right_bias) >> 4);
    uint32_t i = 1;
    for (; i + SUMS <= last; i += SUMS) {
        const __m256i here = triple(load(sums + i));
        const __m256i left = _mm256_add_epi16(_mm256_add_epi16(here, load(sums + i - 1)), left_half);
        const __m256i right = _mm256_add_epi16(_mm256_add_epi16(here, load(sums + i + 1)), right_half);
        /* The left pixel into the low byte of each 16 bits, the right one into the high byte. */
        const __m256i both =
            _mm256_or_si256(_mm256_srli_epi16(left, 4), _mm256_slli_epi16(_mm256_srli_epi16(right, 4), 8));
        _mm256_storeu_si256((__m256i *)(row + 2 * i), both);
    }
    for (; i < last; i++)
        blend_one(row, sums, i, right_bias);
    row[2 * last] = (uint8_t)((3 * sums[last] + sums[last - 1] + 8) >> 4);
    row[2 * last + 1] = (uint8_t)((4 * sums[last] + right_bias) >> 4);
}

/* ---- Colour ------------------------------------------------------------------------------------- */

/* What Cr adds to Y, for 16 of 256 (Cr - 128); the arithmetic is explained at lns_ycc_to_plane(). */
static inline __m256i difference(__m256i scaled) {
    const __m256i high = _mm256_mulhi_epi16(scaled, _mm256_set1_epi16(26345));
    const __m256i rounded = _mm256_srai_epi16(_mm256_add_epi16(high, _mm256_set1_epi16(128)), 8);
    return _mm256_add_epi16(_mm256_srai_epi16(scaled, 8), rounded);
}

static void ycc_to_plane(uint8_t *row, const uint8_t *cr, size_t count) {
    const __m256i zero = _mm256_setzero_si256(), middle = _mm256_set1_epi8((char)128);
    size_t i = 0;
    for (; i + PIXELS <= count; i += PIXELS) {
        const __m256i x = _mm256_xor_si256(load(cr + i), middle); /* Cr - 128 */
        const __m256i low = difference(_mm256_unpacklo_epi8(zero, x));
        const __m256i high = difference(_mm256_unpackhi_epi8(zero, x));
        /* Between -179 and 178: what is to be added and what taken off fit bytes, and saturate as they should. */
        const __m256i plus = _mm256_packus_epi16(low, high);
        const __m256i minus = _mm256_packus_epi16(_mm256_sub_epi16(zero, low), _mm256_sub_epi16(zero, high));
        const __m256i red = _mm256_subs_epu8(_mm256_adds_epu8(load(row + i), plus), minus);
        _mm256_storeu_si256((__m256i *)(row + i), red);
    }
    lns_ycc_to_plane(row + i, cr + i, count - i);
}

const lns_chroma_kernels lns_chroma_kernels_avx2 = {upsample_both, ycc_to_plane};
