/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing with AVX2. Along x, a weight is split into its upper and lower 11 bits, which fit the 16-bit multiply-add;
 * sums wrap modulo 2^32 and so the total, which fits, is exact. */
#include "image/resize.h"

#include <immintrin.h>
#include <string.h>

#define LOW_BITS 11
#define LOW_MASK ((1 << LOW_BITS) - 1)

enum { GROUP = 8 /* output pixels of one round */, PADDED = 16 };

/* ---- Along x ------------------------------------------------------------------------------------ */

/* One multiply-add of 8 output pixels: for each a pair of source pixels (narrow form), or for two of them 8 source
 * pixels each (wide form). */
typedef struct step {
    int16_t high[16];
    int16_t low[16];
} step;

typedef struct narrow_step {
    uint8_t pick[32]; /* byte shuffle that brings each output pixel its two source pixels as 16-bit numbers */
    step weight;
} narrow_step;

/* Head of the packed taps. Then come, for each group, its first source pixels (narrow: 2, wide: GROUP numbers), and
 * from `steps_at` the steps, steps_per_group a group. */
typedef struct packed_head {
    uint32_t narrow;
    uint32_t groups;
    uint32_t chunks; /* narrow: pairs of source pixels, wide: eights of source pixels of one output pixel */
    uint32_t steps_at;
    uint32_t pad; /* a row shorter than one load: its width, else 0; it is copied to PADDED bytes first */
} packed_head;

static uint32_t round_up(uint32_t value, uint32_t unit) {
    return (value + unit - 1) / unit * unit;
}

static uint32_t longest_window(const lns_resize_taps *taps) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i < taps->count; i++)
        longest = taps->length[i] > longest ? taps->length[i] : longest;
    return longest;
}

/* The last group is filled up with copies of the last output pixel. */
static uint32_t output_of(const lns_resize_taps *taps, uint32_t i) {
    return i < taps->count ? i : taps->count - 1;
}

/* First byte of a load of `size` bytes that has source pixel `start` and does not leave the row. */
static uint32_t load_at(uint32_t start, uint32_t size, uint32_t width) {
    return start < width - size ? start : width - size;
}

/* Narrow: four neighbouring windows lie within 16 bytes. */
static int is_narrow(const lns_resize_taps *taps, uint32_t width) {
    for (uint32_t i = 0; i < taps->count; i += 4) {
        const uint32_t last = output_of(taps, i + 3);
        if (taps->start[last] + taps->length[last] > load_at(taps->start[i], 16, width) + 16)
            return 0;
    }
    return 1;
}

static uint32_t padded_width(uint32_t width) {
    return width < PADDED ? PADDED : width;
}

/* `width` is the padded one from here on. */
static packed_head make_head(const lns_resize_taps *taps, uint32_t width) {
    packed_head head = {.narrow = (uint32_t)is_narrow(taps, width), .groups = (taps->count + GROUP - 1) / GROUP};
    const uint32_t longest = longest_window(taps);
    head.chunks = head.narrow ? (longest + 1) / 2 : (longest + 7) / 8;
    const uint32_t starts = head.groups * (head.narrow ? 2 : GROUP);
    head.steps_at = round_up((uint32_t)(sizeof head + starts * sizeof(uint32_t)), 64);
    return head;
}

static size_t pack_size(const lns_resize_taps *taps, uint32_t row_width) {
    const uint32_t width = padded_width(row_width);
    const packed_head head = make_head(taps, width);
    if (!head.narrow && (uint64_t)head.chunks * 8 > width)
        return 0;
    const size_t group = head.narrow ? sizeof(narrow_step) : sizeof(step) * GROUP / 2;
    return head.steps_at + group * head.chunks * head.groups;
}

/* Weight for source pixel `x`: zero outside the window. */
static int32_t weight_at(const lns_resize_taps *taps, uint32_t i, uint32_t x) {
    if (x < taps->start[i] || x - taps->start[i] >= taps->length[i])
        return 0;
    return taps->weight[(size_t)i * taps->stride + (x - taps->start[i])];
}

static void put_weight(step *s, uint32_t lane, int32_t weight) {
    s->high[lane] = (int16_t)(weight >> LOW_BITS);
    s->low[lane] = (int16_t)(weight & LOW_MASK);
}

static void pack_narrow(const lns_resize_taps *taps, uint32_t width, const packed_head *head, uint32_t *starts,
                        narrow_step *steps) {
    for (uint32_t group = 0; group < head->groups; group++, starts += 2, steps += head->chunks) {
        memset(steps, 0x80, head->chunks * sizeof *steps);
        for (uint32_t lane = 0; lane < GROUP; lane++) {
            const uint32_t i = output_of(taps, group * GROUP + lane);
            const uint32_t base = load_at(taps->start[output_of(taps, group * GROUP + lane / 4 * 4)], 16, width);
            starts[lane / 4] = base;
            for (uint32_t k = 0; k < 2 * head->chunks; k++) {
                narrow_step *s = &steps[k / 2];
                const uint32_t x = taps->start[i] + k;
                if (k < taps->length[i])
                    s->pick[lane * 4 + k % 2 * 2] = (uint8_t)(x - base);
                put_weight(&s->weight, lane * 2 + k % 2, weight_at(taps, i, x));
            }
        }
    }
}

/* Output pixels j and j + 4 of a group share step j. */
static void pack_wide(const lns_resize_taps *taps, uint32_t width, const packed_head *head, uint32_t *starts,
                      step *steps) {
    for (uint32_t group = 0; group < head->groups; group++, starts += GROUP, steps += head->chunks * (GROUP / 2)) {
        for (uint32_t lane = 0; lane < GROUP; lane++) {
            const uint32_t i = output_of(taps, group * GROUP + lane);
            starts[lane] = load_at(taps->start[i], head->chunks * 8, width);
            for (uint32_t k = 0; k < head->chunks * 8; k++)
                put_weight(&steps[lane % 4 * head->chunks + k / 8], lane / 4 * 8 + k % 8,
                           weight_at(taps, i, starts[lane] + k));
        }
    }
}

static void pack(const lns_resize_taps *taps, uint32_t row_width, void *packed) {
    const uint32_t width = padded_width(row_width);
    packed_head head = make_head(taps, width);
    head.pad = width > row_width ? row_width : 0;
    memcpy(packed, &head, sizeof head);
    uint32_t *starts = (uint32_t *)((char *)packed + sizeof head);
    void *steps = (char *)packed + head.steps_at;
    if (head.narrow)
        pack_narrow(taps, width, &head, starts, steps);
    else
        pack_wide(taps, width, &head, starts, steps);
}

static inline __m256i multiply_add(__m256i sum, __m256i pixels, const int16_t *weights) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pixels, _mm256_load_si256((const __m256i *)weights)));
}

static inline __m256i join(__m256i high, __m256i low) {
    return _mm256_add_epi32(_mm256_slli_epi32(high, LOW_BITS), low);
}

/* Rounds 8 sums to bytes, in the lower half of the result. */
static inline __m128i round_sums(__m256i sums) {
    const __m256i half = _mm256_set1_epi32(1 << (LNS_RESIZE_BITS - 1));
    const __m256i values = _mm256_srli_epi32(_mm256_add_epi32(sums, half), LNS_RESIZE_BITS);
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    return _mm_packus_epi16(words, words);
}

static inline __m256i narrow_group(const narrow_step *s, const uint32_t *starts, uint32_t chunks,
                                   const uint8_t *source) {
    const __m128i first = _mm_loadu_si128((const __m128i *)(source + starts[0]));
    const __m128i second = _mm_loadu_si128((const __m128i *)(source + starts[1]));
    const __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
    __m256i high = _mm256_setzero_si256(), low = high;
    for (uint32_t c = 0; c < chunks; c++) {
        const __m256i pairs = _mm256_shuffle_epi8(pixels, _mm256_load_si256((const __m256i *)s[c].pick));
        high = multiply_add(high, pairs, s[c].weight.high);
        low = multiply_add(low, pairs, s[c].weight.low);
    }
    return join(high, low);
}

/* Four partial sums for each of two output pixels. */
static inline __m256i wide_pair(const step *s, uint32_t chunks, const uint8_t *first, const uint8_t *second) {
    __m256i high = _mm256_setzero_si256(), low = high;
    for (uint32_t c = 0; c < chunks; c++) {
        const __m128i a = _mm_loadl_epi64((const __m128i *)(first + c * 8));
        const __m128i b = _mm_loadl_epi64((const __m128i *)(second + c * 8));
        const __m256i pixels = _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(a, b));
        high = multiply_add(high, pixels, s[c].high);
        low = multiply_add(low, pixels, s[c].low);
    }
    return join(high, low);
}

static inline __m256i wide_group(const step *s, const uint32_t *starts, uint32_t chunks, const uint8_t *source) {
    __m256i sums[GROUP / 2];
    for (uint32_t j = 0; j < GROUP / 2; j++)
        sums[j] = wide_pair(s + j * chunks, chunks, source + starts[j], source + starts[j + 4]);
    return _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
}

static inline void store_group(__m256i sums, uint8_t *target, uint32_t room) {
    const __m128i bytes = round_sums(sums);
    if (room >= GROUP) {
        _mm_storel_epi64((__m128i *)target, bytes);
    } else {
        uint8_t all[GROUP];
        _mm_storel_epi64((__m128i *)all, bytes);
        memcpy(target, all, room);
    }
}

static inline void narrow_row(const packed_head *head, uint32_t chunks, uint32_t count, const uint8_t *source,
                              uint8_t *target) {
    const uint32_t *starts = (const uint32_t *)(head + 1);
    const narrow_step *s = (const narrow_step *)((const char *)head + head->steps_at);
    for (uint32_t i = 0; i < count; i += GROUP, starts += 2, s += chunks)
        store_group(narrow_group(s, starts, chunks, source), target + i, count - i);
}

static inline void wide_row(const packed_head *head, uint32_t chunks, uint32_t count, const uint8_t *source,
                            uint8_t *target) {
    const uint32_t *starts = (const uint32_t *)(head + 1);
    const step *s = (const step *)((const char *)head + head->steps_at);
    for (uint32_t i = 0; i < count; i += GROUP, starts += GROUP, s += (size_t)chunks * (GROUP / 2))
        store_group(wide_group(s, starts, chunks, source), target + i, count - i);
}

/* The usual numbers of rounds are constants, so that the inner loop unrolls. */
static void row_avx2(const lns_resize_taps *taps, const void *packed, const uint8_t *source, uint8_t *target) {
    const packed_head *head = packed;
    const uint32_t kind = head->chunks * 2 + head->narrow;
    uint8_t padded[PADDED] = {0};
    if (head->pad > 0)
        source = memcpy(padded, source, head->pad);
    switch (kind) {
    case 3:
        narrow_row(head, 1, taps->count, source, target);
        break;
    case 5:
        narrow_row(head, 2, taps->count, source, target);
        break;
    case 7:
        narrow_row(head, 3, taps->count, source, target);
        break;
    case 2:
        wide_row(head, 1, taps->count, source, target);
        break;
    case 4:
        wide_row(head, 2, taps->count, source, target);
        break;
    case 6:
        wide_row(head, 3, taps->count, source, target);
        break;
    default:
        if (head->narrow)
            narrow_row(head, head->chunks, taps->count, source, target);
        else
            wide_row(head, head->chunks, taps->count, source, target);
    }
}

/* ---- Along y ------------------------------------------------------------------------------------ */

static inline __m256i weighted(const uint8_t *pixels, __m256i weight) {
    return _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)pixels)), weight);
}

static inline void column_8(const uint8_t *rows, size_t stride, const int32_t *weight, uint32_t length,
                            uint8_t *target) {
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t k = 0; k < length; k++)
        sum = _mm256_add_epi32(sum, weighted(rows + k * stride, _mm256_set1_epi32(weight[k])));
    _mm_storel_epi64((__m128i *)target, round_sums(sum));
}

static inline void column_32(const uint8_t *rows, size_t stride, const int32_t *weight, uint32_t length,
                             uint8_t *target) {
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (uint32_t k = 0; k < length; k++, rows += stride) {
        const __m256i w = _mm256_set1_epi32(weight[k]);
        a = _mm256_add_epi32(a, weighted(rows, w));
        b = _mm256_add_epi32(b, weighted(rows + 8, w));
        c = _mm256_add_epi32(c, weighted(rows + 16, w));
        d = _mm256_add_epi32(d, weighted(rows + 24, w));
    }
    _mm_storeu_si128((__m128i *)target, _mm_unpacklo_epi64(round_sums(a), round_sums(b)));
    _mm_storeu_si128((__m128i *)(target + 16), _mm_unpacklo_epi64(round_sums(c), round_sums(d)));
}

static void column_avx2(const uint8_t *rows, size_t stride, const int32_t *weight, uint32_t length, uint32_t width,
                        uint8_t *target) {
    if (width < 8) {
        lns_resize_kernels_c.column(rows, stride, weight, length, width, target);
        return;
    }
    uint32_t x = 0;
    for (; x + 32 <= width; x += 32)
        column_32(rows + x, stride, weight, length, target + x);
    for (; x + 8 <= width; x += 8)
        column_8(rows + x, stride, weight, length, target + x);
    if (x < width) /* the last 8 once more from the right edge */
        column_8(rows + width - 8, stride, weight, length, target + width - 8);
}

const lns_resize_kernels lns_resize_kernels_avx2 = {pack_size, pack, row_avx2, column_avx2};
