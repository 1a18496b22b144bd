/* SPDX-License-Identifier: Apache-2.0 */
#include "features/matching.h"

#include <math.h>
#include <string.h>

#include <lensing/features.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"

#define PANEL LNS_MATCH_PANEL
#define ROWS LNS_MATCH_ROWS
#define NONE UINT32_MAX

/* Descriptors of the first picture in one round: few enough to stay in the cache while the panels pass. */
#define ROUND_ROWS 64

/* Below this many pairs, starting threads takes longer than they save. */
#define THREADS_PAY (UINT64_C(1) << 19)

/* Nearest neighbours of one picture's keypoints. `second` is the similarity of the runner-up; -INFINITY: there is none.
 */
typedef struct nearest {
    float *best;
    float *second;
    uint32_t *index;
} nearest;

typedef struct problem {
    const float *first;
    size_t first_count;
    const float *panels; /* the second picture's descriptors, packed; missing ones are zero */
    size_t second_count;
    lns_match_kernel kernel;
    nearest rows;     /* for each keypoint of the first picture; each belongs to one round */
    nearest *columns; /* for each worker: for each keypoint of the second picture, the nearest of the worker's rows */
} problem;

static lns_status nearest_create(nearest *n, size_t count, int with_second) {
    n->best = lns_alloc_array(count, sizeof *n->best);
    n->index = lns_alloc_array(count, sizeof *n->index);
    n->second = with_second ? lns_alloc_array(count, sizeof *n->second) : NULL;
    if (n->best == NULL || n->index == NULL || (with_second && n->second == NULL))
        return lns_fail_memory(count * sizeof *n->best);
    for (size_t i = 0; i < count; i++) {
        n->best[i] = -INFINITY;
        n->index[i] = NONE;
        if (with_second)
            n->second[i] = -INFINITY;
    }
    return LNS_OK;
}

static void nearest_destroy(nearest *n) {
    lns_free(n->best);
    lns_free(n->second);
    lns_free(n->index);
}

static float *pack_panels(const float *descriptors, size_t count) {
    const size_t panels = (count + PANEL - 1) / PANEL;
    if (panels > SIZE_MAX / (PANEL * LNS_DESCRIPTOR_SIZE * sizeof(float)))
        return NULL;
    float *packed = lns_aligned_alloc(panels * PANEL * LNS_DESCRIPTOR_SIZE * sizeof *packed);
    if (packed == NULL)
        return NULL;
    for (size_t p = 0; p < panels; p++) {
        float *panel = packed + p * PANEL * LNS_DESCRIPTOR_SIZE;
        for (size_t j = 0; j < PANEL; j++) {
            const size_t i = p * PANEL + j;
            for (size_t k = 0; k < LNS_DESCRIPTOR_SIZE; k++)
                panel[k * PANEL + j] = i < count ? descriptors[i * LNS_DESCRIPTOR_SIZE + k] : 0;
        }
    }
    return packed;
}

/* Most rows of most panels hold nothing better than what is known, and this says so on vectors. */
static inline int any_above(const float *products, float limit) {
    int any = 0;
    for (size_t j = 0; j < PANEL; j++)
        any |= products[j] > limit;
    return any;
}

static inline int any_not_below(const float *products, const float *limits) {
    int any = 0;
    for (size_t j = 0; j < PANEL; j++)
        any |= products[j] >= limits[j];
    return any;
}

/* Columns come in rising order, so that an equal later one is not better. */
static void update_row(const nearest *rows, size_t row, const float *products, size_t columns, size_t first_column) {
    for (size_t j = 0; j < columns; j++) {
        if (products[j] > rows->best[row]) {
            rows->second[row] = rows->best[row];
            rows->best[row] = products[j];
            rows->index[row] = (uint32_t)(first_column + j);
        } else if (products[j] > rows->second[row]) {
            rows->second[row] = products[j];
        }
    }
}

static int is_nearer(float similarity, uint32_t index, float best, uint32_t best_index) {
    return similarity > best || (similarity == best && index < best_index);
}

static void update_columns(const nearest *columns, size_t row, const float *products, size_t count,
                           size_t first_column) {
    for (size_t j = 0; j < count; j++) {
        const size_t column = first_column + j;
        if (is_nearer(products[j], (uint32_t)row, columns->best[column], columns->index[column])) {
            columns->best[column] = products[j];
            columns->index[column] = (uint32_t)row;
        }
    }
}

static void match_rows(const problem *p, const float *descriptors, size_t first_row, size_t rows, size_t panel,
                       const nearest *columns) {
    float products[ROWS * PANEL];
    p->kernel(descriptors, p->panels + panel * PANEL * LNS_DESCRIPTOR_SIZE, products);
    const size_t first_column = panel * PANEL;
    const size_t left = p->second_count - first_column;
    const int whole = left >= PANEL;
    for (size_t r = 0; r < rows; r++) {
        const float *row = products + r * PANEL;
        if (!whole || any_above(row, p->rows.second[first_row + r]))
            update_row(&p->rows, first_row + r, row, whole ? PANEL : left, first_column);
        if (!whole || any_not_below(row, columns->best + first_column))
            update_columns(columns, first_row + r, row, whole ? PANEL : left, first_column);
    }
}

static void match_round(void *context, size_t round, int worker) {
    const problem *p = context;
    const size_t begin = round * ROUND_ROWS;
    const size_t end = begin + ROUND_ROWS < p->first_count ? begin + ROUND_ROWS : p->first_count;
    const size_t panels = (p->second_count + PANEL - 1) / PANEL;
    float last[ROWS * LNS_DESCRIPTOR_SIZE];
    const size_t left = (end - begin) % ROWS;
    if (left > 0) {
        memset(last, 0, sizeof last);
        memcpy(last, p->first + (end - left) * LNS_DESCRIPTOR_SIZE, left * LNS_DESCRIPTOR_SIZE * sizeof *last);
    }
    for (size_t panel = 0; panel < panels; panel++) {
        size_t row = begin;
        for (; row + ROWS <= end; row += ROWS)
            match_rows(p, p->first + row * LNS_DESCRIPTOR_SIZE, row, ROWS, panel, &p->columns[worker]);
        if (left > 0)
            match_rows(p, last, row, left, panel, &p->columns[worker]);
    }
}

/* The nearest over all workers, into the first one. */
static void merge_columns(const problem *p, int workers) {
    const nearest *all = &p->columns[0];
    for (int w = 1; w < workers; w++) {
        const nearest *n = &p->columns[w];
        for (size_t j = 0; j < p->second_count; j++) {
            if (is_nearer(n->best[j], n->index[j], all->best[j], all->index[j])) {
                all->best[j] = n->best[j];
                all->index[j] = n->index[j];
            }
        }
    }
}

static double distance(float similarity) {
    return sqrt(fmax(0, 2 - 2 * (double)similarity));
}

static int is_accepted(const problem *p, size_t row, const lns_match_options *options) {
    const uint32_t column = p->rows.index[row];
    if (column == NONE || p->columns[0].index[column] != row)
        return 0;
    const float best = p->rows.best[row];
    const float second = p->rows.second[row];
    if (best < options->min_similarity)
        return 0;
    if (options->ratio >= 1 || second == -INFINITY)
        return 1;
    return distance(best) < (double)options->ratio * distance(second);
}

static lns_status collect(const problem *p, const lns_match_options *options, lns_matches **matches) {
    const size_t limit = p->first_count < p->second_count ? p->first_count : p->second_count;
    lns_matches *result = lns_alloc(sizeof *result);
    lns_match *items = lns_alloc_array(limit, sizeof *items);
    if (result == NULL || items == NULL) {
        lns_free(result);
        lns_free(items);
        return lns_fail_memory(limit * sizeof *items);
    }
    size_t count = 0;
    for (size_t row = 0; row < p->first_count; row++) {
        if (!is_accepted(p, row, options))
            continue;
        const float similarity = fminf(1, fmaxf(-1, p->rows.best[row])); /* sums of rounded products may exceed 1 */
        items[count++] = (lns_match){(uint32_t)row, p->rows.index[row], similarity};
    }
    result->count = count;
    result->items = items;
    *matches = result;
    return LNS_OK;
}

static lns_status match_in_pool(problem *p, lns_thread_pool *pool, const lns_match_options *options,
                                lns_matches **matches) {
    const int workers = lns_thread_pool_size(pool);
    p->columns = lns_calloc((size_t)workers, sizeof *p->columns);
    if (p->columns == NULL)
        return lns_fail_memory((size_t)workers * sizeof *p->columns);
    lns_status status = LNS_OK;
    for (int w = 0; w < workers && status == LNS_OK; w++)
        status = nearest_create(&p->columns[w], p->second_count, 0);
    if (status == LNS_OK) {
        lns_thread_pool_run(pool, (p->first_count + ROUND_ROWS - 1) / ROUND_ROWS, match_round, p);
        merge_columns(p, workers);
        status = collect(p, options, matches);
    }
    for (int w = 0; w < workers; w++)
        nearest_destroy(&p->columns[w]);
    lns_free(p->columns);
    return status;
}

static lns_status match_all(const lns_features *first, const lns_features *second, const lns_match_options *options,
                            lns_matches **matches) {
    problem p = {.first = first->descriptors, .first_count = first->count, .second_count = second->count};
    int threads = options->threads > 0 ? options->threads : lns_cpu_count();
    if ((uint64_t)first->count * second->count < THREADS_PAY)
        threads = 1;
    lns_cpu_level level;
    lns_status status = lns_cpu_choose_level(&level);
    if (status != LNS_OK)
        return status;
    p.kernel = lns_match_kernel_get(level);
    float *panels = pack_panels(second->descriptors, second->count);
    if (panels == NULL)
        return lns_fail_memory(second->count * LNS_DESCRIPTOR_SIZE * sizeof *panels);
    p.panels = panels;
    lns_thread_pool *pool = NULL;
    status = nearest_create(&p.rows, first->count, 1);
    if (status == LNS_OK)
        status = lns_thread_pool_create(threads < LNS_THREADS_LIMIT ? threads : LNS_THREADS_LIMIT, &pool);
    if (status == LNS_OK)
        status = match_in_pool(&p, pool, options, matches);
    lns_thread_pool_destroy(&pool);
    nearest_destroy(&p.rows);
    lns_aligned_free(panels);
    return status;
}

void lns_match_options_init(lns_match_options *options) {
    *options = (lns_match_options){.struct_size = sizeof *options, .ratio = 1, .min_similarity = -1};
}

static lns_status check_options(const lns_match_options *options) {
    if (!(options->ratio > 0 && options->ratio <= 1))
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "ratio is %g; it must be above 0 and at most 1",
                        (double)options->ratio);
    if (!(options->min_similarity >= -1 && options->min_similarity <= 1))
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "min_similarity is %g; it must be from -1 to 1",
                        (double)options->min_similarity);
    if (options->threads < 0 || options->threads > LNS_THREADS_LIMIT)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "threads is %d; it must be from 0 (all CPUs) to %d",
                        options->threads, LNS_THREADS_LIMIT);
    return LNS_OK;
}

static lns_status check_features(const lns_features *features, const char *which) {
    if (features->descriptors == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_match_features: the %s picture's keypoints have no descriptors; detect with descriptors",
                        which);
    if (features->count >= NONE)
        return lns_fail(LNS_ERROR_LIMIT,
                        "lns_match_features: %zu keypoints in the %s picture; at most %u can be matched",
                        features->count, which, NONE - 1);
    return LNS_OK;
}

lns_status lns_match_features(const lns_features *first, const lns_features *second, const lns_match_options *options,
                              lns_matches **matches) {
    if (matches != NULL)
        *matches = NULL;
    if (first == NULL || second == NULL || matches == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_match_features: first, second and matches must not be NULL");
    lns_match_options used;
    lns_match_options_init(&used);
    lns_status status = lns_options_take(&used, sizeof used, options, "lns_match_options");
    if (status == LNS_OK)
        status = check_options(&used);
    if (status == LNS_OK)
        status = check_features(first, "first");
    if (status == LNS_OK)
        status = check_features(second, "second");
    if (status != LNS_OK)
        return status;
    return match_all(first, second, &used, matches);
}

void lns_matches_close(lns_matches **matches) {
    if (matches == NULL || *matches == NULL)
        return;
    lns_free((void *)(size_t)(*matches)->items);
    lns_free(*matches);
    *matches = NULL;
}
