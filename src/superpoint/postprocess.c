/* SPDX-License-Identifier: Apache-2.0 */
#include "superpoint/postprocess.h"

#include <string.h>

#include <lensing/superpoint.h>

#include "base/error.h"
#include "base/memory.h"

enum {
    WIDTH = LNS_NETWORK_WIDTH,
    HEIGHT = LNS_NETWORK_HEIGHT,
    BAND = 64, /* rows that are suppressed together: their working set stays in the second-level cache */
    BAND_ROWS = BAND + 2 * LNS_NMS_RADIUS_LIMIT,
    PADDED = WIDTH + 2 * LNS_NMS_RADIUS_LIMIT,
    CHUNK = 16 /* pixels that are tested for candidates together */
};

/* ---- Candidates --------------------------------------------------------------------------------- */

/* A candidate is one number: the inverted bits of its score above its pixel. Scores are positive, so their bits are
 * ordered as they are, and ascending candidates are falling scores and, among equal ones, row-major pixels. */
typedef struct candidates {
    uint64_t *keys;
    size_t count, room;
} candidates;

static uint64_t make_key(float score, uint32_t pixel) {
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return (uint64_t)~bits << 32 | pixel;
}

static float key_score(uint64_t key) {
    const uint32_t bits = ~(uint32_t)(key >> 32);
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/* Makes room for `more` candidates, so that adding needs no check. */
static lns_status reserve(candidates *c, size_t more) {
    if (c->room - c->count >= more)
        return LNS_OK;
    const size_t room = c->room * 2 + 8 * WIDTH + more;
    uint64_t *keys = lns_realloc(c->keys, room * sizeof *keys);
    if (keys == NULL)
        return lns_fail_memory(room * sizeof *keys);
    c->keys = keys;
    c->room = room;
    return LNS_OK;
}

/* Adds pixels first .. last - 1 of row y whose score is above the threshold and not below the maximum of their window.
 */
static lns_status add_row(candidates *c, const float *row, const float *maximum, float threshold, int32_t y,
                          int32_t first, int32_t last) {
    const lns_status status = reserve(c, WIDTH);
    if (status != LNS_OK)
        return status;
    for (int32_t x = first; x < last; x += CHUNK) {
        const int32_t n = last - x < CHUNK ? last - x : CHUNK;
        int32_t any = 0;
        for (int32_t i = 0; i < n; i++)
            any |= (row[x + i] > threshold) & (row[x + i] >= maximum[x + i]);
        if (!any)
            continue;
        for (int32_t i = x; i < x + n; i++) {
            c->keys[c->count] = make_key(row[i], (uint32_t)(y * WIDTH + i));
            c->count += (row[i] > threshold) & (row[i] >= maximum[i]);
        }
    }
    return LNS_OK;
}

/* ---- Suppression where few pixels are above the threshold ---------------------------------------- */

/* What a pixel takes at most in one way and in the other, in about the same unit: a vector of the window, or of the
 * passes over rows and columns. A few percent of the pixels of a photo are above the usual threshold, and most of them
 * are below a neighbour in their row. */
enum { COST_OF_PIXEL = 10, COST_OF_WINDOW = 24 };

#define LANES 4
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t mask __attribute__((vector_size(4 * LANES)));
typedef int64_t halves __attribute__((vector_size(4 * LANES)));

static inline vec load(const float *from) {
    vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline int has_any(mask m) {
    const halves h = (halves)m;
    return (h[0] | h[1]) != 0;
}

/* Whether one of `count` numbers is above `score`. */
static inline int exceeds(const float *row, int32_t count, float score) {
    const vec limit = {score, score, score, score};
    mask any = {0};
    if (count < LANES) {
        for (int32_t i = 0; i < count; i++)
            any[0] |= row[i] > score;
        return any[0];
    }
    for (int32_t i = 0; i + LANES < count; i += LANES)
        any |= load(row + i) > limit;
    any |= load(row + count - LANES) > limit;
    return has_any(any);
}

/* Whether no pixel of the window around `pixel` has a higher score. Begins with the row of the pixel. */
static int is_maximum(const float *scores, uint32_t pixel, int32_t r) {
    const int32_t x = (int32_t)(pixel % WIDTH), y = (int32_t)(pixel / WIDTH);
    const int32_t left = x > r ? x - r : 0, right = x + r < WIDTH ? x + r : WIDTH - 1;
    const float *row = scores + (size_t)y * WIDTH + left;
    const int32_t count = right - left + 1;
    if (exceeds(row, count, scores[pixel]))
        return 0;
    for (int32_t d = 1; d <= r; d++)
        if ((y >= d && exceeds(row - d * WIDTH, count, scores[pixel])) ||
            (y + d < HEIGHT && exceeds(row + d * WIDTH, count, scores[pixel])))
            return 0;
    return 1;
}

/* Pixels of rows top .. bottom - 1 that are above the threshold, up to somewhat more than `limit` of them. */
static size_t list_pixels(const float *scores, const lns_selection_rules *rules, int32_t top, int32_t bottom,
                          size_t limit, uint32_t *pixels) {
    const float threshold = rules->threshold;
    const int32_t last = WIDTH - rules->border;
    size_t count = 0;
    for (int32_t y = top; y < bottom; y++) {
        const float *row = scores + (size_t)y * WIDTH;
        for (int32_t x = rules->border; x < last && count <= limit; x += CHUNK) {
            const int32_t n = last - x < CHUNK ? last - x : CHUNK;
            /* The usual number as a constant lets the compiler unroll. */
            if (n == CHUNK ? !exceeds(row + x, CHUNK, threshold) : !exceeds(row + x, n, threshold))
                continue;
            for (int32_t i = x; i < x + n; i++) {
                pixels[count] = (uint32_t)(y * WIDTH + i);
                count += row[i] > threshold;
            }
        }
    }
    return count;
}

/* Leaves out the pixels that are below one of their four neighbours; these are most of them, and no branch tells which.
 */
static size_t keep_peaks(const float *scores, uint32_t *pixels, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t pixel = pixels[i], x = pixel % WIDTH;
        const float score = scores[pixel];
        const float *left = scores + pixel - (x > 0), *right = scores + pixel + (x < WIDTH - 1);
        const float *above = scores + (pixel >= WIDTH ? pixel - WIDTH : pixel);
        const float *below = scores + (pixel + WIDTH < WIDTH * HEIGHT ? pixel + WIDTH : pixel);
        pixels[kept] = pixel;
        kept += !((*left > score) | (*right > score) | (*above > score) | (*below > score));
    }
    return kept;
}

static lns_status add_maxima(candidates *c, const float *scores, int32_t r, uint32_t *pixels, size_t count) {
    count = keep_peaks(scores, pixels, count);
    const lns_status status = reserve(c, count);
    if (status != LNS_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        if (is_maximum(scores, pixels[i], r))
            c->keys[c->count++] = make_key(scores[pixels[i]], pixels[i]);
    return LNS_OK;
}

/* ---- Suppression of all pixels ------------------------------------------------------------------ */

static inline float larger(float a, float b) {
    return a > b ? a : b;
}

static void maximum_of(float *restrict out, const float *restrict a, const float *restrict b, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        out[i] = larger(a[i], b[i]);
}

static void raise_to(float *restrict out, const float *restrict other, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        out[i] = larger(out[i], other[i]);
}

/* out[x] = maximum of the window of row pixels x - r .. x + r. Scores that are not above the threshold count as 0,
 * which is harmless: they cannot exceed one that is, and only those are asked for. The window is doubled until one step
 * more would exceed it. */
static void maximum_along_row(const float *row, float threshold, int32_t r, float *out) {
    float a[PADDED], b[PADDED];
    float *now = a, *next = b;
    int32_t count = WIDTH + 2 * r, window = 1;
    memset(now, 0, (size_t)r * sizeof *now);
    for (int32_t x = 0; x < WIDTH; x++)
        now[r + x] = row[x] > threshold ? row[x] : 0.0F;
    memset(now + r + WIDTH, 0, (size_t)r * sizeof *now);
    while (2 * window <= 2 * r + 1) {
        count -= window;
        maximum_of(next, now, now + window, count);
        float *swap = now;
        now = next;
        next = swap;
        window *= 2;
    }
    maximum_of(out, now, now + (2 * r + 1 - window), WIDTH);
}

/* rows: count + 2 r rows. Afterwards row y, below `count`, is the maximum of what rows y .. y + 2 r were. */
static void maximum_along_columns(float (*rows)[WIDTH], int32_t count, int32_t r) {
    int32_t held = count + 2 * r, window = 1;
    while (2 * window <= 2 * r + 1) {
        held -= window;
        for (int32_t y = 0; y < held; y++)
            raise_to(rows[y], rows[y + window], WIDTH);
        window *= 2;
    }
    const int32_t rest = 2 * r + 1 - window;
    for (int32_t y = 0; y < count && rest > 0; y++)
        raise_to(rows[y], rows[y + rest], WIDTH);
}

/* Candidates of rows top .. bottom - 1. `rows` is scratch. */
static lns_status suppress_band(const float *scores, const lns_selection_rules *rules, int32_t top, int32_t bottom,
                                float (*rows)[WIDTH], candidates *c) {
    const int32_t r = rules->nms_radius;
    for (int32_t y = top - r; y < bottom + r; y++) {
        float *row = rows[y - (top - r)];
        if (y < 0 || y >= HEIGHT)
            memset(row, 0, sizeof *rows);
        else
            maximum_along_row(scores + (size_t)y * WIDTH, rules->threshold, r, row);
    }
    maximum_along_columns(rows, bottom - top, r);
    for (int32_t y = top; y < bottom; y++) {
        const lns_status status = add_row(c, scores + (size_t)y * WIDTH, rows[y - top], rules->threshold, y,
                                          rules->border, WIDTH - rules->border);
        if (status != LNS_OK)
            return status;
    }
    return LNS_OK;
}

static lns_status scan_band(const float *scores, const lns_selection_rules *rules, int32_t top, int32_t bottom,
                            float (*rows)[WIDTH], candidates *c) {
    const size_t window = 2 * (size_t)rules->nms_radius + 1;
    const size_t limit =
        (size_t)(bottom - top) * WIDTH * COST_OF_PIXEL / (window * ((window + LANES - 1) / LANES) + COST_OF_WINDOW);
    uint32_t *pixels = (uint32_t *)rows; /* enough for the limit and a chunk: that is less than half the pixels */
    const size_t count = list_pixels(scores, rules, top, bottom, limit, pixels);
    if (count <= limit)
        return add_maxima(c, scores, rules->nms_radius, pixels, count);
    return suppress_band(scores, rules, top, bottom, rows, c);
}

static lns_status find_suppressed(const float *scores, const lns_selection_rules *rules, candidates *c) {
    const size_t size = BAND_ROWS * WIDTH * sizeof(float);
    float(*rows)[WIDTH] = lns_aligned_alloc(size);
    if (rows == NULL)
        return lns_fail_memory(size);
    lns_status status = LNS_OK;
    const int32_t end = HEIGHT - rules->border;
    for (int32_t top = rules->border; top < end && status == LNS_OK; top += BAND)
        status = scan_band(scores, rules, top, end - top < BAND ? end : top + BAND, rows, c);
    lns_aligned_free(rows);
    return status;
}

static lns_status find_all(const float *scores, const lns_selection_rules *rules, candidates *c) {
    for (int32_t y = rules->border; y < HEIGHT - rules->border; y++) {
        const float *row = scores + (size_t)y * WIDTH;
        const lns_status status = add_row(c, row, row, rules->threshold, y, rules->border, WIDTH - rules->border);
        if (status != LNS_OK)
            return status;
    }
    return LNS_OK;
}

/* ---- Selection ---------------------------------------------------------------------------------- */

/* Keys are looked at in digits of 11 bits: three of the score, which are 32 bits above SCORE_BIT, and two of the pixel,
 * which has fewer than 22. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, SCORE_BIT = 32, SHIFTS = 5, PIXEL_SHIFTS = 2 };
static const int shifts[SHIFTS] = {0, DIGIT_BITS, SCORE_BIT, SCORE_BIT + DIGIT_BITS, SCORE_BIT + 2 * DIGIT_BITS};

_Static_assert(WIDTH * HEIGHT <= 1 << PIXEL_SHIFTS * DIGIT_BITS, "a pixel has more digits");

static uint32_t digit(uint64_t key, int shift) {
    return (uint32_t)(key >> shift) & (DIGITS - 1);
}

/* Keeps the k lowest keys, in their old order. Finds the last one digit by digit, from the highest, until all keys that
 * begin with the same digits are wanted. */
static void keep_lowest(candidates *c, size_t k) {
    uint64_t prefix = 0;
    size_t wanted = k; /* how many of the keys that begin with the prefix; at least 1 */
    int shift = 0;
    for (int i = SHIFTS - 1, above = 0; i >= 0; i--, above = shift) {
        uint32_t histogram[DIGITS] = {0};
        shift = shifts[i];
        for (size_t n = 0; n < c->count; n++)
            if (i == SHIFTS - 1 || c->keys[n] >> above == prefix)
                histogram[digit(c->keys[n], shift)]++;
        uint32_t d = 0;
        for (; histogram[d] < wanted; d++)
            wanted -= histogram[d];
        prefix = (i == SHIFTS - 1 ? 0 : prefix << (above - shift)) | d;
        if (histogram[d] == wanted)
            break;
    }
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->keys[kept] = c->keys[i];
        kept += c->keys[i] >> shift <= prefix;
    }
    c->count = kept;
}

/* Stable sort by the digits of the keys from number `first` on. */
static lns_status sort_candidates(candidates *c, int first) {
    uint64_t *other = lns_alloc_array(c->count, sizeof *other);
    if (other == NULL)
        return lns_fail_memory(c->count * sizeof *other);
    for (int i = first; i < SHIFTS; i++) {
        uint32_t position[DIGITS] = {0};
        for (size_t n = 0; n < c->count; n++)
            position[digit(c->keys[n], shifts[i])]++;
        uint32_t sum = 0;
        for (uint32_t d = 0; d < DIGITS; d++) {
            const uint32_t here = position[d];
            position[d] = sum;
            sum += here;
        }
        for (size_t n = 0; n < c->count; n++)
            other[position[digit(c->keys[n], shifts[i])]++] = c->keys[n];
        uint64_t *swap = c->keys;
        c->keys = other;
        other = swap;
    }
    lns_free(other);
    return LNS_OK;
}

static lns_status make_selection(const candidates *c, lns_selection *selection) {
    selection->pixels = lns_alloc_array(c->count, sizeof *selection->pixels);
    selection->scores = lns_alloc_array(c->count, sizeof *selection->scores);
    if (selection->pixels == NULL || selection->scores == NULL)
        return lns_fail_memory(c->count * sizeof *selection->scores);
    for (size_t i = 0; i < c->count; i++) {
        selection->pixels[i] = (uint32_t)c->keys[i];
        selection->scores[i] = key_score(c->keys[i]);
    }
    selection->count = c->count;
    return LNS_OK;
}

/* The selection of at most max_keypoints of the candidates, unless `status` is an error already. They are sorted by the
 * digits of their keys from number `first` on. Frees them. */
static lns_status finish(candidates *c, lns_status status, int first, int32_t max_keypoints, lns_selection *selection) {
    if (max_keypoints == 0)
        c->count = 0;
    else if (status == LNS_OK && max_keypoints > 0 && c->count > (size_t)max_keypoints)
        keep_lowest(c, (size_t)max_keypoints);
    if (status == LNS_OK)
        status = sort_candidates(c, first);
    if (status == LNS_OK)
        status = make_selection(c, selection);
    if (status != LNS_OK)
        lns_selection_free(selection);
    lns_free(c->keys);
    return status;
}

lns_status lns_select_keypoints(const float *scores, const lns_selection_rules *rules, lns_selection *selection) {
    candidates c = {NULL, 0, 0};
    lns_status status = LNS_OK;
    *selection = (lns_selection){0, NULL, NULL};
    /* Half the height and more leaves no row; the guard also keeps the sums above from overflowing. */
    if (rules->max_keypoints != 0 && rules->border < HEIGHT / 2)
        status = rules->nms_radius > 0 ? find_suppressed(scores, rules, &c) : find_all(scores, rules, &c);
    return finish(&c, status, PIXEL_SHIFTS, rules->max_keypoints, selection); /* candidates are in row-major order */
}

lns_status lns_order_keypoints(const lns_scored_pixel *found, size_t count, int32_t max_keypoints,
                               lns_selection *selection) {
    candidates c = {lns_alloc_array(count, sizeof *c.keys), count, count};
    *selection = (lns_selection){0, NULL, NULL};
    if (c.keys == NULL)
        return lns_fail_memory(count * sizeof *c.keys);
    for (size_t i = 0; i < count; i++)
        c.keys[i] = make_key(found[i].score, found[i].pixel);
    return finish(&c, LNS_OK, 0, max_keypoints, selection);
}

void lns_selection_free(lns_selection *selection) {
    lns_free(selection->pixels);
    lns_free(selection->scores);
    *selection = (lns_selection){0, NULL, NULL};
}
