/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the cores T0, T1 and T2, and work that their RISC-V cores share because it is not for the Tensix units.
 */
#ifndef LENSING_BLACKHOLE_SERVE_H
#define LENSING_BLACKHOLE_SERVE_H

#include "core.h"

#define THREADS 3

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

/* e^x for x <= 0. x = n ln 2 + r with |r| <= ln 2 / 2; the terms of the series up to r^6 leave an error below 2^-23. n
 * is made an integer by adding a number whose last bit is worth 1. */
static inline float exponential(float x) {
    const float whole = 12582912.0f; /* 1.5 * 2^23 */
    if (bits_of(x) > 0xC2AE0000u)    /* below -87: not normal */
        return 0;
    const float shifted = x * 1.44269504f + whole;
    const float n = shifted - whole;
    const float r = x - n * 0.693359375f - n * -2.12194440e-4f; /* ln 2 in two parts: the first has few bits */
    float sum = 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    return float_of(bits_of(sum) + ((bits_of(shifted) - bits_of(whole)) << 23));
}

/* ---- First layer ---------------------------------------------------------------------------------- */

#define BFLOAT16_ONE 0x3F80u

/* A gray level has 8 bits, as many as a number of bfloat16. */
static inline uint32_t bfloat16_of_byte(uint32_t byte) {
    return bits_of((float)byte) >> 16;
}

static inline void spread_row(const volatile lns_bh_image *image, uint32_t y) {
    const volatile uint8_t *top = (const volatile uint8_t *)(image->bytes + y * image->bytes_row);
    const volatile uint8_t *middle = top + image->bytes_row, *bottom = middle + image->bytes_row;
    volatile uint32_t *out = word_at(image->output + y * image->width * LNS_BH_PIXEL_BYTES);
    const uint32_t width = image->width;
    uint32_t a0 = bfloat16_of_byte(top[0]), a1 = bfloat16_of_byte(top[1]);
    uint32_t b0 = bfloat16_of_byte(middle[0]), b1 = bfloat16_of_byte(middle[1]);
    uint32_t c0 = bfloat16_of_byte(bottom[0]), c1 = bfloat16_of_byte(bottom[1]);
    for (uint32_t x = 2; x < width + 2; x++, out += LNS_BH_CHANNELS / 2) {
        const uint32_t a2 = bfloat16_of_byte(top[x]), b2 = bfloat16_of_byte(middle[x]);
        const uint32_t c2 = bfloat16_of_byte(bottom[x]);
        out[0] = a0 | a1 << 16;
        out[1] = a2 | b0 << 16;
        out[2] = b1 | b2 << 16;
        out[3] = c0 | c1 << 16;
        out[4] = c2 | BFLOAT16_ONE << 16;
        out[5] = BFLOAT16_ONE;
        out[6] = 0;
        out[7] = 0;
        a0 = a1, a1 = a2, b0 = b1, b1 = b2, c0 = c1, c1 = c2;
    }
}

static inline void spread(const volatile lns_bh_image *image, uint32_t thread) {
    for (uint32_t y = thread; y < image->height; y += THREADS)
        spread_row(image, y);
}

/* ---- Scores --------------------------------------------------------------------------------------- */

#define CELL 8
#define CELL_PIXELS 64

/* A number's place in the order of all that are not NaN: its bits, and for negative ones the opposite of theirs. */
static inline int32_t order_of(uint32_t bits) {
    return (int32_t)(bits ^ (uint32_t)((int32_t)bits >> 31) >> 1);
}

/* Number `channel` of a cell's logits is `channel / 16` planes further. */
static inline void score_cell(uint32_t cell, uint32_t plane, uint32_t output, uint32_t output_row) {
    float values[CELL_PIXELS];
    const uint32_t dustbin = *word_at(cell + CELL_PIXELS / LNS_BH_CHANNELS * plane);
    int32_t highest = order_of(dustbin);
    for (uint32_t first = 0; first < CELL_PIXELS; first += LNS_BH_CHANNELS, cell += plane)
        for (uint32_t i = 0; i < LNS_BH_CHANNELS; i++) {
            const uint32_t bits = word_at(cell)[i];
            const int32_t order = order_of(bits);
            values[first + i] = float_of(bits);
            highest = order > highest ? order : highest;
        }
    const float maximum = float_of((uint32_t)order_of((uint32_t)highest)); /* the mapping is its own inverse */
    float sum = exponential(float_of(dustbin) - maximum);
    for (uint32_t channel = 0; channel < CELL_PIXELS; channel++) {
        values[channel] = exponential(values[channel] - maximum);
        sum += values[channel];
    }
    const float scale = reciprocal(sum);
    for (uint32_t first = 0; first < CELL_PIXELS; first += CELL, output += output_row)
        for (uint32_t i = 0; i < CELL; i++)
            word_at(output)[i] = bits_of(values[first + i] * scale);
}

static inline void score(const volatile lns_bh_scores *s, uint32_t thread) {
    const uint32_t columns = s->columns, cells = columns * s->rows, logits = s->logits, output_row = s->output_row;
    for (uint32_t cell = thread; cell < cells; cell += THREADS)
        score_cell(logits + cell * LNS_BH_PIXEL_BYTES_FLOAT32, cells * LNS_BH_PIXEL_BYTES_FLOAT32,
                   s->output + cell / columns * CELL * output_row + cell % columns * CELL * 4, output_row);
}

/* ---- Keypoints ------------------------------------------------------------------------------------ */

#define INFINITE 0x7F800000u /* bits; above are those of numbers that are none */

/* Whether no score within the radius is above `score`. Scores are not negative, so their bits are ordered as they are.
 */
static inline int is_largest(uint32_t at, uint32_t row, uint32_t radius, uint32_t score) {
    for (uint32_t y = at - radius * row; y <= at + radius * row; y += row) {
        const volatile uint32_t *neighbour = word_at(y - radius * 4);
        for (uint32_t i = 0; i <= 2 * radius; i++)
            if (neighbour[i] > score && neighbour[i] <= INFINITE)
                return 0;
    }
    return 1;
}

static inline const volatile lns_bh_rules *rules(void) {
    return (const volatile lns_bh_rules *)LNS_BH_RULES;
}

static inline void find_keypoints(const volatile lns_bh_suppression *s, uint32_t thread) {
    const uint32_t radius = rules()->radius, threshold = rules()->threshold, border = rules()->border;
    const uint32_t list = s->lists + thread * s->list_size, row = s->scores_row, width = s->width;
    volatile lns_bh_keypoint *keypoint = (volatile lns_bh_keypoint *)(list + LNS_BH_LIST_HEADER);
    uint32_t count = 0;
    for (uint32_t y = thread; y < s->height && radius > 0; y += THREADS) {
        const uint32_t frame_y = s->y + y;
        if (frame_y < border || frame_y + border >= s->frame_height)
            continue;
        for (uint32_t x = 0; x < width; x++) {
            const uint32_t at = s->scores + y * row + x * 4, score = *word_at(at), frame_x = s->x + x;
            if (score <= threshold || score > INFINITE || frame_x < border || frame_x + border >= s->frame_width ||
                !is_largest(at, row, radius, score))
                continue;
            keypoint[count].pixel = frame_y * s->frame_width + frame_x;
            keypoint[count].score = score;
            count++;
        }
    }
    *word_at(list) = count;
}

/* ---- The loop ------------------------------------------------------------------------------------- */

/* Waits for core B, does what it asks for, and says so. `thread` is 0, 1 or 2. */
static inline __attribute__((noreturn)) void serve(uint32_t thread,
                                                   void (*convolve)(const volatile lns_bh_convolution *)) {
    uint32_t last = 0;
    control()->thread[thread].done = last;
    for (;;) {
        const uint32_t start = load_fresh(&control()->start);
        if (start == last)
            continue;
        const uint32_t kind = control()->kind, at = control()->at;
        if (kind == LNS_BH_CONVOLUTION)
            convolve((const volatile lns_bh_convolution *)at);
        else if (kind == LNS_BH_IMAGE)
            spread((const volatile lns_bh_image *)at, thread);
        else if (kind == LNS_BH_SCORES)
            score((const volatile lns_bh_scores *)at, thread);
        else
            find_keypoints((const volatile lns_bh_suppression *)at, thread);
        wait_for_thread();
        fence();
        last = start;
        control()->thread[thread].done = last;
    }
}

#endif
