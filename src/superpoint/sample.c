/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors between the cells of a map: one of float32, or one as a card leaves it. */
#include "superpoint/postprocess.h"

#include <math.h>
#include <stdatomic.h>

#include "base/cpu.h"
#include "base/threads.h"
#include "blackhole/cells.h"

enum { WIDTH = LNS_NETWORK_WIDTH, BLOCKS_X = LNS_CELLS_X / LNS_BLACKHOLE_CELLS_X, CORNERS = 4, AHEAD = 2, SHARE = 32 };
enum { LANES = 16 };

#define INLINE static inline __attribute__((always_inline))

/* ---- Places ------------------------------------------------------------------------------------- */

/* A place between two cells of the map on one axis. */
typedef struct between {
    int32_t low;      /* the cell before; the other is low + 1 */
    float weights[2]; /* of the two cells; 0 where the cell is outside the map */
} between;

/* In float32 and in the order of torch: the keypoint scaled to -1..1 and, by grid_sample with align_corners, back. */
static between find_cells(uint32_t pixel, int32_t cells) {
    const float half_cell = LNS_CELL / 2;
    const float divisor = (float)(cells * LNS_CELL) - half_cell - 0.5F;
    const float scaled = ((float)pixel - half_cell + 0.5F) / divisor * 2.0F - 1.0F;
    const float place = (scaled + 1.0F) * ((float)(cells - 1) / 2.0F);
    const float low = floorf(place);
    between b = {.low = (int32_t)low};
    b.weights[1] = b.low + 1 < cells ? place - low : 0.0F;
    b.weights[0] = b.low >= 0 ? 1.0F - (place - low) : 0.0F;
    return b;
}

/* A cell of the map; where it is outside, any cell will do, as its weight is 0. */
static inline size_t cell_at(int32_t x, int32_t y) {
    const int32_t cx = x < 0 ? 0 : x < LNS_CELLS_X ? x : LNS_CELLS_X - 1;
    const int32_t cy = y < 0 ? 0 : y < LNS_CELLS_Y ? y : LNS_CELLS_Y - 1;
    return (size_t)cy * LNS_CELLS_X + (size_t)cx;
}

size_t lns_list_cells(const uint32_t *pixels, size_t count, uint16_t *cells) {
    uint8_t is_read[LNS_CELLS] = {0};
    for (size_t i = 0; i < count; i++) {
        const between x = find_cells(pixels[i] % WIDTH, LNS_CELLS_X);
        const between y = find_cells(pixels[i] / WIDTH, LNS_CELLS_Y);
        for (int32_t corner = 0; corner < 4; corner++)
            is_read[cell_at(x.low + corner % 2, y.low + corner / 2)] = 1;
    }
    size_t found = 0;
    for (uint16_t cell = 0; cell < LNS_CELLS; cell++)
        if (is_read[cell])
            cells[found++] = cell;
    return found;
}

/* ---- Samples ------------------------------------------------------------------------------------ */

/* Where descriptors come from: one of the two maps. */
typedef struct source {
    const float *map;       /* [cell][256], each of length 1 */
    const uint16_t *blocks; /* as in blackhole/cells.h */
    _Atomic float *scales;  /* of the cells of `blocks`, to make their length 1; 0: not known yet. Who needs one first
                               computes it, or several at once, who all find the same */
} source;

/* The four cells around a pixel, and what each is multiplied by. */
typedef struct corners {
    size_t cells[CORNERS];
    float weights[CORNERS];
} corners;

INLINE corners find_corners(uint32_t pixel) {
    const between x = find_cells(pixel % WIDTH, LNS_CELLS_X);
    const between y = find_cells(pixel / WIDTH, LNS_CELLS_Y);
    return (corners){
        .cells = {cell_at(x.low, y.low), cell_at(x.low + 1, y.low), cell_at(x.low, y.low + 1),
                  cell_at(x.low + 1, y.low + 1)},
        .weights = {x.weights[0] * y.weights[0], x.weights[1] * y.weights[0], x.weights[0] * y.weights[1],
                    x.weights[1] * y.weights[1]},
    };
}

/* In the order of torch, and sums of squares in the order of the lanes. */
INLINE void sample_map(const float *map, uint32_t pixel, float *restrict out) {
    const corners k = find_corners(pixel);
    const float *a = map + k.cells[0] * LNS_DESCRIPTOR_SIZE, *b = map + k.cells[1] * LNS_DESCRIPTOR_SIZE;
    const float *c = map + k.cells[2] * LNS_DESCRIPTOR_SIZE, *d = map + k.cells[3] * LNS_DESCRIPTOR_SIZE;
    const float wa = k.weights[0], wb = k.weights[1], wc = k.weights[2], wd = k.weights[3];
    for (int i = 0; i < LNS_DESCRIPTOR_SIZE; i++)
        out[i] = a[i] * wa + b[i] * wb + c[i] * wc + d[i] * wd;
    float sums[LANES] = {0}; /* as many as keep the widest vector busy; the order does not depend on the compiler */
    for (int i = 0; i < LNS_DESCRIPTOR_SIZE; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += out[i + lane] * out[i + lane];
    float sum = 0.0F;
    for (int lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    const float length = fmaxf(sqrtf(sum), 1e-12F);
    for (int i = 0; i < LNS_DESCRIPTOR_SIZE; i++)
        out[i] /= length;
}

INLINE const uint16_t *block_cell(const source *s, size_t cell) {
    return lns_cell_at(s->blocks, BLOCKS_X, cell % LNS_CELLS_X, cell / LNS_CELLS_X);
}

INLINE float block_scale(const source *s, size_t cell) {
    float scale = atomic_load_explicit(&s->scales[cell], memory_order_relaxed);
    if (scale == 0.0F) {
        scale = lns_cell_scale(block_cell(s, cell));
        atomic_store_explicit(&s->scales[cell], scale, memory_order_relaxed);
    }
    return scale;
}

/* The scale of a cell goes into its weight. */
INLINE void sample_blocks(const source *s, uint32_t pixel, float *restrict out) {
    corners k = find_corners(pixel);
    const uint16_t *at[CORNERS];
    for (int corner = 0; corner < CORNERS; corner++) {
        at[corner] = block_cell(s, k.cells[corner]);
        k.weights[corner] *= block_scale(s, k.cells[corner]);
    }
    const float wa = k.weights[0], wb = k.weights[1], wc = k.weights[2], wd = k.weights[3];
    float squares[LANES] = {0};
    for (int part = 0; part < LNS_CELL_PARTS; part++)
        for (int lane = 0; lane < LANES; lane++) {
            const int from = part * LNS_CELL_STRIDE + lane;
            const float sum = (lns_blackhole_float32(at[0][from]) * wa + lns_blackhole_float32(at[1][from]) * wb) +
                              (lns_blackhole_float32(at[2][from]) * wc + lns_blackhole_float32(at[3][from]) * wd);
            squares[lane] += sum * sum;
            out[part * LANES + lane] = sum;
        }
    const float scale = lns_cell_reciprocal(squares);
    for (int i = 0; i < LNS_DESCRIPTOR_SIZE; i++)
        out[i] *= scale;
}

/* Cells of a row whose first one is even have their lines of the caches in common. */
INLINE void prefetch_corners(const source *s, uint32_t pixel) {
    const corners k = find_corners(pixel);
    for (int corner = 0; corner < CORNERS; corner++)
        if (k.cells[corner] % 2 == 0 || corner % 2 == 0)
            lns_cell_prefetch(block_cell(s, k.cells[corner]));
}

INLINE void sample_all(const source *s, const uint32_t *pixels, size_t count, float *descriptors) {
    if (s->blocks == NULL)
        for (size_t i = 0; i < count; i++)
            sample_map(s->map, pixels[i], descriptors + i * LNS_DESCRIPTOR_SIZE);
    else
        for (size_t i = 0; i < count; i++) {
            if (i + AHEAD < count)
                prefetch_corners(s, pixels[i + AHEAD]);
            sample_blocks(s, pixels[i], descriptors + i * LNS_DESCRIPTOR_SIZE);
        }
}

#if defined(__x86_64__)
/* The same with wider vectors. Without FMA, which would round differently. */
__attribute__((target("avx2"))) static void sample_all_avx2(const source *s, const uint32_t *pixels, size_t count,
                                                            float *descriptors) {
    sample_all(s, pixels, count, descriptors);
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) static void
sample_all_avx512(const source *s, const uint32_t *pixels, size_t count, float *descriptors) {
    sample_all(s, pixels, count, descriptors);
}
#endif

static void sample_source(const source *s, const uint32_t *pixels, size_t count, float *descriptors) {
#if defined(__x86_64__)
    lns_cpu_level level;
    const int known = lns_cpu_choose_level(&level) == LNS_OK;
    if (known && level >= LNS_CPU_AVX512) {
        sample_all_avx512(s, pixels, count, descriptors);
        return;
    }
    if (known && level >= LNS_CPU_AVX2) {
        sample_all_avx2(s, pixels, count, descriptors);
        return;
    }
#endif
    sample_all(s, pixels, count, descriptors);
}

void lns_sample_descriptors(const float *map, const uint32_t *pixels, size_t count, float *descriptors) {
    const source s = {.map = map};
    sample_source(&s, pixels, count, descriptors);
}

typedef struct shared_work {
    source source;
    const uint32_t *pixels;
    size_t count;
    float *descriptors;
} shared_work;

static void sample_share(void *context, size_t round, int worker) {
    const shared_work *work = context;
    const size_t first = round * SHARE, left = work->count - first;
    (void)worker;
    sample_source(&work->source, work->pixels + first, left < SHARE ? left : SHARE,
                  work->descriptors + first * LNS_DESCRIPTOR_SIZE);
}

void lns_sample_blocks(lns_thread_pool *pool, const uint16_t *blocks, const uint32_t *pixels, size_t count,
                       float *descriptors) {
    _Atomic float scales[LNS_CELLS] = {0};
    shared_work work = {{.blocks = blocks, .scales = scales}, pixels, count, descriptors};
    lns_thread_pool_run(pool, (count + SHARE - 1) / SHARE, sample_share, &work);
}
