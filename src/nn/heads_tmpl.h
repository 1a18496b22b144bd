/* SPDX-License-Identifier: Apache-2.0 */
/* The 1 x 1 layers with what follows them: softmax and folding for the scores, scaling to length 1 for the descriptors.
 * Included by kernels_tmpl.h. */

#define CELL 8                     /* pixels of a cell, each way */
#define CELL_PIXELS (CELL * CELL)  /* classes without the last, "no keypoint" */
#define DESCRIPTOR_OUTPUTS 256

/* e^x for -87 <= x <= 0, relative error below 3e-7: x = n ln 2 + r with |r| <= ln(2) / 2, and the Taylor series of e^r
 * up to r^7 / 7!, whose rest is below 6e-9. ln 2 is taken off in two parts, of which n times the first is exact. */
INLINE vec vec_exp(vec x) {
    const ivec n = vec_round(x * vec_all(1.44269504f));
    const vec whole = vec_from_int(n);
    const vec r = vec_fma(whole, vec_all(2.12194440e-4f), vec_fma(whole, vec_all(-0.693359375f), x));
    vec sum = vec_all(1.0f / 5040);
    sum = vec_fma(sum, r, vec_all(1.0f / 720));
    sum = vec_fma(sum, r, vec_all(1.0f / 120));
    sum = vec_fma(sum, r, vec_all(1.0f / 24));
    sum = vec_fma(sum, r, vec_all(1.0f / 6));
    sum = vec_fma(sum, r, vec_all(0.5f));
    sum = vec_fma(sum, r, vec_all(1.0f));
    sum = vec_fma(sum, r, vec_all(1.0f));
    return (vec)((ivec)sum + (n << 23));
}

/* out[r][k] for ROWS cells from `input` on, of which `count` exist, and all `outputs`. */
INLINE void multiply_cells(const element *input, size_t stride, size_t count, const element *packed, int outputs,
                           float *out) {
    element copy[ROWS * LNS_HEAD_INPUTS] __attribute__((aligned(LNS_KERNEL_ALIGNMENT)));
    if (count < ROWS) {
        memset(copy, 0, sizeof copy);
        for (size_t r = 0; r < count; r++)
            memcpy(copy + r * LNS_HEAD_INPUTS, input + r * stride, LNS_HEAD_INPUTS * sizeof(element));
        input = copy;
        stride = LNS_HEAD_INPUTS;
    }
    for (int block = 0; block < outputs / BLOCK; block++)
        multiply(input, stride, packed + (size_t)block * LNS_HEAD_INPUTS * BLOCK, LNS_HEAD_INPUTS, out + block * BLOCK,
                 (size_t)outputs);
}

/* ---- Scores ------------------------------------------------------------------------------------- */

INLINE float dot_inputs(const element *a, const float *b) {
    vec parts[PART_VECS];
    for (int p = 0; p < PART_VECS; p++)
        parts[p] = vec_all(0.0f);
    for (int i = 0; i < LNS_HEAD_INPUTS; i += PARTS)
        for (int p = 0; p < PART_VECS; p++)
            parts[p] = vec_fma(load_elements(a + i + p * LANES), vec_load(b + i + p * LANES), parts[p]);
    return sum_parts(parts);
}

INLINE float vec_largest(vec x) {
    float lanes[LANES];
    memcpy(lanes, &x, sizeof lanes);
    float largest = lanes[0];
    for (int i = 1; i < LANES; i++)
        largest = lanes[i] > largest ? lanes[i] : largest;
    return largest;
}

/* Softmax over 65 values; the first 64 results become the 8 x 8 pixels of the cell. */
INLINE void softmax_to_cell(const float *logits, float reject, float *pixels, size_t pixel_row) {
    vec largest = vec_all(reject);
    for (int i = 0; i < CELL_PIXELS; i += LANES)
        largest = vec_max(largest, vec_load(logits + i));
    const vec top = vec_all(vec_largest(largest));
    const vec lowest = vec_all(-87.0f);
    float powers[CELL_PIXELS] __attribute__((aligned(LNS_KERNEL_ALIGNMENT)));
    vec parts[PART_VECS];
    for (int p = 0; p < PART_VECS; p++)
        parts[p] = vec_all(0.0f);
    for (int i = 0; i < CELL_PIXELS; i += LANES) {
        const vec power = vec_exp(vec_max(vec_load(logits + i) - top, lowest));
        vec_store(powers + i, power);
        parts[i / LANES % PART_VECS] += power;
    }
    float reject_power[LANES];
    const vec reject_vec = vec_exp(vec_max(vec_all(reject) - top, lowest));
    memcpy(reject_power, &reject_vec, sizeof reject_power);
    const vec total = vec_all(sum_parts(parts) + reject_power[0]);
    for (int i = 0; i < CELL_PIXELS; i += LANES)
        vec_store(powers + i, vec_load(powers + i) / total);
    for (int y = 0; y < CELL; y++)
        memcpy(pixels + (size_t)y * pixel_row, powers + y * CELL, CELL * sizeof(float));
}

static void score_head(const lns_score_head *head, size_t first, size_t end) {
    float logits[ROWS * CELL_PIXELS] __attribute__((aligned(LNS_KERNEL_ALIGNMENT)));
    const size_t pixel_row = head->cells_x * CELL;
    for (size_t cell = first; cell < end; cell += ROWS) {
        const element *input = (const element *)head->input + cell * head->stride;
        const size_t count = end - cell < ROWS ? end - cell : ROWS;
        multiply_cells(input, head->stride, count, head->packed, CELL_PIXELS, logits);
        for (size_t r = 0; r < count; r++) {
            float *row = logits + r * CELL_PIXELS;
            for (int i = 0; i < CELL_PIXELS; i++)
                row[i] += head->bias[i];
            const float reject = dot_inputs(input + r * head->stride, head->reject_weights) + head->bias[CELL_PIXELS];
            const size_t y = (cell + r) / head->cells_x, x = (cell + r) % head->cells_x;
            softmax_to_cell(row, reject, head->scores + y * CELL * pixel_row + x * CELL, pixel_row);
        }
    }
}

/* ---- Descriptors -------------------------------------------------------------------------------- */

/* Adds the bias and divides by the Euclidean length, which is never taken below 1e-12. */
INLINE void finish_descriptor(const float *in, const float *bias, float *out) {
    vec squares[PART_VECS];
    for (int p = 0; p < PART_VECS; p++)
        squares[p] = vec_all(0.0f);
    for (int i = 0; i < DESCRIPTOR_OUTPUTS; i += LANES) {
        const vec x = vec_load(in + i) + vec_load(bias + i);
        vec_store(out + i, x);
        squares[i / LANES % PART_VECS] = vec_fma(x, x, squares[i / LANES % PART_VECS]);
    }
    const float length = __builtin_sqrtf(sum_parts(squares));
    const vec divisor = vec_all(length > 1e-12f ? length : 1e-12f);
    for (int i = 0; i < DESCRIPTOR_OUTPUTS; i += LANES)
        vec_store(out + i, vec_load(out + i) / divisor);
}

static void descriptor_head(const lns_descriptor_head *head, size_t first, size_t end) {
    float rows[ROWS * DESCRIPTOR_OUTPUTS] __attribute__((aligned(LNS_KERNEL_ALIGNMENT)));
    element wanted[ROWS * LNS_HEAD_INPUTS] __attribute__((aligned(LNS_KERNEL_ALIGNMENT)));
    const element *all = head->input;
    for (size_t i = first; i < end; i += ROWS) {
        const size_t count = end - i < ROWS ? end - i : ROWS;
        const element *input = all + i * head->stride;
        size_t stride = head->stride;
        if (head->cells != NULL) {
            input = wanted;
            stride = LNS_HEAD_INPUTS;
            for (size_t r = 0; r < count; r++)
                memcpy(wanted + r * LNS_HEAD_INPUTS, all + head->cells[i + r] * head->stride,
                       LNS_HEAD_INPUTS * sizeof(element));
        }
        multiply_cells(input, stride, count, head->packed, DESCRIPTOR_OUTPUTS, rows);
        for (size_t r = 0; r < count; r++) {
            const size_t cell = head->cells != NULL ? head->cells[i + r] : i + r;
            finish_descriptor(rows + r * DESCRIPTOR_OUTPUTS, head->bias,
                              head->descriptors + cell * DESCRIPTOR_OUTPUTS);
        }
    }
}
