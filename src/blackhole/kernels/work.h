/* SPDX-License-Identifier: Apache-2.0 */
/* What is not for the Tensix units: four RISC-V cores share it. Core B is worker 3, after T0, T1 and T2. */
#ifndef LENSING_BLACKHOLE_WORK_H
#define LENSING_BLACKHOLE_WORK_H

#include "core.h"

#define WORKERS 4
#define WORKER_B 3

/* ---- Numbers -------------------------------------------------------------------------------------- */

/* The cores add and multiply float32, and have no division (ISA: BabyRISCV/README.md, "some (but not all) of F"). */

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* 1 / x for a normal x > 0 below 2^125: an estimate from its bits, and three steps of Newton's method, each of which
 * doubles the number of right digits. */
static inline float reciprocal(float x) {
    float y = float_of(0x7EF311C3u - bits_of(x));
    for (int i = 0; i < 3; i++)
        y = y * (2.0f - x * y);
    return y;
}

/* What e^x is made of, in registers: the compiler would rather load constants from L1 where each is used. */
typedef struct factors {
    float log2_e, whole, ln2_high, ln2_low, fifth, fourth, third, second, one;
} factors;

static inline float kept(float constant) {
    __asm__("" : "+f"(constant));
    return constant;
}

/* ln 2 in two parts, the first of which has few bits. Of polynomials of degree 5 that begin with 1 + r, this one is
 * nearest to e^r for |r| <= ln 2 / 2: 1.1e-7 of it. */
static inline factors load_factors(void) {
    return (factors){
        .log2_e = kept(1.44269504f),
        .whole = kept(12582912.0f), /* 1.5 * 2^23: the last bit of its mantissa is worth 1, and the low 9 bits are 0 */
        .ln2_high = kept(0.693359375f),
        .ln2_low = kept(-2.12194440e-4f),
        .fifth = kept(0.00831247773f),
        .fourth = kept(0.0418905504f),
        .third = kept(0.166671157f),
        .second = kept(0.499992281f),
        .one = kept(1.0f),
    };
}

/* e^x for x from LOWEST to HIGHEST, between which e^x and sums of 65 of them are normal. x = n ln 2 + r; n is made an
 * integer by adding a number whose last bit is worth 1. */
#define LOWEST 0xC2AE0000u  /* bits of -87 */
#define HIGHEST 0x42A00000u /* bits of 80 */
static inline float exponential(const factors *f, float x) {
    const float shifted = __builtin_fmaf(x, f->log2_e, f->whole), n = shifted - f->whole;
    const float r = __builtin_fmaf(-n, f->ln2_low, __builtin_fmaf(-n, f->ln2_high, x));
    float sum = __builtin_fmaf(r, f->fifth, f->fourth);
    sum = __builtin_fmaf(sum, r, f->third);
    sum = __builtin_fmaf(sum, r, f->second);
    sum = __builtin_fmaf(sum, r, f->one);
    sum = __builtin_fmaf(sum, r, f->one);
    return float_of(bits_of(sum) + (bits_of(shifted) << 23));
}

/* ---- First layer ---------------------------------------------------------------------------------- */

#define BFLOAT16_ONE 0x3F80u

/* A column of three gray levels as two words of channels: top and middle, bottom and 1. A gray level has 8 bits, as many
 * as a number of bfloat16, which is the upper half of a float32. */
typedef struct column {
    uint32_t upper, lower;
} column;

static inline column make_column(const volatile uint8_t *top, uint32_t row, uint32_t x) {
    const uint32_t a = top[x], b = top[row + x], c = top[2 * row + x];
    return (column){bits_of((float)a) >> 16 | bits_of((float)b), bits_of((float)c) >> 16 | BFLOAT16_ONE << 16};
}

static inline void put_columns(volatile uint32_t *out, column left, column here, column right) {
    out[0] = left.upper;
    out[1] = left.lower;
    out[2] = here.upper;
    out[3] = here.lower;
    out[4] = right.upper;
    out[5] = right.lower;
    out[6] = 0;
    out[7] = 0;
}

/* Three pixels at a time: then the three columns need not move from register to register. */
static inline void spread_row(const volatile lns_bh_image *image, uint32_t y) {
    const uint32_t row = image->bytes_row, width = image->width, step = LNS_BH_CHANNELS / 2;
    const volatile uint8_t *top = (const volatile uint8_t *)(image->bytes + y * row);
    volatile uint32_t *out = word_at(image->output + y * width * LNS_BH_PIXEL_BYTES);
    column a = make_column(top, row, 0), b = make_column(top, row, 1);
    uint32_t x = 0;
    for (; x + 3 <= width; x += 3, top += 3, out += 3 * step) {
        const column c = make_column(top, row, 2);
        put_columns(out, a, b, c);
        a = make_column(top, row, 3);
        put_columns(out + step, b, c, a);
        b = make_column(top, row, 4);
        put_columns(out + 2 * step, c, a, b);
    }
    for (; x < width; x++, top++, out += step) {
        const column c = make_column(top, row, 2);
        put_columns(out, a, b, c);
        a = b;
        b = c;
    }
}

static inline void spread(const volatile lns_bh_image *image, uint32_t worker) {
    for (uint32_t y = worker; y < image->height; y += WORKERS)
        spread_row(image, y);
}

/* ---- Scores --------------------------------------------------------------------------------------- */

#define CELL 8
#define CELL_PIXELS 64

/* A number's place in the order of all that are not NaN: its bits, and for negative ones the opposite of theirs. */
static inline int32_t order_of(uint32_t bits) {
    return (int32_t)(bits ^ (uint32_t)((int32_t)bits >> 31) >> 1);
}

static inline int32_t highest_of(const float *values, int32_t highest) {
    for (uint32_t i = 0; i < CELL_PIXELS; i++) {
        const int32_t order = order_of(bits_of(values[i]));
        highest = order > highest ? order : highest;
    }
    return highest;
}

/* e^x, or 0 where that is not normal. */
static inline float exponential_or_zero(const factors *f, float x) {
    return bits_of(x) > LOWEST ? 0 : exponential(f, x);
}

/* Makes e^(value - `reference`) of the values and returns the sum, with that of the dustbin. For any values: the
 * reference is the highest. */
static __attribute__((noinline)) float raise_any(float *values, float dustbin) {
    const factors f = load_factors();
    const int32_t highest = highest_of(values, order_of(bits_of(dustbin)));
    const float reference = float_of((uint32_t)order_of((uint32_t)highest)); /* the mapping is its own inverse */
    float sum = exponential_or_zero(&f, dustbin - reference);
    for (uint32_t i = 0; i < CELL_PIXELS; i++) {
        values[i] = exponential_or_zero(&f, values[i] - reference);
        sum += values[i];
    }
    return sum;
}

/* The same with the dustbin as the reference, as the logits of a cell are near each other. Two numbers at a time, for
 * each takes a cycle longer than its instruction. */
static inline float raise_near(const factors *f, float *values, float dustbin) {
    float sums[2] = {1, 0};
    for (uint32_t i = 0; i < CELL_PIXELS; i += 2) {
        const float a = exponential(f, values[i] - dustbin), b = exponential(f, values[i + 1] - dustbin);
        values[i] = a;
        values[i + 1] = b;
        sums[0] += a;
        sums[1] += b;
    }
    return sums[0] + sums[1];
}

/* Takes the logits of a cell out of their planes: number `channel` is `channel / 16` planes further. Returns whether all
 * are near the dustbin: of their differences, the largest bits are those of the lowest, and the largest signed ones those
 * of the highest. */
static inline int load_cell(uint32_t cell, uint32_t plane, float dustbin, float *values) {
    uint32_t lowest = 0;
    int32_t highest = 0;
    for (uint32_t first = 0; first < CELL_PIXELS; first += LNS_BH_CHANNELS, cell += plane) {
        const volatile float *logits = (const volatile float *)cell;
#pragma GCC unroll 4
        for (uint32_t i = 0; i < LNS_BH_CHANNELS; i++) {
            values[first + i] = logits[i];
            const uint32_t difference = bits_of(values[first + i] - dustbin);
            lowest = difference > lowest ? difference : lowest;
            highest = (int32_t)difference > highest ? (int32_t)difference : highest;
        }
    }
    return lowest <= LOWEST && (uint32_t)highest <= HIGHEST;
}

static inline void score_cell(const factors *f, uint32_t cell, uint32_t plane, uint32_t output, uint32_t output_row) {
    float values[CELL_PIXELS];
    const float dustbin = *(const volatile float *)(cell + CELL_PIXELS / LNS_BH_CHANNELS * plane);
    const int near = load_cell(cell, plane, dustbin, values);
    const float scale = reciprocal(near ? raise_near(f, values, dustbin) : raise_any(values, dustbin));
    for (uint32_t first = 0; first < CELL_PIXELS; first += CELL, output += output_row) {
        volatile float *scores = (volatile float *)output;
#pragma GCC unroll 8
        for (uint32_t i = 0; i < CELL; i++)
            scores[i] = values[first + i] * scale;
    }
}

static inline void score(const volatile lns_bh_scores *s, uint32_t worker) {
    const uint32_t columns = s->columns, cells = columns * s->rows, logits = s->logits, output_row = s->output_row;
    const factors f = load_factors();
    for (uint32_t cell = worker; cell < cells; cell += WORKERS)
        score_cell(&f, logits + cell * LNS_BH_PIXEL_BYTES_FLOAT32, cells * LNS_BH_PIXEL_BYTES_FLOAT32,
                   s->output + cell / columns * CELL * output_row + cell % columns * CELL * 4, output_row);
}

/* ---- Keypoints ------------------------------------------------------------------------------------ */

#define INFINITE 0x7F800000u /* bits; above are those of numbers that are none */
#define AT_A_TIME 4          /* pixels that are looked at together */

static inline uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Whether one of the numbers from `first` to `last` of a row is above `score`. Scores are not negative, so their bits
 * are ordered as they are, and the largest bits decide; only where these are no number, each is looked at. */
static inline int has_larger(const volatile uint32_t *first, const volatile uint32_t *last, uint32_t score) {
    const volatile uint32_t *from = first;
    uint32_t largest = *from++;
    for (; from + 3 < last; from += 4) {
        const uint32_t a = from[0], b = from[1], c = from[2], d = from[3];
        largest = larger(largest, larger(larger(a, b), larger(c, d)));
    }
    for (; from <= last; from++)
        largest = larger(largest, *from);
    if (largest <= score || largest <= INFINITE)
        return largest > score;
    for (from = first; from <= last; from++)
        if (*from > score && *from <= INFINITE)
            return 1;
    return 0;
}

/* Whether no score within the radius is above `score`. Begins with the pixel's own row and goes away from it: most
 * pixels that are none are below a near one. */
static __attribute__((noinline)) int is_largest(uint32_t at, uint32_t row, uint32_t radius, uint32_t score) {
    const uint32_t left = at - radius * 4, right = at + radius * 4;
    if (has_larger(word_at(left), word_at(right), score))
        return 0;
    for (uint32_t away = row; away <= radius * row; away += row)
        if (has_larger(word_at(left - away), word_at(right - away), score) ||
            has_larger(word_at(left + away), word_at(right + away), score))
            return 0;
    return 1;
}

static inline const volatile lns_bh_rules *rules(void) {
    return (const volatile lns_bh_rules *)LNS_BH_RULES;
}

/* What is asked of each pixel of a row that a list is made of, in registers. */
typedef struct search {
    uint32_t radius, threshold, row, first_pixel, left, right; /* pixels from `left` on and below `right` are wanted */
    volatile lns_bh_keypoint *next;
} search;

static inline void test_pixel(search *s, uint32_t at, uint32_t x, uint32_t score) {
    if (score <= s->threshold || score > INFINITE || x < s->left || x >= s->right ||
        !is_largest(at, s->row, s->radius, score))
        return;
    s->next->pixel = s->first_pixel + x;
    s->next->score = score;
    s->next++;
}

/* A few pixels of a hundred are above the threshold. `width` is a multiple of AT_A_TIME. */
static inline void search_row(search *s, uint32_t at, uint32_t width) {
    for (uint32_t x = 0; x < width; x += AT_A_TIME, at += AT_A_TIME * 4) {
        const volatile uint32_t *scores = word_at(at);
        const uint32_t a = scores[0], b = scores[1], c = scores[2], d = scores[3];
        if (larger(larger(a, b), larger(c, d)) <= s->threshold)
            continue;
        test_pixel(s, at, x, a);
        test_pixel(s, at + 4, x + 1, b);
        test_pixel(s, at + 8, x + 2, c);
        test_pixel(s, at + 12, x + 3, d);
    }
}

static inline uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

static inline void find_keypoints(const volatile lns_bh_suppression *s, uint32_t worker) {
    const uint32_t border = rules()->border, list = s->lists + worker * s->list_size;
    volatile lns_bh_keypoint *first = (volatile lns_bh_keypoint *)(list + LNS_BH_LIST_HEADER);
    search asked = {
        .radius = rules()->radius,
        .threshold = rules()->threshold,
        .row = s->scores_row,
        .left = less(border, s->x),
        .right = less(s->frame_width - s->x, border),
        .next = first,
    };
    const uint32_t top = less(border, s->y), bottom = less(s->frame_height - s->y, border);
    for (uint32_t y = worker; y < s->height && asked.radius > 0; y += WORKERS)
        if (y >= top && y < bottom) {
            asked.first_pixel = (s->y + y) * s->frame_width + s->x;
            search_row(&asked, s->scores + y * asked.row, s->width);
        }
    *word_at(list) = (uint32_t)(asked.next - first);
}

/* ---- All of it ------------------------------------------------------------------------------------ */

/* A worker's part of a step. */
static inline void do_part(uint32_t kind, uint32_t at, uint32_t worker) {
    if (kind == LNS_BH_IMAGE)
        spread((const volatile lns_bh_image *)at, worker);
    else if (kind == LNS_BH_SCORES)
        score((const volatile lns_bh_scores *)at, worker);
    else
        find_keypoints((const volatile lns_bh_suppression *)at, worker);
}

#endif
